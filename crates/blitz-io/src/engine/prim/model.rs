//! Loom's types: a model explores every interleaving that the memory model allows.

pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};

pub(crate) use std::sync::{OnceLock, atomic::compiler_fence};

/// Declares a thread-local of a model's thread.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $value:expr;) => {
        loom::thread_local! { static $name: $type = $value; }
    };
}
pub(crate) use per_thread;

/// Explores `f` with two preemptions, or as many as `LOOM_MAX_PREEMPTIONS` sets.
#[cfg(test)]
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    explore(2, f);
}

/// Explores `f` with three preemptions: for small models that need three to show some fault.
#[cfg(test)]
pub(crate) fn model_deeper(f: impl Fn() + Sync + Send + 'static) {
    explore(3, f);
}

#[cfg(test)]
fn explore(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(preemptions);
    }
    builder.max_branches = builder.max_branches.max(10_000);
    builder.check(f);
}

/// Locks the mutex.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Locks the mutex if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}

/// Locks for shared reading.
pub(crate) fn read<T>(value: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    value.read().unwrap()
}

/// Locks for exclusive writing.
pub(crate) fn write<T>(value: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    value.write().unwrap()
}
