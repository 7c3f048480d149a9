//! A runtime that belongs to its thread.

use std::{
    fmt,
    future::Future,
    io,
    marker::PhantomData,
    panic::{Location, RefUnwindSafe, UnwindSafe},
    time::Duration,
};

use super::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor, RuntimeMetrics};
use crate::{
    engine::work::task::{cell::Label, trace},
    task::{JoinHandle, is_large},
};

/// A local runtime: a current-thread runtime that cannot leave its thread, and that
/// runs tasks whose futures are not [`Send`].
///
/// [`spawn_local`](crate::task::spawn_local) works inside of it without a
/// [`LocalSet`](crate::task::LocalSet). Its tasks, local or not, run inside
/// [`block_on`](Self::block_on), in the order in which they became ready. Other
/// threads may spawn tasks that are `Send` through its [`Handle`]; wherever a local
/// task is woken or aborted, its future is polled and dropped on this thread.
///
/// # Shutdown
///
/// As of [`Runtime`]. The tasks are dropped on this thread, also if the runtime is in
/// a thread-local that is dropped at the thread's end.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use blitz_io::{runtime::LocalRuntime, task};
///
/// let rt = LocalRuntime::new()?;
/// let answer = rt.block_on(async {
///     let shared = Rc::new(42);
///     task::spawn_local(async move { *shared }).await.unwrap()
/// });
/// assert_eq!(answer, 42);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LocalRuntime {
    runtime: Runtime,
    /// It stays on its thread.
    here: PhantomData<*mut u8>,
}

/// [`LocalRuntime`]-only config options: none so far.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::{Builder, LocalOptions};
///
/// let rt = Builder::new_current_thread().build_local(LocalOptions::default())?;
/// assert_eq!(rt.block_on(async { 1 }), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default, Debug)]
#[non_exhaustive]
pub struct LocalOptions {
    /// What is asked for later may belong to its thread.
    here: PhantomData<*mut u8>,
}

impl Builder {
    /// Creates the configured [`LocalRuntime`], which belongs to the calling thread.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build) of a current-thread runtime.
    ///
    /// # Panics
    ///
    /// If the builder is one for the multi thread scheduler.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, LocalOptions};
    ///
    /// let rt = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    /// let handle = rt.spawn_local(async { "on this thread" });
    /// assert_eq!(rt.block_on(handle).unwrap(), "on this thread");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn build_local(&mut self, options: LocalOptions) -> io::Result<LocalRuntime> {
        let LocalOptions { here } = options;
        assert!(
            self.flavor == RuntimeFlavor::CurrentThread,
            "multi_thread is not supported for LocalRuntime: use `Builder::new_current_thread`"
        );
        let runtime = self.build()?;
        runtime.handle().inner.pool.belong_here();
        Ok(LocalRuntime { runtime, here })
    }
}

impl LocalRuntime {
    /// Creates a new local runtime instance with default configuration values.
    ///
    /// # Errors
    ///
    /// As [`Builder::build_local`].
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// assert_eq!(rt.block_on(async { 1 + 1 }), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<LocalRuntime> {
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
    }

    /// Returns a handle to the runtime's spawner.
    ///
    /// It may go to other threads, and so spawns only futures that are [`Send`]. Its
    /// [`block_on`](Handle::block_on) does not run the runtime's tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// let handle = rt.handle().clone();
    /// let task = std::thread::spawn(move || handle.spawn(async { 7 })).join().unwrap();
    /// assert_eq!(rt.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Spawns a task on the runtime, whose future need not be [`Send`].
    ///
    /// It runs inside the next [`block_on`](Self::block_on).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    ///
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// let shared = Rc::new(5);
    /// let handle = rt.spawn_local(async move { *shared });
    /// assert_eq!(rt.block_on(handle).unwrap(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            return self.spawn_sized(Box::pin(future), Label::at(spawned_at));
        }
        self.spawn_sized(future, Label::at(spawned_at))
    }

    fn spawn_sized<F: Future + 'static>(&self, future: F, label: Label) -> JoinHandle<F::Output> {
        let (future, label) = trace::trace(future, label, trace::Kind::Local);
        match self.handle().inner.pool.spawn_local(future, label) {
            Ok(handle) => handle,
            Err(refused) => refused.end(),
        }
    }

    /// Runs the provided function on an executor dedicated to blocking operations; see
    /// [`Runtime::spawn_blocking`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// let handle = rt.spawn_blocking(|| 1 + 1);
    /// assert_eq!(rt.block_on(handle).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.runtime.spawn_blocking(func)
    }

    /// Runs a future to completion on the runtime, and its tasks meanwhile; see
    /// [`Runtime::block_on`].
    ///
    /// # Panics
    ///
    /// If the future panics, or if called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime::LocalRuntime, task};
    ///
    /// let rt = LocalRuntime::new()?;
    /// let one = rt.block_on(async { task::spawn_local(async { 1 }).await.unwrap() });
    /// assert_eq!(one, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Enters the runtime context; see [`Handle::enter`]. On this thread
    /// [`spawn_local`](crate::task::spawn_local) then means this runtime as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime::LocalRuntime, task};
    ///
    /// let rt = LocalRuntime::new()?;
    /// let guard = rt.enter();
    /// let handle = task::spawn_local(async { 3 });
    /// drop(guard);
    /// assert_eq!(rt.block_on(handle).unwrap(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Shuts down the runtime, waiting for at most `duration` for what other threads
    /// do for it. Its tasks are dropped here and now, whatever the duration.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// rt.spawn_local(std::future::pending::<()>());
    /// rt.shutdown_timeout(Duration::from_millis(100));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(self, duration: Duration) {
        self.runtime.shutdown_timeout(duration);
    }

    /// Shuts down the runtime without waiting for other threads. Unlike a drop it
    /// may be called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::LocalRuntime;
    ///
    /// let rt = LocalRuntime::new()?;
    /// rt.block_on(async {
    ///     let inner = LocalRuntime::new().unwrap();
    ///     inner.shutdown_background(); // dropping it here would panic
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(self) {
        self.runtime.shutdown_background();
    }

    /// Returns a view that lets you get information about how the runtime is
    /// performing.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::LocalRuntime::new()?;
    /// assert_eq!(rt.metrics().num_workers(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.runtime.metrics()
    }
}

// As for `Handle`: nothing of a user's runs while the runtime is inconsistent.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

impl fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRuntime").field("handle", self.handle()).finish_non_exhaustive()
    }
}
