//! Mutual exclusion without waiting, in which no call is forgotten.
//!
//! A caller that comes while another thread is at work neither waits nor enters: it leaves a mark,
//! and the thread inside does the work once more.
//!
//! # Protocol
//! ```text
//! IDLE   --come-->  INSIDE: works     INSIDE --come--> AGAIN, and goes away
//! INSIDE --leave--> IDLE              AGAIN  --leave--> INSIDE: works once more
//! ```
//! All transitions are exchanges that acquire and release, so the thread that works sees what the
//! callers did before they left their mark.
//!
//! # Checked by
//! `a_second_call_while_one_hears_is_heard` (of the signals); weakened as `wait_gate_again`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
    weakened,
};

const IDLE: u32 = 0;
const INSIDE: u32 = 1;
const AGAIN: u32 = 2;

/// A lock for work that one thread does at a time, on behalf of all that call.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// Does the work, and repeats it until no call has come since it was begun. If another thread
    /// is at work, leaves it to that thread.
    ///
    /// # Panics
    /// If the work panics, which includes the wakers of users.
    pub(crate) fn pass(&self, mut work: impl FnMut()) {
        if !self.come() {
            return;
        }
        let mut panicked = None;
        loop {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(&mut work)) {
                // The first panic is resumed, but only after all calls were served.
                panicked.get_or_insert(panic);
            }
            if self.leave() {
                break;
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    fn come(&self) -> bool {
        let step = |now| Some(if now == IDLE { INSIDE } else { AGAIN });
        // AcqRel, Acquire: sees what earlier callers did, and publishes what this one did. Pairs
        // with the exchanges here and in `leave`.
        let before = self.0.fetch_update(AcqRel, Acquire, step).unwrap_or_else(|now| now);
        before == IDLE
    }

    /// Returns whether the work is over: no call has come since it was begun.
    fn leave(&self) -> bool {
        if weakened!("wait_gate_again") {
            // AcqRel: the real exchange below has the same order; only the check for AGAIN is left
            // out.
            self.0.swap(IDLE, AcqRel);
            return true;
        }
        let step = |now| Some(if now == AGAIN { INSIDE } else { IDLE });
        // AcqRel, Acquire: sees what the callers did that left a mark. Pairs with the exchange in
        // `come`.
        let before = self.0.fetch_update(AcqRel, Acquire, step).unwrap_or_else(|now| now);
        before == INSIDE
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        cell::Cell,
        panic::{AssertUnwindSafe, catch_unwind},
    };

    use super::Gate;

    #[test]
    fn who_comes_from_within_is_heard_after_and_not_within() {
        let (gate, depth, calls) = (Gate::new(), Cell::new(0), Cell::new(0));
        gate.pass(|| {
            assert_eq!(depth.replace(1), 0, "it called itself");
            calls.set(calls.get() + 1);
            if calls.get() < 100 {
                gate.pass(|| unreachable!("somebody is inside"));
            }
            depth.set(0);
        });
        assert_eq!(calls.get(), 100);
    }

    #[test]
    fn a_panic_leaves_the_gate_open_and_forgets_nobody() {
        let (gate, calls) = (Gate::new(), Cell::new(0));
        let call = || {
            gate.pass(|| {
                calls.set(calls.get() + 1);
                if calls.get() == 1 {
                    gate.pass(|| ());
                    panic!("as asked for");
                }
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert_eq!(calls.get(), 2, "who left word was forgotten");
        call();
        assert_eq!(calls.get(), 3);
    }
}
