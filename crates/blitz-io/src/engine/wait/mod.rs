//! How tasks wait for each other: what every primitive that can be awaited stands on.
//!
//! - [`line`]: who waits, in the order they came, through the futures themselves.
//! - [`keep`]: one of them is polled again, perhaps with another waker.
//! - [`batch`]: wakers that were collected under a lock, to be woken outside of it.
//! - [`permits`]: n at a time out of a fixed number, first come, first served.
//! - [`bound`]: a future that holds a permit for as long as it lives.
//! - [`holders`]: who holds a lock and who waits for it where, in debug builds.
//! - [`waker_cell`]: one waker, which many may wake.
//! - [`woken`]: which of many futures of one task were woken.
//! - [`many`]: those futures, of which only the woken are polled.
//! - [`gate`]: one at a time, for wakers that do work of their own.
//!
//! # Invariants
//! No user code under a lock: a waker is cloned before the lock is taken, and
//! called or dropped after it was let go. Wakers compare by two pointers
//! (`will_wake`), which runs nobody's code.

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
