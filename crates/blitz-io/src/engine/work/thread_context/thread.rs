//! The part of the thread itself: its number, and its random numbers.

use std::cell::Cell;

use super::with;
use crate::engine::prim::{ids, rng::Rng};

/// The words of the thread itself in its context.
pub(super) struct ThreadPart {
    /// The number that [`thread`] returns; zero until it is first called.
    number: Cell<u64>,
    /// The state of this thread's generator; zero before its first use.
    rng_state: Cell<u64>,
}

impl ThreadPart {
    pub(super) const fn new() -> Self {
        Self { number: Cell::new(0), rng_state: Cell::new(0) }
    }
}

/// Returns a number for this thread that no other thread of the process has, or will have
/// after its end. Addresses and the system's thread IDs would not do, because they are reused.
pub(crate) fn thread() -> u64 {
    with(|context| {
        let number = &context.thread.number;
        if number.get() == 0 {
            number.set(ids::take(1));
        }
        number.get()
    })
}

/// Returns a random number below `bound` from this thread's generator, which is that of the
/// seeded runtime that works here, else one that is seeded by the process.
#[inline]
#[cfg_attr(not(feature = "macros"), allow(dead_code, reason = "`select!` uses it"))]
pub(crate) fn random_below(bound: u32) -> u32 {
    with(|context| {
        let mut rng = match context.thread.rng_state.get() {
            0 => Rng::new(Rng::process_seed()),
            state => Rng::resume(state),
        };
        let number = rng.below(bound);
        context.thread.rng_state.set(rng.state());
        number
    })
}

/// A guard under which this thread draws from the generator of a seeded runtime.
pub(crate) struct SeededRngGuard {
    before: u64,
}

impl SeededRngGuard {
    pub(crate) fn new(rng: &Rng) -> Self {
        with(|context| Self { before: context.thread.rng_state.replace(rng.state()) })
    }
}

impl Drop for SeededRngGuard {
    fn drop(&mut self) {
        with(|context| context.thread.rng_state.set(self.before));
    }
}
