//! Waiting for tasks to end without collecting their outputs.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::JoinHandle;
use crate::{
    engine::work::task::{
        budget,
        tracker::{Tracker, TrackerWait},
    },
    runtime::Handle,
};

/// A counter of running tasks that can be awaited, typically during a graceful shutdown.
///
/// Unlike a [`JoinSet`](super::JoinSet) it stores no outputs, so a task that has ended leaves
/// nothing behind; it can be cloned and shared; and dropping it aborts nothing.
/// [`wait`](Self::wait) completes once the tracker is [closed](Self::close) and everything that it
/// tracks has been dropped. The name and the interface are those of `tokio-util`.
///
/// Tracking a task takes two operations on shared counters, and the end of the task takes two more.
/// Neither path takes a lock.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}};
/// use blitz_io::task::TaskTracker;
///
/// # blitz_io::run(async {
/// let (tracker, served) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)));
/// for _ in 0..10 {
///     let served = served.clone();
///     tracker.spawn(async move { served.fetch_add(1, Relaxed) });
/// }
/// tracker.close();
/// tracker.wait().await;
/// assert_eq!(served.load(Relaxed), 10);
/// # });
/// ```
#[derive(Clone)]
pub struct TaskTracker {
    tracker: Arc<Tracker>,
}

/// A token that a [`TaskTracker`] counts as a task until the token is dropped.
///
/// # Examples
///
/// ```
/// let tracker = blitz_io::task::TaskTracker::new();
/// let token = tracker.token();
/// assert_eq!(tracker.len(), 1);
/// drop(token);
/// assert!(tracker.is_empty());
/// ```
#[must_use = "a token that is dropped is tracked no longer"]
pub struct TaskTrackerToken {
    task_tracker: TaskTracker,
}

pin_project! {
    /// A future that a [`TaskTracker`] tracks until it is dropped; see
    /// [`TaskTracker::track_future`].
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// let tracked = tracker.track_future(async { 5 });
    /// assert_eq!(tracker.len(), 1);
    /// assert_eq!(tracked.await, 5);
    /// # });
    /// ```
    #[must_use = "futures do nothing unless polled"]
    pub struct TrackedFuture<F> {
        // Dropped before the token, so that nothing of the future is left when the tracker is
        // notified.
        #[pin]
        future: F,
        token: TaskTrackerToken,
    }
}

/// The future of [`TaskTracker::wait`]: completes when the tracker is closed and empty.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let tracker = blitz_io::task::TaskTracker::new();
/// let wait = tracker.wait();
/// tracker.close();
/// wait.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct TaskTrackerWaitFuture<'a> {
    tracker: &'a Tracker,
    wait: TrackerWait,
}

impl TaskTracker {
    /// Creates an open `TaskTracker` that tracks nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// assert!(tracker.is_empty() && !tracker.is_closed());
    /// ```
    pub fn new() -> Self {
        Self { tracker: Arc::new(Tracker::new()) }
    }

    /// Waits until this tracker is closed and tracks nothing.
    ///
    /// If it is both at any time after this call, the wait completes, even if the tracker is
    /// reopened or a task is spawned before the wait is polled again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.spawn(async {});
    /// tracker.close();
    /// tracker.wait().await;
    /// assert!(tracker.is_empty());
    /// # });
    /// ```
    pub fn wait(&self) -> TaskTrackerWaitFuture<'_> {
        TaskTrackerWaitFuture { tracker: &self.tracker, wait: self.tracker.wait() }
    }

    /// Closes this `TaskTracker`, so that [`wait`](Self::wait) can complete, and returns `true` if
    /// it was open.
    ///
    /// Tasks can still be spawned on a closed tracker.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// assert!(tracker.close());
    /// assert!(!tracker.close());
    /// ```
    pub fn close(&self) -> bool {
        self.tracker.close()
    }

    /// Reopens this `TaskTracker` and returns `true` if it was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.close();
    /// assert!(tracker.reopen());
    /// assert!(!tracker.is_closed());
    /// ```
    pub fn reopen(&self) -> bool {
        self.tracker.reopen()
    }

    /// Returns `true` if this `TaskTracker` is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.close();
    /// assert!(tracker.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.tracker.is_closed()
    }

    /// Returns the number of tasks, futures and tokens that this `TaskTracker` tracks.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// let tokens = [tracker.token(), tracker.token()];
    /// assert_eq!(tracker.len(), tokens.len());
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Returns `true` if this `TaskTracker` tracks nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(blitz_io::task::TaskTracker::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spawns a future on the current runtime and tracks it.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// assert_eq!(tracker.spawn(async { 1 }).await.unwrap(), 1);
    /// # });
    /// ```
    #[track_caller]
    #[inline]
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        super::spawn(self.track_future(task))
    }

    /// Spawns a future on the runtime of `handle` and tracks it.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.spawn_on(async {}, rt.handle());
    /// tracker.close();
    /// rt.block_on(tracker.wait());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn spawn_on<F>(&self, task: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        handle.spawn(self.track_future(task))
    }

    /// Spawns a `!Send` future on the current [`LocalSet`](super::LocalSet) or `LocalRuntime` and
    /// tracks it.
    ///
    /// # Panics
    ///
    /// Outside of both, like [`task::spawn_local`](super::spawn_local).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{LocalSet, TaskTracker};
    ///
    /// # blitz_io::run(LocalSet::new().run_until(async {
    /// let tracker = TaskTracker::new();
    /// tracker.spawn_local(async {});
    /// tracker.close();
    /// tracker.wait().await;
    /// # }));
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        super::spawn_local(self.track_future(task))
    }

    /// Spawns a `!Send` future on the given [`LocalSet`](super::LocalSet) and tracks it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{LocalSet, TaskTracker};
    ///
    /// # blitz_io::run(async {
    /// let (local, tracker) = (LocalSet::new(), TaskTracker::new());
    /// tracker.spawn_local_on(async {}, &local);
    /// tracker.close();
    /// local.run_until(tracker.wait()).await;
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(&self, task: F, local_set: &super::LocalSet) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        local_set.spawn_local(self.track_future(task))
    }

    /// Runs a closure on the current runtime's blocking pool and tracks it.
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.spawn_blocking(|| ());
    /// tracker.close();
    /// tracker.wait().await;
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, task: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let tracked = TrackedCall { task, token: self.token() };
        super::spawn_blocking(move || tracked.call())
    }

    /// Runs a closure on the blocking pool of the runtime of `handle` and tracks it.
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// tracker.spawn_blocking_on(|| (), rt.handle());
    /// tracker.close();
    /// rt.block_on(tracker.wait());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_on<F, T>(&self, task: F, handle: &Handle) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let tracked = TrackedCall { task, token: self.token() };
        handle.spawn_blocking(move || tracked.call())
    }

    /// Wraps a future so that it is tracked until it is dropped; completing it is not enough.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// let task = blitz_io::spawn(tracker.track_future(async { 2 }));
    /// tracker.close();
    /// tracker.wait().await;
    /// assert_eq!(task.await.unwrap(), 2);
    /// # });
    /// ```
    #[inline]
    pub fn track_future<F: Future>(&self, future: F) -> TrackedFuture<F> {
        TrackedFuture { future, token: self.token() }
    }

    /// Creates a token, which is tracked until it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let tracker = blitz_io::task::TaskTracker::new();
    /// let token = tracker.token();
    /// assert!(!tracker.is_empty());
    /// # drop(token);
    /// ```
    #[inline]
    pub fn token(&self) -> TaskTrackerToken {
        self.tracker.enter();
        TaskTrackerToken { task_tracker: self.clone() }
    }

    /// Returns `true` if both are clones of the same tracker.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::TaskTracker;
    ///
    /// let (one, two) = (TaskTracker::new(), TaskTracker::new());
    /// assert!(TaskTracker::ptr_eq(&one, &one.clone()));
    /// assert!(!TaskTracker::ptr_eq(&one, &two));
    /// ```
    #[must_use]
    pub fn ptr_eq(left: &TaskTracker, right: &TaskTracker) -> bool {
        Arc::ptr_eq(&left.tracker, &right.tracker)
    }
}

impl Default for TaskTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TaskTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTracker")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl TaskTrackerToken {
    /// Returns the [`TaskTracker`] that created this token.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::TaskTracker;
    ///
    /// let tracker = TaskTracker::new();
    /// assert!(TaskTracker::ptr_eq(tracker.token().task_tracker(), &tracker));
    /// ```
    #[must_use]
    pub fn task_tracker(&self) -> &TaskTracker {
        &self.task_tracker
    }
}

impl Clone for TaskTrackerToken {
    /// Creates another token of the same tracker.
    fn clone(&self) -> Self {
        self.task_tracker.token()
    }
}

impl Drop for TaskTrackerToken {
    #[inline]
    fn drop(&mut self) {
        self.task_tracker.tracker.leave();
    }
}

impl fmt::Debug for TaskTrackerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTrackerToken").finish_non_exhaustive()
    }
}

/// A closure that is tracked until it has returned or is dropped.
struct TrackedCall<F> {
    // Dropped before the token, also if the closure is never called. The two are fields of one
    // struct because a closure drops its captures in an unspecified order.
    task: F,
    token: TaskTrackerToken,
}

impl<F: FnOnce() -> T, T> TrackedCall<F> {
    fn call(self) -> T {
        let Self { task, token: _token } = self;
        task()
    }
}

impl<F: Future> Future for TrackedFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

impl<F: fmt::Debug> fmt::Debug for TrackedFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedFuture")
            .field("future", &self.future)
            .field("task_tracker", self.token.task_tracker())
            .finish()
    }
}

impl Future for TaskTrackerWaitFuture<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let unit = ready!(budget::poll_proceed(cx));
        ready!(this.tracker.poll_wait(&mut this.wait, cx));
        unit.spend();
        Poll::Ready(())
    }
}

impl Drop for TaskTrackerWaitFuture<'_> {
    fn drop(&mut self) {
        self.tracker.end_wait(&mut self.wait);
    }
}

impl fmt::Debug for TaskTrackerWaitFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTrackerWaitFuture").finish_non_exhaustive()
    }
}
