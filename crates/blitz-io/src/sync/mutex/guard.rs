//! Guards that borrow their mutex.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use super::{Caller, Hold, Mutex, Whole};
use crate::sync::hold::{One, shown_as_its_value};

/// The right to a [`Mutex`]'s value; the mutex is free when this is dropped.
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
#[must_use = "the mutex is free again at once if this is not kept"]
pub struct MutexGuard<'a, T: ?Sized> {
    hold: Hold<Whole<&'a Mutex<T>>>,
    /// What it lends; this says that it is `Sync` only if the value is.
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The caller has taken the permit.
    #[inline]
    pub(super) fn new(mutex: &'a Mutex<T>, caller: Caller) -> Self {
        Self { hold: Hold::new(Whole(mutex), mutex.name.enter(caller)), value: PhantomData }
    }

    /// Makes a guard of a part of the value.
    ///
    /// It is an associated function, because a method would hide one of the value's.
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

    /// Makes a guard of a part of the value, if `f` finds it.
    ///
    /// # Errors
    ///
    /// The guard itself, if it does not.
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
        let hold = self.hold.pass(|Whole(mutex)| One(&mutex.permits));
        MappedMutexGuard { hold, value, lent: PhantomData }
    }

    /// Returns the mutex.
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
        this.hold.lender().0
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we have the permit, so nobody else has a guard, and this one is
        // borrowed for as long.
        self.hold.lender().0.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as `deref`, and this guard is borrowed by one.
        self.hold.lender().0.value.with_mut(|value| unsafe { &mut *value })
    }
}

shown_as_its_value! { impl['a, T: ?Sized] MutexGuard<'a, T>, T }

/// The right to a part of a [`Mutex`]'s value; the mutex is free when this is dropped.
///
/// Made by [`MutexGuard::map`].
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
#[must_use = "the mutex is free again at once if this is not kept"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    hold: Hold<One<'a>>,
    value: *mut T,
    lent: PhantomData<&'a mut T>,
}

// SAFETY: it is a `&mut T` with a lock that any thread may give back.
unsafe impl<'a, T: ?Sized + Send + 'a> Send for MappedMutexGuard<'a, T> {}
// SAFETY: a shared guard lends `&T` only.
unsafe impl<'a, T: ?Sized + Sync + 'a> Sync for MappedMutexGuard<'a, T> {}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// Makes a guard of a part of the part.
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
        MappedMutexGuard { hold: this.hold, value, lent: PhantomData }
    }

    /// Makes a guard of a part of the part, if `f` finds it.
    ///
    /// # Errors
    ///
    /// The guard itself, if it does not.
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
            Some(value) => Ok(MappedMutexGuard { hold: this.hold, value, lent: PhantomData }),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for MappedMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it points into the value, which is ours while we have the permit.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized> DerefMut for MappedMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as `deref`, and this guard is borrowed by one.
        unsafe { &mut *self.value }
    }
}

shown_as_its_value! { impl['a, T: ?Sized] MappedMutexGuard<'a, T>, T }
