//! The guard of a reader that keeps its lock alive and borrows nothing.

use std::{ops::Deref, sync::Arc};

use super::{Caller, Hold, Part, RwLock};
use crate::sync::hold::shown_as_its_value;

/// The right to read the value of an [`RwLock`] in an [`Arc`], or a part of it, until this
/// is dropped.
///
/// Made by [`RwLock::read_owned`].
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
#[must_use = "the lock is let go at once if this is not kept"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    hold: Hold<Part<Arc<RwLock<T>>>>,
    value: *const U,
}

// SAFETY: it is a `&U`, and an `Arc` of a lock that other threads may have as well.
unsafe impl<T, U> Send for OwnedRwLockReadGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Sync,
{
}
// SAFETY: a shared guard lends `&U`, and the `Arc`.
unsafe impl<T, U> Sync for OwnedRwLockReadGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// The caller has taken a permit.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>, caller: Caller) -> Self {
        let entry = lock.name.enter(caller);
        Self::of(Hold::new(Part(lock), entry))
    }

    /// A reader of the whole value, with a permit that was taken before.
    #[inline]
    pub(super) fn of(hold: Hold<Part<Arc<RwLock<T>>>>) -> Self {
        let value = hold.lender().0.value.with(|value| value);
        Self { hold, value }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// A reader of a part of the value.
    #[inline]
    pub(super) fn part(hold: Hold<Part<Arc<RwLock<T>>>>, value: *const U) -> Self {
        Self { hold, value }
    }

    /// Makes a guard of a part of what it lends.
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
        OwnedRwLockReadGuard::part(this.hold, value)
    }

    /// Makes a guard of a part of what it lends, if `f` finds it.
    ///
    /// # Errors
    ///
    /// The guard itself, if it does not.
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
            Some(value) => Ok(OwnedRwLockReadGuard::part(this.hold, value)),
            None => Err(this),
        }
    }

    /// Returns the lock.
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
        &this.hold.lender().0
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedRwLockReadGuard<T, U> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        // SAFETY: it points into the value, which the `Arc` keeps where it is, and we have
        // a permit, so nobody writes.
        unsafe { &*self.value }
    }
}

shown_as_its_value! { impl[T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U>, U }
