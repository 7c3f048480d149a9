//! Channels: values that go from task to task.

pub mod mpsc;
pub mod mpmc;
pub mod oneshot;
mod standing;

pub mod broadcast;
pub mod watch;
