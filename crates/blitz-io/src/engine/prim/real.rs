//! The types of `std`, with loom's closure API on `UnsafeCell`.

pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{
            AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
            fence,
        },
    },
    thread,
};

#[cfg(not(target_os = "linux"))]
pub(crate) use std::sync::Condvar;

/// An `UnsafeCell` with loom's `with` and `with_mut`, so that one source serves normal builds and
/// models.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Returns the value.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "locks end with it"))]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer for reading.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Declares a thread-local with a constant initial value and no destructor.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $value:expr;) => {
        std::thread_local! { static $name: $type = const { $value }; }
    };
}
pub(crate) use per_thread;

/// How often a model runs: once, but more often under a sanitizer, which sees a race only if the
/// threads do meet. That happens in about one run in ten of the smallest model.
#[cfg(test)]
const ROUNDS: usize = if cfg!(blitz_sanitize) { 50 } else { 1 };

/// Runs a model on real threads, [`ROUNDS`] times: every model is also an ordinary test.
#[cfg(test)]
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    (0..ROUNDS).for_each(|_| f());
}

/// Runs a model on real threads, as [`model`] does. Only loom explores it deeper.
#[cfg(test)]
pub(crate) fn model_deeper(f: impl Fn() + Sync + Send + 'static) {
    model(f);
}

/// Locks the mutex, ignoring poison, because no user code runs under the engine's locks.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks the mutex if it is free, ignoring poison as [`lock`] does.
#[cfg_attr(not(feature = "parallel"), allow(dead_code, reason = "fork-join's thieves use it"))]
pub(crate) fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Locks for shared reading, ignoring poison. The guarded value belongs to the user, and a panic
/// of the user's code may leave it half changed.
#[inline]
#[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "watched values need it"))]
pub(crate) fn read<T: ?Sized>(value: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    value.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks for exclusive writing, ignoring poison as [`read`] does.
#[inline]
#[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "watched values need it"))]
pub(crate) fn write<T: ?Sized>(value: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    value.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
