//! What a panic of a task means for its runtime.

use super::Builder;

/// How the runtime should respond to unhandled panics.
///
/// See [`Builder::unhandled_panic`].
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::{Builder, UnhandledPanic};
///
/// let rt = Builder::new_current_thread().unhandled_panic(UnhandledPanic::Ignore).build()?;
/// let task = rt.spawn(async { panic!("boom") });
/// assert!(rt.block_on(task).unwrap_err().is_panic());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// The panic is the joiner's affair, and everything else goes on: the default.
    Ignore,
    /// The runtime shuts down when a spawned task panics, even if somebody would have
    /// joined it.
    ///
    /// All other tasks are dropped, tasks spawned from then on are cancelled, and every
    /// `block_on`, those that wait and those that come later, panics.
    ShutdownRuntime,
}

impl Builder {
    /// Configures how the runtime responds to an unhandled panic on a spawned task:
    /// [`UnhandledPanic::Ignore`] unless set.
    ///
    /// With [`UnhandledPanic::ShutdownRuntime`], on every flavour, a panic of a task, or
    /// of the drop of its future, ends the runtime: workers finish the polls they are
    /// in, every task is dropped, and
    /// [`Runtime::block_on`](crate::runtime::Runtime::block_on) panics, wherever it
    /// waits. A value that its future has just completed with is dropped.
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// use blitz_io::runtime::{Builder, UnhandledPanic};
    ///
    /// let rt = Builder::new_multi_thread()
    ///     .unhandled_panic(UnhandledPanic::ShutdownRuntime)
    ///     .build()
    ///     .unwrap();
    /// rt.spawn(async { panic!("boom") });
    /// rt.block_on(std::future::pending::<()>()); // panics
    /// ```
    pub fn unhandled_panic(&mut self, behavior: UnhandledPanic) -> &mut Self {
        self.ends_on_panic = matches!(behavior, UnhandledPanic::ShutdownRuntime);
        self
    }
}
