//! Getting onto a pool: from one of its threads, from another pool's, from any other.
//!
//! # Protocol
//! A thread that is not the pool's injects a job that lies in its own frame and waits for its
//! latch: parked, if it belongs to no pool; running its own pool's jobs, if it belongs to
//! another one.
//!
//! Or it takes part as the pool's *guest*: it runs the closure itself, with a worker whose
//! stack thieves look into like any other's. When the closure has returned, jobs that are
//! left on that stack (spawned ones, which nobody waits for) go to the intake.

use std::sync::Arc;

use super::{
    job::CallJob,
    join::Here,
    latch,
    registry::{Registry, Seat},
    worker::{self, Worker},
};
use crate::engine::{
    pool::{crowd::Member, handoff::Blocked},
    prim::parker::Parker,
};

/// Runs `op` on a worker of the pool, which is told, and whether it had to be sent there.
#[inline]
pub(crate) fn on_worker<R: Send>(
    registry: &Registry,
    op: impl FnOnce(&Worker, bool) -> R + Send,
) -> R {
    // SAFETY: not null, so it is the worker of this thread, which holds its pool.
    match unsafe { worker::current().as_ref() } {
        None => from_outside(registry, op),
        Some(worker) if std::ptr::eq(worker.registry(), registry) => op(worker, false),
        Some(worker) => from_another_pool(registry, worker, op),
    }
}

#[cold]
fn from_outside<R: Send>(registry: &Registry, op: impl FnOnce(&Worker, bool) -> R + Send) -> R {
    let parker = Arc::new(Parker::new());
    let job = CallJob::new(|worker: &Worker| op(worker, true), parker.clone());
    // SAFETY: 1. we wait. 2. One queue.
    registry.inject(unsafe { job.job() });
    latch::block(job.latch(), &parker);
    // SAFETY: 1. just waited. 2. Once.
    unsafe { job.into_result() }
}

#[cold]
fn from_another_pool<R: Send>(
    registry: &Registry,
    worker: &Worker,
    op: impl FnOnce(&Worker, bool) -> R + Send,
) -> R {
    let job = CallJob::new(|worker: &Worker| op(worker, true), Seat::of(worker));
    // SAFETY: 1. we wait. 2. One queue.
    registry.inject(unsafe { job.job() });
    worker.wait_until(job.latch());
    // SAFETY: 1. just waited. 2. Once.
    unsafe { job.into_result() }
}

/// Runs `op` on this thread as the pool's guest; on one of the pool's if there is a guest
/// already, or if this thread belongs to another pool.
pub(crate) fn take_part<R: Send>(registry: &Registry, op: impl FnOnce(Here<'_>) -> R + Send) -> R {
    let op = |worker: &Worker| {
        // SAFETY: 1. it runs below, on the worker of the thread that runs it.
        op(unsafe { Here::new(worker) })
    };
    let is_free = worker::current().is_null();
    match if is_free { registry.take_guest() } else { None } {
        None => on_worker(registry, |worker, _| op(worker)),
        Some(guest) => {
            let visit = Visit { registry, guest, _member: Member::new() };
            // Others go on meanwhile, if this thread is a runtime's.
            let _blocked = Blocked::if_worker();
            worker::enter(guest);
            let result = op(guest);
            drop(visit);
            result
        }
    }
}

/// A guest's stay; ends it, also when the closure unwinds.
struct Visit<'a> {
    registry: &'a Registry,
    guest: &'a Worker,
    _member: Member,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        while let Some(job) = self.guest.pop() {
            self.registry.inject(job);
        }
        worker::leave();
        self.registry.release_guest();
    }
}

/// Calls `f` with the worker of this thread, if it has one.
pub(crate) fn with_current<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    // SAFETY: not null, so it is the worker of this thread, which holds its pool.
    unsafe { worker::current().as_ref() }.map(f)
}
