//! Mutual exclusion without waiting, in which no call is forgotten.
//!
//! A caller that comes while another thread is at work neither waits nor enters: it leaves a mark,
//! and the thread inside does the work once more.
//!
//! # Protocol
//! ```text
//! IDLE    --begin-->  RUNNING: works   RUNNING --begin-->  AGAIN, and returns
//! RUNNING --finish--> IDLE             AGAIN   --finish--> RUNNING: works once more
//! ```
//! All transitions are exchanges that acquire and release, so the thread that works sees what the
//! callers did before they left their mark.
//!
//! # Checked by
//! `a_second_call_while_one_runs_is_served` (of the signals); weakened as `coalescer_again`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
    weakened,
};

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const AGAIN: u32 = 2;

/// A lock for work that one thread does at a time, on behalf of all that call.
#[derive(Debug)]
pub(crate) struct Coalescer(AtomicU32);

impl Coalescer {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// Does the work, and repeats it until no call has come since it was begun. If another thread
    /// is at work, leaves it to that thread.
    ///
    /// # Panics
    /// If the work panics, which includes the wakers of users.
    pub(crate) fn run(&self, mut work: impl FnMut()) {
        if !self.begin() {
            return;
        }
        let mut panicked = None;
        loop {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(&mut work)) {
                // The first panic is resumed, but only after all calls were served.
                panicked.get_or_insert(panic);
            }
            if self.finish() {
                break;
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    fn begin(&self) -> bool {
        let step = |now| Some(if now == IDLE { RUNNING } else { AGAIN });
        // AcqRel, Acquire: sees what earlier callers did, and publishes what this one did. Pairs
        // with the exchanges here and in `finish`.
        let before = self.0.fetch_update(AcqRel, Acquire, step).unwrap_or_else(|now| now);
        before == IDLE
    }

    /// Returns whether the work is over: no call has come since it was begun.
    fn finish(&self) -> bool {
        if weakened!("coalescer_again") {
            // AcqRel: the real exchange below has the same order; only the check for AGAIN is left
            // out.
            self.0.swap(IDLE, AcqRel);
            return true;
        }
        let step = |now| Some(if now == AGAIN { RUNNING } else { IDLE });
        // AcqRel, Acquire: sees what the callers did that left a mark. Pairs with the exchange in
        // `begin`.
        let before = self.0.fetch_update(AcqRel, Acquire, step).unwrap_or_else(|now| now);
        before == RUNNING
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        cell::Cell,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use super::Coalescer;

    #[test]
    fn a_nested_call_runs_after_and_not_within() {
        let (coalescer, depth, calls) = (Coalescer::new(), Cell::new(0), Cell::new(0));
        coalescer.run(|| {
            assert_eq!(depth.replace(1), 0, "it called itself");
            calls.set(calls.get() + 1);
            if calls.get() < 100 {
                coalescer.run(|| unreachable!("a thread is at work"));
            }
            depth.set(0);
        });
        assert_eq!(calls.get(), 100);
    }

    #[test]
    fn a_panic_releases_and_forgets_no_call() {
        let (coalescer, calls) = (Coalescer::new(), Cell::new(0));
        let call = || {
            coalescer.run(|| {
                calls.set(calls.get() + 1);
                if calls.get() == 1 {
                    coalescer.run(|| ());
                    panic!("as the test wants");
                }
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert_eq!(calls.get(), 2, "a marked call was forgotten");
        call();
        assert_eq!(calls.get(), 3);
    }
}
