//! The foundation of every primitive that can be awaited: wait queues, wakers and permits.
//!
//! - [`wait_queue`]: waiting futures in order of arrival, linked through the futures themselves.
//! - [`update_waker`]: renews the waker of a queued future that is polled again.
//! - [`wake_list`]: wakers that are collected under a lock and woken after its release.
//! - [`permits`]: a counting semaphore, first come, first served.
//! - [`task_limit`]: a future that holds a permit for as long as it lives.
//! - [`holders`]: records which tasks hold a lock and which wait for it where, in debug builds.
//! - [`waker_cell`]: a cell for one waker, which many threads may wake.
//! - [`woken_set`]: records which of many futures of one task were woken.
//! - [`future_set`]: a set of futures, of which only the woken ones are polled.
//! - [`coalescer`]: mutual exclusion without waiting, for wakers that do work of their own.
//!
//! # Invariants
//! No user code runs under a lock: a waker is cloned before the lock is taken, and called or
//! dropped after it was released. Wakers are compared by two pointers (`will_wake`), which runs no
//! user code.

pub(crate) mod wait_queue;
pub(crate) mod update_waker;
pub(crate) mod wake_list;
pub(crate) mod permits;
pub(crate) mod task_limit;
#[cfg_attr(
    not(feature = "sync"),
    allow(dead_code, unreachable_pub, unused_imports, reason = "locks keep it")
)]
pub(crate) mod holders;
pub(crate) mod waker_cell;
pub(crate) mod woken_set;
pub(crate) mod future_set;
#[cfg_attr(
    not(all(unix, feature = "signal")),
    allow(dead_code, reason = "only wakers that do work in place of tasks use it")
)]
pub(crate) mod coalescer;

#[cfg(test)]
pub(crate) mod test_waker;
