//! The sending half of an mpmc channel.

use std::{
    fmt,
    future::Future,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};

use super::{
    chan::{Chan, Refused},
    error::{SendError, TrySendError},
    queue::QueueWaiter,
    weak::WeakSender,
};
use crate::{
    engine::work::{
        task::{budget::BudgetUnit, timestamp::WaitReason},
        thread_context,
    },
    sync::blocking,
};

/// The sending half of an mpmc channel; see [`channel`](super::channel).
///
/// # Examples
///
/// ```
/// use blitz_io::channel::mpmc;
///
/// let (tx, rx) = mpmc::channel(4);
/// let other = tx.clone();
/// tx.try_send("from one").unwrap();
/// other.try_send("from the other").unwrap();
/// assert_eq!(rx.drain().collect::<Vec<_>>(), ["from one", "from the other"]);
/// ```
pub struct Sender<T> {
    chan: NonNull<Chan<T>>,
}

// SAFETY: the handle is a shared reference to a `Chan<T>`, which threads may share if `T: Send`,
// and dropping the last handle drops at most values of type `T`.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: a `&Sender` gives only a shared reference to a `Chan<T>`, which threads may share if
// `T: Send`.
unsafe impl<T: Send> Sync for Sender<T> {}
// A panic in user code never leaves the channel in an inconsistent state.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// # Safety
    /// 1. The caller has counted a sender of that channel for the returned handle.
    pub(super) unsafe fn new(chan: NonNull<Chan<T>>) -> Self {
        Self { chan }
    }

    #[inline]
    fn chan(&self) -> &Chan<T> {
        // SAFETY: the senders hold a share of the allocation while at least one is counted, and
        // this one is.
        unsafe { self.chan.as_ref() }
    }

    /// Sends a message, waiting while the channel is full.
    ///
    /// # Errors
    /// Returns the message in the error if the channel is closed.
    ///
    /// # Cancel safety
    /// If the future is dropped before it completes, the message was not sent, and is dropped
    /// with it. No capacity is lost: the next waiting sender is woken for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// blitz_io::run(async {
    ///     let (tx, rx) = mpmc::channel(1);
    ///     blitz_io::spawn(async move {
    ///         for n in 0..3 {
    ///             tx.send(n).await.unwrap();
    ///         }
    ///     });
    ///     let mut got = Vec::new();
    ///     while let Some(n) = rx.recv().await {
    ///         got.push(n);
    ///     }
    ///     assert_eq!(got, [0, 1, 2]);
    /// });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> {
        let chan = self.chan();
        Sending { chan, value: Some(value), queue_waiter: QueueWaiter::new(&chan.for_room) }
    }

    /// Sends a message if there is free capacity now.
    ///
    /// # Errors
    /// Returns the message in the error, which says whether the channel is full or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc::{self, error::TrySendError};
    ///
    /// let (tx, rx) = mpmc::channel(1);
    /// assert_eq!(tx.try_send(1), Ok(()));
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// drop(rx);
    /// assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
    /// ```
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.chan().try_send(value)
    }

    /// Sends a message, blocking the thread while the channel is full.
    ///
    /// # Errors
    /// Returns the message in the error if the channel is closed.
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
    /// let sender = std::thread::spawn(move || (0..3).try_for_each(|n| tx.blocking_send(n)));
    /// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(0), Some(1)));
    /// assert_eq!(rx.blocking_recv(), Some(2));
    /// sender.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        blocking::block_on(self.send(value), "use `send`")
    }

    /// Waits until the channel is closed, by a call of `close` or because all receivers were
    /// dropped.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// blitz_io::run(async {
    ///     let (tx, rx) = mpmc::channel::<u32>(1);
    ///     blitz_io::spawn(async move { drop(rx) });
    ///     tx.closed().await;
    ///     assert!(tx.is_closed());
    /// });
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> {
        let chan = self.chan();
        Closing { chan, queue_waiter: QueueWaiter::new(&chan.for_close) }
    }

    /// Closes the channel: later sends fail, but queued messages can still be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::channel::mpmc;
    ///
    /// let (tx, rx) = mpmc::channel(2);
    /// tx.try_send(1).unwrap();
    /// tx.close();
    /// assert!(tx.try_send(2).is_err());
    /// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), None));
    /// ```
    pub fn close(&self) {
        self.chan().close();
    }

    /// Returns `true` if the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.chan().is_closed()
    }

    /// Returns `true` if both senders belong to the same channel.
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

    /// Creates a sender that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel(1);
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().try_send(1).unwrap();
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), None));
    /// ```
    #[must_use = "a weak sender does nothing by itself"]
    pub fn downgrade(&self) -> WeakSender<T> {
        // SAFETY: 1. of `WeakSender::new`: the senders hold a share, so the channel is alive.
        unsafe { WeakSender::new(self.chan) }
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, _rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let other = tx.clone();
    /// assert_eq!(other.strong_count(), 2);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan().senders.strong()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, _rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let _weak = tx.downgrade();
    /// assert_eq!(tx.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan().senders.weak()
    }

    /// Returns the number of receivers; weak receivers do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let _other = rx.clone();
    /// assert_eq!(tx.receiver_count(), 2);
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.chan().receivers.strong()
    }
}

/// Future of [`Sender::send`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
struct Sending<'a, T> {
    chan: &'a Chan<T>,
    /// `Some` until the message is sent or returned.
    value: Option<T>,
    queue_waiter: QueueWaiter<'a>,
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: only the `queue_waiter` field is structurally pinned, and it is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        let unit = ready!(this.queue_waiter.proceed(cx));
        // SAFETY: `queue_waiter` is pinned with this future.
        let queue_waiter = unsafe { Pin::new_unchecked(&this.queue_waiter) };
        let attempt = || match this.chan.send_from(&mut this.value) {
            Err(Refused::NotNow) => None,
            outcome => Some(outcome),
        };
        let Poll::Ready((outcome, dismissed)) = queue_waiter.poll(cx, attempt) else {
            thread_context::waits_for(WaitReason::Room);
            return Poll::Pending;
        };
        unit.iter().for_each(BudgetUnit::spend);
        if dismissed {
            this.chan.pass_on_room();
        }
        Poll::Ready(match outcome {
            Ok(()) => Ok(()),
            Err(_) => Err(SendError(this.value.take().expect("it was refused, not sent"))),
        })
    }
}

/// Future of [`Sender::closed`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
struct Closing<'a, T> {
    chan: &'a Chan<T>,
    queue_waiter: QueueWaiter<'a>,
}

impl<T> Future for Closing<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.into_ref().get_ref();
        let unit = ready!(this.queue_waiter.proceed(cx));
        // SAFETY: `queue_waiter` is pinned with this future, and is not moved.
        let queue_waiter = unsafe { Pin::new_unchecked(&this.queue_waiter) };
        if queue_waiter.poll(cx, || this.chan.is_closed().then_some(())).is_pending() {
            thread_context::waits_for(WaitReason::Close);
            return Poll::Pending;
        }
        unit.iter().for_each(BudgetUnit::spend);
        Poll::Ready(())
    }
}

impl<T> Clone for Sender<T> {
    #[inline]
    fn clone(&self) -> Self {
        self.chan().senders.add();
        Self { chan: self.chan }
    }
}

impl<T> Drop for Sender<T> {
    #[inline]
    fn drop(&mut self) {
        if self.chan().senders.remove() {
            self.chan().close();
            // SAFETY: 1. of `give_up`: this is the share of all senders, and the last of them is
            // being dropped.
            unsafe { Chan::give_up(self.chan) };
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("chan", self.chan()).finish()
    }
}
