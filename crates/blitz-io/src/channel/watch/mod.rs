//! A channel that holds only the latest value; receivers observe it as it changes.
//!
//! Every receiver remembers which version of the value it has seen.
//! [`changed`](Receiver::changed) waits for a version that the receiver has not seen. Versions
//! in between may be missed, but never the last one. The value that is present when a receiver
//! is created counts as seen.
//!
//! # Borrowing
//!
//! [`borrow`](Receiver::borrow) and [`borrow_and_update`](Receiver::borrow_and_update) return a
//! reference to the value under a read lock. While a [`Ref`] lives, every send blocks its
//! thread, so drop the [`Ref`] soon, and before an `.await`. A thread that sends while it holds
//! a [`Ref`] deadlocks. A thread that borrows again while it holds a [`Ref`] may deadlock, if a
//! sender begins to wait in between.
//!
//! In a loop with `changed`, use `borrow_and_update`: with `borrow`, a value that is sent
//! between the two calls is seen twice.
//!
//! # Closing
//!
//! Once the last [`Sender`] is dropped, [`has_changed`](Receiver::has_changed) fails
//! immediately, and `changed` fails after the last value was seen. The value lives until the
//! last handle of either half is dropped. Once the last [`Receiver`] is dropped,
//! [`send`](Sender::send) fails until there is a [new subscriber](Sender::subscribe).
//!
//! # Examples
//!
//! ```
//! use blitz_io::sync::watch;
//!
//! # blitz_io::run(async {
//! let (sender, mut receiver) = watch::channel(0);
//! let watcher = blitz_io::spawn(async move {
//!     let mut seen = vec![*receiver.borrow_and_update()];
//!     while receiver.changed().await.is_ok() {
//!         seen.push(*receiver.borrow_and_update());
//!     }
//!     seen
//! });
//! sender.send(1).unwrap();
//! sender.send(2).unwrap();
//! drop(sender);
//! assert_eq!(watcher.await.unwrap().last(), Some(&2));
//! # });
//! ```
//!
//! `has_changed` and `changed` differ once all senders were dropped:
//!
//! ```
//! use blitz_io::sync::watch;
//!
//! # blitz_io::run(async {
//! let (sender, mut receiver) = watch::channel("old");
//! sender.send("new").unwrap();
//! drop(sender);
//! assert!(receiver.has_changed().is_err());
//! assert!(receiver.changed().await.is_ok());
//! assert!(receiver.changed().await.is_err());
//! # });
//! ```

pub mod error;
mod wait_queues;
mod receiver_count;
mod shared;
mod sender;
mod receiver;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub use self::{receiver::Receiver, sender::Sender, shared::Ref};

/// Creates a channel with an initial value, which counts as seen.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch;
///
/// let (sender, receiver) = watch::channel("first");
/// assert_eq!(*receiver.borrow(), "first");
/// assert!(!receiver.has_changed().unwrap());
/// sender.send("second").unwrap();
/// assert!(receiver.has_changed().unwrap());
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::with_receivers(init, 1, 0);
    let receiver = Receiver::counted(sender.shared().clone());
    (sender, receiver)
}
