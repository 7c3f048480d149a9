//! Watches tasks of a `LocalSet` that are polled by a `block_on` of a multi-thread runtime.
//!
//! The thread of such a `block_on` holds no core, and the tasks cannot run on another thread. So,
//! as with fibers ([`carrier`](super::carrier)), they are marked, reported and counted, and nothing
//! is taken.
//!
//! Most futures in a `block_on` poll no such set, and pay nothing: the thread takes a *slot* in the
//! monitor's list, after the workers and the threads that run fibers, when a set is about to run
//! tasks, and leaves it when the `block_on` ends. The number of slots is small. A thread that finds
//! none free is not watched.

use std::{
    cell::{Cell, RefCell},
    ptr::NonNull,
    sync::Arc,
};

use super::{Pool, WatchRecord, WatchedPool};
use crate::engine::{
    prim::lock,
    work::thread_context::{
        self, LeaseGuard, WatchedBlockOnKey,
        erased::{Erased, ErasedKey},
    },
};

/// Number of slots. A program has one thread that runs a `LocalSet`, or one for each core; picked.
/// (Models have none, because they have enough to explore.)
pub(super) const BLOCK_ON_SLOTS: usize = if cfg!(blitz_loom) { 0 } else { 8 };

/// A `block_on` that the monitor watches once it polls a set of local tasks.
pub(crate) struct WatchedBlockOn<'a> {
    pool: &'a Arc<Pool>,
    slot: RefCell<Option<BlockOnSlot>>,
    /// Set while the monitor knows that there is something to run.
    busy: Cell<bool>,
}

struct BlockOnSlot {
    /// Must be dropped before `watch_record`, because it refers to the lease in there.
    _lease_guard: LeaseGuard,
    watch_record: Arc<WatchRecord>,
    number: usize,
}

impl ErasedKey for WatchedBlockOnKey {
    type Target = WatchedBlockOn<'static>;
}

impl<'a> WatchedBlockOn<'a> {
    /// Creates the record of a `block_on` that may be watched. Returns `None` if the pool is not
    /// watched.
    pub(crate) fn new(pool: &'a Arc<Pool>) -> Option<Self> {
        pool.watched.as_ref()?;
        Some(Self { pool, slot: RefCell::new(None), busy: Cell::new(false) })
    }

    /// Makes this the `block_on` that sets of local tasks on this thread notify, until the returned
    /// guard is dropped.
    pub(crate) fn attach(&self) -> LocalTasksGuard<'_, 'a> {
        let this = Erased::new(std::ptr::from_ref(self).cast());
        LocalTasksGuard {
            before: thread_context::replace_watched_block_on(this),
            watched_block_on: self,
        }
    }

    /// Marks the thread as busy and takes a slot if needed: a set is about to run tasks.
    fn set_busy(&self) {
        if self.busy.get() {
            return;
        }
        let mut slot = self.slot.borrow_mut();
        if slot.is_none() {
            *slot = self.take_slot();
        }
        if let Some(slot) = &*slot {
            self.busy.set(true);
            slot.watch_record.set_busy(self.pool);
        }
    }

    /// Marks the thread as idle: it is about to sleep.
    pub(crate) fn set_idle(&self) {
        if self.busy.replace(false)
            && let Some(slot) = &*self.slot.borrow()
        {
            slot.watch_record.set_idle();
        }
    }

    #[cold]
    fn take_slot(&self) -> Option<BlockOnSlot> {
        let watched = self.pool.watched.as_ref()?;
        let number = watched.take_slot()?;
        let watch_record = WatchRecord::register(
            watched,
            self.pool.remotes.len() + watched.carriers() + number,
            false,
        );
        let before = thread_context::watched_block_on();
        // SAFETY: obligation 1: the guard is dropped with the slot, before the watch record that
        // owns the lease, when `LocalTasksGuard` is dropped: on this thread, and after all guards
        // that were created later.
        let lease_guard = unsafe { LeaseGuard::new(Some(watch_record.lease())) };
        // The pointer is never used, because a core that is not movable is not taken.
        thread_context::began_with_core(NonNull::dangling());
        // Restores the word, so that sets of local tasks still notify this `block_on`.
        thread_context::replace_watched_block_on(before);
        Some(BlockOnSlot { _lease_guard: lease_guard, watch_record, number })
    }
}

/// Guard: while it lives, sets of local tasks on this thread notify its [`WatchedBlockOn`].
pub(crate) struct LocalTasksGuard<'a, 'b> {
    before: Erased<WatchedBlockOnKey>,
    watched_block_on: &'a WatchedBlockOn<'b>,
}

impl Drop for LocalTasksGuard<'_, '_> {
    fn drop(&mut self) {
        self.watched_block_on.set_idle();
        if let Some(slot) = self.watched_block_on.slot.take() {
            let number = slot.number;
            drop(slot);
            if let Some(watched) = &self.watched_block_on.pool.watched {
                watched.free_slot(self.watched_block_on.pool.remotes.len(), number);
            }
        }
        thread_context::replace_watched_block_on(self.before);
    }
}

/// Notifies the watched `block_on` of this thread, if any, that a set of local tasks is about to
/// run some.
#[inline]
pub(crate) fn local_tasks_run() {
    let watched_block_on = thread_context::watched_block_on().get();
    // SAFETY: `LocalTasksGuard` borrows its `block_on` and restores the word when dropped, so it
    // outlives the pointer in the word.
    if let Some(watched_block_on) = unsafe { watched_block_on.as_ref() } {
        watched_block_on.set_busy();
    }
}

impl WatchedPool {
    fn take_slot(&self) -> Option<usize> {
        let mut taken = lock(&self.block_on_slots);
        let free = taken.iter().position(|taken| !taken)?;
        taken[free] = true;
        Some(free)
    }

    fn free_slot(&self, workers: usize, number: usize) {
        let gone = lock(&self.holders[workers + self.carriers() + number]).take();
        drop(gone);
        lock(&self.block_on_slots)[number] = false;
    }

    /// Returns the maximum number of threads that run fibers.
    pub(super) fn carriers(&self) -> usize {
        self.settings.carriers
    }
}
