//! Who watches for threads that are stuck in a poll, and what is done about them.
//!
//! A *monitor*, one for the process ([`monitor`]), looks at every core of every pool that is
//! watched, once in half a slice. A thread that has been in one poll for a slice is *overdue*
//! ([`look`]): its poll is marked, so that the runtime's primitives make it yield, its task is
//! reported ([`stall`], with what it waits for and where it is: [`waits`],
//! [`stack`]), and its core goes to another thread, with all that waits in it. The
//! thread goes on with its poll under the operating system, without a core. When the poll ends
//! it gives its task back as any outside thread would, and becomes a thread of the crew, or
//! takes its core back if nobody has come for it.
//!
//! A thread that is asked to come for a core, or for a task, may hang in a user's hook: then
//! another one is ([`offer`]).
//!
//! A task that was caught is polled by threads without a core from then on ([`lend`]), until
//! it has behaved for a while.
//!
//! A thread that runs fibers is watched in the same way, and nothing is taken from it
//! ([`carrier`]); nor from one whose `block_on` polls a set of local tasks ([`guest`]).
//!
//! The words that thread and monitor meet at are `work/tenure`; how the monitor sleeps is
//! [`bell`].
//!
//! # Invariants
//! 1. A core is in a thread's hands, in one `Handoff`, or with the monitor between `take` and
//!    the `Handoff`, where it is under the door of the tenure that it was taken from.
//! 2. The `Handoff` of a core that was taken is kept by the thread that it was taken from
//!    ([`Stint::left`]), and put there before that thread can know. So if nobody comes for the
//!    core, its old holder finds it, whatever failed: no core is lost.
//! 3. The monitor runs no code of users, and waits for none of their locks.
//! 4. While all cores are idle, and each thread without a core was told of, the monitor sleeps for
//!    ever. Of a pool that stops nothing is taken any more: polls that were told of, and threads
//!    without a core, do not keep it awake, though they never end.
//!
//! # Checked by
//! `models.rs`: `a_core_that_was_taken_is_had_by_one`,
//! `a_core_is_taken_from_a_poll_that_calls_the_runtime`,
//! `a_core_nobody_came_for_is_taken_back`, `a_stop_against_a_taken_core_ends_it_once`; weakened
//! as `vigil_leaves_it_first`. Under load: tests/preempt/preempting.rs.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use self::{
    lend::Lent, look::Clocks, monitor::Monitor, offer::Offer, stack::Stacks, stall::OnStall,
    stuck::Running,
};
use super::{Pool, core::Core, handoff::Handoff};
use crate::engine::{
    prim::{
        AtomicBool, AtomicU64, AtomicUsize, Mutex, OnceLock, Ordering::Relaxed, cpu::CpuClock,
        lock, weakened,
    },
    work::tenure::{Tenure, Visit},
};

pub(crate) mod bell;
pub(crate) mod monitor;
pub(crate) mod look;
pub(crate) mod lend;
mod offer;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod carrier;
pub(crate) mod guest;
pub(crate) mod stall;
pub(crate) mod waits;
pub(crate) mod stack;
pub(crate) mod stuck;
#[cfg(test)]
mod models;

/// How a pool is watched.
#[derive(Clone)]
pub(crate) struct Settings {
    /// How long a poll may last.
    pub(crate) slice: Duration,
    /// Whether cores are taken from those who are overdue.
    pub(crate) hands_off: bool,
    /// Threads without a core that compute, at the most.
    pub(crate) max_computing: usize,
    /// The same of those that wait for something.
    pub(crate) max_blocked: usize,
    /// Whether tasks that were caught are polled without a core.
    pub(crate) learns: bool,
    /// Who wants to know.
    pub(crate) on_stall: Option<OnStall>,
    /// Whose stacks are told.
    pub(crate) stacks: Stacks,
    /// The most threads that run fibers.
    pub(crate) carriers: usize,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("slice", &self.slice).finish_non_exhaustive()
    }
}

/// What a pool that is watched has besides.
pub(crate) struct Watched {
    pub(crate) settings: Settings,
    /// Who has each core, or had it last; behind them the threads that run fibers, and then
    /// guests.
    holders: Box<[Mutex<Option<Arc<Stint>>>]>,
    /// Which seats guests have taken.
    seats: Mutex<[bool; guest::SEATS]>,
    /// Threads whose core was taken, until they come back; and those that poll tasks that were
    /// lent.
    detached: Mutex<Vec<Detached>>,
    /// Cores that were taken and that no thread has come for.
    offers: Mutex<Vec<Offer>>,
    /// Tasks that are polled, or to be polled, by threads without a core; and some that were.
    lents: Mutex<Vec<Weak<Lent>>>,
    clocks: Mutex<Clocks>,
    /// Set when the pool is on the monitor's list.
    monitor: OnceLock<&'static Monitor>,
    /// It will not be there again. Held by who puts it there, or strikes it off: a thread that
    /// runs fibers has no core, and may come after the last one has ended.
    struck_off: Mutex<bool>,
    pub(crate) figures: Figures,
    /// Tasks that are polled without a core.
    lent: AtomicUsize,
    /// When the system had no thread for one last.
    refused_at: Mutex<Option<Instant>>,
    /// It has been told that a bound is reached, for each of them.
    told_of_bound: [AtomicBool; stall::Bound::ALL],
    /// It has been told that threads do not come.
    told_of_hook: AtomicBool,
}

/// A thread without a core, in a poll.
struct Detached {
    /// Told apart from all others.
    number: u64,
    kind: stall::Kind,
    cpu: CpuClock,
    /// When its kind was found, and what the thread had used by then.
    asked: (Instant, Option<Duration>),
    /// Its core was taken before its slice was over, and nobody was told.
    quiet: Option<Quiet>,
    /// It has lost no core: it polls a task that was lent to it.
    is_lent: bool,
    /// How that poll is watched, until it was told of.
    listened: Option<look::Listened>,
    /// The poll that it is in, unless it was lent: then that tells it.
    runs: Option<Running>,
}

#[cfg(test)]
impl Detached {
    fn of_a_model(stint: &Stint) -> Self {
        Self {
            number: stint.number,
            kind: stall::Kind::Unknown,
            cpu: stint.cpu,
            asked: (Instant::now(), None),
            quiet: None,
            is_lent: false,
            listened: None,
            runs: None,
        }
    }
}

/// What becomes of a poll whose core was taken early.
struct Quiet {
    seen: look::Seen,
    stint: Arc<Stint>,
    stall: stall::Stall,
}

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Cores that went to another thread.
    pub(crate) handoffs: AtomicU64,
    /// The most threads that were without their core at once.
    pub(crate) peak: AtomicU64,
    /// Overdue polls that ended just when their core was to be taken.
    pub(crate) too_late: AtomicU64,
    /// Overdue polls that kept their core because no thread was to be had.
    pub(crate) refused: AtomicU64,
    /// Polls without a core of tasks that were caught before.
    pub(crate) lent: AtomicU64,
    /// Overdue polls.
    pub(crate) stalls: AtomicU64,
    /// Looks of the monitor.
    pub(crate) looks: AtomicU64,
}

pub(crate) fn count(figure: &AtomicU64) {
    // Relaxed: a figure, which orders nothing.
    figure.fetch_add(1, Relaxed);
}

pub(crate) fn read(figure: &AtomicU64) -> u64 {
    // Relaxed: as above.
    figure.load(Relaxed)
}

impl Watched {
    pub(crate) fn new(settings: Settings, workers: usize) -> Self {
        if settings.stacks != Stacks::Nobodys {
            stack::install();
        }
        let holders = workers + settings.carriers + guest::SEATS;
        Self {
            holders: (0..holders).map(|_| Mutex::new(None)).collect(),
            seats: Mutex::new([false; guest::SEATS]),
            detached: Mutex::new(Vec::new()),
            offers: Mutex::new(Vec::new()),
            lents: Mutex::new(Vec::new()),
            clocks: Mutex::new(Clocks::new(holders)),
            monitor: OnceLock::new(),
            struck_off: Mutex::new(false),
            figures: Figures::default(),
            lent: AtomicUsize::new(0),
            refused_at: Mutex::new(None),
            told_of_bound: std::array::from_fn(|_| AtomicBool::new(false)),
            told_of_hook: AtomicBool::new(false),
            settings,
        }
    }

    /// Threads that have lost their core and are still in the poll that cost them it.
    pub(crate) fn detached(&self) -> usize {
        lock(&self.detached).iter().filter(|thread| !thread.is_lent).count()
    }
}

/// A thread's time with cores of one pool, as the monitor sees it.
pub(crate) struct Stint {
    tenure: Tenure,
    /// Told apart from all others.
    number: u64,
    /// It has something to run, as far as the monitor is to know.
    busy: AtomicBool,
    /// The poll that was told of last, and since when it lasted.
    told: Mutex<Option<(usize, Instant)>>,
    /// Its core may be taken.
    movable: bool,
    cpu: CpuClock,
    /// The core that was taken from this thread, for it to come back for.
    left: Mutex<Option<Arc<Handoff>>>,
}

impl Stint {
    /// Of the calling thread, which is about to get core `index` of `pool`, if that is watched.
    pub(crate) fn begin(pool: &Pool, index: usize) -> Option<Arc<Self>> {
        let watched = pool.watched.as_ref()?;
        let movable = pool.config.threaded && watched.settings.hands_off;
        Some(Self::put(watched, index, movable))
    }

    fn put(watched: &Watched, holder: usize, movable: bool) -> Arc<Self> {
        let stint = Self::new(watched, movable, false);
        let before = lock(&watched.holders[holder]).replace(stint.clone());
        drop(before);
        stint
    }

    fn new(watched: &Watched, movable: bool, has_clock: bool) -> Arc<Self> {
        let is_asked = watched.settings.stacks != Stacks::Nobodys;
        Arc::new(Self {
            tenure: Tenure::new(!movable)
                .with_clock(has_clock)
                .with_inquiry(is_asked.then(stack::inquiry).flatten()),
            number: crate::engine::prim::ids::take(1),
            busy: AtomicBool::new(false),
            told: Mutex::new(None),
            movable,
            cpu: CpuClock::of_this_thread(),
            left: Mutex::new(None),
        })
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// The thread has something to run: from now on it is watched.
    #[cold]
    pub(crate) fn rise(&self, pool: &Arc<Pool>) {
        // Relaxed: ordered by the barrier in `pass`, or by the lock of the monitor's list.
        self.busy.store(true, Relaxed);
        let Some(watched) = &pool.watched else { return };
        match watched.monitor.get() {
            Some(monitor) => monitor.bell.pass(),
            None => monitor::enlist(pool, watched),
        }
    }

    /// It has nothing to run.
    pub(crate) fn rest(&self) {
        // Relaxed: a monitor that sees it late looks once more.
        self.busy.store(false, Relaxed);
    }

    /// Whether there is something to watch.
    fn is_watched(&self) -> bool {
        // Relaxed: ordered by the barrier of who asks, where that matters.
        self.busy.load(Relaxed) && self.tenure.has_core()
    }

    /// Whether it is in a poll that was told of, so that there is nothing left to do about it
    /// but to take its core.
    fn is_told_of(&self) -> bool {
        let told = lock(&self.told).map(|(poll, _)| poll);
        told.is_some() && told == self.tenure.poll_number()
    }

    /// The poll that cost this thread its core is over: the core, if nobody has come for it.
    #[cold]
    pub(crate) fn come_back(&self, pool: &Pool) -> Option<Box<Core>> {
        let handoff = lock(&self.left).take()?;
        if let Some(watched) = &pool.watched {
            let mut detached = lock(&watched.detached);
            let place = detached.iter().position(|detached| detached.number == self.number);
            let gone = place.map(|place| detached.swap_remove(place));
            drop(detached);
            drop(gone);
        }
        handoff.take()
    }
}

impl Pool {
    /// A thread goes on that is busy, and was without a core meanwhile: the monitor may have found
    /// nobody at work, and sleep.
    pub(crate) fn is_watched_again(&self) {
        if let Some(monitor) = self.watched.as_ref().and_then(|watched| watched.monitor.get()) {
            monitor.bell.pass();
        }
    }

    /// Takes the core of a thread that is in a user's code and leaves it in a `Handoff`, where
    /// the next thread finds it; or that thread itself.
    fn detach(&self, stint: &Arc<Stint>, mut visit: Visit<'_>, detached: Detached) -> Arc<Handoff> {
        let core = visit.take().cast::<Core>();
        // SAFETY: who holds a core says which, and that is the box that `Held::new` leaked. By
        // invariant 1 of `tenure` it is ours now.
        let mut core = unsafe { Box::from_raw(core.as_ptr()) };
        core.give_batch();
        core.empty_lifo();
        let handoff = Handoff::new(core);
        if let Some(watched) = &self.watched {
            let mut all = lock(&watched.detached);
            all.push(detached);
            let lost = all.iter().filter(|thread| !thread.is_lent).count();
            // Relaxed: a figure.
            watched.figures.peak.fetch_max(lost as u64, Relaxed);
        }
        if weakened!("vigil_leaves_it_first") {
            drop(visit);
            *lock(&stint.left) = Some(handoff.clone());
            return handoff;
        }
        // Before the door is let go: the thread looks there when it knows.
        *lock(&stint.left) = Some(handoff.clone());
        drop(visit);
        handoff
    }
}
