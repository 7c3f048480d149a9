//! A set of tasks that stay on their thread.

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
        local::{Left, Local, bell::Driver, context::Inside},
        pool::vigil::guest,
        work::task::{cell::Label, extra::Extra, trace},
    },
    runtime::{Id, Runtime, UnhandledPanic},
};

/// A set of tasks which are executed on the same thread.
///
/// Their futures need not be [`Send`]: they are polled and dropped on the thread
/// that made the set, whoever wakes or aborts them. The set itself cannot leave that
/// thread.
///
/// The tasks run while the set is polled: by [`run_until`](Self::run_until), by
/// [`block_on`](Self::block_on), or by awaiting the set, which completes once all of
/// its tasks have. One poll of the set polls no more than 61 of them, in the order
/// in which they became ready, so that it shares its thread with others. If several
/// futures drive a set, each of them runs whatever is ready.
///
/// A set may be polled inside any runtime, and without one. It should not be used
/// inside of a [`LocalRuntime`](crate::runtime::LocalRuntime), to which
/// [`spawn_local`](super::spawn_local) goes there.
///
/// # Drop
///
/// With the set all of its tasks are dropped, one after the other, on this thread; a
/// destructor that panics ends only its own task. Awaiting a handle then gives a
/// cancelled [`JoinError`](crate::task::JoinError), as does what a destructor spawns
/// into the set meanwhile.
///
/// This also holds for a set in a thread-local, which is dropped at its thread's end.
/// Code in its tasks' destructors then finds no runtime on the thread, and which
/// other thread-locals are there is up to the system. Threads that wake or abort a
/// task of the set at that moment, or later, do no harm.
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
    /// Neither may leave its thread; and a panic in a poll may leave a user's tasks
    /// half done.
    marker: PhantomData<*mut std::cell::Cell<()>>,
}

/// Context guard for a [`LocalSet`], returned by [`LocalSet::enter`].
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
    _inside: Inside,
    marker: PhantomData<*mut std::cell::Cell<()>>,
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}

/// What drives a set by being awaited itself.
const WHOLE: Driver = Driver::first();

impl LocalSet {
    /// Returns a new local task set, of the calling thread.
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

    /// Enters the context of this `LocalSet`: until the guard is dropped,
    /// [`spawn_local`](super::spawn_local) on this thread means this set.
    ///
    /// Guards may be dropped in any order: the set counts that was entered last and
    /// not left. A guard does not keep the set's tasks: what is spawned after the set
    /// is gone is cancelled at once.
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
        LocalEnterGuard { _inside: Inside::new(&self.local), marker: PhantomData }
    }

    /// Spawns a `!Send` task onto the local task set.
    ///
    /// It runs when the set is polled next; whoever drives the set is woken.
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
        let (future, label) = trace::trace(future, label, trace::Kind::Local);
        self.local.spawn(future, label)
    }

    /// Runs a future to completion on the provided runtime, driving any local futures
    /// spawned on this task set on the current thread.
    ///
    /// As [`run_until`](Self::run_until) inside of `rt.block_on`. Tasks of the set
    /// that are left then wait for the next time that it is polled.
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
    /// let answer = LocalSet::new().block_on(&rt, async {
    ///     task::spawn_local(async { 42 }).await.unwrap()
    /// });
    /// assert_eq!(answer, 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F>(&self, rt: &Runtime, future: F) -> F::Output
    where
        F: Future,
    {
        rt.block_on(self.run_until(future))
    }

    /// Runs a future to completion on the local set, returning its output.
    ///
    /// The future runs in the context of the set, and is itself none of its tasks: it
    /// shares the budget of whoever polls it. In each poll it comes first, then up to
    /// 61 tasks.
    ///
    /// # Cancel safety
    ///
    /// When the returned future is dropped, `future` is; the set and its tasks stay
    /// as they are.
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

    /// Configures how the `LocalSet` responds to an unhandled panic on a spawned task:
    /// [`UnhandledPanic::Ignore`] unless set.
    ///
    /// With [`UnhandledPanic::ShutdownRuntime`] a panic of a task, or of the drop of its
    /// future, ends the set: all of its tasks are dropped, and whoever drives the set
    /// panics, as does every later poll of it. Tasks spawned from then on are cancelled.
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

    /// Returns the [`Id`] of the current `LocalSet`: no runtime and no other set has
    /// it.
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
        guest::local_tasks_run();
        let Err(left) = self.local.poll(WHOLE, cx, |_| Poll::<Infallible>::Pending);
        match left {
            Left::Nothing => return Poll::Ready(()),
            Left::Tasks => {}
            Left::Entries => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        self.local.end();
    }
}

/// A driver of the set, until it is dropped.
struct Driven<'a> {
    local: &'a Local,
    driver: Driver,
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
        // Dropped after the future, whose destructor may leave something to do.
        driven: Driven<'a>,
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Driven { local, driver } = *this.driven;
        guest::local_tasks_run();
        match local.poll(driver, cx, |cx| this.future.poll(cx)) {
            Ok(output) => return Poll::Ready(output),
            Err(Left::Entries) => cx.waker().wake_by_ref(),
            Err(Left::Tasks | Left::Nothing) => {}
        }
        Poll::Pending
    }
}
