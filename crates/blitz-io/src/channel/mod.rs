//! Channels: values that go from task to task.
