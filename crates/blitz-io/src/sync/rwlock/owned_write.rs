//! Write guards that own an [`Arc`] of their lock and borrow nothing.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{AllPermits, CallSite, OneShare, OwnedRwLockReadGuard, PermitGuard, RwLock};
use crate::sync::permit_guard::shown_as_its_value;

/// Owned write guard of an [`RwLock`] in an [`Arc`]: exclusive access to the value; dropping
/// the guard releases the lock.
///
/// Created by [`RwLock::write_owned`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
///
/// # blitz_io::run(async {
/// let lock = Arc::new(RwLock::new(1));
/// let mut writer: OwnedRwLockWriteGuard<i32> = lock.clone().write_owned().await;
/// blitz_io::spawn(async move { *writer = 2 }).await.unwrap();
/// assert_eq!(*lock.read().await, 2);
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    permit: PermitGuard<AllPermits<Arc<RwLock<T>>>>,
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// Creates a guard; the caller must have taken all permits.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>, caller: CallSite) -> Self {
        let entry = lock.name.enter(caller);
        Self { permit: PermitGuard::new(AllPermits(lock), entry) }
    }

    /// Creates a guard of a component of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new((1, "one")));
    /// *OwnedRwLockWriteGuard::map(lock.clone().write_owned().await, |pair| &mut pair.0) = 2;
    /// assert_eq!(*lock.read().await, (2, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let value = f(&mut *this) as *mut U;
        OwnedRwLockMappedWriteGuard { permit: this.permit, value }
    }

    /// Creates a guard of a component of the value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the original guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(vec![1]));
    /// let writer = lock.clone().write_owned().await;
    /// let second = OwnedRwLockWriteGuard::try_map(writer, |values| values.get_mut(1));
    /// second.unwrap_err().push(2);
    /// assert_eq!(*lock.read().await, [1, 2]);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => Ok(OwnedRwLockMappedWriteGuard { permit: this.permit, value }),
            None => Err(this),
        }
    }

    /// Converts the guard to a mapped guard of the whole value, for code that expects one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// *OwnedRwLockWriteGuard::into_mapped(lock.clone().write_owned().await) = 2;
    /// assert_eq!(*lock.read().await, 2);
    /// # });
    /// ```
    #[inline]
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        OwnedRwLockWriteGuard::map(this, |value| value)
    }

    /// Downgrades to a read guard, without letting another writer in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let reader = lock.clone().write_owned().await.downgrade();
    /// assert_eq!((*reader, *lock.read().await), (1, 1));
    /// assert!(lock.try_write().is_err());
    /// # });
    /// ```
    #[inline]
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        OwnedRwLockReadGuard::of(self.share())
    }

    /// Downgrades to a read guard of a component of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new((1, "one")));
    /// let writer = lock.clone().write_owned().await;
    /// let first = OwnedRwLockWriteGuard::downgrade_map(writer, |pair| &pair.0);
    /// assert_eq!((*first, lock.read().await.1), (1, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let value = f(&*this) as *const U;
        OwnedRwLockReadGuard::part(this.share(), value)
    }

    /// Downgrades to a read guard of a component of the value, if `f` returns one.
    ///
    /// # Errors
    ///
    /// Returns the original write guard if `f` returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let writer = Arc::new(RwLock::new(vec![1])).write_owned().await;
    /// let writer = OwnedRwLockWriteGuard::try_downgrade_map(writer, |values| values.get(1));
    /// writer.unwrap_err().push(2);
    /// # });
    /// ```
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this).map(|value| value as *const U) {
            Some(value) => Ok(OwnedRwLockReadGuard::part(this.share(), value)),
            None => Err(this),
        }
    }

    fn share(self) -> PermitGuard<OneShare<Arc<RwLock<T>>>> {
        self.permit.pass(|AllPermits(lock)| {
            lock.let_readers_in();
            OneShare(lock)
        })
    }

    /// Returns the lock that this guard belongs to.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let writer = lock.clone().write_owned().await;
    /// assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&writer), &lock));
    /// # });
    /// ```
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.permit.source().0
    }
}

impl<T: ?Sized> Deref for OwnedRwLockWriteGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds all permits, so no other guard exists, and this one stays
        // borrowed for the lifetime of the result.
        self.permit.source().0.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for OwnedRwLockWriteGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds all permits, so no other guard exists, and this one stays
        // exclusively borrowed for the lifetime of the result.
        self.permit.source().0.value.with_mut(|value| unsafe { &mut *value })
    }
}

shown_as_its_value! { impl[T: ?Sized] OwnedRwLockWriteGuard<T>, T }

/// Owned write guard of a component of the value of an [`RwLock`] in an [`Arc`]; dropping it
/// releases the lock.
///
/// Created by [`OwnedRwLockWriteGuard::map`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
///
/// # blitz_io::run(async {
/// let lock = Arc::new(RwLock::new((1, "one")));
/// let writer = lock.clone().write_owned().await;
/// let mut first: OwnedRwLockMappedWriteGuard<_, i32> =
///     OwnedRwLockWriteGuard::map(writer, |pair| &mut pair.0);
/// blitz_io::spawn(async move { *first = 2 }).await.unwrap();
/// assert_eq!(lock.read().await.0, 2);
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    permit: PermitGuard<AllPermits<Arc<RwLock<T>>>>,
    value: *mut U,
}

// SAFETY: the guard is a `&mut U`, which is `Send` with `U: Send`, plus an `Arc` of a lock
// that other threads may share, which is `Send` because the lock is `Send + Sync`.
unsafe impl<T, U> Send for OwnedRwLockMappedWriteGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}
// SAFETY: a shared guard only gives out `&U` and a reference to the `Arc`.
unsafe impl<T, U> Sync for OwnedRwLockMappedWriteGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(((1, 2), 3)));
    /// let writer = lock.clone().write_owned().await;
    /// let inner = OwnedRwLockWriteGuard::map(writer, |value| &mut value.0);
    /// *OwnedRwLockMappedWriteGuard::map(inner, |inner| &mut inner.1) = 5;
    /// assert_eq!(*lock.read().await, ((1, 5), 3));
    /// # });
    /// ```
    #[inline]
    pub fn map<F, V: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, V>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        let value = f(&mut *this) as *mut V;
        OwnedRwLockMappedWriteGuard { permit: this.permit, value }
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
    /// use blitz_io::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let writer = Arc::new(RwLock::new((vec![1], "one"))).write_owned().await;
    /// let inner = OwnedRwLockWriteGuard::map(writer, |value| &mut value.0);
    /// assert!(OwnedRwLockMappedWriteGuard::try_map(inner, |inner| inner.get_mut(1)).is_err());
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, V: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        match f(&mut *this).map(|value| value as *mut V) {
            Some(value) => Ok(OwnedRwLockMappedWriteGuard { permit: this.permit, value }),
            None => Err(this),
        }
    }

    /// Returns the lock that this guard belongs to.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    ///
    /// # blitz_io::run(async {
    /// let lock = Arc::new(RwLock::new(1));
    /// let writer = OwnedRwLockWriteGuard::into_mapped(lock.clone().write_owned().await);
    /// assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&writer), &lock));
    /// # });
    /// ```
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.permit.source().0
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedRwLockMappedWriteGuard<T, U> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        // SAFETY: the pointer leads into the lock's value, which the `Arc` keeps in place, and
        // this guard holds all permits, so no other guard exists.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized, U: ?Sized> DerefMut for OwnedRwLockMappedWriteGuard<T, U> {
    #[inline]
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: the pointer leads into the lock's value, which the `Arc` keeps in place, and
        // this guard holds all permits, so no other guard exists; it stays exclusively borrowed
        // for the lifetime of the result.
        unsafe { &mut *self.value }
    }
}

shown_as_its_value! { impl[T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U>, U }
