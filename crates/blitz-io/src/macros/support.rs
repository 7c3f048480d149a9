//! Items that the macros of this crate expand to; nothing here is for users.
//!
//! Tokio has this module too, also hidden, but one of its functions, `thread_rng_n`, is
//! used by programs all the same. So its name and signature are kept.

pub use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
};

pub use super::{
    awaited::{Awaited, Fallible},
    join_state::{Declared, Joined, Rotating},
    select_state::{Disabled, Finished, Off, bytes},
};

/// Returns a random number below `bound`, which must not be 0, from this thread's
/// generator.
#[inline]
pub fn thread_rng_n(bound: u32) -> u32 {
    #[cfg(feature = "rt")]
    {
        crate::engine::work::thread_context::random_below(bound)
    }
    #[cfg(not(feature = "rt"))]
    {
        // Without the engine there is no generator; std's hash keys differ from call to
        // call, and their hash is spread well enough to choose a branch.
        use std::hash::{BuildHasher, RandomState};
        (RandomState::new().hash_one(0u8) >> 32) as u32 % bound
    }
}

/// Returns the branch with which a biased `select!` begins.
#[inline]
pub fn in_order(_: u32) -> u32 {
    0
}

/// Returns ready if the task has budget left, without using any of it; otherwise wakes the
/// task at once and returns `Pending`.
#[inline]
pub fn poll_budget_available(cx: &mut Context<'_>) -> Poll<()> {
    #[cfg(feature = "rt")]
    {
        crate::engine::work::task::budget::available(cx)
    }
    #[cfg(not(feature = "rt"))]
    {
        // Without the engine there are no budgets.
        let _ = cx;
        Poll::Ready(())
    }
}
