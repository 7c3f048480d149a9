//! [`LocalRuntime`], a current-thread runtime for futures that are not [`Send`].

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

/// A current-thread runtime that stays on its thread, and so can run tasks whose futures are not
/// [`Send`].
///
/// Inside a local runtime, [`spawn_local`](crate::task::spawn_local) works without a
/// [`LocalSet`](crate::task::LocalSet). All its tasks, local or not, run inside
/// [`block_on`](Self::block_on), in the order in which they became ready. Other threads may spawn
/// tasks that are `Send` through its [`Handle`]. A local task may be woken and aborted from any
/// thread, but its future is polled and dropped on this thread only.
///
/// # Shutdown
///
/// A local runtime shuts down in the same way as a [`Runtime`]. Its tasks are dropped on this
/// thread, even if the runtime is in a thread-local that is dropped at the thread's end.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use blitz_io::{runtime::LocalRuntime, task};
///
/// let rt = LocalRuntime::new()?;
/// let output = rt.block_on(async {
///     let shared = Rc::new(42);
///     task::spawn_local(async move { *shared }).await.unwrap()
/// });
/// assert_eq!(output, 42);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LocalRuntime {
    runtime: Runtime,
    /// Makes the type neither `Send` nor `Sync`, because the runtime must stay on its thread.
    here: PhantomData<*mut u8>,
}

/// Options for a [`LocalRuntime`] only. There are none at present; use `LocalOptions::default()`.
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
    /// Makes the type neither `Send` nor `Sync`, because a later option may belong to its thread.
    here: PhantomData<*mut u8>,
}

impl Builder {
    /// Creates the configured [`LocalRuntime`], which stays on the calling thread.
    ///
    /// # Errors
    ///
    /// If [`build`](Self::build) of a current-thread runtime fails.
    ///
    /// # Panics
    ///
    /// If the builder was created by `new_multi_thread`.
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
        runtime.handle().inner.pool.set_owner_thread();
        Ok(LocalRuntime { runtime, here })
    }
}

impl LocalRuntime {
    /// Creates a local runtime with default configuration values and all drivers enabled.
    ///
    /// # Errors
    ///
    /// If [`Builder::build_local`] fails.
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

    /// Returns a handle to the runtime, which can be cloned and sent to other threads.
    ///
    /// Because a handle may go to other threads, it spawns only futures that are [`Send`]. Its
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

    /// Spawns a task whose future need not be [`Send`], and returns its [`JoinHandle`].
    ///
    /// The task runs inside the next call of [`block_on`](Self::block_on).
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
        let (future, label) = trace::trace(future, label, trace::TaskKind::Local);
        match self.handle().inner.pool.spawn_local(future, label) {
            Ok(handle) => handle,
            Err(refused) => refused.end(),
        }
    }

    /// Runs a function on a thread where blocking is allowed; see [`Runtime::spawn_blocking`].
    ///
    /// # Panics
    ///
    /// If [`Runtime::spawn_blocking`] panics: the operating system refuses to start a thread, and
    /// there is no blocking thread yet.
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

    /// Runs a future to completion, and the runtime's tasks meanwhile; see [`Runtime::block_on`].
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

    /// Enters the runtime context until the guard is dropped; see [`Handle::enter`].
    ///
    /// On this thread, [`spawn_local`](crate::task::spawn_local) uses this runtime then, too.
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

    /// Shuts down the runtime, waiting at most `duration` for its work on other threads to end.
    ///
    /// The tasks are dropped on this thread before the method returns, whatever the duration.
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

    /// Shuts down the runtime without waiting for its work on other threads.
    ///
    /// Unlike dropping the runtime, this is allowed inside an asynchronous context.
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

    /// Returns the [`RuntimeMetrics`] of this runtime.
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

// No user code runs while the runtime's state is inconsistent, so a panic in user code can leave
// only the user's own data half changed; `Handle` has the same implementations.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

impl fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRuntime").field("handle", self.handle()).finish_non_exhaustive()
    }
}
