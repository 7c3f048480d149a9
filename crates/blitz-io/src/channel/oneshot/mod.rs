//! One value, from one task to another, once.
//!
//! [`channel`] makes a [`Sender`] and a [`Receiver`]. To send never waits, so any code
//! can do it, inside a runtime or not. The receiver is a future: await it, or await
//! `&mut` of it in a loop.
//!
//! The two halves share one small allocation. Where both can borrow from one place, a
//! [`Slot`] does the same without any.
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
//! A sender that goes without sending ends the wait with an error:
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
use crate::sync::outside;

pub use self::slot::{Slot, SlotReceiver, SlotSender};

/// A new channel for one value.
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
/// A destructor that sends keeps the sender in an `Option`:
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
    /// Sends the value, and wakes the receiver if it waits. This never waits.
    ///
    /// `Ok` does not mean that the value was received: the receiver may go without
    /// looking, and then drops it.
    ///
    /// # Errors
    /// The value itself, if the receiver is gone or closed.
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

    /// Waits until the receiver is gone or closed: nobody wants the value any more.
    ///
    /// # Cancel safety
    /// Safe to drop at any moment: nothing is lost, and the next call goes on.
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

    /// Whether the receiver is gone or closed. Once it is, `send` fails.
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

    /// As [`closed`](Self::closed), for those who poll by hand. Only the waker of the
    /// last call is woken.
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

/// Receives the value of the [`Sender`]: a future.
///
/// It answers with [`RecvError`] if the sender goes without sending, or after
/// [`close`](Self::close).
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
    /// Refuses a value that is not sent yet: from now on `send` fails, and whoever waits
    /// in [`Sender::closed`] is woken. A value that was sent before can still be
    /// received.
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

    /// Whether it has answered, by a value or an error. To poll it again would panic.
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

    /// Whether there is no value now: it was not sent, or received already.
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

    /// The value, if it is there.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if it may still come, [`TryRecvError::Closed`] if not: the
    /// sender is gone, the channel was closed, or the value was received before.
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
    /// use blitz_io::sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let waits = std::thread::spawn(move || rx.blocking_recv());
    /// tx.send(10).unwrap();
    /// assert_eq!(waits.join().unwrap(), Ok(10));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        outside::wait_for(self, "await the receiver")
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
