//! How much a task may do before it must let others run.
//!
//! Every primitive of the runtime that completes an operation takes one unit;
//! at zero it answers `Pending` and wakes the task at once, so that a loop over
//! ready channels or sockets comes round to the scheduler. (The other budget,
//! polls per worker tick, is the worker's: `pool/worker.rs`.)
//!
//! A read or write of a socket takes one for every piece of what it moved: with buffers of
//! 64 KiB a poll would else move eight mebibytes, and others wait for milliseconds.
//!
//! A poll that was told that it should let others run (`work/tenure`) has none left, whatever it has
//! done: who computes between two operations is to let others run as well. But only for a while:
//! who goes on polling after it was told does not return to the scheduler, as another executor
//! inside of a task, and to refuse it for ever would help nobody and never end.
//!
//! What always answers `Pending` first (`yield_now`) takes none: it lets others
//! run anyway. Nor does what only passes polls on (`shield`).

use std::{
    cell::Cell,
    task::{Context, Poll},
};

use super::{moment::Wait, waker};
use crate::engine::work::current;

/// Operations per poll: Tokio's figure, which its users have tuned to.
const OPERATIONS_PER_POLL: u8 = 128;

/// So many operations of an overdue poll are refused: more than a `select!` or `join!` has
/// branches. Picked.
const REFUSALS: u8 = 32;

/// Bytes that a unit is good for: what buffers hold where nobody names a size. So a poll moves
/// a mebibyte at the most, which is less than a second-level cache has: who gets it next finds
/// it there.
#[cfg(any(feature = "net", feature = "fs"))]
const PIECE: usize = 8 * 1024;

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// As much as it likes.
    Unlimited,
    /// So many operations.
    Left(u8),
    /// None for the time being, because the poll is overdue: so many were refused.
    Late(u8),
    /// So many operations, however long they take.
    Timeless(u8),
    /// None, and an operation has been refused: the yield is counted.
    Refused,
}

impl Budget {
    /// What a task has at the start of a poll.
    #[inline]
    pub(crate) const fn per_poll() -> Self {
        Self::Left(OPERATIONS_PER_POLL)
    }

    /// What a poll has that is part of another one, or nobody's task: nobody's slice is over.
    #[inline]
    pub(crate) const fn timeless() -> Self {
        Self::Timeless(OPERATIONS_PER_POLL)
    }

    /// What code outside tasks has.
    #[inline]
    pub(crate) const fn unlimited() -> Self {
        Self::Unlimited
    }
}

/// Gives the unit back unless the operation made progress.
#[must_use]
#[derive(Debug)]
pub(crate) struct Unit {
    /// It was taken from a budget, and is not spent.
    owed: Cell<bool>,
}

impl Unit {
    /// The operation completed: the unit is spent.
    #[inline]
    pub(crate) fn spend(&self) {
        self.owed.set(false);
    }
}

impl Drop for Unit {
    #[inline]
    fn drop(&mut self) {
        if self.owed.get() {
            give_back();
        }
    }
}

/// One unit more, never past a full budget: a unit may outlive the poll in which it
/// was taken, and what others have spent since stays spent.
#[inline]
fn give_back() {
    current::with(|current| match current.budget.get() {
        Budget::Left(left) => {
            current.budget.set(Budget::Left(OPERATIONS_PER_POLL.min(left + 1)));
        }
        _ => give_back_otherwise(),
    });
}

/// The same, where it is not as simple as that.
#[inline(never)]
fn give_back_otherwise() {
    current::with(|current| {
        current.budget.set(match current.budget.get() {
            Budget::Timeless(left) => Budget::Timeless(OPERATIONS_PER_POLL.min(left + 1)),
            Budget::Refused => Budget::Left(1),
            other => other,
        });
    });
}

/// Takes one unit, if one is left, and the poll is not overdue.
#[inline]
pub(crate) fn take() -> Option<Unit> {
    current::with(|current| {
        if let Budget::Left(left) = current.budget.get()
            && left > 0
            && current.is_quiet()
        {
            current.budget.set(Budget::Left(left - 1));
            return Some(Unit { owed: Cell::new(true) });
        }
        take_otherwise()
    })
}

/// The same, where it is not as simple as that.
#[inline(never)]
fn take_otherwise() -> Option<Unit> {
    current::with(|current| match current.budget.get() {
        Budget::Left(0) | Budget::Refused => None,
        Budget::Left(_) if current.is_overdue() => None,
        Budget::Left(left) => {
            current.budget.set(Budget::Left(left - 1));
            Some(Unit { owed: Cell::new(true) })
        }
        Budget::Late(_) | Budget::Timeless(0) => None,
        Budget::Timeless(left) => {
            current.budget.set(Budget::Timeless(left - 1));
            Some(Unit { owed: Cell::new(true) })
        }
        Budget::Unlimited => Some(Unit { owed: Cell::new(false) }),
    })
}

/// An operation that has spent its unit has moved so many bytes: beyond the first [`PIECE`]
/// each is as good as an operation of its own.
#[cfg(any(feature = "net", feature = "fs"))]
#[inline]
pub(crate) fn charge(bytes: usize) {
    if bytes > PIECE {
        current::with(|current| {
            let more = u8::try_from((bytes - 1) / PIECE).unwrap_or(u8::MAX);
            current.budget.set(match current.budget.get() {
                Budget::Left(left) => Budget::Left(left.saturating_sub(more)),
                Budget::Timeless(left) => Budget::Timeless(left.saturating_sub(more)),
                other => other,
            });
        });
    }
}

/// Takes one unit, or wakes the task and says `Pending` when none is left.
#[inline]
pub(crate) fn proceed(cx: &mut Context<'_>) -> Poll<Unit> {
    match take() {
        Some(unit) => Poll::Ready(unit),
        None => refuse(cx),
    }
}

/// Asks for a unit without taking it; `Pending` as in [`proceed`].
#[inline]
pub(crate) fn available(cx: &mut Context<'_>) -> Poll<()> {
    if is_left() { Poll::Ready(()) } else { refuse(cx) }
}

/// Whether a unit could be taken now.
#[inline]
pub(crate) fn is_left() -> bool {
    current::with(|current| match current.budget.get() {
        Budget::Unlimited => true,
        Budget::Left(left) => left > 0 && !current.is_overdue(),
        Budget::Timeless(left) => left > 0,
        Budget::Late(_) | Budget::Refused => false,
    })
}

/// What is left now.
#[cfg(feature = "stream")]
#[inline]
pub(crate) fn left() -> Budget {
    current::with(|current| current.budget.get())
}

/// The task runs again after the others. Its yield is counted once a poll, however
/// many of its operations find nothing left.
#[cold]
fn refuse<T>(cx: &mut Context<'_>) -> Poll<T> {
    let is_first = current::with(|current| {
        let before = current.budget.get();
        current.budget.set(match before {
            // It was refused though some are left: because of the time.
            Budget::Left(1..) => Budget::Late(1),
            Budget::Late(REFUSALS..) => Budget::timeless(),
            Budget::Late(refused) => Budget::Late(refused + 1),
            _ => Budget::Refused,
        });
        !matches!(before, Budget::Refused | Budget::Late(_))
    });
    if is_first {
        current::count_forced_yield();
    }
    current::waits_for(Wait::Turn);
    if waker::is_current(cx.waker()) {
        // The short way: the thread that polls it queues it again.
        current::set_yielded();
    } else {
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}

/// Calls `f` under another budget; the old one is back afterwards, also if it panics.
#[inline]
pub(crate) fn under<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    struct Restore(Budget);
    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            current::with(|current| current.budget.set(self.0));
        }
    }
    let _restore = Restore(current::with(|current| current.budget.replace(budget)));
    f()
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::{Budget, Unit, available, is_left, proceed, under};
    #[cfg(feature = "net")]
    use super::{PIECE, charge};
    use crate::engine::work::current;

    fn take() -> Poll<Unit> {
        proceed(&mut Context::from_waker(Waker::noop()))
    }

    /// What is left of a full budget after something that moved so many bytes.
    #[cfg(feature = "net")]
    fn left_after(bytes: usize) -> Budget {
        under(Budget::per_poll(), || {
            let Poll::Ready(unit) = take() else { panic!("it was full") };
            unit.spend();
            charge(bytes);
            current::with(|current| current.budget.get())
        })
    }

    #[cfg(feature = "net")]
    #[test]
    fn who_moves_much_spends_much() {
        for (bytes, left) in [
            (0, 127),
            (1, 127),
            (PIECE, 127),
            (PIECE + 1, 126),
            (8 * PIECE, 120),
            (128 * PIECE, 0),
            (usize::MAX, 0),
        ] {
            assert_eq!(left_after(bytes), Budget::Left(left), "{bytes} bytes");
        }
        under(Budget::unlimited(), || {
            charge(usize::MAX);
            assert!(is_left());
        });
    }

    fn left() -> Budget {
        current::with(|current| current.budget.get())
    }

    #[test]
    fn a_poll_may_complete_128_operations_and_no_more() {
        under(Budget::per_poll(), || {
            for _ in 0..128 {
                assert!(is_left());
                let Poll::Ready(unit) = take() else { panic!("ended early") };
                unit.spend();
            }
            assert!(!is_left());
            assert!(take().is_pending());
            assert!(available(&mut Context::from_waker(Waker::noop())).is_pending());
        });
    }

    #[test]
    fn an_operation_without_progress_costs_nothing() {
        under(Budget::per_poll(), || {
            for _ in 0..1_000 {
                let Poll::Ready(unit) = take() else { panic!("charged for nothing") };
                drop(unit);
            }
            assert_eq!(left(), Budget::per_poll());
        });
    }

    #[test]
    fn a_unit_that_is_given_back_does_not_undo_what_others_spent() {
        under(Budget::Left(2), || {
            let (Poll::Ready(kept), Poll::Ready(used)) = (take(), take()) else { panic!("two") };
            used.spend();
            drop(used);
            assert!(take().is_pending());
            drop(kept);
            assert_eq!(left(), Budget::Left(1));
        });
    }

    #[test]
    fn a_unit_given_back_elsewhere_makes_no_budget_larger_than_it_was() {
        let unit = under(Budget::per_poll(), take);
        under(Budget::per_poll(), || {
            drop(unit);
            assert_eq!(left(), Budget::per_poll());
        });
        let free = under(Budget::Unlimited, take);
        under(Budget::Left(0), || {
            drop(free);
            assert_eq!(left(), Budget::Left(0));
        });
    }

    /// The future of another executor inside of a task, say.
    #[test]
    fn who_is_late_and_polls_on_may_go_on() {
        under(Budget::Late(1), || {
            let refused = (0..1000).take_while(|_| take().is_pending()).count();
            assert_eq!(refused, usize::from(super::REFUSALS));
            assert_eq!(left(), Budget::timeless(), "a unit without progress comes back");
            for _ in 0..128 {
                let Poll::Ready(unit) = take() else { panic!("ended early") };
                unit.spend();
            }
            assert!(take().is_pending() && take().is_pending());
        });
    }

    #[test]
    fn a_budget_comes_back_after_a_panic() {
        let before = left();
        let caught = std::panic::catch_unwind(|| {
            under(Budget::Left(3), || std::panic::resume_unwind(Box::new(())))
        });
        assert!(caught.is_err());
        assert_eq!(left(), before);
    }
}
