//! Fibers with names, and with stacks of another size.

use std::{io, panic::Location};

use crate::{
    engine::work::task::{
        cell::Label,
        extra::{Extra, Named},
    },
    runtime::Handle,
    task::JoinHandle,
};

/// Factory which is used to configure the properties of a new fiber.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let fiber = fiber::Builder::new().name("parser").stack_size(1 << 20).spawn(|| 1 + 1)?;
/// assert_eq!(fiber.await.unwrap(), 2);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Default, Debug, Clone, Copy)]
#[must_use = "a builder does nothing until `spawn`"]
pub struct Builder<'a> {
    name: Option<&'a str>,
    stack_size: Option<usize>,
}

impl<'a> Builder<'a> {
    /// Creates a new builder.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// assert_eq!(blitz_io::fiber::Builder::new().spawn(|| 6 * 7)?.await.unwrap(), 42);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Assigns a name to the fiber: an overflow of its stack is reported with it, and
    /// [task hooks](crate::runtime::TaskMeta::name) see it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let named = blitz_io::fiber::Builder::new().name("parser");
    /// assert_eq!(named.spawn(|| "parsed")?.await.unwrap(), "parsed");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn name(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Sets how many bytes the fiber's stack has: rounded up to whole pages, and to 64 KiB at
    /// least. Stacks of the runtime's usual size are kept for the next fiber, others are not.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::fiber;
    ///
    /// fn depth(n: u32) -> u32 {
    ///     if n == 0 { 0 } else { std::hint::black_box(depth(n - 1)) + 1 }
    /// }
    ///
    /// # blitz_io::run(async {
    /// let deep = fiber::Builder::new().stack_size(64 << 20).spawn(|| depth(100_000))?;
    /// assert_eq!(deep.await.unwrap(), 100_000);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// Spawns a fiber with this builder's settings on the current runtime.
    ///
    /// # Errors
    ///
    /// If there is no memory for its stack, or the kernel allows no further mapping; if the
    /// size cannot be; if there is no thread that runs fibers yet and the system gives none.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::fiber;
    ///
    /// # blitz_io::run(async {
    /// let error = fiber::Builder::new().stack_size(usize::MAX).spawn(|| {}).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn<F, R>(self, f: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_on(f, &Handle::current())
    }

    /// Spawns a fiber with this builder's settings on the runtime of `handle`. After that has
    /// ended the closure is dropped at once, and the handle says that it was cancelled.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fiber, runtime::Runtime};
    ///
    /// let rt = Runtime::new()?;
    /// let fiber = fiber::Builder::new().spawn_on(|| 1 + 1, rt.handle())?;
    /// assert_eq!(rt.block_on(fiber).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F, R>(self, f: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let at = Location::caller();
        match self.name {
            None => spawn_sized(f, self.stack_size, handle, Label::at(at)),
            Some(name) => {
                let label = Label::with(at, Named::new((), name));
                spawn_sized(f, self.stack_size, handle, label)
            }
        }
    }
}

/// Closures beyond so many bytes are boxed. corosensei takes up to 1,024 onto a stack, ours
/// and a pointer among them; picked with room below that.
const LARGE: usize = 512;

/// Spawns; a large closure is boxed first: it would otherwise lie on the fiber's stack.
pub(super) fn spawn_sized<F, R, X>(
    f: F,
    stack_size: Option<usize>,
    handle: &Handle,
    label: Label<X>,
) -> io::Result<JoinHandle<R>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
    X: Extra,
{
    let fibers = &handle.inner.fibers;
    if size_of::<F>() > LARGE {
        return fibers.spawn(Box::new(f), stack_size, label);
    }
    fibers.spawn(f, stack_size, label)
}
