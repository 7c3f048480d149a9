//! Streams of `broadcast` and `watch` receivers, which are awaited through futures that borrow
//! them.
//!
//! A future that borrows the receiver cannot be stored beside it, so a wait takes ownership of the
//! receiver and returns it at its end. The receiver is first polled without a box, so a value that
//! is already available costs no allocation, and a wait costs one.

use std::{
    error, fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use crate::channel::{
    broadcast::{self, error::RecvError},
    watch,
};

/// A wait that owns the receiver. The mutex is never locked; it makes the type `Sync` even though
/// the future may not be.
type Wait<R, T> = Mutex<Pin<Box<dyn Future<Output = (R, T)> + Send>>>;

/// A receiver, or the wait that owns it.
enum ReceiverSlot<R, T> {
    Idle(R),
    Waiting(Wait<R, T>),
    /// A transient state during a change; permanent only if a wait panicked.
    Lost,
}

impl<R, T> ReceiverSlot<R, T> {
    /// Polls for a value: first with `try_poll`, which borrows the receiver, and if there is no
    /// value yet with `wait`, which takes ownership of it.
    fn poll<F>(
        &mut self,
        cx: &mut Context<'_>,
        try_poll: impl FnOnce(&mut R, &mut Context<'_>) -> Poll<T>,
        wait: impl FnOnce(R) -> F,
    ) -> Poll<T>
    where
        F: Future<Output = (R, T)> + Send + 'static,
    {
        if let ReceiverSlot::Idle(receiver) = self {
            if let Poll::Ready(value) = try_poll(receiver, cx) {
                return Poll::Ready(value);
            }
            let ReceiverSlot::Idle(receiver) = std::mem::replace(self, ReceiverSlot::Lost) else {
                unreachable!("it was `Idle` three lines above")
            };
            *self = ReceiverSlot::Waiting(Mutex::new(Box::pin(wait(receiver))));
        }
        let ReceiverSlot::Waiting(wait) = self else {
            panic!("polled after a wait for it panicked: make another stream instead")
        };
        let wait = wait.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (receiver, value) = ready!(wait.as_mut().poll(cx));
        *self = ReceiverSlot::Idle(receiver);
        Poll::Ready(value)
    }
}

/// A stream of the values of a broadcast channel, which ends when all senders are dropped.
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::broadcast, stream::{StreamExt, wrappers::BroadcastStream}};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = broadcast::channel(2);
/// sender.send(1).unwrap();
/// drop(sender);
/// let mut stream = BroadcastStream::new(receiver);
/// assert_eq!(stream.next().await, Some(Ok(1)));
/// assert_eq!(stream.next().await, None);
/// # });
/// ```
pub struct BroadcastStream<T> {
    receiver_slot: ReceiverSlot<broadcast::Receiver<T>, Result<T, RecvError>>,
}

/// The error of a [`BroadcastStream`] that did not receive values in time.
///
/// # Examples
///
/// ```
/// use blitz_io::{
///     channel::broadcast,
///     stream::{StreamExt, wrappers::{BroadcastStream, errors::BroadcastStreamRecvError}},
/// };
///
/// # blitz_io::run(async {
/// let (sender, receiver) = broadcast::channel(1);
/// sender.send(1).unwrap();
/// sender.send(2).unwrap();
/// let mut stream = BroadcastStream::new(receiver);
/// assert_eq!(stream.next().await, Some(Err(BroadcastStreamRecvError::Lagged(1))));
/// assert_eq!(stream.next().await, Some(Ok(2)));
/// # });
/// ```
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum BroadcastStreamRecvError {
    /// This many values were overwritten before they were received. The stream continues with the
    /// oldest value that is left.
    Lagged(u64),
}

/// A stream of the values of a watch channel: the current one, and then each value that it
/// observes. It ends when all senders are dropped.
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::watch, stream::{StreamExt, wrappers::WatchStream}};
///
/// # blitz_io::run(async {
/// let (sender, receiver) = watch::channel("first");
/// let mut stream = WatchStream::new(receiver);
/// assert_eq!(stream.next().await, Some("first"));
/// sender.send("second").unwrap();
/// assert_eq!(stream.next().await, Some("second"));
/// drop(sender);
/// assert_eq!(stream.next().await, None);
/// # });
/// ```
pub struct WatchStream<T> {
    receiver_slot: ReceiverSlot<watch::Receiver<T>, Option<T>>,
    /// Set while the current value counts as not yet seen.
    first: bool,
}

impl<T: 'static + Clone + Send> BroadcastStream<T> {
    /// Creates a stream from a receiver.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{channel::broadcast, stream::wrappers::BroadcastStream};
    ///
    /// let (sender, receiver) = broadcast::channel::<u8>(2);
    /// let stream = BroadcastStream::new(receiver);
    /// ```
    pub fn new(rx: broadcast::Receiver<T>) -> Self {
        Self { receiver_slot: ReceiverSlot::Idle(rx) }
    }
}

impl<T: 'static + Clone + Send + Sync> WatchStream<T> {
    /// Creates a stream that begins with the current value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{channel::watch, stream::wrappers::WatchStream};
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// let stream = WatchStream::new(receiver);
    /// ```
    pub fn new(rx: watch::Receiver<T>) -> Self {
        Self { receiver_slot: ReceiverSlot::Idle(rx), first: true }
    }

    /// Creates a stream that begins with the first value that the receiver has not seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{channel::watch, stream::{StreamExt, wrappers::WatchStream}};
    ///
    /// # blitz_io::run(async {
    /// let (sender, receiver) = watch::channel(1);
    /// let mut stream = WatchStream::from_changes(receiver);
    /// sender.send(2).unwrap();
    /// assert_eq!(stream.next().await, Some(2));
    /// # });
    /// ```
    pub fn from_changes(rx: watch::Receiver<T>) -> Self {
        Self { receiver_slot: ReceiverSlot::Idle(rx), first: false }
    }
}

impl<T: 'static + Clone + Send> Stream for BroadcastStream<T> {
    type Item = Result<T, BroadcastStreamRecvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let try_poll = |receiver: &mut broadcast::Receiver<T>, cx: &mut Context<'_>| {
            pin!(receiver.recv()).poll(cx)
        };
        let wait = |mut receiver: broadcast::Receiver<T>| async move {
            let received = receiver.recv().await;
            (receiver, received)
        };
        Poll::Ready(match ready!(self.receiver_slot.poll(cx, try_poll, wait)) {
            Ok(value) => Some(Ok(value)),
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(count)) => Some(Err(BroadcastStreamRecvError::Lagged(count))),
        })
    }
}

impl<T: 'static + Clone + Send + Sync> Stream for WatchStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Self { receiver_slot, first } = self.get_mut();
        if std::mem::take(first)
            && let ReceiverSlot::Idle(receiver) = receiver_slot
        {
            return Poll::Ready(Some(receiver.borrow_and_update().clone()));
        }
        let try_poll = |receiver: &mut watch::Receiver<T>, cx: &mut Context<'_>| {
            let changed = ready!(pin!(receiver.changed()).poll(cx));
            Poll::Ready(changed.ok().map(|()| receiver.borrow_and_update().clone()))
        };
        let wait = |mut receiver: watch::Receiver<T>| async move {
            let changed = receiver.changed().await;
            let value = changed.ok().map(|()| receiver.borrow_and_update().clone());
            (receiver, value)
        };
        receiver_slot.poll(cx, try_poll, wait)
    }
}

impl<T: 'static + Clone + Send> From<broadcast::Receiver<T>> for BroadcastStream<T> {
    fn from(receiver: broadcast::Receiver<T>) -> Self {
        Self::new(receiver)
    }
}

impl<T: 'static + Clone + Send + Sync> From<watch::Receiver<T>> for WatchStream<T> {
    fn from(receiver: watch::Receiver<T>) -> Self {
        Self::new(receiver)
    }
}

/// No field is structurally pinned, because a wait is in a box.
impl<T> Unpin for BroadcastStream<T> {}

/// No field is structurally pinned, because a wait is in a box.
impl<T> Unpin for WatchStream<T> {}

impl<T> fmt::Debug for BroadcastStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastStream").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for WatchStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").finish_non_exhaustive()
    }
}

impl fmt::Display for BroadcastStreamRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Lagged(count) = self;
        write!(
            f,
            "channel lagged by {count}: values were overwritten before they were seen; receive \
             sooner, or make the channel larger"
        )
    }
}

impl error::Error for BroadcastStreamRecvError {}
