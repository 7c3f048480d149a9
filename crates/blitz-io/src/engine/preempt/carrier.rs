//! Watches a thread that runs fibers.
//!
//! Such a thread (a *carrier*) holds no core, and its fibers cannot run on another thread, so there
//! is nothing to take from it. What is left is what a current-thread runtime has as well: a fiber
//! that does not let the other fibers of its thread run is marked, reported and counted. For this
//! the thread has a lease like a worker's, over a dummy core, and a slot after the workers' in the
//! list that the monitor goes through. A poll of a fiber's task lasts from the switch to the
//! fiber's stack to the switch back; `poll::run` records this without further help.
//!
//! A carrier sometimes outlives the pool's last core, and then it is not watched any more.

use std::{cell::Cell, ptr::NonNull, sync::Arc};

use super::{Pool, WatchRecord};
use crate::engine::work::thread_context::{self, LeaseGuard};

/// A thread that runs fibers, as the monitor sees it.
pub(crate) struct WatchedCarrier {
    pool: Arc<Pool>,
    watch_record: Arc<WatchRecord>,
    /// Set while the monitor knows that there is something to run.
    busy: Cell<bool>,
}

impl WatchedCarrier {
    /// Registers the calling thread, which is number `number` of those that run fibers of `pool`.
    /// Returns `None` if the pool is not watched.
    pub(crate) fn begin(pool: &Arc<Pool>, number: usize) -> Option<Self> {
        let watched = pool.watched.as_ref()?;
        let watch_record = WatchRecord::register(watched, pool.remotes.len() + number, false);
        Some(Self { pool: pool.clone(), watch_record, busy: Cell::new(false) })
    }

    /// Attaches the calling thread's poll state to its watch record, until the returned guard is
    /// dropped.
    ///
    /// # Safety
    /// 1. The returned guard is dropped before `self`, on this thread and in order.
    pub(crate) unsafe fn attach(&self) -> LeaseGuard {
        // SAFETY: by obligation 1 the lease, which is part of `self`, outlives the guard.
        let lease_guard = unsafe { LeaseGuard::new(Some(self.watch_record.lease())) };
        // The pointer is never used, because a core that is not movable is not taken.
        thread_context::began_with_core(NonNull::dangling());
        lease_guard
    }

    /// Marks the thread as busy: a fiber is about to run.
    #[inline]
    pub(crate) fn set_busy(&self) {
        if !self.busy.replace(true) {
            self.watch_record.set_busy(&self.pool);
        }
    }

    /// Marks the thread as idle: no fiber can run.
    pub(crate) fn set_idle(&self) {
        self.busy.set(false);
        self.watch_record.set_idle();
    }
}

impl Drop for WatchedCarrier {
    fn drop(&mut self) {
        self.set_idle();
    }
}
