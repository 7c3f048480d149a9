//! The rows without a runtime: the system's own cost.

use std::process::Command;
use std::time::Duration;

use harness::measure::{Metric, per_op};

use crate::sender;
use crate::workloads::{AT_ONCE, CHILDREN};

/// Runs a row; `None` if there is no such row.
pub(crate) fn run(row: &str, budget: Duration) -> Option<Vec<Metric>> {
    Some(match row {
        "spawn_wait" => per_op(budget, CHILDREN, || {
            for _ in 0..CHILDREN {
                let status = Command::new("/bin/true").status().expect("it starts");
                assert!(status.success());
            }
        }),
        "spawn_wait_32" => per_op(budget, AT_ONCE, || {
            let start = |_| Command::new("/bin/true").spawn().expect("it starts");
            for mut child in (0..AT_ONCE).map(start).collect::<Vec<_>>() {
                assert!(child.wait().expect("it ends").success());
            }
        }),
        "output" => per_op(budget, CHILDREN, || {
            for _ in 0..CHILDREN {
                let output = Command::new("/bin/echo").arg("hello").output().expect("it starts");
                assert_eq!(output.stdout, b"hello\n");
            }
        }),
        "signal_task" | "signal_worker" => signals(budget),
        _ => return None,
    })
}

/// Measures signals with a thread that reads a signalfd.
fn signals(budget: Duration) -> Vec<Metric> {
    sender::block();
    // SAFETY: a set of signals is plain bits, which are initialised before it is used.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, sender::SIGNAL);
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC)
    };
    assert!(fd >= 0, "no signalfd: run this on linux");
    let sends = sender::begin(budget);
    while !sends.is_over() {
        if !readable(fd) {
            continue;
        }
        // SAFETY: the struct is plain integers, which the call fills; the length is that of the
        // struct.
        let read = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            libc::read(fd, (&raw mut info).cast(), size_of_val(&info))
        };
        assert!(read > 0, "a signalfd is read");
        sends.received();
    }
    // SAFETY: the descriptor is ours, and not used afterwards.
    unsafe { libc::close(fd) };
    sends.figures()
}

/// Waits until it is readable, for a tenth of a second at most, because the sender may be done.
fn readable(fd: i32) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one entry, a local that outlives the call.
    unsafe { libc::poll(&mut entry, 1, 100) == 1 }
}
