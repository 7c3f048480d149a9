//! A bounded channel with many senders and many receivers.
//!
//! [`channel`] creates a [`Sender`] and a [`Receiver`]; both can be cloned. Each message is
//! received once, by any one of the receivers. The capacity is exact: with a capacity of one,
//! one message is queued, and the next sender waits with its own. The whole channel is one
//! allocation.
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
//! A channel is closed by [`Sender::close`] or [`Receiver::close`], or when all senders or all
//! receivers are dropped. Then nothing more can be sent. Queued messages can still be received;
//! when all receivers are dropped, so are the messages.
//!
//! # Order
//!
//! Messages are received in the order in which they were sent; messages of different senders in
//! the order in which their sends took effect. If a thread is interrupted while it writes a
//! message, the messages that were sent behind it are held back: for receivers the channel is
//! empty until the write completes.
//!
//! Waiting tasks are woken in the order in which they began to wait. A task that never waited
//! may still be faster than one that was woken: it takes the message or the capacity, and the
//! woken task waits again, behind those that came since. So some task always makes progress, but
//! no single task is guaranteed to. If every sender must get its turn, use permits of a
//! semaphore, or a separate channel for each sender.
//!
//! A woken future must be polled or dropped. If a waiting future is kept or forgotten instead,
//! it may be the one that is woken; the others then wait until the next message, or the next
//! free capacity, wakes one of them.

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

/// Creates a channel with a capacity of `capacity` messages.
///
/// # Panics
/// If the capacity is zero, or larger than what fits into memory.
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
    // SAFETY: 1. of both: the channel is new, and counts one handle on each side.
    unsafe { (Sender::new(chan), Receiver::new(chan)) }
}
