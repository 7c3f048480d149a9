//! A cell that is written once, with a value that can be awaited.
//!
//! # Protocol
//! A [`Latch`] opens when the value is there. The value is written under the latch's lock, so only
//! one caller writes, and after a `set` that fails its caller finds the value. A caller that sees
//! the latch open may read.
//!
//! # Rejected
//! A state 'being written', as in `once_cell.rs`: a second `set` would have to fail while
//! there is no value yet.
//!
//! # Checked by
//! `a_set_against_a_wait_against_a_drop`, `a_refused_setter_finds_the_value`,
//! `a_value_is_whole_for_a_waiter`.

use std::{
    error::Error,
    fmt,
    future::Future,
    mem::{ManuallyDrop, MaybeUninit},
    pin::Pin,
    task::{Context, Poll},
};

use super::latch::{Latch, LatchWait};
use crate::engine::{prim::UnsafeCell, work::task::timestamp::WaitReason};

/// A cell that can be written only once, with a value that can be awaited.
///
/// A task that needs the value awaits [`wait`](Self::wait); the task that has the value calls
/// [`set`](Self::set). Unlike with a [`OnceCell`](super::OnceCell), waiting tasks bring no
/// initialiser of their own.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::SetOnce;
///
/// static ADDRESS: SetOnce<String> = SetOnce::const_new();
///
/// # blitz_io::run(async {
/// let client = blitz_io::spawn(async { ADDRESS.wait().await.len() });
/// ADDRESS.set("localhost".to_owned()).unwrap();
/// assert_eq!(client.await.unwrap(), 9);
/// # });
/// ```
pub struct SetOnce<T> {
    latch: Latch,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the cell owns the value, so sending the cell sends a `T`, which is `Send`.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: one thread writes, before all threads that read; `set` sends a value to other
// threads (`T: Send`), `get` shares it with them (`T: Sync`).
unsafe impl<T: Sync + Send> Sync for SetOnce<T> {}

/// Error of [`SetOnce::set`] on a full cell; carries the value that was not stored.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{SetOnce, SetOnceError};
///
/// let cell = SetOnce::new_with(Some(1));
/// assert_eq!(cell.set(2), Err(SetOnceError(2)));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

/// Future that waits until the latch is open.
struct Opening<'a> {
    latch: &'a Latch,
    stay: LatchWait,
}

impl<T> SetOnce<T> {
    /// Creates a new empty `SetOnce`.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::SetOnce::<u8>::new();
    /// assert_eq!(cell.get(), None);
    /// ```
    pub fn new() -> Self {
        Self::const_new()
    }

    /// Creates a new empty `SetOnce`, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::SetOnce;
    ///
    /// static CELL: SetOnce<u8> = SetOnce::const_new();
    ///
    /// assert!(!CELL.initialized());
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new() -> Self {
        Self { latch: Latch::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Creates a new empty `SetOnce`; not `const`, because the model checker's atomics are not.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self { latch: Latch::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Creates a new `SetOnce` that holds `value`, or is empty if that is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::SetOnce;
    ///
    /// assert_eq!(SetOnce::new_with(Some(1)).get(), Some(&1));
    /// assert_eq!(SetOnce::<u8>::new_with(None).get(), None);
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::const_new_with)
    }

    /// Creates a new `SetOnce` that holds `value`, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::SetOnce;
    ///
    /// static CELL: SetOnce<u8> = SetOnce::const_new_with(1);
    ///
    /// assert_eq!(CELL.get(), Some(&1));
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new_with(value: T) -> Self {
        Self { latch: Latch::new(true), value: UnsafeCell::new(MaybeUninit::new(value)) }
    }

    /// Creates a new `SetOnce` that holds `value`; not `const`, because the model checker's
    /// atomics are not.
    #[cfg(blitz_loom)]
    pub fn const_new_with(value: T) -> Self {
        Self { latch: Latch::new(true), value: UnsafeCell::new(MaybeUninit::new(value)) }
    }

    /// Returns `true` if the `SetOnce` holds a value.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::SetOnce::new();
    /// cell.set(1).unwrap();
    /// assert!(cell.initialized());
    /// ```
    #[inline]
    pub fn initialized(&self) -> bool {
        self.latch.is_open()
    }

    /// Returns a reference to the value, or `None` if the cell is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::SetOnce::new();
    /// assert_eq!(cell.get(), None);
    /// cell.set("full").unwrap();
    /// assert_eq!(cell.get(), Some(&"full"));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: 1. `initialized` saw the latch open.
        self.initialized().then(|| unsafe { self.value() })
    }

    /// Stores `value` in an empty `SetOnce` and wakes all tasks that wait for it.
    ///
    /// # Errors
    ///
    /// Returns `value` in a [`SetOnceError`] if the cell holds a value already; that one is
    /// returned by [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::SetOnce::new();
    /// assert!(cell.set(1).is_ok());
    /// assert_eq!(cell.set(2).unwrap_err().0, 2);
    /// assert_eq!(cell.get(), Some(&1));
    /// ```
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        if self.initialized() {
            return Err(SetOnceError(value));
        }
        let value = ManuallyDrop::new(value);
        let set = self.latch.open_with(|| {
            // SAFETY: the latch runs one such step, so no other thread writes, and none reads
            // before the latch is open. What is copied here is not dropped twice, because `value`
            // is a `ManuallyDrop` that is unwrapped only if this step did not run.
            self.value.with_mut(|slot| unsafe {
                (*slot).as_mut_ptr().copy_from_nonoverlapping(&raw const *value, 1);
            });
        });
        if set { Ok(()) } else { Err(SetOnceError(ManuallyDrop::into_inner(value))) }
    }

    /// Consumes the cell and returns its value, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::SetOnce::new_with(Some(1));
    /// assert_eq!(cell.into_inner(), Some(1));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.take_value()
    }

    /// Waits until the cell holds a value and returns a reference to it.
    ///
    /// Each call consumes one unit of the task's budget, if there is one. Without budget, a call
    /// that could return at once is deferred to the task's next poll, but only once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future has no effect on the cell.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::SetOnce;
    ///
    /// # blitz_io::run(async {
    /// let cell = SetOnce::new();
    /// let (value, set) = blitz_io::join!(cell.wait(), async { cell.set(1) });
    /// assert_eq!((value, set), (&1, Ok(())));
    /// # });
    /// ```
    pub async fn wait(&self) -> &T {
        Opening { latch: &self.latch, stay: LatchWait::new() }.await;
        // SAFETY: 1. `Opening` completes when it has seen the latch open.
        unsafe { self.value() }
    }

    /// Returns the value.
    ///
    /// # Safety
    /// 1. The caller saw the latch open.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: by our obligation 1 the value is there, and it is not written any more.
        unsafe { &*self.value.with(|value| (*value).as_ptr()) }
    }

    fn take_value(&mut self) -> Option<T> {
        if !self.initialized() {
            return None;
        }
        self.latch.shut();
        // SAFETY: the latch was open, so the value is there, and the exclusive borrow excludes
        // other references. The latch is shut now, so the value is read only once.
        Some(self.value.with_mut(|value| unsafe { (*value).assume_init_read() }))
    }
}

impl<T> Drop for SetOnce<T> {
    #[inline]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            drop(self.take_value());
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce").field("value", &self.get()).finish()
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetOnceError")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}

impl Opening<'_> {
    fn stay(self: Pin<&Self>) -> Pin<&LatchWait> {
        // SAFETY: the stay is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.stay) }
    }
}

impl Future for Opening<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_ref();
        // SAFETY: 1. the stay is used with this latch only. 2. `Drop` calls `leave`.
        unsafe { this.latch.poll(this.stay(), cx, WaitReason::Cell) }
    }
}

impl Drop for Opening<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. the stay is used with this latch only.
        unsafe { this.latch.leave(this.stay()) };
    }
}

#[cfg(test)]
mod models;
