//! The real thing, with loom's closure API on `UnsafeCell`.

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

/// `std`'s cell with loom's `with` and `with_mut`, so one source serves both.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// The value itself.
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "locks end with it"))]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Hands out a pointer for reading.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Hands out a pointer for writing.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A thread-local that is a constant at first and needs no destructor.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $value:expr;) => {
        std::thread_local! { static $name: $type = const { $value }; }
    };
}
pub(crate) use per_thread;

/// How often a model runs under a sanitizer, which sees a race only if the threads do meet:
/// about one run in ten of the smallest one.
#[cfg(test)]
const ROUNDS: usize = if cfg!(blitz_sanitize) { 50 } else { 1 };

/// Runs a model once, on real threads: every model is also an ordinary test.
#[cfg(test)]
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    (0..ROUNDS).for_each(|_| f());
}

/// As `model`; the difference is the model checker's.
#[cfg(test)]
pub(crate) fn model_deeper(f: impl Fn() + Sync + Send + 'static) {
    model(f);
}

/// Locks, and goes on after a panic elsewhere: no user code runs under our locks.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks if nobody else has it; otherwise as `lock`.
#[cfg_attr(not(feature = "parallel"), allow(dead_code, reason = "thieves do so"))]
pub(crate) fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Locks for reading; otherwise as `lock`. What it guards is a user's, and may be left
/// half changed by a panic of the user's code.
#[inline]
#[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "watched values need it"))]
pub(crate) fn read<T: ?Sized>(value: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    value.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks for writing; as `read`.
#[inline]
#[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "watched values need it"))]
pub(crate) fn write<T: ?Sized>(value: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    value.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
