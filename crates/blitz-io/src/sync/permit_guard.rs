//! The permits that a guard gives back when it is dropped: the part that all guards share.
//!
//! A [`PermitGuard`] stands for permits that were taken and not given back yet, together with the
//! entry in the record of lock holders. The public guards contain a `PermitGuard` and have no
//! destructor of their own, so mapping a guard only has to take it apart.
//!
//! # Invariants
//! - The code that creates a `PermitGuard` has taken the permits that its source gives back.
//! - The entry of a holder ends before its permits are given back, so the record never shows
//!   two holders that exclude each other.
//! - A source that owns its lock (an `Arc`) drops it after the permits were given back, because the
//!   fields of a `PermitGuard` are dropped after its destructor ran.
//!
//! # Checked by
//! `a_mutex_excludes`, `an_owned_guard_that_ends_against_a_waiter_frees_once`; weakened as
//! `permit_guard_gives_back`, `permit_guard_gives_back_once`.

use std::{fmt, mem::ManuallyDrop, ops::Deref, ptr};

use crate::engine::{
    prim::weakened,
    wait::{holders::HolderEntry, permits::Permits},
};

/// A lock that is built on permits.
pub(crate) trait Lock {
    fn permits(&self) -> &Permits;

    /// Returns the number of permits that make up the whole lock.
    fn whole(&self) -> usize;

    /// Returns the number of permits of one holder that shares the lock.
    #[inline]
    fn part(&self) -> usize {
        1
    }
}

/// Source of the permits of a [`PermitGuard`]: knows how many were taken and where they go back.
pub(crate) trait PermitSource {
    fn give_back(&self);
}

/// All permits of the lock that `P` points to.
pub(crate) struct AllPermits<P>(pub(crate) P);

impl<P: Deref<Target: Lock>> PermitSource for AllPermits<P> {
    #[inline]
    fn give_back(&self) {
        self.0.permits().release(self.0.whole());
    }
}

/// The permits of one holder that shares the lock that `P` points to.
pub(crate) struct OneShare<P>(pub(crate) P);

impl<P: Deref<Target: Lock>> PermitSource for OneShare<P> {
    #[inline]
    fn give_back(&self) {
        self.0.permits().release(self.0.part());
    }
}

/// OnePermit permit of a lock, without the type of the lock's value.
pub(crate) struct OnePermit<'a>(pub(crate) &'a Permits);

impl PermitSource for OnePermit<'_> {
    #[inline]
    fn give_back(&self) {
        self.0.release(1);
    }
}

/// Some permits of a lock, without the type of the lock's value.
pub(crate) struct SomePermits<'a>(pub(crate) &'a Permits, pub(crate) usize);

impl PermitSource for SomePermits<'_> {
    #[inline]
    fn give_back(&self) {
        self.0.release(self.1);
    }
}

/// Permits that were taken and are given back when this is dropped, and their holder's entry
/// in the record of lock holders.
pub(crate) struct PermitGuard<L: PermitSource> {
    source: L,
    entry: HolderEntry,
}

impl<L: PermitSource> PermitGuard<L> {
    #[inline]
    pub(crate) fn new(source: L, entry: HolderEntry) -> Self {
        Self { source, entry }
    }

    #[inline]
    pub(crate) fn source(&self) -> &L {
        &self.source
    }

    /// Passes the permits, or those that `f` keeps, to another source. `f` must not panic, because
    /// the permits would be lost.
    #[inline]
    pub(crate) fn pass<M: PermitSource>(self, f: impl FnOnce(L) -> M) -> PermitGuard<M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is a `ManuallyDrop` and not dropped, so its source is read only once.
        let source = unsafe { ptr::read(&this.source) };
        PermitGuard { source: f(source), entry: this.entry }
    }
}

impl<L: PermitSource> Drop for PermitGuard<L> {
    #[inline]
    fn drop(&mut self) {
        self.entry.end();
        if !weakened!("permit_guard_gives_back") {
            self.source.give_back();
        }
        if weakened!("permit_guard_gives_back_once") {
            self.source.give_back();
        }
    }
}

/// Implements `Debug` and `Display` of a guard by those of the value that it guards.
macro_rules! shown_as_its_value {
    (impl[$($generics:tt)*] $guard:ty, $value:ident) => {
        impl<$($generics)*> std::fmt::Debug for $guard
        where
            $value: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($generics)*> std::fmt::Display for $guard
        where
            $value: std::fmt::Display,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&**self, f)
            }
        }
    };
}
pub(crate) use shown_as_its_value;

/// Formats a lock with its value, or as locked if `value` is `None`.
pub(crate) fn show_lock<T: fmt::Debug + ?Sized>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<&T>,
) -> fmt::Result {
    let mut shown = f.debug_struct(name);
    match value {
        Some(value) => shown.field("data", &value),
        None => shown.field("data", &format_args!("<locked>")),
    };
    shown.finish()
}
