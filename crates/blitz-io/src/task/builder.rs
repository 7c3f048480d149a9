//! Tasks with names.

use std::{future::Future, io, panic::Location};

use super::{JoinHandle, LocalSet, is_large, local};
use crate::{
    engine::work::task::{
        cell::Label,
        extra::{Blocks, Long, Named},
    },
    runtime::{Handle, context},
};

/// Factory which is used to configure the properties of a new task.
///
/// A name shows in [task hooks](crate::runtime::TaskMeta::name), in dumps and in
/// spans. It costs one allocation for its text.
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
    /// Creates a new task builder.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = blitz_io::task::Builder::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Assigns a name to the task which will be spawned.
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

    /// Says that polls of the task are long: it computes, or calls what may block.
    ///
    /// On a multi-thread runtime with [preemption](crate::runtime::Preemption) such a task is
    /// polled by threads that are no workers, from its first poll on, so that no slice passes
    /// until the runtime finds out, and is not [told of](crate::runtime::Builder::on_task_stall)
    /// there. If there are as many such threads as
    /// [may be](crate::runtime::Preemption::max_detached), a worker polls it after all. On other
    /// runtimes, and for local tasks, members of sets and blocking work, it means nothing.
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

    /// Spawns a task with this builder's settings on the current runtime.
    ///
    /// # Errors
    ///
    /// None in this version; the signature is Tokio's.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread, as [`spawn`](crate::spawn).
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

    /// Spawns a task with this builder's settings on the runtime of `handle`.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
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

    /// Spawns a `!Send` task with this builder's settings on the current [`LocalSet`] or
    /// [`LocalRuntime`](crate::runtime::LocalRuntime).
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// Outside of both, as [`task::spawn_local`](super::spawn_local).
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

    /// Spawns a `!Send` task with this builder's settings on the given [`LocalSet`].
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
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

    /// Runs the function on the current runtime's threads for blocking work, with this
    /// builder's settings.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking).
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

    /// Runs the function on the threads for blocking work of the runtime of `handle`,
    /// with this builder's settings.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`task::spawn_blocking`](super::spawn_blocking).
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
            None => handle.spawn_blocking_labelled(function, Label::with(at, Blocks(()))),
            Some(name) => {
                let extra = Named::new(Blocks(()), name);
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
            (None, true) => handle.spawn_labelled(future, Label::with(spawned_at, Long)),
            (Some(name), false) => {
                let extra = Named::new((), name);
                handle.spawn_labelled(future, Label::with(spawned_at, extra))
            }
            (Some(name), true) => {
                let extra = Named::new(Long, name);
                handle.spawn_labelled(future, Label::with(spawned_at, extra))
            }
        }
    }
}
