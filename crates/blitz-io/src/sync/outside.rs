//! To wait on a thread that runs no tasks: what the `blocking_*` methods share.

use crate::engine::{
    pool::drive::{self, NoBlocking},
    work::current::Blocking,
};

/// Waits for `future` on this thread, which sleeps meanwhile.
///
/// # Panics
/// Inside an asynchronous context. `instead` says what to do there.
#[track_caller]
pub(crate) fn wait_for<F: Future>(future: F, instead: &str) -> F::Output {
    let Some(_blocking) = NoBlocking::enter(Blocking::InPlace) else {
        panic!(
            "Cannot block the current thread from within a runtime: it is being used to drive \
             asynchronous tasks; {instead}, or do this inside `spawn_blocking`"
        );
    };
    drive::wait_for(None, future)
}
