//! What a guard gives back when it ends: the part that all guards share.
//!
//! A [`Hold`] is permits that were taken and are not given back yet, with the entry in
//! the book of holders. Guards are made of one and have no destructor of their own, so
//! that mapping a guard is taking it apart.
//!
//! # Invariants
//! - Whoever makes a hold has taken what its lender gives back.
//! - The entry in the book ends before the permits go back: the book never shows two
//!   who exclude each other.
//! - A lender that owns its lock (an `Arc`) lets go of it after the permits went back:
//!   the fields of a hold are dropped after its destructor ran.
//!
//! # Checked by
//! `a_mutex_excludes`, `an_owned_guard_that_ends_against_a_waiter_frees_once`; weakened as
//! `hold_gives_back`, `hold_gives_back_once`.

use std::{fmt, mem::ManuallyDrop, ops::Deref, ptr};

use crate::engine::{
    prim::weakened,
    wait::{holders::Entry, permits::Permits},
};

/// A lock that stands on permits.
pub(crate) trait Lock {
    fn permits(&self) -> &Permits;

    /// How many permits are the whole lock.
    fn whole(&self) -> usize;

    /// How many are the part of one who shares it.
    #[inline]
    fn part(&self) -> usize {
        1
    }
}

/// Knows what was taken from whom.
pub(crate) trait Lender {
    fn give_back(&self);
}

/// All permits of a lock, by whatever points to it.
pub(crate) struct Whole<P>(pub(crate) P);

impl<P: Deref<Target: Lock>> Lender for Whole<P> {
    #[inline]
    fn give_back(&self) {
        self.0.permits().release(self.0.whole());
    }
}

/// One's part of a lock, by whatever points to it.
pub(crate) struct Part<P>(pub(crate) P);

impl<P: Deref<Target: Lock>> Lender for Part<P> {
    #[inline]
    fn give_back(&self) {
        self.0.permits().release(self.0.part());
    }
}

/// One permit of a lock of any type.
pub(crate) struct One<'a>(pub(crate) &'a Permits);

impl Lender for One<'_> {
    #[inline]
    fn give_back(&self) {
        self.0.release(1);
    }
}

/// Some permits of a lock of any type.
pub(crate) struct Many<'a>(pub(crate) &'a Permits, pub(crate) usize);

impl Lender for Many<'_> {
    #[inline]
    fn give_back(&self) {
        self.0.release(self.1);
    }
}

/// See the module.
pub(crate) struct Hold<L: Lender> {
    lender: L,
    entry: Entry,
}

impl<L: Lender> Hold<L> {
    #[inline]
    pub(crate) fn new(lender: L, entry: Entry) -> Self {
        Self { lender, entry }
    }

    #[inline]
    pub(crate) fn lender(&self) -> &L {
        &self.lender
    }

    /// The same permits, or what is left of them, under another lender. `f` must not
    /// panic: they would be lost.
    #[inline]
    pub(crate) fn pass<M: Lender>(self, f: impl FnOnce(L) -> M) -> Hold<M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, and its lender is read once.
        let lender = unsafe { ptr::read(&this.lender) };
        Hold { lender: f(lender), entry: this.entry }
    }
}

impl<L: Lender> Drop for Hold<L> {
    #[inline]
    fn drop(&mut self) {
        self.entry.end();
        if !weakened!("hold_gives_back") {
            self.lender.give_back();
        }
        if weakened!("hold_gives_back_once") {
            self.lender.give_back();
        }
    }
}

/// Shows a guard as what it guards.
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

/// Shows a lock with its value, or that somebody has it.
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
