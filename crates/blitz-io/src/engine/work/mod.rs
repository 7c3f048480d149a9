//! Tasks, and the thread-local record of the task, core and runtime a thread is working for.

pub(crate) mod thread_context;

#[cfg(feature = "fiber")]
pub(crate) mod scopes;
pub(crate) mod task;
