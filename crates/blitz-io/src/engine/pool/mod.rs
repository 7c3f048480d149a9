//! The pool: cores, the threads that borrow them, and what they share.
//!
//! A *core* is the right to run tasks: a ring, a LIFO slot, a home for new tasks,
//! a clock. A *thread* holds a core while it runs tasks. They are two things, so
//! that a core can change hands when its thread is stuck.
//!
//! The verbs are files: a [`worker`] runs, [`find`] chooses what it runs next,
//! [`place`] puts what is to run somewhere, [`idle`] decides who sleeps and who
//! is woken, [`park`] sleeps, [`stop`] ends it all, [`vigil`] sees that nobody is stuck
//! behind a poll that does not end. [`current`] is how code inside
//! a poll reaches the core of its thread; [`counters`] is what they count.

use std::{
    future::Future,
    io,
    ptr::NonNull,
    sync::{Arc, Weak},
};

use self::{
    core::{Core, Remote},
    counters::{Counters, OutsideCounters},
    histogram::Scale,
    idle::Idle,
    unhandled::Unhandled,
};
use super::{
    prim::{
        AtomicBool, Mutex, OnceLock,
        Ordering::Acquire,
        clock::{Tick, Unit},
        lock,
        pad::CachePadded,
        rng::Seeds,
    },
    queue::inject::Inject,
    threads::{Around, Hook, Life, Recipe, Started},
    work::{
        current::Inside,
        task::{
            cell::{Header, Label, Task},
            extra::Extra,
            handle::JoinHandle,
            home::{Home, Origin, Schedule},
            hooks::{self, Hooks},
        },
    },
};

pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod lifo;
pub(crate) mod worker;
pub(crate) mod drive;
pub(crate) mod local;
pub(crate) mod find;
pub(crate) mod place;
pub(crate) mod crowd;
pub(crate) mod idle;
pub(crate) mod watch;
pub(crate) mod duty;
pub(crate) mod park;
pub(crate) mod stop;
pub(crate) mod handoff;
#[cfg_attr(blitz_loom, allow(dead_code, unused_imports, reason = "models have no monitor"))]
pub(crate) mod vigil;
pub(crate) mod counters;
pub(crate) mod dump;
pub(crate) mod histogram;
pub(crate) mod timing;
pub(crate) mod unhandled;
pub(crate) mod depth;

/// Homes for tasks that are spawned outside of the cores, each behind a lock.
/// Eight, so that a crowd of outside threads seldom meets; picked, not measured.
const OUTSIDE_HOMES: usize = 8;

/// What a pool is made from.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) workers: usize,
    /// Whether the workers are threads of the pool; if not, `block_on` runs tasks.
    pub(crate) threaded: bool,
    /// Whether the threads start with the first task instead of at once.
    pub(crate) lazy: bool,
    pub(crate) lifo_slot: bool,
    /// Polls between two looks at the intake; `None` tunes itself.
    pub(crate) intake_interval: Option<u32>,
    /// Polls in a worker's tick.
    pub(crate) tick_polls: u32,
    pub(crate) recipe: Recipe,
    pub(crate) on_park: Option<Hook>,
    pub(crate) on_unpark: Option<Hook>,
    pub(crate) hooks: Option<Arc<Hooks>>,
    /// How durations of polls are counted, if they are.
    pub(crate) poll_times: Option<Scale>,
    /// How times from queueing to polling are counted, if they are.
    pub(crate) latencies: Option<Scale>,
    /// What all random choices are derived from; `None` for another in each process.
    pub(crate) seed: Option<u64>,
    /// Whether the panic of a task ends the pool.
    pub(crate) ends_on_panic: bool,
    /// How polls that last too long are watched for, if they are.
    pub(crate) vigil: Option<vigil::Settings>,
}

impl Config {
    /// How tasks are stamped with the time.
    pub(crate) fn unit(&self) -> Unit {
        if self.latencies.is_some() { Unit::Micros } else { Unit::Millis }
    }

    /// Whether each poll is timed.
    #[inline(always)]
    fn is_timed(&self) -> bool {
        self.poll_times.is_some() || self.latencies.is_some()
    }
}

/// What all threads of a pool share.
pub(crate) struct Pool {
    pub(crate) config: Config,
    pub(crate) remotes: Box<[Remote]>,
    /// On lines of its own, as what else is written by many: beside it are words
    /// that every worker reads for each poll.
    pub(crate) intake: CachePadded<Inject<Task>>,
    pub(crate) idle: CachePadded<Idle>,
    pub(crate) napper: CachePadded<watch::Napper>,
    pub(crate) duties: duty::Duties,
    outside: Box<[Mutex<Outside>]>,
    /// Moves when a monitor wants the cores to look at their clocks.
    pub(crate) tick: Tick,
    pub(crate) stopping: AtomicBool,
    /// Whether each poll is timed; beside `stopping`, which every poll reads.
    timed: bool,
    pub(crate) outside_counters: CachePadded<OutsideCounters>,
    pub(crate) free_cores: drive::FreeCores,
    pub(crate) ended: stop::Ended,
    threads: Mutex<Vec<Started>>,
    started: OnceLock<Result<(), StartFailure>>,
    /// Threads that have not come to their end.
    alive: stop::Alive,
    around: OnceLock<Around>,
    pub(crate) seeds: Option<Seeds>,
    belongs: local::Belongs,
    pub(crate) unhandled: Unhandled,
    /// Who helps threads and cores that have lost each other.
    relief: OnceLock<Weak<dyn handoff::Relief>>,
    pub(crate) watched: Option<Box<vigil::Watched>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("workers", &self.config.workers).finish_non_exhaustive()
    }
}

/// A future that could not be spawned.
pub(crate) struct Refused<F, X = ()> {
    future: F,
    label: Label<X>,
    pool: Arc<Pool>,
    why: Why,
}

enum Why {
    /// Its threads wait for the first task, or could not be started.
    NotStarted,
    Stopping,
}

impl<F, X> Refused<F, X>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    X: Extra,
{
    /// Starts the pool and tries again, or ends the future here: a task that was
    /// cancelled before it began. Users' code runs, and nothing is borrowed.
    ///
    /// # Panics
    /// If the threads could not be started, as `std::thread::spawn` does: there is
    /// nobody to run it.
    #[cold]
    #[track_caller]
    pub(crate) fn end(self) -> JoinHandle<F::Output> {
        let Self { future, label, pool, why } = self;
        if let Why::NotStarted = why {
            if let Err(error) = pool.start() {
                panic!("cannot start the runtime: {error}");
            }
            return match pool.spawn(future, label) {
                Ok(handle) => handle,
                Err(refused) => refused.end(),
            };
        }
        let header = pool.make_ended(future, label);
        // SAFETY: a new task's join reference, of that output.
        unsafe { JoinHandle::new(header) }
    }
}

/// Why the threads could not be started; kept for those who ask later.
struct StartFailure {
    kind: io::ErrorKind,
    text: String,
}

/// A home behind a lock, made when the first task asks for it.
pub(crate) struct Outside {
    home: Option<NonNull<Home>>,
    /// The home refuses tasks.
    closed: bool,
}

// SAFETY: whoever has the lock holds the home; a home may change hands.
unsafe impl Send for Outside {}

impl Pool {
    /// A pool with its cores, and no thread yet.
    #[cfg(test)]
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Self::with_duties(config, duty::Duties::none())
    }

    /// The same, with something to look after.
    pub(crate) fn with_duties(config: Config, duties: duty::Duties) -> Arc<Self> {
        let workers = config.workers;
        let (owners, remotes): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| Remote::new(&config)).unzip();
        let outside =
            (0..OUTSIDE_HOMES).map(|_| Mutex::new(Outside { home: None, closed: false })).collect();
        let pool = Arc::new(Self {
            remotes: remotes.into_boxed_slice(),
            intake: CachePadded::new(Inject::new()),
            idle: CachePadded::new(match config.threaded {
                true => Idle::in_crowd(workers),
                false => Idle::new(workers),
            }),
            napper: CachePadded::new(watch::Napper::new()),
            duties,
            outside,
            tick: Tick::default(),
            stopping: AtomicBool::new(false),
            timed: config.is_timed(),
            outside_counters: CachePadded::new(OutsideCounters::default()),
            free_cores: drive::FreeCores::new(),
            ended: stop::Ended::new(workers),
            threads: Mutex::new(Vec::new()),
            started: OnceLock::new(),
            alive: stop::Alive::new(),
            around: OnceLock::new(),
            seeds: config.seed.map(Seeds::new),
            belongs: local::Belongs::to_nobody(),
            unhandled: Unhandled::new(config.ends_on_panic),
            relief: OnceLock::new(),
            watched: config
                .vigil
                .clone()
                .map(|settings| Box::new(vigil::Watched::new(settings, workers))),
            config,
        });
        let cores = owners.into_iter().enumerate();
        pool.free_cores.fill(cores.map(|(index, ring)| Core::new(pool.clone(), index, ring)));
        pool
    }

    /// Wraps `around` round the life of each thread that is started from now on.
    pub(crate) fn surround(&self, around: Around) {
        assert!(self.around.set(around).is_ok(), "a pool is surrounded once");
    }

    /// Starts the threads, once. A system that refuses one is asked once: every later
    /// call answers as the first did.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        debug_assert!(self.config.threaded, "this pool has no threads of its own");
        if self.started.get().is_none() {
            // A function that names threads may spawn, and so come back here.
            let Some(_starting) = current::Starting::new(self) else { return Ok(()) };
            let names = self.config.recipe.names(self.config.workers)?;
            self.started.get_or_init(|| self.start_threads(names));
        }
        match self.started.get() {
            Some(Err(failure)) => Err(io::Error::new(failure.kind, failure.text.clone())),
            _ => Ok(()),
        }
    }

    /// Starts the threads of a pool that waits with that for its first task: what it
    /// looks after is used now.
    ///
    /// # Panics
    /// As [`Refused::end`].
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

    /// Whether somebody must call `start` before a task can run. Not a thread that is
    /// at it: its task waits in the intake.
    fn must_start(&self) -> bool {
        let started = matches!(self.started.get(), Some(Ok(())));
        self.config.threaded && !started && !current::is_starting(self)
    }

    fn start_threads(self: &Arc<Self>, names: Vec<String>) -> Result<(), StartFailure> {
        for (started, name) in names.into_iter().enumerate() {
            // Empty if the pool was stopped meanwhile.
            let Some(core) = self.free_cores.take() else { return Ok(()) };
            let slot = handoff::Handoff::new(core);
            self.alive.add();
            let thread = self.config.recipe.start(name, self.around.get().cloned(), {
                let (pool, slot) = (self.clone(), slot.clone());
                Life {
                    before: || (),
                    body: move || handoff::live(&slot),
                    after: move || pool.alive.remove(),
                }
            });
            match thread {
                Ok(thread) => lock(&self.threads).push(thread),
                Err(error) => {
                    // The core of the thread that is not there goes back to those
                    // that were not tried; a stop ends them.
                    self.alive.remove();
                    let core = slot.take().expect("no thread took it, and a stop waits");
                    self.free_cores.put_back(core);
                    return Err(StartFailure {
                        kind: error.kind(),
                        text: format!(
                            "started {started} of {} worker threads, then: {error}; ask for \
                             fewer with `worker_threads`, or raise the limit on threads",
                            self.config.workers
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Makes a task and queues it, or gives the future back with the reason.
    ///
    /// Nothing of a user's runs or is dropped inside, so `self` may be borrowed from
    /// something that dropping the future would end. Nor is the pool's count of
    /// references touched: it is on a line that every worker reads.
    #[inline]
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, Refused<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let inside = current::inside();
        // SAFETY: it is this thread's; and it is not borrowed when the allocator is asked, which
        // may be a user's.
        let Some(home) = current::core_of(self).map(|core| unsafe { core.as_ref() }.home) else {
            drop(inside);
            return self.spawn_outside(future, label);
        };
        // SAFETY: this thread holds the core, and so its home.
        let (task, header) = unsafe { Home::spawn(home, future, label) };
        if self.config.hooks.is_some() {
            current::with_core(|core| core.counters().spawned.add(1));
            drop(inside);
            self.clone().place_hooked(task);
            // SAFETY: a new task's join reference, of that output.
            return Ok(unsafe { JoinHandle::new(header) });
        }
        current::with_core(|core| {
            core.counters().spawned.add(1);
            core.place(task, Origin::Spawned);
        });
        // SAFETY: a new task's join reference, of that output.
        Ok(unsafe { JoinHandle::new(header) })
    }

    fn spawn_outside<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<JoinHandle<F::Output>, Refused<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        if self.config.lazy && self.must_start() {
            return Err(Refused { future, label, pool: self.clone(), why: Why::NotStarted });
        }
        let (task, header) = {
            let mut outside = lock(&self.outside[current::thread_number() % OUTSIDE_HOMES]);
            if outside.closed {
                return Err(Refused { future, label, pool: self.clone(), why: Why::Stopping });
            }
            let home = *outside.home.get_or_insert_with(|| Home::new(self.clone()));
            // SAFETY: the lock is the right to hold; it is held until the end.
            unsafe { Home::spawn(home, future, label) }
        };
        self.outside_counters.spawn();
        if self.config.hooks.is_some() {
            self.clone().place_hooked(task);
        } else {
            self.place_outside(task);
        }
        // SAFETY: a new task's join reference, of that output.
        Ok(unsafe { JoinHandle::new(header) })
    }

    /// Places a new task of the core that this thread holds.
    fn place_new(self: &Arc<Self>, task: Task) {
        if self.config.hooks.is_some() {
            self.clone().place_hooked(task);
        } else {
            current::with_core(|core| core.place(task, Origin::Spawned));
        }
    }

    /// Tells the hook of a new task and then places it. A user's code runs: nothing
    /// but this pool is borrowed, and who holds a core is asked again.
    #[cold]
    fn place_hooked(self: Arc<Self>, task: Task) {
        let header = task.into_header();
        let hook = self.config.hooks.as_ref().and_then(|hooks| hooks.on_spawn.as_ref());
        // SAFETY: the entry, which is ours, keeps it.
        unsafe { hooks::call(hook, header) };
        // SAFETY: `into_header` gave the entry to us, and we place it once.
        self.place(unsafe { Task::new(header) }, Origin::Spawned);
    }

    /// Makes a task for a queue of the layer above, which counts it for itself; or
    /// gives the future back, as `spawn` does.
    pub(crate) fn make<F, X>(
        self: &Arc<Self>,
        future: F,
        label: Label<X>,
    ) -> Result<(Task, NonNull<Header>), Refused<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        let inside = current::inside();
        if current::holds_core_of(self) {
            // SAFETY: this thread holds the core, and so its home.
            return Ok(unsafe { Home::spawn(current::home(), future, label) });
        }
        drop(inside);
        let mut outside = lock(&self.outside[current::thread_number() % OUTSIDE_HOMES]);
        if outside.closed {
            drop(outside);
            return Err(Refused { future, label, pool: self.clone(), why: Why::Stopping });
        }
        let home = *outside.home.get_or_insert_with(|| Home::new(self.clone()));
        // SAFETY: the lock is the right to hold; it is held until the end.
        Ok(unsafe { Home::spawn(home, future, label) })
    }

    /// A task that was cancelled before its first poll, in a home of its own.
    #[cold]
    fn make_ended<F, X>(self: &Arc<Self>, future: F, label: Label<X>) -> NonNull<Header>
    where
        F: Future + 'static,
        X: Extra,
    {
        let home = Home::new(self.clone());
        // SAFETY: we made the home, and hold it until it is closed; the task keeps
        // its memory until the `JoinHandle` is gone. Dropping the entry cancels.
        unsafe {
            let (task, header) = Home::spawn(home, future, label);
            home.as_ref().refuse();
            drop(task);
            while home.as_ref().next_to_stop().is_some() {}
            Home::close(home);
            header
        }
    }

    /// In the queue of the core that this thread holds, or outside.
    #[inline(always)]
    fn place_here(&self, task: Task, origin: Origin, inside: Inside) {
        match current::core_of(self) {
            // SAFETY: 1. nobody takes it while we are inside.
            Some(core) => unsafe { Core::place_and_end(core, task, origin, inside) },
            None => {
                drop(inside);
                self.place_outside(task);
            }
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: what was done before the stop is seen by those who obey it.
        // Pairs with the Release in `stop`.
        self.stopping.load(Acquire)
    }

    /// What each core counted.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &Counters> {
        self.remotes.iter().map(|remote| &*remote.counters)
    }
}

impl Schedule for Pool {
    fn place(&self, task: Task, origin: Origin) {
        self.place_here(task, origin, current::inside());
    }

    fn place_inside(&self, task: Task, origin: Origin, inside: Inside) {
        self.place_here(task, origin, inside);
    }

    fn place_from_outside(&self, task: Task) {
        self.place_outside(task);
    }

    fn cells_wait(&self, home: NonNull<Home>) {
        self.sweep_for(home);
    }

    fn hooks(&self) -> Option<Arc<Hooks>> {
        self.config.hooks.clone()
    }

    fn task_panicked(&self) {
        self.on_task_panic();
    }
}
