//! Asynchronous tasks: futures that the runtime polls independently of the code that spawned them.
//!
//! [`spawn`] starts a task and returns a [`JoinHandle`]. Awaiting the handle gives the task's
//! output; dropping it detaches the task, which continues to run. A task ends when its future
//! completes or panics, when it is [aborted](JoinHandle::abort), or when its runtime shuts down.
//! [`shield`] protects a section from being aborted, and [`yield_now`] lets other tasks run.
//!
//! [`spawn`] places no limit on the number of tasks. [`spawn_reporting`] reports when the runtime
//! does not keep up, and [`spawn_bounded`] waits until the number of bounded tasks is below a
//! limit. To manage many tasks, use a [`JoinSet`], which returns their outputs as they finish, a
//! [`TaskTracker`], which only waits for them to end, or a [`scope`], which ends after every task
//! that was spawned in it.
//!
//! # Examples
//!
//! ```
//! use blitz_io::task;
//!
//! # blitz_io::run(async {
//! let handle = task::spawn(async {
//!     task::yield_now().await;
//!     "done"
//! });
//! assert_eq!(handle.await.unwrap(), "done");
//! # });
//! ```

pub mod join_set;

mod builder;
pub mod coop;
mod local_key;
mod local;
mod scope;
mod spawn;
mod admission;
mod bounded;
pub(crate) mod blocking;
#[cfg(any(feature = "fs", feature = "io-std"))]
pub(crate) mod write_state;
mod tracker;
mod yield_now;

pub(crate) use self::spawn::{is_large, spawn_labelled};

#[doc(hidden)]
pub use self::local_key::Slot as __Slot;
pub use self::{
    admission::{Pressure, Rejected, Rejection},
    blocking::{
        block_in_place, spawn_blocking, spawn_blocking_bounded, try_spawn_blocking_bounded,
    },
    bounded::{spawn_bounded, spawn_reporting, try_spawn_bounded},
    builder::Builder,
    coop::{Unconstrained, checkpoint, consume_budget, should_yield, unconstrained},
    join_set::JoinSet,
    local::{LocalEnterGuard, LocalSet, spawn_local},
    local_key::{AccessError, LocalKey},
    scope::{Scope, ScopeFuture, scope},
    spawn::{id, spawn, try_id},
    tracker::{TaskTracker, TaskTrackerToken, TaskTrackerWaitFuture, TrackedFuture},
    yield_now::yield_now,
};
pub use crate::engine::work::task::{
    cell::Id,
    error::JoinError,
    handle::{AbortHandle, JoinHandle},
    shield::{Shield, shield},
};

/// Named types of futures that functions in this module return.
pub mod futures {
    pub use super::local_key::TaskLocalFuture;
}
