//! The list of notifiers that a signal handler notifies, which only grows.
//!
//! A handler may be in the middle of the list at any time, for as long as its thread is not
//! scheduled. So a notifier is never freed, and its pipe never closed: one that is released is kept
//! for the next runtime that needs one. There are as many notifiers as there were ever runtimes
//! with signals at the same time.
//!
//! # Protocol
//! The word of a notifier:
//! ```text
//! FREE     --acquire-->  IDLE      its owner: one at a time has it
//! IDLE     --notify-->   NOTIFIED  a handler, which then writes into the pipe
//! NOTIFIED --reset-->    IDLE      its owner
//! any      --release-->  FREE      its owner
//! ```
//! A late handler may write into the pipe of a notifier that is free or has another owner by now:
//! that owner is then notified for nothing.
//!
//! # Invariants
//! 1. `first` and the `next` of each notifier are set once, before the notifier can be found, and
//!    lead to notifiers that live as long as the list.

use std::{io, ptr::null_mut};

use crate::engine::prim::{
    AtomicPtr, AtomicU32, Mutex,
    Ordering::{Acquire, Relaxed, Release},
    lock,
};

const FREE: u32 = 0;
const IDLE: u32 = 1;
const NOTIFIED: u32 = 2;

/// The descriptor of a notifier, by which its owner is woken.
pub(crate) trait Notifies {
    /// Wakes the thread that waits for the notifier. Called by signal handlers, so it must take no
    /// lock and allocate no memory.
    fn notify(&self);
}

/// A list of notifiers, which only grows.
pub(super) struct Notifiers<P> {
    first: AtomicPtr<SignalNotifier<P>>,
    /// The notifiers that are free.
    spare: Mutex<Vec<*const SignalNotifier<P>>>,
}

/// A notifier, by which a signal handler wakes one runtime's driver.
pub(crate) struct SignalNotifier<P> {
    word: AtomicU32,
    next: *mut SignalNotifier<P>,
    pipe: P,
}

// SAFETY: notifiers are shared with handlers on all threads, which only read them, besides the
// atomic word; `P` may be shared as well.
unsafe impl<P: Send + Sync> Send for Notifiers<P> {}
// SAFETY: handlers on all threads only read notifiers, besides the atomic word; `P` may be shared
// as well.
unsafe impl<P: Send + Sync> Sync for Notifiers<P> {}
// SAFETY: `next` is only read, and only through the list.
unsafe impl<P: Send + Sync> Send for SignalNotifier<P> {}
// SAFETY: `next` is only read, and only through the list.
unsafe impl<P: Send + Sync> Sync for SignalNotifier<P> {}

impl<P> Notifiers<P> {
    pub(super) fn new() -> Self {
        Self { first: AtomicPtr::new(null_mut()), spare: Mutex::new(Vec::new()) }
    }

    pub(super) fn acquire(
        &self,
        make: impl FnOnce() -> io::Result<P>,
    ) -> io::Result<&SignalNotifier<P>> {
        let spare = lock(&self.spare).pop();
        if let Some(notifier) = spare {
            // SAFETY: notifiers live as long as the list.
            let notifier = unsafe { &*notifier };
            // Relaxed: the fence in `dispatch_all` orders it, which the owner must call next.
            notifier.word.store(IDLE, Relaxed);
            return Ok(notifier);
        }
        let notifier = Box::into_raw(Box::new(SignalNotifier {
            word: AtomicU32::new(IDLE),
            next: null_mut(),
            pipe: make()?,
        }));
        // Relaxed: a guess; the exchange confirms it.
        let mut first = self.first.load(Relaxed);
        loop {
            // SAFETY: no other thread knows the notifier before the exchange.
            unsafe { (*notifier).next = first };
            // Release: publishes the notifier and its `next`, and by the chain of exchanges those
            // before it. Pairs with the Acquire in `notify`. Relaxed on failure: a guess.
            match self.first.compare_exchange(first, notifier, Release, Relaxed) {
                // SAFETY: notifiers live as long as the list.
                Ok(_) => return Ok(unsafe { &*notifier }),
                Err(seen) => first = seen,
            }
        }
    }

    pub(super) fn release<'a>(&'a self, notifier: &'a SignalNotifier<P>) {
        // Relaxed: a handler that does not see it notifies for nothing.
        notifier.word.store(FREE, Relaxed);
        lock(&self.spare).push(notifier);
    }
}

impl<P: Notifies> Notifiers<P> {
    /// Performs S3: notifies every notifier that is idle.
    pub(super) fn notify(&self) {
        // Acquire: sees the notifier and its `next`. Pairs with the Release in `acquire`.
        let mut next = self.first.load(Acquire).cast_const();
        // SAFETY: notifiers live as long as the list (invariant 1), which is borrowed.
        while let Some(notifier) = unsafe { next.as_ref() } {
            // Relaxed, both: fences order it with the counts (S2, H2). The bytes in the pipe carry
            // no data.
            let is_idle = notifier.word.compare_exchange(IDLE, NOTIFIED, Relaxed, Relaxed).is_ok();
            if is_idle {
                notifier.pipe.notify();
            }
            next = notifier.next;
        }
    }
}

impl<P> SignalNotifier<P> {
    /// Performs H1: makes the notifier idle. Only for its owner.
    pub(super) fn reset(&self) {
        // Relaxed: the fence in `dispatch_all` orders it. It need not be an exchange: only a
        // handler could have changed the word since, to NOTIFIED, and then that handler has written
        // to the pipe or will, which notifies again.
        self.word.store(IDLE, Relaxed);
    }

    /// Notifies without a signal.
    #[cfg(all(unix, feature = "process"))]
    pub(crate) fn notify(&self)
    where
        P: Notifies,
    {
        self.pipe.notify();
    }

    #[cfg(unix)]
    pub(crate) fn pipe(&self) -> &P {
        &self.pipe
    }
}

impl<P> Drop for Notifiers<P> {
    fn drop(&mut self) {
        // Relaxed: no other thread has the list any more.
        let mut next = self.first.load(Relaxed);
        while !next.is_null() {
            // SAFETY: each notifier was boxed by `acquire`, and the list is no longer borrowed.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}

impl<P> std::fmt::Debug for SignalNotifier<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalNotifier").finish_non_exhaustive()
    }
}
