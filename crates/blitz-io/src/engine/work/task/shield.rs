//! Shields: sections of a task that an abort does not interrupt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::handle::TaskRef;
use crate::engine::work::thread_context;

pin_project! {
    /// The future returned by [`shield`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Shield<F> {
        task: ShieldedTask,
        #[pin]
        future: F,
    }
}

/// Defers aborts of the current task from the first poll of `future` until it
/// completes or is dropped.
///
/// An [`abort`](crate::task::JoinHandle::abort) that comes meanwhile takes effect
/// at the next `.await` that has to wait outside of every shield. Shields nest. Outside of a task
/// a shield has no effect. If the future is polled by another task than before,
/// the shield moves to that task.
///
/// A shield that is leaked ([`std::mem::forget`]) after its first poll leaves its
/// task unabortable. The shutdown of a runtime drops shielded tasks all the same,
/// because it could not end otherwise.
///
/// # Panics
///
/// When polled inside 255 other shields.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use blitz_io::task;
///
/// static WRITTEN: AtomicBool = AtomicBool::new(false);
///
/// # blitz_io::run(async {
/// let handle = task::spawn(async {
///     task::shield(async {
///         task::yield_now().await; // an abort does not end it here
///         WRITTEN.store(true, Ordering::Relaxed);
///     })
///     .await;
///     std::future::pending::<()>().await // but here
/// });
/// task::yield_now().await;
/// handle.abort();
/// # let aborted_before_its_first_poll = !WRITTEN.load(Ordering::Relaxed);
/// assert!(handle.await.unwrap_err().is_cancelled());
/// # let _ = aborted_before_its_first_poll;
/// # });
/// ```
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield { task: ShieldedTask(None), future }
}

/// The task that a shield covers now.
#[derive(Debug)]
struct ShieldedTask(Option<TaskRef>);

impl std::fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TaskRef").field(&self.header().id).finish()
    }
}

impl ShieldedTask {
    /// Covers the task that is being polled, and no other.
    fn cover_current(&mut self) {
        let current = thread_context::task();
        if self.0.as_ref().map(TaskRef::as_ptr) == current {
            return;
        }
        self.lift();
        let Some(task) = current else { return };
        // SAFETY: 1. the current task is alive.
        let task = unsafe { TaskRef::from_borrowed(task) };
        if task.header().state.shield().is_err() {
            panic!("255 shields cover this task already: shield a whole section, not each step");
        }
        self.0 = Some(task);
    }

    /// Removes the shield from the task that it covers.
    fn lift(&mut self) {
        if let Some(task) = self.0.take() {
            task.act_on(task.header().state.unshield());
        }
    }
}

impl Drop for ShieldedTask {
    fn drop(&mut self) {
        self.lift();
    }
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.task.cover_current();
        let polled = this.future.poll(cx);
        if polled.is_ready() {
            this.task.lift();
        }
        polled
    }
}
