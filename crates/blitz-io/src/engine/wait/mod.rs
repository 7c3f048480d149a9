//! The foundation of every primitive that can be awaited: wait queues, wakers and permits.
//!
//! - [`line`]: a FIFO wait queue, linked through the waiting futures themselves.
//! - [`keep`]: renews the waker of a queued future that is polled again.
//! - [`batch`]: a wake list: wakers that are collected under a lock and woken outside of it.
//! - [`permits`]: a counting semaphore, first come, first served.
//! - [`bound`]: a future that holds a permit for as long as it lives.
//! - [`holders`]: records which tasks hold a lock and which wait for it where, in debug builds.
//! - [`waker_cell`]: a cell for one waker, which many threads may wake.
//! - [`woken`]: records which of many futures of one task were woken.
//! - [`many`]: a set of futures, of which only the woken ones are polled.
//! - [`gate`]: mutual exclusion without waiting, for wakers that do work of their own.
//!
//! # Invariants
//! No user code runs under a lock: a waker is cloned before the lock is taken, and called or
//! dropped after it was released. Wakers are compared by two pointers (`will_wake`), which runs no
//! user code.

pub(crate) mod line;
pub(crate) mod keep;
pub(crate) mod batch;
pub(crate) mod permits;
pub(crate) mod bound;
#[cfg_attr(
    not(feature = "sync"),
    allow(dead_code, unreachable_pub, unused_imports, reason = "locks keep it")
)]
pub(crate) mod holders;
pub(crate) mod waker_cell;
pub(crate) mod woken;
pub(crate) mod many;
#[cfg_attr(
    not(all(unix, feature = "signal")),
    allow(dead_code, reason = "only what hears bells in place of tasks has one")
)]
pub(crate) mod gate;

#[cfg(test)]
pub(crate) mod bell;
