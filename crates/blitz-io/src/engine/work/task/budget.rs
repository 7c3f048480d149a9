//! How much a task may do before it must let others run.
//!
//! Every primitive of the runtime that completes an operation takes one unit;
//! at zero it answers `Pending` and wakes the task at once, so that a loop over
//! ready channels or sockets comes round to the scheduler. (The other budget,
//! polls per worker tick, is the worker's: `pool/worker.rs`.)

use std::task::{Context, Poll};

use super::moment::Wait;
use crate::engine::work::current;

/// Operations per poll: Tokio's figure, which its users have tuned to.
const OPERATIONS_PER_POLL: u8 = 128;

/// What is left; `None` is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget(Option<u8>);

impl Budget {
    /// What a task has at the start of a poll.
    #[inline]
    pub(crate) const fn per_poll() -> Self {
        Self(Some(OPERATIONS_PER_POLL))
    }

    /// What code outside tasks has.
    #[inline]
    pub(crate) const fn unlimited() -> Self {
        Self(None)
    }
}

/// Gives the unit back unless the operation made progress.
#[must_use]
#[derive(Debug)]
pub(crate) struct Unit {
    before: Budget,
    spent: bool,
}

impl Unit {
    /// The operation completed: the unit is spent.
    #[inline]
    pub(crate) fn spend(mut self) {
        self.spent = true;
    }
}

impl Drop for Unit {
    #[inline]
    fn drop(&mut self) {
        if !self.spent {
            current::with(|current| current.budget.set(self.before));
        }
    }
}

/// Takes one unit, or wakes the task and says `Pending` when none is left.
#[inline]
pub(crate) fn proceed(cx: &mut Context<'_>) -> Poll<Unit> {
    let unit = current::with(|current| {
        let before = current.budget.get();
        match before.0 {
            Some(0) => return None,
            Some(left) => current.budget.set(Budget(Some(left - 1))),
            None => {}
        }
        Some(Unit { before, spent: false })
    });
    match unit {
        Some(unit) => Poll::Ready(unit),
        None => {
            current::waits_for(Wait::Turn);
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::{Budget, proceed};
    use crate::engine::work::current;

    #[test]
    fn a_poll_may_complete_128_operations_and_no_more() {
        let mut cx = Context::from_waker(Waker::noop());
        current::with(|current| current.budget.set(Budget::per_poll()));
        for _ in 0..128 {
            let Poll::Ready(unit) = proceed(&mut cx) else { panic!("ended early") };
            unit.spend();
        }
        assert!(proceed(&mut cx).is_pending());
        current::with(|current| current.budget.set(Budget::unlimited()));
    }

    #[test]
    fn an_operation_without_progress_costs_nothing() {
        let mut cx = Context::from_waker(Waker::noop());
        current::with(|current| current.budget.set(Budget::per_poll()));
        for _ in 0..1_000 {
            let Poll::Ready(unit) = proceed(&mut cx) else { panic!("charged for nothing") };
            drop(unit);
        }
        current::with(|current| current.budget.set(Budget::unlimited()));
    }
}
