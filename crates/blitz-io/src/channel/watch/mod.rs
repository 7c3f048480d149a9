//! A channel that keeps one value, the last; receivers watch it change.
//!
//! Every receiver remembers which version of the value it has seen.
//! [`changed`](Receiver::changed) waits for one that it has not. Versions in between
//! may be missed, but never the last one. The value that is there when a receiver is
//! made counts as seen.
//!
//! # Borrowing
//!
//! [`borrow`](Receiver::borrow) and [`borrow_and_update`](Receiver::borrow_and_update)
//! lend the value where it is, under a read lock: while a [`Ref`] lives, every sender
//! is blocked, and so is the thread it is on. Let it go soon, and before an `.await`.
//! A thread that holds a [`Ref`] and sends waits for itself; one that holds a [`Ref`]
//! and borrows again may, if a sender is waiting in between.
//!
//! In a loop with `changed`, use `borrow_and_update`: with `borrow`, a value that comes
//! between the two is seen twice.
//!
//! # Closing
//!
//! Once the last [`Sender`] has gone, [`has_changed`](Receiver::has_changed) fails at
//! once, and `changed` after the last value was seen. The value stays until the last
//! handle of either half has gone. Once the last [`Receiver`] has gone,
//! [`send`](Sender::send) fails, until somebody [subscribes](Sender::subscribe) again.
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
//! How the two ways to ask for news differ once the senders have gone:
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
mod lines;
mod audience;
mod shared;
mod sender;
mod receiver;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub use self::{receiver::Receiver, sender::Sender, shared::Ref};

/// Makes a channel with a first value, which counts as seen.
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
