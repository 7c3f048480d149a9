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
    pub(crate) fn pass(&self, mut work: impl FnMut()) {
        if !self.come() {
            return;
        }
        loop {
            work();
            if self.leave() {
                return;
            }
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
        if weakened!("signal_gate_again") {
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
