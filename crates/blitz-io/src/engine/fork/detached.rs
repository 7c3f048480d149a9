//! Jobs that nobody waits for. The pool goes on until they have ended; on a thread whose pool has
//! ended already they are run at once.

use super::{
    job::{HeapJob, JobRef},
    registry::Registry,
    worker::Worker,
};

/// Spawns a job.
pub(crate) fn spawn(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let (job, is_held) = job(registry, closure);
    registry.place(job);
    if !is_held {
        finish(registry);
    }
}

/// Spawns a job behind those that this thread has spawned so before.
pub(crate) fn spawn_fifo(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let (job, is_held) = job(registry, closure);
    match registry.current() {
        // SAFETY: 1. the line is part of the registry, which the job holds, or the thread.
        Some(worker) => worker.push(unsafe { worker.line.push(job) }),
        None => registry.inject(job),
    }
    if !is_held {
        finish(registry);
    }
}

/// The job, and whether it holds the pool: one that has ended cannot be held.
fn job(registry: &Registry, closure: impl FnOnce() + Send + 'static) -> (JobRef, bool) {
    let is_held = registry.hold(1);
    let run = move |by: &Worker| by.registry().guard(closure);
    let end = move |by: &Worker| {
        if is_held {
            by.registry().release();
        }
    };
    // SAFETY: 1. and 2. neither borrows anything.
    (unsafe { HeapJob::make(run, end) }, is_held)
}

/// Only a thread of the pool knows one that has ended: it was lent to it, or is about to leave.
#[cold]
fn finish(registry: &Registry) {
    if let Some(worker) = registry.current() {
        worker.finish();
    }
}
