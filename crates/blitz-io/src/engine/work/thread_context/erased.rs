//! Pointers to types of later layers, which this layer may not name.
//!
//! The context has a key for each such pointer, and the layer that owns the type implements
//! [`ErasedKey`] for it, once. So a pointer is converted to its type here and nowhere else, and
//! never to a wrong one.

use std::{
    marker::PhantomData,
    ptr::{self, NonNull},
};

/// Names the type that pointers with this key point to.
pub(crate) trait ErasedKey {
    /// The type, which belongs to a later layer.
    type Target;
}

/// A pointer to the type that `K` stands for, or null.
pub(crate) struct Erased<K> {
    pointer: *const (),
    _key: PhantomData<fn() -> K>,
}

impl<K> Clone for Erased<K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Erased<K> {}

impl<K> Erased<K> {
    /// Returns the null pointer.
    #[inline(always)]
    pub(crate) const fn null() -> Self {
        Self { pointer: ptr::null(), _key: PhantomData }
    }

    /// Returns true if the pointer is null.
    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// Returns the pointer without its type, or `None` if it is null.
    pub(super) fn untyped(self) -> Option<NonNull<()>> {
        NonNull::new(self.pointer.cast_mut())
    }
}

impl<K: ErasedKey> Erased<K> {
    /// Erases the type of a pointer.
    #[inline(always)]
    pub(crate) fn new(pointer: *const K::Target) -> Self {
        Self { pointer: pointer.cast(), _key: PhantomData }
    }

    /// Returns the pointer with its type.
    #[inline(always)]
    pub(crate) fn get(self) -> *const K::Target {
        self.pointer.cast()
    }
}
