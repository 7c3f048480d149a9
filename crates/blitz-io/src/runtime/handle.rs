//! A reference to a runtime.

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
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
use crate::engine::fiber::Fibers;
use crate::{
    engine::{
        blocking::{Blocking, Job, Left},
        pool::{
            Pool,
            drive::{self, NoBlocking},
        },
        work::{
            current::{self, Seeded},
            task::{
                cell::Label,
                extra::{Blocks, Extra},
                trace,
            },
        },
    },
    task::{JoinHandle, is_large},
};

/// Handle to the runtime.
///
/// It can be cloned, sent to other threads, and outlives the runtime: tasks that
/// are spawned through it after the runtime has shut down are cancelled at once.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Runtime;
///
/// let rt = Runtime::new()?;
/// let handle = rt.handle().clone();
/// let answer = std::thread::spawn(move || handle.block_on(async { 42 }));
/// assert_eq!(answer.join().unwrap(), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) inner: Arc<Inner>,
}

/// What a runtime is, behind all of its handles.
pub(crate) struct Inner {
    pub(crate) pool: Arc<Pool>,
    pub(crate) blocking: Arc<Blocking>,
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

// What a panic of a user's may leave half done is that user's: nothing of theirs
// runs while the runtime is inconsistent.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

/// The flavor of a `Runtime`.
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
    /// The flavor that executes all tasks on the current thread.
    CurrentThread,
    /// The flavor that executes tasks across multiple threads.
    MultiThread,
}

/// An opaque ID that uniquely identifies a runtime relative to all other currently
/// running runtimes.
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
    /// Enters the runtime context: until the guard is dropped, code on this thread
    /// that asks for the current runtime gets this one.
    ///
    /// # Panics
    ///
    /// The guard panics when it is not dropped in the reverse order of entering.
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

    /// Returns a `Handle` view over the currently running `Runtime`.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread. [`try_current`](Self::try_current)
    /// answers with an error instead.
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

    /// Returns a `Handle` view over the currently running `Runtime`, or an error if
    /// there is none on this thread.
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

    /// Spawns a future onto the runtime.
    ///
    /// It starts at once, whether or not the returned [`JoinHandle`] is awaited.
    /// After the runtime has shut down it is dropped at once, and the handle says
    /// that it was cancelled.
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
        let (future, label) = trace::trace(future, label, trace::Kind::Task);
        match self.inner.pool.spawn(future, label) {
            Ok(handle) => handle,
            Err(refused) => refused.end(),
        }
    }

    /// Runs the provided function on a thread for blocking work; see
    /// [`task::spawn_blocking`](crate::task::spawn_blocking).
    ///
    /// After the runtime has shut down the function is dropped at once, and the handle
    /// says that it was cancelled.
    ///
    /// # Panics
    ///
    /// If the system refuses a thread and none lives that the work could wait for.
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
            return self.spawn_blocking_labelled(func, Label::with(spawned_at, Blocks(())));
        }
        self.spawn_blocking_labelled(func, Label::with(spawned_at, Blocks(())))
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

    /// The same, and what is left to do, which may panic, is left to the caller.
    #[track_caller]
    pub(crate) fn queue_blocking<F, R, X>(&self, func: F, label: Label<X>) -> (JoinHandle<R>, Left)
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
        X: Extra,
    {
        let (job, label) = trace::trace(Job::new(func), label, trace::Kind::Blocking);
        match self.inner.blocking.spawn(&self.inner.pool, job, label) {
            Ok(spawned) => spawned.part(),
            Err(refused) => (refused.end(), Left::Nothing),
        }
    }

    /// Runs a future to completion on this `Handle`'s associated `Runtime`.
    ///
    /// The future runs on the calling thread. On a current-thread runtime this does
    /// not run the runtime's tasks: only [`Runtime::block_on`](super::Runtime::block_on)
    /// does, and until somebody calls that, a future that waits for a task waits.
    ///
    /// # Panics
    ///
    /// If called inside an asynchronous context: await instead. Inside
    /// [`spawn_blocking`](crate::task::spawn_blocking) and
    /// [`block_in_place`](crate::task::block_in_place) it may be called.
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
        let _entered = self.enter_blocking(current::Blocking::InPlace);
        drive::wait_for(Some(&self.inner.pool), future)
    }

    /// Returns the flavor of the current `Runtime`.
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

    /// Returns the [`Id`] of the current `Runtime`.
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

    /// Returns the name of the current `Runtime`, if [`Builder::name`] gave it one.
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

    /// Returns a view that lets you get information about how the runtime is
    /// performing.
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

    /// Captures a snapshot of the runtime's tasks.
    ///
    /// It lists every task that was spawned on this runtime and lives, blocking work
    /// included; tasks of a `LocalSet` are not the runtime's. It does not disturb
    /// them, and it works while they are stuck. The future is ready at once: Tokio's
    /// has to wait, hence the signature. [`dump_now`](Self::dump_now) is the same for
    /// a thread outside.
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
        self.dump_now()
    }

    /// Captures a snapshot of the runtime's tasks, from anywhere; see
    /// [`dump`](Self::dump).
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

    /// Makes this runtime the current one for a `block_on` on this thread.
    #[track_caller]
    pub(crate) fn enter_blocking(
        &self,
        kind: current::Blocking,
    ) -> (Entered, NoBlocking, Option<Seeded>) {
        let Some(guard) = NoBlocking::enter(kind) else {
            panic!(
                "Cannot start a runtime from within a runtime: `block_on` would block a thread \
                 that is being used to drive asynchronous tasks; `.await` the future instead, or \
                 call `block_on` on a thread of its own"
            );
        };
        let seeds = self.inner.pool.seeds.as_ref();
        let seeded = seeds.map(|seeds| Seeded::new(&seeds.next_call()));
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
