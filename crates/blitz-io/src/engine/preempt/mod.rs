//! Preemption: finds threads that are stuck in one poll and lets the other tasks go on.
//!
//! A *monitor* thread, one for the process ([`monitor`]), examines every core of every watched
//! pool, once in half a slice. A poll that has lasted for half a slice is *marked* (`MARKED` in
//! its lease), so that the runtime's primitives make it yield. A poll that has lasted for a
//! whole slice, and is to blame for that, is *overdue* ([`scan`]): its task is reported ([`stall`],
//! with the system call that it waits in and its stack: [`system_call`], [`stack`]), and its core
//! is handed off to another thread, with all tasks that are queued in it. The stuck thread
//! continues its poll under the operating system's scheduler, without a core. When the poll ends,
//! the thread schedules its task, if it was woken in its poll, as any outside thread would, and
//! takes its core back if no other thread has claimed it, or becomes a thread of the blocking pool.
//!
//! A thread that is requested to take over a core or a task may hang in the user's
//! `on_thread_start` hook. Then another thread is requested ([`unclaimed`]).
//!
//! A task that was caught is polled by threads without a core from then on ([`offload`]), until its
//! polls have been short for a while.
//!
//! A thread that runs fibers is watched in the same way, but nothing is taken from it
//! ([`carrier`]), and nothing is taken from a thread in a `block_on` that polls a set of local
//! tasks ([`block_on`]).
//!
//! The poll record through which a thread and the monitor synchronize is in `engine/lease`; how the
//! monitor sleeps is in [`notifier`].
//!
//! # Invariants
//! 1. A core is held by a thread, or is in one `Handoff`, or is with the monitor between `take` and
//!    the `Handoff`. In the last case the monitor holds the lock of the lease that the core was
//!    taken from.
//! 2. The `Handoff` of a core that was taken is kept by the thread that it was taken from
//!    ([`WatchRecord::taken_core`]), and is put there before that thread can learn of the loss. So
//!    if no other thread claims the core, its old holder finds it, whatever failed: no core is
//!    lost.
//! 3. The monitor runs no user code, and waits for no lock that user code holds.
//! 4. While all cores are idle and each thread without a core has been reported, the monitor sleeps
//!    without a time-out. Nothing is taken from a pool that stops: its reported polls, and its
//!    threads without a core, do not keep the monitor awake, even if they never end.
//!
//! # Checked by
//! `models.rs`: `a_taken_core_has_one_owner`, `a_core_is_taken_from_a_poll_that_calls_the_runtime`,
//! `an_unclaimed_core_is_taken_back`, `a_stop_against_a_taken_core_ends_it_once`; weakened as
//! `preempt_leaves_it_first`. Under load: tests/preempt/hand_off.rs.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use self::{
    handoff::Handoff, monitor::Monitor, offload::Offloaded, running_polls::RunningPoll,
    scan::ScanState, stack::StackCapture, stall::OnStall, unclaimed::UnclaimedCore,
};

use crate::engine::{
    lease::{Inspection, Lease},
    pool::{Pool, core::Core},
    prim::{
        AtomicBool, AtomicU64, AtomicUsize, Mutex, OnceLock, Ordering::Relaxed, cpu::CpuClock,
        lock, weakened,
    },
};

pub(crate) mod handoff;
pub(crate) mod notifier;
pub(crate) mod monitor;
pub(crate) mod scan;
pub(crate) mod offload;
mod unclaimed;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod carrier;
pub(crate) mod block_on;
pub(crate) mod stall;
pub(crate) mod system_call;
pub(crate) mod stack;
pub(crate) mod running_polls;
#[cfg(test)]
mod models;

/// Settings for how the monitor watches a pool.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The longest that a poll may last before it is overdue.
    pub(crate) slice: Duration,
    /// Enables taking the core of a thread that is overdue.
    pub(crate) hands_off: bool,
    /// Maximum number of threads without a core that compute.
    pub(crate) max_computing: usize,
    /// Maximum number of threads without a core that are blocked.
    pub(crate) max_blocked: usize,
    /// Enables polling tasks that were caught before on threads without a core.
    pub(crate) learns: bool,
    /// The user's callback for stalled tasks.
    pub(crate) on_stall: Option<OnStall>,
    /// Which stalled tasks get a stack trace.
    pub(crate) stacks: StackCapture,
    /// Maximum number of threads that run fibers.
    pub(crate) carriers: usize,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("slice", &self.slice).finish_non_exhaustive()
    }
}

/// State of a pool that is watched by the monitor.
pub(crate) struct WatchedPool {
    pub(crate) settings: Settings,
    /// The watch record of the thread that holds each core, or held it last; then those of the
    /// threads that run fibers, and then those of threads in a `block_on`.
    holders: Box<[Mutex<Option<Arc<WatchRecord>>>]>,
    /// Marks the slots that a `block_on` has taken.
    block_on_slots: Mutex<[bool; block_on::BLOCK_ON_SLOTS]>,
    /// Threads that lost their core, until their poll ends, and threads that poll offloaded tasks.
    coreless: Mutex<Vec<CorelessThread>>,
    /// Cores that were taken and that no thread has claimed.
    unclaimed_cores: Mutex<Vec<UnclaimedCore>>,
    /// Tasks that are polled, or wait to be polled, by threads without a core. Some of them are
    /// gone.
    offloaded_tasks: Mutex<Vec<Weak<Offloaded>>>,
    scan_state: Mutex<ScanState>,
    /// The monitor, set when the pool is put on its list.
    monitor: OnceLock<&'static Monitor>,
    /// Set when the pool has left the monitor's list for good. The lock is held while the pool is
    /// put on that list or taken off, because a thread that runs fibers has no core and may arrive
    /// after the last core has ended.
    unregistered: Mutex<bool>,
    pub(crate) counters: PreemptCounters,
    /// Number of tasks that are offloaded to threads without a core.
    offloaded: AtomicUsize,
    /// When the system last refused a thread for an offloaded task.
    refused_at: Mutex<Option<Instant>>,
    /// For each bound, set once it has been reported that the bound is reached.
    reported_bounds: [AtomicBool; stall::HandoffBound::ALL],
    /// Set once it has been reported that requested threads do not arrive.
    reported_slow_start: AtomicBool,
}

/// A thread without a core that is in a poll.
struct CorelessThread {
    /// Unique number of the thread's watch record.
    number: u64,
    kind: stall::StallKind,
    cpu: CpuClock,
    /// When `kind` was determined, and the processor time that the thread had used by then.
    checked: (Instant, Option<Duration>),
    /// Set if the core was taken before a whole slice had passed, so the poll is not reported yet.
    early: Option<EarlyHandoff>,
    /// Set if the thread polls an offloaded task: it has lost no core.
    is_offloaded: bool,
    /// How the poll of an offloaded task is watched, until it has been reported.
    watched_offload: Option<scan::WatchedOffload>,
    /// The poll that the thread is in; `None` for an offloaded task, because its `Offloaded` has
    /// it.
    running: Option<RunningPoll>,
}

#[cfg(test)]
impl CorelessThread {
    fn of_a_model(watch_record: &WatchRecord) -> Self {
        Self {
            number: watch_record.number,
            kind: stall::StallKind::Unknown,
            cpu: watch_record.cpu,
            checked: (Instant::now(), None),
            early: None,
            is_offloaded: false,
            watched_offload: None,
            running: None,
        }
    }
}

/// A poll that lost its core early and is reported only if it lasts for a whole slice.
struct EarlyHandoff {
    seen: scan::SeenPoll,
    watch_record: Arc<WatchRecord>,
    stall: stall::PendingReport,
}

/// Counters for metrics.
#[derive(Debug, Default)]
pub(crate) struct PreemptCounters {
    /// Number of cores for which another thread was requested and found.
    pub(crate) handoffs: AtomicU64,
    /// Peak number of threads in an overlong poll after their core was handed off.
    pub(crate) peak: AtomicU64,
    /// Number of overdue polls that ended just as their core was to be taken.
    pub(crate) too_late: AtomicU64,
    /// Number of overdue polls that kept their core at a bound, and of cores that were taken while
    /// the system had no thread for them.
    pub(crate) refused: AtomicU64,
    /// Number of polls of known hogs that ran on a thread without a core.
    pub(crate) offloaded: AtomicU64,
    /// Number of overdue polls.
    pub(crate) stalls: AtomicU64,
    /// Number of times that the monitor has examined the pool.
    pub(crate) scans: AtomicU64,
}

pub(crate) fn count(figure: &AtomicU64) {
    // Relaxed: a counter, which orders nothing.
    figure.fetch_add(1, Relaxed);
}

pub(crate) fn read(figure: &AtomicU64) -> u64 {
    // Relaxed: a counter, which orders nothing.
    figure.load(Relaxed)
}

impl WatchedPool {
    pub(crate) fn new(settings: Settings, workers: usize) -> Self {
        if settings.stacks != StackCapture::Off {
            stack::install();
        }
        let holders = workers + settings.carriers + block_on::BLOCK_ON_SLOTS;
        Self {
            holders: (0..holders).map(|_| Mutex::new(None)).collect(),
            block_on_slots: Mutex::new([false; block_on::BLOCK_ON_SLOTS]),
            coreless: Mutex::new(Vec::new()),
            unclaimed_cores: Mutex::new(Vec::new()),
            offloaded_tasks: Mutex::new(Vec::new()),
            scan_state: Mutex::new(ScanState::new(holders)),
            monitor: OnceLock::new(),
            unregistered: Mutex::new(false),
            counters: PreemptCounters::default(),
            offloaded: AtomicUsize::new(0),
            refused_at: Mutex::new(None),
            reported_bounds: std::array::from_fn(|_| AtomicBool::new(false)),
            reported_slow_start: AtomicBool::new(false),
            settings,
        }
    }

    /// Returns the number of threads still in an overlong poll after their core was handed off.
    pub(crate) fn detached_threads(&self) -> usize {
        lock(&self.coreless).iter().filter(|thread| !thread.is_offloaded).count()
    }
}

/// Watch record: the monitor's knowledge of one thread, for as long as the thread may hold cores of
/// one pool.
pub(crate) struct WatchRecord {
    lease: Lease,
    /// Unique number of this record.
    number: u64,
    /// Set while the thread has something to run, as far as the monitor needs to know.
    busy: AtomicBool,
    /// The poll that was last reported or lost its core, and when the monitor first saw it.
    reported_poll: Mutex<Option<(usize, Instant)>>,
    /// Set if the core may be taken from the thread.
    movable: bool,
    cpu: CpuClock,
    /// The core that was taken from this thread, for the thread to reclaim.
    taken_core: Mutex<Option<Arc<Handoff>>>,
}

impl WatchRecord {
    /// Creates the watch record of the calling thread, which is about to get core `index` of
    /// `pool`. Returns `None` if the pool is not watched.
    pub(crate) fn begin(pool: &Pool, index: usize) -> Option<Arc<Self>> {
        let watched = pool.watched.as_ref()?;
        let movable = pool.config.threaded && watched.settings.hands_off;
        Some(Self::register(watched, index, movable))
    }

    fn register(watched: &WatchedPool, holder: usize, movable: bool) -> Arc<Self> {
        let watch_record = Self::new(watched, movable, false);
        let before = lock(&watched.holders[holder]).replace(watch_record.clone());
        drop(before);
        watch_record
    }

    fn new(watched: &WatchedPool, movable: bool, has_clock: bool) -> Arc<Self> {
        let captures_stacks = watched.settings.stacks != StackCapture::Off;
        Arc::new(Self {
            lease: Lease::new(!movable)
                .with_clock(has_clock)
                .with_stack_request(captures_stacks.then(stack::stack_request).flatten()),
            number: crate::engine::prim::ids::take(1),
            busy: AtomicBool::new(false),
            reported_poll: Mutex::new(None),
            movable,
            cpu: CpuClock::of_this_thread(),
            taken_core: Mutex::new(None),
        })
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Marks the thread as busy, so that the monitor watches it from now on.
    #[cold]
    pub(crate) fn set_busy(&self, pool: &Arc<Pool>) {
        // Relaxed: ordered by the barrier in `MonitorNotifier::notify_if_asleep`, or by the lock of
        // the monitor's list.
        self.busy.store(true, Relaxed);
        let Some(watched) = &pool.watched else { return };
        match watched.monitor.get() {
            Some(monitor) => monitor.notifier.notify_if_asleep(),
            None => monitor::register_pool(pool, watched),
        }
    }

    /// Marks the thread as idle: it has nothing to run.
    pub(crate) fn set_idle(&self) {
        // Relaxed: a monitor that sees the store late examines the thread once more.
        self.busy.store(false, Relaxed);
    }

    /// Returns true if the thread is busy and holds a core.
    fn is_watched(&self) -> bool {
        // Relaxed: where the order matters, the caller's barrier provides it.
        self.busy.load(Relaxed) && self.lease.has_core()
    }

    /// Returns true if the thread is in a poll that has been reported, so that taking its core is
    /// all that is left to do.
    fn is_reported(&self) -> bool {
        let reported_poll = lock(&self.reported_poll).map(|(poll, _)| poll);
        reported_poll.is_some() && reported_poll == self.lease.poll_number()
    }

    /// Ends the poll that cost this thread its core. Returns the core if no other thread has
    /// claimed it.
    #[cold]
    pub(crate) fn take_core_back(&self, pool: &Pool) -> Option<Box<Core>> {
        let handoff = lock(&self.taken_core).take()?;
        if let Some(watched) = &pool.watched {
            let mut coreless = lock(&watched.coreless);
            let index = coreless.iter().position(|coreless| coreless.number == self.number);
            let gone = index.map(|index| coreless.swap_remove(index));
            drop(coreless);
            drop(gone);
        }
        handoff.take()
    }
}

impl Pool {
    /// Wakes the monitor if it sleeps. Called by a thread that is busy and resumes after it was
    /// without a core, because the monitor may have seen no busy thread meanwhile and gone to
    /// sleep.
    pub(crate) fn notify_monitor(&self) {
        if let Some(monitor) = self.watched.as_ref().and_then(|watched| watched.monitor.get()) {
            monitor.notifier.notify_if_asleep();
        }
    }

    /// Takes the core of a thread that is in user code and leaves it in a `Handoff`, where the next
    /// thread, or the old one, finds it.
    fn take_core_of(
        &self,
        watch_record: &Arc<WatchRecord>,
        mut inspection: Inspection<'_>,
        coreless: CorelessThread,
    ) -> Arc<Handoff> {
        let core = inspection.take().cast::<Core>();
        // SAFETY: the holder of a core publishes the pointer of the box that `CoreGuard::new`
        // leaked, so the pointer came from a `Box<Core>`. By invariant 1 of `engine/lease` the core
        // is ours now, because the inspection took it.
        let mut core = unsafe { Box::from_raw(core.as_ptr()) };
        core.flush_batch();
        core.empty_lifo();
        let handoff = Handoff::new(core);
        if let Some(watched) = &self.watched {
            let mut all = lock(&watched.coreless);
            all.push(coreless);
            let lost = all.iter().filter(|thread| !thread.is_offloaded).count();
            // Relaxed: a counter, which orders nothing.
            watched.counters.peak.fetch_max(lost as u64, Relaxed);
        }
        if weakened!("preempt_leaves_it_first") {
            drop(inspection);
            *lock(&watch_record.taken_core) = Some(handoff.clone());
            return handoff;
        }
        // Before the inspection releases the lock, because the thread reads `taken_core` as soon as
        // it learns that its core is gone.
        *lock(&watch_record.taken_core) = Some(handoff.clone());
        drop(inspection);
        handoff
    }
}
