//! One at a time, and nobody who comes meanwhile is forgotten.
//!
//! Whoever is called while another is at work does not wait and does not come in: it leaves
//! word, and the one inside goes round once more.
//!
//! # Protocol
//! ```text
//! IDLE   --come-->  INSIDE: works     INSIDE --come--> AGAIN, and goes away
//! INSIDE --leave--> IDLE              AGAIN  --leave--> INSIDE: works once more
//! ```
//! All are exchanges that acquire and release: who works sees what those did before who left
//! word.
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

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// Does the work, until nobody has come since it was begun; or leaves it to who is at it.
    ///
    /// # Panics
    /// If the work does, which has the wakers of users in it.
    pub(crate) fn pass(&self, mut work: impl FnMut()) {
        if !self.come() {
            return;
        }
        let mut panicked = None;
        loop {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(&mut work)) {
                // The first one leaves, and not before the others were heard.
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
        // AcqRel, Acquire: as the module says.
        let before = self.0.fetch_update(AcqRel, Acquire, step).unwrap_or_else(|now| now);
        before == IDLE
    }

    /// Whether it is over.
    fn leave(&self) -> bool {
        if weakened!("wait_gate_again") {
            // AcqRel: as the module says.
            self.0.swap(IDLE, AcqRel);
            return true;
        }
        let step = |now| Some(if now == AGAIN { INSIDE } else { IDLE });
        // AcqRel, Acquire: as the module says.
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
