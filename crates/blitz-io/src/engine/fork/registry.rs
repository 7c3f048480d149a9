//! What the workers of a pool share: their stacks, the intake, and who must be told.
//!
//! # Protocol
//! *Injected* jobs come from threads that are not the pool's, or are awaited by tasks (`run`). They are taken first in,
//! first out, by a worker that finds nothing else, or at every 61st look (`worker`), so that jobs
//! from within cannot keep them waiting. P1 is the push under the lock, P2 and P3
//! are in `sleep`.
//!
//! *Broadcasts* have a queue for each worker; whoever fills one leaves that worker a token.
//!
//! *The end*: `holds` counts the reasons to go on: one for the pool's owner, one for each
//! job that was spawned into it and that nobody waits for. Whoever brings it to zero sets the latch of
//! each worker. Jobs that somebody waits for need no hold: who waits has one, or is run by
//! one. A count that is zero stays zero: a thread whose pool has ended (one that was lent to it, or is
//! about to leave it) runs at once what it spawns.
//!
//! *A guest* is a thread that is not the pool's and takes part while it waits (`call`). It
//! has a worker, but no index, and gets no broadcasts; there is one at a time.
//!
//! # Invariants
//! A registry is behind an `Arc`, and each of its threads holds one: a reference to a
//! worker, got from a job that runs on the pool, is good while that job runs.
//!
//! # Checked by
//! `jobs_are_taken_in_the_order_in_which_they_were_injected`, and the models of `sleep`.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
};

use super::{
    job::{JobRef, Payload},
    latch::{Latch, Waiter},
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

/// A user's handler of panics that have nobody to go to.
pub(crate) type OnPanic = Box<dyn Fn(Payload) + Send + Sync>;

/// A user's handler that runs on a worker, with its index.
pub(crate) type OnThread = Box<dyn Fn(usize) + Send + Sync>;

/// What a pool is made of.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// Workers take their oldest job first.
    pub(crate) breadth_first: bool,
    /// The calling thread becomes worker 0.
    pub(crate) use_current_thread: bool,
    pub(crate) on_panic: Option<OnPanic>,
    pub(crate) on_start: Option<OnThread>,
    pub(crate) on_exit: Option<OnThread>,
}

/// Why there is no pool.
#[derive(Debug)]
pub(crate) enum NoPool {
    /// `use_current_thread`, and it is a worker of another pool.
    AlreadyInPool,
    /// A thread could not be started.
    NoThread(io::Error),
}

/// The most workers that a pool can have: what Rayon can count.
pub(crate) const MAX_THREADS: usize = if usize::BITS >= 64 { 65_535 } else { 255 };

/// A queue with a length that can be seen without its lock.
#[derive(Default)]
struct Queue {
    len: AtomicUsize,
    jobs: Mutex<VecDeque<JobRef>>,
}

impl Queue {
    fn push(&self, job: JobRef) {
        let mut jobs = lock(&self.jobs);
        jobs.push_back(job);
        // Release: as the lock. Pairs with the Acquire in `is_empty`.
        self.len.store(jobs.len(), Release);
    }

    fn pop(&self) -> Option<JobRef> {
        if self.is_empty() {
            return None;
        }
        let mut jobs = lock(&self.jobs);
        let job = jobs.pop_front();
        // Release: as in `push`.
        self.len.store(jobs.len(), Release);
        job
    }

    /// Takes this one out, if it is still there.
    fn take_back(&self, job: JobRef) -> Option<JobRef> {
        let mut jobs = lock(&self.jobs);
        // From the end: who takes one back has just given it.
        let place = jobs.iter().rposition(|other| *other == job)?;
        let job = jobs.remove(place);
        // Release: as in `push`.
        self.len.store(jobs.len(), Release);
        job
    }

    /// Exact after the fences of `sleep`, or a token.
    fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release in `push`.
        self.len.load(Acquire) == 0
    }
}

/// See the module.
pub(crate) struct Registry {
    /// One for each thread, and one for a guest.
    pub(crate) workers: Box<[Worker]>,
    threads: usize,
    has_guest: AtomicBool,
    pub(crate) sleep: Sleep,
    injected: CachePadded<Queue>,
    broadcasts: Box<[Queue]>,
    holds: AtomicUsize,
    /// How many workers have started.
    primed: Futex,
    pub(crate) breadth_first: bool,
    has_lent_thread: bool,
    on_panic: Option<OnPanic>,
    pub(crate) on_start: Option<OnThread>,
    pub(crate) on_exit: Option<OnThread>,
}

/// A worker that has no thread yet.
pub(crate) struct Vacancy {
    registry: Arc<Registry>,
    index: usize,
}

impl Vacancy {
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

/// Lets go of a pool that could not be made.
struct Terminate<'a>(&'a Registry);

impl Drop for Terminate<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Registry {
    /// Makes a pool; `start` starts a thread that runs what it is given.
    pub(crate) fn start(
        plan: Plan,
        mut start: impl FnMut(Vacancy) -> io::Result<()>,
    ) -> Result<Arc<Self>, NoPool> {
        let threads = plan.threads.clamp(1, MAX_THREADS);
        let registry = Arc::new_cyclic(|registry| Self {
            // The last one is for a guest.
            workers: (0..threads + 1)
                .map(|index| Worker::new(index, plan.breadth_first, registry.as_ptr()))
                .collect(),
            sleep: Sleep::new(threads, 1),
            injected: CachePadded::new(Queue::default()),
            broadcasts: (0..threads + 1).map(|_| Queue::default()).collect(),
            threads,
            has_guest: AtomicBool::new(false),
            holds: AtomicUsize::new(1),
            primed: Futex::new(0),
            breadth_first: plan.breadth_first,
            has_lent_thread: plan.use_current_thread,
            on_panic: plan.on_panic,
            on_start: plan.on_start,
            on_exit: plan.on_exit,
        });
        // If this fails or a user's function panics, threads that have started end.
        let unmade = Terminate(&registry);
        if plan.use_current_thread && !worker::current().is_null() {
            return Err(NoPool::AlreadyInPool);
        }
        for index in usize::from(plan.use_current_thread)..threads {
            start(Vacancy { registry: registry.clone(), index }).map_err(NoPool::NoThread)?;
        }
        // Last, when nothing else can fail: it is for ever. The user's function may have made
        // this thread another pool's.
        if plan.use_current_thread && !worker::adopt(&registry) {
            return Err(NoPool::AlreadyInPool);
        }
        std::mem::forget(unmade);
        Ok(registry)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether the first worker is that of a thread which has other things to do.
    pub(crate) fn has_lent_thread(&self) -> bool {
        self.has_lent_thread
    }

    /// The worker of a thread that takes part for a while, if there is no other guest.
    pub(crate) fn take_guest(&self) -> Option<&Worker> {
        // Acquire: what the guest before us did with the worker. Pairs with the Release in
        // `release_guest`.
        let is_taken = self.has_guest.swap(true, Acquire);
        (!is_taken).then(|| &self.workers[self.threads])
    }

    /// The guest leaves; its stack is empty.
    pub(crate) fn release_guest(&self) {
        // Release: pairs with the Acquire in `take_guest`.
        self.has_guest.store(false, Release);
    }

    /// The worker of this thread, if it is one of this pool's.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Worker> {
        let current = worker::current();
        // SAFETY: not null, so it is the worker of this thread, which holds its pool.
        let worker = unsafe { current.as_ref() }?;
        std::ptr::eq(worker.registry(), self).then_some(worker)
    }

    /// Puts a job where every worker looks, and wakes one if that is due.
    pub(crate) fn inject(&self, job: JobRef) {
        self.injected.push(job);
        self.sleep.call_one();
    }

    /// To the worker of this thread, or to all.
    pub(crate) fn place(&self, job: JobRef) {
        match self.current() {
            Some(worker) => worker.push(job),
            None => self.inject(job),
        }
    }

    pub(crate) fn take_injected(&self) -> Option<JobRef> {
        self.injected.pop()
    }

    /// Takes this job out of the intake, unless somebody else has. The answer is the one that was
    /// put there, and may be run; the argument says only where it lies in memory.
    pub(crate) fn take_back(&self, job: JobRef) -> Option<JobRef> {
        self.injected.take_back(job)
    }

    pub(crate) fn has_injected(&self) -> bool {
        !self.injected.is_empty()
    }

    /// One job for each worker, which nobody else runs.
    pub(crate) fn broadcast(&self, jobs: impl Iterator<Item = JobRef>) {
        self.broadcasts.iter().zip(jobs).for_each(|(queue, job)| queue.push(job));
        // All have theirs before the first is called, which may take this processor.
        (0..self.threads).for_each(|index| self.sleep.call(index));
    }

    pub(crate) fn take_broadcast(&self, index: usize) -> Option<JobRef> {
        self.broadcasts[index].pop()
    }

    pub(crate) fn has_broadcast(&self, index: usize) -> bool {
        !self.broadcasts[index].is_empty()
    }

    /// So many more reasons to go on; `false` if the pool has ended.
    #[must_use]
    pub(crate) fn hold(&self, count: usize) -> bool {
        let more = |holds: usize| (holds > 0).then_some(holds + count);
        // Relaxed, both: whoever brings it to zero comes before or after all of it, and who
        // finds zero gives the pool nothing.
        self.holds.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// One reason less; the last one ends the threads.
    pub(crate) fn release(&self) {
        // AcqRel: what was done for any hold comes before the end.
        if self.holds.fetch_sub(1, AcqRel) == 1 {
            for worker in &self.workers {
                // SAFETY: 1. the latch is in the registry, which the caller has.
                if unsafe { Latch::set(worker.end()) } {
                    worker.call();
                }
            }
        }
    }

    /// Runs what nobody waits for; a panic goes to the pool's handler.
    pub(crate) fn guard(&self, closure: impl FnOnce()) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(closure));
        let Err(payload) = outcome else { return };
        let abort = AbortOnUnwind("a panic of a detached job");
        let Some(handler) = &self.on_panic else { abort.now() };
        handler(payload);
        std::mem::forget(abort);
    }

    /// A worker has started.
    pub(crate) fn mark_primed(&self) {
        // Release: pairs with the Acquire in `wait_until_primed`.
        self.primed.word().fetch_add(1, Release);
        self.primed.wake_all();
    }

    /// Blocks until all threads have started.
    pub(crate) fn wait_until_primed(&self) {
        loop {
            // Acquire: pairs with the Release in `mark_primed`.
            let primed = self.primed.word().load(Acquire);
            if primed as usize >= self.threads() {
                return;
            }
            self.primed.wait(primed, None);
        }
    }
}

/// Aborts the process if it is dropped: where unwinding would leave a borrowed frame behind,
/// or where a panic has nobody to go to.
pub(crate) struct AbortOnUnwind(pub(crate) &'static str);

impl AbortOnUnwind {
    fn now(self) -> ! {
        drop(self);
        unreachable!("it aborts")
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // As Rayon says it; the panic hook has told of the panic itself. Not by `eprintln`,
        // which panics if nobody reads it any more: that would unwind after all.
        let _ = writeln!(
            io::stderr(),
            "Rayon: detected unexpected panic; aborting ({}); see the panic before it",
            self.0
        );
        std::process::abort();
    }
}

/// A worker that waits for something outside of its own pool's stacks.
#[derive(Clone)]
pub(crate) struct Seat {
    registry: Arc<Registry>,
    index: usize,
}

impl Seat {
    pub(crate) fn of(worker: &Worker) -> Self {
        Self { registry: worker.shared(), index: worker.index() }
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.registry.workers[self.index]
    }
}

impl Waiter for Seat {
    fn unpark(&self) {
        self.registry.sleep.call(self.index);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Queue;
    use crate::engine::fork::{
        job::{HeapJob, JobRef},
        worker::Worker,
    };

    #[test]
    fn jobs_are_taken_in_the_order_in_which_they_were_injected() {
        crate::engine::fork::worker::for_test::with_worker(|worker| {
            let order = std::sync::Mutex::new(Vec::new());
            let queue = Queue::default();
            for number in 0..5 {
                let order = &order;
                // SAFETY: 1. all run below.
                queue.push(unsafe {
                    let run = move |_: &Worker| order.lock().unwrap().push(number);
                    HeapJob::make(run, |_: &Worker| {})
                });
            }
            while let Some(job) = queue.pop() {
                let job: JobRef = job;
                // SAFETY: 1. taken, and run once. 2. This thread's worker.
                unsafe { job.run(None, worker) };
            }
            assert!(queue.is_empty());
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
        });
    }
}
