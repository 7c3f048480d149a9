//! Work that blocks: threads that run closures so that workers need not.
//!
//! A job is an ordinary task whose future runs the closure in its only poll. So
//! handles, aborts, panics, IDs and spawn locations are those of tasks, and a job's
//! entry in the queue is the task itself. Its cell comes from the home of the core
//! that spawns it, or from one of the outside homes.
//!
//! - [`shards`] is the queue, [`crew`] decides who is called, started and lets go,
//!   [`beds`] is where threads sleep, [`roster`] gives beds out and joins threads.
//! - [`stop`] ends it all and says for whom it waits.
//!
//! A thread of the crew may become a worker: when one blocks in place, an idle thread
//! (or a new one, beyond the cap: it takes the other's part) runs its core, and a
//! worker that lost its core becomes a thread of the crew, if there is room. Threads
//! that run a core are not of the crew: no job may wait for them.

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
    beds::Bed,
    crew::{Call, Crew, Failed, Nap, Rested},
    roster::{Key, Roster},
    shards::Shards,
};
use super::{
    pool::{
        Pool, Refused,
        current::spawner_number,
        find::Patience,
        handoff::{Errand, Handoff, Relief},
        stop::Alive,
        vigil::stuck::Running,
    },
    prim::{
        AtomicUsize, OnceLock, Ordering::Relaxed, clock::Unit, discard, lock, parker::Parker,
        thread,
    },
    threads::{Around, Life, Recipe},
    work::{
        current,
        task::{
            budget::Budget,
            cell::{Header, Label, Task},
            extra::Extra,
            handle::JoinHandle,
            poll,
        },
    },
};

pub(crate) mod beds;
pub(crate) mod crew;
pub(crate) mod shards;
pub(crate) mod roster;
pub(crate) mod stop;

/// Beds beyond the cap, for threads that have left the crew and not given theirs back.
const SPARE_BEDS: usize = 64;

/// Threads that may be in a user's hook at once, on their way to a core or a task whose thread is
/// stuck. As many as may compute without a core: where all hang, there is no use for more.
const STARTING: usize = 64;

/// The name of threads that are started for a core or a task whose thread is stuck, if a user's
/// function names threads: it may block, and is not asked.
const SPARE: &str = "blitz-spare";

/// What waking a thread on another processor takes here, and a bit more: so long does
/// the one who awaits a job need to bring the next one.
const LINGER: Duration = Duration::from_micros(50);

/// What a crew is made from.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The most threads.
    pub(crate) cap: usize,
    /// How long a thread stays without work.
    pub(crate) keep_alive: Duration,
    /// How many cores spawn.
    pub(crate) cores: usize,
    pub(crate) recipe: Recipe,
    /// How jobs are stamped with the time.
    pub(crate) unit: Unit,
}

/// The threads for blocking work, and what waits for them.
pub(crate) struct Blocking {
    crew: Crew<Errand, Running>,
    queue: Shards<Task>,
    roster: Roster,
    /// Threads that have not come to their end.
    alive: Alive,
    /// Threads that were started for an errand and have not come to it: those in a user's hook.
    starting: AtomicUsize,
    config: Config,
    around: OnceLock<Around>,
    /// A paused clock stands still while there are jobs: what is done after each.
    #[cfg(feature = "test-util")]
    after: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The future of a job: runs the closure in its first and only poll.
pub(crate) struct Job<F>(Option<F>);

// The closure is never pinned: it is moved out before it runs.
impl<F> Unpin for Job<F> {}

impl<F> Job<F> {
    pub(crate) fn new(f: F) -> Self {
        Self(Some(f))
    }
}

impl<F: FnOnce() -> R, R> Future for Job<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        // A job blocks as long as it likes; whoever polls restores its own budget.
        current::with(|current| current.budget.set(Budget::unlimited()));
        let job = self.0.take().expect("a job is polled once");
        Poll::Ready(job())
    }
}

/// A job that was queued, or not, and what is left to do for it.
#[must_use = "the job may wait for what is left to do"]
pub(crate) struct Spawned<R> {
    handle: JoinHandle<R>,
    left: Left,
}

/// What is left to do for a job that was queued.
#[must_use = "the job may wait for it"]
pub(crate) enum Left {
    Nothing,
    /// The queue is closed: end the job, which drops what is the user's.
    Refused(Task),
    /// A thread is to be started.
    Start {
        blocking: Arc<Blocking>,
        number: usize,
        job: NonNull<Header>,
    },
}

/// What the calling thread has to do with a crew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is counted among those that are alive.
    Inside,
    /// It was, and is at its very end: others of the crew may join it.
    Left,
    Outside,
}

/// A thread that was started for an errand, until it comes to it.
struct Starting(Arc<Blocking>);

impl Starting {
    fn new(blocking: &Arc<Blocking>) -> Self {
        // Relaxed: a count that orders nothing.
        blocking.starting.fetch_add(1, Relaxed);
        Self(blocking.clone())
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.starting.fetch_sub(1, Relaxed);
    }
}

/// Why no thread was started.
enum NoThread {
    System(io::Error),
    /// The user's function that names threads panicked.
    Panic(Box<dyn Any + Send>),
}

impl Blocking {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            crew: Crew::new(config.cap, config.cap.min(crew::LARGEST) + SPARE_BEDS),
            queue: Shards::new(config.cores),
            roster: Roster::new(),
            alive: Alive::new(),
            starting: AtomicUsize::new(0),
            around: OnceLock::new(),
            #[cfg(feature = "test-util")]
            after: OnceLock::new(),
            config,
        })
    }

    /// From now on each job holds the clock of its pool until it has ended; then `after` is
    /// called, which lets it go.
    #[cfg(feature = "test-util")]
    pub(crate) fn hold_clock(&self, after: Box<dyn Fn() + Send + Sync>) {
        assert!(self.after.set(after).is_ok(), "a clock is held by one crew");
    }

    /// Wraps `around` round the life of each thread.
    pub(crate) fn surround(&self, around: Around) {
        assert!(self.around.set(around).is_ok(), "a crew is surrounded once");
    }

    /// Makes a job of `job` and queues it; the caller must `settle` it where nothing is
    /// borrowed: inside, nothing of a user's runs or is dropped.
    pub(crate) fn spawn<F, X>(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        job: F,
        label: Label<X>,
    ) -> Result<Spawned<F::Output>, Refused<F, X>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        X: Extra,
    {
        #[cfg(feature = "test-util")]
        if self.after.get().is_some()
            && let Some(timers) = pool.duties.timers()
        {
            timers.clock().inhibit_auto_advance();
        }
        debug_assert!(X::IS_BLOCKING, "a job that nobody knows for one");
        let (task, job) = pool.make(job, label)?;
        // SAFETY: a new task's join reference, of that output.
        let handle = unsafe { JoinHandle::new(job) };
        let number = spawner_number(pool);
        let left = match self.queue.push(number, task) {
            Err(task) => Left::Refused(task),
            Ok(()) => match self.crew.call(|| self.queue.is_waiting(number)) {
                Call::Nothing => Left::Nothing,
                Call::Start => Left::Start { blocking: self.clone(), number, job },
            },
        };
        Ok(Spawned { handle, left })
    }

    /// Threads of the crew.
    pub(crate) fn threads(&self) -> usize {
        self.crew.counts().threads
    }

    /// Those that have nothing to do.
    pub(crate) fn idle_threads(&self) -> usize {
        self.crew.counts().idle
    }

    /// Whether jobs are refused, or will be in a moment.
    #[cfg(feature = "fs")]
    pub(crate) fn is_stopping(&self) -> bool {
        self.crew.is_stopping()
    }

    /// Jobs that no thread has taken.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Starts a thread: for the errand, or else, counted by the crew already, for jobs.
    fn start(self: &Arc<Self>, errand: Option<Errand>) -> Result<(), NoThread> {
        let named = catch_unwind(AssertUnwindSafe(|| self.config.recipe.names(1)));
        let names = named.map_err(NoThread::Panic)?.map_err(NoThread::System)?;
        let name = names.into_iter().next().expect("one was asked for");
        self.start_as(name, errand).map_err(NoThread::System)
    }

    /// The same, with a name, and without code of users.
    fn start_as(self: &Arc<Self>, name: String, errand: Option<Errand>) -> io::Result<()> {
        let key = self.roster.expect();
        self.alive.add();
        let starting = errand.is_some().then(|| Starting::new(self));
        let thread = self.config.recipe.start(name, self.around.get().cloned(), {
            let (before, body, after) = (self.clone(), self.clone(), self.clone());
            Life {
                before: move || before.enter(),
                body: move || {
                    drop(starting);
                    body.work(errand);
                },
                after: move || after.leave(key),
            }
        });
        match thread {
            Ok(thread) => {
                self.roster.enrol(key, thread);
                Ok(())
            }
            Err(error) => {
                self.alive.remove();
                self.roster.forget(key);
                Err(error)
            }
        }
    }

    /// The first act of a thread of the crew, before any code of users: they may end the
    /// runtime in a hook, and its end must know that this thread is one of those who
    /// are alive.
    fn enter(&self) {
        current::with(|current| {
            current.crew.set(std::ptr::from_ref(self).cast());
            current.has_left_crew.set(false);
        });
    }

    /// The last act of a thread that was started here. Only then it joins others: they
    /// may wait, in the destructor of a thread-local, for all that are alive.
    fn leave(&self, key: Key) {
        current::with(|current| current.has_left_crew.set(true));
        self.alive.remove();
        self.roster.retire(key).into_iter().for_each(|over| over.join());
    }

    fn place_of_caller(&self) -> Place {
        current::with(|current| {
            if !std::ptr::eq(current.crew.get(), std::ptr::from_ref(self).cast()) {
                return Place::Outside;
            }
            if current.has_left_crew.get() { Place::Left } else { Place::Inside }
        })
    }

    /// Runs the errand, if there is one, and then jobs and errands for as long as the
    /// crew wants this thread. Without an errand it is of the crew already.
    fn work(self: &Arc<Self>, mut errand: Option<Errand>) {
        loop {
            if let Some(errand) = errand {
                errand.run();
                // The last reference to a runtime may go with it: not while we sleep.
                drop(errand);
                if !self.crew.join() {
                    return;
                }
            }
            errand = self.serve();
            if errand.is_none() {
                return;
            }
        }
    }

    /// Runs jobs until the thread leaves the crew: for good, or for an errand.
    fn serve(self: &Arc<Self>) -> Option<Errand> {
        let bed = self.take_bed();
        let here = self.crew.beds.bed(bed);
        // Neighbours begin at different shards.
        let mut from = bed;
        let mut patience = Patience::new();
        let errand = loop {
            while let Some(job) = self.queue.pop(&mut from) {
                run(job, here, self.config.unit);
                #[cfg(feature = "test-util")]
                if let Some(after) = self.after.get() {
                    after();
                }
            }
            let nap = |parker: &Parker| {
                if linger(parker, &mut patience) || parker.park_timeout(self.config.keep_alive) {
                    Nap::Disturbed
                } else {
                    Nap::Over
                }
            };
            match self.crew.rest(bed, || !self.queue.is_empty(), nap) {
                Rested::Look => {}
                Rested::Called => {
                    let errand = lock(&here.errand).take();
                    if let Some(errand) = errand {
                        if self.crew.is_free_to_go(|| !self.queue.is_empty()) {
                            break Some(errand);
                        }
                        match errand {
                            Errand::Core(core) => self.clone().relieve(core),
                            // If there is none, it goes back to its queue.
                            lent @ Errand::Poll(_) => drop(self.clone().stand_in(lent)),
                        }
                    }
                }
                Rested::Gone => break None,
            }
        };
        self.roster.give_bed_back(bed);
        errand
    }

    fn take_bed(&self) -> usize {
        loop {
            if let Some(bed) = self.roster.take_bed(self.crew.beds.count()) {
                self.crew.beds.make(bed);
                return bed;
            }
            // So many have left the crew and are about to give theirs back.
            thread::yield_now();
        }
    }
}

/// Before a thread sleeps: waits a little for a call, if that has paid lately. It is
/// idle already, so whoever calls it finds it awake and makes no system call.
///
/// It yields to others while it waits: the worker that is about to bring the next job
/// may have its thread on the same processor.
fn linger(parker: &Parker, patience: &mut Patience) -> bool {
    if !patience.is_left() {
        return false;
    }
    let begun = Instant::now();
    let called = loop {
        if parker.try_take() {
            break true;
        }
        if begun.elapsed() > LINGER {
            break false;
        }
        thread::yield_now();
    };
    patience.learn(called);
    called
}

/// Runs a job, and says so to those who wonder what the thread does.
fn run(job: Task, here: &Bed<Errand, Running>, unit: Unit) {
    let header = job.into_header();
    // SAFETY: 1. the entry was ours, and keeps the memory alive.
    *lock(&here.running) = Some(unsafe { Running::of(header, Instant::now()) });
    // SAFETY: `into_header` gave the entry to us, and it is made once.
    poll::run(unsafe { Task::new(header) }, unit.now());
    let over = lock(&here.running).take();
    // Not under the lock: the name may be the last of its kind, and its memory a user's
    // allocator's.
    drop(over);
}

impl<R> Spawned<R> {
    /// Does what is left: see [`Left::settle`].
    #[inline]
    #[track_caller]
    pub(crate) fn settle(self) -> JoinHandle<R> {
        let (handle, left) = self.part();
        left.settle();
        handle
    }

    /// The handle, for those who must keep it though settling may panic.
    #[inline]
    pub(crate) fn part(self) -> (JoinHandle<R>, Left) {
        (self.handle, self.left)
    }
}

impl Left {
    /// Does it. Users' code runs: the function that names threads, and the destructor
    /// of a closure that will not run.
    ///
    /// # Panics
    /// If there is no thread and the system gives none, as Tokio does; the job has been
    /// cancelled then. Or if the function that names threads does; the job has been
    /// cancelled, or waits for a thread that lives.
    #[inline]
    #[track_caller]
    pub(crate) fn settle(self) {
        match self {
            Left::Nothing => {}
            // Ends it as cancelled.
            Left::Refused(task) => drop(task),
            Left::Start { blocking, number, job } => blocking.start_for(number, job),
        }
    }
}

impl Blocking {
    /// Starts the thread that was counted for `job`; F1 to F3 of `crew` if that fails.
    #[cold]
    #[track_caller]
    fn start_for(self: &Arc<Self>, number: usize, job: NonNull<Header>) {
        let why = match self.start(None) {
            Ok(()) => return self.crew.started(),
            Err(why) => why,
        };
        let taken_out = match self.crew.failed() {
            Failed::Waits => None,
            Failed::Alone => self.queue.take_out(number, job),
        };
        let stranded = taken_out.is_some();
        drop(taken_out);
        match why {
            NoThread::Panic(payload) => resume_unwind(payload),
            NoThread::System(error) if stranded => panic!(
                "OS can't spawn worker thread: {error}; there is no thread for blocking work \
                 that it could wait for: raise the limit on threads, or spawn again later"
            ),
            // Somebody has it, or will: the thread that lives.
            NoThread::System(_) => {}
        }
    }
}

impl Blocking {
    /// Sends a thread that has nothing to do, if there is one.
    fn send_idle(&self, errand: Errand) -> Result<(), Errand> {
        let Some(bed) = self.crew.recruit() else { return Err(errand) };
        *lock(&self.crew.beds.bed(bed).errand) = Some(errand);
        self.crew.beds.call(bed);
        Ok(())
    }
}

impl Relief for Blocking {
    fn relieve(self: Arc<Self>, handoff: Arc<Handoff>) {
        let errand = Errand::Core(handoff);
        if let Err(errand) = self.send_idle(errand)
            && !self.crew.is_stopping()
            // Refused: the core stays where its worker will find it again.
            && let Err(NoThread::Panic(payload)) = self.start(Some(errand))
        {
            discard(payload);
        }
    }

    fn stand_in(self: Arc<Self>, errand: Errand) -> Result<(), Errand> {
        let errand = match self.send_idle(errand) {
            Ok(()) => return Ok(()),
            Err(errand) => errand,
        };
        // Relaxed: a bound that is passed by a few does no harm.
        if self.crew.is_stopping() || self.starting.load(Relaxed) >= STARTING {
            return Err(errand);
        }
        let kept = errand.clone();
        let name = self.config.recipe.one_name.as_deref().unwrap_or(SPARE);
        self.start_as(name.to_owned(), Some(errand)).map_err(|_| kept)
    }

    fn stand_in_if_idle(self: Arc<Self>, errand: Errand) -> Result<(), Errand> {
        self.send_idle(errand)
    }

    fn is_ending(&self) -> bool {
        self.crew.is_stopping()
    }

    fn employ(self: Arc<Self>) {
        self.alive.add();
        self.enter();
        if self.crew.join() {
            self.work(None);
        }
        // It lives on as a thread of the pool, which joins it.
        current::with(|current| current.crew.set(std::ptr::null()));
        self.alive.remove();
    }
}

impl std::fmt::Debug for Blocking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocking").field("crew", &self.crew.counts()).finish_non_exhaustive()
    }
}
