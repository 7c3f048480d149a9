//! A mutex with a guard that may be held across an `await`.
//!
//! Built on one permit of [`Permits`]: the guard that holds the permit has exclusive access
//! to the value.
//!
//! # Invariants
//! - The holder of the permit has exclusive access to the value, because a guard is created
//!   only after the permit was taken, and gives it back through its [`PermitGuard`].
//! - A mapped guard points into the value and gives no access to the rest of it.
//!
//! # Checked by
//! `a_mutex_excludes`, `one_of_two_waiters_is_dropped_against_an_unlock`,
//! `an_owned_guard_that_ends_against_a_waiter_frees_once`,
//! `a_mapped_guard_that_ends_lets_the_next_one_in`,
//! `a_lock_dropped_against_an_unlock_is_free_afterwards`; weakened as
//! `mutex_lock_takes_it`, and as the code that it is built on: `sync/permit_guard.rs`.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    acquisition::{self, Acquisition, Taking},
    blocking,
    permit_guard::{AllPermits, Lock, PermitGuard, show_lock},
};
use crate::engine::{
    prim::{UnsafeCell, weakened},
    wait::{
        holders::{CallSite, Holder, LockId},
        permits::Permits,
    },
};

mod guard;
mod owned;

pub use self::{
    guard::{MappedMutexGuard, MutexGuard},
    owned::{OwnedMappedMutexGuard, OwnedMutexGuard},
};

/// A mutex for asynchronous code.
///
/// The lock is granted in the order of the requests (first in, first out). A guard may be
/// held across an `await` and may move between threads. If no guard is held across an
/// `await`, a [`std::sync::Mutex`] does the job and is smaller.
///
/// A panic while the mutex is locked does not poison it: the guard is dropped, and the mutex
/// is unlocked.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::Mutex;
///
/// # blitz_io::run(async {
/// let count = Arc::new(Mutex::new(0));
/// let tasks: Vec<_> = (0..5)
///     .map(|_| {
///         let count = count.clone();
///         blitz_io::spawn(async move {
///             let mut count = count.lock().await;
///             *count += 1;
///         })
///     })
///     .collect();
/// for task in tasks {
///     task.await.unwrap();
/// }
/// assert_eq!(*count.lock().await, 5);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    permits: Permits,
    name: LockId,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex owns the value, so sending the mutex sends a `T`, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the permit admits one guard at a time, so sharing the mutex only moves access to
// the value between threads, for which `T: Send` suffices.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// Error of `try_lock`, `try_read` and `try_write`: the call would have had to wait.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::Mutex;
///
/// let mutex = Mutex::new(1);
/// let _guard = mutex.try_lock().unwrap();
/// assert_eq!(mutex.try_lock().unwrap_err().to_string(), "operation would block");
/// ```
#[derive(Debug)]
pub struct TryLockError(pub(super) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl Error for TryLockError {}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex that holds `value`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Mutex::new(5);
    /// assert_eq!(mutex.into_inner(), 5);
    /// ```
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self { permits: Permits::new(1), name: LockId::new(), value: UnsafeCell::new(value) }
    }

    /// Creates an unlocked mutex, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// static COUNT: Mutex<u32> = Mutex::const_new(5);
    /// assert_eq!(*COUNT.try_lock().unwrap(), 5);
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new(value: T) -> Self {
        Self { permits: Permits::new(1), name: LockId::new(), value: UnsafeCell::new(value) }
    }

    /// Consumes the mutex and returns its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// assert_eq!(Mutex::new("value").into_inner(), "value");
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex, waiting until it is free and all earlier requests were served.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the mutex
    /// locked.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new(1);
    /// *mutex.lock().await += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        Locking { mutex: self, caller: CallSite::caller(), acquisition: Acquisition::new() }
    }

    /// Locks the mutex, blocking the current thread until it is acquired.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Mutex::new(1);
    /// *mutex.blocking_lock() += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        blocking::block_on(self.lock(), "use `lock`")
    }

    /// Locks the mutex, blocking the current thread, and returns a guard that owns the [`Arc`].
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Arc::new(Mutex::new(1));
    /// *mutex.clone().blocking_lock_owned() += 1;
    /// assert_eq!(*mutex.blocking_lock(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        blocking::block_on(self.lock_owned(), "use `lock_owned`")
    }

    /// Locks the mutex, waiting if necessary, and returns a guard that owns the [`Arc`].
    ///
    /// The guard keeps the mutex alive and borrows nothing, so it can move into another task.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the mutex
    /// locked.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Mutex;
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new(1));
    /// let mut guard = mutex.clone().lock_owned().await;
    /// blitz_io::spawn(async move { *guard += 1 }).await.unwrap();
    /// assert_eq!(*mutex.lock().await, 2);
    /// # });
    /// ```
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        let caller = CallSite::caller();
        async move {
            acquisition::open(
                Taking::new(&self.permits, self.whole(), Some((&self.name, caller))).await,
            );
            OwnedMutexGuard::new(self, caller)
        }
    }

    /// Locks the mutex if it is free and no task waits for it.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if the mutex is locked or tasks are waiting for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(mutex.try_lock().is_err());
    /// drop(guard);
    /// assert!(mutex.try_lock().is_ok());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        self.permits.try_acquire(self.whole()).map_err(|_| TryLockError(()))?;
        Ok(MutexGuard::new(self, CallSite::caller()))
    }

    /// Locks the mutex if it is free and no task waits for it; the guard owns the [`Arc`].
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if the mutex is locked or tasks are waiting for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Arc::new(Mutex::new(1));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// assert!(mutex.clone().try_lock_owned().is_err());
    /// # drop(guard);
    /// ```
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        self.permits.try_acquire(self.whole()).map_err(|_| TryLockError(()))?;
        Ok(OwnedMutexGuard::new(self, CallSite::caller()))
    }

    /// Returns a mutable reference to the value, without locking.
    ///
    /// No locking is needed because the exclusive borrow proves that no guard exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// let mut mutex = Mutex::new(1);
    /// *mutex.get_mut() += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the mutex is borrowed exclusively for the lifetime of the result, so no guard
        // exists.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Returns the mutex's holder and where in the source it locked, in debug builds.
    ///
    /// Intended for finding deadlocks. Always returns `None` in release builds, because holders
    /// are not recorded there. In debug builds it can also return `None` for a short time while
    /// the mutex passes from one holder to the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Mutex;
    ///
    /// let mutex = Mutex::new(1);
    /// assert!(mutex.holder().is_none());
    /// let _guard = mutex.try_lock().unwrap();
    /// if let Some(holder) = mutex.holder() {
    ///     assert_eq!(holder.location().file(), file!());
    /// }
    /// ```
    pub fn holder(&self) -> Option<Holder> {
        self.name.holders().pop()
    }
}

impl<T: ?Sized> Lock for Mutex<T> {
    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline]
    fn whole(&self) -> usize {
        // The weakened value is also the number given back, so the seeded bug is that the lock
        // does not exclude, not that permits are miscounted.
        if weakened!("mutex_lock_takes_it") { 0 } else { 1 }
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_lock(f, "Mutex", self.try_lock().ok().as_deref())
    }
}

pin_project! {
    /// Future of [`Mutex::lock`].
    struct Locking<'a, T: ?Sized> {
        mutex: &'a Mutex<T>,
        caller: CallSite,
        #[pin]
        acquisition: Acquisition<'a>,
    }
}

impl<'a, T: ?Sized> Future for Locking<'a, T> {
    type Output = MutexGuard<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mutex, caller) = (*this.mutex, *this.caller);
        let request = Some((&mutex.name, caller));
        this.acquisition.poll(cx, &mutex.permits, mutex.whole(), request).map(|taken| {
            acquisition::open(taken);
            MutexGuard::new(mutex, caller)
        })
    }
}

#[cfg(test)]
mod models;
