//! Limits the number of threads that this process may start.
#![cfg(target_os = "linux")]

use std::fs;

/// Returns the number of threads of this process that belong to `user`. An emulator has a thread of
/// its own that stays with root, and would count as one more that the test may start.
fn threads_of(user: libc::uid_t) -> usize {
    let all = fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).ok();
    let real = |status: String| {
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_whitespace().next()?.parse::<libc::uid_t>().ok()
    };
    all.filter_map(|thread| real(status(thread.ok()?)?)).filter(|&real| real == user).count()
}

/// Lets this process start `more` threads and no further one.
pub(crate) fn allow_threads(more: usize) {
    become_limited_user();
    // SAFETY: the call takes no arguments.
    let user = unsafe { libc::getuid() };
    set_limit(threads_of(user) + more);
}

/// Prevents this process from starting further threads.
pub(crate) fn allow_no_thread() {
    become_limited_user();
    set_limit(0);
}

/// Changes the user of this process if it is root, because root has no limit.
fn become_limited_user() {
    // SAFETY: the calls take integers. 65534 is the user `nobody` by convention.
    unsafe {
        if libc::getuid() == 0 {
            assert_eq!(libc::setuid(65534), 0);
        }
    }
}

fn set_limit(threads: usize) {
    let threads = threads as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: threads, rlim_max: threads };
    // SAFETY: the call takes a pointer to `limit`, which outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) }, 0);
}
