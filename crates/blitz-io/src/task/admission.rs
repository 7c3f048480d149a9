//! Results of spawn functions that may reject a future.

use std::{error::Error, fmt};

/// The load of the runtime when [`spawn_reporting`](super::spawn_reporting) spawned a task.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Builder, task::Pressure};
///
/// let rt = Builder::new_current_thread().backpressure_threshold(1).build()?;
/// let (_first, pressure) = rt.spawn_reporting(async {}).unwrap();
/// assert_eq!(pressure, Pressure::Low);
/// let (_second, pressure) = rt.spawn_reporting(async {}).unwrap();
/// assert_eq!(pressure, Pressure::High, "the first one waits in a queue");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pressure {
    /// Fewer tasks waited in run queues than the threshold times the number of workers.
    Low,
    /// At least as many tasks waited in run queues as the threshold times the number of workers:
    /// the runtime does not keep up. The task was spawned nevertheless; the caller should slow
    /// down.
    High,
}

/// The reason why a future was not spawned.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Builder, task::Rejection};
///
/// let rt = Builder::new_current_thread().max_bounded_tasks(1).build()?;
/// let _first = rt.try_spawn_bounded(async {}).unwrap();
/// let rejected = rt.try_spawn_bounded(async {}).unwrap_err();
/// assert_eq!(rejected.rejection(), Rejection::Full);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// At least twice as many tasks waited in run queues as the threshold times the number of
    /// workers.
    Overloaded,
    /// The limit on bounded tasks is reached, or other spawners wait for a slot.
    Full,
    /// The runtime is shutting down or has shut down.
    ShuttingDown,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded => {
                "too many tasks wait in the runtime's queues: try again later, or shed the work"
            }
            Self::Full => {
                "as many bounded tasks live as the runtime allows: await `spawn_bounded`, or shed \
                 the work"
            }
            Self::ShuttingDown => {
                "the runtime is shutting down: spawn on another one, or drop the work"
            }
        })
    }
}

/// A future that was rejected instead of spawned; it was never polled and can be taken back.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::Builder;
///
/// let rt = Builder::new_current_thread().max_bounded_tasks(1).build()?;
/// let first = rt.try_spawn_bounded(async { 1 }).unwrap();
/// let rejected = rt.try_spawn_bounded(async { 2 }).unwrap_err();
/// assert_eq!(rt.block_on(first).unwrap(), 1);
/// assert_eq!(rt.block_on(rejected.into_inner()), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Rejected<F> {
    future: F,
    why: Rejection,
}

impl<F> Rejected<F> {
    pub(crate) fn new(future: F, why: Rejection) -> Self {
        Self { future, why }
    }

    /// Returns the reason for the rejection.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{runtime::Runtime, task::Rejection};
    ///
    /// let rt = Runtime::new()?;
    /// let handle = rt.handle().clone();
    /// drop(rt);
    /// let rejected = handle.spawn_reporting(async {}).unwrap_err();
    /// assert_eq!(rejected.rejection(), Rejection::ShuttingDown);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn rejection(&self) -> Rejection {
        self.why
    }

    /// Returns the future that was not spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// # let rt = blitz_io::runtime::Runtime::new()?;
    /// # let handle = rt.handle().clone();
    /// # drop(rt);
    /// let future = match handle.spawn_reporting(async { 7 }) {
    ///     Ok((_handle, _pressure)) => unreachable!("the runtime is gone"),
    ///     Err(rejected) => rejected.into_inner(),
    /// };
    /// # let rt = blitz_io::runtime::Runtime::new()?;
    /// assert_eq!(rt.block_on(future), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("rejection", &self.why).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<F> Error for Rejected<F> {}
