//! A read-write lock with guards that may be held across an `await`.
//!
//! Built on [`Permits`]: a reader takes one permit, a writer takes all of them, and there
//! are as many as readers are allowed at once. The lock has no wait queue besides that of
//! its permits, which is first in, first out, so a stream of readers cannot starve a writer.
//!
//! # Invariants
//! - The holder of one permit may read the value; the holder of all permits has exclusive
//!   access to it.
//! - A writer that downgrades to a reader gives back all permits but one in one step, so no
//!   other writer gets the lock in between.
//!
//! # Checked by
//! `a_writer_excludes_readers_and_writers`,
//! `a_downgrade_lets_readers_in_and_keeps_a_writer_out`,
//! `a_downgrade_against_a_reader_lets_it_in`,
//! `a_writer_that_waits_is_not_overtaken_by_a_reader`,
//! `no_more_readers_than_allowed_are_inside`,
//! `a_writer_dropped_against_a_reader_passes_its_permits_on`; weakened as
//! `rwlock_writer_takes_all`, `rwlock_reader_takes_one`, `rwlock_downgrade_keeps_one`,
//! `rwlock_downgrade_gives_back`.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    acquisition::{self, Acquisition, Taking},
    blocking,
    mutex::TryLockError,
    permit_guard::{AllPermits, Lock, OneShare, PermitGuard, PermitSource, SomePermits, show_lock},
};
use crate::engine::{
    prim::{UnsafeCell, weakened},
    wait::{
        holders::{CallSite, Holder, LockId},
        permits::Permits,
    },
};

mod read;
mod write;
mod owned_read;
mod owned_write;

pub use self::{
    owned_read::OwnedRwLockReadGuard,
    owned_write::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard},
    read::RwLockReadGuard,
    write::{RwLockMappedWriteGuard, RwLockWriteGuard},
};

/// The default and largest number of readers, which is Tokio's: as many as [`Permits`] can
/// count on a 32-bit machine.
const MAX_READERS: u32 = u32::MAX >> 3;

/// A read-write lock for asynchronous code: many readers, or one writer.
///
/// The lock is granted in the order of the requests (first in, first out), so a read
/// requested while a writer waits is granted after that writer. Therefore a task that holds a
/// read guard must not request another: if a writer began to wait in between, the task and
/// the writer wait for each other for ever.
///
/// A panic while the lock is held does not poison it.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::RwLock;
///
/// # blitz_io::run(async {
/// let lock = RwLock::new(5);
/// {
///     let (one, two) = (lock.read().await, lock.read().await);
///     assert_eq!((*one, *two), (5, 5));
/// }
/// *lock.write().await += 1;
/// assert_eq!(*lock.read().await, 6);
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    permits: Permits,
    max_readers: u32,
    name: LockId,
    value: UnsafeCell<T>,
}

// SAFETY: the lock owns the value, so sending the lock sends a `T`, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers on several threads share the value (`T: Sync`), and a writer has exclusive
// access to it from another thread (`T: Send`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// Creates an unlocked lock for up to `u32::MAX >> 3` concurrent readers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// assert_eq!(*RwLock::new(5).try_read().unwrap(), 5);
    /// ```
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::with_max_readers(value, MAX_READERS)
    }

    /// Creates an unlocked lock for up to `max_readers` concurrent readers.
    ///
    /// # Panics
    ///
    /// Panics if `max_readers` is 0 or more than `u32::MAX >> 3`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::with_max_readers(5, 2);
    /// let _two = (lock.try_read().unwrap(), lock.try_read().unwrap());
    /// assert!(lock.try_read().is_err());
    /// ```
    #[track_caller]
    pub fn with_max_readers(value: T, max_readers: u32) -> Self {
        assert_possible(max_readers);
        Self {
            permits: Permits::new(max_readers as usize),
            max_readers,
            name: LockId::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Creates an unlocked lock like [`new`](Self::new), for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// static LOCK: RwLock<u32> = RwLock::const_new(5);
    /// assert_eq!(*LOCK.try_read().unwrap(), 5);
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new(value: T) -> Self {
        Self::const_with_max_readers(value, MAX_READERS)
    }

    /// Creates an unlocked lock for up to `max_readers` concurrent readers, for use in constants
    /// and statics.
    ///
    /// # Panics
    ///
    /// Panics if `max_readers` is 0 or more than `u32::MAX >> 3`. In a constant this is a
    /// compile error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// static LOCK: RwLock<u32> = RwLock::const_with_max_readers(5, 1);
    /// let _reader = LOCK.try_read().unwrap();
    /// assert!(LOCK.try_read().is_err());
    /// ```
    #[cfg(not(blitz_loom))]
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_readers: u32) -> Self {
        assert_possible(max_readers);
        Self {
            permits: Permits::new(max_readers as usize),
            max_readers,
            name: LockId::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Consumes the lock and returns its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// assert_eq!(RwLock::new("value").into_inner(), "value");
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// Panics unless `max_readers` is a number of readers that the lock supports.
#[track_caller]
const fn assert_possible(max_readers: u32) {
    assert!(
        max_readers != 0,
        "a RwLock may not be created with 0 readers: allow one at least, or use a `Mutex`"
    );
    assert!(
        max_readers <= MAX_READERS,
        "a RwLock may not be created with more than 536870911 readers: allow fewer"
    );
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading, waiting until all earlier requests were served and no writer is active.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the lock taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(1);
    /// let reader = lock.read().await;
    /// assert_eq!(*reader, 1);
    /// assert!(lock.try_write().is_err());
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> {
        Reading { lock: self, caller: CallSite::caller(), acquisition: Acquisition::new() }
    }

    /// Locks for reading, blocking the current thread until the lock is acquired.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// assert_eq!(*lock.blocking_read(), 1);
    /// ```
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        blocking::block_on(self.read(), "use `read`")
    }

    /// Locks for reading, waiting if necessary, and returns a guard that owns the [`Arc`].
    ///
    /// The guard keeps the lock alive and borrows nothing, so it can move into another task.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the lock taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let reader = lock.clone().read_owned().await;
    /// assert_eq!(blitz_io::spawn(async move { *reader }).await.unwrap(), 1);
    /// # });
    /// ```
    #[track_caller]
    pub fn read_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockReadGuard<T>> {
        let caller = CallSite::caller();
        async move {
            let part = self.part();
            acquisition::open(Taking::new(&self.permits, part, Some((&self.name, caller))).await);
            OwnedRwLockReadGuard::new(self, caller)
        }
    }

    /// Locks for reading if no writer holds the lock and no task waits for it.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if a writer holds the lock, if tasks wait for it, or if the
    /// maximum number of readers hold it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let writer = lock.try_write().unwrap();
    /// assert!(lock.try_read().is_err());
    /// drop(writer);
    /// assert_eq!(*lock.try_read().unwrap(), 1);
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.permits.try_acquire(self.part()).map_err(|_| TryLockError(()))?;
        Ok(RwLockReadGuard::new(self, CallSite::caller()))
    }

    /// Locks for reading if no writer holds the lock and no task waits for it; the guard owns the
    /// [`Arc`].
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if a writer holds the lock, if tasks wait for it, or if the
    /// maximum number of readers hold it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(1));
    /// assert_eq!(*lock.try_read_owned().unwrap(), 1);
    /// ```
    #[track_caller]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.permits.try_acquire(self.part()).map_err(|_| TryLockError(()))?;
        Ok(OwnedRwLockReadGuard::new(self, CallSite::caller()))
    }

    /// Locks for writing, waiting until the lock is free and all earlier requests were served.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the lock taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(1);
    /// *lock.write().await += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> {
        Writing { lock: self, caller: CallSite::caller(), acquisition: Acquisition::new() }
    }

    /// Locks for writing, blocking the current thread until the lock is acquired.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// *lock.blocking_write() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        blocking::block_on(self.write(), "use `write`")
    }

    /// Locks for writing, waiting if necessary, and returns a guard that owns the [`Arc`].
    ///
    /// The guard keeps the lock alive and borrows nothing, so it can move into another task.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and never leaves the lock taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let mut writer = lock.clone().write_owned().await;
    /// blitz_io::spawn(async move { *writer += 1 }).await.unwrap();
    /// assert_eq!(*lock.read().await, 2);
    /// # });
    /// ```
    #[track_caller]
    pub fn write_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockWriteGuard<T>> {
        let caller = CallSite::caller();
        async move {
            let whole = self.whole();
            acquisition::open(Taking::new(&self.permits, whole, Some((&self.name, caller))).await);
            OwnedRwLockWriteGuard::new(self, caller)
        }
    }

    /// Locks for writing if the lock is free and no task waits for it.
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if the lock is held or tasks are waiting for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let reader = lock.try_read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// drop(reader);
    /// assert!(lock.try_write().is_ok());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.permits.try_acquire(self.whole()).map_err(|_| TryLockError(()))?;
        Ok(RwLockWriteGuard::new(self, CallSite::caller()))
    }

    /// Locks for writing if the lock is free and no task waits for it; the guard owns the [`Arc`].
    ///
    /// # Errors
    ///
    /// Returns [`TryLockError`] if the lock is held or tasks are waiting for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(1));
    /// *lock.clone().try_write_owned().unwrap() += 1;
    /// assert_eq!(*lock.try_read().unwrap(), 2);
    /// ```
    #[track_caller]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.permits.try_acquire(self.whole()).map_err(|_| TryLockError(()))?;
        Ok(OwnedRwLockWriteGuard::new(self, CallSite::caller()))
    }

    /// Returns a mutable reference to the value, without locking.
    ///
    /// No locking is needed because the exclusive borrow proves that no guard exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let mut lock = RwLock::new(1);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the lock is borrowed exclusively for the lifetime of the result, so no guard
        // exists.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Returns the lock's holders and where in the source each of them locked, in debug builds.
    ///
    /// Intended for finding deadlocks. Always returns an empty vector in release builds, because
    /// holders are not recorded there.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let _readers = (lock.try_read().unwrap(), lock.try_read().unwrap());
    /// // Two in a debug build, none in a release build.
    /// assert!(matches!(lock.holders().len(), 0 | 2));
    /// ```
    pub fn holders(&self) -> Vec<Holder> {
        self.name.holders()
    }

    /// Gives back all permits but one, which turns a writer into a reader. The caller must hold
    /// the whole lock.
    fn let_readers_in(&self) {
        let kept = if weakened!("rwlock_downgrade_keeps_one") { 0 } else { self.part() };
        if !weakened!("rwlock_downgrade_gives_back") {
            self.permits.release(self.whole() - kept);
        }
    }
}

impl<T: ?Sized> Lock for RwLock<T> {
    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline]
    fn whole(&self) -> usize {
        // The weakened value is also the number given back, so the seeded bug is that the lock
        // does not exclude, not that permits are miscounted.
        if weakened!("rwlock_writer_takes_all") { 1 } else { self.max_readers as usize }
    }

    #[inline]
    fn part(&self) -> usize {
        a_readers_part()
    }
}

#[inline]
fn a_readers_part() -> usize {
    // The weakened value is also the number kept and given back, so the seeded bug is that
    // the lock does not exclude, not that permits are miscounted.
    if weakened!("rwlock_reader_takes_one") { 0 } else { 1 }
}

/// A reader's share of a lock, without the type of the lock's value.
struct Shared<'a>(&'a Permits);

impl PermitSource for Shared<'_> {
    #[inline]
    fn give_back(&self) {
        self.0.release(a_readers_part());
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_lock(f, "RwLock", self.try_read().ok().as_deref())
    }
}

pin_project! {
    /// Future of [`RwLock::read`].
    struct Reading<'a, T: ?Sized> {
        lock: &'a RwLock<T>,
        caller: CallSite,
        #[pin]
        acquisition: Acquisition<'a>,
    }
}

impl<'a, T: ?Sized> Future for Reading<'a, T> {
    type Output = RwLockReadGuard<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (lock, caller) = (*this.lock, *this.caller);
        this.acquisition.poll(cx, &lock.permits, lock.part(), Some((&lock.name, caller))).map(
            |taken| {
                acquisition::open(taken);
                RwLockReadGuard::new(lock, caller)
            },
        )
    }
}

pin_project! {
    /// Future of [`RwLock::write`].
    struct Writing<'a, T: ?Sized> {
        lock: &'a RwLock<T>,
        caller: CallSite,
        #[pin]
        acquisition: Acquisition<'a>,
    }
}

impl<'a, T: ?Sized> Future for Writing<'a, T> {
    type Output = RwLockWriteGuard<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (lock, caller) = (*this.lock, *this.caller);
        this.acquisition.poll(cx, &lock.permits, lock.whole(), Some((&lock.name, caller))).map(
            |taken| {
                acquisition::open(taken);
                RwLockWriteGuard::new(lock, caller)
            },
        )
    }
}

#[cfg(test)]
mod models;
