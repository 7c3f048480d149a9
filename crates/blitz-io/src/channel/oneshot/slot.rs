//! A oneshot channel without an allocation: its halves borrow the place where it is.

use std::{
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    core::{Core, Lent, Rx, Tx},
    error::{RecvError, TryRecvError},
};
use crate::sync::outside;

/// Room for a oneshot channel, wherever its owner keeps it: on the stack, in a struct,
/// in a future.
///
/// [`split`](Self::split) makes two halves that borrow it. They do what [`Sender`] and
/// [`Receiver`] do, and nothing is allocated. A slot can be split again when its halves
/// are gone.
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
    /// An empty slot.
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

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { core: Core::new() }
    }

    /// The two halves of a new channel in this slot.
    ///
    /// Whatever the halves before have left, because they were forgotten
    /// ([`std::mem::forget`]), is dropped first.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let answer = std::thread::scope(|scope| {
    ///     let (tx, rx) = slot.split();
    ///     scope.spawn(move || tx.send(42));
    ///     rx.blocking_recv()
    /// });
    /// assert_eq!(answer, Ok(42));
    /// ```
    #[inline]
    pub fn split(&mut self) -> (SlotSender<'_, T>, SlotReceiver<'_, T>) {
        let (tx, rx) = self.core.lend();
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

/// Sends the value of a [`Slot`].
///
/// # Examples
///
/// ```
/// use blitz_io::sync::oneshot::{Slot, SlotSender};
///
/// fn answer(tx: SlotSender<'_, u32>) {
///     tx.send(42).unwrap();
/// }
///
/// let mut slot = Slot::new();
/// let (tx, rx) = slot.split();
/// answer(tx);
/// assert_eq!(rx.blocking_recv(), Ok(42));
/// ```
pub struct SlotSender<'a, T> {
    half: Tx<T, Lent>,
    slot: PhantomData<&'a mut Slot<T>>,
}

impl<T> SlotSender<'_, T> {
    /// Sends the value, as [`Sender::send`](super::Sender::send).
    ///
    /// # Errors
    /// The value itself, if the receiver is gone or closed.
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

    /// Waits until the receiver is gone or closed, as
    /// [`Sender::closed`](super::Sender::closed).
    ///
    /// # Cancel safety
    /// Safe to drop at any moment: nothing is lost, and the next call goes on.
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

    /// Whether the receiver is gone or closed.
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

    /// As [`closed`](Self::closed), for those who poll by hand. Only the waker of the
    /// last call is woken.
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

/// Receives the value of a [`Slot`]: a future, as [`Receiver`](super::Receiver).
///
/// # Cancel safety
/// Await `&mut` of it and drop that at any moment: the value stays in the channel.
///
/// # Panics
/// If it is polled after it has answered.
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
    half: Rx<T, Lent>,
    slot: PhantomData<&'a mut Slot<T>>,
}

impl<T> SlotReceiver<'_, T> {
    /// Refuses a value that is not sent yet, as
    /// [`Receiver::close`](super::Receiver::close).
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

    /// Whether it has answered, by a value or an error.
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

    /// Whether there is no value now.
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

    /// The value, if it is there.
    ///
    /// # Errors
    /// As [`Receiver::try_recv`](super::Receiver::try_recv).
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

    /// Waits for the value on this thread.
    ///
    /// # Errors
    /// If nothing was sent and nothing will be.
    ///
    /// # Panics
    /// Inside an asynchronous context.
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
        outside::wait_for(self, "await the receiver")
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
