//! The receiving half of an mpmc channel.

use std::{
    fmt,
    future::Future,
    iter::FusedIterator,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};

use super::{
    chan::{Chan, Refused},
    error::TryRecvError,
    queue::QueueWaiter,
    weak::WeakReceiver,
};
use crate::{
    engine::{
        prim::discard,
        work::{
            task::{budget::BudgetUnit, timestamp::WaitReason},
            thread_context,
        },
    },
    sync::blocking,
};

/// The receiving half of an mpmc channel; see [`channel`](super::channel).
///
/// Each message goes to exactly one of the clones, which may be any of them.
///
/// # Examples
///
/// ```
/// use blitz_io::channel::mpmc;
///
/// let (tx, rx) = mpmc::channel(2);
/// let other = rx.clone();
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!((rx.try_recv(), other.try_recv()), (Ok(1), Ok(2)));
/// ```
pub struct Receiver<T> {
    chan: NonNull<Chan<T>>,
}

// SAFETY: the handle is a shared reference to a `Chan<T>`, which threads may share if `T: Send`,
// and it moves values of type `T` out.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: a `&Receiver` gives only a shared reference to a `Chan<T>` and moves values out, which
// is sound if `T: Send`.
unsafe impl<T: Send> Sync for Receiver<T> {}
// A panic in user code never leaves the channel in an inconsistent state.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// # Safety
    /// 1. The caller has counted a receiver of that channel for the returned handle.
    pub(super) unsafe fn new(chan: NonNull<Chan<T>>) -> Self {
        Self { chan }
    }

    #[inline]
    fn chan(&self) -> &Chan<T> {
        // SAFETY: the receivers hold a share of the allocation while at least one is counted,
        // and this one is.
        unsafe { self.chan.as_ref() }
    }

    /// Waits for a message and returns it, or `None` once the channel is closed and empty.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, no message was received, and the next
    /// waiting receiver is woken for the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// blitz_io::run(async {
    ///     let (tx, rx) = mpmc::channel(1);
    ///     blitz_io::spawn(async move { tx.send("hello").await });
    ///     assert_eq!(rx.recv().await, Some("hello"));
    ///     assert_eq!(rx.recv().await, None);
    /// });
    /// ```
    #[inline]
    pub fn recv(&self) -> impl Future<Output = Option<T>> {
        let chan = self.chan();
        Receiving { chan, queue_waiter: QueueWaiter::new(&chan.for_message) }
    }

    /// Receives the next message if one is queued, without waiting.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if a message may still come (or if the next one is being written
    /// at this moment), [`TryRecvError::Disconnected`] if none can come.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc::{self, error::TryRecvError};
    ///
    /// let (tx, rx) = mpmc::channel(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(1).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.chan().try_recv()
    }

    /// Receives a message, blocking the thread until there is one.
    ///
    /// Returns `None` once the channel is closed and empty.
    ///
    /// # Panics
    /// If called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// let (tx, rx) = mpmc::channel(1);
    /// let receiver = std::thread::spawn(move || rx.blocking_recv());
    /// tx.blocking_send(1).unwrap();
    /// assert_eq!(receiver.join().unwrap(), Some(1));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        blocking::block_on(self.recv(), "use `recv`")
    }

    /// Receives up to `limit` messages into `buffer` and returns their number.
    ///
    /// Waits for the first message, then takes the ones that are queued behind it. Returns zero
    /// only if `limit` is zero, or once the channel is closed and empty.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped before it completes, no message was received.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// blitz_io::run(async {
    ///     let (tx, rx) = mpmc::channel(4);
    ///     for n in 0..4 {
    ///         tx.send(n).await.unwrap();
    ///     }
    ///     let mut buffer = Vec::new();
    ///     assert_eq!(rx.recv_many(&mut buffer, 3).await, 3);
    ///     assert_eq!(rx.recv_many(&mut buffer, 3).await, 1);
    ///     assert_eq!(buffer, [0, 1, 2, 3]);
    /// });
    /// ```
    pub async fn recv_many(&self, buffer: &mut Vec<T>, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        let Some(first) = self.recv().await else { return 0 };
        buffer.push(first);
        let rest = std::iter::from_fn(|| self.try_recv().ok()).take(limit - 1);
        1 + rest.map(|value| buffer.push(value)).count()
    }

    /// Returns an iterator that takes the messages that are queued now, without waiting.
    ///
    /// Messages that the iterator has not yielded when it is dropped are dropped with it.
    ///
    /// Messages that are sent later stay in the channel; those that other receivers take
    /// meanwhile are not yielded.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// let (tx, rx) = mpmc::channel(4);
    /// for n in 0..4 {
    ///     tx.try_send(n).unwrap();
    /// }
    /// rx.close();
    /// assert_eq!(rx.drain().collect::<Vec<_>>(), [0, 1, 2, 3]);
    /// ```
    pub fn drain(&self) -> Drain<'_, T> {
        let chan = self.chan();
        Drain { chan, left: chan.len() }
    }

    /// Closes the channel: later sends fail, but queued messages can still be received.
    ///
    /// Has the same effect as [`Sender::close`](super::Sender::close).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// let (tx, rx) = mpmc::channel(2);
    /// tx.try_send(1).unwrap();
    /// rx.close();
    /// assert!(tx.try_send(2).is_err());
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    pub fn close(&self) {
        self.chan().close();
    }

    /// Returns `true` if the channel is closed.
    ///
    /// There may still be messages in it.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.chan().is_closed()
    }

    /// Returns `true` if both receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let (_tx, other) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// assert!(rx.same_channel(&rx.clone()) && tx.same_channel(&tx.clone()));
    /// assert!(!rx.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.chan == other.chan
    }

    /// Returns the number of messages that are queued now.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(3);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((tx.len(), rx.len()), (1, 1));
    /// ```
    pub fn len(&self) -> usize {
        self.chan().len()
    }

    /// Returns `true` if no message is queued now.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(3);
    /// assert!(tx.is_empty() && rx.is_empty());
    /// tx.try_send(1).unwrap();
    /// assert!(!tx.is_empty() && !rx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if there is no free capacity now.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(1);
    /// tx.try_send(1).unwrap();
    /// assert!(tx.is_full() && rx.is_full());
    /// ```
    pub fn is_full(&self) -> bool {
        self.capacity() == 0
    }

    /// Returns how many more messages the channel has capacity for now.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(3);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((tx.capacity(), rx.capacity()), (2, 2));
    /// ```
    pub fn capacity(&self) -> usize {
        self.max_capacity() - self.len()
    }

    /// Returns the capacity with which the channel was created.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(3);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((tx.max_capacity(), rx.max_capacity()), (3, 3));
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.chan().capacity()
    }

    /// Creates a receiver that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(1);
    /// let weak = rx.downgrade();
    /// tx.try_send(1).unwrap();
    /// assert_eq!(weak.upgrade().unwrap().try_recv(), Ok(1));
    /// drop(rx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(tx.is_closed());
    /// ```
    #[must_use = "a weak receiver does nothing by itself"]
    pub fn downgrade(&self) -> WeakReceiver<T> {
        // SAFETY: 1. of `WeakReceiver::new`: the receivers hold a share, so the channel is
        // alive.
        unsafe { WeakReceiver::new(self.chan) }
    }

    /// Returns the number of receivers; weak receivers do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (_tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let other = rx.clone();
    /// assert_eq!(other.strong_count(), 2);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan().receivers.strong()
    }

    /// Returns the number of weak receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// let (_tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let _weak = rx.downgrade();
    /// assert_eq!(rx.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan().receivers.weak()
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let _other = tx.clone();
    /// assert_eq!(rx.sender_count(), 2);
    /// ```
    pub fn sender_count(&self) -> usize {
        self.chan().senders.strong()
    }
}

/// Future of [`Receiver::recv`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
struct Receiving<'a, T> {
    chan: &'a Chan<T>,
    queue_waiter: QueueWaiter<'a>,
}

impl<T> Future for Receiving<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.into_ref().get_ref();
        let unit = ready!(this.queue_waiter.proceed(cx));
        // SAFETY: `queue_waiter` is pinned with this future, and is not moved.
        let queue_waiter = unsafe { Pin::new_unchecked(&this.queue_waiter) };
        let attempt = || match this.chan.recv_now() {
            Ok(value) => Some(Some(value)),
            Err(Refused::Closed) => Some(None),
            Err(Refused::NotNow) => None,
        };
        let Poll::Ready((outcome, dismissed)) = queue_waiter.poll(cx, attempt) else {
            thread_context::waits_for(WaitReason::Message);
            return Poll::Pending;
        };
        unit.iter().for_each(BudgetUnit::spend);
        if dismissed {
            this.chan.pass_on_messages();
        }
        Poll::Ready(outcome)
    }
}

/// An iterator over the messages that were queued; see [`Receiver::drain`].
///
/// # Examples
///
/// ```
/// use blitz_io::channel::mpmc;
///
/// let (tx, rx) = mpmc::channel(4);
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// let mut drain = rx.drain();
/// assert_eq!(drain.next(), Some(1));
/// drop(drain);
/// assert!(rx.is_empty(), "what was left is dropped");
/// ```
#[must_use = "what a drain has not given out is dropped with it"]
pub struct Drain<'a, T> {
    chan: &'a Chan<T>,
    /// The most messages that it still yields.
    left: usize,
}

impl<T> Iterator for Drain<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let value = self.chan.recv_now().ok();
        if value.is_none() {
            self.left = 0;
        }
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<T> FusedIterator for Drain<'_, T> {}

impl<T> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        /// Drops the remaining messages if the drop of one of them panics.
        struct Rest<'a, 'c, T>(&'a mut Drain<'c, T>);
        impl<T> Drop for Rest<'_, '_, T> {
            fn drop(&mut self) {
                self.0.for_each(discard);
            }
        }
        Rest(self).0.for_each(drop);
    }
}

impl<T> fmt::Debug for Drain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("left", &self.left).finish()
    }
}

impl<T> Clone for Receiver<T> {
    #[inline]
    fn clone(&self) -> Self {
        self.chan().receivers.add();
        Self { chan: self.chan }
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        if self.chan().receivers.remove() {
            self.chan().end_receivers();
            // SAFETY: 1. of `give_up`: this is the share of all receivers, and the last of them
            // is being dropped.
            unsafe { Chan::give_up(self.chan) };
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("chan", self.chan()).finish()
    }
}
