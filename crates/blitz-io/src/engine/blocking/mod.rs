//! The blocking pool: threads that run blocking closures, so that workers need not.
//!
//! A job is an ordinary task with a future that runs the closure in its only poll. So handles,
//! aborts, panics, IDs and spawn locations are those of tasks, and a job's entry in the queue is
//! the task itself. Its cell is allocated from the `Arena` of the core that spawns it, or from one
//! of the outside arenas.
//!
//! - [`shards`] is the queue; [`thread_set`] decides which threads are woken, started and ended;
//!   [`idle_threads`] holds the sleeping threads; [`registry`] assigns slots and joins threads.
//! - [`core_threads`] bounds the threads that run cores which their workers left.
//! - [`stop`] ends the pool and reports what it waits for.
//!
//! A thread of the pool may become a worker: when a worker blocks in place, an idle thread (or a
//! new one, not counted in the cap but bounded by `core_threads`) runs its core. And a worker
//! that lost its core becomes a thread of the pool, if there is room. Threads that run a core do
//! not count as threads of the pool, because no job may wait for them.

use std::{
    any::Any,
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use self::{
    core_threads::{CoreThreads, CountedThread},
    idle_threads::IdleSlot,
    registry::{Key, ThreadRegistry},
    shards::Shards,
    thread_set::{AfterFailedStart, AfterPush, ParkResult, SleepResult, ThreadSet},
};
use super::preempt::{
    handoff::{self, Handoff, SpareThreads, SpareWork},
    running_polls::RunningPoll,
};
use super::{
    pool::{Pool, find::SpinPolicy, held_core::spawner_number, stop::Alive},
    prim::{
        AtomicUsize, OnceLock, Ordering::Relaxed, clock::TimestampUnit, cpu::CpuClock, discard,
        lock, parker::Parker, thread,
    },
    threads::{ThreadConfig, ThreadMain, ThreadWrapper},
    work::{
        task::{
            budget::{self, Budget},
            cell::{Header, Label, Task},
            extra::Extra,
            handle::JoinHandle,
            poll,
        },
        thread_context::{
            self,
            blocking::BlockingPoolKey,
            erased::{Erased, ErasedKey},
        },
    },
};

mod core_threads;
pub(crate) mod idle_threads;
pub(crate) mod thread_set;
pub(crate) mod shards;
pub(crate) mod registry;
pub(crate) mod stop;

/// Number of slots beyond the cap, for threads that have left the set but not yet returned their
/// slot.
const SPARE_SLOTS: usize = 64;

/// Maximum number of threads that may be in a user's hook at once, on their way to spare work (a
/// core, or an offloaded task). It is as many as may compute without a core: where all of them
/// hang, more would be of no use.
const MAX_STARTING_SPARES: usize = 64;

/// Name of threads that are started for spare work (a core, or an offloaded task), if a user's
/// function names threads: that function may block, so it is not called for these.
const SPARE: &str = "blitz-spare";

/// How long an idle thread spins before it sleeps: a little more than it takes to wake a thread on
/// another processor here, which is the time that a task awaiting a job needs to spawn the next
/// one.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// Configuration of a blocking pool.
#[derive(Debug, Clone)]
pub(crate) struct BlockingConfig {
    /// Maximum number of threads.
    pub(crate) cap: usize,
    /// How long a thread stays alive without work.
    pub(crate) keep_alive: Duration,
    /// Number of cores that spawn jobs.
    pub(crate) cores: usize,
    pub(crate) thread_config: ThreadConfig,
    /// Unit of the timestamps that jobs get.
    pub(crate) unit: TimestampUnit,
}

/// The blocking pool: its threads, and the jobs that wait for them.
pub(crate) struct BlockingPool {
    thread_set: ThreadSet<SentWork, RunningPoll>,
    queue: Shards<Task>,
    registry: ThreadRegistry,
    /// Threads that have not ended.
    alive: Alive,
    /// Number of threads that were started for spare work and have not reached it, because they are
    /// still in a user's hook.
    starting: AtomicUsize,
    core_threads: Arc<CoreThreads>,
    config: BlockingConfig,
    around: OnceLock<ThreadWrapper>,
    /// Called after each job, because a paused clock stands still while there are jobs.
    #[cfg(feature = "test-util")]
    after: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The future of a job: runs the closure in its first and only poll.
pub(crate) struct BlockingJob<F>(Option<F>);

// The closure is never pinned: it is moved out before it runs.
impl<F> Unpin for BlockingJob<F> {}

impl<F> BlockingJob<F> {
    pub(crate) fn new(f: F) -> Self {
        Self(Some(f))
    }
}

impl<F: FnOnce() -> R, R> Future for BlockingJob<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        // A job may block for as long as it likes; the caller of `poll` restores its own budget.
        budget::set(Budget::unlimited());
        let job = self.0.take().expect("a job is polled once");
        Poll::Ready(job())
    }
}

/// A job that was queued, or refused, with the step that is left to do for it.
#[must_use = "the job may wait for what is left to do"]
pub(crate) struct Spawned<R> {
    handle: JoinHandle<R>,
    step: SpawnStep,
}

/// The step that is left to do after a job was spawned.
#[must_use = "the job may wait for it"]
pub(crate) enum SpawnStep {
    Nothing,
    /// The queue is closed, or about to be: end the job, which drops the user's closure.
    Refused(Task),
    /// A thread must be started.
    Start {
        blocking: Arc<BlockingPool>,
        number: usize,
        job: NonNull<Header>,
    },
}

/// Relation of the calling thread to a blocking pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    /// The thread belongs to the pool and is counted in `alive`.
    Inside,
    /// The thread belonged to the pool and is at its very end: other threads of the pool may join
    /// it.
    AtEnd,
    Outside,
}

/// Spare work on its way to a thread.
struct SentWork {
    spare_work: SpareWork,
    /// The count of the thread, if it is for a core that its worker has left in order to block. One
    /// for the core of a stuck thread is counted when it arrives.
    counted: Option<CountedThread>,
}

impl From<SpareWork> for SentWork {
    fn from(spare_work: SpareWork) -> Self {
        Self { spare_work, counted: None }
    }
}

/// Guard that counts a thread that was started for spare work, until it reaches the spare work.
struct StartingSpare(Arc<BlockingPool>);

impl StartingSpare {
    fn new(blocking: &Arc<BlockingPool>) -> Self {
        // Relaxed: a counter that orders nothing.
        blocking.starting.fetch_add(1, Relaxed);
        Self(blocking.clone())
    }
}

impl Drop for StartingSpare {
    fn drop(&mut self) {
        // Relaxed: a counter that orders nothing.
        self.0.starting.fetch_sub(1, Relaxed);
    }
}

/// Reason why no thread was started.
enum NoThread {
    System(io::Error),
    /// The user's function that names threads panicked.
    Panic(Box<dyn Any + Send>),
}

impl BlockingPool {
    pub(crate) fn new(config: BlockingConfig) -> Arc<Self> {
        Arc::new(Self {
            thread_set: ThreadSet::new(
                config.cap,
                config.cap.min(thread_set::MAX_THREADS) + SPARE_SLOTS,
            ),
            queue: Shards::new(config.cores),
            registry: ThreadRegistry::new(),
            alive: Alive::new(),
            starting: AtomicUsize::new(0),
            core_threads: CoreThreads::new(config.cap.saturating_add(config.cores)),
            around: OnceLock::new(),
            #[cfg(feature = "test-util")]
            after: OnceLock::new(),
            config,
        })
    }

    /// Makes each job hold the clock of its pool until the job has ended. Then `after` is called,
    /// which releases the clock.
    #[cfg(feature = "test-util")]
    pub(crate) fn hold_clock(&self, after: Box<dyn Fn() + Send + Sync>) {
        assert!(self.after.set(after).is_ok(), "a clock is held by one blocking pool");
    }

    /// Wraps `around` around the life of each thread.
    pub(crate) fn wrap_threads(&self, around: ThreadWrapper) {
        assert!(self.around.set(around).is_ok(), "`wrap_threads` is called once");
    }

    /// Creates a job and queues it. The caller must `settle` the result where nothing is borrowed,
    /// because no user code may run or be dropped inside.
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        job: F,
        label: Label<X>,
    ) -> Spawned<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        #[cfg(feature = "test-util")]
        if self.after.get().is_some()
            && let Some(timers) = pool.drivers.timers()
        {
            timers.clock().inhibit_auto_advance();
        }
        debug_assert!(X::IS_BLOCKING, "a blocking job's data lacks the job mark");
        let (task, job) = pool.make(job, label);
        // SAFETY: this is the join reference of a new task with that output, and no other handle is
        // made of it.
        let handle = unsafe { JoinHandle::new(job) };
        let number = spawner_number(pool);
        let step = match self.queue.push(number, task) {
            Err(task) => {
                self.release_clock();
                SpawnStep::Refused(task)
            }
            Ok(()) => match self
                .thread_set
                .find_thread(|| self.queue.is_waiting(number), || self.queue.len())
            {
                AfterPush::Nothing => SpawnStep::Nothing,
                AfterPush::TakeBack => match self.queue.take_out(number, job) {
                    Some(task) => {
                        self.release_clock();
                        SpawnStep::Refused(task)
                    }
                    None => SpawnStep::Nothing,
                },
                AfterPush::Start => SpawnStep::Start { blocking: self.clone(), number, job },
            },
        };
        Spawned { handle, step }
    }

    /// Releases the paused clock, because a job that held it has ended, or will not begin.
    fn release_clock(&self) {
        #[cfg(feature = "test-util")]
        if let Some(after) = self.after.get() {
            after();
        }
    }

    /// Returns the number of threads of the pool.
    pub(crate) fn threads(&self) -> usize {
        self.thread_set.counts().threads
    }

    /// Returns the number of idle threads.
    pub(crate) fn idle_threads(&self) -> usize {
        self.thread_set.counts().idle
    }

    /// Returns true if jobs are refused, or are about to be.
    #[cfg(any(feature = "fs", feature = "io-std"))]
    pub(crate) fn is_stopping(&self) -> bool {
        self.thread_set.is_stopping()
    }

    /// Returns the number of jobs that no thread has taken.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Starts a thread for spare work; or for jobs if `work` is `None`, and then the set has counted
    /// the thread already.
    fn start(self: &Arc<Self>, work: Option<SentWork>) -> Result<(), NoThread> {
        let named = catch_unwind(AssertUnwindSafe(|| self.config.thread_config.names(1)));
        let names = named.map_err(NoThread::Panic)?.map_err(NoThread::System)?;
        let name = names.into_iter().next().expect("one name was requested");
        self.start_as(name, work).map_err(NoThread::System)
    }

    /// Starts a thread with the given name, without calling user code to name it.
    fn start_as(self: &Arc<Self>, name: String, work: Option<SentWork>) -> io::Result<()> {
        let key = self.registry.register();
        self.alive.add();
        let is_for_jobs = work.is_none();
        let starting = work.is_some().then(|| StartingSpare::new(self));
        if is_for_jobs {
            self.thread_set.add_coming();
        }
        let thread = self.config.thread_config.start(name, self.around.get().cloned(), {
            let (before, body, after) = (self.clone(), self.clone(), self.clone());
            ThreadMain {
                before: move || {
                    before.enter();
                    // Before a user's hook, which may block: no job may wait for that.
                    if is_for_jobs {
                        before.thread_set.subtract_coming();
                    }
                },
                body: move || {
                    drop(starting);
                    body.work(work, false);
                },
                after: move || after.leave(key),
            }
        });
        match thread {
            Ok(thread) => {
                self.registry.store_handle(key, thread);
                Ok(())
            }
            Err(error) => {
                if is_for_jobs {
                    self.thread_set.subtract_coming();
                }
                self.alive.remove();
                self.registry.unregister(key);
                Err(error)
            }
        }
    }

    /// Starts a thread that runs the queued jobs and ends. The thread is not of the set, so it may
    /// exceed the cap. If the system refuses it, the jobs wait on.
    fn start_helper(self: &Arc<Self>) {
        let key = self.registry.register();
        self.alive.add();
        let name = self.config.thread_config.one_name.as_deref().unwrap_or(SPARE).to_owned();
        let thread = self.config.thread_config.start(name, self.around.get().cloned(), {
            let (before, body, after) = (self.clone(), self.clone(), self.clone());
            ThreadMain {
                before: move || before.enter(),
                body: move || body.run_queued(),
                after: move || after.leave(key),
            }
        });
        match thread {
            Ok(thread) => self.registry.store_handle(key, thread),
            Err(_) => {
                self.alive.remove();
                self.registry.unregister(key);
            }
        }
    }

    /// Runs all queued jobs.
    fn run_queued(&self) {
        let mut from = 0;
        while let Some(job) = self.queue.pop(&mut from) {
            poll::run(job, self.config.unit.now());
            self.release_clock();
        }
    }

    /// Registers a thread of the pool, as its first act, before any user code: a hook may shut the
    /// runtime down, and the shutdown must know that this thread is one of those that are alive.
    fn enter(&self) {
        thread_context::blocking::set_pool(Erased::new(self));
    }

    /// Unregisters a thread that was started here, as its last act. Only then does it join others,
    /// because those may wait, in the destructor of a thread-local, for all threads that are alive.
    fn leave(&self, key: Key) {
        thread_context::blocking::set_left_pool();
        self.alive.remove();
        self.registry.mark_ended(key).into_iter().for_each(|over| over.join());
    }

    fn caller_kind(&self) -> CallerKind {
        let membership = thread_context::blocking::membership();
        if !std::ptr::eq(membership.pool.get(), self) {
            return CallerKind::Outside;
        }
        if membership.has_left { CallerKind::AtEnd } else { CallerKind::Inside }
    }

    /// Runs the spare work, if there is one, and then jobs and spare work for as long as the set
    /// keeps this thread. Without spare work the thread is in the set already. `was_worker` is true
    /// for a thread that has run tasks.
    fn work(self: &Arc<Self>, mut work: Option<SentWork>, mut was_worker: bool) {
        loop {
            if let Some(work) = work {
                was_worker = true;
                // This may drop the last reference to a runtime, so it must not be kept while we
                // sleep.
                self.run_spare_work(work);
                if !self.thread_set.join() {
                    return;
                }
            }
            work = self.serve(was_worker);
            if work.is_none() {
                return;
            }
        }
    }

    fn run_spare_work(&self, SentWork { spare_work, counted }: SentWork) {
        let handoff = match spare_work {
            SpareWork::Core(handoff) => handoff,
            SpareWork::Poll(offloaded) => return offloaded.run(),
        };
        let counted = counted.unwrap_or_else(|| self.core_threads.count());
        handoff.run();
        self.run_waiting_cores(Some(counted), &handoff);
    }

    /// Runs cores of the pool of `handoff` that no thread was found for, as long as the bound permits
    /// it (R1 to R4 of `core_threads.rs`).
    fn run_waiting_cores(&self, counted: Option<CountedThread>, handoff: &Handoff) {
        self.core_threads.run_waiting(
            counted,
            || handoff.core_waits(),
            || handoff.take_waiting_core(),
            handoff::run_left_core,
        );
    }

    /// Runs jobs until the thread leaves the set, to end or for spare work. Returns the spare work.
    fn serve(self: &Arc<Self>, was_worker: bool) -> Option<SentWork> {
        let slot = self.take_slot();
        let idle_slot = self.thread_set.idle_slots.slot(slot);
        let thread = CpuClock::of_this_thread().thread();
        // Neighbours begin at different shards.
        let mut from = slot;
        let mut spin_policy = SpinPolicy::new();
        let work = loop {
            while let Some(job) = self.queue.pop(&mut from) {
                self.run(job, idle_slot, thread);
            }
            let park_once = |parker: &Parker| {
                if spin_before_sleep(parker, &mut spin_policy) {
                    return ParkResult::Unparked;
                }
                if was_worker && let Some(result) = self.thread_set.check_release() {
                    return result;
                }
                if thread_context::blocking::stays() {
                    parker.park();
                    return ParkResult::Unparked;
                }
                if parker.park_timeout(self.config.keep_alive) {
                    ParkResult::Unparked
                } else {
                    ParkResult::TimedOut
                }
            };
            match self.thread_set.sleep(slot, || !self.queue.is_empty(), park_once) {
                SleepResult::CheckQueue => {}
                SleepResult::Woken => {
                    let work = lock(&idle_slot.spare_work).take();
                    if work.is_none() {
                        self.thread_set.subtract_coming();
                    }
                    if let Some(work) = work {
                        if self.thread_set.may_leave(|| !self.queue.is_empty()) {
                            break Some(work);
                        }
                        self.pass_on(work);
                    }
                }
                SleepResult::OutOfSet => break None,
                SleepResult::Leaving => {
                    while let Some(job) = self.queue.pop(&mut from) {
                        self.run(job, idle_slot, thread);
                    }
                    break None;
                }
            }
        };
        self.registry.return_slot(slot);
        work
    }

    /// Finds another thread for spare work that came to a thread which must stay with its jobs.
    fn pass_on(self: &Arc<Self>, SentWork { spare_work, counted }: SentWork) {
        match (spare_work, counted) {
            (SpareWork::Core(handoff), Some(counted)) => {
                // If there is no other thread, the core waits for its worker.
                let _ = self.request_counted(handoff, counted);
            }
            // The monitor requests a thread again, or the task goes back to its queue.
            (spare_work, _) => drop(self.clone().request_thread(spare_work)),
        }
    }

    fn take_slot(&self) -> usize {
        loop {
            if let Some(slot) = self.registry.take_slot(self.thread_set.idle_slots.count()) {
                self.thread_set.idle_slots.allocate(slot);
                return slot;
            }
            // All slots are taken: threads have left the set and are about to return theirs.
            thread::yield_now();
        }
    }
}

/// Waits a little for a wake-up before the thread sleeps, if that has paid lately. The thread is
/// counted as idle already, so a spawner that wakes it finds it awake and makes no system call.
///
/// The thread yields to others while it waits, because the worker that is about to spawn the next
/// job may have its thread on the same processor.
fn spin_before_sleep(parker: &Parker, spin_policy: &mut SpinPolicy) -> bool {
    if !spin_policy.should_spin() {
        return false;
    }
    let begun = Instant::now();
    let called = loop {
        if parker.try_take() {
            break true;
        }
        if begun.elapsed() > SPIN_TIME {
            break false;
        }
        thread::yield_now();
    };
    spin_policy.learn(called);
    called
}

impl BlockingPool {
    /// Runs a job, and records it for reports; `thread` is the system's ID of the calling thread.
    fn run(&self, job: Task, idle_slot: &IdleSlot<SentWork, RunningPoll>, thread: Option<i64>) {
        let header = job.into_header();
        // SAFETY: obligation 1: the queue entry is ours, and keeps the task's memory alive.
        *lock(&idle_slot.running) =
            Some(unsafe { RunningPoll::of(header, Instant::now(), thread) });
        // SAFETY: `into_header` passed the entry to us, and only one `Task` is made of it.
        poll::run(unsafe { Task::new(header) }, self.config.unit.now());
        let over = lock(&idle_slot.running).take();
        // Not under the lock, because this may drop the last reference to the task's name, and with
        // it call a user's allocator.
        drop(over);
        self.release_clock();
    }
}

impl<R> Spawned<R> {
    /// Does the step that is left, as [`SpawnStep::settle`] does, and returns the handle.
    #[inline]
    #[track_caller]
    pub(crate) fn settle(self) -> JoinHandle<R> {
        let (handle, step) = self.part();
        step.settle();
        handle
    }

    /// Returns the handle and the step, for callers that must keep the handle though settling may
    /// panic.
    #[inline]
    pub(crate) fn part(self) -> (JoinHandle<R>, SpawnStep) {
        (self.handle, self.step)
    }
}

impl SpawnStep {
    /// Does the step that is left. User code runs: the function that names threads, and the
    /// destructor of a closure that will not run.
    ///
    /// # Panics
    /// If no thread is alive and the system refuses one, as Tokio does; the job has been cancelled
    /// then. Also if the function that names threads panics; the job has been cancelled, or waits
    /// for a thread that is alive.
    #[inline]
    #[track_caller]
    pub(crate) fn settle(self) {
        match self {
            SpawnStep::Nothing => {}
            // Dropping the task ends it as cancelled.
            SpawnStep::Refused(task) => drop(task),
            SpawnStep::Start { blocking, number, job } => blocking.start_for(number, job),
        }
    }
}

impl SpawnStep {
    /// Does the step that is left, as [`SpawnStep::settle`] does, but returns false where that
    /// panics because the system refuses a thread. Also returns false if the runtime ends. In both
    /// cases the job has been cancelled, and its closure dropped.
    #[cfg(any(feature = "fs", feature = "io-std"))]
    pub(crate) fn try_settle(self) -> bool {
        match self {
            SpawnStep::Nothing => true,
            SpawnStep::Refused(task) => {
                // Dropping the task ends it as cancelled.
                drop(task);
                false
            }
            SpawnStep::Start { blocking, number, job } => {
                blocking.try_start_for(number, job).is_ok()
            }
        }
    }
}

impl BlockingPool {
    /// Starts the thread that was counted for `job`, and panics if the job has been cancelled for
    /// want of one.
    #[cold]
    #[track_caller]
    fn start_for(self: &Arc<Self>, number: usize, job: NonNull<Header>) {
        if let Err(error) = self.try_start_for(number, job) {
            panic!(
                "OS can't spawn worker thread: {error}; there is no thread for blocking work \
                 that it could wait for: raise the limit on threads, or spawn again later"
            );
        }
    }

    /// Starts the thread that was counted for `job`; does steps F1 to F3 of `thread_set.rs` if that
    /// fails.
    ///
    /// # Errors
    /// Returns the system's error if there is no thread that the job could wait for. The job has
    /// been cancelled then.
    #[cold]
    fn try_start_for(self: &Arc<Self>, number: usize, job: NonNull<Header>) -> io::Result<()> {
        let why = match self.start(None) {
            Ok(()) => {
                self.thread_set.start_succeeded();
                return Ok(());
            }
            Err(why) => why,
        };
        let taken_out = match self.thread_set.start_failed() {
            AfterFailedStart::JobWaits => None,
            AfterFailedStart::TakeBack => self.queue.take_out(number, job),
        };
        if taken_out.is_some() {
            self.release_clock();
        }
        let stranded = taken_out.is_some();
        drop(taken_out);
        match why {
            NoThread::Panic(payload) => resume_unwind(payload),
            NoThread::System(error) if stranded => Err(error),
            // A living thread has the job, or will take it.
            NoThread::System(_) => Ok(()),
        }
    }
}

impl BlockingPool {
    /// Gives the spare work to an idle thread; returns it as an error if no thread is idle.
    fn send_idle(&self, work: SentWork) -> Result<(), SentWork> {
        let Some(slot) = self.thread_set.claim_idle() else { return Err(work) };
        *lock(&self.thread_set.idle_slots.slot(slot).spare_work) = Some(work);
        self.thread_set.idle_slots.wake(slot);
        Ok(())
    }
}

impl BlockingPool {
    /// Finds a thread for a core, which has been counted. Returns false if there is none.
    fn request_counted(self: &Arc<Self>, handoff: Arc<Handoff>, counted: CountedThread) -> bool {
        let spare_work = SpareWork::Core(handoff.clone());
        let work = match self.send_idle(SentWork { spare_work, counted: Some(counted) }) {
            Ok(()) => return true,
            Err(work) => work,
        };
        if self.thread_set.is_stopping() {
            return false;
        }
        match self.start(Some(work)) {
            Ok(()) => return true,
            Err(NoThread::System(_)) => {}
            Err(NoThread::Panic(payload)) => discard(payload),
        }
        // The count was given up. Other cores may have been left meanwhile and found it at the
        // bound, and a thread may have become idle, which runs any core that waits.
        let counted = self.core_threads.try_count();
        counted.is_some()
            && self.send_idle(SentWork { spare_work: SpareWork::Core(handoff), counted }).is_ok()
    }
}

impl SpareThreads for BlockingPool {
    fn request_for_core(self: Arc<Self>, handoff: Arc<Handoff>) -> bool {
        // If refused, the core stays where its worker or another thread will find it. Threads that
        // run a core and do not block are counted here too, and there are as many as cores.
        let Some(counted) = self.core_threads.try_count() else { return false };
        self.request_counted(handoff, counted)
    }

    fn request_thread(self: Arc<Self>, spare_work: SpareWork) -> Result<(), SpareWork> {
        let SentWork { spare_work, .. } = match self.send_idle(spare_work.into()) {
            Ok(()) => return Ok(()),
            Err(work) => work,
        };
        // Relaxed: exceeding the bound by a few does no harm.
        if self.thread_set.is_stopping() || self.starting.load(Relaxed) >= MAX_STARTING_SPARES {
            return Err(spare_work);
        }
        let kept = spare_work.clone();
        let name = self.config.thread_config.one_name.as_deref().unwrap_or(SPARE);
        self.start_as(name.to_owned(), Some(spare_work.into())).map_err(|_| kept)
    }

    fn request_idle_thread(self: Arc<Self>, spare_work: SpareWork) -> Result<(), SpareWork> {
        self.send_idle(spare_work.into()).map_err(|work| work.spare_work)
    }

    fn is_ending(&self) -> bool {
        self.thread_set.is_stopping()
    }

    fn release_workers(&self) {
        self.thread_set.release_workers();
    }

    fn adopt_this_thread(self: Arc<Self>, start: &Handoff) {
        self.alive.add();
        self.enter();
        // A worker that lost its core stays until the worker pool stops, as Tokio's workers do,
        // because a child process that it started may have requested to be killed when this thread
        // ends.
        thread_context::blocking::set_stays();
        self.run_waiting_cores(None, start);
        if self.thread_set.join() {
            self.work(None, true);
        }
        // The thread lives on as a thread of the worker pool, which joins it.
        thread_context::blocking::set_pool(Erased::null());
        self.alive.remove();
    }
}

impl ErasedKey for BlockingPoolKey {
    type Target = BlockingPool;
}

impl std::fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockingPool")
            .field("threads", &self.thread_set.counts())
            .finish_non_exhaustive()
    }
}
