//! Threads of the process that belong to no runtime: the monitor, the reporter, the thread that
//! waits for child processes.
//!
//! Such a thread blocks all signals. A program blocks a signal in the threads that it knows, to
//! receive it with `sigwait` or a signalfd. A thread that the program does not know, and that
//! does not block the signal, would receive it, and the process would end. Threads that a service
//! thread starts for a runtime get the mask that the service thread's own starter had, so that
//! tasks on them, and children that those start, see the mask that they would see anywhere else.

use std::io;

use super::thread;

#[cfg(all(unix, not(blitz_loom)))]
pub(super) use self::mask::{Mask, starter_mask};

/// Starts a service thread.
///
/// # Errors
/// Returns the system's error if it cannot start a thread.
pub(crate) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    #[cfg(all(unix, not(blitz_loom)))]
    {
        // Blocked here and not on the new thread, so that there is no time at which that thread can
        // receive a signal.
        let before = Mask::block_all();
        let started = thread.spawn(move || {
            mask::remember(before);
            body();
        });
        before.set();
        started.map(drop)
    }
    #[cfg(not(all(unix, not(blitz_loom))))]
    thread.spawn(body).map(drop)
}

/// Calls a user's function on a service thread with the signal mask of that thread's starter,
/// because a child process inherits the mask.
#[cfg_attr(blitz_loom, allow(dead_code, reason = "models have no service threads"))]
pub(crate) fn with_starters_mask<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(all(unix, not(blitz_loom)))]
    if let Some(mask) = starter_mask() {
        /// Guard that blocks all signals again, also if the function panics.
        struct BlockAgain;
        impl Drop for BlockAgain {
            fn drop(&mut self) {
                Mask::block_all();
            }
        }
        mask.set();
        let _again = BlockAgain;
        return f();
    }
    f()
}

#[cfg(all(unix, not(blitz_loom)))]
mod mask {
    use std::{cell::Cell, mem::MaybeUninit, ptr};

    std::thread_local! {
        /// On a service thread: the signal mask that its starter had.
        static STARTERS: Cell<Option<Mask>> = const { Cell::new(None) };
    }

    /// A set of blocked signals.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Mask(libc::sigset_t);

    impl Mask {
        /// Blocks all signals in the calling thread, and returns the mask that it had before.
        pub(super) fn block_all() -> Self {
            let mut all = MaybeUninit::uninit();
            let mut before = MaybeUninit::uninit();
            // SAFETY: the first call fills `all`, the second reads it and fills `before`; neither
            // can fail with these arguments.
            unsafe {
                libc::sigfillset(all.as_mut_ptr());
                libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
                Self(before.assume_init())
            }
        }

        /// Makes this the mask of the calling thread.
        pub(in super::super) fn set(self) {
            // SAFETY: the system has filled this set, and a null pointer means that nothing is
            // written back.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
        }
    }

    /// Stores the mask of the service thread's starter.
    pub(super) fn remember(mask: Mask) {
        STARTERS.set(Some(mask));
    }

    /// Returns the mask for threads that the calling thread starts, if it is a service thread.
    pub(in super::super) fn starter_mask() -> Option<Mask> {
        STARTERS.try_with(Cell::get).unwrap_or(None)
    }
}
