//! `LocalSet`: a set of tasks that stay on their thread.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    marker::PhantomData,
    panic::Location,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::super::{JoinHandle, is_large};
use crate::{
    engine::{
        local::{Local, Remaining, context::EnteredSet, notifier::SetDriverId},
        preempt::block_on,
        work::task::{cell::Label, extra::Extra, trace},
    },
    runtime::{Id, Runtime, UnhandledPanic},
};

/// A set of `!Send` tasks that all run on the thread that created the set.
///
/// The tasks' futures need not be [`Send`]: they are polled and dropped on the thread that created
/// the set, whichever thread wakes or aborts them. The set itself cannot leave that thread.
///
/// The tasks run while the set is polled: by [`run_until`](Self::run_until), by
/// [`block_on`](Self::block_on), or by awaiting the set, which completes once all of its tasks
/// have. One poll of the set polls at most 61 tasks, in the order in which they became ready, so
/// that it shares its thread with other futures. If several futures drive a set, each of them runs
/// any task that is ready.
///
/// A set may be polled inside any runtime, and without one. It should not be used inside of a
/// [`LocalRuntime`](crate::runtime::LocalRuntime), because [`spawn_local`](super::spawn_local)
/// spawns on that runtime there.
///
/// # Drop
///
/// Dropping the set drops all of its tasks, one after the other, on this thread; a destructor that
/// panics ends only its own task. Awaiting a handle afterwards returns a cancelled
/// [`JoinError`](crate::task::JoinError), also for a task that a destructor spawns into the set
/// meanwhile.
///
/// This also holds for a set in a thread-local, which is dropped when its thread ends. Destructors
/// of its tasks then find no runtime on the thread, and it depends on the operating system which
/// other thread-locals still exist. Threads that wake or abort a task of the set at that moment, or
/// later, do no harm.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use blitz_io::task::{self, LocalSet};
///
/// # blitz_io::run(async {
/// let set = LocalSet::new();
/// let count = Rc::new(Cell::new(0));
/// for _ in 0..10 {
///     let count = count.clone();
///     set.spawn_local(async move {
///         task::yield_now().await;
///         count.set(count.get() + 1);
///     });
/// }
/// set.await;
/// assert_eq!(count.get(), 10);
/// # });
/// ```
pub struct LocalSet {
    local: Local,
    id: Id,
    /// Makes the set `!Send`, `!Sync` and not unwind safe: it must stay on its thread, and a panic
    /// in a poll may leave a user's tasks in an inconsistent state.
    marker: PhantomData<*mut std::cell::Cell<()>>,
}

/// A guard that keeps this thread in the context of a [`LocalSet`], returned by
/// [`LocalSet::enter`].
///
/// # Examples
///
/// ```
/// use blitz_io::task::{self, LocalSet};
///
/// let set = LocalSet::new();
/// let guard = set.enter();
/// let handle = task::spawn_local(async { 1 });
/// drop(guard);
/// # blitz_io::run(async {
/// assert_eq!(set.run_until(handle).await.unwrap(), 1);
/// # });
/// ```
pub struct LocalEnterGuard {
    _inside: EnteredSet,
    marker: PhantomData<*mut std::cell::Cell<()>>,
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}

/// The driver of a set that is awaited itself.
const WHOLE: SetDriverId = SetDriverId::first();

impl LocalSet {
    /// Creates an empty set that belongs to the calling thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let set = blitz_io::task::LocalSet::new();
    /// set.spawn_local(async { println!("on this thread") });
    /// set.await;
    /// # });
    /// ```
    pub fn new() -> LocalSet {
        LocalSet { local: Local::new(), id: Id::next(), marker: PhantomData }
    }

    /// Enters the context of this set: until the guard is dropped,
    /// [`spawn_local`](super::spawn_local) on this thread spawns on this set.
    ///
    /// Guards may be dropped in any order: the set that was entered last and not left is the
    /// current one. A guard does not keep the set's tasks alive: a task that is spawned after the
    /// set was dropped is cancelled at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{self, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// let set = LocalSet::new();
    /// {
    ///     let _guard = set.enter();
    ///     task::spawn_local(async { println!("part of the set") });
    /// }
    /// set.await;
    /// # });
    /// ```
    pub fn enter(&self) -> LocalEnterGuard {
        LocalEnterGuard { _inside: EnteredSet::new(&self.local), marker: PhantomData }
    }

    /// Spawns a `!Send` task on this set.
    ///
    /// The task runs when the set is polled next; the futures that drive the set are woken for
    /// this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use blitz_io::task::LocalSet;
    ///
    /// # blitz_io::run(async {
    /// let set = LocalSet::new();
    /// let handle = set.spawn_local({
    ///     let shared = Rc::new(7);
    ///     async move { *shared }
    /// });
    /// assert_eq!(set.run_until(handle).await.unwrap(), 7);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            return self.spawn_labelled(Box::pin(future), Label::at(spawned_at));
        }
        self.spawn_labelled(future, Label::at(spawned_at))
    }

    pub(crate) fn spawn_labelled<F, X>(&self, future: F, label: Label<X>) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        X: Extra,
    {
        let (future, label) = trace::trace(future, label, trace::TaskKind::Local);
        self.local.spawn(future, label)
    }

    /// Runs a future to completion on the given runtime, and this set's tasks with it, on the
    /// current thread.
    ///
    /// This is [`run_until`](Self::run_until) inside of `rt.block_on`. Tasks of the set that have
    /// not ended when the future completes wait until the set is polled again.
    ///
    /// # Panics
    ///
    /// If the future panics, or if called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime::Runtime, task::{self, LocalSet}};
    ///
    /// let rt = Runtime::new()?;
    /// let output = LocalSet::new().block_on(&rt, async {
    ///     task::spawn_local(async { 42 }).await.unwrap()
    /// });
    /// assert_eq!(output, 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F>(&self, rt: &Runtime, future: F) -> F::Output
    where
        F: Future,
    {
        rt.block_on(self.run_until(future))
    }

    /// Runs a future to completion, and this set's tasks with it, and returns the future's output.
    ///
    /// The future runs in the context of the set, but is not one of its tasks: it shares the budget
    /// of the task that polls it. Each poll polls the future first, then up to 61 tasks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future`; the set and its tasks are unaffected.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{self, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// let set = LocalSet::new();
    /// let sum = set
    ///     .run_until(async {
    ///         let one = task::spawn_local(async { 1 });
    ///         let two = task::spawn_local(async { 2 });
    ///         one.await.unwrap() + two.await.unwrap()
    ///     })
    ///     .await;
    /// assert_eq!(sum, 3);
    /// # });
    /// ```
    pub async fn run_until<F>(&self, future: F) -> F::Output
    where
        F: Future,
    {
        let driven = Driven { local: &self.local, driver: self.local.driver() };
        RunUntil { future, driven }.await
    }

    /// Sets how the set reacts to a panic of one of its tasks; the default is
    /// [`UnhandledPanic::Ignore`].
    ///
    /// With [`UnhandledPanic::ShutdownRuntime`] a panic of a task, or of the destructor of its
    /// future, ends the set: all of its tasks are dropped, and the future that drives the set
    /// panics, as does every later poll of the set. Tasks spawned from then on are cancelled.
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// use blitz_io::{runtime::UnhandledPanic, task::{self, LocalSet}};
    ///
    /// # blitz_io::run(async {
    /// LocalSet::new()
    ///     .unhandled_panic(UnhandledPanic::ShutdownRuntime)
    ///     .run_until(async {
    ///         task::spawn_local(async { panic!("boom") });
    ///         std::future::pending::<()>().await; // panics
    ///     })
    ///     .await;
    /// # });
    /// ```
    pub fn unhandled_panic(&mut self, behavior: UnhandledPanic) -> &mut Self {
        self.local.end_on_panic(matches!(behavior, UnhandledPanic::ShutdownRuntime));
        self
    }

    /// Returns the [`Id`] of this set, which no runtime and no other set has.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::LocalSet;
    ///
    /// assert_ne!(LocalSet::new().id(), LocalSet::new().id());
    /// ```
    pub fn id(&self) -> Id {
        self.id
    }
}

impl Default for LocalSet {
    fn default() -> LocalSet {
        LocalSet::new()
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        block_on::local_tasks_run();
        let Err(remaining) = self.local.poll(WHOLE, cx, |_| Poll::<Infallible>::Pending);
        match remaining {
            Remaining::Nothing => return Poll::Ready(()),
            Remaining::Tasks => {}
            Remaining::Entries => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        self.local.end();
    }
}

/// A registered driver of a set, unregistered when this is dropped.
struct Driven<'a> {
    local: &'a Local,
    driver: SetDriverId,
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        self.local.leave(self.driver);
    }
}

pin_project! {
    struct RunUntil<'a, F> {
        #[pin]
        future: F,
        // Dropped after the future, because the future's destructor may make tasks of the set
        // ready.
        driven: Driven<'a>,
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Driven { local, driver } = *this.driven;
        block_on::local_tasks_run();
        match local.poll(driver, cx, |cx| this.future.poll(cx)) {
            Ok(output) => return Poll::Ready(output),
            Err(Remaining::Entries) => cx.waker().wake_by_ref(),
            Err(Remaining::Tasks | Remaining::Nothing) => {}
        }
        Poll::Pending
    }
}
