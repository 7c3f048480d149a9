//! A counting semaphore, which limits how many tasks do something at the same time.
//!
//! Wraps the engine's [`Permits`] in guards.
//!
//! # Invariants
//! The permits counted by a guard were taken from its semaphore, and only that guard gives
//! them back: a split moves some of them from one guard into another, a merge moves all.
//!
//! # Checked by
//! `permits_that_are_split_come_back_once_each`, `permits_that_are_merged_come_back_once`,
//! `a_close_against_an_acquire_ends_it`,
//! `an_owned_permit_that_ends_against_a_waiter_wakes_it`,
//! `a_wait_for_many_dropped_against_a_permit_loses_none`; weakened as
//! `semaphore_permit_gives_back`, `semaphore_split_divides`, `semaphore_merge_moves`,
//! `semaphore_close_closes`.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    acquisition::{Acquisition, Taking},
    blocking,
};
use crate::engine::{
    prim::weakened,
    wait::permits::{self, Closed, NoPermits, Permits},
};

/// A counting semaphore: a number of permits that tasks acquire and give back.
///
/// Permits are granted in the order of the requests (first in, first out), including those of
/// [`acquire_many`](Self::acquire_many), so a large request is not starved by smaller ones.
///
/// # Examples
///
/// At most two tasks at a time:
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::Semaphore;
///
/// # blitz_io::run(async {
/// let semaphore = Arc::new(Semaphore::new(2));
/// let mut tasks = Vec::new();
/// for n in 0..10 {
///     let permit = semaphore.clone().acquire_owned().await.unwrap();
///     tasks.push(blitz_io::spawn(async move {
///         let _permit = permit;
///         n * n
///     }));
/// }
/// let mut sum = 0;
/// for task in tasks {
///     sum += task.await.unwrap();
/// }
/// assert_eq!((sum, semaphore.available_permits()), (285, 2));
/// # });
/// ```
// The fields that a release touches share one cache line; measured with two contending
// workers, that is a fifth faster.
#[repr(align(64))]
pub struct Semaphore {
    permits: Permits,
}

/// Permits acquired from a [`Semaphore`]; dropping this gives them back.
///
/// Created by [`Semaphore::acquire`] and its variants that borrow the semaphore.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::Semaphore;
///
/// let semaphore = Semaphore::new(1);
/// let permit = semaphore.try_acquire().unwrap();
/// assert_eq!(semaphore.available_permits(), 0);
/// drop(permit);
/// assert_eq!(semaphore.available_permits(), 1);
/// ```
#[must_use = "the permits are given back at once if this is not kept"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    count: usize,
}

/// Permits acquired from a [`Semaphore`] in an [`Arc`]; dropping this gives them back.
///
/// Created by [`Semaphore::acquire_owned`] and its variants that own the [`Arc`]. Because it
/// borrows nothing, it can move into a task.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::Semaphore;
///
/// # blitz_io::run(async {
/// let semaphore = Arc::new(Semaphore::new(1));
/// let permit = semaphore.clone().acquire_owned().await.unwrap();
/// blitz_io::spawn(async move { drop(permit) }).await.unwrap();
/// assert_eq!(semaphore.available_permits(), 1);
/// # });
/// ```
#[must_use = "the permits are given back at once if this is not kept"]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    count: usize,
}

/// Error of [`Semaphore::acquire`]: the semaphore was closed and grants no more permits.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::Semaphore;
///
/// # blitz_io::run(async {
/// let semaphore = Semaphore::new(1);
/// semaphore.close();
/// assert_eq!(semaphore.acquire().await.unwrap_err().to_string(), "semaphore closed");
/// # });
/// ```
#[derive(Debug)]
pub struct AcquireError(());

/// Reason why [`Semaphore::try_acquire`] returned no permit.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{Semaphore, TryAcquireError};
///
/// let semaphore = Semaphore::new(0);
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
/// semaphore.close();
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore was closed.
    Closed,
    /// Too few permits are available, or other tasks wait for them.
    NoPermits,
}

impl Semaphore {
    /// The maximum number of permits of a semaphore: `usize::MAX >> 3`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    /// assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    /// ```
    pub const MAX_PERMITS: usize = permits::MAX;

    /// Creates a semaphore with `permits` permits.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(blitz_io::sync::Semaphore::new(3).available_permits(), 3);
    /// ```
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        Self { permits: Permits::new(permits) }
    }

    /// Creates a semaphore with `permits` permits, for use in constants and statics.
    ///
    /// # Panics
    ///
    /// Panics if `permits` is more than [`MAX_PERMITS`](Self::MAX_PERMITS). In a constant this is
    /// a compile error.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// static SEMAPHORE: Semaphore = Semaphore::const_new(3);
    /// assert_eq!(SEMAPHORE.available_permits(), 3);
    /// ```
    #[cfg(not(blitz_loom))]
    #[track_caller]
    pub const fn const_new(permits: usize) -> Self {
        Self { permits: Permits::new(permits) }
    }

    /// Returns the number of permits that are available now.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let _two = semaphore.try_acquire_many(2).unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn available_permits(&self) -> usize {
        self.permits.available()
    }

    /// Adds `n` new permits, which go to waiting tasks first.
    ///
    /// # Panics
    ///
    /// Panics if more than [`MAX_PERMITS`](Self::MAX_PERMITS) permits would be available.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(0);
    /// semaphore.add_permits(2);
    /// assert_eq!(semaphore.available_permits(), 2);
    /// ```
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        assert!(
            n <= Self::MAX_PERMITS,
            "cannot add more than MAX_PERMITS permits ({}): add fewer",
            Self::MAX_PERMITS
        );
        self.permits.release(n);
    }

    /// Removes up to `n` available permits for good and returns how many were removed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert_eq!(semaphore.forget_permits(2), 2);
    /// assert_eq!(semaphore.forget_permits(2), 1);
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn forget_permits(&self, n: usize) -> usize {
        self.permits.forget(n)
    }

    /// Acquires a permit, waiting until one is granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and loses no permit.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// # blitz_io::run(async {
    /// let semaphore = Semaphore::new(2);
    /// let permit = semaphore.acquire().await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permit);
    /// # });
    /// ```
    #[inline]
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        Acquiring { semaphore: self, count: 1, acquisition: Acquisition::new() }
    }

    /// Acquires `n` permits at once, waiting until all of them are granted.
    ///
    /// A request for many permits holds up all later requests until it has them all.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and loses no permit: those that
    /// were already collected go to the next waiter.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// # blitz_io::run(async {
    /// let semaphore = Semaphore::new(5);
    /// let permit = semaphore.acquire_many(3).await.unwrap();
    /// assert_eq!((permit.num_permits(), semaphore.available_permits()), (3, 2));
    /// # });
    /// ```
    #[inline]
    pub fn acquire_many(
        &self,
        n: u32,
    ) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        Acquiring { semaphore: self, count: n as usize, acquisition: Acquisition::new() }
    }

    /// Acquires a permit if one is available and no task waits for one.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`](TryAcquireError::Closed) if the semaphore is closed and
    /// [`NoPermits`](TryAcquireError::NoPermits) if it would have to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{Semaphore, TryAcquireError};
    ///
    /// let semaphore = Semaphore::new(1);
    /// let permit = semaphore.try_acquire().unwrap();
    /// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    /// # drop(permit);
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Acquires `n` permits if they are available and no task waits for any.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`](TryAcquireError::Closed) if the semaphore is closed and
    /// [`NoPermits`](TryAcquireError::NoPermits) if it would have to wait.
    ///
    /// # Panics
    ///
    /// Panics if `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert!(semaphore.try_acquire_many(4).is_err());
    /// assert_eq!(semaphore.try_acquire_many(3).unwrap().num_permits(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let count = n as usize;
        self.permits.try_acquire(count).map_err(TryAcquireError::new)?;
        Ok(SemaphorePermit { semaphore: self, count })
    }

    /// Acquires a permit that owns the [`Arc`], waiting until it is granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and loses no permit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// # blitz_io::run(async {
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().acquire_owned().await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// # drop(permit);
    /// # });
    /// ```
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_many_owned(1)
    }

    /// Acquires `n` permits at once in a guard that owns the [`Arc`], waiting until all of them
    /// are granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the wait queue and loses no permit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// # blitz_io::run(async {
    /// let semaphore = Arc::new(Semaphore::new(5));
    /// let permit = semaphore.clone().acquire_many_owned(3).await.unwrap();
    /// assert_eq!((permit.num_permits(), semaphore.available_permits()), (3, 2));
    /// # });
    /// ```
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let count = n as usize;
        Taking::new(&self.permits, count, None).await.map_err(AcquireError::new)?;
        Ok(OwnedSemaphorePermit { semaphore: self, count })
    }

    /// Acquires a permit that owns the [`Arc`], if one is available and no task waits for one.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`](TryAcquireError::Closed) if the semaphore is closed and
    /// [`NoPermits`](TryAcquireError::NoPermits) if it would have to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(semaphore.clone().try_acquire_owned().is_err());
    /// # drop(permit);
    /// ```
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Acquires `n` permits in a guard that owns the [`Arc`], if they are available and no task
    /// waits for any.
    ///
    /// # Errors
    ///
    /// Returns [`Closed`](TryAcquireError::Closed) if the semaphore is closed and
    /// [`NoPermits`](TryAcquireError::NoPermits) if it would have to wait.
    ///
    /// # Panics
    ///
    /// Panics if `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// assert!(semaphore.clone().try_acquire_many_owned(4).is_err());
    /// assert_eq!(semaphore.try_acquire_many_owned(3).unwrap().num_permits(), 3);
    /// ```
    #[track_caller]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let count = n as usize;
        self.permits.try_acquire(count).map_err(TryAcquireError::new)?;
        Ok(OwnedSemaphorePermit { semaphore: self, count })
    }

    /// Acquires a permit, blocking the current thread until one is granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(1);
    /// let permit = semaphore.blocking_acquire().unwrap();
    /// assert_eq!(permit.num_permits(), 1);
    /// ```
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        blocking::block_on(self.acquire(), "use `acquire`")
    }

    /// Acquires `n` permits at once, blocking the current thread until all of them are granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context, and if `n` is more than
    /// [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert_eq!(semaphore.blocking_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        blocking::block_on(self.acquire_many(n), "use `acquire_many`")
    }

    /// Acquires a permit that owns the [`Arc`], blocking the current thread until it is granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().blocking_acquire_owned().unwrap();
    /// assert!(Arc::ptr_eq(permit.semaphore(), &semaphore));
    /// ```
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        blocking::block_on(self.acquire_owned(), "use `acquire_owned`")
    }

    /// Acquires `n` permits at once in a guard that owns the [`Arc`], blocking the current thread
    /// until all of them are granted.
    ///
    /// # Errors
    ///
    /// Returns [`AcquireError`] if the semaphore is closed, or is closed while waiting.
    ///
    /// # Panics
    ///
    /// Panics if called within an asynchronous context, and if `n` is more than
    /// [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// assert_eq!(semaphore.blocking_acquire_many_owned(2).unwrap().num_permits(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        blocking::block_on(self.acquire_many_owned(n), "use `acquire_many_owned`")
    }

    /// Closes the semaphore: all current and future requests fail with an error.
    ///
    /// Permits that were acquired before stay valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// # blitz_io::run(async {
    /// let semaphore = Semaphore::new(1);
    /// semaphore.close();
    /// assert!(semaphore.acquire().await.is_err());
    /// # });
    /// ```
    pub fn close(&self) {
        if !weakened!("semaphore_close_closes") {
            self.permits.close();
        }
    }

    /// Returns `true` if the semaphore was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(1);
    /// assert!(!semaphore.is_closed());
    /// semaphore.close();
    /// assert!(semaphore.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("permits", &self.available_permits()).finish()
    }
}

pin_project! {
    /// Future of `acquire` and `acquire_many`.
    struct Acquiring<'a> {
        semaphore: &'a Semaphore,
        count: usize,
        #[pin]
        acquisition: Acquisition<'a>,
    }
}

impl<'a> Future for Acquiring<'a> {
    type Output = Result<SemaphorePermit<'a>, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (semaphore, count) = (*this.semaphore, *this.count);
        this.acquisition.poll(cx, &semaphore.permits, count, None).map(|taken| {
            taken.map_err(AcquireError::new)?;
            Ok(SemaphorePermit { semaphore, count })
        })
    }
}

/// Moves `n` permits out of `count`; returns `None` if there are fewer.
fn split_off(count: &mut usize, n: usize) -> Option<usize> {
    let rest = count.checked_sub(n)?;
    if !weakened!("semaphore_split_divides") {
        *count = rest;
    }
    Some(n)
}

/// Moves all permits of `from` into `count`.
#[track_caller]
fn merge_into(count: &mut usize, from: &mut usize) {
    let sum = count.checked_add(*from);
    *count = sum.expect("number of permits overflowed: keep these apart");
    if !weakened!("semaphore_merge_moves") {
        *from = 0;
    }
}

/// Panics unless both permits to be merged belong to the same semaphore.
#[track_caller]
fn assert_of_one_semaphore(own: &Semaphore, other: &Semaphore) {
    assert!(
        std::ptr::eq(own, other),
        "merging permits from different semaphore instances: merge those of one semaphore"
    );
}

impl<'a> SemaphorePermit<'a> {
    /// Forgets the permits without returning them: the semaphore has fewer permits for good.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// semaphore.try_acquire_many(2).unwrap().forget();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Merges the permits of `other` into this guard.
    ///
    /// # Panics
    ///
    /// Panics if `other` belongs to another semaphore. No permit is lost then: `other` gives its
    /// permits back to its own semaphore, and `self` keeps what it has.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let mut permit = semaphore.try_acquire().unwrap();
    /// permit.merge(semaphore.try_acquire_many(2).unwrap());
    /// assert_eq!(permit.num_permits(), 3);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert_of_one_semaphore(self.semaphore, other.semaphore);
        merge_into(&mut self.count, &mut other.count);
    }

    /// Moves `n` of these permits into a guard of their own; returns `None` if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let mut permit = semaphore.try_acquire_many(3).unwrap();
    /// drop(permit.split(1).unwrap());
    /// assert_eq!((permit.num_permits(), semaphore.available_permits()), (2, 1));
    /// assert!(permit.split(3).is_none());
    /// ```
    pub fn split(&mut self, n: usize) -> Option<Self> {
        let count = split_off(&mut self.count, n)?;
        Some(Self { semaphore: self.semaphore, count })
    }

    /// Returns the semaphore from which these permits were acquired.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// let permit = semaphore.try_acquire().unwrap();
    /// assert_eq!(permit.semaphore().available_permits(), 2);
    /// ```
    pub fn semaphore(&self) -> &Semaphore {
        self.semaphore
    }

    /// Returns the number of permits held.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(3);
    /// assert_eq!(semaphore.try_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    pub fn num_permits(&self) -> usize {
        self.count
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.give_back(self.count);
    }
}

impl OwnedSemaphorePermit {
    /// Forgets the permits without returning them: the semaphore has fewer permits for good.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// semaphore.clone().try_acquire_many_owned(2).unwrap().forget();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// assert_eq!(Arc::strong_count(&semaphore), 1);
    /// ```
    pub fn forget(mut self) {
        self.count = 0;
    }

    /// Merges the permits of `other` into this guard.
    ///
    /// # Panics
    ///
    /// Panics if `other` belongs to another semaphore. No permit is lost then: `other` gives its
    /// permits back to its own semaphore, and `self` keeps what it has.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let mut permit = semaphore.clone().try_acquire_owned().unwrap();
    /// permit.merge(semaphore.clone().try_acquire_many_owned(2).unwrap());
    /// assert_eq!(permit.num_permits(), 3);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert_of_one_semaphore(&self.semaphore, &other.semaphore);
        merge_into(&mut self.count, &mut other.count);
    }

    /// Moves `n` of these permits into a guard of their own; returns `None` if there are fewer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let mut permit = semaphore.clone().try_acquire_many_owned(3).unwrap();
    /// drop(permit.split(1).unwrap());
    /// assert_eq!((permit.num_permits(), semaphore.available_permits()), (2, 1));
    /// ```
    pub fn split(&mut self, n: usize) -> Option<Self> {
        let count = split_off(&mut self.count, n)?;
        Some(Self { semaphore: self.semaphore.clone(), count })
    }

    /// Returns the semaphore from which these permits were acquired.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(Arc::ptr_eq(permit.semaphore(), &semaphore));
    /// ```
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }

    /// Returns the number of permits held.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// assert_eq!(semaphore.try_acquire_many_owned(2).unwrap().num_permits(), 2);
    /// ```
    pub fn num_permits(&self) -> usize {
        self.count
    }
}

impl Drop for OwnedSemaphorePermit {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.give_back(self.count);
    }
}

impl Semaphore {
    /// Gives back the permits of a dropped guard.
    #[inline]
    fn give_back(&self, count: usize) {
        if !weakened!("semaphore_permit_gives_back") {
            self.permits.release(count);
        }
    }
}

impl AcquireError {
    fn new(_: Closed) -> Self {
        Self(())
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed")
    }
}

impl Error for AcquireError {}

impl TryAcquireError {
    fn new(why: NoPermits) -> Self {
        match why {
            NoPermits::Closed => Self::Closed,
            NoPermits::TooFew => Self::NoPermits,
        }
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "semaphore closed",
            Self::NoPermits => "no permits available",
        })
    }
}

impl Error for TryAcquireError {}

#[cfg(test)]
mod models;
