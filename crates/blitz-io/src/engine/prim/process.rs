//! Which process this is: one that was forked is another one.
//!
//! # Checked by
//! tests/preempt: `a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own`,
//! `a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own`.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What tells a process from the one that forked it. Its number alone does not: in a namespace of
/// its own the child may have its parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    number: u32,
    /// How often it was forked, since somebody has asked for the first time.
    forks: u32,
}

impl Process {
    pub(crate) fn this() -> Self {
        Self { number: std::process::id(), forks: forks() }
    }
}

/// Counted in the child. One that is made by a bare system call is told by its number alone.
#[cfg(unix)]
fn forks() -> u32 {
    static FORKS: AtomicU32 = AtomicU32::new(0);
    static COUNTED: AtomicBool = AtomicBool::new(false);

    extern "C" fn count() {
        // Relaxed: the child has one thread.
        FORKS.fetch_add(1, Relaxed);
    }
    // Relaxed: whoever comes second need not wait for the first, and in a child may not.
    if !COUNTED.swap(true, Relaxed) {
        // SAFETY: the function may run anywhere. If there is no memory for it, there are numbers.
        unsafe { libc::pthread_atfork(None, None, Some(count)) };
    }
    // Relaxed: as above.
    FORKS.load(Relaxed)
}

#[cfg(not(unix))]
fn forks() -> u32 {
    0
}
