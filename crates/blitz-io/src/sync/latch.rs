//! An event that happens once, and the tasks that wait for it.
//!
//! # Protocol
//! ```text
//! a waiter                                the thread that opens the latch
//! L1 open: done                           M1 stores OPEN
//! L2 locks the queue                      M2 locks the queue
//! L3 open now: done                       M3 dismisses all, one wake list at a time,
//! L4 joins the queue                         with the lock released in between
//! ```
//! One of L2 and M2 gets the lock first. If M2 does, L3 sees M1; if L2 does, M3 finds the
//! waiter. No waiter joins the wait queue (the queue) after M2, so M3 ends.
//!
//! M1 may itself be done under the lock ([`Latch::open_with`]): then the thread that opens
//! the latch has done so completely before another attempt is refused.
//!
//! A task without budget joins the wait queue nevertheless. If the latch is open at its first
//! poll, it is deferred once, so that a loop over open latches lets other tasks run. It is not
//! deferred twice, nor after it has waited in the queue: otherwise a future polled beside it
//! could use up the budget of every poll and keep it from ever seeing that the latch is open.
//!
//! # Checked by
//! The models of `set_once.rs`: `an_opening_is_not_missed`, `all_waiters_are_woken_in_wake_lists`,
//! `a_waiter_dropped_against_an_opening_breaks_nothing`, `a_new_waker_against_an_opening_is_woken`,
//! `a_late_waiter_sees_what_was_done`; weakened as `latch_looks_again`, `latch_wakes`,
//! `latch_release`, `latch_acquire`, `latch_wakes_batches`.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::{
    prim::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
        store_lock::StoreLock,
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::WakeList,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

/// A latch: closed at first, opened once, with a wait queue of the tasks that wait for that.
pub(super) struct Latch {
    open: AtomicBool,
    waiters: StoreLock<WaitQueue<bool>>,
}

/// State of one waiter, which is part of the waiting future and pinned with it. The waiter's
/// data is whether it was deferred for want of budget.
pub(super) struct LatchWait(Waiter<bool>);

impl Latch {
    #[cfg(not(blitz_loom))]
    pub(super) const fn new(open: bool) -> Self {
        Self { open: AtomicBool::new(open), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Creates a latch; not `const`, because the model checker's atomics are not.
    #[cfg(blitz_loom)]
    pub(super) fn new(open: bool) -> Self {
        Self { open: AtomicBool::new(open), waiters: StoreLock::new(WaitQueue::new()) }
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        let order = if weakened!("latch_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what was done before the latch opened. Pairs with the Release in `mark`.
        self.open.load(order)
    }

    /// Marks the latch as open (M1). The caller must then dismiss the waiters with
    /// [`dismiss`](Self::dismiss).
    #[inline]
    pub(super) fn mark(&self) {
        let order = if weakened!("latch_release") { Relaxed } else { Release };
        // Release: publishes what was done before. Pairs with the Acquire in `is_open`.
        self.open.store(true, order);
    }

    /// Dismisses waiters (M3); returns `true` if it stopped because the wake list is full: the
    /// caller must wake the list and call this again.
    #[must_use]
    pub(super) fn dismiss(&self, wake_list: &mut WakeList) -> bool {
        self.dismiss_from(&mut self.waiters.lock(), wake_list)
    }

    fn dismiss_from(&self, waiters: &mut WaitQueue<bool>, wake_list: &mut WakeList) -> bool {
        while !waiters.is_empty() {
            if wake_list.is_full() {
                return !weakened!("latch_wakes_batches");
            }
            wake_list.push(waiters.dismiss_first());
        }
        false
    }

    /// Opens the latch after running `step` under the lock, which only one caller does; returns
    /// `false` if the latch was open already.
    #[inline]
    pub(super) fn open_with(&self, step: impl FnOnce()) -> bool {
        let mut waiters = self.waiters.lock();
        // Relaxed: `open` is written under the lock, which we hold.
        if self.open.load(Relaxed) {
            return false;
        }
        step();
        self.mark();
        if weakened!("latch_wakes") {
            return true;
        }
        let mut wake_list = WakeList::new();
        while self.dismiss_from(&mut waiters, &mut wake_list) {
            drop(waiters);
            wake_list.wake_all();
            waiters = self.waiters.lock();
        }
        drop(waiters);
        wake_list.wake_all();
        true
    }

    /// Closes the latch again; the exclusive borrow proves that no task waits for it.
    pub(super) fn shut(&mut self) {
        // Relaxed: the borrow is exclusive, so no other thread reads it.
        self.open.store(false, Relaxed);
    }

    /// Polls a wait for the latch (L1 to L4, or what follows them), and spends a unit of the
    /// task's budget when it completes, if there is one.
    ///
    /// # Safety
    /// 1. The wait is used with this latch only.
    /// 2. The caller calls `leave` before the wait ends.
    #[inline]
    pub(super) unsafe fn poll(
        &self,
        wait: Pin<&LatchWait>,
        cx: &mut Context<'_>,
        what: WaitReason,
    ) -> Poll<()> {
        let unit = budget::take();
        // SAFETY: 1. our own obligation 1 says that the wait is used with this latch only.
        if unit.is_none() && self.is_open() && unsafe { self.defer_once(wait) } {
            ready!(budget::available(cx));
        }
        // SAFETY: 1. our own obligation 1 says that the wait is used with this latch only.
        // 2. Our own obligation 2 says that the caller calls `leave`.
        if !self.is_open() && unsafe { self.enqueue(wait, cx) }.is_pending() {
            thread_context::waits_for(what);
            return Poll::Pending;
        }
        if let Some(unit) = unit {
            unit.spend();
        }
        Poll::Ready(())
    }

    /// Returns `true` if a wait that was polled without budget must be deferred to its task's
    /// next poll: the first time, unless it has waited in the queue.
    ///
    /// # Safety
    /// 1. The wait is used with this latch only.
    #[cold]
    unsafe fn defer_once(&self, wait: Pin<&LatchWait>) -> bool {
        let waiter = wait.waiter();
        waiter.state() == WaiterState::Out
            // SAFETY: 1. the caller owns the waiter, and it is OUT. 2. The closure only replaces
            // the flag.
            && !unsafe { waiter.with_data(|put_off| std::mem::replace(put_off, true)) }
    }

    /// Joins the wait queue, or stays in it, of a latch that was closed at the last check
    /// (L2 to L4).
    ///
    /// # Safety
    /// 1. The wait is used with this latch only.
    /// 2. The caller calls `leave` before the wait ends.
    #[cold]
    unsafe fn enqueue(&self, wait: Pin<&LatchWait>, cx: &Context<'_>) -> Poll<()> {
        let waiter = wait.waiter();
        if waiter.state() != WaiterState::Out {
            // SAFETY: 1. the caller owns the waiter. 2. By our obligation 1 it can only be in this
            // latch's queue.
            let is_dismissed =
                unsafe { update_waker(&self.waiters, |waiters| waiters, waiter, cx.waker()) };
            return if is_dismissed { Poll::Ready(()) } else { Poll::Pending };
        }
        // Cloning a waker runs user code, so it happens before the lock is taken.
        let waker = cx.waker().clone();
        let mut waiters = self.waiters.lock();
        if self.is_open() && !weakened!("latch_looks_again") {
            // Dropping a waker runs user code, so the lock is released first.
            drop(waiters);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. the caller owns the waiter, and it is OUT. 2. `leave` removes it, and by our
        // obligation 2 the caller calls it.
        unsafe { waiters.join(waiter, waker) };
        Poll::Pending
    }

    /// Ends a wait: takes the waiter out of the wait queue if it is still there.
    ///
    /// # Safety
    /// 1. The wait is used with this latch only.
    #[inline]
    pub(super) unsafe fn leave(&self, wait: Pin<&LatchWait>) {
        if wait.0.state() == WaiterState::In {
            // SAFETY: 1. the caller owns the waiter. 2. By our obligation 1 it is in this latch's
            // queue.
            let waker = unsafe { self.waiters.lock().remove(wait.waiter()) };
            // The lock was released at the end of the statement above.
            drop(waker);
        }
    }
}

impl LatchWait {
    #[inline]
    pub(super) fn new() -> Self {
        Self(Waiter::new(false))
    }

    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<bool>> {
        // SAFETY: the waiter is pinned with the wait: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.0) }
    }
}
