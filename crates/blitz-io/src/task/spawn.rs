//! Starting tasks, and asking which one this is.

use std::{future::Future, panic::Location};

use super::{Id, JoinHandle};
use crate::{
    engine::work::{
        current,
        task::{cell::Label, extra::Extra, trace},
    },
    runtime::context,
};

/// Spawns a new asynchronous task, returning a [`JoinHandle`] for it.
///
/// The task starts at once, in the background, whether or not the handle is
/// awaited. Dropping the handle detaches the task. If the task panics, the panic
/// ends there, and awaiting the handle gives it as an error.
///
/// # Panics
///
/// If there is no runtime on this thread.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let handles: Vec<_> = (0..10).map(|n| blitz_io::spawn(async move { n * 2 })).collect();
/// for (n, handle) in handles.into_iter().enumerate() {
///     assert_eq!(handle.await.unwrap(), n * 2);
/// }
/// # });
/// ```
#[track_caller]
#[inline]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let spawned_at = Location::caller();
    if is_large::<F>() {
        return spawn_labelled(Box::pin(future), Label::at(spawned_at));
    }
    spawn_labelled(future, Label::at(spawned_at))
}

/// Whether a future is boxed before it is passed on: it would otherwise be copied
/// through several frames, which a debug build does not elide. Tokio's limits.
pub(crate) const fn is_large<F>() -> bool {
    size_of::<F>() > if cfg!(debug_assertions) { 2048 } else { 16_384 }
}

/// Spawns on the current runtime, with what the label says.
#[track_caller]
#[inline]
pub(crate) fn spawn_labelled<F, X>(future: F, label: Label<X>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    // Dropping the future may leave the runtime's context and end the runtime, so
    // nothing of it is borrowed where that can happen.
    let (future, label) = trace::trace(future, label, trace::Kind::Task);
    match context::with_current(|inner| inner.pool.spawn(future, label)) {
        Ok(Ok(handle)) => handle,
        Ok(Err(refused)) => refused.end(),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the [`Id`] of the currently running task.
///
/// # Panics
///
/// Outside of a task; the future of `block_on` is none. [`try_id`] answers with
/// `None` instead.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let handle = blitz_io::spawn(async { blitz_io::task::id() });
/// assert_eq!(handle.id(), handle.await.unwrap());
/// # });
/// ```
#[track_caller]
pub fn id() -> Id {
    try_id().expect("Can't get a task id when not inside a task: use `try_id`")
}

/// Returns the [`Id`] of the currently running task, or `None` outside of one.
///
/// # Examples
///
/// ```
/// assert_eq!(blitz_io::task::try_id(), None);
/// ```
pub fn try_id() -> Option<Id> {
    // The current task is alive as long as it is current.
    current::task_id()
}
