//! The book of release builds and models: nothing is written, nothing is read.

use super::{Awaited, Holder};
use crate::engine::work::task::cell::Id;

/// Where a lock was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller;

impl Caller {
    #[inline(always)]
    pub(crate) fn here() -> Self {
        Self
    }
}

/// What the book calls a lock.
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

/// That somebody holds a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry;

impl Entry {
    #[inline(always)]
    pub(crate) fn end(self) {}
}

/// That a task waits for a lock.
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

/// What a task waits for.
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "dumps read it"))]
pub(crate) fn awaited_by(_task: Id) -> Option<Awaited> {
    None
}
