//! Tests tasks, sets of tasks, and code that blocks.

mod abort;
mod admission;
mod block_in_place;
mod coop;
mod hostile_sets;
mod join_handle;
mod join_set;
mod join_waker;
mod layout;
pub(crate) mod local_set;
mod output;
mod scope;
mod shield;
mod spawn_blocking;
mod task_local;
mod tracker;
mod yield_now;
