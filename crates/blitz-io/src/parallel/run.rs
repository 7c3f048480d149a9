//! Running a closure on the pool from a task that awaits the result.

use super::Run;
use crate::engine::fork::{global, run as engine};

/// Gives a closure to the pool at once and returns a future of its result.
///
/// This is how a task should compute: its worker continues with other tasks meanwhile, and the
/// number of threads that compute never exceeds that of the pool, however many tasks there are.
/// Everything in this module may be used inside of the closure, and so may Rayon's parallel
/// iterators on `dropin/rayon-core`. The closure starts when a thread of the pool is free, after
/// the closures that were given to the pool before.
///
/// The pool is that of the calling thread, or else the global one. No runtime is needed: any
/// executor may poll the future. There is one allocation, which holds the closure and its result.
/// If a thread of the same pool polls the future, it runs the closure itself unless another thread
/// has taken it, because it may be the last thread that is free.
///
/// # Cancellation
///
/// If the future is dropped before the closure has started, the closure is dropped immediately and
/// never runs. A closure that has started runs to its end, and its result is dropped on the pool's
/// thread. If it panics then, the panic hook has reported the panic, and nothing else happens.
///
/// # Panics
///
/// The future resumes a panic of the closure. It also panics if it is polled after completion.
///
/// # Examples
///
/// ```
/// use blitz_io::parallel;
///
/// # blitz_io::run(async {
/// let mut numbers = vec![3, 1, 2];
/// let sorted = parallel::run(move || {
///     numbers.sort();
///     numbers
/// })
/// .await;
/// assert_eq!(sorted, [1, 2, 3]);
/// # });
/// ```
pub fn run<OP, R>(op: OP) -> Run<R>
where
    OP: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    global::with_registry(|registry| engine::start(registry, op))
}
