//! Detached jobs, which no thread waits for. The pool goes on until they have ended; on a thread of
//! a pool that has ended already, they are run at once.

use super::{
    job::{HeapJob, JobRef},
    registry::Registry,
    worker::Worker,
};

/// Spawns a detached job.
pub(crate) fn spawn(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let (job, is_held) = job(registry, closure);
    registry.push(job);
    if !is_held {
        finish(registry);
    }
}

/// Spawns a detached job that starts after those that this thread has spawned by this function
/// before.
pub(crate) fn spawn_fifo(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let (job, is_held) = job(registry, closure);
    match registry.current() {
        // SAFETY: 1. the `JobFifo` is part of the registry, which is held by the job or by this
        // thread.
        Some(worker) => worker.push(unsafe { worker.fifo.push(job) }),
        None => registry.inject(job),
    }
    if !is_held {
        finish(registry);
    }
}

/// Creates the job, and returns whether it holds the pool: a pool that has ended cannot be held.
fn job(registry: &Registry, closure: impl FnOnce() + Send + 'static) -> (JobRef, bool) {
    let is_held = registry.hold(1);
    let run = move |by: &Worker| by.registry().catch_unwind(closure);
    let end = move |by: &Worker| {
        if is_held {
            by.registry().release();
        }
    };
    // SAFETY: 1. and 2. neither closure borrows anything.
    (unsafe { HeapJob::make(run, end) }, is_held)
}

/// Runs the jobs of this thread, if it is one of the pool's. Only such a thread can still reach a
/// pool that has ended: it is the user's own, or is about to leave the pool.
#[cold]
fn finish(registry: &Registry) {
    if let Some(worker) = registry.current() {
        worker.finish();
    }
}
