//! The read guard that owns an [`Arc`] of its lock and borrows nothing.

use std::{ops::Deref, sync::Arc};

use super::{CallSite, OneShare, PermitGuard, RwLock};
use crate::sync::permit_guard::shown_as_its_value;

/// Owned read guard of an [`RwLock`] in an [`Arc`]: shared access to the value, or to a
/// component of it; dropping the guard releases the lock.
///
/// Created by [`RwLock::read_owned`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{OwnedRwLockReadGuard, RwLock};
///
/// # blitz_io::run(async {
/// let lock = Arc::new(RwLock::new(1));
/// let reader: OwnedRwLockReadGuard<i32> = lock.read_owned().await;
/// assert_eq!(blitz_io::spawn(async move { *reader }).await.unwrap(), 1);
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    permit: PermitGuard<OneShare<Arc<RwLock<T>>>>,
    value: *const U,
}

// SAFETY: the guard is a `&U`, which is `Send` with `U: Sync`, plus an `Arc` of a lock that
// other threads may share, which is `Send` because the lock is `Send + Sync`.
unsafe impl<T, U> Send for OwnedRwLockReadGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Sync,
{
}
// SAFETY: a shared guard only gives out `&U` and a reference to the `Arc`.
unsafe impl<T, U> Sync for OwnedRwLockReadGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// Creates a guard; the caller must have taken a permit.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>, caller: CallSite) -> Self {
        let entry = lock.name.enter(caller);
        Self::of(PermitGuard::new(OneShare(lock), entry))
    }

    /// Creates a guard of the whole value from its permit.
    #[inline]
    pub(super) fn of(permit: PermitGuard<OneShare<Arc<RwLock<T>>>>) -> Self {
        let value = permit.source().0.value.with(|value| value);
        Self { permit, value }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// Creates a guard of the component at `value` from its permit.
    #[inline]
    pub(super) fn part(permit: PermitGuard<OneShare<Arc<RwLock<T>>>>, value: *const U) -> Self {
        Self { permit, value }
    }

    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockReadGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new((1, "one")));
    /// let first = OwnedRwLockReadGuard::map(lock.read_owned().await, |pair| &pair.0);
    /// assert_eq!(*first, 1);
    /// # });
    /// ```
    #[inline]
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, V>
    where
        F: FnOnce(&U) -> &V,
    {
        let value = f(&*this) as *const V;
        OwnedRwLockReadGuard::part(this.permit, value)
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
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockReadGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(vec![1]));
    /// let reader = lock.read_owned().await;
    /// let reader = OwnedRwLockReadGuard::try_map(reader, |values| values.get(1)).unwrap_err();
    /// let first = OwnedRwLockReadGuard::try_map(reader, |values| values.first()).unwrap();
    /// assert_eq!(*first, 1);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, V>, Self>
    where
        F: FnOnce(&U) -> Option<&V>,
    {
        match f(&*this).map(|value| value as *const V) {
            Some(value) => Ok(OwnedRwLockReadGuard::part(this.permit, value)),
            None => Err(this),
        }
    }

    /// Returns the lock that this guard belongs to.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockReadGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let reader = lock.clone().read_owned().await;
    /// assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&reader), &lock));
    /// # });
    /// ```
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.permit.source().0
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedRwLockReadGuard<T, U> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        // SAFETY: the pointer leads into the lock's value, which the `Arc` keeps in place, and
        // this guard holds a permit, so no writer has access while the guard is borrowed.
        unsafe { &*self.value }
    }
}

shown_as_its_value! { impl[T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U>, U }
