//! Fibers: tasks that have a stack of their own, and so can wait in the middle of a call.
//!
//! A fiber is a task like any other: a cell in a home, a state word, a `JoinHandle`. Its future,
//! a [`strand`], switches to the fiber's stack when it is polled, and answers `Pending` when
//! that is left again. What differs is where it is polled: on one thread, always the same
//! ([`nest`]). [`Fibers`] is all of that for one runtime: it starts *carriers*, the threads
//! that run fibers, when they are needed, and spreads fibers over them.
//!
//! Carriers hold no core. What a core's owner may lose or must look after (queues, timers,
//! driver, its place among the searchers) is not theirs: a carrier waits for tokens, and
//! whoever has the driver or a wheel wakes its fibers as it wakes any task.
//! docs/design/fibers.md says why.
//!
//! # Checked by
//! tests/fiber; `nest/models.rs`.

use std::{io, sync::Arc, time::Instant};

use self::{nest::Nest, strand::Strand};
use super::{
    pool::{Pool, stop::Alive, vigil::carrier::Carrier},
    prim::{
        AtomicUsize, Mutex, OnceLock,
        Ordering::{Acquire, Relaxed, Release},
        lock,
        parker::Parker,
    },
    threads::{Around, Life, Recipe, Started},
    work::{
        current::{self, CountingYields},
        task::{cell::Label, extra::Extra, handle::JoinHandle, trace},
    },
};

pub(crate) mod nest;
pub(crate) mod stack;
pub(crate) mod strand;
mod overflow;

/// What the fibers of a runtime are made from.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The most carriers.
    pub(crate) carriers: usize,
    pub(crate) stack_size: usize,
    pub(crate) recipe: Recipe,
}

/// The fibers of one runtime.
pub(crate) struct Fibers {
    pool: Arc<Pool>,
    config: Config,
    /// Those that were started, in order.
    nests: Box<[OnceLock<Arc<Nest>>]>,
    /// How many.
    started: AtomicUsize,
    next: AtomicUsize,
    crew: Mutex<Crew>,
    /// Carriers that have not come to their end.
    alive: Arc<Alive>,
    around: OnceLock<Around>,
}

/// The carriers' threads.
struct Crew {
    threads: Vec<(Started, Arc<Nest>)>,
    ended: bool,
}

impl Fibers {
    pub(crate) fn new(pool: Arc<Pool>, config: Config) -> Self {
        Self {
            pool,
            nests: (0..config.carriers).map(|_| OnceLock::new()).collect(),
            config,
            started: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            crew: Mutex::new(Crew { threads: Vec::new(), ended: false }),
            alive: Arc::new(Alive::new()),
            around: OnceLock::new(),
        }
    }

    /// Wraps `around` round the life of each carrier.
    pub(crate) fn surround(&self, around: Around) {
        assert!(self.around.set(around).is_ok(), "carriers are surrounded once");
    }

    /// Makes a fiber and queues it. After the end of the runtime it is cancelled at once.
    ///
    /// # Errors
    /// If there is no memory for its stack, or no thread to run it.
    pub(crate) fn spawn<F, R, X>(
        &self,
        f: F,
        stack_size: Option<usize>,
        label: Label<X>,
    ) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
        X: Extra,
    {
        overflow::install();
        let (nest, stack) = match self.choose()? {
            Some(nest) => {
                let stack = nest.stacks.take(stack_size)?;
                (nest.clone(), Some(stack))
            }
            None => (self.ended_nest(), None),
        };
        let strand = Strand::new(f, stack, nest.clone());
        let (future, label) = trace::trace(strand, label, trace::Kind::Task);
        match nest.spawn(future, label) {
            Ok(handle) => Ok(handle),
            Err(refused) => Ok(refused.end()),
        }
    }

    /// The nest for a new fiber; `None` after the end.
    ///
    /// Of two, that with fewer fibers, which spreads them well without a look at all. A
    /// further carrier is started as long as there may be one and both have something.
    fn choose(&self) -> io::Result<Option<&Arc<Nest>>> {
        // Acquire: those that were counted are there. Pairs with the Release in `start`.
        let started = self.started.load(Acquire);
        let nest = (started > 0).then(|| self.choose_of(started));
        if let Some(nest) = nest
            && (started == self.nests.len() || nest.alive() == 0)
        {
            return Ok(Some(nest));
        }
        match self.start() {
            Ok(new) => Ok(new.or(nest)),
            // Others run, and it can wait for those.
            Err(error) => nest.map(Some).ok_or(error),
        }
    }

    fn choose_of(&self, started: usize) -> &Arc<Nest> {
        // Relaxed: any number will do.
        let first = self.next.fetch_add(1, Relaxed) % started;
        let below = u32::try_from(started).expect("the builder bounds the carriers");
        let second = current::random_below(below) as usize;
        let [first, second] =
            [first, second].map(|index| self.nests[index].get().expect("it was counted"));
        if second.alive() < first.alive() { second } else { first }
    }

    /// Starts one more carrier; `None` if there are enough of them, or after the end. A
    /// user's code runs first: the function that names threads.
    #[cold]
    fn start(&self) -> io::Result<Option<&Arc<Nest>>> {
        let names = self.config.recipe.names(1)?;
        let name = names.into_iter().next().expect("one was asked for");
        let mut crew = lock(&self.crew);
        // Relaxed: the lock orders it.
        let index = self.started.load(Relaxed);
        if crew.ended || index == self.nests.len() {
            return Ok(None);
        }
        let nest = self.new_nest();
        self.alive.add();
        let thread = self.config.recipe.start(name, self.around.get().cloned(), {
            let (nest, alive, pool) = (nest.clone(), self.alive.clone(), self.pool.clone());
            Life {
                before: || (),
                body: {
                    let alive = alive.clone();
                    move || carry(&nest, index, &pool, &alive)
                },
                after: move || alive.remove(),
            }
        });
        match thread {
            Ok(thread) => crew.threads.push((thread, nest.clone())),
            Err(error) => {
                self.alive.remove();
                return Err(no_thread(&error));
            }
        }
        let nest = self.nests[index].get_or_init(|| nest);
        // Release: pairs with the Acquire in `choose`.
        self.started.store(index + 1, Release);
        Ok(Some(nest))
    }

    fn new_nest(&self) -> Arc<Nest> {
        let unit = self.pool.config.unit();
        let watched = self.pool.watched.as_ref();
        let slice = watched.map_or(strand::SLICE, |watched| watched.settings.slice);
        Nest::new(Some(self.pool.clone()), self.config.stack_size, unit, slice)
    }

    /// For a fiber that comes too late.
    #[cold]
    fn ended_nest(&self) -> Arc<Nest> {
        let nest = self.new_nest();
        let none = nest.shut();
        debug_assert!(none.is_none(), "a new nest is empty");
        nest
    }

    fn started_nests(&self) -> impl Iterator<Item = &Arc<Nest>> {
        self.nests.iter().map_while(OnceLock::get)
    }

    /// Fibers that have not ended, and threads that run them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        // Relaxed: a figure.
        let carriers = self.started.load(Relaxed);
        (self.started_nests().map(|nest| nest.alive()).sum(), carriers)
    }

    /// Every carrier unwinds its fibers, after the poll that it is in, and ends.
    pub(crate) fn stop(&self) {
        lock(&self.crew).ended = true;
        self.started_nests().for_each(|nest| nest.stop());
    }

    /// Waits for the carriers after a stop; `false` if the time was over first. May be called
    /// again.
    pub(crate) fn wait_for_end(&self, deadline: Option<Instant>) -> bool {
        // A fiber may get here inside `block_in_place`: its carrier does not wait for itself.
        let own = u32::from(lock(&self.crew).threads.iter().any(|(thread, _)| thread.is_current()));
        self.alive.wait(own, deadline)
    }

    /// The same, and joins them.
    pub(crate) fn join(&self, deadline: Option<Instant>) -> bool {
        if !self.wait_for_end(deadline) {
            return false;
        }
        if deadline.is_none() {
            // What is left of them are destructors of thread-locals, which nobody can bound:
            // only who waits for ever waits for those.
            let threads: Vec<_> = lock(&self.crew)
                .threads
                .extract_if(.., |(thread, _)| !thread.is_current())
                .collect();
            let ended = threads.into_iter().filter(|(_, nest)| !nest.has_abandoned());
            ended.for_each(|(thread, _)| thread.join());
        }
        true
    }
}

/// The life of a carrier. If it has to leak a stack it never ends: thread-locals that the
/// stack's frames have lent to other threads would end with it.
fn carry(nest: &Nest, number: usize, pool: &Arc<Pool>, alive: &Alive) {
    let _alternate = overflow::Alternate::ensure();
    // SAFETY: 1. the pool is borrowed for longer.
    let _counting = unsafe { CountingYields::new(pool.outside_counters.forced_yields().word()) };
    let watched = Carrier::begin(pool, number);
    // SAFETY: 1. it is dropped first.
    let tenured = watched.as_ref().map(|watched| unsafe { watched.listen() });
    nest.live(watched.as_ref());
    drop(tenured);
    drop(watched);
    if nest.has_abandoned() {
        alive.remove();
        let bed = Parker::new();
        loop {
            // Nobody has it, so nobody wakes it.
            bed.park();
        }
    }
}

fn no_thread(error: &io::Error) -> io::Error {
    let text = format!(
        "cannot start a thread for fibers: {error}; raise the limit on threads, or spawn again \
         later"
    );
    io::Error::new(error.kind(), text)
}

impl std::fmt::Debug for Fibers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (alive, carriers) = self.counts();
        f.debug_struct("Fibers").field("alive", &alive).field("carriers", &carriers).finish()
    }
}
