//! The number of receivers, and the wait queue of senders that wait until there are none.
//!
//! # Protocol
//! The word holds the count and a bit that says whether any sender waits. In the table, 'the
//! queue' is the wait queue:
//!
//! ```text
//! a receiver is dropped                     a sender that waits
//! G1 subtracts one from the word            W1 locks the queue
//! G2 it was not the last, or no sender      W2 sets the bit, by an exchange that finds
//!    waits: done                               a count above 0
//! G3 locks the queue, dismisses all,        W3 joins the queue
//!    clears the bit
//! ```
//! G1 and W2 change the same word. If G1 is first and was the last receiver, W2 finds 0. If W2
//! is first, G2 finds the bit, and G3 waits for the lock until W3 is done. A receiver that
//! subscribes meanwhile may make G3 dismiss too many: these look again, and wait again.
//!
//! # Invariants
//! The bit is set exactly if the wait queue is not empty, whenever the lock is free, and changes
//! only under the lock.
//!
//! # Checked by
//! `closed_against_the_last_receiver_is_never_left_waiting`,
//! `closed_against_subscribe_and_drop_ends`; weakened as `watch_closed_looks_again`,
//! `watch_last_receiver_wakes`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    channel::enqueue::{enqueue, spare_for},
    engine::{
        prim::{
            AtomicUsize, Mutex, MutexGuard,
            Ordering::{AcqRel, Acquire, Relaxed},
            lock, weakened,
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

const WAITING: usize = 1;
const ONE: usize = 2;

/// The receivers of a watch channel: their number, and the senders that wait for the last to go.
pub(super) struct ReceiverCount {
    word: AtomicUsize,
    waiters: Mutex<WaitQueue<()>>,
}

impl ReceiverCount {
    pub(super) fn new(count: usize) -> Self {
        Self { word: AtomicUsize::new(count * ONE), waiters: Mutex::new(WaitQueue::new()) }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        // Acquire: a thread that finds 0 sees what the receivers did. Pairs with the AcqRel in
        // `leave`.
        self.word.load(Acquire) / ONE
    }

    #[inline]
    pub(super) fn join(&self) {
        // Relaxed: only a count.
        self.word.fetch_add(ONE, Relaxed);
    }

    /// Counts one receiver less, and wakes the waiting senders after the last (G1 to G3).
    #[inline]
    pub(super) fn leave(&self) {
        // AcqRel: what each receiver did happens before what the last one wakes. The `fetch_sub`
        // of each receiver pairs with that of the last, and with the Acquire in `count`.
        let before = self.word.fetch_sub(ONE, AcqRel);
        if before == ONE + WAITING && !weakened!("watch_last_receiver_wakes") {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let mut wake_list = WakeList::new();
        loop {
            let mut waiters = lock(&self.waiters);
            while !waiters.is_empty() && !wake_list.is_full() {
                wake_list.push(waiters.dismiss_first());
            }
            let done = waiters.is_empty();
            self.clear_if_empty(&waiters);
            drop(waiters);
            wake_list.wake_all();
            // If a receiver has subscribed again, the remaining waiters wait for that one to go.
            if done || self.count() > 0 {
                return;
            }
        }
    }

    /// Clears the bit if the wait queue is empty; called under the lock.
    fn clear_if_empty(&self, waiters: &WaitQueue<()>) {
        if waiters.is_empty() {
            // Relaxed: the bit only says whether the lock is worth taking.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    /// Locks the wait queue and sets the bit (W1 and W2); `None` if there is no receiver.
    fn enter(&self) -> Option<MutexGuard<'_, WaitQueue<()>>> {
        let waiters = lock(&self.waiters);
        // Acquire, here and below: a thread that finds 0 sees what the receivers did. Pairs with
        // the AcqRel in `leave`.
        let mut now = self.word.load(Acquire);
        loop {
            if now < ONE && !weakened!("watch_closed_looks_again") {
                return None;
            }
            // Relaxed: a receiver that finds the bit locks the wait queue next. This is an
            // exchange even if the bit is set, because it must find the newest count. Acquire on
            // failure: a thread that finds 0 sees what the receivers did.
            match self.word.compare_exchange_weak(now, now | WAITING, Relaxed, Acquire) {
                Ok(_) => return Some(waiters),
                Err(found) => now = found,
            }
        }
    }
}

/// A future that waits until there is no receiver; `W` is the struct that contains the receiver_count.
pub(super) struct Gone<'a, W: AsRef<ReceiverCount>> {
    whole: &'a W,
    waiter: Waiter<()>,
}

impl<'a, W: AsRef<ReceiverCount>> Gone<'a, W> {
    pub(super) fn new(whole: &'a W) -> Self {
        Self { whole, waiter: Waiter::new(()) }
    }

    fn parts(self: Pin<&Self>) -> (&'a ReceiverCount, Pin<&Waiter<()>>) {
        let receiver_count = self.whole.as_ref();
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its destructor
        // runs in place.
        (receiver_count, unsafe { self.map_unchecked(|this| &this.waiter) })
    }
}

impl<W: AsRef<ReceiverCount>> Future for Gone<'_, W> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::poll_proceed(cx));
        let (receiver_count, waiter) = self.as_ref().parts();
        let mut spare = spare_for(&waiter, cx.waker());
        loop {
            let Some(mut waiters) = receiver_count.enter() else {
                unit.spend();
                return Poll::Ready(());
            };
            // SAFETY: 1. of `enqueue`: we own the waiter, and `Drop` removes it. 2. This is the
            // only wait queue that it joins.
            if unsafe { enqueue(&mut waiters, waiter, (), cx.waker(), &mut spare) } {
                drop(waiters);
                thread_context::waits_for(WaitReason::Close);
                return Poll::Pending;
            }
            receiver_count.clear_if_empty(&waiters);
            drop(waiters);
            spare = Some(cx.waker().clone());
        }
    }
}

impl<W: AsRef<ReceiverCount>> Drop for Gone<'_, W> {
    fn drop(&mut self) {
        if self.waiter.state() != WaiterState::In {
            return;
        }
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let (receiver_count, waiter) = unsafe { Pin::new_unchecked(&*self) }.parts();
        let mut waiters = lock(&receiver_count.waiters);
        // SAFETY: 1. of `remove`: we own the waiter. 2. This is the only wait queue that it
        // joins.
        let waker = unsafe { waiters.remove(waiter) };
        receiver_count.clear_if_empty(&waiters);
        drop(waiters);
        // Dropped last, because a waker's drop runs user code.
        drop(waker);
    }
}
