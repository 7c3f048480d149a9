//! The builder option for panics of tasks.

use super::Builder;

/// The reaction of a runtime to a panic of a task.
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
    /// The panic is returned by the task's `JoinHandle`, and everything else continues: the
    /// default.
    Ignore,
    /// The runtime shuts down when a spawned task panics, even if the task's `JoinHandle` is
    /// awaited.
    ///
    /// All other tasks are dropped, tasks that are spawned later are cancelled, and every call of
    /// `block_on`, current or later, panics. Fibers (feature `fiber`) go on until the runtime is
    /// dropped.
    ShutdownRuntime,
}

impl Builder {
    /// Sets what the runtime does when a spawned task panics: [`UnhandledPanic::Ignore`] by
    /// default.
    ///
    /// With [`UnhandledPanic::ShutdownRuntime`], a panic of a task, or of the destructor of its
    /// future, ends the runtime, on every flavor: workers finish the polls that they are in, every
    /// task is dropped, and [`Runtime::block_on`](crate::runtime::Runtime::block_on) panics,
    /// wherever it waits. If the future of `block_on` has just completed, its output is dropped.
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
