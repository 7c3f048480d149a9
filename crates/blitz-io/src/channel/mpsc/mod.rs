//! A channel from many senders to one receiver.
//!
//! [`channel`] creates a bounded channel: a sender waits while the channel is full, so a fast
//! sender cannot exhaust memory. [`unbounded_channel`] has no limit, and sending never waits.
//!
//! Senders are cloned, one for each task that sends. When all of them are dropped, the receiver
//! gets the messages that are still queued, and then `None`. When the receiver is dropped or
//! closed, senders get their messages back in an error.
//!
//! # Examples
//!
//! ```
//! use blitz_io::sync::mpsc;
//!
//! blitz_io::run(async {
//!     let (sender, mut receiver) = mpsc::channel(8);
//!     for part in 0..4 {
//!         let sender = sender.clone();
//!         blitz_io::spawn(async move { sender.send(part * 10).await });
//!     }
//!     drop(sender);
//!     let mut sum = 0;
//!     while let Some(part) = receiver.recv().await {
//!         sum += part;
//!     }
//!     assert_eq!(sum, 60);
//! });
//! ```
//!
//! # Code that is not asynchronous
//!
//! `blocking_send` and `blocking_recv` block the calling thread, so they are for threads outside
//! of asynchronous tasks. An unbounded sender has no blocking variant, because its `send` never
//! waits.
//!
//! # Runtimes
//!
//! A channel belongs to no runtime. Its two ends may be used in two different runtimes, or in
//! none.
//!
//! # Inside
//!
//! - `slot`: how the sender of one message and the receiver synchronize.
//! - `receiver_waker`: the waker of the receiver.
//! - `send_permits`: permits and positions of a bounded channel, and its wait queue of senders.
//! - `blocks`: the queue of an unbounded channel, and of bounded ones with a large capacity.
//! - `chan`: the reference-counted handles, the receiver, and the end of a channel.

pub mod error;

mod slot;
mod receiver_waker;
mod blocks;
mod send_permits;
mod chan;
mod bounded;
mod unbounded;

pub use self::{
    bounded::{OwnedPermit, Permit, PermitIterator, Receiver, Sender, WeakSender, channel},
    unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel},
};

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;
