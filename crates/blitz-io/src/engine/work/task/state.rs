//! The state word of a task: what the task is doing, and which thread may touch which part.
//!
//! ```text
//!  63                        24 23       16 15       8 7 6 5 4 3 2 1 0
//! +----------------------------+-----------+----------+-----------------+
//! |       references (40)      | shield (8)|  unused  | s w j c p q x r |
//! +----------------------------+-----------+----------+-----------------+
//!  r RUNNING    x COMPLETE     q QUEUED       p WOKEN_IN_POLL
//!  c CANCELLED  j JOIN_INTEREST  w JOIN_WAKER  s STOPPED
//! ```
//! A task is *idle* while r, x and q are clear, and *detached* once j is.
//!
//! # Protocol
//! ```text
//!            wake 1                  take 2                 complete 5
//!   idle ------------->  queued  ------------->  running  ------------> complete
//!    ^                     ^                      |  |
//!    |                     +-- woken in its poll -+  |
//!    +------------------------- rest 3 --------------+
//! ```
//! 1. `wake`: an idle task becomes queued and the caller must schedule it; a running
//!    task is marked as woken in its poll; a queued task stays as it is, but the exchange still
//!    publishes the caller's writes to the next poll.
//! 2. `take`: the thread that removed the entry from a queue sets the task running.
//! 3. `rest`: after `Pending` the task is idle again, or queued if it was woken in its poll.
//! 4. `cancel` marks the task; an idle task that no shield covers becomes queued, so that
//!    a thread of its runtime drops the future. `stop` (shutdown) claims an idle
//!    or queued task at once; the entry in the queue then finds nothing to do.
//! 5. `complete`: the output is stored; the life reference is given up afterwards.
//!
//! # Invariants
//! - *One runner*: only the thread that set RUNNING clears it or sets COMPLETE.
//! - *One entry*: QUEUED is set by one thread, which schedules the task once, and
//!   cleared by the one thread that takes that entry out again.
//! - *Memory*: the task's cell is returned to its arena by the one operation that gives up the
//!   last reference while QUEUED is clear. (`unref` and `complete_alone` may leave the count at one.)
//!
//! # Rejected
//! A wake that finds the task queued and only loads the word: the thread that polls the task could
//! then miss what was written before the wake (store-load on both sides). The exchange of the word
//! for itself publishes those writes, and orders them before `take`.
//!
//! # Checked by
//! `a_wake_that_finds_the_task_queued_is_seen_by_the_poll`,
//! `a_wake_during_the_poll_is_not_lost`, `two_wakes_make_one_entry`,
//! `a_yield_against_a_wake_makes_one_entry`, `a_waker_against_the_end_frees_once`,
//! `abort_against_poll_drops_the_future_once`, `abort_against_abort_ends_the_task_once`,
//! `abort_of_an_idle_task_against_a_wake_queues_once`, `stop_against_take_runs_once`,
//! `stop_against_wake_ends_the_task_once`, `stop_against_abort_ends_the_task_once`,
//! `the_last_reference_against_take_frees_once`,
//! `completion_against_join_poll_wakes_or_is_seen`,
//! `a_replaced_join_waker_against_completion_is_sound`,
//! `completion_against_handle_drop_drops_the_output_once`,
//! `a_handle_with_a_waker_against_completion_leaves_none_behind`,
//! `shield_against_abort_defers_and_delivers`,
//! `an_abort_under_a_shield_leaves_the_task_alone`;
//! weakened as `wake_queued_publishes`, `wake_in_poll_is_recorded`, `rest_sees_wake_in_poll`,
//! `rest_sees_cancelled`, `take_sees_stop`, `free_waits_for_entry`,
//! `join_set_sees_complete`, `unshield_delivers`.

use crate::engine::prim::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
    weakened,
};

const RUNNING: u64 = 1;
const COMPLETE: u64 = 1 << 1;
const QUEUED: u64 = 1 << 2;
const WOKEN_IN_POLL: u64 = 1 << 3;
const CANCELLED: u64 = 1 << 4;
const JOIN_INTEREST: u64 = 1 << 5;
const JOIN_WAKER: u64 = 1 << 6;
const STOPPED: u64 = 1 << 7;

const SHIELD_SHIFT: u32 = 16;
const SHIELD_ONE: u64 = 1 << SHIELD_SHIFT;
const SHIELD_MASK: u64 = 0xff << SHIELD_SHIFT;

const REF_SHIFT: u32 = 24;
const REF_ONE: u64 = 1 << REF_SHIFT;
const REF_MASK: u64 = !0 << REF_SHIFT;
/// Half of the highest count, which leaves room for every thread to notice before it wraps.
const REF_LIMIT: u64 = 1 << 63;

/// The first word of a task, with references for its life and its `JoinHandle`.
const AT_SPAWN: u64 = QUEUED | JOIN_INTEREST | (2 * REF_ONE);

/// The first word of a task of a set. Its references are for its life, for the set, and for
/// the `AbortHandle` that the set's spawn returns. The set waits from the start.
const IN_SET: u64 = QUEUED | JOIN_INTEREST | JOIN_WAKER | (3 * REF_ONE);

/// The state word of a task.
pub(crate) struct State(AtomicU64);

/// The duty of the caller of a waking transition.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Put the task into a queue: the caller's transition set QUEUED.
    Schedule,
    /// Nothing.
    Nothing,
    /// Free the memory: the caller gave up the last reference.
    Free,
}

/// The duty of the thread that took an entry out of a queue.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Poll the future.
    Poll,
    /// Drop the future and complete as cancelled.
    Cancel,
    /// Nothing: shutdown claimed the task first.
    Nothing,
    /// Free the memory: shutdown claimed the task first, and only the entry still kept it.
    Free,
}

/// The duty of the thread that polled the task, after `Pending`.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rested {
    /// Nothing: the task is idle and may be polled elsewhere by now.
    Idle,
    /// Put the task into a queue again: the transition set QUEUED.
    Schedule,
    /// Drop the future and complete the task as cancelled: it is still running.
    Cancel,
}

/// The duty of the thread that completed a task, besides giving up the life reference.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Drop the output: no handle will read it.
    pub(crate) drop_output: bool,
    /// Take the join waker out and wake it.
    pub(crate) wake_joiner: bool,
}

/// The duty of a `JoinHandle` that is being dropped.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Detached {
    /// Nothing: the handle's reference has been given up too.
    Gone,
    /// Drop the output, which is the handle's, then give up the reference.
    DropOutput,
    /// Drop the join waker, which is the handle's again, then give up the reference.
    DropWaker,
}

/// The result of an attempt to change the owner of the join waker.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JoinWaker {
    /// The owner was changed.
    Changed,
    /// The task completed first; the output is there.
    Complete,
}

/// The error of a task that is covered by as many shields as can be counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyShields;

impl State {
    /// Returns the state of a new task, which is about to be scheduled for the first time.
    pub(crate) fn at_spawn() -> Self {
        Self(AtomicU64::new(AT_SPAWN))
    }

    /// Returns the state of a new task of a set, for which the join waker is already written.
    pub(crate) fn in_set() -> Self {
        Self(AtomicU64::new(IN_SET))
    }

    /// Loads the current word.
    #[inline]
    pub(crate) fn snapshot(&self) -> Snapshot {
        // Acquire: a thread that sees COMPLETE may read what was written before completion.
        // Pairs with the AcqRel in `complete`.
        Snapshot(self.0.load(Acquire))
    }

    /// Wakes the task and keeps the caller's reference, if it has one.
    #[inline]
    pub(crate) fn wake_by_ref(&self) -> Woken {
        self.wake(0)
    }

    /// Wakes the task and gives up one reference in the same step.
    #[inline]
    pub(crate) fn wake_by_value(&self) -> Woken {
        self.wake(REF_ONE)
    }

    #[inline]
    fn wake(&self, given_up: u64) -> Woken {
        self.update(|now| {
            let next = now - given_up;
            if now & COMPLETE != 0 {
                let last = freeable(next) && given_up != 0;
                return (if last { Woken::Free } else { Woken::Nothing }, next);
            }
            if now & RUNNING != 0 {
                let mark = if weakened!("wake_in_poll_is_recorded") { 0 } else { WOKEN_IN_POLL };
                return (Woken::Nothing, next | mark);
            }
            if now & QUEUED != 0 {
                return (Woken::Nothing, next);
            }
            (Woken::Schedule, next | QUEUED)
        })
    }

    /// Gives up a reference; returns true if the caller must free the memory.
    #[inline]
    #[must_use]
    pub(crate) fn unref(&self) -> bool {
        // Acquire: what the other threads did before they gave up their references happened
        // before. Pairs with the AcqRel below. The holder of the only reference is alone,
        // because a new reference is made only from one that exists.
        if self.0.load(Acquire) & (REF_MASK | QUEUED) == REF_ONE {
            return true;
        }
        // AcqRel: what we did with the task happens before it is freed, by us or by the
        // thread that gives up the last reference. Pairs with itself and with the AcqRel
        // in `take`.
        let next = self.0.fetch_sub(REF_ONE, AcqRel) - REF_ONE;
        freeable(next)
    }

    /// Adds a reference, made from one that the caller holds or borrows.
    #[inline]
    pub(crate) fn add_ref(&self) {
        // Relaxed: the reference that the new one is made from keeps the memory alive.
        if self.0.fetch_add(REF_ONE, Relaxed) >= REF_LIMIT {
            // 2^39 wakers were leaked; going on would free memory in use.
            std::process::abort();
        }
    }

    /// Marks the task as running; the caller has taken its entry out of a queue.
    #[inline]
    pub(crate) fn take(&self) -> Taken {
        self.update(|now| {
            debug_assert!(now & QUEUED != 0, "took a task that was not queued: {now:#x}");
            let next = now & !QUEUED;
            let stopped = now & (RUNNING | COMPLETE) != 0 && !weakened!("take_sees_stop");
            if stopped {
                return (if freeable(next) { Taken::Free } else { Taken::Nothing }, next);
            }
            let duty = if must_cancel(now) { Taken::Cancel } else { Taken::Poll };
            (duty, next | RUNNING)
        })
    }

    /// Ends a poll that returned `Pending`: the task is idle, or queued if it was woken in its
    /// poll, or still running if it must be cancelled.
    #[inline]
    pub(crate) fn rest(&self) -> Rested {
        self.update(|now| {
            debug_assert!(now & RUNNING != 0, "rested a task that was not running: {now:#x}");
            if must_cancel(now) && !weakened!("rest_sees_cancelled") {
                return (Rested::Cancel, now);
            }
            let next = now & !(RUNNING | WOKEN_IN_POLL);
            if now & WOKEN_IN_POLL != 0 && !weakened!("rest_sees_wake_in_poll") {
                return (Rested::Schedule, next | QUEUED);
            }
            (Rested::Idle, next)
        })
    }

    /// Ends a poll that returned `Pending` after a yield: queues the task again in one step.
    ///
    /// A cancellation that came meanwhile is left for the next `take`.
    #[inline]
    pub(crate) fn rest_yielded(&self) {
        const RUNNING_TO_QUEUED: u64 = QUEUED - RUNNING;
        // AcqRel: publishes what the poll did to the next poll. Pairs with the AcqRel in `take`.
        // And sees what was published by wakers that found the task running.
        let before = self.0.fetch_add(RUNNING_TO_QUEUED, AcqRel);
        debug_assert!(before & (RUNNING | QUEUED) == RUNNING, "yielded: {before:#x}");
        if before & WOKEN_IN_POLL != 0 {
            // Relaxed: the task is ours until we schedule it; the queue publishes the change.
            self.0.fetch_and(!WOKEN_IN_POLL, Relaxed);
        }
    }

    /// Marks the task as complete after its output was stored; the life reference is kept.
    #[inline]
    pub(crate) fn complete(&self) -> Completed {
        const RUNNING_TO_COMPLETE: u64 = COMPLETE - RUNNING;
        // AcqRel: publishes the output. Pairs with the Acquire in `snapshot`. And sees the
        // join waker, which `set_join_waker` published.
        let before = self.0.fetch_add(RUNNING_TO_COMPLETE, AcqRel);
        debug_assert!(before & (RUNNING | COMPLETE) == RUNNING, "completed: {before:#x}");
        Completed {
            drop_output: before & JOIN_INTEREST == 0,
            wake_joiner: before & JOIN_WAKER != 0,
        }
    }

    /// Returns true if life is the only reference and the `JoinHandle` is gone: then only the
    /// runner can reach the task, and may complete and free it without counting.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        // Acquire: what other threads did before they gave up their references happened
        // before. Pairs with the AcqRel in `unref` and `detach`.
        let now = self.0.load(Acquire);
        now >> REF_SHIFT == 1 && now & (JOIN_INTEREST | QUEUED | RUNNING) == RUNNING
    }

    /// Marks as complete a task for which [`is_alone`](Self::is_alone) returned true. Shutdown
    /// may still find it in its arena's list until the cell is returned, and must see it complete.
    #[inline]
    pub(crate) fn complete_alone(&self) {
        // Relaxed: no other thread can read the stage any more; returning the cell to its
        // arena publishes the word.
        self.0.store(COMPLETE, Relaxed);
    }

    /// Requests cancellation; keeps the caller's reference.
    pub(crate) fn cancel(&self) -> Woken {
        self.update(|now| {
            if now & COMPLETE != 0 {
                return (Woken::Nothing, now);
            }
            let next = now | CANCELLED;
            if now & (RUNNING | QUEUED) == 0 && must_cancel(next) {
                return (Woken::Schedule, next | QUEUED);
            }
            (Woken::Nothing, next)
        })
    }

    /// Claims the task for shutdown, shielded or not. Returns true if the caller now runs
    /// it and must drop the future and complete it as cancelled. A task that is already
    /// running ends at the end of its poll.
    #[must_use]
    pub(crate) fn stop(&self) -> bool {
        self.update(|now| {
            if now & COMPLETE != 0 {
                return (false, now);
            }
            let next = now | CANCELLED | STOPPED;
            (now & RUNNING == 0, next | RUNNING)
        })
    }

    /// Covers the task with one more shield.
    pub(crate) fn shield(&self) -> Result<(), TooManyShields> {
        self.update(|now| {
            if now & SHIELD_MASK == SHIELD_MASK {
                return (Err(TooManyShields), now);
            }
            (Ok(()), now + SHIELD_ONE)
        })
    }

    /// Removes one shield; an abort that was deferred by the last one is delivered.
    pub(crate) fn unshield(&self) -> Woken {
        self.update(|now| {
            debug_assert!(now & SHIELD_MASK != 0, "unshielded once too often: {now:#x}");
            let next = now - SHIELD_ONE;
            let idle = now & (COMPLETE | RUNNING | QUEUED) == 0;
            if idle && must_cancel(next) && !weakened!("unshield_delivers") {
                return (Woken::Schedule, next | QUEUED);
            }
            (Woken::Nothing, next)
        })
    }

    /// Gives the join waker, which the caller has written, to the thread that completes the task.
    #[inline]
    pub(crate) fn set_join_waker(&self) -> JoinWaker {
        self.change_join_waker(|now| now | JOIN_WAKER)
    }

    /// Takes the join waker back, to replace it.
    #[inline]
    pub(crate) fn unset_join_waker(&self) -> JoinWaker {
        self.change_join_waker(|now| now & !JOIN_WAKER)
    }

    #[inline]
    fn change_join_waker(&self, change: impl Fn(u64) -> u64) -> JoinWaker {
        self.update(|now| {
            debug_assert!(now & JOIN_INTEREST != 0, "joined a detached task: {now:#x}");
            if now & COMPLETE != 0 && !weakened!("join_set_sees_complete") {
                return (JoinWaker::Complete, now);
            }
            (JoinWaker::Changed, change(now))
        })
    }

    /// Detaches the `JoinHandle`; gives up its reference too if nothing else is to be done.
    #[inline]
    pub(crate) fn detach(&self) -> Detached {
        if self.snapshot().is_complete() {
            // JOIN_INTEREST is not read any more after completion. The waker belongs to the
            // thread that completed the task, or is gone.
            return Detached::DropOutput;
        }
        self.update(|now| {
            debug_assert!(now & JOIN_INTEREST != 0, "detached twice: {now:#x}");
            if now & COMPLETE != 0 {
                return (Detached::DropOutput, now);
            }
            if now & JOIN_WAKER != 0 {
                return (Detached::DropWaker, now & !(JOIN_INTEREST | JOIN_WAKER));
            }
            // The life reference keeps the memory, so this one is not the last.
            (Detached::Gone, (now & !JOIN_INTEREST) - REF_ONE)
        })
    }

    /// Replaces the word with the one that `step` computes. The exchange happens even
    /// if the word stays the same, so that it always publishes and orders.
    #[inline]
    fn update<R>(&self, step: impl Fn(u64) -> (R, u64)) -> R {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.0.load(Relaxed);
        loop {
            let (duty, next) = step(now);
            if weakened!("wake_queued_publishes") && next == now {
                return duty;
            }
            // AcqRel: every transition sees what the ones before it published and
            // publishes what its caller did. Each pairs with every other. Relaxed
            // on failure: the word is only a better guess.
            match self.0.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return duty,
                Err(seen) => now = seen,
            }
        }
    }
}

/// Returns true if nothing keeps the memory alive any more.
#[inline]
fn freeable(word: u64) -> bool {
    word >> REF_SHIFT == 0 && (word & QUEUED == 0 || weakened!("free_waits_for_entry"))
}

/// Returns true if a cancellation was requested and no shield defers it.
#[inline]
fn must_cancel(word: u64) -> bool {
    word & CANCELLED != 0 && (word & SHIELD_MASK == 0 || word & STOPPED != 0)
}

/// The stage of its life that a task is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Queued,
    Running,
    Complete,
}

/// A value of the state word, loaded once.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    #[inline]
    pub(crate) fn is_complete(self) -> bool {
        self.0 & COMPLETE != 0
    }

    /// Returns true if the task must be cancelled when its poll ends.
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    #[inline]
    pub(crate) fn must_cancel(self) -> bool {
        must_cancel(self.0)
    }

    /// Returns the phase of the task, for dumps.
    pub(crate) fn phase(self) -> Phase {
        if self.0 & COMPLETE != 0 {
            Phase::Complete
        } else if self.0 & RUNNING != 0 {
            Phase::Running
        } else if self.0 & QUEUED != 0 {
            Phase::Queued
        } else {
            Phase::Idle
        }
    }

    #[inline]
    pub(crate) fn has_join_waker(self) -> bool {
        self.0 & JOIN_WAKER != 0
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [
            (RUNNING, "running"),
            (COMPLETE, "complete"),
            (QUEUED, "queued"),
            (WOKEN_IN_POLL, "woken-in-poll"),
            (CANCELLED, "cancelled"),
            (JOIN_INTEREST, "join-interest"),
            (JOIN_WAKER, "join-waker"),
            (STOPPED, "stopped"),
        ];
        let set = names.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| name);
        f.debug_struct("State")
            .field("flags", &set.collect::<Vec<_>>())
            .field("shields", &((self.0 & SHIELD_MASK) >> SHIELD_SHIFT))
            .field("references", &(self.0 >> REF_SHIFT))
            .finish()
    }
}

#[cfg(test)]
mod tests;
