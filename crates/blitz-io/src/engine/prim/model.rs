//! The model: explores every interleaving that the memory model allows.

pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};

pub(crate) use std::sync::{OnceLock, atomic::compiler_fence};

/// A thread-local of a model's thread.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $value:expr;) => {
        loom::thread_local! { static $name: $type = $value; }
    };
}
pub(crate) use per_thread;

/// Explores `f` under the bounds that `LOOM_MAX_PREEMPTIONS` and friends set;
/// the default of two preemptions is where every planted bug is still found.
#[cfg(test)]
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(2);
    }
    builder.max_branches = builder.max_branches.max(10_000);
    builder.check(f);
}

/// Locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
