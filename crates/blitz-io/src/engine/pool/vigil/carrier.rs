//! How a thread that runs fibers is watched.
//!
//! Such a thread holds no core, and its fibers cannot go anywhere else: there is nothing to take
//! from it. What is left is what a current-thread runtime has as well: a fiber that does not let
//! the others of its thread run is marked, told of and counted. For this the thread has a tenure
//! as a worker has, over a core that is none, and a place behind the workers' in the list that
//! the monitor goes through. A poll of a fiber's task lasts from the switch to its stack to the
//! switch back, and `poll::run` says so by itself.
//!
//! It outlives the pool's last core at times, and is not watched any more then.

use std::{cell::Cell, ptr::NonNull, sync::Arc};

use super::{Pool, Stint};
use crate::engine::work::current::{self, Tenured};

/// A thread that runs fibers, as the monitor sees it.
pub(crate) struct Carrier {
    pool: Arc<Pool>,
    stint: Arc<Stint>,
    /// The monitor knows that there is something to run.
    busy: Cell<bool>,
}

impl Carrier {
    /// The calling thread, which is number `number` of those that run fibers of `pool`, if that
    /// is watched.
    pub(crate) fn begin(pool: &Arc<Pool>, number: usize) -> Option<Self> {
        let watched = pool.watched.as_ref()?;
        let stint = Stint::put(watched, pool.remotes.len() + number, false);
        Some(Self { pool: pool.clone(), stint, busy: Cell::new(false) })
    }

    /// From now on what the calling thread says is heard, until the answer is dropped.
    ///
    /// # Safety
    /// 1. The answer is dropped before this, on this thread and in order.
    pub(crate) unsafe fn listen(&self) -> Tenured {
        // SAFETY: 1.
        let tenured = unsafe { Tenured::new(Some(self.stint.tenure())) };
        // Nobody takes it, since it is not movable.
        current::began_with_core(NonNull::dangling());
        tenured
    }

    /// A fiber is about to run.
    #[inline]
    pub(crate) fn rise(&self) {
        if !self.busy.replace(true) {
            self.stint.rise(&self.pool);
        }
    }

    /// There is none that could.
    pub(crate) fn rest(&self) {
        self.busy.set(false);
        self.stint.rest();
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.rest();
    }
}
