//! Handles of a spawned task: for awaiting its output, and for aborting it.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, Waker, ready},
};

use super::{
    arena::{self, Origin},
    budget,
    cell::{Header, Id, Task},
    error::JoinError,
    poll,
    state::{Detached, JoinWaker, Woken},
    timestamp::WaitReason,
};
use crate::engine::{prim::discard, work::thread_context};

/// A counted reference to a task.
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: a `TaskRef` reaches only the state word, which is atomic, and fields that
// never change; both may be used from any thread.
unsafe impl Send for TaskRef {}
// SAFETY: a shared `TaskRef` reaches only the atomic state word and fields that never change.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// Wraps a reference that is already counted.
    ///
    /// # Safety
    /// 1. The caller gives up one reference, which becomes this one.
    pub(crate) unsafe fn from_counted(task: NonNull<Header>) -> Self {
        Self(task)
    }

    /// Counts a new reference to a task that the caller borrows.
    ///
    /// # Safety
    /// 1. The task is alive during the call.
    pub(crate) unsafe fn from_borrowed(task: NonNull<Header>) -> Self {
        // SAFETY: obligation 1: the task is alive during this call.
        unsafe { task.as_ref() }.state.add_ref();
        Self(task)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: our counted reference keeps the task's memory alive.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    pub(crate) fn abort(&self) {
        self.act_on(self.header().state.cancel());
    }

    /// Does what a transition returned; the transition must have kept the reference.
    pub(crate) fn act_on(&self, woken: Woken) {
        match woken {
            // SAFETY: the transition returned `Schedule`, so it set QUEUED and this is the one entry.
            Woken::Schedule => poll::schedule(unsafe { Task::new(self.0) }, Origin::Woken),
            Woken::Nothing => {}
            Woken::Free => unreachable!("no reference was given up"),
        }
    }

    fn is_finished(&self) -> bool {
        self.header().state.snapshot().is_complete()
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        self.header().state.add_ref();
        Self(self.0)
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        if self.header().state.unref() {
            // SAFETY: `unref` returned true, so no reference and no entry is left. Such a task is
            // complete, and the thread that completed or detached it dropped output and waker.
            unsafe { arena::free(self.0) };
        }
    }
}

/// A handle to a spawned task, which can be awaited for the task's output.
///
/// This is the counterpart of [`std::thread::JoinHandle`] for tasks. Dropping the handle
/// detaches the task: the task keeps running, and its output is dropped when it completes.
///
/// # Cancel safety
///
/// Awaiting `&mut handle` is cancel safe: if the wait is dropped, the output is
/// still there for the next wait.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let handle = blitz_io::spawn(async { 1 + 1 });
/// assert_eq!(handle.await.unwrap(), 2);
/// # });
/// ```
pub struct JoinHandle<T> {
    task: ManuallyDrop<TaskRef>,
    output: PhantomData<T>,
}

// SAFETY: the handle gives access to a `T` by value only, and never to two
// threads at once.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle reaches only the atomic state word and fields that never change.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Creates the handle of a new task.
    ///
    /// # Safety
    /// 1. `task` is a new task's join reference, of output `T`, given up here.
    #[inline]
    pub(crate) unsafe fn new(task: NonNull<Header>) -> Self {
        // SAFETY: obligation 1: the caller gives up the join reference, which becomes this one.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_counted(task) });
        Self { task, output: PhantomData }
    }

    /// Consumes the handle without detaching; the caller takes over its reference and its rights.
    #[inline]
    pub(crate) fn into_header(self) -> NonNull<Header> {
        ManuallyDrop::new(self).task.as_ptr()
    }

    /// Requests that the task be cancelled.
    ///
    /// The task ends at the `.await` where it is suspended, or at the next one that is pending:
    /// a thread of its runtime drops the future, never this call.
    /// Awaiting the handle then returns a cancelled [`JoinError`], unless the task was complete, or
    /// the poll that is under way completes it. Inside [`shield`](crate::task::shield) the
    /// cancellation is deferred until the shielded part is over.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(std::future::pending::<()>());
    /// handle.abort();
    /// assert!(handle.await.unwrap_err().is_cancelled());
    /// # });
    /// ```
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Returns true if the task has completed, panicked or been cancelled.
    ///
    /// A task that was aborted has finished only when its future has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut handle = blitz_io::spawn(async {});
    /// (&mut handle).await.unwrap();
    /// assert!(handle.is_finished());
    /// # });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns a new [`AbortHandle`] for this task, through which other code can abort it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(std::future::pending::<()>());
    /// let abort = handle.abort_handle();
    /// abort.abort();
    /// assert!(handle.await.unwrap_err().is_cancelled());
    /// assert!(abort.is_finished());
    /// # });
    /// ```
    #[must_use = "abort handles do nothing unless `.abort` is called"]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle { task: TaskRef::clone(&self.task) }
    }

    /// Returns the task's [ID](Id).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let (one, two) = (blitz_io::spawn(async {}), blitz_io::spawn(async {}));
    /// assert_ne!(one.id(), two.id());
    /// # });
    /// ```
    pub fn id(&self) -> Id {
        self.task.header().id
    }

    #[cfg(test)]
    pub(crate) fn header_address(&self) -> usize {
        self.task.as_ptr().addr().get()
    }

    /// Registers `waker` for the task's completion; returns true if the task is already complete.
    #[inline]
    fn is_complete_or_register(&self, waker: &Waker) -> bool {
        let header = self.task.header();
        let now = header.state.snapshot();
        if now.is_complete() {
            return true;
        }
        if now.has_join_waker() && header.state.unset_join_waker() == JoinWaker::Complete {
            return true;
        }
        // SAFETY: JOIN_WAKER is clear, so by rule 4 of the module `task` the field is ours.
        let old = header.join_waker.with_mut(|field| unsafe { (*field).take() });
        let new = match old {
            Some(old) if old.will_wake(waker) => old,
            _ => waker.clone(),
        };
        // SAFETY: JOIN_WAKER is still clear, so by rule 4 of the module `task` the field is ours.
        header.join_waker.with_mut(|field| unsafe { *field = Some(new) });
        match header.state.set_join_waker() {
            JoinWaker::Changed => false,
            JoinWaker::Complete => {
                // SAFETY: the task completed while JOIN_WAKER was clear, so the
                // field stayed ours.
                drop(header.join_waker.with_mut(|field| unsafe { (*field).take() }));
                true
            }
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(budget::poll_proceed(cx));
        if !self.is_complete_or_register(cx.waker()) {
            thread_context::waits_for(WaitReason::Task);
            return Poll::Pending;
        }
        unit.spend();
        let mut output = Poll::Pending;
        // SAFETY: 1. the task is complete, and we are its `JoinHandle`, so by rule 3 of the
        // module `task` the stage is ours. 2. `T` is the task's output.
        unsafe { Header::read_output(self.task.as_ptr(), (&raw mut output).cast()) };
        output
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        let header = self.task.header();
        match header.state.detach() {
            Detached::Gone => return,
            // SAFETY: the task completed while JOIN_INTEREST was set, so by rule 3 of the module
            // `task` the output is ours.
            Detached::DropOutput => unsafe { Header::drop_output(self.task.as_ptr()) },
            Detached::DropWaker => {
                // SAFETY: we cleared JOIN_WAKER before completion, so by rule 4 of the module
                // `task` the field is ours.
                discard(header.join_waker.with_mut(|field| unsafe { (*field).take() }));
            }
        }
        // SAFETY: the field is dropped once, here; in the case `Gone`, which gave the reference
        // up already, we returned above.
        unsafe { ManuallyDrop::drop(&mut self.task) };
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id()).finish()
    }
}

/// A handle that can abort a spawned task, but not await it.
///
/// Unlike a [`JoinHandle`] it cannot be awaited, and dropping it has no effect on
/// the task.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let handle = blitz_io::spawn(std::future::pending::<()>());
/// let abort = handle.abort_handle();
/// std::thread::spawn(move || abort.abort());
/// assert!(handle.await.unwrap_err().is_cancelled());
/// # });
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    task: TaskRef,
}

impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    #[inline]
    pub(crate) fn new(task: TaskRef) -> Self {
        Self { task }
    }

    /// Requests that the task be cancelled; see [`JoinHandle::abort`].
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(std::future::pending::<()>());
    /// handle.abort_handle().abort();
    /// assert!(handle.await.unwrap_err().is_cancelled());
    /// # });
    /// ```
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Returns true if the task has completed, panicked or been cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(async {});
    /// let abort = handle.abort_handle();
    /// handle.await.unwrap();
    /// assert!(abort.is_finished());
    /// # });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns the task's [ID](Id).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(async {});
    /// assert_eq!(handle.abort_handle().id(), handle.id());
    /// # });
    /// ```
    pub fn id(&self) -> Id {
        self.task.header().id
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").field("id", &self.id()).finish()
    }
}
