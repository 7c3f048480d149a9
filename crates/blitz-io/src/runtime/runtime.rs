//! The type [`Runtime`], which owns the scheduler: `block_on`, spawning, and the shutdown.

use std::{
    fmt,
    future::Future,
    time::{Duration, Instant},
};

use super::{EnterGuard, Handle, RuntimeFlavor, RuntimeMetrics, context::Entered};
use crate::{
    engine::{
        pool::{drive, stop::HelpSchedule},
        prim::is_panicking,
        work::thread_context::blocking::{BlockingPolicy, NoBlocking},
    },
    task::JoinHandle,
};

/// How long a shutdown waits for the fibers before it also drops the tasks. A fiber's destructor
/// may need tasks, so fibers get this time first. The value was chosen, not measured: a destructor
/// that takes up to a second is left undisturbed.
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
const FIBERS_FIRST: Duration = Duration::from_secs(1);

/// A runtime: a scheduler with its worker threads, blocking threads, I/O driver and timers.
///
/// A program usually has one, made by [`#[main]`](crate::main), [`run`](crate::run()) or
/// [`Runtime::new`]; [`Builder`](super::Builder) configures one.
///
/// # Shutdown
///
/// Dropping a `Runtime` shuts it down: each worker finishes the poll that it is in, every remaining
/// task is dropped exactly once, and all threads are joined. The drop waits until that is done.
/// [`shutdown_timeout`](Self::shutdown_timeout) waits for at most the given time, and
/// [`shutdown_background`](Self::shutdown_background) does not wait.
///
/// Once the shutdown has begun, new tasks are refused: the future is dropped at once, and its
/// `JoinHandle` returns a cancellation error. A destructor may still spawn, block
/// ([`block_in_place`](crate::task::block_in_place)), call [`Handle::block_on`] or
/// [`spawn_blocking`](Self::spawn_blocking); only after `shutdown_background` are blocking jobs
/// refused as well. If it waits for a timer or for a socket of this runtime, the wait fails with an
/// error (a [`sleep`](crate::time::sleep) panics), because no thread polls the drivers any more.
///
/// A poll that blocks its thread to wait for another task does not make the drop hang, because the
/// other tasks are dropped meanwhile, on other threads if necessary. So the receiver of a channel
/// sees that it is closed, and a guard that a task held is released.
///
/// Functions that were queued by [`spawn_blocking`](Self::spawn_blocking) before the shutdown are
/// run; Tokio may cancel some of them. Neither they nor a poll can be stopped from outside, so the
/// drop waits for them. If that takes longer than a second, the runtime writes to standard error
/// which task it waits for, where it was spawned, for how long it has run, and what its thread is
/// blocked on.
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
    /// True until the shutdown begins.
    running: bool,
}

impl Runtime {
    pub(crate) fn from_handle(handle: Handle) -> Self {
        Self { handle, running: true }
    }

    /// Creates a multi-thread runtime with default configuration values.
    ///
    /// The runtime has one worker for each processor that this process may use, and all drivers are
    /// enabled.
    ///
    /// # Errors
    ///
    /// If the operating system refuses to start a thread or to create the I/O driver.
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

    /// Returns a handle to the runtime, which can be cloned and sent to other threads.
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

    /// Spawns a future onto the runtime and returns its [`JoinHandle`]; see [`Handle::spawn`].
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

    /// Runs a function on a thread where blocking is allowed; see
    /// [`task::spawn_blocking`](crate::task::spawn_blocking).
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

    /// Runs a future to completion on the runtime and returns its output: the runtime's entry
    /// point.
    ///
    /// The future runs on the calling thread. Tasks that it spawns run on the workers or, on a
    /// current-thread runtime, on this thread between polls of the future. Several threads may call
    /// this method at once; on a current-thread runtime one of them runs the tasks.
    ///
    /// # Panics
    ///
    /// If the future panics, or if called inside an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().build()?;
    /// let output = rt.block_on(async { blitz_io::spawn(async { 42 }).await.unwrap() });
    /// assert_eq!(output, 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.handle.inner.flavor {
            RuntimeFlavor::CurrentThread => {
                let _entered = self.handle.enter_blocking(BlockingPolicy::Forbidden);
                drive::drive(&self.handle.inner.pool, future)
            }
            RuntimeFlavor::MultiThread => {
                let _entered = self.handle.enter_blocking(BlockingPolicy::InPlaceOnly);
                drive::wait_for(Some(&self.handle.inner.pool), future)
            }
        }
    }

    /// Enters the runtime context on this thread until the guard is dropped; see [`Handle::enter`].
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

    /// Shuts down the runtime, waiting at most `duration` until all workers and all blocking work
    /// have ended.
    ///
    /// A worker with a poll that lasts longer than that is not waited for, and its thread ends
    /// after the poll. The same holds for a thread inside blocking work.
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

    /// Shuts down the runtime without waiting for workers or blocking work to end.
    ///
    /// Unlike dropping the runtime, this is allowed inside an asynchronous context.
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

    /// Returns the [`RuntimeMetrics`] of this runtime.
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

    /// Requests that all fibers end, and waits for them where that is allowed. Fibers must end
    /// before the rest of the runtime, because their destructors may wait for tasks, timers or I/O,
    /// which must still be running then.
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn end_fibers(&self, timeout: Option<Duration>, deadline: Option<Instant>) {
        let inner = &self.handle.inner;
        inner.fibers.stop();
        if inner.flavor == RuntimeFlavor::MultiThread
            && timeout != Some(Duration::ZERO)
            && NoBlocking::is_allowed_to_block()
        {
            // A fiber may block its thread until a task releases something, and such a task has to
            // be dropped first. So after `FIBERS_FIRST`, or half of the time-out, the rest of the
            // runtime shuts down although fibers are left.
            let patience = timeout.map_or(FIBERS_FIRST, |all| FIBERS_FIRST.min(all / 2));
            let patience = Instant::now().checked_add(patience);
            self.join_fibers([deadline, patience].into_iter().flatten().min());
        }
    }

    /// Waits until all fibers have ended, reporting the ones that take long. Returns false if the
    /// deadline passed first.
    #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn join_fibers(&self, deadline: Option<Instant>) -> bool {
        let inner = &self.handle.inner;
        let wait = |until| inner.fibers.wait_for_end(until);
        inner.blocking.wait_and_report(&inner.pool, deadline, wait) && inner.fibers.join(deadline)
    }

    /// Shuts down the runtime and waits until it has ended, without limit if `timeout` is `None`.
    fn shut_down(&mut self, timeout: Option<Duration>) {
        if !std::mem::replace(&mut self.running, false) {
            return;
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let is_background = timeout == Some(Duration::ZERO);
        let (pool, blocking) = (&self.handle.inner.pool, &self.handle.inner.blocking);
        {
            // Destructors of tasks that are dropped on this thread must find their runtime.
            let _entered = Entered::new(self.handle.inner.clone());
            self.handle.inner.admission.close();
            #[cfg(all(
                feature = "fiber",
                unix,
                any(target_arch = "x86_64", target_arch = "aarch64")
            ))]
            self.end_fibers(timeout, deadline);
            pool.stop();
        }
        let may_block = NoBlocking::is_allowed_to_block();
        if is_background || !may_block {
            pool.help_in_background();
            let _entered = Entered::new(self.handle.inner.clone());
            blocking.stop();
        }
        if is_background || !may_block && is_panicking() {
            return;
        }
        if !may_block {
            panic!(
                "Cannot drop a runtime in a context where blocking is not allowed. This happens \
                 when a runtime is dropped from within an asynchronous context. Call \
                 `shutdown_background`, or drop it on another thread."
            );
        }
        // Tasks are dropped before the blocking pool stops, because a destructor may wait for
        // blocking work.
        let ended = {
            let _entered = Entered::new(self.handle.inner.clone());
            let helping = HelpSchedule::new(deadline.is_none());
            let wait = |until| pool.wait_until_dropped(&helping, until);
            let ended = blocking.wait_and_report(pool, deadline, wait);
            if !ended {
                pool.help_in_background();
            }
            blocking.stop();
            ended
        };
        #[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        if !self.join_fibers(deadline) {
            return;
        }
        if ended
            && blocking.join(pool, deadline)
            && blocking.wait_and_report(pool, deadline, |until| pool.wait_for_end(until))
            && pool.join(deadline)
        {
            // A worker inside `block_in_place` may have started another blocking thread meanwhile.
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
