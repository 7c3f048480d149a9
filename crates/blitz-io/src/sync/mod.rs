//! Synchronization primitives: locks, semaphores, notifications, cells and channels.
//!
//! They need no runtime: any executor can poll them, and the `blocking_*` methods wait
//! without one. Waiting allocates nothing, because the node in the wait queue is part of the
//! waiting future.

pub(crate) mod blocking;
mod permit_guard;
mod semaphore;
mod mutex;
mod rwlock;

pub use self::{
    mutex::{
        MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
    },
    rwlock::{
        OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
        RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    },
    semaphore::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError},
};
pub use crate::engine::wait::holders::Holder;

mod latch;

mod notify;
pub mod futures;
mod acquisition;
mod barrier;
mod once_cell;
mod set_once;
mod cancellation_token;

pub use self::{
    barrier::{Barrier, BarrierWaitResult},
    cancellation_token::{
        CancellationToken, DropGuard, DropGuardRef, WaitForCancellationFuture,
        WaitForCancellationFutureOwned,
    },
    notify::Notify,
    once_cell::{OnceCell, SetError},
    set_once::{SetOnce, SetOnceError},
};

#[doc(inline)]
pub use crate::channel::mpsc;

#[doc(inline)]
pub use crate::channel::oneshot;

#[doc(inline)]
pub use crate::channel::{broadcast, watch};
