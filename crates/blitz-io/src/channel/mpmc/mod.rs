//! Many senders, many receivers, a bounded number of messages.
//!
//! [`channel`] makes a [`Sender`] and a [`Receiver`]; both can be cloned. Each message
//! is received once, by any one of the receivers. The capacity is exact: with a capacity
//! of one, one message waits, and the next sender waits with its own. Everything is in
//! one allocation.
//!
//! ```
//! use blitz_io::channel::mpmc;
//!
//! blitz_io::run(async {
//!     let (tx, rx) = mpmc::channel(8);
//!     let workers: Vec<_> = (0..3)
//!         .map(|_| {
//!             let rx = rx.clone();
//!             blitz_io::spawn(async move {
//!                 let mut sum = 0;
//!                 while let Some(n) = rx.recv().await {
//!                     sum += n;
//!                 }
//!                 sum
//!             })
//!         })
//!         .collect();
//!     for n in 1..=100 {
//!         tx.send(n).await.unwrap();
//!     }
//!     drop(tx);
//!     let mut sum = 0;
//!     for worker in workers {
//!         sum += worker.await.unwrap();
//!     }
//!     assert_eq!(sum, 5050);
//! });
//! ```
//!
//! # Closing
//!
//! A channel is closed by [`Sender::close`] or [`Receiver::close`], or when all the
//! senders or all the receivers are gone. Then nothing can be sent any more. What is
//! queued can still be received; when all the receivers are gone it is dropped.
//!
//! # Order
//!
//! Messages are received in the order in which they were sent; those of different senders
//! in the order in which their sends took effect. A message that is being written by a
//! thread that was interrupted in the middle holds back those behind it, which were
//! sent meanwhile: to receivers the channel is empty until then.
//!
//! Those who wait are woken in the order in which they came. Somebody who never waited
//! may still be quicker than one that was woken: it takes the message or the room, and
//! the other waits again, behind those who came since. So somebody always goes on, and
//! no single one is promised to. Who needs every sender to have its turn takes
//! permits of a semaphore, or a channel of its own for each.
//!
//! One who was woken has to look. A future that waits and is then neither polled nor
//! dropped, but kept or forgotten, may be the one that is woken: the others wait until
//! the next message, or the next room, wakes one of them.

mod chan;
pub mod error;
mod queue;
mod receiver;
mod sender;
mod weak;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

pub use self::{
    receiver::{Drain, Receiver},
    sender::Sender,
    weak::{WeakReceiver, WeakSender},
};

/// A new channel with room for so many messages.
///
/// # Panics
/// If the capacity is zero, or more than fits into memory.
///
/// # Examples
///
/// ```
/// use blitz_io::channel::mpmc;
///
/// let (tx, rx) = mpmc::channel(2);
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert!(tx.try_send(3).is_err());
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let chan = chan::Chan::allocate(capacity);
    // SAFETY: 1. of both: it is new, and has one handle on each side.
    unsafe { (Sender::new(chan), Receiver::new(chan)) }
}
