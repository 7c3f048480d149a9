//! A semaphore: so many at a time.
//!
//! It is the engine's [`Permits`] with guards around them.
//!
//! # Invariants
//! What a permit says it has was taken from its semaphore and is given back by it
//! alone: a split moves some out of one permit into another, a merge moves all.
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
    outside,
    turn::{Taking, Turn},
};
use crate::engine::{
    prim::weakened,
    wait::permits::{self, Closed, NotNow, Permits},
};

/// A counting semaphore: a number of permits, which tasks take and give back.
///
/// Permits are given out in the order in which they were asked for, also those of
/// [`acquire_many`](Self::acquire_many): a big wish is not overtaken by small ones.
///
/// # Examples
///
/// At most two at a time:
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
// What a release touches is on one cache line: with two workers that contend it is a
// fifth faster.
#[repr(align(64))]
pub struct Semaphore {
    permits: Permits,
}

/// Permits of a [`Semaphore`], given back when this is dropped.
///
/// Made by [`Semaphore::acquire`] and the methods like it.
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

/// Permits of a [`Semaphore`] in an [`Arc`], given back when this is dropped.
///
/// Made by [`Semaphore::acquire_owned`] and the methods like it. It borrows nothing, so it
/// can move into a task.
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

/// The semaphore was closed, so there are no permits to come.
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

/// Why [`Semaphore::try_acquire`] has no permit to give.
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
    /// There are too few permits now, or others wait for them.
    NoPermits,
}

impl Semaphore {
    /// The most permits that a semaphore can have: `usize::MAX >> 3`.
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

    /// Makes a semaphore with so many permits.
    ///
    /// # Panics
    ///
    /// If these are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
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

    /// The same, in constants and statics.
    ///
    /// # Panics
    ///
    /// If these are more than [`MAX_PERMITS`](Self::MAX_PERMITS): in a constant the
    /// program does not compile.
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

    /// Returns how many permits are free now.
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

    /// Adds new permits: first for those who wait.
    ///
    /// # Panics
    ///
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS) free ones.
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

    /// Takes up to `n` free permits away for good; returns how many these were.
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

    /// Takes a permit, or waits for one.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and loses no permit.
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
        Acquiring { semaphore: self, count: 1, turn: Turn::new() }
    }

    /// Takes `n` permits at once, or waits for them.
    ///
    /// Who waits for many keeps those behind it waiting until it has them all.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// If `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and loses no permit: those that it
    /// had collected go to the next in line.
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
        Acquiring { semaphore: self, count: n as usize, turn: Turn::new() }
    }

    /// Takes a permit if one is free and nobody waits.
    ///
    /// # Errors
    ///
    /// [`Closed`](TryAcquireError::Closed) or [`NoPermits`](TryAcquireError::NoPermits).
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

    /// Takes `n` permits if they are free and nobody waits.
    ///
    /// # Errors
    ///
    /// [`Closed`](TryAcquireError::Closed) or [`NoPermits`](TryAcquireError::NoPermits).
    ///
    /// # Panics
    ///
    /// If `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
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

    /// Takes a permit, or waits for one; the permit keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and loses no permit.
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

    /// Takes `n` permits at once, or waits for them; the permit keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// If `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in line, and loses no permit.
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

    /// Takes a permit if one is free and nobody waits; the permit keeps the semaphore
    /// alive.
    ///
    /// # Errors
    ///
    /// [`Closed`](TryAcquireError::Closed) or [`NoPermits`](TryAcquireError::NoPermits).
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

    /// Takes `n` permits if they are free and nobody waits; the permit keeps the
    /// semaphore alive.
    ///
    /// # Errors
    ///
    /// [`Closed`](TryAcquireError::Closed) or [`NoPermits`](TryAcquireError::NoPermits).
    ///
    /// # Panics
    ///
    /// If `n` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
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

    /// Takes a permit; the thread sleeps until there is one.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context.
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
        outside::wait_for(self.acquire(), "use `acquire`")
    }

    /// Takes `n` permits at once; the thread sleeps until it has them.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context, and if `n` is more than
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
        outside::wait_for(self.acquire_many(n), "use `acquire_many`")
    }

    /// Takes a permit that keeps the semaphore alive; the thread sleeps until there is
    /// one.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context.
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
        outside::wait_for(self.acquire_owned(), "use `acquire_owned`")
    }

    /// Takes `n` permits that keep the semaphore alive; the thread sleeps until it has
    /// them.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    ///
    /// Inside an asynchronous context, and if `n` is more than
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
        outside::wait_for(self.acquire_many_owned(n), "use `acquire_many_owned`")
    }

    /// Refuses everybody who waits, and who will come. Permits that are out stay valid.
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

    /// Whether it was closed.
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
        turn: Turn<'a>,
    }
}

impl<'a> Future for Acquiring<'a> {
    type Output = Result<SemaphorePermit<'a>, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (semaphore, count) = (*this.semaphore, *this.count);
        this.turn.poll(cx, &semaphore.permits, count, None).map(|taken| {
            taken.map_err(AcquireError::new)?;
            Ok(SemaphorePermit { semaphore, count })
        })
    }
}

/// Moves `n` permits out of a count; `None` if there are fewer.
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

/// What both kinds of permits say about a stranger.
#[track_caller]
fn assert_of_one_semaphore(own: &Semaphore, other: &Semaphore) {
    assert!(
        std::ptr::eq(own, other),
        "merging permits from different semaphore instances: merge those of one semaphore"
    );
}

impl<'a> SemaphorePermit<'a> {
    /// Ends this without giving anything back: the semaphore has fewer permits for good.
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

    /// Takes over what `other` has.
    ///
    /// # Panics
    ///
    /// If `other` is of another semaphore. Both are given back then.
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

    /// Moves `n` permits into one of their own; `None` if there are fewer.
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

    /// Returns the semaphore that these are of.
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

    /// Returns how many permits these are.
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
    /// Ends this without giving anything back: the semaphore has fewer permits for good.
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

    /// Takes over what `other` has.
    ///
    /// # Panics
    ///
    /// If `other` is of another semaphore. Both are given back then.
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

    /// Moves `n` permits into one of their own; `None` if there are fewer.
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

    /// Returns the semaphore that these are of.
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

    /// Returns how many permits these are.
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
    /// What a permit does in the end.
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
    fn new(why: NotNow) -> Self {
        match why {
            NotNow::Closed => Self::Closed,
            NotNow::TooFew => Self::NoPermits,
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
