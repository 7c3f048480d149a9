//! The thread that waits for a countdown: a worker of any pool, or a thread that belongs to none.
//!
//! While it waits, a worker runs jobs of its own pool, and any other thread parks.

use std::sync::Arc;

use super::{
    call,
    latch::{self, Latch, Unpark},
    registry::WorkerHandle,
    worker,
};
use crate::engine::prim::parker::Parker;

/// A handle to the thread that waits for a countdown. A clone of it outlives the countdown.
#[derive(Clone)]
pub(crate) enum WaitingThread {
    Worker(WorkerHandle),
    Thread(Arc<Parker>),
}

impl WaitingThread {
    /// Returns the handle of this thread, with its worker if it has one.
    pub(crate) fn this_thread() -> Self {
        match call::with_current(WorkerHandle::of) {
            Some(handle) => Self::Worker(handle),
            None => Self::Thread(Arc::new(Parker::new())),
        }
    }

    /// Waits for the latch. Must be called on this handle's thread.
    pub(crate) fn wait(&self, latch: &Latch) {
        match self {
            Self::Thread(parker) => latch::block(latch, parker),
            Self::Worker(handle) => {
                let worker = handle.worker();
                debug_assert!(std::ptr::eq(worker, worker::current()), "a thread waits for itself");
                worker.wait_until(latch);
            }
        }
    }
}

impl Unpark for WaitingThread {
    fn unpark(&self) {
        match self {
            Self::Worker(handle) => handle.unpark(),
            Self::Thread(parker) => parker.unpark(),
        }
    }
}

/// A pointer into the frame of a waiting thread.
pub(crate) struct Pointer<T>(*const T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

// SAFETY: what it points at may be shared, and each dereference must say why it still exists.
unsafe impl<T: Sync> Send for Pointer<T> {}
// SAFETY: a shared copy of the pointer can do what a moved one can: reach a value that is `Sync`.
unsafe impl<T: Sync> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    pub(crate) fn to(value: &T) -> Self {
        Self(value)
    }

    /// Returns the pointer. A method, so that closures capture the whole `Pointer` and not its
    /// field.
    pub(crate) fn get(&self) -> *const T {
        self.0
    }
}
