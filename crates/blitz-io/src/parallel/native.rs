//! Joins for code that passes its worker along, which saves finding the worker at every join.

use crate::engine::fork::{
    call as engine, global,
    join::{CurrentWorker, join_on},
};

pub(super) use crate::engine::fork::call::with_current;

/// The pool worker that runs the current code; see [`call`].
///
/// [`join`](crate::parallel::join) has to look up the worker of its thread at each call. With this
/// type the worker is passed from closure to closure instead, in a register.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel::{Worker, call};
///
/// fn fibonacci(worker: Worker<'_>, n: u32) -> u64 {
///     if n < 2 {
///         return n.into();
///     }
///     let (a, b) = worker.join(|w| fibonacci(w, n - 1), |w| fibonacci(w, n - 2));
///     a + b
/// }
///
/// assert_eq!(call(|worker| fibonacci(worker, 20)), 6765);
/// ```
#[derive(Clone, Copy)]
pub struct Worker<'a>(CurrentWorker<'a>);

impl Worker<'_> {
    /// Runs two closures, potentially in parallel, like [`join`](crate::parallel::join). Rayon's
    /// guarantees hold: both closures run, and if both panic, the panic of the first is resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// let both = blitz_io::parallel::call(|worker| worker.join(|_| 1, |_| 2));
    /// assert_eq!(both, (1, 2));
    /// ```
    #[inline]
    pub fn join<A, B, RA, RB>(self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce(Worker<'_>) -> RA,
        B: FnOnce(Worker<'_>) -> RB + Send,
        RB: Send,
    {
        join_on(
            self.0,
            #[inline(always)]
            |worker: CurrentWorker<'_>| oper_a(Worker(worker)),
            #[inline(always)]
            |worker: CurrentWorker<'_>| oper_b(Worker(worker)),
        )
    }

    /// Returns the number of threads in the pool, not counting a temporary worker (see [`call`]).
    ///
    /// # Examples
    ///
    /// ```
    /// let count = blitz_io::parallel::call(|worker| worker.num_threads());
    /// assert_eq!(count, blitz_io::parallel::current_num_threads());
    /// ```
    pub fn num_threads(self) -> usize {
        self.0.worker().registry().threads()
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("index", &self.0.worker().thread_index()).finish()
    }
}

/// Runs a closure with a [`Worker`] on the calling thread, which becomes a worker of the pool for
/// the duration of the call. So no thread has to be woken, and none has to wait for another.
///
/// A pool has one such temporary worker at a time; the closure of a second one runs on a thread of
/// the pool, as with [`ThreadPool::install`](crate::parallel::ThreadPool::install). If the calling
/// thread belongs to a pool, the closure runs on that pool.
///
/// # Examples
///
/// ```
/// let caller = std::thread::current().id();
/// blitz_io::parallel::call(|_| assert_eq!(std::thread::current().id(), caller));
/// ```
pub fn call<OP, R>(op: OP) -> R
where
    OP: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    global::with_registry(|registry| engine::join_pool(registry, |worker| op(Worker(worker))))
}
