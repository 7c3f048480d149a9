//! One thread of a pool: finds jobs, runs them, and sleeps when there are none.
//!
//! # Protocol
//! A worker looks for a job in its own deque, its broadcast queue, the deques of other workers
//! (starting at a random one) and the injector, in this order; at every 61st search the injector
//! comes first. At most half of the workers count as searchers; while there is one, no sleeper is
//! woken. The others *linger*: they search as well, but yield the processor before each search,
//! because on a small machine the thread that would give them work needs a processor, too. A worker
//! that waits for a latch runs jobs meanwhile, any that it finds.
//!
//! Searching and lingering go on for some rounds, while there are processors for all awake workers
//! (`pool/awake.rs`), and then the worker sleeps (`sleep`).
//!
//! # Invariants
//! `CURRENT` is null or the worker of this thread, which then holds its registry. Only that thread
//! pushes to and pops from the worker's deque.
//!
//! # Checked by
//! tests/it/parallel/, and the models of `deque`, `latch` and `sleep`.

use std::{cell::Cell, sync::Arc};

use super::{
    deque::Deque,
    job::{JobFifo, JobHeader, JobRef},
    latch::Latch,
    registry::{AbortIfPanic, Registry},
    sleep::{WakeKind, WorkSources},
};
use crate::engine::{
    pool::awake::AwakeWorker,
    preempt::handoff::Blocked,
    prim::{AtomicBool, AtomicU64, Ordering::Relaxed, per_thread, rng::Rng, spin_loop, thread},
};

/// The number of search rounds before a worker sleeps. A round takes half a microsecond to one
/// while there is nothing to do, so a worker is asleep within a tenth of a millisecond.
const ROUNDS: u32 = 64;

/// A searcher yields its processor once per this number of rounds, because there may be more
/// threads than processors.
const ROUNDS_PER_YIELD: u32 = 4;

/// The number of pauses in a round. Picked, not measured.
const PAUSES: u32 = 8;

/// The injector comes first in one of this number of searches. It is a prime, so that no pattern
/// of a user's program falls into step with it.
const INJECTOR_INTERVAL: u64 = 61;

per_thread! {
    static CURRENT: Cell<*const Worker> = Cell::new(std::ptr::null());
}

/// Returns the worker of this thread, or null.
#[inline(always)]
pub(crate) fn current() -> *const Worker {
    CURRENT.with(Cell::get)
}

/// A thread's part of a pool: its deque of jobs, and its index in the registry.
pub(crate) struct Worker {
    deque: Deque<JobHeader>,
    index: usize,
    registry: *const Registry,
    /// Set when the pool ends.
    end: Latch,
    /// The FIFO queue for jobs of `spawn_fifo`.
    pub(crate) fifo: JobFifo,
    /// The state of the random number generator; touched by the worker's thread alone.
    rng: AtomicU64,
    searches: AtomicU64,
    /// True while the user's own thread waits for something in the pool.
    is_waiting: AtomicBool,
    /// True while the thread runs jobs that it has spawned after the pool ended.
    is_finishing: AtomicBool,
}

// SAFETY: 1. the registry that it points at is `Sync` and contains the worker, so it is there. 2.
// The methods that only the worker's own thread may call are unsafe, or get the worker through
// `CURRENT`.
unsafe impl Send for Worker {}
// SAFETY: 1. the registry that it points at is `Sync` and contains the worker. 2. The methods that
// only the worker's own thread may call are unsafe, so other threads cannot reach its cells.
unsafe impl Sync for Worker {}

/// A job, and the owner of the deque from which it was taken, if any.
type FoundJob<'a> = (JobRef, Option<&'a Worker>);

impl Worker {
    /// Creates a worker of the registry that is being created at that address.
    pub(crate) fn new(index: usize, breadth_first: bool, registry: *const Registry) -> Self {
        let seed = Rng::process_seed() ^ index as u64;
        Self {
            deque: if breadth_first { Deque::shared() } else { Deque::new() },
            index,
            registry,
            end: Latch::new(),
            fifo: JobFifo::new(),
            rng: AtomicU64::new(Rng::new(seed).state()),
            searches: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
            is_finishing: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns the worker's index among the pool's threads, or `None` for a temporary worker.
    pub(crate) fn thread_index(&self) -> Option<usize> {
        (self.index < self.registry().threads()).then_some(self.index)
    }

    /// Returns whether the worker is the user's own thread, which does other things, too.
    /// While it does those, it is not counted as awake.
    fn is_users_thread(&self) -> bool {
        self.index == 0 && self.registry().uses_current_thread()
    }

    #[inline]
    pub(crate) fn deque(&self) -> &Deque<JobHeader> {
        &self.deque
    }

    #[inline]
    pub(crate) fn registry(&self) -> &Registry {
        // SAFETY: the worker is part of the registry, and the pool's threads hold the registry.
        unsafe { &*self.registry }
    }

    /// Returns a counted reference to the registry.
    pub(crate) fn shared(&self) -> Arc<Registry> {
        // SAFETY: 1. registries are created behind an `Arc` only. 2. A worker is known only to a
        // thread or a job of its pool, so the count is not zero.
        unsafe {
            Arc::increment_strong_count(self.registry);
            Arc::from_raw(self.registry)
        }
    }

    /// Returns the latch that is set when the pool ends.
    pub(crate) fn end(&self) -> &Latch {
        &self.end
    }

    /// Wakes the worker's thread, by leaving a token for its parker.
    pub(crate) fn wake(&self) {
        self.registry().sleep.wake(self.index);
    }

    /// Pushes a job that is not a join's on the deque. Must be called on the worker's own thread.
    pub(crate) fn push(&self, job: JobRef) {
        debug_assert!(std::ptr::eq(self, current()), "only the owner pushes");
        // SAFETY: 1. workers are obtained through `CURRENT`, or passed to jobs by the thread that
        // runs them, so this thread is the owner. 2. `publish` follows.
        let pushed = unsafe { self.deque.push_loose(job.header()) };
        if pushed.is_requested {
            self.publish();
        }
    }

    /// Publishes jobs because they were requested, or makes room because the deque is full.
    #[cold]
    #[inline(never)]
    pub(crate) fn publish(&self) {
        // SAFETY: this thread is the owner, because workers are obtained through `CURRENT` or
        // passed to jobs by the thread that runs them.
        if unsafe { self.deque.publish() } {
            self.registry().sleep.wake_one_if_worthwhile();
        }
    }

    /// Returns whether there are jobs on the deque.
    pub(crate) fn has_jobs(&self) -> bool {
        self.deque.has_jobs()
    }

    /// Pops the newest job of the deque, or the oldest in a breadth-first pool.
    pub(crate) fn pop(&self) -> Option<JobRef> {
        debug_assert!(std::ptr::eq(self, current()), "only the owner pops");
        let job = match self.registry().breadth_first {
            // SAFETY: this thread is the owner, for the reason given in `push`.
            false => unsafe { self.deque.pop() },
            // SAFETY: this thread is the owner, for the reason given in `push`.
            true => unsafe { self.deque.pop_oldest() },
        };
        job.map(JobRef::from_header)
    }

    fn find_local(&self) -> Option<FoundJob<'_>> {
        if let Some(job) = self.pop() {
            return Some((job, Some(self)));
        }
        Some((self.registry().take_broadcast(self.index)?, None))
    }

    fn find_elsewhere(&self) -> Option<FoundJob<'_>> {
        self.steal().or_else(|| self.find_injected())
    }

    fn find_injected(&self) -> Option<FoundJob<'_>> {
        Some((self.registry().take_injected()?, None))
    }

    fn steal(&self) -> Option<FoundJob<'_>> {
        let workers = &self.registry().workers;
        // Relaxed: only this thread touches it.
        let mut rng = Rng::resume(self.rng.load(Relaxed));
        let start = rng.below(workers.len() as u32) as usize;
        self.rng.store(rng.state(), Relaxed);
        let victims = workers[start..].iter().chain(&workers[..start]);
        let mut victims = victims.filter(|victim| victim.index != self.index);
        victims.find_map(|victim| {
            let job = victim.deque.steal()?;
            Some((JobRef::from_header(job), Some(victim)))
        })
    }

    /// Returns whether this search begins with the injector.
    fn is_injectors_turn(&self) -> bool {
        // Relaxed: only this thread touches it.
        let searches = self.searches.load(Relaxed).wrapping_add(1);
        self.searches.store(searches, Relaxed);
        searches.is_multiple_of(INJECTOR_INTERVAL)
    }

    /// Runs one job, from this worker or another. Returns `false` if there is none.
    pub(crate) fn run_one(&self) -> bool {
        let found = self.find_local().or_else(|| self.find_elsewhere());
        found.map(|found| self.run(found)).is_some()
    }

    /// Runs one job of this worker. Returns `false` if there is none.
    pub(crate) fn run_one_local(&self) -> bool {
        self.find_local().map(|found| self.run(found)).is_some()
    }

    /// Runs this worker's jobs until there are none, because the pool has ended and no other thread
    /// will. Jobs that they spawn are run by the same loop, so that a long chain needs no deep
    /// deque.
    pub(crate) fn finish(&self) {
        // Relaxed, both: only this thread touches it.
        if !self.is_finishing.swap(true, Relaxed) {
            while self.run_one_local() {}
            self.is_finishing.store(false, Relaxed);
        }
    }

    fn run(&self, (job, from): FoundJob<'_>) {
        // SAFETY: 1. the job was just taken from a queue, and is run once. 2. This worker is the
        // thread's, for the reason given in `push`.
        unsafe { job.run(from, self) };
    }

    /// Runs jobs until the latch is set.
    #[inline]
    pub(crate) fn wait_until(&self, latch: &Latch) {
        if !latch.is_set() {
            self.wait(latch);
        }
    }

    #[cold]
    fn wait(&self, latch: &Latch) {
        // Jobs do not unwind. If our own code did, the frame of the latch would go while other
        // threads still use it.
        let abort = AbortIfPanic("a bug in the pool");
        // If this thread is a runtime's worker as well, its tasks go on meanwhile on another
        // thread.
        let blocked = Blocked::if_worker();
        // The thread is counted once, however deeply its waits are nested.
        let is_first = self.is_users_thread() && !self.is_waiting.load(Relaxed);
        let member = is_first.then(AwakeWorker::new);
        if is_first {
            // Relaxed, all three: only this thread touches it.
            self.is_waiting.store(true, Relaxed);
        }
        let mut search = Search { worker: self, is_counted: false, rounds: 0 };
        while !latch.is_set() {
            match search.next() {
                Some(found) => self.run(found),
                None => search.rest(latch),
            }
        }
        search.stop();
        if is_first {
            self.is_waiting.store(false, Relaxed);
        }
        drop((member, blocked));
        std::mem::forget(abort);
    }
}

/// The state of a worker that looks for a job.
struct Search<'a> {
    worker: &'a Worker,
    /// True if the worker counts as a searcher.
    is_counted: bool,
    rounds: u32,
}

impl<'a> Search<'a> {
    /// Returns a job, if one is found; that ends the search.
    fn next(&mut self) -> Option<FoundJob<'a>> {
        let worker = self.worker;
        let injected = if worker.is_injectors_turn() { worker.find_injected() } else { None };
        let found = injected.or_else(|| worker.find_local()).or_else(|| self.elsewhere());
        if found.is_some() {
            self.stop();
            self.rounds = 0;
        }
        found
    }

    fn elsewhere(&mut self) -> Option<FoundJob<'a>> {
        if !self.is_counted {
            let idle = &self.worker.registry().sleep.idle;
            self.is_counted = idle.has_room() && idle.start_searching();
        }
        // A worker that may not count as a searcher looks only once it has let other threads run.
        if self.is_counted || self.rounds > 0 { self.worker.find_elsewhere() } else { None }
    }

    /// Spins or sleeps, after a round that found nothing.
    fn rest(&mut self, latch: &Latch) {
        self.rounds += 1;
        // A worker that waits for the end of the pool waits long. What others wait for ends soon,
        // so they should keep their processor.
        let is_idle = std::ptr::eq(latch, &self.worker.end);
        let has_room = self.worker.registry().sleep.idle.has_room();
        if self.rounds < ROUNDS && has_room {
            let lingers = is_idle && !self.is_counted;
            if lingers || self.rounds.is_multiple_of(ROUNDS_PER_YIELD) || cfg!(blitz_loom) {
                thread::yield_now();
            } else {
                (0..PAUSES).for_each(|_| spin_loop());
            }
            return;
        }
        let was_counted = std::mem::take(&mut self.is_counted);
        let worker = self.worker;
        let woken = worker.registry().sleep.sleep(worker.index, was_counted, latch, worker);
        self.is_counted = woken == WakeKind::Searching;
        self.rounds = 0;
    }

    /// Ends the search; the last searcher wakes a sleeper if there is more work.
    fn stop(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.worker.stop_searching();
        }
    }
}

impl Worker {
    /// Performs S1 and S2 of `pool/idle.rs`, and repeats the request of the workers that sleep.
    fn stop_searching(&self) {
        let registry = self.registry();
        if !registry.sleep.idle.stop_searching() || !registry.sleep.idle.is_worth_waking() {
            return;
        }
        for worker in &registry.workers {
            worker.deque.request();
        }
        if registry.has_injected() || self.others_have_jobs() {
            registry.sleep.wake_one_if_worthwhile();
        }
    }

    fn others_have_jobs(&self) -> bool {
        let workers = self.registry().workers.iter();
        workers.filter(|other| other.index != self.index).any(Worker::has_jobs)
    }
}

impl WorkSources for Worker {
    fn request(&self) {
        for other in &self.registry().workers {
            if other.index != self.index {
                other.deque.request();
            }
        }
    }

    fn has_work(&self) -> bool {
        let registry = self.registry();
        registry.has_injected() || registry.has_broadcast(self.index) || self.others_have_jobs()
    }
}

/// Makes the calling thread worker `index` until the pool ends.
pub(crate) fn run(registry: &Arc<Registry>, index: usize) {
    let worker = &registry.workers[index];
    let _member = AwakeWorker::new();
    enter(worker);
    registry.mark_primed();
    if let Some(handler) = &registry.on_start {
        registry.catch_unwind(|| handler(index));
    }
    worker.wait_until(&worker.end);
    debug_assert!(!worker.has_jobs(), "the job's spawner holds the pool");
    if let Some(handler) = &registry.on_exit {
        registry.catch_unwind(|| handler(index));
    }
    leave();
}

/// Makes the calling thread that worker; the thread must hold its registry until it leaves.
pub(crate) fn enter(worker: &Worker) {
    // This is checked before anything is changed, so that a thread that catches the panic goes on
    // as the worker that it was.
    assert!(current().is_null(), "this thread is a worker already: run each builder on a new one");
    CURRENT.with(|current| current.set(worker));
}

/// Ends the calling thread's time as a worker.
pub(crate) fn leave() {
    CURRENT.with(|current| current.set(std::ptr::null()));
}

/// Makes the calling thread worker 0 permanently, though it goes on with something else. Returns
/// `false` if it is a worker already.
pub(crate) fn adopt(registry: &Arc<Registry>) -> bool {
    if !current().is_null() {
        return false;
    }
    // The thread never leaves the pool, so the pool must never be freed.
    std::mem::forget(registry.clone());
    enter(&registry.workers[0]);
    registry.mark_primed();
    true
}

#[cfg(all(test, not(blitz_loom)))]
pub(crate) mod for_test {
    //! Creates a worker for tests of code that runs on one.

    use super::{Worker, current};
    use crate::engine::fork::registry::{Registry, RegistryConfig};

    /// Calls `f` with a worker on a thread of its own.
    pub(crate) fn with_worker(f: impl FnOnce(&Worker) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let config = RegistryConfig {
                    threads: 1,
                    use_current_thread: true,
                    ..RegistryConfig::default()
                };
                let registry = Registry::start(config, |_| Ok(())).unwrap();
                // SAFETY: `start` has made this thread the worker, permanently.
                f(unsafe { &*current() });
                drop(registry);
            });
        });
    }
}
