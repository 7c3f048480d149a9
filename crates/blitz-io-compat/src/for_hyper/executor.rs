//! The executor for hyper's tasks.

#![forbid(unsafe_code)]

use hyper::rt::Executor;

/// Spawns hyper's tasks on the runtime that is current at the call.
///
/// HTTP/2 needs an executor. HTTP/1 does not.
///
/// # Panics
///
/// [`execute`](Executor::execute) panics outside of a runtime, as [`blitz_io::spawn`] does.
///
/// # Examples
///
/// ```
/// use blitz_io::channel::oneshot;
/// use blitz_io_compat::HyperExecutor;
/// use hyper::rt::Executor;
///
/// # blitz_io::run(async {
/// let (sender, receiver) = oneshot::channel();
/// HyperExecutor::new().execute(async move { sender.send(42) });
/// assert_eq!(receiver.await, Ok(42));
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HyperExecutor;

impl HyperExecutor {
    /// Creates the executor, which has no state.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io_compat::HyperExecutor;
    ///
    /// assert_eq!(HyperExecutor::new(), HyperExecutor::default());
    /// ```
    #[inline]
    pub fn new() -> Self {
        Self
    }
}

impl<F> Executor<F> for HyperExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[inline]
    #[track_caller]
    fn execute(&self, future: F) {
        blitz_io::spawn(future);
    }
}
