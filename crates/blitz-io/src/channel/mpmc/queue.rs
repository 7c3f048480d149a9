//! The wait queue of one side of a channel, and how no waiter is missed.
//!
//! # Protocol
//! A thread that makes something available (a message, or free capacity) takes no lock to find out
//! that no task waits for it. In the table, 'the queue' is the wait queue:
//!
//! ```text
//! the side that changes a slot               the side that waits for that change
//! M1 writes the slot's stamp, SeqCst         W1 joins the queue and sets WAITING, locked
//! M2 reads the flags, SeqCst                 W2 fence(SeqCst)
//! M3 WAITING: locks, dismisses the first     W3 reads the slot's stamp once more
//! ```
//! M1 and W2 are in one total order. If M1 is before W2, W3 sees what was made available. If W2
//! is before M1, M2 comes after it too and sees WAITING, for as long as the waiter is in the
//! wait queue.
//!
//! A waiter that was dismissed looks again. It may find nothing, because a task that never
//! waited was faster; it then joins the wait queue again, at its end. If it finds something, it
//! checks whether there is more for the next waiter (`Chan::pass_on_messages`,
//! `Chan::pass_on_room`), because several slots may have become available at once while the
//! threads that published them saw no waiter: the slot that all the waiters looked at was one
//! before theirs. A waiter that was dismissed and is dropped without looking dismisses the next.
//!
//! # Invariants
//! - WAITING is set exactly if the wait queue is not empty, whenever the lock is free.
//! - GONE is never cleared.
//!
//! # Rejected
//! - The asymmetric barrier (`prim/barrier.rs`): each wait would be a system call, and tasks
//!   that pass messages back and forth wait all the time.
//! - Handing the value over to the first waiter: a sender would take the lock and wait for a
//!   receiver that is in the middle of a receive. It would be fair; the module's documentation
//!   says what is guaranteed instead.
//! - Making newcomers queue behind a wait queue that is not empty: with many tasks on each side
//!   all of them would then go through the lock.
//!
//! # Checked by
//! The models of `chan.rs`; weakened as `mpmc_waiter_fences`, `mpmc_waiter_looks_again`,
//! `mpmc_dismissed_passes_on`.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::engine::{
    prim::{
        AtomicU32,
        Ordering::{Relaxed, SeqCst},
        fence,
        store_lock::StoreLock,
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::{WakeList, wake_each},
    },
    work::task::budget::{self, BudgetUnit},
};

/// Flag: the wait queue is not empty.
pub(super) const WAITING: u32 = 1;
/// Flag: no task will ever wait here again, because all handles of that side were dropped.
pub(super) const GONE: u32 = 1 << 1;

/// The tasks that wait for one kind of event, and flags that can be read without the lock.
pub(super) struct Queue {
    flags: AtomicU32,
    waiters: StoreLock<WaitQueue<()>>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { flags: AtomicU32::new(0), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Returns the flags (M2).
    #[inline]
    pub(super) fn flags(&self) -> u32 {
        // SeqCst: comes after the stamp in the one total order. Pairs with the fence in
        // `QueueWaiter::wait`.
        self.flags.load(SeqCst)
    }

    /// Sets GONE, because all handles of that side were dropped.
    pub(super) fn set_gone(&self) {
        // SeqCst: ordered like WAITING in `QueueWaiter::wait`; the caller looks at the slots after
        // a fence.
        self.flags.fetch_or(GONE, SeqCst);
    }

    /// Dismisses and wakes the first waiter, if there is one (M3).
    #[cold]
    pub(super) fn wake_one(&self) {
        let mut wake_list = WakeList::new();
        let mut waiters = self.waiters.lock();
        if !waiters.is_empty() {
            wake_list.push(waiters.dismiss_first());
            self.note(&waiters);
        }
        drop(waiters);
        wake_list.wake_all();
    }

    /// Dismisses and wakes all waiters, one wake list at a time.
    #[cold]
    pub(super) fn wake_all(&self) {
        let lock = || self.waiters.lock();
        wake_each(lock(), lock, |waiters| {
            waiters.first()?;
            let waker = waiters.dismiss_first();
            self.note(waiters);
            Some(waker)
        });
    }

    /// Clears WAITING if the wait queue is empty; called under the lock.
    fn note(&self, waiters: &WaitQueue<()>) {
        if waiters.is_empty() {
            // Relaxed: WAITING is set again only under the lock.
            self.flags.fetch_and(!WAITING, Relaxed);
        }
    }
}

/// A future's position in a wait queue, pinned in that future.
pub(super) struct QueueWaiter<'a> {
    queue: &'a Queue,
    /// The waiter, which joins this wait queue and no other.
    waiter: Waiter<()>,
}

impl<'a> QueueWaiter<'a> {
    #[inline]
    pub(super) fn new(queue: &'a Queue) -> Self {
        Self { queue, waiter: Waiter::new(()) }
    }

    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<()>> {
        // SAFETY: the waiter is pinned with `self`: nothing moves it, and its destructor runs in
        // place.
        unsafe { self.map_unchecked(|this| &this.waiter) }
    }

    /// Returns a unit of the budget, to be spent when the future completes.
    ///
    /// A future that has waited needs none: no other waiter is woken for the event it was
    /// dismissed for, and a future that is polled beside it may use up the budget of every poll.
    #[inline]
    pub(super) fn proceed(&self, cx: &mut Context<'_>) -> Poll<Option<BudgetUnit>> {
        if self.waiter.state() != WaiterState::Out && !budget::has_remaining() {
            return Poll::Ready(None);
        }
        budget::poll_proceed(cx).map(Some)
    }

    /// Attempts the operation, joins the wait queue, and attempts it again.
    ///
    /// The result comes with `true` if this waiter was dismissed on the way: then the caller
    /// must check whether there is something for the next waiter.
    #[inline]
    pub(super) fn poll<R>(
        self: Pin<&Self>,
        cx: &Context<'_>,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<(R, bool)> {
        if self.waiter.state() == WaiterState::In && self.stays(cx.waker()) {
            return Poll::Pending;
        }
        match attempt() {
            Some(outcome) => Poll::Ready((outcome, self.settle())),
            None => self.wait(cx.waker(), attempt),
        }
    }

    /// Joins the wait queue and attempts the operation once more (W1 to W3).
    #[cold]
    fn wait<R>(
        self: Pin<&Self>,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<(R, bool)> {
        // Cloned before the lock is taken, because a waker's clone runs user code; and before
        // the dismissal is forgotten, because the clone may panic.
        let waker = waker.clone();
        let dismissed = self.settle();
        let mut waiters = self.queue.waiters.lock();
        // SAFETY: 1. of `join`: we own the waiter, and it is OUT. 2. `Drop` removes it.
        unsafe { waiters.join(self.waiter(), waker) };
        // SeqCst: ordered before the fence for a thread that reads the flags. Pairs with the
        // load in `flags`.
        self.queue.flags.fetch_or(WAITING, SeqCst);
        drop(waiters);
        if !weakened!("mpmc_waiter_fences") {
            // SeqCst: comes before or after the stamp of a thread that makes something
            // available. Pairs with the SeqCst store in `Chan::publish`.
            fence(SeqCst);
        }
        if weakened!("mpmc_waiter_looks_again") {
            return Poll::Pending;
        }
        match attempt() {
            Some(outcome) => Poll::Ready((outcome, self.leave() || dismissed)),
            None => Poll::Pending,
        }
    }

    /// Makes sure that the current waker is woken, for a waiter that is still in the wait queue.
    ///
    /// Returns `false` if the waiter was dismissed meanwhile.
    #[cold]
    fn stays(self: Pin<&Self>, waker: &Waker) -> bool {
        let waiter = self.waiter();
        // SAFETY: 1. of `update_waker`: we own the waiter. 2. It joined the wait queue behind this
        // lock.
        !unsafe { update_waker(&self.queue.waiters, |waiters| waiters, waiter, waker) }
    }

    /// Prepares the waiter for another wait, and returns `true` if it was dismissed.
    #[inline]
    fn settle(&self) -> bool {
        let dismissed = self.waiter.state() == WaiterState::Dismissed;
        if dismissed {
            self.waiter.settle();
        }
        dismissed
    }

    /// Leaves the wait queue, and returns `true` if the waiter was dismissed before.
    #[cold]
    fn leave(self: Pin<&Self>) -> bool {
        let mut waiters = self.queue.waiters.lock();
        // SAFETY: 1. of `remove`: we own the waiter. 2. This is the wait queue that it joined.
        let waker = unsafe { waiters.remove(self.waiter()) };
        self.queue.note(&waiters);
        drop(waiters);
        // Dropped outside of the lock, because a waker's drop runs user code.
        drop(waker);
        self.settle()
    }
}

impl Drop for QueueWaiter<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        let dismissed = match this.waiter.state() {
            WaiterState::Out => false,
            WaiterState::In => this.leave(),
            WaiterState::Dismissed => true,
        };
        // The waiter leaves without having looked, so the next one must be woken for the same
        // event.
        if dismissed && !weakened!("mpmc_dismissed_passes_on") {
            this.queue.wake_one();
        }
    }
}
