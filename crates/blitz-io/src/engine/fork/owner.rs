//! The thread that waits for a countdown: a worker of any pool, or a thread that belongs to none.
//!
//! While it waits, a worker runs jobs of its own pool, and any other thread parks.

use std::sync::Arc;

use super::{
    call,
    latch::{self, Latch, Waiter},
    registry::Seat,
    worker,
};
use crate::engine::prim::parker::Parker;

/// A handle to the thread that waits for a countdown. A clone of it outlives the countdown.
#[derive(Clone)]
pub(crate) enum Owner {
    Worker(Seat),
    Thread(Arc<Parker>),
}

impl Owner {
    /// Returns the handle of this thread, with its worker if it has one.
    pub(crate) fn this_thread() -> Self {
        match call::with_current(Seat::of) {
            Some(seat) => Self::Worker(seat),
            None => Self::Thread(Arc::new(Parker::new())),
        }
    }

    /// Waits for the latch. Must be called on the owner's thread.
    pub(crate) fn wait(&self, latch: &Latch) {
        match self {
            Self::Thread(parker) => latch::block(latch, parker),
            Self::Worker(seat) => {
                let worker = seat.worker();
                debug_assert!(std::ptr::eq(worker, worker::current()), "the owner waits");
                worker.wait_until(latch);
            }
        }
    }
}

impl Waiter for Owner {
    fn unpark(&self) {
        match self {
            Self::Worker(seat) => seat.unpark(),
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
// SAFETY: sharing is sound for the same reason as `Send` above.
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
