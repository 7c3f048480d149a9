//! What a spawner keeps of a task: the right to its output, and to end it.

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
    budget,
    cell::{Header, Id, Task},
    error::JoinError,
    home::{self, Origin},
    moment::Wait,
    poll,
    state::{Detached, JoinWaker, Woken},
};
use crate::engine::{prim::discard, work::current};

/// A counted reference to a task.
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: through it only the state word and fields that never change are
// reached, from any thread.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// # Safety
    /// 1. The caller gives up one reference, which becomes this one.
    pub(crate) unsafe fn from_counted(task: NonNull<Header>) -> Self {
        Self(task)
    }

    /// # Safety
    /// 1. The task is alive during the call.
    pub(crate) unsafe fn from_borrowed(task: NonNull<Header>) -> Self {
        // SAFETY: 1.
        unsafe { task.as_ref() }.state.add_ref();
        Self(task)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: our reference keeps it.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    pub(crate) fn abort(&self) {
        self.place(self.header().state.cancel());
    }

    /// Does what a transition asked for that gave up no reference.
    pub(crate) fn place(&self, duty: Woken) {
        match duty {
            // SAFETY: the transition set QUEUED and told us.
            Woken::Place => poll::place(unsafe { Task::new(self.0) }, Origin::Woken),
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
            // SAFETY: the state told us to; a task whose references are gone is
            // complete, and who completed or detached it dropped the rest.
            unsafe { home::free(self.0) };
        }
    }
}

/// An owned permission to join on a task (await its termination).
///
/// It is to a task what [`std::thread::JoinHandle`] is to a thread. Dropping it
/// detaches the task, which goes on; its output is then dropped.
///
/// # Cancel safety
///
/// Awaiting `&mut handle` is cancel safe: if the wait is dropped, the output is
/// still there for the next one.
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
// SAFETY: through a shared handle only the state word is reached.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// 1. `task` is a new task's join reference, of output `T`, given up here.
    #[inline]
    pub(crate) unsafe fn new(task: NonNull<Header>) -> Self {
        // SAFETY: 1.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_counted(task) });
        Self { task, output: PhantomData }
    }

    /// Gives up the handle for its reference and its rights.
    #[inline]
    pub(crate) fn into_header(self) -> NonNull<Header> {
        ManuallyDrop::new(self).task.as_ptr()
    }

    /// Aborts the task associated with the handle.
    ///
    /// The task ends at the `.await` where it stands or which it reaches next:
    /// its future is dropped by a thread of its runtime, never by the caller.
    /// Awaiting the handle then gives a cancelled [`JoinError`], unless the task
    /// completed first. Inside [`shield`](crate::task::shield) the end waits.
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

    /// Checks if the task associated with this `JoinHandle` has finished.
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

    /// Returns a new [`AbortHandle`] that can be used to remotely abort this task.
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

    /// Returns a [task ID](Id) that uniquely identifies this task.
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

    /// Leaves `waker` for the end of the task; `true` if that has come already.
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
        // SAFETY: JOIN_WAKER is clear: rule 4 gives the field to us.
        let old = header.join_waker.with_mut(|field| unsafe { (*field).take() });
        let new = match old {
            Some(old) if old.will_wake(waker) => old,
            _ => waker.clone(),
        };
        // SAFETY: as above.
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
        let unit = ready!(budget::proceed(cx));
        if !self.is_complete_or_register(cx.waker()) {
            current::waits_for(Wait::Task);
            return Poll::Pending;
        }
        unit.spend();
        let mut output = Poll::Pending;
        // SAFETY: 1. the task is complete, and we are its `JoinHandle`: rule 3
        // gives the stage to us. 2. `T` is its output.
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
            // SAFETY: the task completed while we were interested: rule 3.
            Detached::DropOutput => unsafe { Header::drop_output(self.task.as_ptr()) },
            Detached::DropWaker => {
                // SAFETY: we cleared JOIN_WAKER before completion: rule 4.
                discard(header.join_waker.with_mut(|field| unsafe { (*field).take() }));
            }
        }
        // SAFETY: dropped once, here; `Gone` gave the reference up already.
        unsafe { ManuallyDrop::drop(&mut self.task) };
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id()).finish()
    }
}

/// An owned permission to abort a spawned task, without awaiting its completion.
///
/// Unlike a [`JoinHandle`] it cannot be awaited, and dropping it does nothing to
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

    /// Aborts the task; see [`JoinHandle::abort`].
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

    /// Checks if the task associated with this `AbortHandle` has finished.
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

    /// Returns a [task ID](Id) that uniquely identifies this task.
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
