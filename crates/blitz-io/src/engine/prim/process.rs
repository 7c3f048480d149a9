//! Identifies this process, so that a forked child is recognised as another process.
//!
//! # Checked by
//! tests/preempt: `a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own`,
//! `a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own`.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The identity that distinguishes a process from the one that forked it. The process ID alone is
/// not enough, because in a PID namespace of its own the child may have its parent's ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    number: u32,
    /// Number of forks between the process that first called [`forks`] and this one.
    forks: u32,
}

impl ProcessIdentity {
    /// Returns the identity of the calling process.
    pub(crate) fn current() -> Self {
        Self { number: std::process::id(), forks: forks() }
    }
}

/// Returns the number of forks, counted in the child. A child made by a raw system call runs no
/// handler, so only its process ID distinguishes it.
#[cfg(unix)]
fn forks() -> u32 {
    static FORKS: AtomicU32 = AtomicU32::new(0);
    static COUNTED: AtomicBool = AtomicBool::new(false);

    extern "C" fn count() {
        // Relaxed: a child begins with one thread, so there is nothing to order against.
        FORKS.fetch_add(1, Relaxed);
    }
    // Relaxed: a second caller need not wait for the first one to register the handler. In a
    // child it must not wait, because the first thread may not exist there.
    if !COUNTED.swap(true, Relaxed) {
        // SAFETY: the handler only adds to an atomic, so it may run in any state of the child. If
        // there is no memory to register it, process IDs still distinguish most children.
        unsafe { libc::pthread_atfork(None, None, Some(count)) };
    }
    // Relaxed: the handler writes the count before any other code of the child runs.
    FORKS.load(Relaxed)
}

#[cfg(not(unix))]
fn forks() -> u32 {
    0
}
