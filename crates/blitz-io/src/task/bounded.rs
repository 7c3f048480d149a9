//! Spawning that reports overload, and spawning that waits while a limit is reached.

use std::future::Future;

use super::{JoinHandle, Pressure, Rejected};
use crate::runtime::{Handle, context};

/// Spawns a task and returns how loaded the runtime is, or rejects the future under overload.
///
/// Before the task is spawned, the number of tasks that wait in the runtime's run queues is
/// compared with a limit: the [threshold](crate::runtime::Builder::backpressure_threshold) times
/// the number of workers.
///
/// - Below the limit the task is spawned, and [`Pressure::Low`] is returned.
/// - From the limit on the task is spawned, and [`Pressure::High`] is returned.
/// - From twice the limit on, or if the runtime is shutting down, the task is not spawned: the
///   error contains the future, which was never polled.
///
/// Tasks that run, and tasks that wait for something else than a worker, do not count. Without a
/// threshold the pressure is always low.
///
/// The limit is approximate: queue lengths change while they are added up, and other threads may
/// spawn between the check and the spawn, so the queues can exceed twice the limit by as many tasks
/// as there are threads that spawn at that moment. A current-thread runtime sees its whole queue
/// only from the thread that runs it; for other threads, only the tasks that were sent from outside
/// and not yet fetched count. For an exact limit use [`spawn_bounded`]. Rejection itself is exact:
/// a rejected future is never spawned.
///
/// The check costs a few loads for each worker; [`spawn`](super::spawn) does not check.
///
/// # Errors
///
/// [`Rejected`], with the future, in the cases described above. A spawn at the moment at which a
/// shutdown begins may still be accepted; the task is cancelled then, as with
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
    match context::with_current(|inner| inner.admission.check(&inner.pool)) {
        // No user code ran since the check, so `spawn` uses the same runtime.
        Ok(Ok(pressure)) => Ok((super::spawn(future), pressure)),
        Ok(Err(why)) => Err(Rejected::new(future, why)),
        Err(error) => panic!("{error}"),
    }
}

/// Waits until the number of bounded tasks is below the runtime's limit, then spawns a task.
///
/// [`Builder::max_bounded_tasks`](crate::runtime::Builder::max_bounded_tasks) sets how many bounded
/// tasks may exist at the same time; without it there is no limit. A bounded task occupies its
/// slot until its future has been dropped: after it completed, panicked or was aborted, or when
/// the runtime shuts down. The slot then goes to the spawner that has waited longest. Tasks of
/// [`spawn`](super::spawn) and the other unbounded functions do not count and never wait.
///
/// The slot is free as soon as the task's future has been dropped, shortly before its
/// [`JoinHandle`] is ready. A bounded task that awaits `spawn_bounded` itself keeps its slot
/// meanwhile: if all slots are taken by such tasks, they deadlock.
///
/// The returned future belongs to the current runtime of the thread that called this function; it
/// may be awaited anywhere.
///
/// # Errors
///
/// [`Rejected`], with the future, if the runtime shuts down before a slot becomes free.
///
/// # Panics
///
/// If there is no runtime on this thread when this function is called.
///
/// # Cancel safety
///
/// Dropping the returned future before it is ready gives up its position in the wait queue and
/// drops the task's future without spawning it. Spawners behind it in the queue are not delayed.
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

/// Spawns a bounded task if a slot is free now; see [`spawn_bounded`].
///
/// # Errors
///
/// [`Rejected`], with the future, if the limit on bounded tasks is reached, if other spawners wait
/// for a slot, or if the runtime is shutting down.
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
