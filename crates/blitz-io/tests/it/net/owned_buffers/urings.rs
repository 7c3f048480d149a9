//! Tests that io_urings end with their runtime, and are not needed if they are forbidden later on.

use blitz_io::{net::UnixStream, runtime::Builder};

use super::kinds;
use crate::support::{child, manual_poll::waiting, watchdog};

/// Returns the number of io_uring descriptors of this process.
fn urings() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("Linux lists descriptors");
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("io_uring")).count()
}

/// Returns true if the driver waits for events in an io_uring of its own.
fn waits_in_uring() -> bool {
    std::env::var("BLITZ_IO_BACKEND").is_ok_and(|name| name == "uring")
}

/// Runs alone in its process, in which no other code opens descriptors.
#[test]
fn runtimes_that_end_leave_no_descriptor() {
    if child::role().is_none() {
        let name = "net::owned_buffers::urings::runtimes_that_end_leave_no_descriptor";
        child::succeed(&mut child::command(name, "counts descriptors"));
        return;
    }
    let _watch = watchdog::start();
    let before = child::descriptors();
    for round in 0..5 {
        for (number, rt) in kinds().enumerate() {
            let (one, other) = rt.block_on(async {
                let (one, other) = UnixStream::pair().unwrap();
                one.write_all_owned("x").await.0.unwrap();
                assert_eq!(other.read_owned(vec![0; 8]).await.0.unwrap(), 1);
                std::mem::forget(waiting(one.read_owned(vec![0; 8])));
                (one, other)
            });
            // The first three kinds may have io_urings, unless the kernel or the variable forbids
            // them; and one more each if the driver waits in one.
            assert!(waits_in_uring() || urings() <= usize::from(number < 3));
            let task = rt.spawn(async move { other.read_owned(vec![0; 8]).await });
            if round % 2 == 0 {
                drop(one);
                drop(rt);
            } else {
                drop(rt);
                drop(one);
            }
            drop(task);
            assert_eq!(
                (urings(), child::descriptors()),
                (0, before),
                "round {round}, kind {number}"
            );
        }
    }
}

/// Runs alone in its process, in which no other code creates an io_uring.
#[test]
fn a_write_makes_a_uring_only_if_it_has_to_wait() {
    if child::role().is_none() {
        let name = "net::owned_buffers::urings::a_write_makes_a_uring_only_if_it_has_to_wait";
        child::succeed(&mut child::command(name, "counts urings"));
        return;
    }
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let before = urings();
    let has_uring = rt.block_on(async {
        let (one, _other) = UnixStream::pair().unwrap();
        drop(waiting(one.read_owned(vec![0; 1])));
        urings() > before
    });
    drop(rt);
    let rt = Builder::new_current_thread().enable_all().build().expect("a runtime");
    rt.block_on(async {
        let (one, other) = UnixStream::pair().unwrap();
        // The driver's own io_uring, if it has one.
        let before = urings();
        one.write_all_owned("there is room").await.0.unwrap();
        assert_eq!(urings(), before);
        let writing = one.write_all_owned(vec![7; 4 << 20]);
        let reading = async {
            let mut left = "there is room".len() + (4 << 20);
            while left > 0 {
                let (result, _) = other.read_owned(Vec::with_capacity(1 << 16)).await;
                left -= result.unwrap();
            }
        };
        let mut writing = waiting(writing);
        assert_eq!(urings() > before, has_uring, "it has to wait");
        let written = std::future::poll_fn(|cx| writing.poll_with(cx.waker()));
        let ((result, buf), ()) = blitz_io::join!(written, reading);
        result.unwrap();
        assert_eq!(buf.len(), 4 << 20);
    });
}

/// The sandbox is entered after the first operation, which has ended by then.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sandbox_that_comes_late_is_no_harm() {
    // A driver that waits in an io_uring has lost the only way to wait: it reports that and ends.
    if waits_in_uring() {
        return;
    }
    if child::role().is_none() {
        let name = "net::owned_buffers::urings::a_sandbox_that_comes_late_is_no_harm";
        child::succeed(&mut child::command(name, "is shut in"));
        return;
    }
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().enable_all().build().expect("a runtime");
    rt.block_on(async {
        let (one, other) = UnixStream::pair().unwrap();
        for round in 0..3 {
            if round == 1 {
                forbid_io_uring();
            }
            let (result, buf) = one.write_all_owned("hello").await;
            result.unwrap();
            assert_eq!(buf, "hello");
            let (result, buf) = other.read_owned(vec![0; 8]).await;
            assert_eq!((result.unwrap(), &buf[..]), (5, &b"hello"[..]));
        }
        // An operation that has to wait.
        let mut reading = waiting(other.read_owned(vec![0; 8]));
        one.write_all_owned("later").await.0.unwrap();
        let (result, buf) = std::future::poll_fn(|cx| reading.poll_with(cx.waker())).await;
        assert_eq!((result.unwrap(), &buf[..]), (5, &b"later"[..]));
    });
}

/// Makes `io_uring_enter` fail with EPERM on this thread from now on.
#[cfg(target_arch = "x86_64")]
fn forbid_io_uring() {
    const ENTER: u32 = libc::SYS_io_uring_enter as u32;
    let step = |code: u32, yes, no, value| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: value,
    };
    let mut filter = [
        // The number of the call, which is the first word that a filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, ENTER),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter is valid during the call, and applies to this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}
