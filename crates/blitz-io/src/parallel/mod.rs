//! Fork-join parallelism for closures, with Rayon's names and semantics.
//!
//! [`join`] runs two closures and returns both results; if another thread of the pool is idle, it
//! runs the second one in parallel. Everything else is built on that: divide the work, join the
//! halves.
//!
//! ```
//! use blitz_io::parallel::join;
//!
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() < 1024 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     let (left, right) = join(|| sum(left), || sum(right));
//!     left + right
//! }
//!
//! let numbers: Vec<u64> = (0..10_000).collect();
//! assert_eq!(sum(&numbers), 49_995_000);
//! ```
//!
//! Threads come from a pool: either the global one, which is started on first use and has one
//! thread for each processor (or as many as `RAYON_NUM_THREADS` specifies), or a [`ThreadPool`]
//! that the program builds. They are not threads of an async runtime. A closure that is joined
//! should compute, not wait, because a thread that waits for something else than a join cannot run
//! jobs of the pool.
//!
//! # From asynchronous code
//!
//! [`run`] is meant for tasks: it gives a closure to the pool and returns a future of its result.
//! Everything in this module may be used inside of the closure.
//!
//! ```
//! # blitz_io::run(async {
//! let (a, b) = blitz_io::parallel::run(|| blitz_io::parallel::join(|| 1, || 2)).await;
//! assert_eq!(a + b, 3);
//! # });
//! ```
//!
//! A task may also call the functions that block ([`join`], [`scope`], [`ThreadPool::install`] and
//! the others). If such a call takes longer than some microseconds, a worker of a multi-thread
//! runtime hands its core to another thread, like [`block_in_place`], so that all other tasks
//! continue to run; the blocked thread itself runs no tasks. As with `block_in_place`, this takes
//! one thread for each task that blocks, without a limit. Where many tasks compute at the same
//! time, let them await [`run`], which needs no extra threads. Concurrent branches of the same task
//! wait, and so do all tasks of a current-thread runtime or of a `LocalSet`: use [`run`] there.
//!
//! A closure that runs on a thread of the pool has no current runtime, except on a thread that
//! brings its own: the temporary worker of [`call`], or a thread that joined the pool through
//! [`ThreadPoolBuilder::use_current_thread`]. If the closure needs a runtime, clone a [`Handle`]
//! for it. It must not wait for a task that waits for the pool, nor drop the runtime of such a
//! task: if all threads of the pool do so, they deadlock.
//!
//! Workers of runtimes and of pools spin for work only while there are enough processors for all
//! workers that are awake, of both kinds together.
//!
//! [`block_in_place`]: crate::task::block_in_place
//! [`Handle`]: crate::runtime::Handle
//!
//! Programs that use Rayon's parallel iterators can run them on this pool by replacing `rayon-core`
//! with `dropin/rayon-core`.

#![forbid(unsafe_code)]

use crate::engine::fork::{broadcast, call, detached, global, scope};

mod builder;
mod configuration;
mod join;
mod native;
mod pool;
mod run;

pub use self::{
    builder::{
        CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadPoolBuildError, ThreadPoolBuilder,
        ThreadSpawn,
    },
    join::{FnContext, join, join_context},
    native::{Worker, call},
    pool::{ThreadPool, Yield},
    run::run,
};
pub use crate::engine::fork::{
    broadcast::BroadcastContext,
    run::Run,
    scope::{Scope, ScopeFifo},
};

#[doc(hidden)]
#[allow(deprecated, reason = "kept for programs that still use them")]
pub use self::configuration::{Configuration, initialize};

/// Runs `op` with a [`Scope`], in which it can spawn jobs that borrow from outside of the scope,
/// and returns when all of them have ended.
///
/// `op` runs on a thread of a pool: the calling thread's pool, or else the global one.
///
/// # Panics
///
/// If `op` or a job panics. The first of the panics is resumed when all jobs have ended.
///
/// # Examples
///
/// ```
/// let mut words = vec!["b", "a"];
/// let mut numbers = vec![2, 1];
/// blitz_io::parallel::scope(|scope| {
///     scope.spawn(|_| words.sort());
///     scope.spawn(|_| numbers.sort());
/// });
/// assert_eq!((words, numbers), (vec!["a", "b"], vec![1, 2]));
/// ```
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    global::with_registry(|registry| {
        call::on_worker(registry, |worker, _| scope::scope(worker, op))
    })
}

/// Runs `op` with a [`ScopeFifo`]: like [`scope`], but jobs start in the order in which a thread
/// spawned them.
///
/// # Examples
///
/// ```
/// let mut text = String::new();
/// blitz_io::parallel::scope_fifo(|scope| scope.spawn_fifo(|_| text.push('x')));
/// assert_eq!(text, "x");
/// ```
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    global::with_registry(|registry| {
        call::on_worker(registry, |worker, _| scope::scope_fifo(worker, op))
    })
}

/// Runs `op` with a [`Scope`] on the calling thread, even if that is not a thread of a pool. The
/// jobs that it spawns run on the pool, as with [`scope`].
///
/// # Examples
///
/// ```
/// let caller = std::thread::current().id();
/// blitz_io::parallel::in_place_scope(|scope| {
///     assert_eq!(std::thread::current().id(), caller);
///     scope.spawn(move |_| assert_ne!(std::thread::current().id(), caller));
/// });
/// ```
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    scope::in_place(global::shared_registry(), op)
}

/// Runs `op` with a [`ScopeFifo`] on the calling thread; combines [`in_place_scope`] and
/// [`scope_fifo`].
///
/// # Examples
///
/// ```
/// let mut result = 0;
/// blitz_io::parallel::in_place_scope_fifo(|scope| scope.spawn_fifo(|_| result = 42));
/// assert_eq!(result, 42);
/// ```
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    scope::in_place_fifo(global::shared_registry(), op)
}

/// Queues a closure to run on the pool and returns without waiting for it.
///
/// On a thread of a pool the closure goes to that pool, otherwise to the global one. A panic is
/// passed to the panic handler of the pool ([`ThreadPoolBuilder::panic_handler`]); without one the
/// process aborts.
///
/// # Examples
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// blitz_io::parallel::spawn(move || sender.send(42).unwrap());
/// assert_eq!(receiver.recv(), Ok(42));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    global::with_registry(|registry| detached::spawn(registry, func));
}

/// Queues a closure like [`spawn`]; closures that one thread of the pool queues with this function
/// start in that order.
///
/// # Examples
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// blitz_io::parallel::spawn_fifo(move || sender.send('f').unwrap());
/// assert_eq!(receiver.recv(), Ok('f'));
/// ```
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    global::with_registry(|registry| detached::spawn_fifo(registry, func));
}

/// Runs a closure once on each thread of the pool and returns the results in the order of the
/// threads' indices.
///
/// # Panics
///
/// If one of the calls panics. The panic is resumed when all calls have ended.
///
/// # Examples
///
/// ```
/// let names = blitz_io::parallel::broadcast(|context| format!("thread {}", context.index()));
/// assert_eq!(names[0], "thread 0");
/// ```
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    global::with_registry(|registry| broadcast::broadcast(registry, &op))
}

/// Queues a closure to run once on each thread of the pool, without waiting for it. Panics are
/// handled like those of [`spawn`].
///
/// # Examples
///
/// ```
/// let (sender, receiver) = std::sync::mpsc::channel();
/// blitz_io::parallel::spawn_broadcast(move |context| sender.send(context.index()).unwrap());
/// assert_eq!(receiver.into_iter().count(), blitz_io::parallel::current_num_threads());
/// ```
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    global::with_registry(|registry| broadcast::spawn_broadcast(registry, op));
}

/// Runs one job of the pool, if there is one; returns `None` on a thread that belongs to no pool.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{Yield, yield_now};
///
/// assert_eq!(yield_now(), None);
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// assert_eq!(pool.install(yield_now), Some(Yield::Idle));
/// ```
pub fn yield_now() -> Option<Yield> {
    native::with_current(|worker| Yield::of(worker.run_one()))
}

/// Runs one job from the calling thread's own queue, if there is one; returns `None` on a thread
/// that belongs to no pool.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{Yield, spawn, yield_local};
///
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// pool.install(|| {
///     spawn(|| {});
///     assert_eq!(yield_local(), Some(Yield::Executed));
///     assert_eq!(yield_local(), Some(Yield::Idle));
/// });
/// ```
pub fn yield_local() -> Option<Yield> {
    native::with_current(|worker| Yield::of(worker.run_one_local()))
}

/// Returns the number of threads in the calling thread's pool, or else in the global one.
///
/// # Examples
///
/// ```
/// assert!(blitz_io::parallel::current_num_threads() >= 1);
/// ```
pub fn current_num_threads() -> usize {
    global::with_registry(|registry| registry.threads())
}

/// Returns the index of the calling thread in its pool, or `None` if it belongs to no pool.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{ThreadPoolBuilder, current_thread_index};
///
/// assert_eq!(current_thread_index(), None);
/// let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// assert_eq!(pool.install(current_thread_index), Some(0));
/// ```
pub fn current_thread_index() -> Option<usize> {
    native::with_current(|worker| worker.thread_index()).flatten()
}

/// Returns `true` if jobs wait in the calling thread's own queue, or `None` if it belongs to no
/// pool.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{ThreadPoolBuilder, current_thread_has_pending_tasks, spawn};
///
/// let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// pool.install(|| {
///     assert_eq!(current_thread_has_pending_tasks(), Some(false));
///     spawn(|| {});
///     assert_eq!(current_thread_has_pending_tasks(), Some(true));
/// });
/// ```
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    native::with_current(|worker| worker.has_jobs())
}

/// Returns the maximum number of threads that a pool can have.
///
/// # Examples
///
/// ```
/// assert!(blitz_io::parallel::max_num_threads() >= 255);
/// ```
pub fn max_num_threads() -> usize {
    crate::engine::fork::registry::MAX_THREADS
}
