//! Guards that keep their mutex alive and borrow nothing.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{AllPermits, CallSite, Mutex, PermitGuard};
use crate::sync::permit_guard::shown_as_its_value;

/// Owned guard of a locked [`Mutex`] in an [`Arc`]; dropping it unlocks the mutex.
///
/// Created by [`Mutex::lock_owned`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{Mutex, OwnedMutexGuard};
///
/// # blitz_io::run(async {
/// let mutex = Arc::new(Mutex::new(1));
/// let mut guard: OwnedMutexGuard<i32> = mutex.clone().lock_owned().await;
/// blitz_io::spawn(async move { *guard = 2 }).await.unwrap();
/// assert_eq!(*mutex.lock().await, 2);
/// # });
/// ```
#[must_use = "if unused, the mutex is unlocked immediately"]
pub struct OwnedMutexGuard<T: ?Sized> {
    permit: PermitGuard<AllPermits<Arc<Mutex<T>>>>,
    /// Stands for the value, so that the guard is `Sync` only if the value is. Boxed, because
    /// the guard is `Unpin` even if the value is not.
    value: PhantomData<Box<T>>,
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// Creates a guard; the caller must have taken the permit.
    #[inline]
    pub(super) fn new(mutex: Arc<Mutex<T>>, caller: CallSite) -> Self {
        let entry = mutex.name.enter(caller);
        Self { permit: PermitGuard::new(AllPermits(mutex), entry), value: PhantomData }
    }

    /// Creates a guard of a component of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{Mutex, OwnedMutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new((1, "one")));
    /// *OwnedMutexGuard::map(mutex.clone().lock_owned().await, |pair| &mut pair.0) = 2;
    /// assert_eq!(*mutex.lock().await, (2, "one"));
    /// # });
    /// ```
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let value = f(&mut *this) as *mut U;
        OwnedMappedMutexGuard { permit: this.permit, value }
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
    /// use blitz_io::sync::{Mutex, OwnedMutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new(vec![1]));
    /// let guard = mutex.clone().lock_owned().await;
    /// let guard = OwnedMutexGuard::try_map(guard, |values| values.get_mut(1)).unwrap_err();
    /// *OwnedMutexGuard::try_map(guard, |values| values.get_mut(0)).unwrap() = 2;
    /// assert_eq!(*mutex.lock().await, [2]);
    /// # });
    /// ```
    #[inline]
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut *this).map(|value| value as *mut U) {
            Some(value) => Ok(OwnedMappedMutexGuard { permit: this.permit, value }),
            None => Err(this),
        }
    }

    /// Returns the mutex that this guard locks.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{Mutex, OwnedMutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new(1));
    /// let guard = mutex.clone().lock_owned().await;
    /// assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    /// # });
    /// ```
    #[inline]
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.permit.source().0
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the only permit, so no other guard exists, and this one stays
        // borrowed for the lifetime of the result.
        self.permit.source().0.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the only permit, so no other guard exists, and this one stays
        // exclusively borrowed for the lifetime of the result.
        self.permit.source().0.value.with_mut(|value| unsafe { &mut *value })
    }
}

shown_as_its_value! { impl[T: ?Sized] OwnedMutexGuard<T>, T }

/// Owned guard of a component of the value of a [`Mutex`] in an [`Arc`]; dropping it unlocks
/// the mutex.
///
/// Created by [`OwnedMutexGuard::map`].
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
///
/// # blitz_io::run(async {
/// let mutex = Arc::new(Mutex::new((1, "one")));
/// let guard = mutex.clone().lock_owned().await;
/// let mut first: OwnedMappedMutexGuard<_, i32> =
///     OwnedMutexGuard::map(guard, |pair| &mut pair.0);
/// blitz_io::spawn(async move { *first = 2 }).await.unwrap();
/// assert_eq!(mutex.lock().await.0, 2);
/// # });
/// ```
#[must_use = "if unused, the mutex is unlocked immediately"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    permit: PermitGuard<AllPermits<Arc<Mutex<T>>>>,
    value: *mut U,
}

// SAFETY: the guard is a `&mut U` plus an `Arc` of a mutex, and the thread that drops the guard may
// drop the mutex's `T`; both bounds are `Send`.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: a shared guard only gives out `&U`.
unsafe impl<T, U> Sync for OwnedMappedMutexGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// Creates a guard of a component of this guard's value.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new(((1, 2), 3)));
    /// let guard = mutex.clone().lock_owned().await;
    /// let inner = OwnedMutexGuard::map(guard, |value| &mut value.0);
    /// *OwnedMappedMutexGuard::map(inner, |inner| &mut inner.1) = 5;
    /// assert_eq!(*mutex.lock().await, ((1, 5), 3));
    /// # });
    /// ```
    #[inline]
    pub fn map<S, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, S>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> &mut S,
    {
        let value = f(&mut *this) as *mut S;
        OwnedMappedMutexGuard { permit: this.permit, value }
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
    /// use blitz_io::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new((vec![1], "one")));
    /// let inner = OwnedMutexGuard::map(mutex.lock_owned().await, |value| &mut value.0);
    /// assert!(OwnedMappedMutexGuard::try_map(inner, |inner| inner.get_mut(1)).is_err());
    /// # });
    /// ```
    #[inline]
    pub fn try_map<S, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, S>, Self>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match f(&mut *this).map(|value| value as *mut S) {
            Some(value) => Ok(OwnedMappedMutexGuard { permit: this.permit, value }),
            None => Err(this),
        }
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedMappedMutexGuard<T, U> {
    type Target = U;

    #[inline]
    fn deref(&self) -> &U {
        // SAFETY: the pointer leads into the mutex's value, to which this guard has exclusive
        // access while it holds the permit, and the `Arc` keeps the value in place.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized, U: ?Sized> DerefMut for OwnedMappedMutexGuard<T, U> {
    #[inline]
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: the pointer leads into the mutex's value, to which this guard has exclusive
        // access while it holds the permit, and the `Arc` keeps the value in place. The guard stays
        // exclusively borrowed for the lifetime of the result.
        unsafe { &mut *self.value }
    }
}

shown_as_its_value! { impl[T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U>, U }
