//! A oneshot channel without an allocation: its halves borrow a [`Slot`].

use std::{
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    core::{Borrowed, Core, Rx, Tx},
    error::{RecvError, TryRecvError},
};
use crate::sync::blocking;

/// Storage for a oneshot channel on the stack, in a struct, or in a future.
///
/// [`split`](Self::split) creates two halves that borrow the slot. They behave like [`Sender`]
/// and [`Receiver`], but nothing is allocated. A slot can be split again when its halves were
/// dropped.
///
/// [`Sender`]: super::Sender
/// [`Receiver`]: super::Receiver
///
/// # Examples
///
/// ```
/// use blitz_io::sync::oneshot::Slot;
///
/// blitz_io::run(async {
///     let mut slot = Slot::new();
///     for n in 0..3 {
///         let (tx, rx) = slot.split();
///         let (sent, received) = blitz_io::join!(async { tx.send(n) }, rx);
///         assert_eq!((sent, received), (Ok(()), Ok(n)));
///     }
/// });
/// ```
pub struct Slot<T> {
    core: Core<T>,
}

impl<T> Slot<T> {
    /// Creates an empty slot.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, rx) = slot.split();
    /// tx.send("hello").unwrap();
    /// assert_eq!(rx.blocking_recv(), Ok("hello"));
    /// ```
    #[cfg(not(blitz_loom))]
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { core: Core::new() }
    }

    /// Creates an empty slot; not `const`, because the model checker's atomics have no `const`
    /// constructor.
    #[cfg(blitz_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { core: Core::new() }
    }

    /// Creates the two halves of a new channel in this slot.
    ///
    /// If earlier halves were leaked with [`std::mem::forget`], their value and wakers are
    /// dropped first.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let received = std::thread::scope(|scope| {
    ///     let (tx, rx) = slot.split();
    ///     scope.spawn(move || tx.send(42));
    ///     rx.blocking_recv()
    /// });
    /// assert_eq!(received, Ok(42));
    /// ```
    #[inline]
    pub fn split(&mut self) -> (SlotSender<'_, T>, SlotReceiver<'_, T>) {
        let (tx, rx) = self.core.borrow();
        (SlotSender { half: tx, slot: PhantomData }, SlotReceiver { half: rx, slot: PhantomData })
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Slot<T> {
    #[inline]
    fn drop(&mut self) {
        self.core.reset();
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("state", &self.core).finish()
    }
}

/// Sends the value of a [`Slot`] to the [`SlotReceiver`].
///
/// # Examples
///
/// ```
/// use blitz_io::sync::oneshot::{Slot, SlotSender};
///
/// fn reply(tx: SlotSender<'_, u32>) {
///     tx.send(42).unwrap();
/// }
///
/// let mut slot = Slot::new();
/// let (tx, rx) = slot.split();
/// reply(tx);
/// assert_eq!(rx.blocking_recv(), Ok(42));
/// ```
pub struct SlotSender<'a, T> {
    half: Tx<T, Borrowed>,
    slot: PhantomData<&'a mut Slot<T>>,
}

impl<T> SlotSender<'_, T> {
    /// Sends the value without waiting, like [`Sender::send`](super::Sender::send).
    ///
    /// # Errors
    /// Returns the value if the receiver was dropped or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, rx) = slot.split();
    /// drop(rx);
    /// assert_eq!(tx.send(1), Err(1));
    /// ```
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        self.half.send(value)
    }

    /// Waits until the receiver is dropped or closed, like
    /// [`Sender::closed`](super::Sender::closed).
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost, and the next call continues to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// blitz_io::run(async {
    ///     let mut slot = Slot::<u32>::new();
    ///     let (mut tx, rx) = slot.split();
    ///     blitz_io::join!(tx.closed(), async { drop(rx) });
    /// });
    /// ```
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Returns `true` if the receiver was dropped or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::<u32>::new();
    /// let (tx, mut rx) = slot.split();
    /// assert!(!tx.is_closed());
    /// rx.close();
    /// assert!(tx.is_closed());
    /// ```
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.half.is_closed()
    }

    /// Polls for the drop or close of the receiver, for hand-written futures.
    ///
    /// The counterpart of [`closed`](Self::closed). Only the waker of the most recent call is
    /// woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Waker};
    ///
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::<u32>::new();
    /// let (mut tx, rx) = slot.split();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(tx.poll_closed(&mut cx).is_pending());
    /// drop(rx);
    /// assert!(tx.poll_closed(&mut cx).is_ready());
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.half.poll_closed(cx)
    }
}

impl<T> fmt::Debug for SlotSender<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotSender").field("state", self.half.core()).finish()
    }
}

/// A future that receives the value of a [`Slot`], like [`Receiver`](super::Receiver).
///
/// # Cancel safety
/// Cancel safe: await `&mut receiver`, which may be dropped at any moment, because the value
/// stays in the channel.
///
/// # Panics
/// If it is polled after it has completed.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::oneshot::Slot;
///
/// blitz_io::run(async {
///     let mut slot = Slot::<u32>::new();
///     let (tx, rx) = slot.split();
///     drop(tx);
///     assert!(rx.await.is_err());
/// });
/// ```
pub struct SlotReceiver<'a, T> {
    half: Rx<T, Borrowed>,
    slot: PhantomData<&'a mut Slot<T>>,
}

impl<T> SlotReceiver<'_, T> {
    /// Closes the channel, so that a value that was not sent yet is refused.
    ///
    /// Behaves like [`Receiver::close`](super::Receiver::close).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, mut rx) = slot.split();
    /// rx.close();
    /// assert_eq!(tx.send(1), Err(1));
    /// ```
    pub fn close(&mut self) {
        self.half.close();
    }

    /// Returns `true` if the receiver has completed, with a value or an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, mut rx) = slot.split();
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_terminated());
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert!(rx.is_terminated());
    /// ```
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.half.is_terminated()
    }

    /// Returns `true` if there is no value now.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, rx) = slot.split();
    /// assert!(rx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_empty());
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.half.is_empty()
    }

    /// Receives the value if it was sent, without waiting.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the value may still come. [`TryRecvError::Closed`] if not, as
    /// in [`Receiver::try_recv`](super::Receiver::try_recv).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::{Slot, error::TryRecvError};
    ///
    /// let mut slot = Slot::new();
    /// let (tx, mut rx) = slot.split();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.half.try_recv()
    }

    /// Receives the value, blocking the thread until it is sent.
    ///
    /// # Errors
    /// If no value was sent and none can come.
    ///
    /// # Panics
    /// If called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, rx) = slot.split();
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.blocking_recv(), Ok(1));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        blocking::block_on(self, "await the receiver")
    }
}

impl<T> Future for SlotReceiver<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().half.poll(cx)
    }
}

impl<T> fmt::Debug for SlotReceiver<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotReceiver").field("state", &self.half.core()).finish()
    }
}
