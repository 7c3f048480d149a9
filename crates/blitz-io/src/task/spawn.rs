//! Spawning tasks, and the ID of the current task.

use std::{future::Future, panic::Location};

use super::{Id, JoinHandle};
use crate::{
    engine::work::{
        task::{cell::Label, extra::Extra, trace},
        thread_context,
    },
    runtime::context,
};

/// Spawns a future as a new task and returns a [`JoinHandle`] for it.
///
/// The task starts running in the background at once, whether or not the handle is awaited.
/// Dropping the handle detaches the task. If the task panics, the runtime catches the panic, and
/// awaiting the handle returns it as an error.
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

/// Returns `true` if a future is so large that it is boxed before it is passed on.
///
/// Without the box it would be copied through several stack frames, because a debug build does not
/// elide the copies. The limits are Tokio's.
pub(crate) const fn is_large<F>() -> bool {
    size_of::<F>() > if cfg!(debug_assertions) { 2048 } else { 16_384 }
}

/// Spawns a task on the current runtime, with the attributes in `label`.
#[track_caller]
#[inline]
pub(crate) fn spawn_labelled<F, X>(future: F, label: Label<X>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    // Dropping the future may leave the runtime's context and end the runtime, so nothing of the
    // runtime may be borrowed where the future can be dropped.
    let (future, label) = trace::trace(future, label, trace::TaskKind::Task);
    match context::with_current(|inner| inner.pool.spawn(future, label)) {
        Ok(Ok(handle)) => handle,
        Ok(Err(refused)) => refused.end(),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the [ID](Id) of the current task.
///
/// # Panics
///
/// Outside of a task. The future of `block_on` is not a task. [`try_id`] returns `None` instead of
/// panicking.
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

/// Returns the [ID](Id) of the current task, or `None` outside of a task.
///
/// # Examples
///
/// ```
/// assert_eq!(blitz_io::task::try_id(), None);
/// ```
pub fn try_id() -> Option<Id> {
    // The header may be read, because a task stays alive while it is the current one.
    thread_context::task_id()
}
