//! Fork-join: jobs that may run in parallel, on threads of their own.
//!
//! A worker keeps its jobs in a `stack` that is private until somebody asks; a *job* is a
//! closure on its maker's frame or on the heap; a *latch* tells who waits for one (its `owner`, if it
//! waits for many) that it has ended. `sleep` says who may sleep, `registry` is a pool's shared part, `worker` what
//! one of its threads does. `join`, `scope`, `broadcast` and `detached` are what users call,
//! `run` what tasks await, `call` brings them onto a pool, `global` is the pool of those who name none.
//! docs/design/fork-join.md tells the whole.

pub(crate) mod stack;
#[cfg(test)]
mod chase_lev;
pub(crate) mod latch;
pub(crate) mod job;
pub(crate) mod sleep;
pub(crate) mod registry;
pub(crate) mod worker;
pub(crate) mod join;
pub(crate) mod owner;
pub(crate) mod scope;
pub(crate) mod broadcast;
pub(crate) mod detached;
pub(crate) mod run;
pub(crate) mod call;
pub(crate) mod global;
