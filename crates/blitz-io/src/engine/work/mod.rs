//! What there is to do: tasks now, jobs of the fork-join pool beside them later.

pub(crate) mod current;
pub(crate) mod tenure;
#[allow(dead_code, reason = "there are systems on which nobody is asked")]
pub(crate) mod inquiry;
#[cfg(feature = "fiber")]
pub(crate) mod scopes;
pub(crate) mod task;
