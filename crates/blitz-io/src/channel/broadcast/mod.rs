//! A channel from many to many, in which every receiver sees every value.
//!
//! A value is stored once, cloned for each receiver, and dropped when the last one has
//! seen it. Senders never wait: the channel keeps the last values, as many
//! as its capacity, rounded up to a power of two, and a new value takes the place of
//! the oldest.
//!
//! # Lagging
//!
//! A receiver that has fallen behind so far that values it had not seen are gone is
//! told so, once, with their exact number: [`RecvError::Lagged`](error::RecvError).
//! It then goes on with the oldest value that is still there.
//!
//! # Closing
//!
//! When the last [`Sender`] is dropped, receivers get what is still there, and then
//! [`RecvError::Closed`](error::RecvError). A [`WeakSender`] does not keep the channel
//! open. When the last [`Receiver`] is dropped, sending fails, until somebody
//! [subscribes](Sender::subscribe) again.
//!
//! # Clones
//!
//! Values need not be `Sync`: two receivers never clone the same value at the same
//! time. Whoever overwrites a value waits until its clone is made, and keeps all the
//! others from sending, subscribing and counting meanwhile. So a `clone` should leave
//! its channel alone: if the value is the oldest of a full channel and somebody sends,
//! be it the clone itself or another thread, both wait for ever. So does a clone that
//! asks for the value that is being cloned.
//!
//! # Examples
//!
//! ```
//! use blitz_io::sync::broadcast;
//!
//! # blitz_io::run(async {
//! let (sender, mut first) = broadcast::channel(16);
//! let mut second = sender.subscribe();
//!
//! let reader = blitz_io::spawn(async move {
//!     (first.recv().await.unwrap(), first.recv().await.unwrap())
//! });
//! sender.send(10).unwrap();
//! sender.send(20).unwrap();
//!
//! assert_eq!(reader.await.unwrap(), (10, 20));
//! assert_eq!(second.recv().await, Ok(10));
//! assert_eq!(second.recv().await, Ok(20));
//! # });
//! ```
//!
//! A receiver that lags:
//!
//! ```
//! use blitz_io::sync::broadcast::{self, error::RecvError};
//!
//! # blitz_io::run(async {
//! let (sender, mut receiver) = broadcast::channel(2);
//! for value in 1..=5 {
//!     sender.send(value).unwrap();
//! }
//! assert_eq!(receiver.recv().await, Err(RecvError::Lagged(3)));
//! assert_eq!(receiver.recv().await, Ok(4));
//! assert_eq!(receiver.recv().await, Ok(5));
//! # });
//! ```

pub mod error;
mod slot;
mod shared;
mod sender;
mod receiver;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub use self::{
    receiver::Receiver,
    sender::{Sender, WeakSender},
};

/// Makes a channel that keeps the last `capacity` values, or some more: the capacity
/// is rounded up to a power of two.
///
/// The receiver sees everything that is sent from now on.
///
/// # Panics
///
/// If `capacity` is zero, or more than `usize::MAX / 2`.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast;
///
/// let (sender, mut receiver) = broadcast::channel(4);
/// assert_eq!(sender.send('a').unwrap(), 1);
/// assert_eq!(receiver.try_recv(), Ok('a'));
/// ```
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::with_receivers(capacity, 1, 0);
    let receiver = Receiver::counted(sender.shared().clone(), 0);
    (sender, receiver)
}
