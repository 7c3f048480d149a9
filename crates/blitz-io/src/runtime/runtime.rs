//! The owner of a runtime: where it begins, and where it ends.

use std::{
    fmt,
    future::Future,
    time::{Duration, Instant},
};

use super::{EnterGuard, Handle, RuntimeFlavor, RuntimeMetrics, context::Entered};
use crate::{
    engine::{
        pool::drive::{self, NoBlocking},
        prim::is_panicking,
        work::current::Blocking,
    },
    task::JoinHandle,
};

/// The blitz-io runtime.
///
/// # Shutdown
///
/// Dropping it stops the runtime: each worker finishes the poll it is in, then
/// every task that is left is dropped, exactly once, and all threads are joined.
/// The drop waits for that. [`shutdown_timeout`](Self::shutdown_timeout) waits for
/// so long and no longer, [`shutdown_background`](Self::shutdown_background) not
/// at all. Tasks spawned afterwards through a [`Handle`] are cancelled at once.
///
/// Functions of [`spawn_blocking`](Self::spawn_blocking) that have not started end as
/// cancelled; those that run cannot be stopped, and the drop waits for them, too. If
/// that takes longer than a second it says so on standard error, with the place where
/// each was spawned.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Runtime;
///
/// let rt = Runtime::new()?;
/// rt.block_on(async {
///     assert_eq!(blitz_io::spawn(async { 1 + 1 }).await.unwrap(), 2);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime {
    handle: Handle,
    /// Nobody has begun to shut it down.
    running: bool,
}

impl Runtime {
    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self { handle, running: true }
    }

    /// Creates a new runtime instance with default configuration values: the
    /// multi-thread flavor, with as many workers as this process may use
    /// processors.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.block_on(async { 1 }), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "rt-multi-thread")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rt-multi-thread")))]
    pub fn new() -> std::io::Result<Self> {
        super::Builder::new_multi_thread().enable_all().build()
    }

    /// Returns a handle to the runtime's spawner.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// rt.handle().spawn(async { println!("on a worker") });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Spawns a future onto the runtime; see [`Handle::spawn`].
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let handle = rt.spawn(async { 7 });
    /// assert_eq!(rt.block_on(handle).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Runs the provided function on a thread for blocking work; see
    /// [`task::spawn_blocking`](crate::task::spawn_blocking).
    ///
    /// # Panics
    ///
    /// If the system refuses a thread and none lives that the work could wait for.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let handle = rt.spawn_blocking(|| 7);
    /// assert_eq!(rt.block_on(handle).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, func: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(func)
    }

    /// Runs a future to completion on the runtime. This is the runtime's entry
    /// point.
    ///
    /// The future runs on the calling thread; what it spawns runs on the workers,
    /// or, on a current-thread runtime, on this thread between its polls. Several
    /// threads may call this at once; on a current-thread runtime one of them runs
    /// the tasks.
    ///
    /// # Panics
    ///
    /// If the future panics, or if called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// let answer = rt.block_on(async { blitz_io::spawn(async { 42 }).await.unwrap() });
    /// assert_eq!(answer, 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.handle.inner.flavor {
            RuntimeFlavor::CurrentThread => {
                let _entered = self.handle.enter_blocking(Blocking::Forbidden);
                drive::drive(&self.handle.inner.pool, future)
            }
            RuntimeFlavor::MultiThread => {
                let _entered = self.handle.enter_blocking(Blocking::InPlace);
                drive::wait_for(Some(&self.handle.inner.pool), future)
            }
        }
    }

    /// Enters the runtime context; see [`Handle::enter`].
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let _guard = rt.enter();
    /// let handle = blitz_io::spawn(async { 1 });
    /// assert_eq!(rt.block_on(handle).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Shuts down the runtime, waiting for at most `duration` for all workers and
    /// all blocking work to end.
    ///
    /// A worker that is inside a poll for longer is left to itself; it ends after
    /// that poll. So is a thread inside blocking work.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// rt.spawn(std::future::pending::<()>());
    /// rt.shutdown_timeout(Duration::from_millis(100));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(mut self, duration: Duration) {
        self.shut_down(Some(duration));
    }

    /// Shuts down the runtime, without waiting for any worker or any blocking work to
    /// end.
    ///
    /// Unlike a drop it may be called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Runtime;
    ///
    /// let rt = Runtime::new()?;
    /// rt.block_on(async {
    ///     let inner = Runtime::new().unwrap();
    ///     inner.shutdown_background(); // dropping it here would panic
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }

    /// Returns a view that lets you get information about how the runtime is
    /// performing.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().worker_threads(3).build()?;
    /// assert_eq!(rt.metrics().num_workers(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }

    /// Asks the fibers to end. What their destructors wait for needs the rest of the runtime,
    /// so they come first, where somebody looks after that and may be waited for.
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn end_fibers(&self, timeout: Option<Duration>, deadline: Option<Instant>) {
        let inner = &self.handle.inner;
        inner.fibers.stop();
        if inner.flavor == RuntimeFlavor::MultiThread
            && timeout != Some(Duration::ZERO)
            && NoBlocking::is_allowed_to_block()
        {
            // If the time is over first, the rest goes on all the same.
            self.join_fibers(deadline);
        }
    }

    /// Waits for the fibers, and says for which.
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn join_fibers(&self, deadline: Option<Instant>) -> bool {
        let inner = &self.handle.inner;
        let wait = |until| inner.fibers.wait_for_end(until);
        inner.blocking.wait_and_say(&inner.pool, deadline, wait) && inner.fibers.join(deadline)
    }

    /// Stops, and waits: for ever if there is no time-out.
    fn shut_down(&mut self, timeout: Option<Duration>) {
        if !std::mem::replace(&mut self.running, false) {
            return;
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (pool, blocking) = (&self.handle.inner.pool, &self.handle.inner.blocking);
        {
            // Tasks that are dropped on this thread find their runtime.
            let _entered = Entered::new(self.handle.inner.clone());
            self.handle.inner.admission.close();
            #[cfg(all(
                feature = "fiber",
                unix,
                any(target_arch = "x86_64", target_arch = "aarch64")
            ))]
            self.end_fibers(timeout, deadline);
            // Before the cores: what is queued there must not be counted as tasks of theirs.
            blocking.stop();
            pool.stop();
        }
        if timeout == Some(Duration::ZERO) {
            return;
        }
        if !NoBlocking::is_allowed_to_block() {
            if is_panicking() {
                return;
            }
            panic!(
                "Cannot drop a runtime in a context where blocking is not allowed: this happens \
                 when a runtime is dropped from within an asynchronous context; call \
                 `shutdown_background`, or drop it on another thread"
            );
        }
        #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        if !self.join_fibers(deadline) {
            return;
        }
        if blocking.join(pool, deadline)
            && blocking.wait_and_say(pool, deadline, |until| pool.wait_for_end(until))
            && pool.join(deadline)
        {
            // A worker that blocked in place may have started one more meanwhile.
            blocking.join(pool, deadline);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shut_down(None);
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("handle", &self.handle).finish_non_exhaustive()
    }
}
