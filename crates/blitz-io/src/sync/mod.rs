//! Primitives with which tasks wait for each other.
//!
//! They need no runtime: any executor can poll them, and what is called `blocking_*`
//! waits without one. To wait allocates nothing: who waits stands in line through its
//! own future.

#[allow(dead_code, reason = "the `blocking_*` methods are not here yet")]
pub(crate) mod outside;
