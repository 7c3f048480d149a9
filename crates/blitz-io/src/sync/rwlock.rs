//! A read-write lock whose guards may be held across an `await`.
//!
//! One permit per reader, as many as there may be at once; a writer takes them all. The
//! line of the permits is the line of the lock: nobody overtakes, so a stream of readers
//! does not keep a writer waiting for ever.
//!
//! # Invariants
//! - Who has one permit may read the value; who has all of them is alone with it.
//! - A writer that becomes a reader gives back all permits but one, in one step: no other
//!   writer comes in between.
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
    hold::{Hold, Lender, Lock, Many, Part, Whole, show_lock},
    mutex::TryLockError,
    outside,
    turn::{self, Taking, Turn},
};
use crate::engine::{
    prim::{UnsafeCell, weakened},
    wait::{
        holders::{Caller, Holder, Name},
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

/// As many as fit into the permits of a 32-bit machine: Tokio's figure.
const MAX_READERS: u32 = u32::MAX >> 3;

/// A read-write lock for asynchronous code: many readers, or one writer.
///
/// It is given out in the order in which it was asked for. So who asks to read while a
/// writer waits comes after that writer. And so a task that reads must not ask to read
/// once more: a writer may have come in between, and each waits for the other.
///
/// A panic while it is locked does not poison it.
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
    name: Name,
    value: UnsafeCell<T>,
}

// SAFETY: the value moves with the lock.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers share the value between threads, and a writer moves it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// Makes a lock that is free, for up to `u32::MAX >> 3` readers.
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

    /// Makes a lock that is free, for up to so many readers at once.
    ///
    /// # Panics
    ///
    /// If `max_readers` is 0 or more than `u32::MAX >> 3`.
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
            name: Name::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// As [`new`](Self::new), in constants and statics.
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

    /// As [`with_max_readers`](Self::with_max_readers), in constants and statics.
    ///
    /// # Panics
    ///
    /// If `max_readers` is 0 or more than `u32::MAX >> 3`: in a constant the program does
    /// not compile.
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
            name: Name::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Ends the lock and returns its value.
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

/// Refuses numbers of readers that cannot be.
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
    /// Locks for reading, or waits for those who came before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and never leaves the lock taken.
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
        Reading { lock: self, caller: Caller::here(), turn: Turn::new() }
    }

    /// Locks for reading; the thread sleeps until it may.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context.
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
        outside::wait_for(self.read(), "use `read`")
    }

    /// Locks for reading, or waits; the guard keeps the lock alive and borrows nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and never leaves the lock taken.
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
        let caller = Caller::here();
        async move {
            let part = self.part();
            turn::open(Taking::new(&self.permits, part, Some((&self.name, caller))).await);
            OwnedRwLockReadGuard::new(self, caller)
        }
    }

    /// Locks for reading if nobody writes or waits.
    ///
    /// # Errors
    ///
    /// If somebody does, or there are as many readers as may be.
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
        Ok(RwLockReadGuard::new(self, Caller::here()))
    }

    /// Locks for reading if nobody writes or waits; the guard keeps the lock alive.
    ///
    /// # Errors
    ///
    /// If somebody does, or there are as many readers as may be.
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
        Ok(OwnedRwLockReadGuard::new(self, Caller::here()))
    }

    /// Locks for writing, or waits for those who came before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and never leaves the lock taken.
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
        Writing { lock: self, caller: Caller::here(), turn: Turn::new() }
    }

    /// Locks for writing; the thread sleeps until it may.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context.
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
        outside::wait_for(self.write(), "use `write`")
    }

    /// Locks for writing, or waits; the guard keeps the lock alive and borrows nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and never leaves the lock taken.
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
        let caller = Caller::here();
        async move {
            let whole = self.whole();
            turn::open(Taking::new(&self.permits, whole, Some((&self.name, caller))).await);
            OwnedRwLockWriteGuard::new(self, caller)
        }
    }

    /// Locks for writing if the lock is free and nobody waits.
    ///
    /// # Errors
    ///
    /// If it is not.
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
        Ok(RwLockWriteGuard::new(self, Caller::here()))
    }

    /// Locks for writing if the lock is free and nobody waits; the guard keeps it alive.
    ///
    /// # Errors
    ///
    /// If it is not.
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
        Ok(OwnedRwLockWriteGuard::new(self, Caller::here()))
    }

    /// Lends the value without locking: nobody else can have the lock.
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
        // SAFETY: the lock is borrowed for as long, so there is no guard.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Returns who holds the lock, and where they took it: in debug builds.
    ///
    /// It is for people who look for a deadlock. In release builds nobody keeps book, and
    /// the answer is always empty.
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

    /// What a writer does to become a reader. The caller has the whole lock, and keeps
    /// one permit.
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
        // Also what is given back: the bug is that it does not exclude, not that it counts
        // wrongly.
        if weakened!("rwlock_writer_takes_all") { 1 } else { self.max_readers as usize }
    }

    #[inline]
    fn part(&self) -> usize {
        a_readers_part()
    }
}

#[inline]
fn a_readers_part() -> usize {
    // Also what is kept and given back: the bug is that it does not exclude, as above.
    if weakened!("rwlock_reader_takes_one") { 0 } else { 1 }
}

/// A reader's part, of a lock of any type.
struct Shared<'a>(&'a Permits);

impl Lender for Shared<'_> {
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
        caller: Caller,
        #[pin]
        turn: Turn<'a>,
    }
}

impl<'a, T: ?Sized> Future for Reading<'a, T> {
    type Output = RwLockReadGuard<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (lock, caller) = (*this.lock, *this.caller);
        this.turn.poll(cx, &lock.permits, lock.part(), Some((&lock.name, caller))).map(|taken| {
            turn::open(taken);
            RwLockReadGuard::new(lock, caller)
        })
    }
}

pin_project! {
    /// Future of [`RwLock::write`].
    struct Writing<'a, T: ?Sized> {
        lock: &'a RwLock<T>,
        caller: Caller,
        #[pin]
        turn: Turn<'a>,
    }
}

impl<'a, T: ?Sized> Future for Writing<'a, T> {
    type Output = RwLockWriteGuard<'a, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (lock, caller) = (*this.lock, *this.caller);
        this.turn.poll(cx, &lock.permits, lock.whole(), Some((&lock.name, caller))).map(|taken| {
            turn::open(taken);
            RwLockWriteGuard::new(lock, caller)
        })
    }
}

#[cfg(test)]
mod models;
