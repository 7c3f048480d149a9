//! Jobs that nobody waits for. The pool goes on until they have ended.

use super::{
    job::{HeapJob, JobRef},
    registry::Registry,
    worker::Worker,
};

/// Spawns a job.
pub(crate) fn spawn(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let job = job(registry, closure);
    registry.place(job);
}

/// Spawns a job behind those that this thread has spawned so before.
pub(crate) fn spawn_fifo(registry: &Registry, closure: impl FnOnce() + Send + 'static) {
    let job = job(registry, closure);
    match registry.current() {
        // SAFETY: 1. the line is part of the registry, which the job holds.
        Some(worker) => worker.push(unsafe { worker.line.push(job) }),
        None => registry.inject(job),
    }
}

fn job(registry: &Registry, closure: impl FnOnce() + Send + 'static) -> JobRef {
    registry.hold(1);
    let run = move |by: &Worker| by.registry().guard(closure);
    // SAFETY: 1. and 2. neither borrows anything.
    unsafe { HeapJob::make(run, |by: &Worker| by.registry().release()) }
}
