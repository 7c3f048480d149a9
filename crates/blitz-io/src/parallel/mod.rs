//! Fork-join: closures that may run in parallel, with Rayon's names and semantics.
//!
//! [`join`] runs two closures and returns both results; if another thread is free it runs
//! the second one meanwhile. Everything else is built on that: divide the work, join the
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
//! Threads come from a pool: the global one, which is started on first use and has a thread
//! for each processor (or as many as `RAYON_NUM_THREADS` says), or a [`ThreadPool`] of one's
//! own. They are other threads than those of a runtime. A closure that is joined should
//! compute, not wait: a thread that waits for something else than a join is lost to the
//! pool.
//!
//! # From asynchronous code
//!
//! [`run`] is for tasks: it gives a closure to the pool and is awaited. Inside of the closure
//! everything of this module may be used.
//!
//! ```
//! # blitz_io::run(async {
//! let (a, b) = blitz_io::parallel::run(|| blitz_io::parallel::join(|| 1, || 2)).await;
//! assert_eq!(a + b, 3);
//! # });
//! ```
//!
//! What waits ([`join`], [`scope`], [`ThreadPool::install`] and the others) may be called by a task, too. If it
//! takes longer than some microseconds, a worker of a multi-thread runtime gives its core to
//! another thread, as [`block_in_place`] does, so that all other tasks go on; no tasks
//! are run by the thread that waits. As there, that is a thread for each task that waits, without
//! a limit: where many tasks compute at a time, let them await [`run`], which needs none. What the same task does concurrently waits, as do all tasks
//! of a current-thread runtime or of a `LocalSet`: use [`run`] there. A closure that runs on
//! a thread of the pool finds no runtime there (except where that thread has one of its own: a guest of
//! [`call`], or one that was lent to the pool): clone a [`Handle`] for it, if it needs one. It must not wait for a
//! task that waits for the pool, nor drop the runtime of such a task: if all threads of the pool do, nothing ends that.
//!
//! Workers of the runtime and of pools spin for work only while there are processors for all
//! that are awake, of both kinds together.
//!
//! [`block_in_place`]: crate::task::block_in_place
//! [`Handle`]: crate::runtime::Handle
//!
//! Programs that use Rayon's parallel iterators get this pool by putting `dropin/rayon-core`
//! in the place of `rayon-core`.

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
#[allow(deprecated, reason = "they are there for those who still use them")]
pub use self::configuration::{Configuration, initialize};

/// Runs `op` with a [`Scope`], into which jobs can be spawned that borrow from outside of
/// it; returns when all of them have ended.
///
/// `op` runs on a thread of the pool: of this thread's, or of the global one.
///
/// # Panics
///
/// If `op` or a job panics: with the first of the panics, when all jobs have ended.
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

/// As [`scope`], with jobs that start in the order in which a thread spawned them.
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

/// As [`scope`], but `op` runs on the calling thread, whatever that is. Its jobs run on
/// the pool.
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

/// As [`in_place_scope`], in the order of [`scope_fifo`].
///
/// # Examples
///
/// ```
/// let mut answer = 0;
/// blitz_io::parallel::in_place_scope_fifo(|scope| scope.spawn_fifo(|_| answer = 42));
/// assert_eq!(answer, 42);
/// ```
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    scope::in_place_fifo(global::shared_registry(), op)
}

/// Runs a closure some time on the pool; nobody waits for it.
///
/// From a thread of a pool it goes to that pool, else to the global one. A panic goes to the
/// handler of the pool ([`ThreadPoolBuilder::panic_handler`]); without one the process
/// aborts.
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

/// As [`spawn`]; closures that one thread of the pool has spawned so start in that order.
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

/// Runs a closure once on each thread of the pool; returns what they returned, by the
/// threads' indices.
///
/// # Panics
///
/// If one of them panics, when all have ended.
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

/// As [`broadcast`], but nobody waits. Panics go where those of [`spawn`] go.
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

/// Runs one job of the pool, if there is one. `None` on a thread that is not a pool's.
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

/// As [`yield_now`], but only a job that waits on this thread.
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

/// How many threads this thread's pool has, or the global one.
///
/// # Examples
///
/// ```
/// assert!(blitz_io::parallel::current_num_threads() >= 1);
/// ```
pub fn current_num_threads() -> usize {
    global::with_registry(|registry| registry.threads())
}

/// The index of this thread in its pool; `None` if it belongs to none.
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

/// Whether jobs wait on this thread; `None` if it belongs to no pool.
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

/// The most threads that a pool can have.
///
/// # Examples
///
/// ```
/// assert!(blitz_io::parallel::max_num_threads() >= 255);
/// ```
pub fn max_num_threads() -> usize {
    crate::engine::fork::registry::MAX_THREADS
}
