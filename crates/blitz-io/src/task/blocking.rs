//! Functions for running code that blocks its thread, called from code that must not block.

use std::panic::Location;

use super::{JoinError, JoinHandle, Rejected, is_large};
use crate::{
    engine::{
        blocking::BlockingJob,
        pool::drive,
        preempt::handoff::Blocked,
        work::{
            task::{cell::Label, extra::BlockingMark, trace},
            thread_context::blocking::{self, BlockingPolicy, NoBlocking},
        },
    },
    runtime::{Handle, context},
};

/// Runs a closure on the blocking pool: a set of threads on which blocking is allowed.
///
/// Threads of the pool are started on demand, up to
/// [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads), and exit after they
/// have been idle for a while. When the limit is reached the closure waits in a queue; closures
/// spawned by one worker stay in the order in which that worker spawned them.
///
/// [`JoinHandle::abort`] has an effect only until the closure has started. Afterwards nothing can
/// stop it, and dropping the runtime waits for it. To wait for a limited time only, use
/// [`Runtime::shutdown_timeout`](crate::runtime::Runtime::shutdown_timeout).
///
/// Inside the closure this runtime is the current one, [`Handle::block_on`] may be called, and no
/// budget applies. The pool is meant for work that waits (for files, locks or other programs); many
/// concurrent computations are better run on few threads.
///
/// [`Handle::block_on`]: crate::runtime::Handle::block_on
///
/// # Panics
///
/// If there is no runtime on this thread, or if the operating system refuses to start a thread and
/// the blocking pool has no running thread that could take the closure later.
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
    // Dropping the closure, or calling the user's function that names threads, may leave the
    // runtime's context and end the runtime, so nothing of the runtime may be borrowed where that
    // can happen.
    let label = Label::with(spawned_at, BlockingMark(()));
    let (job, label) = trace::trace(BlockingJob::new(f), label, trace::TaskKind::Blocking);
    match context::with_current(|inner| inner.blocking.spawn(&inner.pool, job, label)) {
        Ok(spawned) => spawned.settle(),
        Err(error) => panic!("{error}"),
    }
}

/// Queues a closure like [`spawn_blocking`], or returns `None` and drops the closure if the runtime
/// is shutting down or no thread can be started.
#[cfg(any(feature = "fs", feature = "io-std"))]
#[track_caller]
pub(crate) fn try_spawn_blocking<F, R>(f: F) -> Option<JoinHandle<R>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let label = Label::with(Location::caller(), BlockingMark(()));
    let (job, label) = trace::trace(BlockingJob::new(f), label, trace::TaskKind::Blocking);
    match context::with_current(|inner| inner.blocking.spawn(&inner.pool, job, label)) {
        Ok(spawned) => {
            let (handle, left) = spawned.part();
            left.try_settle().then_some(handle)
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a blocking function on the current thread after handing the worker's tasks to another
/// thread.
///
/// On a worker of a multi-thread runtime, the worker's run queue moves to another thread first, so
/// its other tasks continue to run. After the function returns, the task continues on this thread:
/// as a worker if no other thread needed the queue in the meantime, and otherwise without a queue
/// until its next `.await` that has to wait. Other code of the same task that runs concurrently
/// (`join!`) is blocked nevertheless.
///
/// Inside the function, [`Handle::block_on`](crate::runtime::Handle::block_on) may be called, and
/// no budget applies. In `block_on` of a multi-thread runtime, on a thread of [`spawn_blocking`],
/// and outside of any runtime, the function is simply called. If the operating system refuses to
/// start a thread, or as many threads as permitted replace workers already
/// ([`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads)), the function is called
/// as well, and the tasks in the worker's queue wait for another worker to steal them.
///
/// # Panics
///
/// On a current-thread runtime and inside a `LocalSet`, because there is no other thread on which
/// their tasks could continue. Use [`spawn_blocking`] there.
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
    match blocking::policy() {
        BlockingPolicy::Allowed => f(),
        BlockingPolicy::InPlaceOnly => {
            let _blocked = Blocked::new();
            f()
        }
        BlockingPolicy::Forbidden => panic!(
            "can call blocking only when running on the multi-threaded runtime: use \
             `spawn_blocking` here"
        ),
    }
}

impl<T> JoinHandle<T> {
    /// Blocks the current thread until the task ends and returns its output: the counterpart of
    /// `.await` for synchronous code.
    ///
    /// On a current-thread runtime another thread must be inside
    /// [`Runtime::block_on`](crate::runtime::Runtime::block_on), because otherwise the runtime's
    /// tasks do not run.
    ///
    /// # Errors
    ///
    /// If the task panicked or was cancelled, as when the handle is awaited.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context; `.await` the handle there.
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
        let Some(_blocking) = NoBlocking::enter(BlockingPolicy::InPlaceOnly) else {
            panic!(
                "Cannot block the current thread from within a runtime. This happens because a \
                 function attempted to block the current thread while the thread is being used \
                 to drive asynchronous tasks. `.await` the handle instead, or wait for it inside \
                 `spawn_blocking`."
            );
        };
        drive::wait_for(None, self)
    }
}

/// Runs a closure like [`spawn_blocking`], after waiting until the queue of bounded blocking work
/// is shorter than [`max_blocking_queue`](crate::runtime::Builder::max_blocking_queue).
///
/// The closure occupies a slot in the queue until a thread takes it. So producers wait while the
/// threads do not keep up, and the queue does not grow without limit. Closures of plain
/// `spawn_blocking` are not counted.
///
/// # Errors
///
/// [`Rejected`], with the closure, if the runtime shuts down before a slot becomes free.
///
/// # Panics
///
/// If there is no runtime on this thread, and in the cases in which [`spawn_blocking`] panics.
///
/// # Cancel safety
///
/// Dropping the future before it is ready drops the closure without spawning it.
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

/// Runs a closure like [`spawn_blocking_bounded`] if the queue has a free slot now.
///
/// # Errors
///
/// [`Rejected`], with the closure, if there is no free slot or the runtime is shutting down.
///
/// # Panics
///
/// If there is no runtime on this thread, and in the cases in which [`spawn_blocking`] panics.
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
