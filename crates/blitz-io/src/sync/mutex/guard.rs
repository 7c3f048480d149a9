//! Guards that borrow their mutex.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use super::{AllPermits, CallSite, Mutex, PermitGuard};
use crate::sync::permit_guard::{OnePermit, shown_as_its_value};

/// Guard of a locked [`Mutex`], with access to its value; dropping it unlocks the mutex.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{Mutex, MutexGuard};
///
/// # blitz_io::run(async {
/// let mutex = Mutex::new(1);
/// let mut guard: MutexGuard<'_, i32> = mutex.lock().await;
/// *guard += 1;
/// assert_eq!(*guard, 2);
/// # });
/// ```
#[must_use = "if unused, the mutex is unlocked immediately"]
pub struct MutexGuard<'a, T: ?Sized> {
    permit: PermitGuard<AllPermits<&'a Mutex<T>>>,
    /// Stands for the borrowed value, so that the guard is `Sync` only if the value is.
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Creates a guard; the caller must have taken the permit.
    #[inline]
    pub(super) fn new(mutex: &'a Mutex<T>, caller: CallSite) -> Self {
        Self {
            permit: PermitGuard::new(AllPermits(mutex), mutex.name.enter(caller)),
            value: PhantomData,
        }
    }

    /// Creates a guard of a component of the value.
    ///
    /// This is an associated function, because a method would hide a method of the same name
    /// on the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{Mutex, MutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new((1, "one"));
    /// *MutexGuard::map(mutex.lock().await, |pair| &mut pair.0) = 2;
    /// assert_eq!(*mutex.lock().await, (2, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
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
    /// use blitz_io::sync::{Mutex, MutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new(vec![1]);
    /// let second = MutexGuard::try_map(mutex.lock().await, |values| values.get_mut(1));
    /// let guard = second.unwrap_err();
    /// *MutexGuard::try_map(guard, |values| values.get_mut(0)).unwrap() = 2;
    /// assert_eq!(*mutex.lock().await, [2]);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => Ok(this.mapped(value)),
            None => Err(this),
        }
    }

    fn mapped<U: ?Sized>(self, value: *mut U) -> MappedMutexGuard<'a, U> {
        let permit = self.permit.pass(|AllPermits(mutex)| OnePermit(&mutex.permits));
        MappedMutexGuard { permit, value, borrow: PhantomData }
    }

    /// Returns the mutex that this guard locks.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{Mutex, MutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.lock().await;
    /// assert!(MutexGuard::mutex(&guard).try_lock().is_err());
    /// # });
    /// ```
    #[inline]
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.permit.source().0
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the only permit, so no other guard exists, and this one stays
        // borrowed for the lifetime of the result.
        self.permit.source().0.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the only permit, so no other guard exists, and this one stays
        // exclusively borrowed for the lifetime of the result.
        self.permit.source().0.value.with_mut(|value| unsafe { &mut *value })
    }
}

shown_as_its_value! { impl['a, T: ?Sized] MutexGuard<'a, T>, T }

/// Guard of a component of a [`Mutex`]'s value; dropping it unlocks the mutex.
///
/// Created by [`MutexGuard::map`].
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{MappedMutexGuard, Mutex, MutexGuard};
///
/// # blitz_io::run(async {
/// let mutex = Mutex::new((1, "one"));
/// let mut first: MappedMutexGuard<'_, i32> =
///     MutexGuard::map(mutex.lock().await, |pair| &mut pair.0);
/// *first += 1;
/// drop(first);
/// assert_eq!(mutex.into_inner(), (2, "one"));
/// # });
/// ```
#[must_use = "if unused, the mutex is unlocked immediately"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    permit: PermitGuard<OnePermit<'a>>,
    value: *mut T,
    borrow: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a `&mut T`, which is `Send` with `T: Send`, plus a permit that any
// thread may give back.
unsafe impl<'a, T: ?Sized + Send + 'a> Send for MappedMutexGuard<'a, T> {}
// SAFETY: a shared guard only gives out `&T`.
unsafe impl<'a, T: ?Sized + Sync + 'a> Sync for MappedMutexGuard<'a, T> {}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::{MappedMutexGuard, Mutex, MutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new(((1, 2), 3));
    /// let inner = MutexGuard::map(mutex.lock().await, |value| &mut value.0);
    /// *MappedMutexGuard::map(inner, |inner| &mut inner.1) = 5;
    /// assert_eq!(mutex.into_inner(), ((1, 5), 3));
    /// # });
    /// ```
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let value = f(&mut *this) as *mut U;
        MappedMutexGuard { permit: this.permit, value, borrow: PhantomData }
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
    /// use blitz_io::sync::{MappedMutexGuard, Mutex, MutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Mutex::new((vec![1], "one"));
    /// let inner = MutexGuard::map(mutex.lock().await, |value| &mut value.0);
    /// assert!(MappedMutexGuard::try_map(inner, |inner| inner.get_mut(1)).is_err());
    /// # });
    /// ```
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => Ok(MappedMutexGuard { permit: this.permit, value, borrow: PhantomData }),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for MappedMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer leads into the mutex's value, to which this guard has exclusive
        // access while it holds the permit; the guard stays borrowed for the lifetime of the
        // result.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized> DerefMut for MappedMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the pointer leads into the mutex's value, to which this guard has exclusive
        // access while it holds the permit; the guard stays exclusively borrowed for the lifetime
        // of the result.
        unsafe { &mut *self.value }
    }
}

shown_as_its_value! { impl['a, T: ?Sized] MappedMutexGuard<'a, T>, T }
