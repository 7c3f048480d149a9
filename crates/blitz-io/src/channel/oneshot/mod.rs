//! A oneshot channel: sends a single value from one task to another.
//!
//! [`channel`] creates a [`Sender`] and a [`Receiver`]. Sending never waits, so any code can do
//! it, inside a runtime or not. The receiver is a future: await it, or await `&mut receiver` in
//! a loop.
//!
//! The two halves share one small allocation. Where both can borrow from one place, a [`Slot`]
//! is a oneshot channel without an allocation.
//!
//! ```
//! use blitz_io::sync::oneshot;
//!
//! blitz_io::run(async {
//!     let (tx, rx) = oneshot::channel();
//!     blitz_io::spawn(async move { tx.send(6 * 7) });
//!     assert_eq!(rx.await, Ok(42));
//! });
//! ```
//!
//! If the sender is dropped without sending, the receiver gets an error:
//!
//! ```
//! use blitz_io::sync::oneshot;
//!
//! blitz_io::run(async {
//!     let (tx, rx) = oneshot::channel::<u32>();
//!     drop(tx);
//!     assert!(rx.await.is_err());
//! });
//! ```

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

mod core;
pub mod error;
mod slot;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

use self::{
    core::{Core, Heap, Rx, Tx},
    error::{RecvError, TryRecvError},
};
use crate::sync::blocking;

pub use self::slot::{Slot, SlotReceiver, SlotSender};

/// Creates a new channel for one value.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::oneshot;
///
/// let (tx, rx) = oneshot::channel();
/// std::thread::spawn(move || tx.send("hello"));
/// assert_eq!(rx.blocking_recv(), Ok("hello"));
/// ```
#[inline]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (tx, rx) = Core::on_heap();
    (Sender { half: tx }, Receiver { half: rx })
}

/// Sends one value to the [`Receiver`].
///
/// # Examples
///
/// To send from a destructor, keep the sender in an `Option`:
///
/// ```
/// use blitz_io::sync::oneshot::{self, Sender};
///
/// struct Farewell(Option<Sender<&'static str>>);
///
/// impl Drop for Farewell {
///     fn drop(&mut self) {
///         let _ = self.0.take().expect("it is dropped once").send("goodbye");
///     }
/// }
///
/// let (tx, rx) = oneshot::channel();
/// drop(Farewell(Some(tx)));
/// assert_eq!(rx.blocking_recv(), Ok("goodbye"));
/// ```
pub struct Sender<T> {
    half: Tx<T, Heap>,
}

impl<T> Sender<T> {
    /// Sends the value without waiting, and wakes the receiver if it waits.
    ///
    /// `Ok` does not mean that the value was received: the receiver may be dropped without
    /// looking, and then drops the value.
    ///
    /// # Errors
    /// Returns the value if the receiver was dropped or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// assert_eq!(tx.send(1), Ok(()));
    /// assert_eq!(rx.blocking_recv(), Ok(1));
    ///
    /// let (tx, rx) = oneshot::channel();
    /// drop(rx);
    /// assert_eq!(tx.send(2), Err(2));
    /// ```
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        self.half.send(value)
    }

    /// Waits until the receiver is dropped or closed, so that the value is no longer wanted.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost, and the next call continues to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// blitz_io::run(async {
    ///     let (mut tx, rx) = oneshot::channel::<u32>();
    ///     blitz_io::spawn(async move { drop(rx) });
    ///     tx.closed().await;
    ///     assert!(tx.is_closed());
    /// });
    /// ```
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Returns `true` if the receiver was dropped or closed.
    ///
    /// Once it was, `send` fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel::<u32>();
    /// assert!(!tx.is_closed());
    /// drop(rx);
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
    /// use std::future::poll_fn;
    ///
    /// use blitz_io::sync::oneshot;
    ///
    /// blitz_io::run(async {
    ///     let (mut tx, mut rx) = oneshot::channel::<u32>();
    ///     blitz_io::spawn(async move { rx.close() });
    ///     poll_fn(|cx| tx.poll_closed(cx)).await;
    ///     assert_eq!(tx.send(1), Err(1));
    /// });
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.half.poll_closed(cx)
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("state", self.half.core()).finish()
    }
}

/// A future that receives the value of the [`Sender`].
///
/// Completes with [`RecvError`] if the sender is dropped without sending, or after
/// [`close`](Self::close).
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
/// use blitz_io::sync::oneshot;
///
/// blitz_io::run(async {
///     let (tx, mut rx) = oneshot::channel();
///     let mut turns = 0;
///     blitz_io::spawn(async move { tx.send("enough") });
///     let word = loop {
///         blitz_io::select! {
///             biased;
///             word = &mut rx => break word,
///             () = blitz_io::task::yield_now() => turns += 1,
///         }
///     };
///     assert_eq!(word, Ok("enough"));
/// });
/// ```
pub struct Receiver<T> {
    half: Rx<T, Heap>,
}

impl<T> Receiver<T> {
    /// Closes the channel, so that a value that was not sent yet is refused.
    ///
    /// From now on `send` fails, and a sender that waits in [`Sender::closed`] is woken. A value
    /// that was sent before can still be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// rx.close();
    /// assert_eq!(tx.send("too late"), Err("too late"));
    /// assert!(rx.try_recv().is_err());
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// tx.send("in time").unwrap();
    /// rx.close();
    /// assert_eq!(rx.try_recv(), Ok("in time"));
    /// ```
    pub fn close(&mut self) {
        self.half.close();
    }

    /// Returns `true` if the receiver has completed, with a value or an error.
    ///
    /// Polling it again would panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// blitz_io::run(async {
    ///     let (tx, mut rx) = oneshot::channel::<u32>();
    ///     drop(tx);
    ///     assert!(!rx.is_terminated());
    ///     assert!((&mut rx).await.is_err());
    ///     assert!(rx.is_terminated());
    /// });
    /// ```
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.half.is_terminated()
    }

    /// Returns `true` if there is no value now: it was not sent, or was already received.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert!(rx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_empty());
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert!(rx.is_empty());
    /// ```
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.half.is_empty()
    }

    /// Receives the value if it was sent, without waiting.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the value may still come. [`TryRecvError::Closed`] if not,
    /// because the sender was dropped, the channel was closed, or the value was received before.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::oneshot::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
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
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let waits = std::thread::spawn(move || rx.blocking_recv());
    /// tx.send(10).unwrap();
    /// assert_eq!(waits.join().unwrap(), Ok(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        blocking::block_on(self, "await the receiver")
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    #[inline]
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().half.poll(cx)
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("state", &self.half.core()).finish()
    }
}
