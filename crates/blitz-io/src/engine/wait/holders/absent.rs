//! The book of lock holders in release builds and models: nothing is written or read.

use super::{Awaited, Holder};
use crate::engine::work::task::cell::Id;

/// The source location at which a lock was requested, which is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller;

impl Caller {
    #[inline(always)]
    pub(crate) fn here() -> Self {
        Self
    }
}

/// The number by which the book knows a lock, which is not kept.
#[derive(Debug)]
pub(crate) struct Name;

impl Name {
    pub(crate) const fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn enter(&self, _at: Caller) -> Entry {
        Entry
    }

    pub(crate) fn holders(&self) -> Vec<Holder> {
        Vec::new()
    }
}

/// The record that a lock is held, which is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry;

impl Entry {
    #[inline(always)]
    pub(crate) fn end(self) {}
}

/// The record that a task waits for a lock, which is not kept.
#[derive(Debug)]
pub(crate) struct Awaiting;

impl Awaiting {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, _lock: &Name, _at: Caller) {}

    #[inline(always)]
    pub(crate) fn end(&mut self) {}
}

/// Returns the lock that a task waits for, which is not known.
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "dumps read it"))]
pub(crate) fn awaited_by(_task: Id) -> Option<Awaited> {
    None
}
