//! Tasks with names.

use std::{future::Future, io, panic::Location};

use super::{JoinHandle, is_large};
use crate::{
    engine::work::task::{cell::Label, extra::Named},
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
        Self { name: Some(name) }
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
        match self.name {
            None => handle.spawn_labelled(future, Label::at(spawned_at)),
            Some(name) => {
                let extra = Named::new((), name);
                handle.spawn_labelled(future, Label::with(spawned_at, extra))
            }
        }
    }
}
