//! Futures made of other futures, beside `async` and `.await`.
//!
//! | | waits for | gives |
//! |---|---|---|
//! | [`race`] | the first of a few | its output; the others are dropped |
//! | [`race_all`] | the first of many | the same |
//! | [`race_ok`] | the first of many that succeeds | its value, or all the errors |
//! | [`join_all`] | all of many | their outputs in order |
//! | [`try_join_all`] | all of many, or the first error | their values in order, or the error |
//! | [`select_all`] | one after the other, as they end | each output with its place |
//!
//! For a few of different types there are the macros [`join!`](crate::join),
//! [`try_join!`](crate::try_join) and [`select!`](crate::select).
//!
//! All of them poll their futures in the task that awaits them: nothing is spawned, and
//! the futures may borrow. For work that is to run beside the task, on other threads
//! too, spawn it: into a [`JoinSet`](crate::task::JoinSet), if it is much.
//!
//! Those over many give every future a waker of its own, and a poll goes only to those
//! that were woken: ten thousand futures that end one by one cost ten thousand polls and
//! the ones that begin them, not fifty million. However many they are, four allocations
//! do for all of them. Each one that ends takes a unit of the task's [budget], so that
//! others have their turn.
//!
//! What `std` has already is here too, under its own name: [`poll_fn`], [`ready`],
//! [`pending`]. So is `timeout`, of [`time`](crate::time).
//!
//! [budget]: crate::task::coop
#![forbid(unsafe_code)]

mod race;
#[cfg(any(feature = "rt", feature = "sync"))]
mod join_all;
#[cfg(any(feature = "rt", feature = "sync"))]
mod race_all;
#[cfg(any(feature = "rt", feature = "sync"))]
mod select_all;

#[doc(no_inline)]
pub use std::future::{Pending, PollFn, Ready, pending, poll_fn, ready};

#[cfg(feature = "time")]
#[doc(no_inline)]
pub use crate::time::{Timeout, timeout};

pub use self::race::{Race, race};
#[cfg(any(feature = "rt", feature = "sync"))]
pub use self::{
    join_all::{JoinAll, TryJoinAll, join_all, try_join_all},
    race_all::{RaceAll, RaceOk, race_all, race_ok},
    select_all::{Next, SelectAll, select_all},
};

/// Who of so many is polled first, so that none wins every tie.
pub(crate) fn anyone(count: usize) -> usize {
    // Among more than four thousand million the last ones never begin.
    let bound = u32::try_from(count).unwrap_or(u32::MAX);
    #[cfg(any(feature = "rt", feature = "sync"))]
    let number = crate::engine::work::current::random_below(bound);
    #[cfg(not(any(feature = "rt", feature = "sync")))]
    let number = {
        // Without the engine there is no generator; std's keys differ from call to
        // call, and their hash is spread well enough to choose one of a few.
        use std::hash::{BuildHasher, RandomState};
        (RandomState::new().hash_one(0_u8) >> 32) as u32 % bound
    };
    number as usize
}
