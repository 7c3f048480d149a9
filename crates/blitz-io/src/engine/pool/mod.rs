//! The worker pool: cores, the threads that hold them, and the state that they share.
//!
//! A *core* is the right to run tasks: a run queue (its ring), a LIFO slot, an [`Arena`] that
//! allocates new tasks, a clock. A *thread* holds a core while it runs tasks. They are two things
//! so that a core can move to another thread when its thread is stuck in a poll.
//!
//! Each file is named by what it does: a [`worker`] runs tasks, [`find`] chooses the next task,
//! [`schedule`] chooses the queue of a runnable task, [`idle`] decides which workers sleep and
//! which are woken, [`park`] puts a thread to sleep, [`stop`] shuts the pool down, and
//! [`preempt`](super::preempt) sees that no task is stuck behind a poll that does not end.
//! [`held_core`] is how code inside a poll reaches the core of its thread; [`counters`] are the
//! metrics of each core.

use std::{
    future::Future,
    io,
    ptr::NonNull,
    sync::{Arc, Weak},
};

use self::{
    core::{Core, Remote},
    counters::{CoreCounters, OutsideCounters},
    histogram::Scale,
    idle::Idle,
    unhandled_panic::Unhandled,
};
use super::{
    preempt::{
        self,
        handoff::{self, Handoff, SpareThreads},
    },
    prim::{
        AtomicBool, AtomicUsize, Mutex, OnceLock,
        Ordering::Acquire,
        clock::{ScanCount, TimestampUnit},
        lock,
        pad::CachePadded,
        rng::Seeds,
        thread_number,
    },
    queue::injector::Injector,
    threads::{Hook, ThreadConfig, ThreadHandle, ThreadMain, ThreadWrapper},
    work::{
        task::{
            arena::{Arena, Origin, Schedule},
            cell::{Header, Label, Task},
            extra::Extra,
            handle::JoinHandle,
            hooks::{self, Hooks},
        },
        thread_context::{self, Inside},
    },
};

pub(crate) mod core;
pub(crate) mod held_core;
pub(crate) mod lifo;
pub(crate) mod worker;
pub(crate) mod drive;
pub(crate) mod local;
pub(crate) mod find;
pub(crate) mod schedule;
pub(crate) mod awake;
pub(crate) mod idle;
pub(crate) mod keep_up;
pub(crate) mod poller;
pub(crate) mod park;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod claimed_tasks;

pub(crate) mod counters;
pub(crate) mod dump;
pub(crate) mod histogram;
pub(crate) mod poll_times;
pub(crate) mod unhandled_panic;
pub(crate) mod queue_depth;

/// Number of `Arena`s for tasks that are spawned by threads without a core, each behind a lock.
/// Eight, so that many outside threads seldom contend; picked, not measured.
const OUTSIDE_ARENAS: usize = 8;

/// The settings from which a pool is created.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) workers: usize,
    /// True if the workers are threads of the pool; if false, `block_on` runs the tasks.
    pub(crate) threaded: bool,
    /// True if the threads start with the first task instead of with the pool.
    pub(crate) lazy: bool,
    pub(crate) lifo_slot: bool,
    /// Number of polls between two checks of the injector (the shared queue); `None` lets each core
    /// tune it.
    pub(crate) global_queue_interval: Option<u32>,
    /// Number of polls in a worker's tick.
    pub(crate) tick_polls: u32,
    pub(crate) thread_config: ThreadConfig,
    pub(crate) on_park: Option<Hook>,
    pub(crate) on_unpark: Option<Hook>,
    pub(crate) hooks: Option<Arc<Hooks>>,
    /// The histogram of poll durations, if they are counted.
    pub(crate) poll_times: Option<Scale>,
    /// The histogram of times from queueing to polling, if they are counted.
    pub(crate) latencies: Option<Scale>,
    /// The seed from which all random choices are derived; `None` uses a different one in each
    /// process.
    pub(crate) seed: Option<u64>,
    /// True if the panic of a task shuts the pool down.
    pub(crate) ends_on_panic: bool,
    /// The settings of the monitor that detects overlong polls, if there is one.
    pub(crate) preempt: Option<preempt::Settings>,
}

impl Config {
    /// Returns the unit of the timestamps that tasks carry.
    pub(crate) fn unit(&self) -> TimestampUnit {
        if self.tracks_latency() { TimestampUnit::Micros } else { TimestampUnit::Millis }
    }

    /// Returns true if each poll is timed.
    #[inline(always)]
    fn is_timed(&self) -> bool {
        self.poll_times.is_some() || self.tracks_latency()
    }

    /// Returns true if the time from queueing to polling is measured, for a histogram or for hooks.
    fn tracks_latency(&self) -> bool {
        self.latencies.is_some() || self.hooks.as_ref().is_some_and(|hooks| hooks.track_latency)
    }
}

/// The state that all threads of a pool share.
pub(crate) struct Pool {
    pub(crate) config: Config,
    pub(crate) remotes: Box<[Remote]>,
    /// The queue that all cores share. Padded, like the other fields that many threads write,
    /// because the words beside it are read by every worker for each poll.
    pub(crate) injector: CachePadded<Injector<Task>>,
    pub(crate) idle: CachePadded<Idle>,
    pub(crate) short_sleeper: CachePadded<keep_up::ShortSleeper>,
    pub(crate) drivers: poller::PoolDrivers,
    outside: Box<[Mutex<OutsideArena>]>,
    /// Advanced by a monitor to make the cores read their clocks.
    pub(crate) scan_count: ScanCount,
    pub(crate) stopping: AtomicBool,
    /// True if each poll is timed; placed beside `stopping`, which every poll reads.
    timed: bool,
    pub(crate) outside_counters: CachePadded<OutsideCounters>,
    pub(crate) free_cores: drive::FreeCores,
    pub(crate) shutdown: stop::ShutdownCounts,
    /// Tasks that the shutdown has claimed and that are still to be dropped.
    pub(crate) claimed: claimed_tasks::ClaimedTasks,
    pub(crate) blocked: claimed_tasks::BlockedPolls,
    /// Number of `block_on` calls that wait, on threads that run nothing else.
    waiting_roots: CachePadded<AtomicUsize>,
    threads: Mutex<Vec<ThreadHandle>>,
    started: OnceLock<Result<(), StartFailure>>,
    /// The threads of the pool that have not ended yet.
    alive: stop::Alive,
    around: OnceLock<ThreadWrapper>,
    pub(crate) seeds: Option<Seeds>,
    owner_thread: local::OwnerThread,
    pub(crate) unhandled: Unhandled,
    /// The layer above, which finds threads for cores that were taken or given up, and work for
    /// threads that lost their core.
    pub(crate) spare_threads: OnceLock<Weak<dyn SpareThreads>>,
    pub(crate) watched: Option<Box<preempt::WatchedPool>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("workers", &self.config.workers).finish_non_exhaustive()
    }
}

/// A future that could not be spawned, with the reason.
pub(crate) struct RefusedSpawn<F, X = ()> {
    future: F,
    label: Label<X>,
    pool: Arc<Pool>,
    reason: RefusalReason,
}

enum RefusalReason {
    /// The pool's threads wait for the first task, or could not be started.
    NotStarted,
    Stopping,
}

impl<F, X> RefusedSpawn<F, X>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    /// Starts the pool and spawns again, or returns the handle of a task that was cancelled before
    /// its first poll. Drops or runs user code, so nothing may be borrowed.
    ///
    /// # Panics
    /// If the threads could not be started, like `std::thread::spawn`, because no thread is there
    /// to run the task.
    #[cold]
    #[track_caller]
    pub(crate) fn end(self) -> JoinHandle<F::Output> {
        let Self { future, label, pool, reason } = self;
        if let RefusalReason::NotStarted = reason {
            if let Err(error) = pool.start() {
                panic!("cannot start the runtime: {error}");
            }
            return match pool.spawn(future, label) {
                Ok(handle) => handle,
                Err(refused) => refused.end(),
            };
        }
        let header = pool.make_ended(future, label);
        // SAFETY: `make_ended` returned the join reference of a new task with this output.
        unsafe { JoinHandle::new(header) }
    }
}

/// The error that kept the threads from starting; kept because later calls return it again.
struct StartFailure {
    kind: io::ErrorKind,
    text: String,
}

/// An `Arena` behind a lock, created when the first task needs it.
pub(crate) struct OutsideArena {
    arena: Option<NonNull<Arena>>,
    /// The pool is stopping and accepts no more tasks; blocking jobs may still come.
    refuses: bool,
    /// The arena is closed.
    closed: bool,
}

// SAFETY: the thread that has the lock is the holder of the arena, and an arena may move to another
// thread.
unsafe impl Send for OutsideArena {}

impl Pool {
    /// Creates a pool with its cores and without threads.
    #[cfg(test)]
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Self::with_drivers(config, poller::PoolDrivers::none())
    }

    /// Creates a pool with its cores and without threads. Its workers poll `drivers` (the I/O
    /// driver and the timers).
    pub(crate) fn with_drivers(config: Config, drivers: poller::PoolDrivers) -> Arc<Self> {
        let workers = config.workers;
        let (owners, remotes): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| Remote::new(&config)).unzip();
        let outside = (0..OUTSIDE_ARENAS)
            .map(|_| Mutex::new(OutsideArena { arena: None, refuses: false, closed: false }))
            .collect();
        let pool = Arc::new(Self {
            remotes: remotes.into_boxed_slice(),
            injector: CachePadded::new(Injector::new()),
            idle: CachePadded::new(match config.threaded {
                true => Idle::counted(workers),
                false => Idle::new(workers),
            }),
            short_sleeper: CachePadded::new(keep_up::ShortSleeper::new()),
            drivers,
            outside,
            scan_count: ScanCount::default(),
            stopping: AtomicBool::new(false),
            timed: config.is_timed(),
            outside_counters: CachePadded::new(OutsideCounters::default()),
            free_cores: drive::FreeCores::new(),
            shutdown: stop::ShutdownCounts::new(workers),
            claimed: claimed_tasks::ClaimedTasks::new(),
            blocked: claimed_tasks::BlockedPolls::new(),
            waiting_roots: CachePadded::new(AtomicUsize::new(0)),
            threads: Mutex::new(Vec::new()),
            started: OnceLock::new(),
            alive: stop::Alive::new(),
            around: OnceLock::new(),
            seeds: config.seed.map(Seeds::new),
            owner_thread: local::OwnerThread::none(),
            unhandled: Unhandled::new(config.ends_on_panic),
            spare_threads: OnceLock::new(),
            watched: config
                .preempt
                .clone()
                .map(|settings| Box::new(preempt::WatchedPool::new(settings, workers))),
            config,
        });
        let cores = owners.into_iter().enumerate();
        pool.free_cores.fill(cores.map(|(index, ring)| Core::new(pool.clone(), index, ring)));
        pool
    }

    /// Wraps `around` round the life of each thread that is started from now on.
    pub(crate) fn wrap_threads(&self, around: ThreadWrapper) {
        assert!(self.around.set(around).is_ok(), "`wrap_threads` is called once");
    }

    /// Starts the threads, once. If the system refuses a thread, later calls do not try again: each
    /// returns the error of the first.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        debug_assert!(self.config.threaded, "this pool has no threads of its own");
        if self.started.get().is_none() {
            // A user's function that names threads may spawn, and so call this function again.
            let Some(_starting) = start::StartingPool::new(self) else { return Ok(()) };
            let names = self.config.thread_config.names(self.config.workers)?;
            self.started.get_or_init(|| self.start_threads(names));
        }
        match self.started.get() {
            Some(Err(failure)) => Err(io::Error::new(failure.kind, failure.text.clone())),
            _ => Ok(()),
        }
    }

    /// Starts the threads of a lazy pool, which waits for its first task to do so, because its I/O
    /// driver or its timers are used now.
    ///
    /// # Panics
    /// If the threads could not be started, like [`RefusedSpawn::end`].
    #[cfg(any(feature = "net", feature = "time"))]
    #[track_caller]
    pub(crate) fn start_if_lazy(self: &Arc<Self>) {
        if self.config.lazy
            && self.must_start()
            && let Err(error) = self.start()
        {
            panic!("cannot start the runtime: {error}");
        }
    }

    /// Returns true if `start` must be called before a task can run. False on a thread that is
    /// inside `start`: its task waits in the injector.
    fn must_start(&self) -> bool {
        let started = matches!(self.started.get(), Some(Ok(())));
        self.config.threaded && !started && !start::is_starting(self)
    }

    fn start_threads(self: &Arc<Self>, names: Vec<String>) -> Result<(), StartFailure> {
        for (started, name) in names.into_iter().enumerate() {
            // No core is left if the pool was stopped meanwhile.
            let Some(core) = self.free_cores.take() else { return Ok(()) };
            let slot = Handoff::reserved(core);
            self.alive.add();
            let thread = self.config.thread_config.start(name, self.around.get().cloned(), {
                let (pool, slot) = (self.clone(), slot.clone());
                ThreadMain {
                    before: || (),
                    body: move || handoff::run_worker(&slot),
                    after: move || pool.alive.remove(),
                }
            });
            match thread {
                Ok(thread) => lock(&self.threads).push(thread),
                Err(error) => {
                    // The core of the thread that did not start joins the cores that were not
                    // tried; a stop ends them.
                    self.alive.remove();
                    let core = slot.take().expect("no thread took it, and a stop waits");
                    self.free_cores.put_back(core);
                    return Err(StartFailure {
                        kind: error.kind(),
                        text: format!(
                            "started {started} of {} worker threads, then: {error}; use \
                             fewer with `worker_threads`, or raise the limit on threads",
                            self.config.workers
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Creates a task and queues it, or returns the future with the reason for the refusal.
    ///
    /// No user code runs and no user value is dropped inside, so `self` may be borrowed from
    /// something that dropping the future would free. The pool's reference count is not touched
    /// either, because it is on a cache line that every worker reads.
    #[inline]
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, RefusedSpawn<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let inside = thread_context::inside();
        // SAFETY: `core_of` returned this thread's core, and the borrow ends before the allocator
        // is called, which may be a user's.
        let Some(arena) = held_core::core_of(self).map(|core| unsafe { core.as_ref() }.arena)
        else {
            drop(inside);
            return self.spawn_outside(future, label);
        };
        if self.is_stopping() {
            // No worker would run the task. A task that is spawned between this check and the stop
            // is claimed together with the core.
            drop(inside);
            return Err(RefusedSpawn {
                future,
                label,
                pool: self.clone(),
                reason: RefusalReason::Stopping,
            });
        }
        // SAFETY: this thread holds the core, and so its arena.
        let (task, header) = unsafe { Arena::spawn(arena, future, label) };
        if self.config.hooks.is_some() {
            held_core::with_core(|core| core.counters().spawned.add(1));
            drop(inside);
            self.clone().schedule_hooked(task);
            // SAFETY: `header` is the join reference of a new task with this output.
            return Ok(unsafe { JoinHandle::new(header) });
        }
        held_core::with_core(|core| {
            core.counters().spawned.add(1);
            core.schedule(task, Origin::Spawned);
        });
        // SAFETY: `header` is the join reference of a new task with this output.
        Ok(unsafe { JoinHandle::new(header) })
    }

    fn spawn_outside<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, RefusedSpawn<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        if self.config.lazy && self.must_start() {
            return Err(RefusedSpawn {
                future,
                label,
                pool: self.clone(),
                reason: RefusalReason::NotStarted,
            });
        }
        let (task, header) = {
            let mut outside = lock(&self.outside[thread_number() % OUTSIDE_ARENAS]);
            if outside.refuses_spawns(self) {
                return Err(RefusedSpawn {
                    future,
                    label,
                    pool: self.clone(),
                    reason: RefusalReason::Stopping,
                });
            }
            let arena = *outside.arena.get_or_insert_with(|| Arena::new(self.clone()));
            // SAFETY: the lock makes this thread the holder of the arena, and it is held until the
            // end.
            unsafe { Arena::spawn(arena, future, label) }
        };
        self.outside_counters.spawn();
        if self.config.hooks.is_some() {
            self.clone().schedule_hooked(task);
        } else {
            self.schedule_remote(task);
        }
        // SAFETY: `header` is the join reference of a new task with this output.
        Ok(unsafe { JoinHandle::new(header) })
    }

    /// Queues a new task that was created with the core of this thread.
    fn schedule_new(self: &Arc<Self>, task: Task) {
        if self.config.hooks.is_some() {
            self.clone().schedule_hooked(task);
        } else {
            held_core::with_core(|core| core.schedule(task, Origin::Spawned));
        }
    }

    /// Calls the spawn hook for a new task and then queues the task. User code runs, so nothing but
    /// this pool is borrowed, and the queue is chosen by the core that the thread holds afterwards.
    #[cold]
    fn schedule_hooked(self: Arc<Self>, task: Task) {
        let header = task.into_header();
        let hook = self.config.hooks.as_ref().and_then(|hooks| hooks.on_spawn.as_ref());
        // SAFETY: we own the entry, and it keeps the task alive.
        unsafe { hooks::call(hook, header) };
        // SAFETY: `into_header` gave the entry to us, and we schedule it once.
        self.schedule(unsafe { Task::new(header) }, Origin::Spawned);
    }

    /// Creates a task for a queue of the layer above, which does its own counting and drops the
    /// task if it does not run it. A pool that has ended creates it as well: that queue decides.
    pub(crate) fn make<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> (Task, NonNull<Header>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let inside = thread_context::inside();
        if held_core::holds_core_of(self) {
            // SAFETY: this thread holds the core, and so its arena.
            return unsafe { Arena::spawn(held_core::arena(), future, label) };
        }
        drop(inside);
        let mut outside = lock(&self.outside[thread_number() % OUTSIDE_ARENAS]);
        if outside.closed {
            drop(outside);
            return self.make_alone(future, label);
        }
        let arena = *outside.arena.get_or_insert_with(|| Arena::new(self.clone()));
        // SAFETY: the lock makes this thread the holder of the arena, and it is held until the end.
        unsafe { Arena::spawn(arena, future, label) }
    }

    /// Creates a task in an `Arena` of its own, which is closed at once and freed with the task.
    #[cold]
    fn make_alone<F, X>(self: &Arc<Self>, future: F, label: Label<X>) -> (Task, NonNull<Header>)
    where
        F: Future + 'static,
        X: Extra,
    {
        let arena = Arena::new(self.clone());
        // SAFETY: we created the arena and are its holder until it is closed; the entry keeps the
        // task's memory, and the arena lives as long as its cells.
        unsafe {
            let made = Arena::spawn(arena, future, label);
            arena.as_ref().refuse();
            while arena.as_ref().next_to_stop().is_some() {}
            Arena::close(arena);
            made
        }
    }

    /// Creates a task that is cancelled before its first poll, in an `Arena` of its own.
    #[cold]
    fn make_ended<F, X>(self: &Arc<Self>, future: F, label: Label<X>) -> NonNull<Header>
    where
        F: Future + 'static,
        X: Extra,
    {
        // Dropping the entry cancels the task; the `JoinHandle`'s reference keeps its memory.
        let (task, header) = self.make_alone(future, label);
        drop(task);
        header
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: a thread that sees the stop also sees what was done before it. Pairs with the
        // Release in `stop`.
        self.stopping.load(Acquire)
    }

    /// Iterates over the counters of each core.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &CoreCounters> {
        self.remotes.iter().map(|remote| &*remote.counters)
    }
}

impl Schedule for Pool {
    fn schedule(&self, task: Task, origin: Origin) {
        self.schedule_inside(task, origin, thread_context::inside());
    }

    /// Puts a task into a queue of the core that this thread holds, or into the injector if it
    /// holds none.
    #[inline(always)]
    fn schedule_inside(&self, task: Task, origin: Origin, inside: Inside) {
        match held_core::core_of(self) {
            // SAFETY: obligation 1 of `schedule_then`: the core stays this thread's while
            // `inside` lives, and nothing of it is borrowed.
            Some(core) => unsafe { Core::schedule_then(core, task, origin, inside) },
            None => {
                drop(inside);
                self.schedule_remote(task);
            }
        }
    }

    /// Puts a task into the injector and makes sure that a worker comes for it.
    #[inline(never)]
    fn schedule_remote(&self, task: Task) {
        task.stamp(self.config.unit().now());
        match self.injector.push(task) {
            Ok(()) => {
                self.wake_one();
            }
            // The pool is gone, and all tasks with it: this entry is the rest of one, and dropping
            // it frees the memory.
            Err(task) => drop(task),
        }
    }

    fn cells_wait(&self, arena: NonNull<Arena>) {
        self.sweep_for(arena);
    }

    fn hooks(&self) -> Option<Arc<Hooks>> {
        self.config.hooks.clone()
    }

    fn task_panicked(&self) {
        self.on_task_panic();
    }
}
