//! The sending half of a broadcast channel, strong and weak.
//!
//! # Protocol
//! `senders` counts the strong senders. It falls to zero once and stays there, because a weak
//! sender is upgraded by an exchange that refuses zero. The sender that makes it zero closes the
//! buffer under the tail's lock.
//!
//! # Checked by
//! `the_last_sender_against_recv_ends_it`, `upgrade_against_the_last_sender_is_seen`;
//! weakened as `broadcast_upgrade_refuses_zero`.

use std::{
    fmt,
    future::Future,
    mem::replace,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{error::SendError, receiver::Receiver, shared::Shared};
use crate::{
    channel::enqueue::{enqueue, spare_for},
    engine::{
        prim::{
            Arc,
            Ordering::{AcqRel, Acquire, Relaxed},
            weakened,
        },
        wait::wait_queue::{Waiter, WaiterState},
        work::{
            task::{budget, timestamp::WaitReason},
            thread_context,
        },
    },
};

/// The sending half of a broadcast channel.
///
/// Clones send into the same channel.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast;
///
/// let (sender, mut receiver) = broadcast::channel(8);
/// let another = sender.clone();
/// sender.send(1).unwrap();
/// another.send(2).unwrap();
/// assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// A sender that does not keep the channel open.
///
/// To send, [upgrade](WeakSender::upgrade) it.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast;
///
/// let (sender, mut receiver) = broadcast::channel(8);
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().send(1).unwrap();
/// assert_eq!(receiver.try_recv(), Ok(1));
///
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert!(receiver.is_closed());
/// ```
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Creates a channel without a receiver; see [`channel`](super::channel).
    ///
    /// # Panics
    ///
    /// If `capacity` is zero, or more than `usize::MAX / 2`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::new(4);
    /// assert!(sender.send(1).is_err(), "there is no receiver");
    /// let mut receiver = sender.subscribe();
    /// sender.send(2).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(2));
    /// ```
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self::with_receivers(capacity, 0, 0)
    }

    /// Creates a channel with a count of receivers and `start` as the position of the first
    /// value.
    ///
    /// Tests pass a large `start` to begin close to the wrap-around.
    #[track_caller]
    pub(super) fn with_receivers(capacity: usize, receivers: u32, start: u64) -> Self {
        assert!(capacity > 0, "broadcast channel capacity cannot be zero: pass 1 or more");
        assert!(
            capacity <= usize::MAX >> 1,
            "broadcast channel capacity exceeded `usize::MAX / 2`: pass less"
        );
        let capacity = capacity.next_power_of_two();
        Self { shared: Arc::new(Shared::new(capacity, receivers, start)) }
    }

    #[inline]
    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// Sends a value to all current receivers and returns their number.
    ///
    /// A receiver may still be dropped, or lag, before it sees the value.
    ///
    /// Never waits for capacity: if the channel is full, the oldest value is overwritten.
    ///
    /// # Errors
    ///
    /// Returns the value in the error if there is no receiver. A later send may succeed, after
    /// [`subscribe`](Self::subscribe).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, receiver) = broadcast::channel(8);
    /// let other = sender.subscribe();
    /// assert_eq!(sender.send("both").unwrap(), 2);
    /// drop((receiver, other));
    /// assert!(sender.send("none").is_err());
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let shared = &*self.shared;
        let mut tail = shared.tail();
        let count = tail.receivers;
        if count == 0 {
            drop(tail);
            return Err(SendError(value));
        }
        let position = tail.position;
        tail.position = position.wrapping_add(1);
        // SAFETY: 1. of `put`: we hold the tail's lock. 2. of `put`: each of the `count`
        // receivers goes through every position from the one at which it subscribed, and passes
        // the rest when it is dropped.
        let old = unsafe { shared.slot(position).put(position, count, value, &shared.bucket) };
        if tail.waiters.is_empty() || weakened!("broadcast_send_wakes") {
            drop(tail);
        } else {
            shared.wake_receivers(tail);
        }
        // Dropped last, because a value's drop runs user code, and by now the send is complete.
        drop(old);
        Ok(count as usize)
    }

    /// Creates a new receiver, which sees the values that are sent from now on.
    ///
    /// # Panics
    ///
    /// If there are `u32::MAX` receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, _first) = broadcast::channel(8);
    /// sender.send("before").unwrap();
    /// let mut late = sender.subscribe();
    /// sender.send("after").unwrap();
    /// assert_eq!(late.try_recv(), Ok("after"));
    /// ```
    #[track_caller]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::join(&self.shared)
    }

    /// Creates a sender that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let weak = sender.downgrade();
    /// assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    /// ```
    #[must_use = "a weak sender does nothing by itself, and this one stays as it is"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(&self.shared)
    }

    /// Returns the number of stored values that at least one receiver has not seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut fast) = broadcast::channel(8);
    /// let _slow = sender.subscribe();
    /// sender.send(1).unwrap();
    /// sender.send(2).unwrap();
    /// assert_eq!(fast.try_recv(), Ok(1));
    /// assert_eq!(sender.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        let tail = self.shared.tail();
        let (mut seen, mut end) = (0, self.shared.capacity());
        // Receivers go from old to new, so the slots that every receiver has seen come first,
        // and a binary search finds the first one that is still wanted.
        while seen < end {
            let middle = seen + (end - seen) / 2;
            if self.shared.slot(tail.position.wrapping_add(middle)).is_wanted() {
                end = middle;
            } else {
                seen = middle + 1;
            }
        }
        (self.shared.capacity() - seen) as usize
    }

    /// Returns `true` if the receivers have seen every value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// assert!(sender.is_empty());
    /// sender.send(1).unwrap();
    /// assert!(!sender.is_empty());
    /// receiver.try_recv().unwrap();
    /// assert!(sender.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        let tail = self.shared.tail();
        !self.shared.slot(tail.position.wrapping_sub(1)).is_wanted()
    }

    /// Returns the number of receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let _receivers = (sender.subscribe(), sender.subscribe());
    /// assert_eq!(sender.receiver_count(), 2);
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.shared.tail().receivers as usize
    }

    /// Returns `true` if both senders send into the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let (one, two) = (Sender::<u8>::new(1), Sender::<u8>::new(1));
    /// assert!(one.same_channel(&one.clone()));
    /// assert!(!one.same_channel(&two));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits until there is no receiver.
    ///
    /// New receivers may [`subscribe`](Self::subscribe) later.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// # blitz_io::run(async {
    /// let (sender, receiver) = broadcast::channel::<u8>(1);
    /// let task = blitz_io::spawn(async move { drop(receiver) });
    /// sender.closed().await;
    /// assert_eq!(sender.receiver_count(), 0);
    /// # task.await.unwrap();
    /// # });
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> {
        Closed { shared: &self.shared, waiter: Waiter::new(()), put_off: false }
    }

    /// Returns the number of strong senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let _another = sender.clone();
    /// assert_eq!(sender.strong_count(), 2);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let _weak = sender.downgrade();
    /// assert_eq!(sender.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Shared<T> {
    pub(super) fn strong_count(&self) -> usize {
        // Acquire: a caller that reads 0 sees what the senders did. Pairs with the AcqRel in the
        // drop of `Sender`.
        self.senders.load(Acquire)
    }

    pub(super) fn weak_count(&self) -> usize {
        // Acquire: a caller sees what the dropped weak senders did. Pairs with the AcqRel in the
        // drop of `WeakSender`.
        self.weak_senders.load(Acquire)
    }

    /// Closes the channel, because the last sender was dropped, and wakes the receivers.
    #[cold]
    fn close(&self) {
        let mut tail = self.tail();
        tail.closed = true;
        if !weakened!("broadcast_close_wakes") {
            self.wake_receivers(tail);
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: this only counts, and the count cannot reach zero because it includes this
        // sender.
        self.shared.senders.fetch_add(1, Relaxed);
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what each sender did happens before the close. The `fetch_sub` of each sender
        // pairs with that of the last one.
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            self.shared.close();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::Sender")
    }
}

impl<T> WeakSender<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        // Relaxed: nothing is decided by this count.
        shared.weak_senders.fetch_add(1, Relaxed);
        Self { shared: shared.clone() }
    }

    /// Returns a strong sender, or `None` if the last one was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some_and(|strong| strong.same_channel(&sender)));
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.shared.senders.load(Relaxed);
        loop {
            if now == 0 && !weakened!("broadcast_upgrade_refuses_zero") {
                return None;
            }
            // Relaxed: this only counts; the buffer itself is protected by its lock.
            match self.shared.senders.compare_exchange_weak(now, now + 1, Relaxed, Relaxed) {
                Ok(_) => return Some(Sender { shared: self.shared.clone() }),
                Err(seen) => now = seen,
            }
        }
    }

    /// Returns the number of strong senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let sender = Sender::<u8>::new(1);
    /// let weak = sender.downgrade();
    /// assert_eq!(weak.strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::Sender;
    ///
    /// let weak = Sender::<u8>::new(1).downgrade();
    /// assert_eq!(weak.clone().weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self::new(&self.shared)
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // AcqRel: what this weak sender did happens before a count without it. Pairs with the
        // Acquire in `weak_count`.
        self.shared.weak_senders.fetch_sub(1, AcqRel);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::WeakSender")
    }
}

/// Future of [`Sender::closed`].
struct Closed<'a, T> {
    shared: &'a Shared<T>,
    waiter: Waiter<()>,
    /// Set when the future was postponed once for lack of budget.
    put_off: bool,
}

impl<'a, T> Closed<'a, T> {
    fn waiter(self: Pin<&Self>) -> (&'a Shared<T>, Pin<&Waiter<()>>) {
        let shared = self.shared;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (shared, unsafe { self.map_unchecked(|this| &this.waiter) })
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of the future.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the waiter is pinned with the future, which is pinned.
        let (shared, waiter) = (this.shared, unsafe { Pin::new_unchecked(&this.waiter) });
        let mut spare = spare_for(&waiter, cx.waker());
        loop {
            let mut tail = shared.tail();
            if tail.receivers == 0 {
                drop(tail);
                // Without budget, completion is postponed once, and not at all if the future has
                // waited, because a future that is polled beside it may use up the budget of
                // every poll.
                let comes = waiter.state() == WaiterState::Out && !replace(&mut this.put_off, true);
                if comes || budget::has_remaining() {
                    ready!(budget::poll_proceed(cx)).spend();
                }
                return Poll::Ready(());
            }
            // SAFETY: 1. of `enqueue`: we own the waiter, and `Drop` removes it. 2. `closers` is
            // the only wait queue that it joins.
            if unsafe { enqueue(&mut tail.closers, waiter, (), cx.waker(), &mut spare) } {
                drop(tail);
                thread_context::waits_for(WaitReason::Close);
                return Poll::Pending;
            }
            drop(tail);
            spare = Some(cx.waker().clone());
        }
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        if self.waiter.state() != WaiterState::In {
            return;
        }
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let (shared, waiter) = unsafe { Pin::new_unchecked(&*self) }.waiter();
        // SAFETY: 1. of `remove`: we own the waiter. 2. `closers` is the only wait queue that it
        // joins.
        let waker = unsafe { shared.tail().closers.remove(waiter) };
        // The lock was released at the end of the statement above.
        drop(waker);
    }
}
