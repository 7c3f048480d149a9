//! A cell that is written once, and that can be waited for.
//!
//! # Protocol
//! A [`Latch`] that opens when the value is there. The value is written under the lock
//! of the latch, so one writes, and one who is refused finds the value. Who sees the
//! latch open may read.
//!
//! # Rejected
//! A word for 'somebody writes', as in `once_cell.rs`: a second `set` would have to be
//! refused while there is no value yet.
//!
//! # Checked by
//! `a_set_against_a_wait_against_a_drop`, `who_is_refused_finds_the_value`,
//! `a_value_is_whole_for_who_waits`.

use std::{
    error::Error,
    fmt,
    future::Future,
    mem::{ManuallyDrop, MaybeUninit},
    pin::Pin,
    task::{Context, Poll},
};

use super::latch::{Latch, Stay};
use crate::engine::{prim::UnsafeCell, work::task::moment::Wait};

/// A cell that can be written only once, and whose value can be waited for.
///
/// A task that needs the value awaits [`wait`](Self::wait); whoever has it calls
/// [`set`](Self::set). Compared to a [`OnceCell`](super::OnceCell) those who wait have no
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

// SAFETY: the value moves with the cell.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: one writes, before all who read; `set` sends a value, `get` shares it.
unsafe impl<T: Sync + Send> Sync for SetOnce<T> {}

/// Error that can be returned from [`SetOnce::set`]; it carries the value back.
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

/// Waits for the latch.
struct Opening<'a> {
    latch: &'a Latch,
    stay: Stay,
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

    /// Creates a new empty `SetOnce`, also in a constant.
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

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self { latch: Latch::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Creates a new `SetOnce` that holds the value, if there is one.
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

    /// Creates a new `SetOnce` that holds the value, also in a constant.
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

    /// The same; the model checker's words are not made in constants.
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
        // SAFETY: 1. we saw the latch open.
        self.initialized().then(|| unsafe { self.value() })
    }

    /// Fills an empty `SetOnce`, and wakes all who wait for it.
    ///
    /// # Errors
    ///
    /// The value comes back if the cell is full already: [`get`](Self::get) finds what is
    /// in it.
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
            // SAFETY: the latch runs one such step, so nobody else writes, and nobody
            // reads before it is open. What is copied is forgotten below.
            self.value.with_mut(|slot| unsafe {
                (*slot).as_mut_ptr().copy_from_nonoverlapping(&raw const *value, 1);
            });
        });
        if set { Ok(()) } else { Err(SetOnceError(ManuallyDrop::into_inner(value))) }
    }

    /// Takes the value out of the cell, which ends.
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

    /// Waits until there is a value, and returns a reference to it.
    ///
    /// Each call takes one unit of the task's budget, if there is one. Without it a call
    /// that need not wait is put off, once.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped takes nothing with it.
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
        Opening { latch: &self.latch, stay: Stay::new() }.await;
        // SAFETY: 1. the wait ends when the latch is open.
        unsafe { self.value() }
    }

    /// # Safety
    /// 1. The caller saw the latch open.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: by 1. the value is there, and is not written any more.
        unsafe { &*self.value.with(|value| (*value).as_ptr()) }
    }

    fn take_value(&mut self) -> Option<T> {
        if !self.initialized() {
            return None;
        }
        self.latch.shut();
        // SAFETY: the latch was open, so the value is there, and the borrow is the only
        // one; now it is shut, so the value is read once.
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
    fn stay(self: Pin<&Self>) -> Pin<&Stay> {
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
        // SAFETY: 1. it is. 2. `Drop` does.
        unsafe { this.latch.poll(this.stay(), cx, Wait::Cell) }
    }
}

impl Drop for Opening<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. it is.
        unsafe { this.latch.leave(this.stay()) };
    }
}

#[cfg(test)]
mod models;
