//! Channels: values that go from task to task.

pub mod mpsc;
pub mod oneshot;
