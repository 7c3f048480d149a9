//! The part of `work`: the task that is polled on this thread, and what its poll records.

use std::{cell::Cell, ptr::NonNull, time::Duration};

use super::with;
use crate::engine::{
    prim::{AtomicU64, Ordering::Relaxed},
    work::task::{
        budget::Budget,
        cell::{Header, Id},
        timestamp::WaitReason,
    },
};

/// The words of `work` in the thread's context.
pub(in crate::engine::work) struct TaskPart {
    /// The task that is being polled or dropped.
    task: Cell<Option<NonNull<Header>>>,
    /// The rest of that task's budget.
    budget: Cell<Budget>,
    /// The outcome of this poll, if it returns `Pending`.
    poll_outcome: Cell<PollOutcome>,
    /// The time for which the task that is polled next on this thread was queued, if measured.
    latency: Cell<Option<Duration>>,
    /// The counter of yields that the budget forces ([`CountingYields`]).
    forced_yields: Cell<*const AtomicU64>,
}

impl TaskPart {
    pub(super) const fn new() -> Self {
        Self {
            task: Cell::new(None),
            budget: Cell::new(Budget::unlimited()),
            poll_outcome: Cell::new(PollOutcome::NONE),
            latency: Cell::new(None),
            forced_yields: Cell::new(std::ptr::null()),
        }
    }

    /// Returns the task that is being polled or dropped on this thread.
    #[inline(always)]
    pub(super) fn task(&self) -> Option<NonNull<Header>> {
        self.task.get()
    }

    /// Returns the rest of the task's budget.
    #[inline(always)]
    pub(in crate::engine::work) fn budget(&self) -> Budget {
        self.budget.get()
    }

    /// Changes the rest of the task's budget.
    #[inline(always)]
    pub(in crate::engine::work) fn set_budget(&self, budget: Budget) {
        self.budget.set(budget);
    }

    /// Changes the rest of the task's budget, and returns the former one.
    #[inline(always)]
    pub(in crate::engine::work) fn replace_budget(&self, budget: Budget) -> Budget {
        self.budget.replace(budget)
    }
}

/// Returns the task that is being polled or dropped on this thread.
#[inline]
pub(crate) fn task() -> Option<NonNull<Header>> {
    with(|context| context.task.task())
}

/// Returns the ID of the task that is being polled or dropped on this thread.
pub(crate) fn task_id() -> Option<Id> {
    // SAFETY: a task is alive while it is current.
    task().map(|task| unsafe { task.as_ref() }.id)
}

/// Marks the current task as yielding; it will be queued behind the others.
#[inline]
pub(crate) fn set_yielded() {
    with(|context| {
        let outcome = &context.task.poll_outcome;
        outcome.set(PollOutcome { yielded: true, ..outcome.get() });
    });
}

/// Records what the current task waits for; called by primitives that return `Pending`.
#[inline]
pub(crate) fn waits_for(wait: WaitReason) {
    with(|context| {
        let outcome = &context.task.poll_outcome;
        outcome.set(PollOutcome { wait, ..outcome.get() });
    });
}

/// Returns the outcome of the poll since [`CurrentTaskGuard`] began, and resets it.
#[inline]
pub(crate) fn take_poll_outcome() -> PollOutcome {
    with(|context| context.task.poll_outcome.replace(PollOutcome::NONE))
}

/// Records how long the task that this thread polls next was queued, for its hooks.
pub(crate) fn set_latency(latency: Option<Duration>) {
    with(|context| context.task.latency.set(latency));
}

/// Returns the time that [`set_latency`] recorded, and resets it, because it is not that of a
/// task that is polled inside this one.
pub(crate) fn take_latency() -> Option<Duration> {
    with(|context| context.task.latency.take())
}

/// The outcome of a poll that returns `Pending`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollOutcome {
    /// The task has yielded: it is queued behind the others.
    pub(crate) yielded: bool,
    /// The thing that the task waits for, as the last primitive that returned `Pending` recorded.
    pub(crate) wait: WaitReason,
}

impl PollOutcome {
    const NONE: Self = Self { yielded: false, wait: WaitReason::Unknown };
}

/// A guard under which `task` is this thread's current task, with a budget of its own.
pub(crate) struct CurrentTaskGuard {
    task: Option<NonNull<Header>>,
    budget: Budget,
    poll_outcome: PollOutcome,
}

impl CurrentTaskGuard {
    #[inline]
    pub(crate) fn new(task: NonNull<Header>, budget: Budget) -> Self {
        with(|context| Self {
            task: context.task.task.replace(Some(task)),
            budget: context.task.budget.replace(budget),
            poll_outcome: context.task.poll_outcome.replace(PollOutcome::NONE),
        })
    }
}

impl Drop for CurrentTaskGuard {
    #[inline]
    fn drop(&mut self) {
        with(|context| {
            context.task.task.set(self.task);
            context.task.budget.set(self.budget);
            context.task.poll_outcome.set(self.poll_outcome);
        });
    }
}

/// A guard under which yields that the budget forces on this thread are counted.
pub(crate) struct CountingYields {
    before: *const AtomicU64,
}

impl CountingYields {
    /// Counts forced yields in `count`.
    ///
    /// # Safety
    /// 1. `count` lives until the guard is dropped, on this thread and in order.
    pub(crate) unsafe fn new(count: &AtomicU64) -> Self {
        with(|context| Self { before: context.task.forced_yields.replace(count) })
    }
}

impl Drop for CountingYields {
    fn drop(&mut self) {
        with(|context| context.task.forced_yields.set(self.before));
    }
}

/// Counts a yield that the budget forced, for the runtime that polls on this thread.
#[cold]
pub(crate) fn count_forced_yield() {
    let count = with(|context| context.task.forced_yields.get());
    // SAFETY: obligation 1 of `CountingYields::new`: the counter lives until the pointer is
    // replaced.
    if let Some(count) = unsafe { count.as_ref() } {
        // Relaxed: a figure, which orders nothing.
        count.fetch_add(1, Relaxed);
    }
}
