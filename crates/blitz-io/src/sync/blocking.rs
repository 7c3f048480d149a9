//! Waiting on a thread that runs no tasks: the part that the `blocking_*` methods share.

use crate::engine::{
    pool::drive,
    work::thread_context::blocking::{BlockingPolicy, NoBlocking},
};

/// Waits for `future`, blocking the current thread.
///
/// # Panics
/// Panics if called within an asynchronous context. `instead` says what to do there.
#[track_caller]
pub(crate) fn block_on<F: Future>(future: F, instead: &str) -> F::Output {
    let Some(_blocking) = NoBlocking::enter(BlockingPolicy::InPlaceOnly) else {
        panic!(
            "Cannot block the current thread from within a runtime. This happens because a \
             function attempted to block the current thread while the thread is being used to \
             drive asynchronous tasks. Instead {instead}, or do this inside `spawn_blocking`."
        );
    };
    drive::wait_for(None, future)
}
