//! Spawning that tells when it is too much, and spawning that waits until it is not.

use std::future::Future;

use super::{JoinHandle, Pressure, Rejected};
use crate::runtime::{Handle, context};

/// Spawns a task and reports whether the runtime keeps up, or gives the future back.
///
/// The number of tasks that wait in the runtime's queues is looked at before this one
/// is put there, and compared with a limit: the
/// [threshold](crate::runtime::Builder::backpressure_threshold) times the number of
/// workers.
///
/// - Below the limit the task is spawned, and the report is [`Pressure::Low`].
/// - From the limit on it is spawned, and the report is [`Pressure::High`].
/// - From twice the limit on, or if the runtime is shutting down, it is not spawned:
///   the error has the future, which was never polled.
///
/// Tasks that run, and tasks that wait for something else than a worker, do not count.
/// Without a threshold the pressure is always low.
///
/// This is advice: lengths of queues change while they are added up, and between the
/// look and the spawn others may spawn, so the queues can grow past twice the limit by
/// as many tasks as there are threads that spawn at that moment. A current-thread
/// runtime sees all of its queue only from the thread that runs it; seen from other
/// threads, only what came from outside and was not fetched yet counts. For a bound
/// that holds use [`spawn_bounded`]. That a rejected future is not spawned is no
/// advice: it never is.
///
/// The look costs a few loads for each worker; [`spawn`](super::spawn) does not look.
///
/// # Errors
///
/// [`Rejected`], with the future: see above. A spawn at the very moment at which a
/// shutdown begins may be accepted; then the task is cancelled, as with
/// [`spawn`](super::spawn).
///
/// # Panics
///
/// If there is no runtime on this thread.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Builder, task::{self, Pressure}};
///
/// let rt = Builder::new_current_thread().backpressure_threshold(2).build()?;
/// rt.block_on(async {
///     let reports: Vec<_> = (0..6)
///         .map(|_| task::spawn_reporting(async {}).map(|(_handle, pressure)| pressure).ok())
///         .collect();
///     let (low, high) = (Some(Pressure::Low), Some(Pressure::High));
///     assert_eq!(reports, [low, low, high, high, None, None]);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_reporting<F>(future: F) -> Result<(JoinHandle<F::Output>, Pressure), Rejected<F>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match context::with_current(|inner| inner.admission.look(&inner.pool)) {
        // Nothing of a user's ran in between: it is the same runtime.
        Ok(Ok(pressure)) => Ok((super::spawn(future), pressure)),
        Ok(Err(why)) => Err(Rejected::new(future, why)),
        Err(error) => panic!("{error}"),
    }
}

/// Waits until fewer bounded tasks live than the runtime allows, then spawns.
///
/// [`Builder::max_bounded_tasks`](crate::runtime::Builder::max_bounded_tasks) says how
/// many may live at the same time; without it there is no limit. A bounded task has
/// its place until its future has been dropped: after it completed, panicked or was
/// aborted, or when the runtime shuts down. Then the place goes to the spawner that
/// has waited longest. Tasks of [`spawn`](super::spawn) and its like do not count and
/// never wait.
///
/// The place is free again when the task's future is gone, a moment before its
/// [`JoinHandle`] is ready. A bounded task that waits for its own `spawn_bounded` calls
/// keeps its place meanwhile: if all places are taken by such tasks, none goes on.
///
/// The future belongs to the runtime of the thread that called this; it may be
/// awaited anywhere.
///
/// # Errors
///
/// [`Rejected`], with the future, if the runtime shuts down before there is a place.
///
/// # Panics
///
/// If there is no runtime on this thread when this is called.
///
/// # Cancel safety
///
/// Dropping it before it is ready gives up the place in line, and drops the future
/// without having spawned it. Those who wait behind are not held up.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use blitz_io::{runtime::Builder, task};
///
/// static ALIVE: AtomicUsize = AtomicUsize::new(0);
///
/// let rt = Builder::new_multi_thread().worker_threads(2).max_bounded_tasks(3).build()?;
/// rt.block_on(async {
///     for _ in 0..100 {
///         let work = async {
///             assert!(ALIVE.fetch_add(1, Relaxed) < 3);
///             task::yield_now().await;
///             ALIVE.fetch_sub(1, Relaxed);
///         };
///         task::spawn_bounded(work).await.expect("the runtime is there");
///     }
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_bounded<F>(
    future: F,
) -> impl Future<Output = Result<JoinHandle<F::Output>, Rejected<F>>> + Send
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Handle::current().spawn_bounded(future)
}

/// Spawns a bounded task if there is a place for it now; see [`spawn_bounded`].
///
/// # Errors
///
/// [`Rejected`], with the future, if as many bounded tasks live as may, if others wait
/// for a place, or if the runtime is shutting down.
///
/// # Panics
///
/// If there is no runtime on this thread.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Builder, task::{self, Rejection}};
///
/// let rt = Builder::new_current_thread().max_bounded_tasks(1).build()?;
/// rt.block_on(async {
///     let first = task::try_spawn_bounded(async { "done" }).unwrap();
///     let rejected = task::try_spawn_bounded(async { "later" }).unwrap_err();
///     assert_eq!(rejected.rejection(), Rejection::Full);
///     assert_eq!(first.await.unwrap(), "done");
///     assert!(task::try_spawn_bounded(rejected.into_inner()).is_ok());
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn try_spawn_bounded<F>(future: F) -> Result<JoinHandle<F::Output>, Rejected<F>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Handle::current().try_spawn_bounded(future)
}
