//! Tasks, and the thread-local record of the task, core and runtime a thread is working for.

pub(crate) mod current;
pub(crate) mod tenure;
#[allow(dead_code, reason = "there are systems on which nobody is asked")]
pub(crate) mod inquiry;
#[cfg(feature = "fiber")]
pub(crate) mod scopes;
pub(crate) mod task;
