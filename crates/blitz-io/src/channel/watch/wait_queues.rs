//! The current version of the value, and the wait queues of receivers that wait for the next
//! one.
//!
//! # Protocol
//! The word holds the version, a bit CLOSED, and for each of a few wait queues a bit that says
//! whether it is not empty. Publishing a version is one addition to the word, and its result
//! shows which wait queues are not empty: if no receiver waits, that is all. In the table, 'a
//! queue' is one of the wait queues:
//!
//! ```text
//! the publisher                             a waiter that has seen version v
//! P1 adds a version to the word             W1 reads the word: not v, or CLOSED: done
//! P2 no queue has its bit set: done         W2 locks a queue
//! P3 locks each queue that has it set       W3 sets its bit by an exchange that finds v
//! P4 dismisses waiters with a version       W4 joins the queue, with v
//!    before the one it published
//! P5 the queue is empty: clears its bit
//! ```
//! P1 and W3 change the same word, so one comes first. If P1 does, W3 does not find v. If W3
//! does, P1 finds the bit, and P3 waits for the lock until W4 is done. If the bit is already set
//! at W3, it was set under that lock, or P5 would have cleared it: a version added before that
//! is seen by W3, and one added after finds the bit.
//!
//! Closing works like publishing, with the bit CLOSED in place of a version, and P4 dismisses
//! all.
//!
//! A receiver chooses its wait queue by the thread it is polled on, so that workers that wait at
//! the same time do so behind different locks.
//!
//! # Invariants
//! - The bit of a wait queue is set exactly if that wait queue is not empty, whenever its lock
//!   is free; the bit changes only under the lock.
//! - Versions in a wait queue never decrease, so the first waiter that has seen what was
//!   published ends P4. So a receiver that joins again while a long wait queue is served is left
//!   to the next publish: P4 is as long as the wait queue was, however quickly other threads
//!   publish.
//!
//! # Rejected
//! - One wait queue: each worker would wait for the lock under which the sender dismisses.
//! - A version apart from the bits: publishing would need a fence between writing the one and
//!   reading the other, which costs as much as the addition.
//!
//! # Checked by
//! `publish_against_change_is_never_missed`,
//! `a_second_waiter_against_a_publish_is_never_missed`, `close_against_change_ends`,
//! `a_change_dropped_against_a_publish_leaves_no_mark`,
//! `two_publishes_against_change_show_the_last`,
//! `waiters_in_two_wait_queues_are_all_woken`, `a_publish_wakes_the_waiters_that_came_before_it`,
//! `a_full_wake_list_against_a_drop_wakes_the_rest`; weakened as
//! `watch_join_looks_again`, `watch_publish_wakes`, `watch_close_wakes`,
//! `watch_join_sees_closed`, `watch_leave_clears`, `watch_round_goes_on`,
//! `watch_every_line`. Versions that wrap: `versions_wrap`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::error::RecvError;
use crate::{
    channel::enqueue::{enqueue, spare_for},
    engine::{
        prim::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
            store_lock::{StoreLock, StoreLockGuard},
            thread_number, weakened,
        },
        wait::{
            wait_queue::{WaitQueue, Waiter, WaiterState},
            wake_list::WakeList,
        },
        work::{
            task::{budget, timestamp::WaitReason},
            thread_context,
        },
    },
};

/// The number of wait queues.
///
/// Eight is Tokio's number, not measured here. A model uses two.
const WAIT_QUEUES: usize = if cfg!(blitz_loom) { 2 } else { 8 };

const CLOSED: u64 = 1;
const WAITING: u64 = ((1 << WAIT_QUEUES) - 1) << 1;
const STEP: u64 = 1 << (WAIT_QUEUES + 1);

/// The version number of a value; it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u64);

impl Version {
    /// Returns the previous version.
    pub(super) fn before(self) -> Self {
        Self(self.0.wrapping_sub(STEP))
    }
}

/// A snapshot of the word.
#[derive(Debug, Clone, Copy)]
pub(super) struct State(u64);

impl State {
    #[inline]
    pub(super) fn version(self) -> Version {
        Version(self.0 & !(STEP - 1))
    }

    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Returns `true` if this state is news for a waiter that has seen `version`.
    #[inline]
    fn is_news_for(self, version: Version) -> bool {
        self.version().0.wrapping_sub(version.0).cast_signed() > 0 || self.is_closed()
    }
}

/// The rest of a publish: call [`WaitQueues::wake`] with it after the value is unlocked.
#[must_use]
pub(super) struct PendingWake(u64);

/// The version of a watch channel, and the wait queues of its receivers.
pub(super) struct WaitQueues {
    word: AtomicU64,
    wait_queues: [StoreLock<WaitQueue<Version>>; WAIT_QUEUES],
}

/// Returns the bit of the wait queue with index `at`.
#[inline]
fn bit(at: usize) -> u64 {
    2 << at
}

impl WaitQueues {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self::starting_at(0)
    }

    /// Creates the state of a channel after `versions` versions were published.
    pub(super) fn starting_at(versions: u64) -> Self {
        let wait_queues = std::array::from_fn(|_| StoreLock::new(WaitQueue::new()));
        Self { word: AtomicU64::new(versions.wrapping_mul(STEP)), wait_queues }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire: a thread that sees a version, or CLOSED, sees what was done before. Pairs
        // with the Release in `publish` and `close`.
        State(self.word.load(Acquire))
    }

    /// Adds a version, while the value is locked for writing (P1).
    #[inline]
    pub(super) fn publish(&self) -> PendingWake {
        // Release: pairs with the Acquire in `state`. The waiters are synchronized by the lock
        // of their wait queue.
        PendingWake(self.word.fetch_add(STEP, Release))
    }

    /// Wakes the receivers that wait for a published version (P2 to P5).
    #[inline]
    pub(super) fn wake(&self, pending_wake: PendingWake) {
        if pending_wake.0 & WAITING != 0 && !weakened!("watch_publish_wakes") {
            self.wake_queues(pending_wake.0, State(pending_wake.0.wrapping_add(STEP)));
        }
    }

    /// Closes the channel, because the last sender was dropped, and wakes all receivers.
    pub(super) fn close(&self) {
        // Release: publishes what was done before the close. Pairs with the Acquire in `state`.
        let before = self.word.fetch_or(CLOSED, Release);
        if !weakened!("watch_close_wakes") {
            self.wake_queues(before, State(before | CLOSED));
        }
    }

    /// Wakes, for `news`, the waiters of the wait queues with a bit in `marked` (P3 to P5).
    #[cold]
    fn wake_queues(&self, marked: u64, news: State) {
        let mut wake_list = WakeList::new();
        for at in (0..WAIT_QUEUES).filter(|at| marked & bit(*at) != 0) {
            while !self.wake_queue(at, news, &mut wake_list) {
                wake_list.wake_all();
                if weakened!("watch_round_goes_on") {
                    break;
                }
            }
            if weakened!("watch_every_line") {
                break;
            }
        }
        wake_list.wake_all();
    }

    /// Locks a wait queue.
    #[inline]
    fn waiters(&self, at: usize) -> StoreLockGuard<'_, WaitQueue<Version>> {
        self.wait_queues[at].lock()
    }

    /// Serves one wait queue (P3 to P5); returns `false` if the wake list was full before the end.
    fn wake_queue(&self, at: usize, news: State, wake_list: &mut WakeList) -> bool {
        let mut waiters = self.waiters(at);
        while let Some(seen) = waiters.first() {
            if !news.is_news_for(*seen) {
                return true;
            }
            if wake_list.is_full() {
                return false;
            }
            wake_list.push(waiters.dismiss_first());
        }
        self.clear_if_empty(at, &waiters);
        true
    }

    /// Clears the bit of a wait queue that is empty, under its lock (P5).
    fn clear_if_empty(&self, at: usize, waiters: &WaitQueue<Version>) {
        if waiters.is_empty() {
            // Relaxed: the bit only says whether the lock is worth taking, and the exchange
            // preserves what other threads published.
            self.word.fetch_and(!bit(at), Relaxed);
        }
    }

    /// Locks a wait queue and sets its bit (W2 and W3); `None` if there is something new.
    fn enter(&self, at: usize, seen: Version) -> Option<StoreLockGuard<'_, WaitQueue<Version>>> {
        let waiters = self.waiters(at);
        // Relaxed: a guess, or, if the bit is set, as good as an exchange (see the protocol).
        let mut now = self.word.load(Relaxed);
        loop {
            let closed = State(now).is_closed() && !weakened!("watch_join_sees_closed");
            let changed = State(now).version() != seen && !weakened!("watch_join_looks_again");
            if closed || changed {
                return None;
            }
            if now & bit(at) != 0 {
                return Some(waiters);
            }
            // Relaxed: a sender that finds the bit locks the wait queue next. The value is not
            // accessed.
            match self.word.compare_exchange_weak(now, now | bit(at), Relaxed, Relaxed) {
                Ok(_) => return Some(waiters),
                Err(found) => now = found,
            }
        }
    }

    /// Returns the index of the wait queue that this thread uses.
    #[inline]
    fn mine() -> usize {
        thread_number() % WAIT_QUEUES
    }

    #[cfg(test)]
    pub(super) fn is_waited_for(&self) -> bool {
        self.word.load(Relaxed) & WAITING != 0
    }
}

#[cfg(test)]
impl AsRef<WaitQueues> for WaitQueues {
    fn as_ref(&self) -> &WaitQueues {
        self
    }
}

/// A future that waits for a version other than the one that was seen, and marks it as seen.
///
/// `W` is the struct that contains the queues.
pub(super) struct Change<'a, W: AsRef<WaitQueues>> {
    whole: &'a W,
    seen: &'a mut Version,
    /// The index of the wait queue that it is in, if it is in one.
    at: usize,
    waiter: Waiter<Version>,
}

impl<'a, W: AsRef<WaitQueues>> Change<'a, W> {
    #[inline]
    pub(super) fn new(whole: &'a W, seen: &'a mut Version) -> Self {
        let waiter = Waiter::new(*seen);
        Self { whole, seen, at: 0, waiter }
    }

    /// Looks for a new version or the close (W1); `None` if there is neither.
    #[inline]
    fn check(&mut self) -> Option<Result<(), RecvError>> {
        let now = self.whole.as_ref().state();
        if now.version() != *self.seen {
            *self.seen = now.version();
            return Some(Ok(()));
        }
        now.is_closed().then_some(Err(RecvError(())))
    }

    /// Joins the wait queue (W2 to W4); returns `false` if there is something new after all.
    #[cold]
    fn wait(&mut self, cx: &Context<'_>, at: impl FnOnce() -> usize) -> bool {
        let mut spare = spare_for(&self.waiter, cx.waker());
        if self.waiter.state() != WaiterState::In {
            self.at = at();
        }
        let wait_queues = self.whole.as_ref();
        loop {
            let Some(mut waiters) = wait_queues.enter(self.at, *self.seen) else { return false };
            // SAFETY: the future is pinned, because only `poll_at` calls this, and nothing moves
            // the waiter.
            let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
            // SAFETY: 1. of `enqueue`: we own the waiter, and `Drop` removes it. 2. `at` changes
            // only while the waiter is in no wait queue, so this is the one it is in.
            if unsafe { enqueue(&mut waiters, waiter, *self.seen, cx.waker(), &mut spare) } {
                return true;
            }
            wait_queues.clear_if_empty(self.at, &waiters);
            drop(waiters);
            spare = Some(cx.waker().clone());
        }
    }

    /// Polls the future, with the index of the wait queue to join.
    #[inline]
    pub(super) fn poll_at(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        at: impl Fn() -> usize,
    ) -> Poll<Result<(), RecvError>> {
        // SAFETY: nothing is moved out of the future.
        let this = unsafe { self.get_unchecked_mut() };
        let unit = ready!(budget::poll_proceed(cx));
        loop {
            if let Some(outcome) = this.check() {
                unit.spend();
                return Poll::Ready(outcome);
            }
            if this.wait(cx, &at) {
                thread_context::waits_for(WaitReason::Message);
                return Poll::Pending;
            }
        }
    }

    /// Leaves the wait queue.
    #[cold]
    fn leave(&mut self) {
        let wait_queues = self.whole.as_ref();
        let mut waiters = wait_queues.waiters(self.at);
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
        // SAFETY: 1. of `remove`: we own the waiter. 2. This is the wait queue that it joined.
        let waker = unsafe { waiters.remove(waiter) };
        if !weakened!("watch_leave_clears") {
            wait_queues.clear_if_empty(self.at, &waiters);
        }
        drop(waiters);
        // Dropped last, because a waker's drop runs user code.
        drop(waker);
    }
}

impl<W: AsRef<WaitQueues>> Future for Change<'_, W> {
    type Output = Result<(), RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_at(cx, WaitQueues::mine)
    }
}

impl<W: AsRef<WaitQueues>> Drop for Change<'_, W> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.state() == WaiterState::In {
            self.leave();
        }
    }
}
