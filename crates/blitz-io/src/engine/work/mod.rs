//! Tasks, and the thread-local record of the task, core and runtime a thread is working for: what
//! Tokio has in `runtime::task` and `runtime::context`.

pub(crate) mod thread_context;

#[cfg(feature = "fiber")]
pub(crate) mod scopes;
pub(crate) mod task;
