//! The cooperative budget: how much a task may do in a poll before it must let others run.
//!
//! Every primitive of the runtime that completes an operation takes one unit;
//! at zero it returns `Pending` and wakes the task at once, so that a loop over
//! ready channels or sockets returns to the scheduler. (The other budget,
//! polls per worker tick, is the worker's: `pool/find.rs`.)
//!
//! A read or write of a socket takes one unit for every piece of the data that it moved. Without
//! that, a poll with buffers of 64 KiB could move eight mebibytes, and other tasks would wait for
//! milliseconds.
//!
//! A poll that was marked as long (`lease/mod.rs`) has no units left, whatever it has done,
//! so that a task that computes between two operations lets others run as well. But this holds
//! only for a while: a task that goes on polling after a refusal does not return to the scheduler,
//! for example because it runs another executor inside. To refuse it for ever would let no other
//! task run, and never end.
//!
//! An operation that always returns `Pending` first (`yield_now`) takes no unit, because it lets
//! other tasks run anyway. A wrapper that only passes polls on (`shield`) takes none either.

use std::{
    cell::Cell,
    task::{Context, Poll},
};

use super::{timestamp::WaitReason, waker};
use crate::engine::work::thread_context;

/// Operations per poll: Tokio's figure, which its users have tuned to.
const OPERATIONS_PER_POLL: u8 = 128;

/// The number of operations of a marked poll that are refused: more than a `select!` or
/// `join!` has branches. Picked.
const REFUSALS: u8 = 32;

/// The bytes that one unit covers: the default size of buffers. So a poll moves a mebibyte at
/// the most, which fits into a second-level cache, where the next task that uses the data finds
/// it.
#[cfg(any(feature = "net", feature = "fs"))]
const PIECE: usize = 8 * 1024;

/// The rest of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// No limit.
    Unlimited,
    /// This many operations are left.
    Remaining(u8),
    /// No operations for the time being, because the poll is marked; this many were refused.
    Late(u8),
    /// This many operations are left, however long they take.
    Untimed(u8),
    /// No operations are left, and one has been refused: the forced yield is counted.
    Refused,
}

impl Budget {
    /// Returns the budget of a task at the start of a poll.
    #[inline]
    pub(crate) const fn per_poll() -> Self {
        Self::Remaining(OPERATIONS_PER_POLL)
    }

    /// Returns the budget of a poll that has no time slice of its own: it is part of another poll,
    /// or not a task's.
    #[inline]
    pub(crate) const fn untimed() -> Self {
        Self::Untimed(OPERATIONS_PER_POLL)
    }

    /// Returns the budget of code outside tasks.
    #[inline]
    pub(crate) const fn unlimited() -> Self {
        Self::Unlimited
    }
}

/// A unit taken from the budget. Dropping it returns the unit, unless the operation made progress.
#[must_use]
#[derive(Debug)]
pub(crate) struct BudgetUnit {
    /// True if the unit was taken from a budget and is not spent.
    owed: Cell<bool>,
}

impl BudgetUnit {
    /// Marks the unit as spent, because the operation completed.
    #[inline]
    pub(crate) fn spend(&self) {
        self.owed.set(false);
    }
}

impl Drop for BudgetUnit {
    #[inline]
    fn drop(&mut self) {
        if self.owed.get() {
            give_back();
        }
    }
}

/// Returns one unit to the budget, but never past a full budget: a unit may outlive the poll in
/// which it was taken, and units that other operations spent since stay spent.
#[inline]
fn give_back() {
    thread_context::with(|context| match context.task.budget() {
        Budget::Remaining(remaining) => {
            context.task.set_budget(Budget::Remaining(OPERATIONS_PER_POLL.min(remaining + 1)));
        }
        _ => give_back_otherwise(),
    });
}

/// Returns a unit to a budget that is not [`Budget::Remaining`]: the slow path of [`give_back`].
#[inline(never)]
fn give_back_otherwise() {
    thread_context::with(|context| {
        context.task.set_budget(match context.task.budget() {
            Budget::Untimed(remaining) => Budget::Untimed(OPERATIONS_PER_POLL.min(remaining + 1)),
            Budget::Refused => Budget::Remaining(1),
            other => other,
        });
    });
}

/// Takes one unit, if one is left and the poll is not marked.
#[inline]
pub(crate) fn take() -> Option<BudgetUnit> {
    thread_context::with(|context| {
        if let Budget::Remaining(remaining) = context.task.budget()
            && remaining > 0
            && context.lease.is_unmarked()
        {
            context.task.set_budget(Budget::Remaining(remaining - 1));
            return Some(BudgetUnit { owed: Cell::new(true) });
        }
        take_otherwise()
    })
}

/// Takes a unit when the fast path of [`take`] could not.
#[inline(never)]
fn take_otherwise() -> Option<BudgetUnit> {
    thread_context::with(|context| match context.task.budget() {
        Budget::Remaining(0) | Budget::Refused => None,
        Budget::Remaining(_) if context.lease.should_yield() => None,
        Budget::Remaining(remaining) => {
            context.task.set_budget(Budget::Remaining(remaining - 1));
            Some(BudgetUnit { owed: Cell::new(true) })
        }
        Budget::Late(_) | Budget::Untimed(0) => None,
        Budget::Untimed(remaining) => {
            context.task.set_budget(Budget::Untimed(remaining - 1));
            Some(BudgetUnit { owed: Cell::new(true) })
        }
        Budget::Unlimited => Some(BudgetUnit { owed: Cell::new(false) }),
    })
}

/// Charges an operation, which has spent its unit, for the bytes that it moved: beyond the first
/// [`PIECE`], each piece costs as much as an operation of its own.
#[cfg(any(feature = "net", feature = "fs"))]
#[inline]
pub(crate) fn charge(bytes: usize) {
    if bytes > PIECE {
        thread_context::with(|context| {
            let more = u8::try_from((bytes - 1) / PIECE).unwrap_or(u8::MAX);
            context.task.set_budget(match context.task.budget() {
                Budget::Remaining(remaining) => Budget::Remaining(remaining.saturating_sub(more)),
                Budget::Untimed(remaining) => Budget::Untimed(remaining.saturating_sub(more)),
                other => other,
            });
        });
    }
}

/// Takes one unit, or wakes the task and returns `Pending` if none is left.
#[inline]
pub(crate) fn poll_proceed(cx: &mut Context<'_>) -> Poll<BudgetUnit> {
    match take() {
        Some(unit) => Poll::Ready(unit),
        None => poll_proceed_late(cx),
    }
}

/// Finishes [`poll_proceed`] after no unit could be taken.
#[cold]
fn poll_proceed_late(cx: &mut Context<'_>) -> Poll<BudgetUnit> {
    match take_late(cx) {
        Some(unit) => Poll::Ready(unit),
        None => refuse(cx),
    }
}

/// Takes one unit although the poll is marked, for an operation that is polled once to check
/// whether it is done (`now_or_never`).
///
/// Such a check uses a waker that does nothing. A refusal would wake no task, and would report a
/// channel as empty that is not. The number of operations stays bounded. Wakers that do nothing are
/// recognised by their data, which is null in those of `std` and of the crate `futures`. Any other
/// waker without data is taken for one, too, and only misses a refusal because of the time.
#[cold]
fn take_late(cx: &Context<'_>) -> Option<BudgetUnit> {
    if !cx.waker().data().is_null() {
        return None;
    }
    thread_context::with(|context| match context.task.budget() {
        Budget::Remaining(remaining @ 1..) => {
            context.task.set_budget(Budget::Remaining(remaining - 1));
            Some(BudgetUnit { owed: Cell::new(true) })
        }
        // The number of units that were left is not known any more.
        Budget::Late(_) => Some(BudgetUnit { owed: Cell::new(false) }),
        _ => None,
    })
}

/// Checks for a unit without taking it; if none is left, returns `Pending` as [`poll_proceed`]
/// does.
#[inline]
pub(crate) fn available(cx: &mut Context<'_>) -> Poll<()> {
    if has_remaining_for(cx) { Poll::Ready(()) } else { refuse(cx) }
}

/// Returns true if [`poll_proceed`] would take a unit now.
#[inline]
pub(crate) fn has_remaining_for(cx: &Context<'_>) -> bool {
    // A unit that is taken for this check is returned at once.
    has_remaining() || take_late(cx).is_some()
}

/// Returns true if a unit could be taken now.
#[inline]
pub(crate) fn has_remaining() -> bool {
    thread_context::with(|context| match context.task.budget() {
        Budget::Unlimited => true,
        Budget::Remaining(remaining) => remaining > 0 && !context.lease.should_yield(),
        Budget::Untimed(remaining) => remaining > 0,
        Budget::Late(_) | Budget::Refused => false,
    })
}

/// Returns the rest of the budget.
#[inline]
#[allow(dead_code, reason = "only some features and tests read it")]
pub(crate) fn remaining() -> Budget {
    thread_context::with(|context| context.task.budget())
}

/// Replaces the budget of this thread, and returns the former one.
#[inline]
pub(crate) fn replace(budget: Budget) -> Budget {
    thread_context::with(|context| context.task.replace_budget(budget))
}

/// Changes the budget of this thread.
#[inline]
pub(crate) fn set(budget: Budget) {
    thread_context::with(|context| context.task.set_budget(budget));
}

/// Makes the task run again after the others, and returns `Pending`. The forced yield is counted
/// once per poll, however many of the task's operations find no unit.
#[cold]
fn refuse<T>(cx: &mut Context<'_>) -> Poll<T> {
    let is_first = thread_context::with(|context| {
        let before = context.task.budget();
        context.task.set_budget(match before {
            // Units are left, so the refusal is because of the time.
            Budget::Remaining(1..) => Budget::Late(1),
            Budget::Late(REFUSALS..) => Budget::untimed(),
            Budget::Late(refused) => Budget::Late(refused + 1),
            _ => Budget::Refused,
        });
        !matches!(before, Budget::Refused | Budget::Late(_))
    });
    if is_first {
        thread_context::count_forced_yield();
    }
    thread_context::waits_for(WaitReason::Turn);
    if waker::is_current(cx.waker()) {
        // The fast path: the thread that polls the task queues it again.
        thread_context::set_yielded();
    } else {
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}

/// Calls `f` under another budget and restores the old one afterwards, also after a panic.
#[inline]
pub(crate) fn with_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    struct RestoreBudget(Budget);
    impl Drop for RestoreBudget {
        #[inline]
        fn drop(&mut self) {
            set(self.0);
        }
    }
    let _restore = RestoreBudget(replace(budget));
    f()
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::{
        Budget, BudgetUnit, available, has_remaining, poll_proceed, remaining, with_budget,
    };
    #[cfg(feature = "net")]
    use super::{PIECE, charge};

    /// A waker that is not a no-op by its data, unlike [`Waker::noop`].
    struct NonNoopWaker;

    impl std::task::Wake for NonNoopWaker {
        fn wake(self: std::sync::Arc<Self>) {}
    }

    fn take() -> Poll<BudgetUnit> {
        poll_proceed(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns what is left of a full budget after an operation that moved this many bytes.
    #[cfg(feature = "net")]
    fn remaining_after(bytes: usize) -> Budget {
        with_budget(Budget::per_poll(), || {
            let Poll::Ready(unit) = take() else { panic!("it was full") };
            unit.spend();
            charge(bytes);
            remaining()
        })
    }

    #[cfg(feature = "net")]
    #[test]
    fn moving_many_bytes_spends_many_units() {
        for (bytes, remaining) in [
            (0, 127),
            (1, 127),
            (PIECE, 127),
            (PIECE + 1, 126),
            (8 * PIECE, 120),
            (128 * PIECE, 0),
            (usize::MAX, 0),
        ] {
            assert_eq!(remaining_after(bytes), Budget::Remaining(remaining), "{bytes} bytes");
        }
        with_budget(Budget::unlimited(), || {
            charge(usize::MAX);
            assert!(has_remaining());
        });
    }

    #[test]
    fn a_poll_may_complete_128_operations_and_no_more() {
        with_budget(Budget::per_poll(), || {
            for _ in 0..128 {
                assert!(has_remaining());
                let Poll::Ready(unit) = take() else { panic!("ended early") };
                unit.spend();
            }
            assert!(!has_remaining());
            assert!(take().is_pending());
            assert!(available(&mut Context::from_waker(Waker::noop())).is_pending());
        });
    }

    #[test]
    fn an_operation_without_progress_costs_nothing() {
        with_budget(Budget::per_poll(), || {
            for _ in 0..1_000 {
                let Poll::Ready(unit) = take() else { panic!("charged for nothing") };
                drop(unit);
            }
            assert_eq!(remaining(), Budget::per_poll());
        });
    }

    #[test]
    fn a_unit_that_is_given_back_does_not_undo_what_others_spent() {
        with_budget(Budget::Remaining(2), || {
            let (Poll::Ready(kept), Poll::Ready(used)) = (take(), take()) else { panic!("two") };
            used.spend();
            drop(used);
            assert!(take().is_pending());
            drop(kept);
            assert_eq!(remaining(), Budget::Remaining(1));
        });
    }

    #[test]
    fn a_unit_given_back_elsewhere_makes_no_budget_larger_than_it_was() {
        let unit = with_budget(Budget::per_poll(), take);
        with_budget(Budget::per_poll(), || {
            drop(unit);
            assert_eq!(remaining(), Budget::per_poll());
        });
        let free = with_budget(Budget::Unlimited, take);
        with_budget(Budget::Remaining(0), || {
            drop(free);
            assert_eq!(remaining(), Budget::Remaining(0));
        });
    }

    /// `now_or_never` must not report a channel as empty because its task has run for long.
    #[test]
    fn a_marked_poll_may_still_check_whether_something_is_done() {
        let mut look = Context::from_waker(Waker::noop());
        with_budget(Budget::Late(1), || {
            for _ in 0..1_000 {
                assert!(poll_proceed(&mut look).is_ready() && available(&mut look).is_ready());
            }
            assert_eq!(remaining(), Budget::Late(1));
        });
        // A spent budget still refuses, even for such a check.
        with_budget(Budget::Remaining(0), || assert!(poll_proceed(&mut look).is_pending()));
        with_budget(Budget::Refused, || assert!(available(&mut look).is_pending()));
    }

    /// A task that keeps polling after a refusal, for example another executor inside of it.
    #[test]
    fn a_late_poll_that_continues_may_go_on() {
        let waker = Waker::from(std::sync::Arc::new(NonNoopWaker));
        let take = || poll_proceed(&mut Context::from_waker(&waker));
        with_budget(Budget::Late(1), || {
            let refused = (0..1000).take_while(|_| take().is_pending()).count();
            assert_eq!(refused, usize::from(super::REFUSALS));
            assert_eq!(remaining(), Budget::untimed(), "a unit without progress comes back");
            for _ in 0..128 {
                let Poll::Ready(unit) = take() else { panic!("ended early") };
                unit.spend();
            }
            assert!(take().is_pending() && take().is_pending());
        });
    }

    #[test]
    fn a_budget_comes_back_after_a_panic() {
        let before = remaining();
        let caught = std::panic::catch_unwind(|| {
            with_budget(Budget::Remaining(3), || std::panic::resume_unwind(Box::new(())))
        });
        assert!(caught.is_err());
        assert_eq!(remaining(), before);
    }
}
