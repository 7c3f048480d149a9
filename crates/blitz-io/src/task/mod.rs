//! Tasks: spawned futures that run by themselves.
//!
//! [`spawn`] starts one and answers with a [`JoinHandle`], which can be awaited
//! for its output, or dropped: the task goes on. A task ends when its future
//! completes or panics, when it is [aborted](JoinHandle::abort), or with its
//! runtime. [`shield`] keeps an abort away from a section, [`yield_now`] lets
//! others run.
//!
//! Nothing bounds [`spawn`]. [`spawn_reporting`] tells when the runtime does not keep
//! up, and [`spawn_bounded`] waits until there is a place.
//! For many tasks: a [`JoinSet`] gives their outputs as they come, a [`TaskTracker`]
//! only waits for their end, and a [`scope`] ends after all that was started in it.
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
mod blocking;
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

/// Futures that functions of this module give, for those who have to name them.
pub mod futures {
    pub use super::local_key::TaskLocalFuture;
}
