//! Channels, which pass values between tasks.

pub mod mpsc;
pub mod mpmc;
pub mod oneshot;
mod enqueue;

pub mod broadcast;
pub mod watch;
