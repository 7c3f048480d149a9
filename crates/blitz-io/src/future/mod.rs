//! Combinators that wait for several futures in one task.
//!
//! | | waits for | returns |
//! |---|---|---|
//! | [`race`] | the first of a few | its output; the others are dropped |
//! | [`race_all`] | the first of many | its output; the others are dropped |
//! | [`race_ok`] | the first of many that succeeds | its value, or all the errors |
//! | [`join_all`] | all of many | their outputs in order |
//! | [`try_join_all`] | all of many, or the first error | their values in order, or the error |
//! | [`select_all`] | one after the other, as they complete | each output with its index |
//!
//! For a few futures of different types there are the macros [`join!`](crate::join),
//! [`try_join!`](crate::try_join) and [`select!`](crate::select).
//!
//! All of them poll their futures in the task that awaits them: nothing is spawned, and
//! the futures may borrow. Work that must run concurrently with the task, on other threads
//! too, must be spawned: into a [`JoinSet`](crate::task::JoinSet) if there are many tasks.
//!
//! The combinators for many futures give every future a waker of its own, and poll only
//! those that were woken: ten thousand futures that complete one by one cost ten thousand
//! polls and the ten thousand that start them, not fifty million. Four allocations suffice,
//! however many futures there are. Each future that completes consumes a unit of the task's
//! [budget], so that other tasks can run.
//!
//! The functions of `std` are re-exported under their own names: [`poll_fn`], [`ready`],
//! [`pending`]. So is `timeout`, from [`time`](crate::time).
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

/// Returns a random index below `count`, at which polling begins, so that no future wins
/// every tie.
pub(crate) fn any_index(count: usize) -> usize {
    // If there are more than `u32::MAX` futures, polling never begins at the last ones.
    let bound = u32::try_from(count).unwrap_or(u32::MAX);
    #[cfg(any(feature = "rt", feature = "sync"))]
    let number = crate::engine::work::thread_context::random_below(bound);
    #[cfg(not(any(feature = "rt", feature = "sync")))]
    let number = {
        // Without the engine there is no random generator. The keys of std's hasher differ from
        // call to call, and a hash is distributed well enough to choose one of a few.
        use std::hash::{BuildHasher, RandomState};
        (RandomState::new().hash_one(0_u8) >> 32) as u32 % bound
    };
    number as usize
}
