//! A channel from many senders to one receiver.
//!
//! [`channel`] has room for a fixed number of messages: who sends into a full one waits,
//! so a quick sender cannot fill the memory. [`unbounded_channel`] has no such limit, and
//! to send never waits.
//!
//! Senders are cloned, one for each task that sends. When all of them are dropped the
//! receiver gets what is left, and then `None`. When the receiver is dropped or closed,
//! senders get their messages back in an error.
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
//! `blocking_send` and `blocking_recv` wait on a thread that runs no tasks. An unbounded
//! sender needs no such thing: it never waits.
//!
//! # Runtimes
//!
//! A channel belongs to no runtime. Its two ends may live in two of them, or in none.
//!
//! # Inside
//!
//! - `slot`: how the sender of one message and the receiver meet.
//! - `sleeper`: the waker of the receiver.
//! - `room`: who may send into a bounded channel, and who waits.
//! - `blocks`: the queue of an unbounded channel, and of very long ones.
//! - `chan`: handles, the receiver, and the end.

pub mod error;

mod slot;
mod sleeper;
mod blocks;
mod room;
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
