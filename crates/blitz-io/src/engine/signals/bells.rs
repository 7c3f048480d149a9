//! The list of bells that a signal handler rings, which only grows.
//!
//! A handler may be in the middle of the list at any time, for as long as its thread is not
//! scheduled. So a bell is never freed, and its pipe never closed: one that is taken down is kept
//! for the next runtime that needs one. There are as many bells as there were ever runtimes with
//! signals at the same time.
//!
//! # Protocol
//! The word of a bell:
//! ```text
//! DOWN  --put_up-->     QUIET    its owner: one at a time has it
//! QUIET --ring-->       LOUD     a handler, which then writes into the pipe
//! LOUD  --hush-->       QUIET    its owner
//! any   --take_down-->  DOWN     its owner
//! ```
//! A late handler may write into the pipe of a bell that is down or has another owner by now: that
//! owner then hears a bell for nothing.
//!
//! # Invariants
//! 1. `first` and the `next` of each bell are set once, before the bell can be found, and lead to
//!    bells that live as long as the list.

use std::{io, ptr::null_mut};

use crate::engine::prim::{
    AtomicPtr, AtomicU32, Mutex,
    Ordering::{Acquire, Relaxed, Release},
    lock,
};

const DOWN: u32 = 0;
const QUIET: u32 = 1;
const LOUD: u32 = 2;

/// A descriptor that can be rung: the part of a bell that wakes its owner.
pub(crate) trait Rings {
    /// Wakes the thread that waits for the bell. Called by signal handlers, so it must take no lock
    /// and allocate no memory.
    fn ring(&self);
}

/// A list of bells, which only grows.
pub(super) struct Bells<P> {
    first: AtomicPtr<Bell<P>>,
    /// The bells that are down.
    spare: Mutex<Vec<*const Bell<P>>>,
}

/// A notifier that a signal handler rings, to wake one runtime's driver.
pub(crate) struct Bell<P> {
    word: AtomicU32,
    next: *mut Bell<P>,
    pipe: P,
}

// SAFETY: bells are shared with handlers on all threads, which only read them, besides the atomic
// word; `P` may be shared as well.
unsafe impl<P: Send + Sync> Send for Bells<P> {}
// SAFETY: handlers on all threads only read bells, besides the atomic word; `P` may be shared as
// well.
unsafe impl<P: Send + Sync> Sync for Bells<P> {}
// SAFETY: `next` is only read, and only through the list.
unsafe impl<P: Send + Sync> Send for Bell<P> {}
// SAFETY: `next` is only read, and only through the list.
unsafe impl<P: Send + Sync> Sync for Bell<P> {}

impl<P> Bells<P> {
    pub(super) fn new() -> Self {
        Self { first: AtomicPtr::new(null_mut()), spare: Mutex::new(Vec::new()) }
    }

    pub(super) fn put_up(&self, make: impl FnOnce() -> io::Result<P>) -> io::Result<&Bell<P>> {
        let spare = lock(&self.spare).pop();
        if let Some(bell) = spare {
            // SAFETY: bells live as long as the list.
            let bell = unsafe { &*bell };
            // Relaxed: the fence in `tell_all` orders it, which the owner must call next.
            bell.word.store(QUIET, Relaxed);
            return Ok(bell);
        }
        let bell = Box::into_raw(Box::new(Bell {
            word: AtomicU32::new(QUIET),
            next: null_mut(),
            pipe: make()?,
        }));
        // Relaxed: a guess; the exchange confirms it.
        let mut first = self.first.load(Relaxed);
        loop {
            // SAFETY: no other thread knows the bell before the exchange.
            unsafe { (*bell).next = first };
            // Release: publishes the bell and its `next`, and by the chain of exchanges those
            // before it. Pairs with the Acquire in `ring`. Relaxed on failure: a guess.
            match self.first.compare_exchange(first, bell, Release, Relaxed) {
                // SAFETY: bells live as long as the list.
                Ok(_) => return Ok(unsafe { &*bell }),
                Err(seen) => first = seen,
            }
        }
    }

    pub(super) fn take_down<'a>(&'a self, bell: &'a Bell<P>) {
        // Relaxed: a handler that does not see it rings for nothing.
        bell.word.store(DOWN, Relaxed);
        lock(&self.spare).push(bell);
    }
}

impl<P: Rings> Bells<P> {
    /// Performs S3: rings every bell that is quiet.
    pub(super) fn ring(&self) {
        // Acquire: sees the bell and its `next`. Pairs with the Release in `put_up`.
        let mut next = self.first.load(Acquire).cast_const();
        // SAFETY: bells live as long as the list (invariant 1), which is borrowed.
        while let Some(bell) = unsafe { next.as_ref() } {
            // Relaxed, both: fences order it with the counts (S2, H2). The bytes in the pipe carry
            // no data.
            let rings = bell.word.compare_exchange(QUIET, LOUD, Relaxed, Relaxed).is_ok();
            if rings {
                bell.pipe.ring();
            }
            next = bell.next;
        }
    }
}

impl<P> Bell<P> {
    /// Performs H1: makes the bell quiet. Only for its owner.
    pub(super) fn hush(&self) {
        // Relaxed: the fence in `tell_all` orders it. It need not be an exchange: only a handler
        // could have changed the word since, to LOUD, and then that handler has written to the pipe
        // or will, which is heard again.
        self.word.store(QUIET, Relaxed);
    }

    /// Rings the bell without a signal.
    #[cfg(all(unix, feature = "process"))]
    pub(crate) fn ring(&self)
    where
        P: Rings,
    {
        self.pipe.ring();
    }

    #[cfg(unix)]
    pub(crate) fn pipe(&self) -> &P {
        &self.pipe
    }
}

impl<P> Drop for Bells<P> {
    fn drop(&mut self) {
        // Relaxed: no other thread has the list any more.
        let mut next = self.first.load(Relaxed);
        while !next.is_null() {
            // SAFETY: each bell was boxed by `put_up`, and the list is no longer borrowed.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}

impl<P> std::fmt::Debug for Bell<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}
