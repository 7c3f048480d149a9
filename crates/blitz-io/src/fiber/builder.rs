//! The builder of fibers with a name or a stack of another size.

use std::{io, panic::Location};

use crate::{
    engine::work::task::{
        cell::Label,
        extra::{Extra, Named},
    },
    runtime::Handle,
    task::JoinHandle,
};

/// A builder that sets the name and the stack size of a fiber before it is spawned.
///
/// # Examples
///
/// ```
/// use blitz_io::fiber;
///
/// # blitz_io::run(async {
/// let builder = fiber::Builder::new().name("parser").stack_size(1 << 20);
/// // SAFETY: 1. and 2. the closure does not wait.
/// let fiber = unsafe { builder.spawn(|| 1 + 1)? };
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
    /// Creates a builder with default settings: no name, and the runtime's stack size.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// // SAFETY: 1. and 2. the closure does not wait.
    /// let fiber = unsafe { blitz_io::fiber::Builder::new().spawn(|| 6 * 7)? };
    /// assert_eq!(fiber.await.unwrap(), 42);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the fiber, which appears in the report of a stack overflow and in [task
    /// hooks](crate::runtime::TaskMeta::name).
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let named = blitz_io::fiber::Builder::new().name("parser");
    /// // SAFETY: 1. and 2. the closure does not wait.
    /// let fiber = unsafe { named.spawn(|| "parsed")? };
    /// assert_eq!(fiber.await.unwrap(), "parsed");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn name(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Sets the size of the fiber's stack in bytes, rounded up to whole pages and to at least 64
    /// KiB.
    ///
    /// Stacks of the runtime's default size are kept for reuse by later fibers; stacks of other
    /// sizes are not.
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
    /// let builder = fiber::Builder::new().stack_size(64 << 20);
    /// // SAFETY: 1. and 2. the closure does not wait.
    /// let deep = unsafe { builder.spawn(|| depth(100_000))? };
    /// assert_eq!(deep.await.unwrap(), 100_000);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// Spawns a fiber with this builder's settings on the current runtime.
    ///
    /// # Safety
    ///
    /// The closure must keep the two rules of [`fiber::spawn`](crate::fiber::spawn#safety): it does
    /// not wait 1. in the initialiser of a thread-local, 2. in a scope of a thread-local.
    ///
    /// # Errors
    ///
    /// If there is no memory for the fiber's stack, or the kernel allows no further mapping; if the
    /// stack size is invalid; or if no thread runs fibers yet and the operating system refuses to
    /// start one.
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
    /// let builder = fiber::Builder::new().stack_size(usize::MAX);
    /// // SAFETY: 1. and 2. the closure does not wait.
    /// let error = unsafe { builder.spawn(|| {}) }.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// # });
    /// ```
    #[track_caller]
    pub unsafe fn spawn<F, R>(self, f: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        // SAFETY: our caller guarantees obligations 1 and 2 for this closure.
        unsafe { self.spawn_on(f, &Handle::current()) }
    }

    /// Spawns a fiber with this builder's settings on the runtime of `handle`.
    ///
    /// If that runtime has shut down, the closure is dropped at once, and awaiting the handle
    /// returns a cancelled error.
    ///
    /// # Safety
    ///
    /// The closure must keep the two rules of [`fiber::spawn`](crate::fiber::spawn#safety): it does
    /// not wait 1. in the initialiser of a thread-local, 2. in a scope of a thread-local.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{fiber, runtime::Runtime};
    ///
    /// let rt = Runtime::new()?;
    /// // SAFETY: 1. and 2. the closure does not wait.
    /// let fiber = unsafe { fiber::Builder::new().spawn_on(|| 1 + 1, rt.handle())? };
    /// assert_eq!(rt.block_on(fiber).unwrap(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn spawn_on<F, R>(self, f: F, handle: &Handle) -> io::Result<JoinHandle<R>>
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

/// The size in bytes above which closures are boxed. corosensei accepts up to 1,024 bytes on a
/// stack, which must hold our closure and a pointer; this limit leaves room below that.
const LARGE: usize = 512;

/// Spawns a fiber; boxes a large closure first, because it would otherwise lie on the fiber's
/// stack.
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
