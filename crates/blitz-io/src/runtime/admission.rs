//! Spawns that report pressure, and spawns that are bounded.
//!
//! These are two different things. [`Admission::check`] compares the lengths of queues with a
//! threshold, which is cheap, and only advice. A [`TaskLimit`] counts permits, which is exact, and
//! it can be waited for. Plain spawns use neither.

use std::{future::Future, panic::Location};

use super::{Handle, Runtime};
use crate::{
    engine::{
        pool::Pool,
        wait::{
            permits::{Closed, MAX, NoPermits},
            task_limit::{TaskLimit, TaskPermit},
        },
        work::task::{cell::Label, extra::BlockingMark},
    },
    task::{JoinHandle, Pressure, Rejected, Rejection, is_large},
};

/// The limits that a builder sets; `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// The number of queued tasks per worker from which on there is pressure.
    pub(crate) threshold: Option<usize>,
    /// How many bounded tasks may exist at the same time.
    pub(crate) bounded: Option<usize>,
    /// How many bounded blocking functions may wait for a thread at the same time.
    pub(crate) blocking: Option<usize>,
}

/// The limits of a runtime, with the permits that enforce them.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The number of tasks in all queues from which on there is pressure.
    threshold: Option<usize>,
    bound: TaskLimit,
    /// Permits for the queue of blocking work.
    blocking: TaskLimit,
    /// Permits for the threads that resolve names.
    #[cfg(feature = "net")]
    lookups: TaskLimit,
}

impl Admission {
    pub(crate) fn new(limits: Limits, workers: usize, blocking_threads: usize) -> Self {
        #[cfg(not(feature = "net"))]
        let _ = blocking_threads;
        Self {
            threshold: limits.threshold.map(|each| each.saturating_mul(workers)),
            bound: TaskLimit::new(limits.bounded.unwrap_or(MAX)),
            blocking: TaskLimit::new(limits.blocking.unwrap_or(MAX)),
            #[cfg(feature = "net")]
            lookups: TaskLimit::new(crate::net::max_lookups(blocking_threads).min(MAX)),
        }
    }

    /// Returns the permits for the threads that resolve names.
    #[cfg(feature = "net")]
    pub(crate) fn lookups(&self) -> &TaskLimit {
        &self.lookups
    }

    /// Returns the pressure in the queues at this moment, before another task is added, or the
    /// reason to reject the task. This is advice only: the queues may change before the task is
    /// spawned.
    pub(crate) fn check(&self, pool: &Pool) -> Result<Pressure, Rejection> {
        if pool.is_stopping() {
            return Err(Rejection::ShuttingDown);
        }
        let Some(threshold) = self.threshold else { return Ok(Pressure::Low) };
        let depth = pool.depth();
        if depth >= threshold.saturating_mul(2) {
            return Err(Rejection::Overloaded);
        }
        Ok(if depth < threshold { Pressure::Low } else { Pressure::High })
    }

    /// Closes all bounds at shutdown: no further task is admitted, and waiting spawns are rejected.
    pub(crate) fn close(&self) {
        self.bound.close();
        self.blocking.close();
        #[cfg(feature = "net")]
        self.lookups.close();
    }
}

impl Handle {
    /// Spawns a task and reports the pressure on the runtime, or returns the future if the task is
    /// rejected; see [`task::spawn_reporting`](crate::task::spawn_reporting).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if the runtime is overloaded or shutting down.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime::Runtime, task::Pressure};
    ///
    /// let rt = Runtime::new()?;
    /// let (handle, pressure) = rt.handle().spawn_reporting(async { 1 }).unwrap();
    /// assert_eq!(pressure, Pressure::Low, "there is no threshold");
    /// assert_eq!(rt.block_on(handle).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_reporting<F>(
        &self,
        future: F,
    ) -> Result<(JoinHandle<F::Output>, Pressure), Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.inner.admission.check(&self.inner.pool) {
            Ok(pressure) => Ok((self.spawn(future), pressure)),
            Err(why) => Err(Rejected::new(future, why)),
        }
    }

    /// Waits until there are fewer bounded tasks than the runtime allows, then spawns one; see
    /// [`task::spawn_bounded`](crate::task::spawn_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if the runtime shuts down before the task is
    /// admitted.
    ///
    /// # Cancel safety
    ///
    /// If the returned future is dropped before it completes, the task's future is dropped without
    /// having been spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_multi_thread().max_bounded_tasks(2).build()?;
    /// let handle = rt.handle().clone();
    /// rt.block_on(async {
    ///     let task = handle.spawn_bounded(async { 5 }).await.unwrap();
    ///     assert_eq!(task.await.unwrap(), 5);
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_bounded<F>(
        &self,
        future: F,
    ) -> impl Future<Output = Result<JoinHandle<F::Output>, Rejected<F>>> + Send + use<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // This is not an `async fn`, so that the source location is the caller's and not that of
        // the first poll.
        let (handle, spawned_at) = (self.clone(), Location::caller());
        async move {
            match handle.inner.admission.bound.clone().take().await {
                Ok(permit) => Ok(handle.spawn_with_permit(permit, future, spawned_at)),
                Err(Closed) => Err(Rejected::new(future, Rejection::ShuttingDown)),
            }
        }
    }

    /// Spawns a bounded task if there are fewer than the runtime allows; see
    /// [`task::try_spawn_bounded`](crate::task::try_spawn_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if there are too many bounded tasks or the runtime
    /// is shutting down.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::Builder;
    ///
    /// let rt = Builder::new_multi_thread().max_bounded_tasks(1).build()?;
    /// let _forever = rt.handle().try_spawn_bounded(std::future::pending::<()>()).unwrap();
    /// assert!(rt.handle().try_spawn_bounded(async {}).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn try_spawn_bounded<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let why = match self.inner.admission.bound.try_take() {
            Ok(permit) => return Ok(self.spawn_with_permit(permit, future, Location::caller())),
            Err(NoPermits::TooFew) => Rejection::Full,
            Err(NoPermits::Closed) => Rejection::ShuttingDown,
        };
        Err(Rejected::new(future, why))
    }

    #[track_caller]
    fn spawn_with_permit<F>(
        &self,
        permit: TaskPermit,
        future: F,
        spawned_at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if is_large::<F>() {
            return self.spawn_labelled(permit.attach_to(Box::pin(future)), Label::at(spawned_at));
        }
        self.spawn_labelled(permit.attach_to(future), Label::at(spawned_at))
    }
}

/// Bounded blocking work.
impl Handle {
    /// Waits until fewer bounded functions wait for a thread than the runtime allows, then spawns a
    /// function on the blocking threads; see
    /// [`task::spawn_blocking_bounded`](crate::task::spawn_blocking_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the function, if the runtime shuts down before it is admitted.
    ///
    /// # Cancel safety
    ///
    /// If the returned future is dropped before it completes, the function is dropped without
    /// having been spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_blocking_queue(2).build()?;
    /// let handle = rt.handle().clone();
    /// rt.block_on(async {
    ///     let work = handle.spawn_blocking_bounded(|| 5).await.unwrap();
    ///     assert_eq!(work.await.unwrap(), 5);
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_bounded<F, R>(
        &self,
        f: F,
    ) -> impl Future<Output = Result<JoinHandle<R>, Rejected<F>>> + Send + use<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        // This is not an `async fn`, so that the source location is the caller's and not that of
        // the first poll.
        let (handle, spawned_at) = (self.clone(), Location::caller());
        async move {
            match handle.inner.admission.blocking.clone().take().await {
                Ok(permit) => Ok(handle.spawn_blocking_with_permit(permit, f, spawned_at)),
                Err(Closed) => Err(Rejected::new(f, Rejection::ShuttingDown)),
            }
        }
    }

    /// Spawns a function on the blocking threads if fewer bounded functions wait for a thread than
    /// the runtime allows; see
    /// [`task::try_spawn_blocking_bounded`](crate::task::try_spawn_blocking_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the function, if too many of them wait or the runtime is
    /// shutting down.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_blocking_queue(2).build()?;
    /// let work = rt.handle().try_spawn_blocking_bounded(|| 5).unwrap();
    /// assert_eq!(rt.block_on(work).unwrap(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn try_spawn_blocking_bounded<F, R>(&self, f: F) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let why = match self.inner.admission.blocking.try_take() {
            Ok(permit) => {
                return Ok(self.spawn_blocking_with_permit(permit, f, Location::caller()));
            }
            Err(NoPermits::TooFew) => Rejection::Full,
            Err(NoPermits::Closed) => Rejection::ShuttingDown,
        };
        Err(Rejected::new(f, why))
    }

    #[track_caller]
    fn spawn_blocking_with_permit<F, R>(
        &self,
        permit: TaskPermit,
        f: F,
        spawned_at: &'static Location<'static>,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        // The permit is for a slot in the queue, so it is returned as soon as a thread has the
        // work.
        let leaves = move || {
            drop(permit);
            f()
        };
        self.spawn_blocking_labelled(leaves, Label::with(spawned_at, BlockingMark(())))
    }
}

impl Runtime {
    /// Spawns a task and reports the pressure on the runtime, or returns the future if the task is
    /// rejected; see [`task::spawn_reporting`](crate::task::spawn_reporting).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if the runtime is overloaded or shutting down.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread().backpressure_threshold(1).build()?;
    /// let reports: Vec<_> = (0..3).map(|_| rt.spawn_reporting(async {}).is_ok()).collect();
    /// assert_eq!(reports, [true, true, false], "no thread runs them");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_reporting<F>(
        &self,
        future: F,
    ) -> Result<(JoinHandle<F::Output>, Pressure), Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().spawn_reporting(future)
    }

    /// Waits until there are fewer bounded tasks than the runtime allows, then spawns one; see
    /// [`task::spawn_bounded`](crate::task::spawn_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if the runtime shuts down before the task is
    /// admitted.
    ///
    /// # Cancel safety
    ///
    /// If the returned future is dropped before it completes, the task's future is dropped without
    /// having been spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_bounded_tasks(1).build()?;
    /// let task = rt.block_on(rt.spawn_bounded(async { 3 })).unwrap();
    /// assert_eq!(rt.block_on(task).unwrap(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_bounded<F>(
        &self,
        future: F,
    ) -> impl Future<Output = Result<JoinHandle<F::Output>, Rejected<F>>> + Send + use<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().spawn_bounded(future)
    }

    /// Spawns a bounded task if there are fewer than the runtime allows; see
    /// [`task::try_spawn_bounded`](crate::task::try_spawn_bounded).
    ///
    /// # Errors
    ///
    /// [`Rejected`], which contains the future, if there are too many bounded tasks or the runtime
    /// is shutting down.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_multi_thread().max_bounded_tasks(8).build()?;
    /// let task = rt.try_spawn_bounded(async { 3 }).unwrap();
    /// assert_eq!(rt.block_on(task).unwrap(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn try_spawn_bounded<F>(&self, future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().try_spawn_bounded(future)
    }
}
