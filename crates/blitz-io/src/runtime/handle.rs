//! [`Handle`], a reference to a runtime, and the data that all handles of a runtime share.

use std::{
    fmt,
    future::Future,
    num::NonZeroU64,
    panic::{Location, RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

use super::{
    Dump, RuntimeMetrics,
    admission::Admission,
    context::{self, EnterGuard, Entered, TryCurrentError},
};
#[cfg(feature = "net")]
use crate::engine::driver::IoBackend;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
use crate::engine::fiber::Fibers;
use crate::{
    engine::{
        blocking::{BlockingJob, BlockingPool, SpawnStep},
        pool::{Pool, drive},
        work::{
            task::{
                cell::Label,
                extra::{BlockingMark, Extra},
                trace,
            },
            thread_context::{
                SeededRngGuard,
                blocking::{BlockingPolicy, NoBlocking},
            },
        },
    },
    task::{JoinHandle, is_large},
};

/// A reference to a runtime, through which tasks can be spawned from any thread.
///
/// A `Handle` can be cloned and sent to other threads. It may outlive its runtime: tasks that are
/// spawned through it after the shutdown are cancelled at once.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Runtime;
///
/// let rt = Runtime::new()?;
/// let handle = rt.handle().clone();
/// let thread = std::thread::spawn(move || handle.block_on(async { 42 }));
/// assert_eq!(thread.join().unwrap(), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) inner: Arc<Inner>,
}

/// The data that all handles of a runtime share.
pub(crate) struct Inner {
    pub(crate) pool: Arc<Pool>,
    pub(crate) blocking: Arc<BlockingPool>,
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fibers: Fibers,
    pub(crate) flavor: RuntimeFlavor,
    pub(crate) id: Id,
    pub(crate) name: Option<String>,
    pub(crate) admission: Admission,
}

#[cfg(feature = "time")]
impl Drop for Inner {
    fn drop(&mut self) {
        super::context::forget(self.id);
    }
}

// No user code runs while the runtime's state is inconsistent, so a panic in user code can leave
// only the user's own data half changed.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

/// The scheduler of a runtime: multi-thread or current-thread.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::{Handle, RuntimeFlavor};
///
/// blitz_io::run(async {
///     assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
/// });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// All tasks run on the thread that is inside `Runtime::block_on`.
    CurrentThread,
    /// Tasks run on several worker threads, which steal from each other.
    MultiThread,
}

/// An opaque ID that is unique among all runtimes of the process.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Runtime;
///
/// let (one, two) = (Runtime::new()?, Runtime::new()?);
/// assert_ne!(one.handle().id(), two.handle().id());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(NonZeroU64);

impl Id {
    pub(crate) fn next() -> Self {
        let id = crate::engine::prim::ids::take(1);
        Self(NonZeroU64::new(id).expect("2^64 runtimes and tasks were made"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Handle {
    /// Enters the runtime context: until the guard is dropped, this runtime is the current one for
    /// code on this thread.
    ///
    /// So [`spawn`](crate::spawn), [`Handle::current`], timers and sockets use this runtime.
    ///
    /// # Panics
    ///
    /// The guard panics when it is dropped in another order than the reverse order of entering.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let handle = rt.handle().clone();
    /// std::thread::spawn(move || {
    ///     let _guard = handle.enter();
    ///     blitz_io::spawn(async { /* runs on `rt` */ });
    /// })
    /// .join()
    /// .unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard::new(&self.inner)
    }

    /// Returns a handle to the runtime that is current on this thread.
    ///
    /// # Panics
    ///
    /// If no runtime is current on this thread. [`try_current`](Self::try_current) returns an error
    /// instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Handle;
    ///
    /// blitz_io::run(async {
    ///     let handle = Handle::current();
    ///     assert_eq!(handle.spawn(async { 1 }).await.unwrap(), 1);
    /// });
    /// ```
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns a handle to the runtime that is current on this thread, or an error if there is
    /// none.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Handle;
    ///
    /// assert!(Handle::try_current().is_err());
    /// blitz_io::run(async { assert!(Handle::try_current().is_ok()) });
    /// ```
    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::with_current(|inner| Handle { inner: inner.clone() })
    }

    /// Spawns a future onto the runtime as a new task, and returns a [`JoinHandle`] for its output.
    ///
    /// The task runs whether or not the returned [`JoinHandle`] is awaited. After the runtime has
    /// shut down, the future is dropped at once, and the handle returns a cancellation error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Runtime;
    ///
    /// let rt = Runtime::new()?;
    /// let handle = rt.handle().spawn(async { "done" });
    /// assert_eq!(rt.block_on(handle).unwrap(), "done");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            return self.spawn_labelled(Box::pin(future), Label::at(spawned_at));
        }
        self.spawn_labelled(future, Label::at(spawned_at))
    }

    #[track_caller]
    #[inline]
    pub(crate) fn spawn_labelled<F, X>(&self, future: F, label: Label<X>) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let (future, label) = trace::trace(future, label, trace::TaskKind::Task);
        match self.inner.pool.spawn(future, label) {
            Ok(handle) => handle,
            Err(refused) => refused.end(),
        }
    }

    /// Runs a function on a thread where blocking is allowed; see
    /// [`task::spawn_blocking`](crate::task::spawn_blocking).
    ///
    /// After the runtime has shut down, the function is dropped at once without being called, and
    /// the handle returns a cancellation error.
    ///
    /// # Panics
    ///
    /// If the operating system refuses to start a thread and there is no blocking thread yet that
    /// could run the function later.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let handle = rt.handle().spawn_blocking(|| "done");
    /// assert_eq!(rt.block_on(handle).unwrap(), "done");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            let func = Box::new(func);
            return self.spawn_blocking_labelled(func, Label::with(spawned_at, BlockingMark(())));
        }
        self.spawn_blocking_labelled(func, Label::with(spawned_at, BlockingMark(())))
    }

    #[track_caller]
    pub(crate) fn spawn_blocking_labelled<F, R, X>(&self, func: F, label: Label<X>) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
        X: Extra,
    {
        let (handle, left) = self.queue_blocking(func, label);
        left.settle();
        handle
    }

    /// Queues a function for the blocking threads and returns its handle, together with the rest of
    /// the work: [`SpawnStep::settle`], which the caller must call. The two are separate because
    /// settling may panic and the caller may need the handle even then.
    #[track_caller]
    pub(crate) fn queue_blocking<F, R, X>(
        &self,
        func: F,
        label: Label<X>,
    ) -> (JoinHandle<R>, SpawnStep)
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
        X: Extra,
    {
        let (job, label) = trace::trace(BlockingJob::new(func), label, trace::TaskKind::Blocking);
        self.inner.blocking.spawn(&self.inner.pool, job, label).part()
    }

    /// Runs a future to completion on the calling thread, inside this handle's runtime context.
    ///
    /// On a current-thread runtime this does not run the runtime's tasks; only
    /// [`Runtime::block_on`](super::Runtime::block_on) does. So a future that waits for a task does
    /// not complete before some thread calls that.
    ///
    /// # Panics
    ///
    /// If called inside an asynchronous context: use `.await` there. Calling it inside
    /// [`spawn_blocking`](crate::task::spawn_blocking) and
    /// [`block_in_place`](crate::task::block_in_place) is allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Runtime;
    ///
    /// let rt = Runtime::new()?;
    /// assert_eq!(rt.handle().block_on(async { 3 }), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = self.enter_blocking(BlockingPolicy::InPlaceOnly);
        drive::wait_for(Some(&self.inner.pool), future)
    }

    /// Returns the flavor of this runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, RuntimeFlavor};
    ///
    /// let rt = Builder::new_current_thread().build()?;
    /// assert_eq!(rt.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        self.inner.flavor
    }

    /// Returns the [`Id`] of this runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// println!("runtime {}", blitz_io::runtime::Handle::current().id());
    /// # });
    /// ```
    pub fn id(&self) -> Id {
        self.inner.id
    }

    /// Returns the name of this runtime, if [`Builder::name`] set one.
    ///
    /// [`Builder::name`]: super::Builder::name
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().name("indexer").build()?;
    /// assert_eq!(rt.handle().name(), Some("indexer"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.inner.name.as_deref()
    }

    /// Returns the [`RuntimeMetrics`] of this runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let metrics = blitz_io::runtime::Handle::current().metrics();
    /// assert!(metrics.num_workers() >= 1);
    /// # });
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::new(self.clone())
    }

    /// Returns the system interface that reports I/O events to this runtime, or `None` if its I/O
    /// driver is not enabled.
    ///
    /// On Linux this is never [`IoBackend::Auto`]. On other systems `Auto` stands for the only
    /// interface there is: kqueue, event ports or a completion port.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, IoBackend};
    ///
    /// let rt = Builder::new_current_thread().enable_io().build()?;
    /// println!("waits by {}", rt.handle().io_backend().expect("I/O is enabled"));
    /// let rt = Builder::new_current_thread().build()?;
    /// assert_eq!(rt.handle().io_backend(), None::<IoBackend>);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "net")]
    #[cfg_attr(docsrs, doc(cfg(feature = "net")))]
    pub fn io_backend(&self) -> Option<IoBackend> {
        self.inner.pool.drivers.driver().map(|driver| driver.backend())
    }

    /// Captures a snapshot of the runtime's tasks: what each is called, where it was spawned, and
    /// what it waits for.
    ///
    /// The snapshot contains every live task that was spawned on this runtime, blocking work
    /// included. Tasks of a `LocalSet` do not belong to the runtime and are not listed. Taking it
    /// does not disturb the tasks, and works while they are stuck. The future yields once before it
    /// takes the snapshot, so that a loop over `dump` lets other futures of the same task run.
    /// [`dump_now`](Self::dump_now) returns the same without waiting, on any thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// println!("{}", blitz_io::runtime::Handle::current().dump().await);
    /// # });
    /// ```
    pub async fn dump(&self) -> Dump {
        crate::task::yield_now().await;
        self.dump_now()
    }

    /// Captures a snapshot of the runtime's tasks at once, on any thread; see [`dump`](Self::dump).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// rt.spawn(std::future::pending::<()>());
    /// assert_eq!(rt.handle().dump_now().tasks().iter().count(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn dump_now(&self) -> Dump {
        Dump::new(self.inner.pool.dump())
    }

    /// Returns whether the current task is being polled for a dump. Always false, because dumps
    /// read the list of tasks and poll none; the method is there because Tokio has it.
    #[doc(hidden)]
    pub fn is_tracing() -> bool {
        false
    }

    /// Makes this runtime the current one of this thread for the duration of a `block_on`.
    #[track_caller]
    pub(crate) fn enter_blocking(
        &self,
        kind: BlockingPolicy,
    ) -> (Entered, NoBlocking, Option<SeededRngGuard>) {
        let Some(guard) = NoBlocking::enter(kind) else {
            panic!(
                "Cannot start a runtime from within a runtime. This happens because a function \
                 (like `block_on`) attempted to block the current thread while the thread is \
                 being used to drive asynchronous tasks. If you are in an async function, use \
                 `.await` on the future instead of blocking on it. Otherwise call `block_on` on \
                 a thread of its own."
            );
        };
        let seeds = self.inner.pool.seeds.as_ref();
        let seeded = seeds.map(|seeds| SeededRngGuard::new(&seeds.next_call()));
        (Entered::new(self.inner.clone()), guard, seeded)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("id", &self.inner.id)
            .field("name", &self.inner.name)
            .field("flavor", &self.inner.flavor)
            .finish_non_exhaustive()
    }
}
