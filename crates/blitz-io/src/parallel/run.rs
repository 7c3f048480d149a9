//! From a task to the pool, and back.

use super::Run;
use crate::engine::fork::{global, run as engine};

/// Gives a closure to the pool at once; the future resolves to what it returns.
///
/// It is how a task computes: the worker goes on with other tasks meanwhile, and there are
/// no more threads that compute than the pool has, however many tasks want to. Inside of the
/// closure everything of this module may be used, and so may Rayon's parallel iterators on
/// `dropin/rayon-core`. The closure begins when a thread of the pool is free, behind those that were
/// given before.
///
/// The pool is that of this thread, or the global one. No runtime is needed: any executor may
/// poll the future. There is one allocation, which holds closure and result. A thread of that very
/// pool that polls the future runs the closure itself, if no other one has taken it: it may be
/// the last that is free.
///
/// # Cancellation
///
/// If the future is dropped before the closure has begun, the closure is dropped then and there
/// and never runs. A closure that has begun runs to its end, and what it returns is
/// dropped on the pool's thread; a panic of its own has been reported by the panic hook and ends there.
///
/// # Panics
///
/// The future panics with what the closure threw. It panics if it is polled after
/// completion.
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
