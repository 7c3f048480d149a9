//! The shared part of a pool: its workers' deques, the injector, and the means to wake threads.
//!
//! # Protocol
//! *Injected* jobs come from threads outside of the pool, or are awaited by tasks (`run`). They are
//! taken first in, first out, by a worker that finds nothing else, or at every 61st search
//! (`worker`), so that jobs from within the pool cannot starve them. P1 is the push under the lock;
//! P2 and P3 are in `sleep`.
//!
//! *Broadcasts* have a queue for each worker; the thread that fills a queue leaves a token for that
//! worker's parker.
//!
//! *The end*: `holds` counts the reasons to go on: one for the pool's owner, and one for each job
//! that was spawned into it and that no thread waits for. The thread that lowers the count to zero
//! sets the latch of each worker. Jobs that a thread waits for need no hold, because the waiting
//! thread has one, or is itself run by a job that has one. A count that is zero stays zero: a
//! thread of a pool that has ended (the user's own thread, or one that is about to leave it) runs
//! the jobs that it spawns at once.
//!
//! *A temporary worker* is a thread from outside that joins the pool for one `call`. It has a
//! worker, but no index among the threads, and gets no broadcasts; there is at most one at a time.
//!
//! # Invariants
//! A registry is behind an `Arc`, of which each of its threads holds a clone: a reference to a
//! worker, received by a job that runs on the pool, is valid while that job runs.
//!
//! # Checked by
//! `jobs_are_taken_in_the_order_in_which_they_were_injected`, and the models of `sleep`.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
};

use super::{
    job::{JobRef, PanicPayload},
    latch::{Latch, Unpark},
    sleep::Sleep,
    worker::{self, Worker},
};
use crate::engine::prim::{
    AtomicBool, AtomicUsize, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    futex::Futex,
    lock,
    pad::CachePadded,
};

/// A user's handler for panics of detached jobs, which no thread joins.
pub(crate) type OnPanic = Box<dyn Fn(PanicPayload) + Send + Sync>;

/// A user's handler that runs on a worker, with that worker's index.
pub(crate) type OnThread = Box<dyn Fn(usize) + Send + Sync>;

/// The configuration of a pool.
#[derive(Default)]
pub(crate) struct RegistryConfig {
    pub(crate) threads: usize,
    /// Makes workers take their oldest job first.
    pub(crate) breadth_first: bool,
    /// Makes the calling thread worker 0.
    pub(crate) use_current_thread: bool,
    pub(crate) on_panic: Option<OnPanic>,
    pub(crate) on_start: Option<OnThread>,
    pub(crate) on_exit: Option<OnThread>,
}

/// The reason why a pool could not be created.
#[derive(Debug)]
pub(crate) enum PoolBuildError {
    /// `use_current_thread` was set, but the thread is a worker of another pool.
    AlreadyInPool,
    /// A thread could not be started.
    NoThread(io::Error),
}

/// The most workers that a pool can have, which is Rayon's limit.
pub(crate) const MAX_THREADS: usize = if usize::BITS >= 64 { 65_535 } else { 255 };

/// A queue of jobs; its length can be read without the lock.
#[derive(Default)]
struct JobQueue {
    len: AtomicUsize,
    jobs: Mutex<VecDeque<JobRef>>,
}

impl JobQueue {
    fn push(&self, job: JobRef) {
        let mut jobs = lock(&self.jobs);
        jobs.push_back(job);
        // Release: publishes what the lock does. Pairs with the Acquire in `is_empty`.
        self.len.store(jobs.len(), Release);
    }

    fn pop(&self) -> Option<JobRef> {
        if self.is_empty() {
            return None;
        }
        let mut jobs = lock(&self.jobs);
        let job = jobs.pop_front();
        // Release: publishes what the lock does. Pairs with the Acquire in `is_empty`.
        self.len.store(jobs.len(), Release);
        job
    }

    /// Removes this job from the queue, if it is still there.
    fn take_back(&self, job: JobRef) -> Option<JobRef> {
        let mut jobs = lock(&self.jobs);
        // The search begins at the end, because a job that is taken back was usually just pushed.
        let position = jobs.iter().rposition(|other| *other == job)?;
        let job = jobs.remove(position);
        // Release: publishes what the lock does. Pairs with the Acquire in `is_empty`.
        self.len.store(jobs.len(), Release);
        job
    }

    /// Returns whether the queue is empty; exact after the fences of `sleep`, or after a token.
    fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release in `push`.
        self.len.load(Acquire) == 0
    }
}

/// The part of a pool that its threads share.
pub(crate) struct Registry {
    /// One worker for each thread, and one for a temporary worker.
    pub(crate) workers: Box<[Worker]>,
    threads: usize,
    has_temporary: AtomicBool,
    pub(crate) sleep: Sleep,
    injected: CachePadded<JobQueue>,
    broadcasts: Box<[JobQueue]>,
    holds: AtomicUsize,
    /// The number of workers that have started.
    primed: Futex,
    pub(crate) breadth_first: bool,
    uses_current_thread: bool,
    on_panic: Option<OnPanic>,
    pub(crate) on_start: Option<OnThread>,
    pub(crate) on_exit: Option<OnThread>,
}

/// A worker that has no thread yet.
pub(crate) struct UnstartedWorker {
    registry: Arc<Registry>,
    index: usize,
}

impl UnstartedWorker {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Makes the calling thread the worker until the pool ends.
    pub(crate) fn run(self) {
        worker::run(&self.registry, self.index);
    }
}

/// Releases the pool's first hold, to end a pool that could not be completed.
struct Terminate<'a>(&'a Registry);

impl Drop for Terminate<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Registry {
    /// Creates a pool. `start` must start a thread that runs the [`UnstartedWorker`] it is given.
    pub(crate) fn start(
        config: RegistryConfig,
        mut start: impl FnMut(UnstartedWorker) -> io::Result<()>,
    ) -> Result<Arc<Self>, PoolBuildError> {
        let threads = config.threads.clamp(1, MAX_THREADS);
        let registry = Arc::new_cyclic(|registry| Self {
            // The last one is for a temporary worker.
            workers: (0..threads + 1)
                .map(|index| Worker::new(index, config.breadth_first, registry.as_ptr()))
                .collect(),
            sleep: Sleep::new(threads, 1),
            injected: CachePadded::new(JobQueue::default()),
            broadcasts: (0..threads + 1).map(|_| JobQueue::default()).collect(),
            threads,
            has_temporary: AtomicBool::new(false),
            holds: AtomicUsize::new(1),
            primed: Futex::new(0),
            breadth_first: config.breadth_first,
            uses_current_thread: config.use_current_thread,
            on_panic: config.on_panic,
            on_start: config.on_start,
            on_exit: config.on_exit,
        });
        // If this function fails or a user's function panics, the threads that have started must
        // end.
        let unmade = Terminate(&registry);
        if config.use_current_thread && !worker::current().is_null() {
            return Err(PoolBuildError::AlreadyInPool);
        }
        for index in usize::from(config.use_current_thread)..threads {
            start(UnstartedWorker { registry: registry.clone(), index })
                .map_err(PoolBuildError::NoThread)?;
        }
        // This comes last, when nothing else can fail, because it cannot be undone. The user's
        // function may have made this thread another pool's worker.
        if config.use_current_thread && !worker::adopt(&registry) {
            return Err(PoolBuildError::AlreadyInPool);
        }
        std::mem::forget(unmade);
        Ok(registry)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns whether worker 0 is the user's own thread (`use_current_thread`), which
    /// has other things to do.
    pub(crate) fn uses_current_thread(&self) -> bool {
        self.uses_current_thread
    }

    /// Returns the worker for a thread that joins the pool for a while, or `None` if there is a
    /// temporary worker already.
    pub(crate) fn claim_temporary(&self) -> Option<&Worker> {
        // Acquire: sees what the previous thread did with the worker. Pairs with the Release in
        // `release_temporary`.
        let is_taken = self.has_temporary.swap(true, Acquire);
        (!is_taken).then(|| &self.workers[self.threads])
    }

    /// Ends the temporary worker's time in the pool; its deque must be empty.
    pub(crate) fn release_temporary(&self) {
        // Release: publishes what this thread did with the worker. Pairs with the Acquire in
        // `claim_temporary`.
        self.has_temporary.store(false, Release);
    }

    /// Returns the worker of this thread, if it belongs to this pool.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Worker> {
        let current = worker::current();
        // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its
        // pool.
        let worker = unsafe { current.as_ref() }?;
        std::ptr::eq(worker.registry(), self).then_some(worker)
    }

    /// Pushes a job to the injector, which every worker checks, and wakes a worker if that is due.
    pub(crate) fn inject(&self, job: JobRef) {
        self.injected.push(job);
        self.sleep.wake_one();
    }

    /// Pushes a job to this thread's worker, or to the injector if this thread is not one of the
    /// pool's.
    pub(crate) fn push(&self, job: JobRef) {
        match self.current() {
            Some(worker) => worker.push(job),
            None => self.inject(job),
        }
    }

    pub(crate) fn take_injected(&self) -> Option<JobRef> {
        self.injected.pop()
    }

    /// Removes this job from the injector, unless another thread has taken it. The returned
    /// reference is the one that was injected, and may be run; the argument only says where the job
    /// lies in memory.
    pub(crate) fn take_back(&self, job: JobRef) -> Option<JobRef> {
        self.injected.take_back(job)
    }

    pub(crate) fn has_injected(&self) -> bool {
        !self.injected.is_empty()
    }

    /// Gives each worker a job that no other worker runs.
    pub(crate) fn broadcast(&self, jobs: impl Iterator<Item = JobRef>) {
        self.broadcasts.iter().zip(jobs).for_each(|(queue, job)| queue.push(job));
        // All jobs are queued before the first worker is woken, because that worker may take this
        // processor.
        (0..self.threads).for_each(|index| self.sleep.wake(index));
    }

    pub(crate) fn take_broadcast(&self, index: usize) -> Option<JobRef> {
        self.broadcasts[index].pop()
    }

    pub(crate) fn has_broadcast(&self, index: usize) -> bool {
        !self.broadcasts[index].is_empty()
    }

    /// Adds `count` reasons to go on. Returns `false` if the pool has ended.
    #[must_use]
    pub(crate) fn hold(&self, count: usize) -> bool {
        let more = |holds: usize| (holds > 0).then_some(holds + count);
        // Relaxed, both: the thread that lowers the count to zero comes before or after all of
        // this, and a thread that finds zero gives the pool nothing.
        self.holds.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Removes one reason to go on; the last one ends the threads.
    pub(crate) fn release(&self) {
        // AcqRel: what was done under any hold comes before the end.
        if self.holds.fetch_sub(1, AcqRel) == 1 {
            for worker in &self.workers {
                // SAFETY: 1. the latch is part of the registry, which the caller has borrowed.
                if unsafe { Latch::set(worker.end()) } {
                    worker.wake();
                }
            }
        }
    }

    /// Runs a closure that no thread waits for; a panic goes to the pool's handler.
    pub(crate) fn catch_unwind(&self, closure: impl FnOnce()) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(closure));
        let Err(payload) = outcome else { return };
        let abort = AbortIfPanic("a panic of a detached job");
        let Some(handler) = &self.on_panic else { abort.now() };
        handler(payload);
        std::mem::forget(abort);
    }

    /// Records that a worker has started.
    pub(crate) fn mark_primed(&self) {
        // Release: publishes that worker's start. Pairs with the Acquire in `wait_until_primed`.
        self.primed.word().fetch_add(1, Release);
        self.primed.wake_all();
    }

    /// Blocks until all threads have started.
    pub(crate) fn wait_until_primed(&self) {
        loop {
            // Acquire: sees what the workers did before. Pairs with the Release in `mark_primed`.
            let primed = self.primed.word().load(Acquire);
            if primed as usize >= self.threads() {
                return;
            }
            self.primed.wait(primed, None);
        }
    }
}

/// Aborts the process when dropped. Used where unwinding would leave a borrowed frame behind, or
/// where no thread could receive a panic.
pub(crate) struct AbortIfPanic(pub(crate) &'static str);

impl AbortIfPanic {
    fn now(self) -> ! {
        drop(self);
        unreachable!("it aborts")
    }
}

impl Drop for AbortIfPanic {
    fn drop(&mut self) {
        // The message begins as Rayon's does; the panic hook has reported the panic itself. It is
        // not written by `eprintln`, which panics if stderr is closed: that would unwind after all.
        let _ = writeln!(
            io::stderr(),
            "Rayon: detected unexpected panic; aborting ({}); see the panic before it",
            self.0
        );
        std::process::abort();
    }
}

/// A handle to a worker that waits for something outside of its own pool's deques.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    registry: Arc<Registry>,
    index: usize,
}

impl WorkerHandle {
    pub(crate) fn of(worker: &Worker) -> Self {
        Self { registry: worker.shared(), index: worker.index() }
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.registry.workers[self.index]
    }
}

impl Unpark for WorkerHandle {
    fn unpark(&self) {
        self.registry.sleep.wake(self.index);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::JobQueue;
    use crate::engine::fork::{
        job::{HeapJob, JobRef},
        worker::Worker,
    };

    #[test]
    fn jobs_are_taken_in_the_order_in_which_they_were_injected() {
        crate::engine::fork::worker::for_test::with_worker(|worker| {
            let order = std::sync::Mutex::new(Vec::new());
            let queue = JobQueue::default();
            for number in 0..5 {
                let order = &order;
                // SAFETY: 1. all of these jobs run below. 2. Their end borrows nothing.
                queue.push(unsafe {
                    let run = move |_: &Worker| order.lock().unwrap().push(number);
                    HeapJob::make(run, |_: &Worker| {})
                });
            }
            while let Some(job) = queue.pop() {
                let job: JobRef = job;
                // SAFETY: 1. the job was just taken from the queue, and is run once. 2. The worker
                // is this thread's.
                unsafe { job.run(None, worker) };
            }
            assert!(queue.is_empty());
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
        });
    }
}
