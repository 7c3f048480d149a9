//! Write guards that borrow their lock.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use super::{
    AllPermits, CallSite, Lock, PermitGuard, RwLock, RwLockReadGuard, Shared, SomePermits,
};
use crate::sync::permit_guard::shown_as_its_value;

/// Write guard of an [`RwLock`]: exclusive access to the value; dropping the guard releases
/// the lock.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{RwLock, RwLockWriteGuard};
///
/// # blitz_io::run(async {
/// let lock = RwLock::new(1);
/// let mut writer: RwLockWriteGuard<'_, i32> = lock.write().await;
/// *writer += 1;
/// assert_eq!(*writer, 2);
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    permit: PermitGuard<AllPermits<&'a RwLock<T>>>,
    borrow: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Creates a guard; the caller must have taken all permits.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>, caller: CallSite) -> Self {
        Self {
            permit: PermitGuard::new(AllPermits(lock), lock.name.enter(caller)),
            borrow: PhantomData,
        }
    }

    /// Creates a guard of a component of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new((1, "one"));
    /// *RwLockWriteGuard::map(lock.write().await, |pair| &mut pair.0) = 2;
    /// assert_eq!(lock.into_inner(), (2, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let value = f(&mut *this) as *mut U;
        this.mapped(value)
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
    /// use blitz_io::sync::{RwLock, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(vec![1]);
    /// let writer = RwLockWriteGuard::try_map(lock.write().await, |values| values.get_mut(1));
    /// writer.unwrap_err().push(2);
    /// assert_eq!(lock.into_inner(), [1, 2]);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => Ok(this.mapped(value)),
            None => Err(this),
        }
    }

    /// Converts the guard to a mapped guard of the whole value, for code that expects one.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(1);
    /// *RwLockWriteGuard::into_mapped(lock.write().await) = 2;
    /// assert_eq!(lock.into_inner(), 2);
    /// # });
    /// ```
    #[inline]
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockWriteGuard::map(this, |value| value)
    }

    fn mapped<U: ?Sized>(self, value: *mut U) -> RwLockMappedWriteGuard<'a, U> {
        let permit = self.permit.pass(|AllPermits(lock)| SomePermits(&lock.permits, lock.whole()));
        RwLockMappedWriteGuard { permit, value, borrow: PhantomData }
    }

    /// Downgrades to a read guard, without letting another writer in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::RwLock;
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(1);
    /// let mut writer = lock.write().await;
    /// *writer = 2;
    /// let reader = writer.downgrade();
    /// assert_eq!((*reader, *lock.read().await), (2, 2));
    /// assert!(lock.try_write().is_err());
    /// # });
    /// ```
    #[inline]
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let lock = self.permit.source().0;
        RwLockReadGuard::of(lock, self.share())
    }

    /// Downgrades to a read guard of a component of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new((1, "one"));
    /// let first = RwLockWriteGuard::downgrade_map(lock.write().await, |pair| &pair.0);
    /// assert_eq!((*first, lock.read().await.1), (1, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let value = f(&*this) as *const U;
        RwLockReadGuard::part(this.share(), value)
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
    /// use blitz_io::sync::{RwLock, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(vec![1]);
    /// let writer = lock.write().await;
    /// let mut writer =
    ///     RwLockWriteGuard::try_downgrade_map(writer, |values| values.get(1)).unwrap_err();
    /// writer.push(2);
    /// let second = RwLockWriteGuard::try_downgrade_map(writer, |values| values.get(1));
    /// assert_eq!(*second.unwrap(), 2);
    /// # });
    /// ```
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&*this).map(|value| value as *const U) {
            Some(value) => Ok(RwLockReadGuard::part(this.share(), value)),
            None => Err(this),
        }
    }

    fn share(self) -> PermitGuard<Shared<'a>> {
        self.permit.pass(|AllPermits(lock)| {
            lock.let_readers_in();
            Shared(&lock.permits)
        })
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds all permits, so no other guard exists, and this one stays
        // borrowed for the lifetime of the result.
        self.permit.source().0.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds all permits, so no other guard exists, and this one stays
        // exclusively borrowed for the lifetime of the result.
        self.permit.source().0.value.with_mut(|value| unsafe { &mut *value })
    }
}

shown_as_its_value! { impl['a, T: ?Sized] RwLockWriteGuard<'a, T>, T }

/// Write guard of a component of an [`RwLock`]'s value; dropping it releases the lock.
///
/// Created by [`RwLockWriteGuard::map`]. A mapped guard cannot be downgraded, because the
/// component may be one that must not be read concurrently, such as the content of a cell.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
///
/// # blitz_io::run(async {
/// let lock = RwLock::new((1, "one"));
/// let mut first: RwLockMappedWriteGuard<'_, i32> =
///     RwLockWriteGuard::map(lock.write().await, |pair| &mut pair.0);
/// *first += 1;
/// drop(first);
/// assert_eq!(lock.into_inner(), (2, "one"));
/// # });
/// ```
#[must_use = "if unused, the lock is released immediately"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    permit: PermitGuard<SomePermits<'a>>,
    value: *mut T,
    borrow: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a `&mut T`, which is `Send` with `T: Send`, plus permits that any
// thread may give back.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: a shared guard only gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new(((1, 2), 3));
    /// let inner = RwLockWriteGuard::map(lock.write().await, |value| &mut value.0);
    /// *RwLockMappedWriteGuard::map(inner, |inner| &mut inner.1) = 5;
    /// assert_eq!(lock.into_inner(), ((1, 5), 3));
    /// # });
    /// ```
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let value = f(&mut *this) as *mut U;
        RwLockMappedWriteGuard { permit: this.permit, value, borrow: PhantomData }
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
    /// use blitz_io::sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    ///
    /// # blitz_io::run(async {
    /// let lock = RwLock::new((vec![1], "one"));
    /// let inner = RwLockWriteGuard::map(lock.write().await, |value| &mut value.0);
    /// assert!(RwLockMappedWriteGuard::try_map(inner, |inner| inner.get_mut(1)).is_err());
    /// # });
    /// ```
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        mut this: Self,
        f: F,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => {
                Ok(RwLockMappedWriteGuard { permit: this.permit, value, borrow: PhantomData })
            }
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for RwLockMappedWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer leads into the lock's value, and this guard holds all permits, so
        // no other guard exists; it stays borrowed for the lifetime of the result.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized> DerefMut for RwLockMappedWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the pointer leads into the lock's value, and this guard holds all permits, so
        // no other guard exists; it stays exclusively borrowed for the lifetime of the result.
        unsafe { &mut *self.value }
    }
}

shown_as_its_value! { impl['a, T: ?Sized] RwLockMappedWriteGuard<'a, T>, T }
