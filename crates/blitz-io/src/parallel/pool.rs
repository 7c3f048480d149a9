//! Thread pools that a program builds for itself.

use std::{error::Error, fmt, sync::Arc};

use super::{
    BroadcastContext, Run, Scope, ScopeFifo, ThreadPoolBuildError, ThreadPoolBuilder, ThreadSpawn,
    builder,
};
use crate::engine::fork::{
    broadcast, call, detached, registry::Registry, run as engine, scope, worker::Worker,
};

/// The result of [`yield_now`](super::yield_now) and [`yield_local`](super::yield_local).
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{ThreadPoolBuilder, Yield};
///
/// let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// let yielded = pool.install(|| {
///     blitz_io::parallel::spawn(|| {});
///     blitz_io::parallel::yield_now()
/// });
/// assert_eq!(yielded, Some(Yield::Executed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A job was run.
    Executed,
    /// There was no job to run.
    Idle,
}

impl Yield {
    pub(super) fn of(ran: bool) -> Self {
        if ran { Self::Executed } else { Self::Idle }
    }
}

/// A pool of threads that run fork-join jobs.
///
/// Build one with a [`ThreadPoolBuilder`]. After it is dropped, its threads exit as soon as the
/// jobs that were spawned into it have ended; the drop does not wait for that.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{ThreadPoolBuilder, current_num_threads};
///
/// let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
/// assert_eq!(pool.install(current_num_threads), 3);
/// ```
pub struct ThreadPool {
    registry: Arc<Registry>,
}

impl ThreadPool {
    #[doc(hidden)]
    #[deprecated(note = "use `ThreadPoolBuilder::build`")]
    #[allow(deprecated, reason = "it is about the deprecated")]
    pub fn new(configuration: super::Configuration) -> Result<Self, Box<dyn Error>> {
        configuration.build()
    }

    pub(super) fn build<S: ThreadSpawn>(
        builder: ThreadPoolBuilder<S>,
    ) -> Result<Self, ThreadPoolBuildError> {
        let registry = builder::start(builder).map_err(ThreadPoolBuildError::of)?;
        Ok(Self { registry })
    }

    /// Runs a closure on a thread of this pool and waits for its result. Functions of this module
    /// that the closure calls use this pool.
    ///
    /// If the calling thread belongs to another pool, it runs jobs of its own pool while it waits.
    ///
    /// # Panics
    ///
    /// If the closure panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let (a, b) = pool.install(|| blitz_io::parallel::join(|| 1, || 2));
    /// assert_eq!(a + b, 3);
    /// ```
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.on_worker(|_| op())
    }

    fn on_worker<R: Send>(&self, op: impl FnOnce(&Worker) -> R + Send) -> R {
        call::on_worker(&self.registry, |worker, _| op(worker))
    }

    /// Runs a closure once on each thread of this pool and returns the results; see
    /// [`broadcast`](super::broadcast).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    /// assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
    /// ```
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        broadcast::broadcast(&self.registry, &op)
    }

    /// Returns the number of threads in this pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    /// assert_eq!(pool.current_num_threads(), 2);
    /// ```
    #[inline]
    pub fn current_num_threads(&self) -> usize {
        self.registry.threads()
    }

    /// Returns the index of the calling thread in this pool, or `None` if it does not belong to the
    /// pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    /// assert_eq!(pool.current_thread_index(), None);
    /// assert_eq!(pool.install(|| pool.current_thread_index()), Some(0));
    /// ```
    #[inline]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.registry.current()?.thread_index()
    }

    /// Returns `true` if jobs wait in the calling thread's own queue, or `None` if the thread does
    /// not belong to this pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    /// assert_eq!(pool.current_thread_has_pending_tasks(), None);
    /// ```
    #[inline]
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        Some(self.registry.current()?.has_jobs())
    }

    /// Runs two closures on this pool, potentially in parallel; see [`join`](super::join).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// assert_eq!(pool.join(|| 'a', || 'b'), ('a', 'b'));
    /// ```
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| super::join(oper_a, oper_b))
    }

    /// Runs `op` with a [`Scope`] on this pool; see [`scope`](super::scope).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let mut result = 0;
    /// pool.scope(|scope| scope.spawn(|_| result = 42));
    /// assert_eq!(result, 42);
    /// ```
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.on_worker(|worker| scope::scope(worker, op))
    }

    /// Runs `op` with a [`ScopeFifo`] on this pool; see [`scope_fifo`](super::scope_fifo).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let mut result = 0;
    /// pool.scope_fifo(|scope| scope.spawn_fifo(|_| result = 42));
    /// assert_eq!(result, 42);
    /// ```
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.on_worker(|worker| scope::scope_fifo(worker, op))
    }

    /// Runs `op` on the calling thread with a [`Scope`] for jobs on this pool; see
    /// [`in_place_scope`](super::in_place_scope).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let mut result = 0;
    /// pool.in_place_scope(|scope| scope.spawn(|_| result = 42));
    /// assert_eq!(result, 42);
    /// ```
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        scope::in_place(self.registry.clone(), op)
    }

    /// Runs `op` on the calling thread with a [`ScopeFifo`] for jobs on this pool; see
    /// [`in_place_scope_fifo`](super::in_place_scope_fifo).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let mut result = 0;
    /// pool.in_place_scope_fifo(|scope| scope.spawn_fifo(|_| result = 42));
    /// assert_eq!(result, 42);
    /// ```
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        scope::in_place_fifo(self.registry.clone(), op)
    }

    /// Queues a closure to run on this pool, without waiting for it; see [`spawn`](super::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn(move || sender.send(()).unwrap());
    /// assert!(receiver.recv().is_ok());
    /// ```
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        detached::spawn(&self.registry, op);
    }

    /// Gives a closure to this pool and returns a future of its result; see [`run`](super::run).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    /// # blitz_io::run(async move {
    /// let threads = pool.run(blitz_io::parallel::current_num_threads).await;
    /// assert_eq!(threads, 1);
    /// # });
    /// ```
    pub fn run<OP, R>(&self, op: OP) -> Run<R>
    where
        OP: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        engine::start(&self.registry, op)
    }

    /// Queues a closure to run on this pool in FIFO order; see [`spawn_fifo`](super::spawn_fifo).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn_fifo(move || sender.send(()).unwrap());
    /// assert!(receiver.recv().is_ok());
    /// ```
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        detached::spawn_fifo(&self.registry, op);
    }

    /// Queues a closure to run once on each thread of this pool; see
    /// [`spawn_broadcast`](super::spawn_broadcast).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.spawn_broadcast(move |_| sender.send(()).unwrap());
    /// assert_eq!(receiver.into_iter().count(), 2);
    /// ```
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        broadcast::spawn_broadcast(&self.registry, op);
    }

    /// Runs one job if the calling thread belongs to this pool; see
    /// [`yield_now`](super::yield_now).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// assert_eq!(pool.yield_now(), None);
    /// ```
    pub fn yield_now(&self) -> Option<Yield> {
        Some(Yield::of(self.registry.current()?.run_one()))
    }

    /// Runs one job from the calling thread's own queue if the thread belongs to this pool; see
    /// [`yield_local`](super::yield_local).
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = blitz_io::parallel::ThreadPoolBuilder::new().build().unwrap();
    /// assert_eq!(pool.yield_local(), None);
    /// ```
    pub fn yield_local(&self) -> Option<Yield> {
        Some(Yield::of(self.registry.current()?.run_one_local()))
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.registry.release();
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .finish_non_exhaustive()
    }
}
