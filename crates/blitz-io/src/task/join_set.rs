//! A collection of tasks whose outputs are awaited as they come.
//!
//! [`JoinSet`] is the type; [`Builder`] gives a task of a set a name.

use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    panic::{Location, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    AbortHandle, Id, JoinError, JoinHandle, LocalSet, is_large,
    local::spawn_labelled as spawn_local_labelled, spawn_labelled,
};
use crate::{
    engine::work::task::{
        cell::Label,
        extra::{Blocks, Extra, Named},
        set::{Ended, Set},
    },
    runtime::Handle,
};

/// A collection of tasks spawned on a runtime.
///
/// Tasks are awaited in the order in which they end, whatever the order in which they
/// were spawned. All have outputs of one type. Dropping the set aborts every task in
/// it at once; [`detach_all`](Self::detach_all) lets them go instead.
///
/// A task of a set costs no allocation besides its own, and adding one touches nothing
/// that other threads write.
///
/// # Examples
///
/// ```
/// use blitz_io::task::JoinSet;
///
/// # blitz_io::run(async {
/// let mut set = JoinSet::new();
/// for n in 0..10 {
///     set.spawn(async move { n * n });
/// }
/// let mut sum = 0;
/// while let Some(square) = set.join_next().await {
///     sum += square.unwrap();
/// }
/// assert_eq!(sum, 285);
/// # });
/// ```
pub struct JoinSet<T> {
    set: Set<T>,
}

/// A task of a set that is to get a name, from [`JoinSet::build_task`].
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let mut set = blitz_io::task::JoinSet::new();
/// set.build_task().name("greeter").spawn(async { "hello" })?;
/// assert_eq!(set.join_next().await.unwrap().unwrap(), "hello");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "builders do nothing unless used to spawn a task"]
pub struct Builder<'a, T> {
    joinset: &'a mut JoinSet<T>,
    builder: super::Builder<'a>,
}

impl<T> JoinSet<T> {
    /// Creates a new `JoinSet`. It allocates nothing before its first task.
    ///
    /// # Examples
    ///
    /// ```
    /// let set = blitz_io::task::JoinSet::<u8>::new();
    /// assert!(set.is_empty());
    /// ```
    pub fn new() -> Self {
        Self { set: Set::new() }
    }

    /// Returns the number of tasks currently in the `JoinSet`: those that were spawned
    /// and not yet joined, whether they still run or not.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn(async {});
    /// assert_eq!(set.len(), 1);
    /// set.join_next().await;
    /// assert_eq!(set.len(), 0);
    /// # });
    /// ```
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Returns whether the `JoinSet` is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn(async {});
    /// assert!(!set.is_empty());
    /// # });
    /// ```
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

impl<T: 'static> JoinSet<T> {
    /// Returns a [`Builder`] that can be used to configure a task prior to spawning it
    /// on this `JoinSet`.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.build_task().name("sum").spawn(async { 1 + 1 })?;
    /// assert_eq!(set.join_all().await, [2]);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn build_task(&mut self) -> Builder<'_, T> {
        Builder { joinset: self, builder: super::Builder::new() }
    }

    /// Spawns the provided task on the `JoinSet`, returning an [`AbortHandle`] that can
    /// be used to remotely cancel the task.
    ///
    /// The task starts at once, whether or not the set is awaited.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// let abort = set.spawn(async { std::future::pending().await });
    /// set.spawn(async { 7 });
    /// assert_eq!(set.join_next().await.unwrap().unwrap(), 7);
    /// abort.abort();
    /// assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    /// # });
    /// ```
    #[track_caller]
    #[inline]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        self.spawn_by(Here, None, task)
    }

    /// Spawns the provided task on the provided runtime and stores it in this
    /// `JoinSet`, returning an [`AbortHandle`] that can be used to remotely cancel the
    /// task.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn_on(async { 1 }, rt.handle());
    /// assert_eq!(rt.block_on(set.join_all()), [1]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        self.spawn_by(On(handle), None, task)
    }

    /// Waits until one of the tasks in the set completes and returns its output, or
    /// `None` if the set is empty.
    ///
    /// Tasks are returned in the order in which they ended.
    ///
    /// # Cancel safety
    ///
    /// If the wait is dropped before it is over, no task has been removed from the set.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn(async { "done" });
    /// assert_eq!(set.join_next().await.unwrap().unwrap(), "done");
    /// assert!(set.join_next().await.is_none());
    /// # });
    /// ```
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Waits until one of the tasks in the set completes and returns its output, along
    /// with the [task ID](Id) of the completed task, or `None` if the set is empty.
    ///
    /// When the task failed its ID is that of the [`JoinError`](JoinError::id).
    ///
    /// # Cancel safety
    ///
    /// As [`join_next`](Self::join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// let spawned = set.spawn(async { "done" }).id();
    /// let (id, output) = set.join_next_with_id().await.unwrap().unwrap();
    /// assert_eq!((id, output), (spawned, "done"));
    /// # });
    /// ```
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// Tries to join one of the tasks in the set that has completed and return its
    /// output; `None` if there is none now, or if the set is empty.
    ///
    /// It does not wait, and takes nothing from the budget of the task that calls it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// assert!(set.try_join_next().is_none());
    /// set.spawn(async { 1 });
    /// let output = loop {
    ///     match set.try_join_next() {
    ///         Some(output) => break output,
    ///         None => blitz_io::task::yield_now().await,
    ///     }
    /// };
    /// assert_eq!(output.unwrap(), 1);
    /// # });
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.set.try_next().map(|(_, output)| output)
    }

    /// Tries to join one of the tasks in the set that has completed and return its
    /// output, along with its [task ID](Id); see [`try_join_next`](Self::try_join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::<()>::new();
    /// assert!(set.try_join_next_with_id().is_none());
    /// # });
    /// ```
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.set.try_next().map(with_id)
    }

    /// Aborts all tasks and waits for them to finish shutting down.
    ///
    /// It returns when the future of each has been dropped; their outputs, panics too,
    /// are dropped. To abort without waiting, drop the set.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the tasks are aborted all the same; those that have not ended are still
    /// in the set.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn(std::future::pending::<()>());
    /// set.shutdown().await;
    /// assert!(set.is_empty());
    /// # });
    /// ```
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Awaits the completion of all tasks in this `JoinSet`, returning a vector of
    /// their outputs in the order in which they ended.
    ///
    /// # Panics
    ///
    /// If a task panicked its panic goes on here; if one was cancelled, this panics
    /// with that. The tasks that are left are aborted.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, so is the set: the tasks that have not ended are aborted, and the outputs
    /// of the others are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let set: blitz_io::task::JoinSet<_> = (0..4).map(|n| async move { n * 2 }).collect();
    /// let mut doubles = set.join_all().await;
    /// doubles.sort();
    /// assert_eq!(doubles, [0, 2, 4, 6]);
    /// # });
    /// ```
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(joined) = self.join_next().await {
            match joined {
                Ok(output) => outputs.push(output),
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => resume_unwind(payload),
                    Err(error) => panic!("{error}"),
                },
            }
        }
        outputs
    }

    /// Aborts all tasks on this `JoinSet`.
    ///
    /// They stay in the set: [`join_next`](Self::join_next) says of each how it ended.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn(std::future::pending::<()>());
    /// set.abort_all();
    /// assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    /// # });
    /// ```
    pub fn abort_all(&mut self) {
        self.set.abort_all();
    }

    /// Removes all tasks from this `JoinSet` without aborting them.
    ///
    /// They go on in the background, even when the set is dropped. The set is empty and
    /// can be used again.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// let task = set.spawn(async { blitz_io::task::yield_now().await });
    /// set.detach_all();
    /// assert!(set.is_empty());
    /// while !task.is_finished() {
    ///     blitz_io::task::yield_now().await;
    /// }
    /// # });
    /// ```
    pub fn detach_all(&mut self) {
        self.set.detach_all();
    }

    /// Polls for one of the tasks in the set to complete.
    ///
    /// `Ready(None)` means that the set is empty. When it answers `Pending` the next
    /// task that ends wakes the waker of the last call. It may also answer `Pending`
    /// because the calling task has used up its budget; the waker was woken then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let mut set = blitz_io::task::JoinSet::<u8>::new();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(matches!(set.poll_join_next(&mut cx), Poll::Ready(None)));
    /// ```
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.set.poll_next(cx).map(|ended| ended.map(|(_, output)| output))
    }

    /// Polls for one of the tasks in the set to complete, and says which it was; see
    /// [`poll_join_next`](Self::poll_join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// let spawned = set.spawn(async { 5 }).id();
    /// let ended = std::future::poll_fn(|cx| set.poll_join_next_with_id(cx)).await;
    /// assert_eq!(ended.unwrap().unwrap(), (spawned, 5));
    /// # });
    /// ```
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.set.poll_next(cx).map(|ended| ended.map(with_id))
    }

    /// Spawns the provided task on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime) and stores it in this `JoinSet`.
    ///
    /// # Panics
    ///
    /// Outside of both, as [`task::spawn_local`](super::spawn_local).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use blitz_io::task::{JoinSet, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// LocalSet::new()
    ///     .run_until(async {
    ///         let mut set = JoinSet::new();
    ///         let stays = Rc::new(5);
    ///         set.spawn_local(async move { *stays });
    ///         assert_eq!(set.join_next().await.unwrap().unwrap(), 5);
    ///     })
    ///     .await;
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        F: 'static,
    {
        self.spawn_by(HereLocal, None, task)
    }

    /// Spawns the provided task on the given [`LocalSet`] and stores it in this
    /// `JoinSet`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{JoinSet, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// let (local, mut set) = (LocalSet::new(), JoinSet::new());
    /// set.spawn_local_on(async { 5 }, &local);
    /// assert_eq!(local.run_until(set.join_next()).await.unwrap().unwrap(), 5);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T>,
        F: 'static,
    {
        self.spawn_by(OnLocal(local_set), None, task)
    }

    /// Spawns the blocking code on the current runtime's threads for blocking work and
    /// stores it in this `JoinSet`.
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking). If that was for want of a
    /// thread, the set has one more task, which was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn_blocking(|| 5);
    /// assert_eq!(set.join_next().await.unwrap().unwrap(), 5);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        self.spawn_blocking_by(&Handle::current(), None, f)
    }

    /// Spawns the blocking code on the threads for blocking work of the runtime of
    /// `handle` and stores it in this `JoinSet`.
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking). If that was for want of a
    /// thread, the set has one more task, which was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.spawn_blocking_on(|| 5, rt.handle());
    /// assert_eq!(rt.block_on(set.join_all()), [5]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        self.spawn_blocking_by(handle, None, f)
    }

    #[track_caller]
    #[inline]
    fn spawn_by<F, P>(&mut self, place: P, name: Option<&str>, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        P: Place<F> + Place<Pin<Box<F>>>,
    {
        let at = Location::caller();
        if is_large::<F>() {
            return self.spawn_sized(place, name, Box::pin(task), at);
        }
        self.spawn_sized(place, name, task, at)
    }

    #[track_caller]
    #[inline]
    fn spawn_sized<F: Future<Output = T>>(
        &mut self,
        place: impl Place<F>,
        name: Option<&str>,
        task: F,
        spawned_at: &'static Location<'static>,
    ) -> AbortHandle {
        let node = self.set.node();
        let task = match name {
            None => place.spawn(task, Label::with(spawned_at, node)),
            Some(name) => place.spawn(task, Label::with(spawned_at, Named::new(node, name))),
        };
        // SAFETY: 1. it was made of this set's node just now.
        unsafe { self.set.adopt(task) }
    }
}

/// A closure that becomes blocking work of a set.
impl<T: Send + 'static> JoinSet<T> {
    #[track_caller]
    fn spawn_blocking_by<F>(&mut self, handle: &Handle, name: Option<&str>, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        let at = Location::caller();
        if is_large::<F>() {
            let f = Box::new(f);
            return self.spawn_blocking_sized(handle, name, f, at);
        }
        self.spawn_blocking_sized(handle, name, f, at)
    }

    #[track_caller]
    fn spawn_blocking_sized<F>(
        &mut self,
        handle: &Handle,
        name: Option<&str>,
        f: F,
        spawned_at: &'static Location<'static>,
    ) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        let node = Blocks(self.set.node());
        let (task, left) = match name {
            None => handle.queue_blocking(f, Label::with(spawned_at, node)),
            Some(name) => handle.queue_blocking(f, Label::with(spawned_at, Named::new(node, name))),
        };
        // Before the rest, which may panic: the task is queued, and tells the set of its
        // end.
        // SAFETY: 1. it was made of this set's node just now.
        let abort = unsafe { self.set.adopt(task) };
        left.settle();
        abort
    }
}

/// Where a task of a set is to run; it is made with the label that it is given.
trait Place<F: Future> {
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output>;
}

/// On the runtime of this thread.
struct Here;

impl<F> Place<F> for Here
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    #[inline]
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        spawn_labelled(task, label)
    }
}

/// On the `LocalSet` or `LocalRuntime` of this thread.
struct HereLocal;

impl<F> Place<F> for HereLocal
where
    F: Future + 'static,
{
    #[track_caller]
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        spawn_local_labelled(task, label)
    }
}

/// On that set.
struct OnLocal<'a>(&'a LocalSet);

impl<F> Place<F> for OnLocal<'_>
where
    F: Future + 'static,
{
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        self.0.spawn_labelled(task, label)
    }
}

/// On another.
struct On<'a>(&'a Handle);

impl<F> Place<F> for On<'_>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    #[inline]
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        self.0.spawn_labelled(task, label)
    }
}

fn with_id<T>((id, output): Ended<T>) -> Result<(Id, T), JoinError> {
    output.map(|output| (id, output))
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Spawns every future of the iterator on the current runtime.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T>,
    F: Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(iter: I) -> Self {
        let mut set = Self::new();
        set.extend(iter);
        set
    }
}

/// Spawns every future of the iterator on the current runtime.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T>,
    F: Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, iter: I) {
        for task in iter {
            self.spawn(task);
        }
    }
}

impl<'a, T: 'static> Builder<'a, T> {
    /// Assigns a name to the task which will be spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.build_task().name("quiet").spawn(async {})?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn name(self, name: &'a str) -> Self {
        Self { builder: self.builder.name(name), ..self }
    }

    /// Spawns the task on the current runtime and stores it in the set.
    ///
    /// # Errors
    ///
    /// None in this version; the signature is Tokio's.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// let abort = set.build_task().name("sum").spawn(async { 1 + 1 })?;
    /// let (id, sum) = set.join_next_with_id().await.unwrap().unwrap();
    /// assert_eq!((id, sum), (abort.id(), 2));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<AbortHandle>
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        Ok(self.joinset.spawn_by(Here, self.builder.name, future))
    }

    /// Spawns the task on the runtime of `handle` and stores it in the set.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.build_task().name("sum").spawn_on(async { 1 + 1 }, rt.handle())?;
    /// assert_eq!(rt.block_on(set.join_all()), [2]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<AbortHandle>
    where
        F: Future<Output = T>,
        F: Send + 'static,
        T: Send,
    {
        Ok(self.joinset.spawn_by(On(handle), self.builder.name, future))
    }

    /// Spawns the task on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime) and stores it in the set.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`JoinSet::spawn_local`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{JoinSet, LocalSet};
    ///
    /// # blitz_io::run(LocalSet::new().run_until(async {
    /// let mut set = JoinSet::new();
    /// set.build_task().name("stays").spawn_local(async { 5 })?;
    /// assert_eq!(set.join_all().await, [5]);
    /// # Ok::<(), std::io::Error>(())
    /// # })).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<AbortHandle>
    where
        F: Future<Output = T>,
        F: 'static,
    {
        Ok(self.joinset.spawn_by(HereLocal, self.builder.name, future))
    }

    /// Spawns the task on the given [`LocalSet`] and stores it in the set.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{JoinSet, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// let (local, mut set) = (LocalSet::new(), JoinSet::new());
    /// set.build_task().name("stays").spawn_local_on(async { 5 }, &local)?;
    /// assert_eq!(local.run_until(set.join_next()).await.unwrap().unwrap(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> io::Result<AbortHandle>
    where
        F: Future<Output = T>,
        F: 'static,
    {
        Ok(self.joinset.spawn_by(OnLocal(local_set), self.builder.name, future))
    }

    /// Spawns the blocking code on the current runtime and stores it in the set.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking). If that was for want of a
    /// thread, the set has one more task, which was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.build_task().name("reads").spawn_blocking(|| 5)?;
    /// assert_eq!(set.join_all().await, [5]);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F>(self, f: F) -> io::Result<AbortHandle>
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        Ok(self.joinset.spawn_blocking_by(&Handle::current(), self.builder.name, f))
    }

    /// Spawns the blocking code on the runtime of `handle` and stores it in the set.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking). If that was for want of a
    /// thread, the set has one more task, which was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let mut set = blitz_io::task::JoinSet::new();
    /// set.build_task().name("reads").spawn_blocking_on(|| 5, rt.handle())?;
    /// assert_eq!(rt.block_on(set.join_all()), [5]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_on<F>(self, f: F, handle: &Handle) -> io::Result<AbortHandle>
    where
        F: FnOnce() -> T,
        F: Send + 'static,
        T: Send,
    {
        Ok(self.joinset.spawn_blocking_by(handle, self.builder.name, f))
    }
}

impl<T> fmt::Debug for Builder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("join_set::Builder")
            .field("joinset", &self.joinset)
            .field("builder", &self.builder)
            .finish()
    }
}
