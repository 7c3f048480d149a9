//! What the macros of this crate expand to; nothing here is for users.
//!
//! Tokio has this module too, hidden as well, and one of its functions has found
//! users all the same: `thread_rng_n`. Its name and signature are kept.

pub use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
};

pub use super::{
    awaited::{Awaited, Fallible},
    branches::{Disabled, Finished, Off, bytes},
    joined::{Declared, Joined, Rotating},
};

/// A number below `bound` (which is not 0), from this thread's generator.
#[inline]
pub fn thread_rng_n(bound: u32) -> u32 {
    #[cfg(feature = "rt")]
    {
        crate::engine::work::current::random_below(bound)
    }
    #[cfg(not(feature = "rt"))]
    {
        // Without the engine there is no generator; std's keys differ from call to
        // call, and their hash is spread well enough to choose a branch.
        use std::hash::{BuildHasher, RandomState};
        (RandomState::new().hash_one(0u8) >> 32) as u32 % bound
    }
}

/// Where `select!` begins if it is biased.
#[inline]
pub fn in_order(_: u32) -> u32 {
    0
}

/// Ready while the task has budget left, of which it takes none; else it has the
/// task woken at once and says `Pending`.
#[inline]
pub fn poll_budget_available(cx: &mut Context<'_>) -> Poll<()> {
    #[cfg(feature = "rt")]
    {
        crate::engine::work::task::budget::available(cx)
    }
    #[cfg(not(feature = "rt"))]
    {
        // Nobody gives out budgets.
        let _ = cx;
        Poll::Ready(())
    }
}
