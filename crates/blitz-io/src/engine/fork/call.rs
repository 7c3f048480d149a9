//! Running a closure on a pool: from one of its threads, from another pool's thread, or from any
//! other thread.
//!
//! # Protocol
//! A thread that is not one of the pool's injects a job that lies in its own stack frame, and waits
//! for the job's latch. It parks meanwhile if it belongs to no pool; if it belongs to another pool,
//! it runs that pool's jobs.
//!
//! Alternatively it joins the pool as a *temporary worker*: it runs the closure itself, with a
//! worker that thieves steal from like from any other. When the closure has returned, jobs that are
//! left on that worker's deque (spawned ones, for which no thread waits) go to the injector.

use std::sync::Arc;

use super::{
    job::CallJob,
    join::CurrentWorker,
    latch,
    registry::{Registry, WorkerHandle},
    worker::{self, Worker},
};
use crate::engine::{pool::awake::AwakeWorker, preempt::handoff::Blocked, prim::parker::Parker};

/// Runs `op` on a worker of the pool. `op` receives that worker, and whether the call had to be
/// injected into the pool from another thread.
#[inline]
pub(crate) fn on_worker<R: Send>(
    registry: &Registry,
    op: impl FnOnce(&Worker, bool) -> R + Send,
) -> R {
    // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its pool.
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
    // SAFETY: 1. we wait for the latch below, before the job goes out of scope. 2. It is put into
    // one queue, once.
    registry.inject(unsafe { job.job() });
    latch::block(job.latch(), &parker);
    // SAFETY: 1. the latch is set, because `block` has returned. 2. The result is taken once.
    unsafe { job.into_result() }
}

#[cold]
fn from_another_pool<R: Send>(
    registry: &Registry,
    worker: &Worker,
    op: impl FnOnce(&Worker, bool) -> R + Send,
) -> R {
    let job = CallJob::new(|worker: &Worker| op(worker, true), WorkerHandle::of(worker));
    // SAFETY: 1. we wait for the latch below, before the job goes out of scope. 2. It is put into
    // one queue, once.
    registry.inject(unsafe { job.job() });
    worker.wait_until(job.latch());
    // SAFETY: 1. the latch is set, because `wait_until` has returned. 2. The result is taken once.
    unsafe { job.into_result() }
}

/// Runs `op` on this thread as a temporary worker. Runs it on one of the pool's own threads instead
/// if the pool has a temporary worker already, or if this thread belongs to another pool.
pub(crate) fn join_pool<R: Send>(
    registry: &Registry,
    op: impl FnOnce(CurrentWorker<'_>) -> R + Send,
) -> R {
    let op = |worker: &Worker| {
        // SAFETY: 1. the closure is called below with the worker of the thread that calls it.
        op(unsafe { CurrentWorker::new(worker) })
    };
    let is_free = worker::current().is_null();
    match if is_free { registry.claim_temporary() } else { None } {
        None => on_worker(registry, |worker, _| op(worker)),
        Some(worker) => {
            let temporary = TemporaryWorker { registry, worker, _member: AwakeWorker::new() };
            // If this thread is a runtime's worker, its other tasks go on meanwhile on another
            // thread.
            let _blocked = Blocked::if_worker();
            worker::enter(worker);
            let result = op(worker);
            drop(temporary);
            result
        }
    }
}

/// A thread's time as a temporary worker; its drop ends that, also when the closure unwinds.
struct TemporaryWorker<'a> {
    registry: &'a Registry,
    worker: &'a Worker,
    _member: AwakeWorker,
}

impl Drop for TemporaryWorker<'_> {
    fn drop(&mut self) {
        while let Some(job) = self.worker.pop() {
            self.registry.inject(job);
        }
        worker::leave();
        self.registry.release_temporary();
    }
}

/// Calls `f` with the worker of this thread, if it has one.
pub(crate) fn with_current<R>(f: impl FnOnce(&Worker) -> R) -> Option<R> {
    // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its pool.
    unsafe { worker::current().as_ref() }.map(f)
}
