//! The read guard that borrows its lock.

use std::{marker::PhantomData, ops::Deref};

use super::{CallSite, PermitGuard, RwLock, Shared};
use crate::sync::permit_guard::shown_as_its_value;

/// Read guard of an [`RwLock`]: shared access to the value, or to a component of it; dropping
/// the guard releases the lock.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{RwLock, RwLockReadGuard};
///
/// # blitz_io::run(async {
/// let lock = RwLock::new(1);
/// let reader: RwLockReadGuard<'_, i32> = lock.read().await;
/// assert_eq!(*reader, 1);
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    permit: PermitGuard<Shared<'a>>,
    value: *const T,
    borrow: PhantomData<&'a T>,
}

// SAFETY: the guard is a `&T`, which is `Send` with `T: Sync`, plus a permit that any thread
// may give back.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: a shared guard only gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// Creates a guard; the caller must have taken a permit.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>, caller: CallSite) -> Self {
        Self::of(lock, PermitGuard::new(Shared(&lock.permits), lock.name.enter(caller)))
    }

    /// Creates a guard of the whole value from its permit.
    #[inline]
    pub(super) fn of(lock: &'a RwLock<T>, permit: PermitGuard<Shared<'a>>) -> Self {
        Self::part(permit, lock.value.with(|value| value))
    }

    /// Creates a guard of the component at `value` from its permit.
    #[inline]
    pub(super) fn part(permit: PermitGuard<Shared<'a>>, value: *const T) -> Self {
        Self { permit, value, borrow: PhantomData }
    }

    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockReadGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new((1, "one"));
    /// let first = RwLockReadGuard::map(lock.read().await, |pair| &pair.0);
    /// assert_eq!(*first, 1);
    /// # });
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let value = f(&*this) as *const U;
        RwLockReadGuard::part(this.permit, value)
    }

    /// Creates a guard of a component of this guard's value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the original guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockReadGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(vec![1]);
    /// let reader = RwLockReadGuard::try_map(lock.read().await, |values| values.get(1));
    /// let first = RwLockReadGuard::try_map(reader.unwrap_err(), |values| values.first());
    /// assert_eq!(*first.unwrap(), 1);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this).map(|value| value as *const U) {
            Some(value) => Ok(RwLockReadGuard::part(this.permit, value)),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer leads into the lock's value, and this guard holds a permit, so no
        // writer has access while the guard is borrowed.
        unsafe { &*self.value }
    }
}

shown_as_its_value! { impl['a, T: ?Sized] RwLockReadGuard<'a, T>, T }
