//! What there is to do: tasks now, jobs of the fork-join pool beside them later.

pub(crate) mod current;
pub(crate) mod task;
