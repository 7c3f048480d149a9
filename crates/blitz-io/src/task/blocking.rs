//! Code that blocks its thread, called from code that must not.

use std::panic::Location;

use super::{JoinError, JoinHandle, Rejected, is_large};
use crate::{
    engine::{
        blocking::Job,
        pool::{
            drive::{self, NoBlocking},
            handoff::{self, Blocked, InPlace},
        },
        work::{
            current::Blocking,
            task::{cell::Label, extra::Blocks, trace},
        },
    },
    runtime::{Handle, context},
};

/// Runs the provided closure on a thread where blocking is acceptable.
///
/// Threads are started when they are needed, up to
/// [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads), and end when
/// they had nothing to do for a while; at the limit the closure waits in a queue, in the
/// order of spawning on each worker.
///
/// [`JoinHandle::abort`] works until the closure has started: afterwards nothing can
/// stop it, and a runtime that is dropped waits for it. To wait for a bounded time only,
/// use [`Runtime::shutdown_timeout`](crate::runtime::Runtime::shutdown_timeout).
///
/// Inside the closure the runtime is the current one, [`Handle::block_on`] may be
/// called, and no budget applies. It is for work that waits (files, locks, other
/// programs); many computations at once are better off with few threads.
///
/// [`Handle::block_on`]: crate::runtime::Handle::block_on
///
/// # Panics
///
/// If there is no runtime on this thread; or if the system refuses a thread and no
/// thread for blocking work lives that the closure could wait for.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// let sum = task::spawn_blocking(|| (1..=100).sum::<u32>()).await.unwrap();
/// assert_eq!(sum, 5050);
/// # });
/// ```
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let spawned_at = Location::caller();
    if is_large::<F>() {
        let f = Box::new(f);
        return spawn_sized(f, spawned_at);
    }
    spawn_sized(f, spawned_at)
}

#[track_caller]
fn spawn_sized<F, R>(f: F, spawned_at: &'static Location<'static>) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    // Dropping the closure, or naming a thread, may leave the runtime's context and end
    // the runtime, so nothing of it is borrowed where that can happen.
    let label = Label::with(spawned_at, Blocks(()));
    let (job, label) = trace::trace(Job::new(f), label, trace::Kind::Blocking);
    match context::with_current(|inner| inner.blocking.spawn(&inner.pool, job, label)) {
        Ok(Ok(spawned)) => spawned.settle(),
        Ok(Err(refused)) => refused.end(),
        Err(error) => panic!("{error}"),
    }
}

/// Runs the provided blocking function on the current thread without blocking the
/// executor.
///
/// On a worker of a multi-thread runtime the worker's queue goes to another thread
/// first, so that the other tasks go on. When the function has returned the task
/// continues on this thread, as a worker if nobody needed the queue meanwhile, and else
/// without it until its next `.await` that waits. Code of the same task that runs
/// concurrently (`join!`) is blocked all the same.
///
/// Inside, [`Handle::block_on`](crate::runtime::Handle::block_on) may be called, and no
/// budget applies. Elsewhere, in `block_on` of a multi-thread runtime, on a thread of
/// [`spawn_blocking`], and outside of any runtime, the function is just called. If the
/// system refuses a thread it is called as well, and the tasks in the worker's queue
/// wait for another worker to steal them.
///
/// # Panics
///
/// On a current-thread runtime, and inside a `LocalSet`: there is no other thread that
/// could go on. Use [`spawn_blocking`] there.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Handle, task};
///
/// # blitz_io::run(async {
/// let task = blitz_io::spawn(async {
///     task::block_in_place(|| Handle::current().block_on(async { 7 }))
/// });
/// assert_eq!(task.await.unwrap(), 7);
/// # });
/// ```
#[track_caller]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    match handoff::in_place() {
        InPlace::Free => f(),
        InPlace::Marked => {
            let _blocked = Blocked::new();
            f()
        }
        InPlace::Refused => panic!(
            "can call blocking only when running on the multi-threaded runtime: use \
             `spawn_blocking` here"
        ),
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the task on this thread, which sleeps meanwhile: what `.await` is in
    /// asynchronous code, for code that is not.
    ///
    /// On a current-thread runtime somebody else must be inside
    /// [`Runtime::block_on`](crate::runtime::Runtime::block_on), or its tasks do not run.
    ///
    /// # Errors
    ///
    /// If the task panicked, or was cancelled: as awaiting it.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context: await the handle there.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let task = rt.spawn(async { 6 * 7 });
    /// assert_eq!(task.blocking_join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn blocking_join(self) -> Result<T, JoinError> {
        let Some(_blocking) = NoBlocking::enter(Blocking::InPlace) else {
            panic!(
                "Cannot block the current thread from within a runtime: it is being used to \
                 drive asynchronous tasks; `.await` the handle instead, or wait for it inside \
                 `spawn_blocking`"
            );
        };
        drive::wait_for(None, self)
    }
}

/// Runs the closure as [`spawn_blocking`] does, once less such work waits for a thread
/// than [`max_blocking_queue`](crate::runtime::Builder::max_blocking_queue) allows.
///
/// It has its place in the queue until a thread takes it. So those who produce work wait
/// while the threads do not keep up, and the queue does not grow without an end. Plain
/// `spawn_blocking` is outside of the bound.
///
/// # Errors
///
/// [`Rejected`], with the closure, if the runtime shuts down before there is a place.
///
/// # Panics
///
/// If there is no runtime on this thread; and as [`spawn_blocking`].
///
/// # Cancel safety
///
/// Dropping it before it is ready drops the closure without having spawned it.
///
/// # Examples
///
/// ```
/// use blitz_io::{runtime::Builder, task};
///
/// let rt = Builder::new_multi_thread().max_blocking_threads(2).max_blocking_queue(4).build()?;
/// rt.block_on(async {
///     let mut sum = 0;
///     for n in 0..100 {
///         let work = task::spawn_blocking_bounded(move || n).await.unwrap();
///         sum += work.await.unwrap();
///     }
///     assert_eq!(sum, 4950);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn spawn_blocking_bounded<F, R>(
    f: F,
) -> impl Future<Output = Result<JoinHandle<R>, Rejected<F>>> + Send
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Handle::current().spawn_blocking_bounded(f)
}

/// Runs the closure as [`spawn_blocking_bounded`] does if there is a place in the queue
/// now.
///
/// # Errors
///
/// [`Rejected`], with the closure, if there is no place or the runtime is shutting down.
///
/// # Panics
///
/// If there is no runtime on this thread; and as [`spawn_blocking`].
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let work = blitz_io::task::try_spawn_blocking_bounded(|| 5).unwrap();
/// assert_eq!(work.await.unwrap(), 5);
/// # });
/// ```
#[track_caller]
pub fn try_spawn_blocking_bounded<F, R>(f: F) -> Result<JoinHandle<R>, Rejected<F>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Handle::current().try_spawn_blocking_bounded(f)
}
