//! Spawning tasks with a name or other attributes.

use std::{future::Future, io, panic::Location};

use super::{JoinHandle, LocalSet, is_large, local};
use crate::{
    engine::work::task::{
        cell::Label,
        extra::{BlockingMark, LongRunning, Named},
    },
    runtime::{Handle, context},
};

/// A builder that sets the name and other attributes of a task before it is spawned.
///
/// The name appears in [task hooks](crate::runtime::TaskMeta::name), in task dumps and in tracing
/// spans. It costs one allocation, for its text.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// let task = task::Builder::new().name("greeter").spawn(async { "hello" })?;
/// assert_eq!(task.await.unwrap(), "hello");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Default, Debug, Clone, Copy)]
pub struct Builder<'a> {
    pub(super) name: Option<&'a str>,
    long_running: bool,
}

impl<'a> Builder<'a> {
    /// Creates a builder with no name and no other attributes set.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = blitz_io::task::Builder::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::task::Builder::new().name("greeter").spawn(async {})?.await.unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn name(&self, name: &'a str) -> Self {
        Self { name: Some(name), ..*self }
    }

    /// Declares that polls of the task take long, because it computes or calls code that may block.
    ///
    /// On a multi-thread runtime with [preemption](crate::runtime::Preemption), such a task is
    /// polled on threads that are not workers, starting with its first poll. So no worker loses a
    /// slice before the runtime finds out that the task is slow, and the task is not [reported as
    /// stalled](crate::runtime::Builder::on_task_stall) there. If the [limit on such
    /// threads](crate::runtime::Preemption::max_detached) is reached, a worker polls the task after
    /// all. On other runtimes, and for local tasks, members of a `JoinSet` and blocking work, this
    /// setting has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime, task};
    ///
    /// let rt = runtime::Runtime::new()?;
    /// let sum = task::Builder::new().name("sum").long_running().spawn_on(
    ///     async {
    ///         assert_eq!(runtime::worker_index(), None, "no worker is kept from other tasks");
    ///         (0..10_000_000u64).sum::<u64>()
    ///     },
    ///     rt.handle(),
    /// )?;
    /// assert_eq!(rt.block_on(sum).unwrap(), 49_999_995_000_000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn long_running(&self) -> Self {
        Self { long_running: true, ..*self }
    }

    /// Spawns a task on the current runtime, with this builder's settings.
    ///
    /// # Errors
    ///
    /// Never returns an error; the signature is Tokio's.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, like [`spawn`](crate::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let task = blitz_io::task::Builder::new().name("sum").spawn(async { 1 + 1 })?;
    /// assert_eq!(task.await.unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match context::with_current(|inner| Handle { inner: inner.clone() }) {
            Ok(handle) => self.spawn_on(future, &handle),
            Err(error) => panic!("{error}"),
        }
    }

    /// Spawns a task on the runtime of `handle`, with this builder's settings.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let task = blitz_io::task::Builder::new().name("sum").spawn_on(async { 1 + 1 }, rt.handle())?;
    /// assert_eq!(rt.block_on(task).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            return Ok(self.spawn_sized(Box::pin(future), handle, spawned_at));
        }
        Ok(self.spawn_sized(future, handle, spawned_at))
    }

    /// Spawns a `!Send` task on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime), with this builder's settings.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// Outside of both, like [`task::spawn_local`](super::spawn_local).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{self, LocalSet};
    ///
    /// # blitz_io::run(LocalSet::new().run_until(async {
    /// let task = task::Builder::new().name("stays").spawn_local(async { 1 + 1 })?;
    /// assert_eq!(task.await.unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// # })).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let spawned_at = Location::caller();
        if is_large::<F>() {
            return Ok(self.spawn_local_sized(Box::pin(future), spawned_at));
        }
        Ok(self.spawn_local_sized(future, spawned_at))
    }

    /// Spawns a `!Send` task on the given [`LocalSet`], with this builder's settings.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{self, LocalSet};
    ///
    /// # blitz_io::run(async {
    /// let local = LocalSet::new();
    /// let task = task::Builder::new().name("stays").spawn_local_on(async { 1 + 1 }, &local)?;
    /// assert_eq!(local.run_until(task).await.unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(
        self,
        future: F,
        local_set: &LocalSet,
    ) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let at = Location::caller();
        if is_large::<F>() {
            return Ok(self.spawn_in(local_set, Box::pin(future), at));
        }
        Ok(self.spawn_in(local_set, future, at))
    }

    /// Runs a function on the current runtime's blocking pool, with this builder's settings.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let task = blitz_io::task::Builder::new().name("reads").spawn_blocking(|| 1 + 1)?;
    /// assert_eq!(task.await.unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, function: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_on(function, &Handle::current())
    }

    /// Runs a function on the blocking pool of the runtime of `handle`, with this builder's
    /// settings.
    ///
    /// # Errors
    ///
    /// Never returns an error, like [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// In the cases in which [`task::spawn_blocking`](super::spawn_blocking) panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let task = blitz_io::task::Builder::new().spawn_blocking_on(|| 1 + 1, rt.handle())?;
    /// assert_eq!(rt.block_on(task).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, function: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let at = Location::caller();
        if is_large::<F>() {
            let function = Box::new(function);
            return Ok(self.spawn_blocking_sized(function, handle, at));
        }
        Ok(self.spawn_blocking_sized(function, handle, at))
    }

    fn spawn_in<F>(
        self,
        local_set: &LocalSet,
        future: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        match self.name {
            None => local_set.spawn_labelled(future, Label::at(at)),
            Some(name) => local_set.spawn_labelled(future, Label::with(at, Named::new((), name))),
        }
    }

    #[track_caller]
    fn spawn_blocking_sized<F, R>(
        self,
        function: F,
        handle: &Handle,
        at: &'static Location<'static>,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        match self.name {
            None => handle.spawn_blocking_labelled(function, Label::with(at, BlockingMark(()))),
            Some(name) => {
                let extra = Named::new(BlockingMark(()), name);
                handle.spawn_blocking_labelled(function, Label::with(at, extra))
            }
        }
    }

    #[track_caller]
    fn spawn_local_sized<F>(
        self,
        future: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        match self.name {
            None => local::spawn_labelled(future, Label::at(at)),
            Some(name) => local::spawn_labelled(future, Label::with(at, Named::new((), name))),
        }
    }

    #[track_caller]
    fn spawn_sized<F>(
        self,
        future: F,
        handle: &Handle,
        spawned_at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match (self.name, self.long_running) {
            (None, false) => handle.spawn_labelled(future, Label::at(spawned_at)),
            (None, true) => handle.spawn_labelled(future, Label::with(spawned_at, LongRunning)),
            (Some(name), false) => {
                let extra = Named::new((), name);
                handle.spawn_labelled(future, Label::with(spawned_at, extra))
            }
            (Some(name), true) => {
                let extra = Named::new(LongRunning, name);
                handle.spawn_labelled(future, Label::with(spawned_at, extra))
            }
        }
    }
}
