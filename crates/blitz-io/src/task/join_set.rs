//! A collection of tasks that returns their outputs as they finish.
//!
//! [`JoinSet`] is the collection; [`Builder`] spawns a task of a set with a name.

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
        extra::{BlockingMark, Extra, Named},
        set::{EndedMember, Set},
    },
    runtime::Handle,
};

/// A collection of spawned tasks that are joined in the order in which they finish.
///
/// The order in which the tasks were spawned does not matter. All tasks have outputs of one type.
/// Dropping the set aborts every task in it at once; [`detach_all`](Self::detach_all) lets them
/// continue instead.
///
/// A task of a set needs no allocation besides its own, and adding a task does not write to memory
/// that other threads write to.
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

/// A builder that gives a task of a set a name, returned by [`JoinSet::build_task`].
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
    /// Creates an empty `JoinSet`, which allocates nothing before its first task.
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

    /// Returns the number of tasks in the set: those that were spawned and not yet joined, whether
    /// or not they still run.
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

    /// Returns `true` if the set contains no tasks.
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
    /// Returns a [`Builder`] that spawns a task on this set with a name.
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

    /// Spawns a task on the current runtime as a member of this set and returns an [`AbortHandle`]
    /// for it.
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
        self.spawn_by(OnCurrent, None, task)
    }

    /// Spawns a task on the runtime of `handle` as a member of this set and returns an
    /// [`AbortHandle`] for it.
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

    /// Waits until a task of the set finishes, removes it and returns its output, or `None` if the
    /// set is empty.
    ///
    /// Tasks are returned in the order in which they finished.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no task has been removed from the set.
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

    /// Waits until a task of the set finishes and returns its [ID](Id) and output, or `None` if the
    /// set is empty.
    ///
    /// If the task failed, [`JoinError::id`] returns its ID.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no task has been removed from the set.
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

    /// Removes a task that has finished and returns its output, or `None` if no task has finished
    /// yet or the set is empty.
    ///
    /// This function does not wait and consumes no budget of the calling task.
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

    /// Removes a task that has finished and returns its [ID](Id) and output; see
    /// [`try_join_next`](Self::try_join_next).
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

    /// Aborts all tasks of the set and waits until each of them has ended.
    ///
    /// The future completes when the future of every task has been dropped. The tasks' outputs and
    /// panics are discarded. To abort without waiting, drop the set.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after it was first polled, the tasks are aborted nevertheless;
    /// those that have not ended yet are still in the set.
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

    /// Waits for all tasks of the set and returns their outputs in the order in which they
    /// finished.
    ///
    /// # Panics
    ///
    /// If a task panicked, its panic is resumed here; if a task was cancelled, this panics with the
    /// [`JoinError`]. The remaining tasks are aborted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the set: the tasks that have not ended are aborted, and the
    /// outputs of the others are lost.
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

    /// Aborts all tasks of the set.
    ///
    /// The tasks stay in the set, so [`join_next`](Self::join_next) reports how each of them ended.
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

    /// Removes all tasks from the set without aborting them.
    ///
    /// The tasks continue in the background, even after the set is dropped. The set is empty
    /// afterwards and can be used again.
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

    /// Polls for a task of the set to finish, removes it and returns its output.
    ///
    /// Returns `Ready(None)` if the set is empty. After `Pending`, the next task that ends wakes
    /// the waker of the last call. `Pending` is also returned when the calling task has used up its
    /// budget; the waker has been woken in that case.
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

    /// Polls for a task of the set to finish and returns its [ID](Id) and output; see
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

    /// Spawns a `!Send` task on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime) as a member of this set.
    ///
    /// # Panics
    ///
    /// Outside of both, like [`task::spawn_local`](super::spawn_local).
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
        self.spawn_by(OnCurrentLocal, None, task)
    }

    /// Spawns a `!Send` task on the given [`LocalSet`] as a member of this set.
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

    /// Runs a closure on the current runtime's blocking pool as a member of this set.
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics. If it panics
    /// because no thread can be started, the set contains one more task, which was cancelled.
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

    /// Runs a closure on the blocking pool of the runtime of `handle` as a member of this set.
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics. If it panics
    /// because no thread can be started, the set contains one more task, which was cancelled.
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
    fn spawn_by<F, P>(&mut self, target: P, name: Option<&str>, task: F) -> AbortHandle
    where
        F: Future<Output = T>,
        P: SpawnTarget<F> + SpawnTarget<Pin<Box<F>>>,
    {
        let at = Location::caller();
        if is_large::<F>() {
            return self.spawn_sized(target, name, Box::pin(task), at);
        }
        self.spawn_sized(target, name, task, at)
    }

    #[track_caller]
    #[inline]
    fn spawn_sized<F: Future<Output = T>>(
        &mut self,
        target: impl SpawnTarget<F>,
        name: Option<&str>,
        task: F,
        spawned_at: &'static Location<'static>,
    ) -> AbortHandle {
        let node = self.set.node();
        let task = match name {
            None => target.spawn(task, Label::with(spawned_at, node)),
            Some(name) => target.spawn(task, Label::with(spawned_at, Named::new(node, name))),
        };
        // SAFETY: 1. the task is new and was made with this set's node above; the set was not used
        // since.
        unsafe { self.set.adopt(task) }
    }
}

/// Spawning closures on the blocking pool as members of a set.
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
        let node = BlockingMark(self.set.node());
        let (task, left) = match name {
            None => handle.queue_blocking(f, Label::with(spawned_at, node)),
            Some(name) => handle.queue_blocking(f, Label::with(spawned_at, Named::new(node, name))),
        };
        // The set adopts the task before `settle`, which may panic: the task is already queued and
        // will notify the set when it ends.
        // SAFETY: 1. the task is new and was made with this set's node above; the set was not used
        // since.
        let abort = unsafe { self.set.adopt(task) };
        left.settle();
        abort
    }
}

/// The target of a spawn by a set: a runtime or a `LocalSet`.
trait SpawnTarget<F: Future> {
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output>;
}

/// The current runtime of this thread.
struct OnCurrent;

impl<F> SpawnTarget<F> for OnCurrent
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

/// The current `LocalSet` or `LocalRuntime` of this thread.
struct OnCurrentLocal;

impl<F> SpawnTarget<F> for OnCurrentLocal
where
    F: Future + 'static,
{
    #[track_caller]
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        spawn_local_labelled(task, label)
    }
}

/// The given `LocalSet`.
struct OnLocal<'a>(&'a LocalSet);

impl<F> SpawnTarget<F> for OnLocal<'_>
where
    F: Future + 'static,
{
    fn spawn<X: Extra>(self, task: F, label: Label<X>) -> JoinHandle<F::Output> {
        self.0.spawn_labelled(task, label)
    }
}

/// The runtime of the given handle.
struct On<'a>(&'a Handle);

impl<F> SpawnTarget<F> for On<'_>
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

fn with_id<T>((id, output): EndedMember<T>) -> Result<(Id, T), JoinError> {
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
    /// Sets the name of the task.
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

    /// Spawns the task on the current runtime as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error; the signature is Tokio's.
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
        Ok(self.joinset.spawn_by(OnCurrent, self.builder.name, future))
    }

    /// Spawns the task on the runtime of `handle` as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
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

    /// Spawns a `!Send` task on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime) as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// In the cases in which [`JoinSet::spawn_local`] panics.
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
        Ok(self.joinset.spawn_by(OnCurrentLocal, self.builder.name, future))
    }

    /// Spawns a `!Send` task on the given [`LocalSet`] as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
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

    /// Runs a closure on the current runtime's blocking pool as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics. If it panics
    /// because no thread can be started, the set contains one more task, which was cancelled.
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

    /// Runs a closure on the blocking pool of the runtime of `handle` as a member of the set.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics. If it panics
    /// because no thread can be started, the set contains one more task, which was cancelled.
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
