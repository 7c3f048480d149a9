//! The registry of lock holders in release builds and models: nothing is written or read.

use super::{AwaitedLock, Holder};
use crate::engine::work::task::cell::Id;

/// The source location at which a lock was requested, which is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSite;

impl CallSite {
    #[inline(always)]
    pub(crate) fn caller() -> Self {
        Self
    }
}

/// The number by which the registry knows a lock, which is not kept.
#[derive(Debug)]
pub(crate) struct LockId;

impl LockId {
    pub(crate) const fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn enter(&self, _at: CallSite) -> HolderEntry {
        HolderEntry
    }

    pub(crate) fn holders(&self) -> Vec<Holder> {
        Vec::new()
    }
}

/// The record that a lock is held, which is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderEntry;

impl HolderEntry {
    #[inline(always)]
    pub(crate) fn end(self) {}
}

/// The record that a task waits for a lock, which is not kept.
#[derive(Debug)]
pub(crate) struct WaitEntry;

impl WaitEntry {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, _lock: &LockId, _at: CallSite) {}

    #[inline(always)]
    pub(crate) fn end(&mut self) {}
}

/// Returns the lock that a task waits for, which is not known.
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "dumps read it"))]
pub(crate) fn awaited_by(_task: Id) -> Option<AwaitedLock> {
    None
}
