//! The side that sends.

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
    queue::Stand,
    weak::WeakSender,
};
use crate::{
    engine::work::{
        current,
        task::{budget::Unit, moment::Wait},
    },
    sync::outside,
};

/// Sends messages; see [`channel`](super::channel).
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

// SAFETY: it is a shared reference to a `Chan<T>`, which threads may share, and its
// last one drops a `T` at most.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Sender<T> {}
// No panic of a user's code leaves the channel half changed.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// # Safety
    /// 1. The caller has counted a sender of that channel, which is this one.
    pub(super) unsafe fn new(chan: NonNull<Chan<T>>) -> Self {
        Self { chan }
    }

    #[inline]
    fn chan(&self) -> &Chan<T> {
        // SAFETY: the senders have a share of it as long as one is counted.
        unsafe { self.chan.as_ref() }
    }

    /// Sends a message, and waits for room if there is none.
    ///
    /// # Errors
    /// The message itself, if the channel is closed.
    ///
    /// # Cancel safety
    /// If the future is dropped before it has answered, the message was not sent, and is
    /// dropped with it. No room is lost: it goes to the next who waits.
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
        Sending { chan, value: Some(value), stand: Stand::new(&chan.for_room) }
    }

    /// Sends a message if there is room now.
    ///
    /// # Errors
    /// The message itself, with whether the channel is full or closed.
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

    /// Sends a message, and waits for room on this thread.
    ///
    /// # Errors
    /// The message itself, if the channel is closed.
    ///
    /// # Panics
    /// Inside an asynchronous context.
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
        outside::wait_for(self.send(value), "use `send`")
    }

    /// Waits until the channel is closed: by somebody, or because all the receivers are
    /// gone.
    ///
    /// # Cancel safety
    /// Safe to drop at any moment.
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
        Closing { chan, stand: Stand::new(&chan.for_close) }
    }

    /// Closes the channel: nothing can be sent any more, what is queued can still be
    /// received.
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

    /// Whether the channel is closed.
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

    /// Whether both are of the same channel.
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

    /// How many messages are queued now.
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

    /// Whether no message is queued now.
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

    /// Whether there is no room now.
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

    /// For how many messages there is room now.
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

    /// For how many messages there is room in all: what [`channel`](super::channel) was
    /// called with.
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

    /// A sender that does not keep the channel open.
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
        // SAFETY: 1. we have a share, so it lives.
        unsafe { WeakSender::new(self.chan) }
    }

    /// How many senders there are, weak ones not counted.
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

    /// How many weak senders there are.
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

    /// How many receivers there are, weak ones not counted.
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
    /// There until it was sent or given back.
    value: Option<T>,
    stand: Stand<'a>,
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: of what is in it only the stand is pinned, which is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        let unit = ready!(this.stand.proceed(cx));
        // SAFETY: it is pinned with us.
        let stand = unsafe { Pin::new_unchecked(&this.stand) };
        let attempt = || match this.chan.send_from(&mut this.value) {
            Err(Refused::NotNow) => None,
            answer => Some(answer),
        };
        let Poll::Ready((answer, dismissed)) = stand.poll(cx, attempt) else {
            current::waits_for(Wait::Room);
            return Poll::Pending;
        };
        unit.iter().for_each(Unit::spend);
        if dismissed {
            this.chan.pass_on_room();
        }
        Poll::Ready(match answer {
            Ok(()) => Ok(()),
            Err(_) => Err(SendError(this.value.take().expect("it was refused, not sent"))),
        })
    }
}

/// Future of [`Sender::closed`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
struct Closing<'a, T> {
    chan: &'a Chan<T>,
    stand: Stand<'a>,
}

impl<T> Future for Closing<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.into_ref().get_ref();
        let unit = ready!(this.stand.proceed(cx));
        // SAFETY: it is pinned with us, and not moved.
        let stand = unsafe { Pin::new_unchecked(&this.stand) };
        if stand.poll(cx, || this.chan.is_closed().then_some(())).is_pending() {
            current::waits_for(Wait::Close);
            return Poll::Pending;
        }
        unit.iter().for_each(Unit::spend);
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
            // SAFETY: 1. the senders' share, which the last of them gives up.
            unsafe { Chan::give_up(self.chan) };
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("chan", self.chan()).finish()
    }
}
