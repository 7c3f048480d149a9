//! Channels, which pass values between tasks.

pub mod mpsc;
pub mod mpmc;
pub mod oneshot;
mod standing;

pub mod broadcast;
pub mod watch;
