//! The bells that a handler rings: a list that only grows.
//!
//! A handler may be in the middle of the list at any time, for as long as its thread is not
//! given a processor. So a bell is never freed, and its pipe never closed: one that is taken
//! down is kept for the next who needs one. There are as many as there were ever runtimes
//! with signals at once.
//!
//! # Protocol
//! The word of a bell:
//! ```text
//! DOWN  --put_up-->     QUIET    its owner: one at a time has it
//! QUIET --ring-->       LOUD     a handler, which then writes into the pipe
//! LOUD  --hush-->       QUIET    its owner
//! any   --take_down-->  DOWN     its owner
//! ```
//! A handler that is late may write into the pipe of a bell that is down, or another's by
//! now: that one hears a bell for nothing.
//!
//! # Invariants
//! 1. `first` and the `next` of each bell are set once, before the bell can be found, and
//!    lead to bells that live as long as the list.

use std::{io, ptr::null_mut};

use crate::engine::prim::{
    AtomicPtr, AtomicU32, Mutex,
    Ordering::{Acquire, Relaxed, Release},
    lock,
};

const DOWN: u32 = 0;
const QUIET: u32 = 1;
const LOUD: u32 = 2;

/// What a bell is made of.
pub(crate) trait Rings {
    /// Makes whoever waits for it look. Called by handlers: no locks, no memory.
    fn ring(&self);
}

/// See the module.
pub(super) struct Bells<P> {
    first: AtomicPtr<Bell<P>>,
    /// Those that are down.
    spare: Mutex<Vec<*const Bell<P>>>,
}

/// One bell.
pub(crate) struct Bell<P> {
    word: AtomicU32,
    next: *mut Bell<P>,
    pipe: P,
}

// SAFETY: bells are shared with handlers on all threads and are only read there, besides
// their word; what one is made of may be as well.
unsafe impl<P: Send + Sync> Send for Bells<P> {}
// SAFETY: as above.
unsafe impl<P: Send + Sync> Sync for Bells<P> {}
// SAFETY: `next` is only read, and only through the list.
unsafe impl<P: Send + Sync> Send for Bell<P> {}
// SAFETY: as above.
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
            // Relaxed: the fence in `tell_all` orders it, which the owner calls next.
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
            // SAFETY: nobody else has it before the exchange.
            unsafe { (*bell).next = first };
            // Release: publishes the bell and its `next`, and by the chain of exchanges
            // those before it. Pairs with the Acquire in `ring`. Relaxed on failure: a guess.
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
    /// S3.
    pub(super) fn ring(&self) {
        // Acquire: pairs with the Release in `put_up`.
        let mut next = self.first.load(Acquire).cast_const();
        // SAFETY: invariant 1; the list is borrowed.
        while let Some(bell) = unsafe { next.as_ref() } {
            // Relaxed, both: fences order it with the counts (S2, H2). What is written into
            // the pipe carries nothing.
            let rings = bell.word.compare_exchange(QUIET, LOUD, Relaxed, Relaxed).is_ok();
            if rings {
                bell.pipe.ring();
            }
            next = bell.next;
        }
    }
}

impl<P> Bell<P> {
    /// H1; only by its owner.
    pub(super) fn hush(&self) {
        // Relaxed: the fence in `tell_all` orders it. No exchange: only a handler could have
        // changed it since, to LOUD, and then it has written or will, which is heard again.
        self.word.store(QUIET, Relaxed);
    }

    /// Rings it by hand.
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
        // Relaxed: we are alone.
        let mut next = self.first.load(Relaxed);
        while !next.is_null() {
            // SAFETY: each was boxed by `put_up`; nobody borrows the list any more.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}

impl<P> std::fmt::Debug for Bell<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}
