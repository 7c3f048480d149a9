//! A channel with many senders and many receivers, in which every receiver sees every value.
//!
//! A value is stored once, cloned for each receiver, and dropped when the last receiver has seen
//! it. Senders never wait for capacity: the channel keeps the most recent values, up to its
//! capacity rounded up to a power of two, and a new value replaces the oldest.
//!
//! # Lagging
//!
//! If a receiver falls so far behind that values are overwritten before it has seen them, its
//! next receive fails once with [`RecvError::Lagged`](error::RecvError), which contains their
//! exact number. The receiver then continues with the oldest value that is still stored.
//!
//! # Closing
//!
//! When the last [`Sender`] is dropped, receivers get the values that are still stored, and then
//! [`RecvError::Closed`](error::RecvError). A [`WeakSender`] does not keep the channel open.
//! When the last [`Receiver`] is dropped, sending fails until there is a [new
//! subscriber](Sender::subscribe).
//!
//! # Clones
//!
//! Values need not be `Sync`, because two receivers never clone the same value at the same time.
//! A sender that overwrites a value waits until a clone of it in progress is made, and until
//! then all other sends, subscriptions and counts on the channel wait, too. So a `clone` must
//! not use its own channel: if the value is the oldest of a full channel, and the clone itself
//! or another thread sends, both deadlock. A clone that receives the value that is being cloned
//! deadlocks, too.
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

/// Creates a channel that keeps the last `capacity` values, rounded up to a power of two.
///
/// The receiver sees every value that is sent from now on.
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
