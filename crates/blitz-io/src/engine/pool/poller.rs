//! The maintenance of a pool beside its tasks: which worker polls the I/O driver and fires timers.
//!
//! # Which worker sleeps for what
//! A sleeping core sleeps until its own timer wheel is due. One of the sleepers is the
//! *poller*: it sleeps in the driver, where there is one, until an event comes, and for the
//! wheel of the threads without a core; and for those of cores that are awake but late,
//! because they may be stuck in a poll. Any worker may be the poller: the first that falls
//! asleep while no other is. A worker that is awake looks at its wheel, and into the driver if
//! no other thread is there, whenever its coarse clock says so.
//!
//! A poller that has something to do gives the role up first, and the next worker that
//! falls asleep takes it. While no worker has it, at least one is awake, which looks into the
//! driver by its clock and takes the role before it sleeps. If that worker gets stuck in a poll
//! while all others sleep, no worker looks until the monitor (`preempt`) hands its core to another
//! thread; without preemption, until the poll has ended, as on Tokio. `idle` does not wake the
//! poller for work if it can wake another one, which makes this rare.
//!
//! # Which worker is spared
//! A worker that sleeps in the driver is woken by every event, also by those that a task on
//! another worker has just caused, and which that worker would have found a moment later. Two
//! tasks that send each other messages then change cores with each message. So a worker that is
//! woken for events and finds all others idle, several times in a row, is spared: it does not take
//! the role again while another worker is awake, but sleeps for [`BRIEF_SLEEP`] and then checks
//! whether that worker has looked. If so, it sleeps on; if not, that worker is stuck, and the
//! spared one takes the role. The last worker that falls asleep sees that all sleep (W1 of `idle`),
//! and is not spared. No worker is spared where events come to the thread that waited for them last
//! (io_uring).
//!
//! # Protocol
//! ```text
//! a worker that falls asleep              a thread that arms a timer of another wheel
//! D1 takes the role: writes its index     A1 publishes the wheel's next deadline
//! D2 fence(SeqCst)                        A2 fence(SeqCst)
//! D3 reads the deadlines, and sleeps      A3 reads the index, and unparks the worker
//!    until the first of them                 that it finds
//! ```
//! One fence comes first: D3 sees the deadline, or A3 sees the index. A worker that is unparked
//! and has nothing to do begins again at D2.
//!
//! # Rejected
//! For a poller that gives up the role and gets stuck while all others sleep. It cannot report that
//! itself, and a thread that is to detect it needs a clock, which threads that sleep without a
//! time-out do not have:
//! - Waking another worker whenever the role is given up: 10 to 14 µs of the caller's time for each
//!   event, before it can run the task that the event is for. Doing so once in some
//!   milliseconds spares a busy pool, but not one in which events are rare, where each
//!   would pay.
//! - A time-out for all sleepers as long as no worker is the poller: those that fell asleep
//!   while one was would not notice, unless they always had a time-out, and an idle pool must
//!   make no system calls.
//! - Two workers that wait in the driver at once: the kernel gives the second every event that
//!   comes while the first runs tasks, so each is reported on another core than its task was on.
//! - A deputy that sleeps by a timer of the kernel's, which the worker that gives up the role sets,
//!   once in some milliseconds. It is the only one that costs next to nothing. But it is a second
//!   place to sleep in, other than a futex, and it helps events alone: tasks in the queue of
//!   the stuck worker would still wait. The monitor hands on the whole core instead, and
//!   with it the queue, the wheel and this role.
//!
//! # Checked by
//! `an_earlier_timer_is_slept_for`, `an_event_is_dispatched_whichever_worker_sleeps_in_the_driver`,
//! `the_last_worker_that_falls_asleep_sees_that_all_sleep`; weakened as `poller_fence`,
//! `poller_alarm`, `poller_takes_role`, `idle_counts_in_one_step`.

use std::time::Duration;

use super::{Pool, held_core};
#[cfg(feature = "net")]
use crate::engine::driver::{Driver, TurnGuard};
#[cfg(feature = "time")]
use crate::engine::prim::Arc;
use crate::engine::prim::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
    pad::CachePadded,
    parker::Parker,
    weakened,
};
#[cfg(feature = "time")]
use crate::engine::wheel::{GRACE_NS, Timers, TimersRef};

/// The time that a core sleeps if it could not find out whether a worker is the poller, which is
/// rare, or if it leaves the driver to a worker that may get stuck. Events wait for at most this
/// long then, and the core's processor pays for a wake-up each time.
#[cfg(feature = "net")]
const BRIEF_SLEEP: Duration = Duration::from_millis(1);

/// Number of wake-ups for events in a row that found all others idle, after which the worker that
/// was the poller for them is spared.
const NEEDLESS: u64 = 4;

/// Counts how often it was needless that a core was the poller. See 'Which worker is spared'.
#[derive(Debug, Default)]
pub(crate) struct PollerUsefulness(AtomicU64);

impl PollerUsefulness {
    /// Counts that events have ended the core's sleep. Only for the core's holder.
    #[cfg(any(test, feature = "net"))]
    pub(crate) fn learn(&self, others_are_idle: bool) {
        // Relaxed: one thread writes it, and no other reads it.
        let needless = if others_are_idle { self.0.load(Relaxed) + 1 } else { 0 };
        // Relaxed: one thread writes it, and no other reads it.
        self.0.store(needless, Relaxed);
    }

    /// Returns true if other workers would have been in time as well. Only for the core's holder.
    pub(crate) fn is_doubtful(&self) -> bool {
        // Relaxed: read by the thread that writes it.
        self.0.load(Relaxed) >= NEEDLESS
    }
}

/// The interval at which an awake core looks for events: a look that finds none costs 0.2 µs, so
/// this is half a percent.
#[cfg(feature = "net")]
const MAINTENANCE_NS: u64 = 50_000;

/// The I/O driver and the timers of a pool, and the worker that sleeps for them.
pub(crate) struct PoolDrivers {
    #[cfg(feature = "net")]
    driver: Option<std::sync::Arc<Driver>>,
    #[cfg(feature = "time")]
    timers: Option<TimerRefs>,
    /// Padded, because the fields beside it are read by every worker.
    role: CachePadded<PollerRole>,
}

/// The timers, with a [`TimersRef`] for each core and one for threads without a core.
#[cfg(feature = "time")]
struct TimerRefs {
    timers: Arc<Timers>,
    refs: Box<[Arc<TimersRef>]>,
}

impl PoolDrivers {
    /// Creates the state without a driver and without timers.
    pub(crate) fn none() -> Self {
        Self {
            #[cfg(feature = "net")]
            driver: None,
            #[cfg(feature = "time")]
            timers: None,
            role: CachePadded::new(PollerRole::new()),
        }
    }

    #[cfg(feature = "net")]
    pub(crate) fn with_driver(mut self, driver: std::sync::Arc<Driver>) -> Self {
        self.driver = Some(driver);
        self
    }

    #[cfg(feature = "time")]
    pub(crate) fn with_timers(mut self, timers: Arc<Timers>) -> Self {
        let refs = Timers::refs(&timers);
        self.timers = Some(TimerRefs { timers, refs });
        self
    }

    #[cfg(feature = "net")]
    pub(crate) fn driver(&self) -> Option<&std::sync::Arc<Driver>> {
        self.driver.as_ref()
    }

    #[cfg(feature = "time")]
    pub(crate) fn timers(&self) -> Option<&Arc<Timers>> {
        self.timers.as_ref().map(|timer_refs| &timer_refs.timers)
    }

    /// Returns the [`TimersRef`] of a core, or that of threads without a core.
    #[cfg(feature = "time")]
    #[inline]
    pub(crate) fn timers_ref(&self, core: Option<usize>) -> Option<&Arc<TimersRef>> {
        let TimerRefs { timers, refs } = self.timers.as_ref()?;
        Some(&refs[core.unwrap_or_else(|| timers.outside())])
    }

    pub(crate) fn has_timers(&self) -> bool {
        #[cfg(feature = "time")]
        return self.timers.is_some();
        #[cfg(not(feature = "time"))]
        false
    }

    /// Returns the index of the poller, if there is one.
    pub(crate) fn poller(&self) -> Option<usize> {
        self.role.holder()
    }

    /// Returns true if an awake worker can take the events for a sleeping one.
    #[cfg(feature = "net")]
    pub(crate) fn any_worker_can_take_events(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.any_thread_sees_events())
    }

    /// Returns how often a thread has looked for events.
    pub(crate) fn driver_polls(&self) -> u64 {
        #[cfg(feature = "net")]
        return self.driver.as_ref().map_or(0, |driver| driver.turn_count());
        #[cfg(not(feature = "net"))]
        0
    }

    /// Wakes the worker that sleeps in the driver.
    pub(crate) fn wake(&self) {
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            driver.wake();
        }
    }

    /// Returns true if an awake core must look, given the time since its last look.
    #[inline]
    pub(crate) fn is_maintenance_due(&self, index: usize, since_maintenance_ns: u64) -> bool {
        #[cfg(feature = "net")]
        if self.driver.is_some() && since_maintenance_ns >= MAINTENANCE_NS {
            return true;
        }
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            let next = earlier(timers.next(index), timers.next(timers.outside()));
            return next.is_some_and(|next| next <= timers.clock().now_ns());
        }
        let _ = (index, since_maintenance_ns);
        false
    }

    /// Shuts driver and timers down: every waiter for an event or a time gets an error.
    pub(crate) fn shut_down(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.shutdown();
        }
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            driver.shutdown();
        }
    }

    /// Sleeps once, as core `index`, until a token comes or there is something to look after.
    /// `spared` is true if another worker is about to look for events.
    pub(crate) fn sleep(&self, parker: &Parker, index: usize, spared: bool) -> WakeReason<'_> {
        #[cfg(feature = "net")]
        if let Some(driver) = &self.driver {
            if spared {
                return self.sleep_briefly(parker, index);
            }
            return match driver.try_lock() {
                Some(role) if !weakened!("poller_takes_role") => {
                    self.sleep_in_driver(role, parker, index)
                }
                Some(_) => self.sleep_on_parker(parker, index, false),
                None if self.role.holder().is_some() => self.sleep_on_parker(parker, index, false),
                None => self.sleep_briefly(parker, index),
            };
        }
        let _ = spared;
        if !self.has_timers() {
            parker.park();
            return WakeReason::Unparked;
        }
        if !self.role.try_take(index) {
            return self.sleep_on_parker(parker, index, false);
        }
        self.watch_deadlines();
        let reason = self.sleep_on_parker(parker, index, true);
        self.end_role();
        reason
    }

    /// Sleeps for a short time, because no worker is the poller: an awake worker is looking into
    /// the driver just now, or is about to, and may get stuck before it takes the role.
    #[cfg(feature = "net")]
    #[cold]
    fn sleep_briefly(&self, parker: &Parker, index: usize) -> WakeReason<'_> {
        match self.sleep_limit(index, false) {
            SleepLimit::Due => return WakeReason::TimerDue,
            SleepLimit::Some(limit) if limit < BRIEF_SLEEP => {
                return self.sleep_on_parker(parker, index, false);
            }
            _ => parker.park_timeout(BRIEF_SLEEP),
        };
        WakeReason::Unparked
    }

    /// Sleeps in the driver, as the poller.
    #[cfg(feature = "net")]
    fn sleep_in_driver<'a>(
        &'a self,
        mut role: TurnGuard<'a>,
        parker: &Parker,
        index: usize,
    ) -> WakeReason<'a> {
        self.role.take(index);
        self.watch_deadlines();
        let limit = self.sleep_limit(index, true);
        if limit == SleepLimit::Due || !parker.begin_sleep_elsewhere() {
            self.end_role();
            return if limit == SleepLimit::Due {
                WakeReason::TimerDue
            } else {
                WakeReason::Unparked
            };
        }
        let timeout = match limit {
            // While the clock is paused, only an event or a token ends the wait.
            SleepLimit::Unbounded | SleepLimit::Paused => None,
            SleepLimit::Some(limit) => Some(limit),
            SleepLimit::Due | SleepLimit::Advanceable => Some(Duration::ZERO),
        };
        let mut events = wait_for_events(&mut role, timeout);
        if limit == SleepLimit::Advanceable && events == 0 && !self.advance() {
            events = wait_for_events(&mut role, None);
        }
        let called = parker.end_sleep_elsewhere();
        self.end_role();
        if events > 0 {
            WakeReason::Events(role)
        } else if called {
            WakeReason::Unparked
        } else {
            WakeReason::TimerDue
        }
    }

    /// Sleeps on the parker, as the poller or not.
    fn sleep_on_parker(&self, parker: &Parker, index: usize, is_poller: bool) -> WakeReason<'_> {
        match self.sleep_limit(index, is_poller) {
            SleepLimit::Some(limit) if parker.park_timeout(limit) => WakeReason::Unparked,
            SleepLimit::Some(_) | SleepLimit::Due => WakeReason::TimerDue,
            SleepLimit::Advanceable if parker.try_take() => WakeReason::Unparked,
            SleepLimit::Advanceable if self.advance() => WakeReason::TimerDue,
            SleepLimit::Unbounded | SleepLimit::Paused | SleepLimit::Advanceable => {
                parker.park();
                WakeReason::Unparked
            }
        }
    }

    /// Makes the timers notify the poller of every new deadline, until it has decided how
    /// long to sleep.
    fn watch_deadlines(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(u64::MAX);
        }
    }

    fn end_role(&self) {
        #[cfg(feature = "time")]
        if let Some(timers) = self.timers() {
            timers.watch_until(0);
        }
        self.role.end();
    }

    /// Returns how long the core may sleep.
    #[cfg(feature = "time")]
    fn sleep_limit(&self, index: usize, is_poller: bool) -> SleepLimit {
        let Some(timers) = self.timers() else { return SleepLimit::Unbounded };
        let mut until = timers.next(index);
        if is_poller {
            until = earlier(until, timers.next(timers.outside()));
            let others = (0..timers.outside()).filter(|&other| other != index);
            let late = others.filter_map(|other| timers.next(other)).min();
            until = earlier(until, late.map(|late| late.saturating_add(GRACE_NS)));
            timers.watch_until(until.unwrap_or(u64::MAX));
        }
        let Some(until) = until else { return SleepLimit::Unbounded };
        if timers.clock().is_paused() {
            let due = until <= timers.clock().now_ns();
            return match self.may_advance() {
                _ if due => SleepLimit::Due,
                true => SleepLimit::Advanceable,
                false => SleepLimit::Paused,
            };
        }
        match until.checked_sub(timers.clock().now_ns()) {
            None | Some(0) => SleepLimit::Due,
            Some(limit) => SleepLimit::Some(Duration::from_nanos(limit)),
        }
    }

    #[cfg(not(feature = "time"))]
    fn sleep_limit(&self, _index: usize, _is_poller: bool) -> SleepLimit {
        SleepLimit::Unbounded
    }

    /// Returns true if a paused clock may be moved. A thread that forbade it wakes the workers
    /// concerned before it allows it again, so this must be checked before the token is taken.
    #[cfg(feature = "test-util")]
    fn may_advance(&self) -> bool {
        self.timers().is_some_and(|timers| timers.clock().can_auto_advance())
    }

    #[cfg(all(feature = "time", not(feature = "test-util")))]
    fn may_advance(&self) -> bool {
        false
    }

    /// Moves a paused clock to the next deadline, if it may be moved. Returns true if a timer was
    /// woken.
    #[cfg(feature = "test-util")]
    fn advance(&self) -> bool {
        self.timers().is_some_and(|timers| timers.auto_advance() > 0)
    }

    #[cfg(not(feature = "test-util"))]
    fn advance(&self) -> bool {
        false
    }

    /// Fires the timers that are due: in the wheel of core `index`, in that of threads without a
    /// core, and in those of cores that are late.
    #[cfg(feature = "time")]
    fn fire(&self, index: usize) {
        let Some(timers) = self.timers() else { return };
        if timers.next_of_all().is_none() {
            return;
        }
        let now = timers.clock().now_ns();
        for wheel in 0..=timers.outside() {
            let grace = if wheel == index || wheel == timers.outside() { 0 } else { GRACE_NS };
            if timers.next(wheel).is_some_and(|next| next.saturating_add(grace) <= now) {
                timers.fire(wheel, now);
            }
        }
    }
}

/// Waits for events and returns their number.
///
/// # Panics
/// If the system call fails, because nothing that waits for events could go on.
#[cfg(feature = "net")]
fn wait_for_events(role: &mut TurnGuard<'_>, timeout: Option<Duration>) -> usize {
    match role.wait(timeout) {
        Ok(events) => events,
        Err(error) => panic!(
            "unexpected error when polling the I/O driver: {error} (was a descriptor closed that \
             is the runtime's?)"
        ),
    }
}

/// The reason why the sleep of a core ended.
#[must_use]
pub(crate) enum WakeReason<'a> {
    /// A token came, or the thread woke spuriously.
    Unparked,
    /// A timer is due.
    TimerDue,
    /// Events came, and have not been dispatched yet.
    #[cfg(feature = "net")]
    Events(TurnGuard<'a>),
    #[cfg(not(feature = "net"))]
    #[allow(dead_code, reason = "keeps the lifetime in use")]
    Never(std::convert::Infallible, std::marker::PhantomData<&'a ()>),
}

/// The time that a core may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "time"), allow(dead_code, reason = "without timers it is endless"))]
enum SleepLimit {
    Unbounded,
    Some(Duration),
    /// A timer is due.
    Due,
    /// Until another thread moves the paused clock.
    Paused,
    /// Until the paused clock is moved, which this worker may do if there is nothing else to do.
    Advanceable,
}

#[cfg(feature = "time")]
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The reason why a core looks after driver and timers.
pub(crate) enum Maintenance<'a> {
    /// Between two tasks: it is time to, or there is no task to run.
    BetweenTasks,
    /// The core has a new thread, and no thread has looked for the core meanwhile. The task that
    /// is woken last runs next, and does not wait behind those that may have cost the last thread
    /// its core.
    NewThread,
    /// After the core has slept, with the reason why the sleep ended.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "without events it says nothing"))]
    AfterSleep(WakeReason<'a>),
}

/// Polls the driver and fires timers, or dispatches the events that ended a sleep. This thread
/// holds core `index` and is awake; tasks that become runnable go to that core.
pub(crate) fn maintain(pool: &Pool, index: usize, maintenance: Maintenance<'_>) {
    if !matches!(maintenance, Maintenance::NewThread) {
        held_core::with_core(|core| core.begin_batch());
    }
    #[cfg(feature = "net")]
    if let Some(driver) = pool.drivers.driver() {
        let events = match maintenance {
            Maintenance::AfterSleep(WakeReason::Events(mut role)) => role.dispatch(),
            // Also if a timer ended the sleep, because a timer that is always due must not starve
            // events.
            _ => driver.try_lock().map_or(0, |mut role| {
                let events = wait_for_events(&mut role, Some(Duration::ZERO));
                if events > 0 { role.dispatch() } else { 0 }
            }),
        };
        if held_core::holds_core_of(pool) {
            held_core::with_core(|core| core.expects_events = events > 0);
        }
    }
    #[cfg(not(feature = "net"))]
    let _ = maintenance;
    #[cfg(feature = "time")]
    pool.drivers.fire(index);
    let _ = index;
    // User wakers ran, and may have handed the core off.
    if held_core::holds_core_of(pool) {
        held_core::with_core(|core| core.end_batch());
    }
}

/// The index of the poller, plus one; zero if none is.
struct PollerRole(AtomicUsize);

impl PollerRole {
    fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes the role (D1 and D2), in a pool without a driver. Returns false if another worker
    /// has it.
    fn try_take(&self, index: usize) -> bool {
        // Acquire: what the last poller did is visible. Pairs with the Release in `end`.
        if self.0.compare_exchange(0, index + 1, Acquire, Relaxed).is_err() {
            return false;
        }
        self.fence();
        true
    }

    /// Takes the role (D1 and D2), for the worker that holds the driver.
    #[cfg(feature = "net")]
    fn take(&self, index: usize) {
        // Relaxed: the fence orders it.
        self.0.store(index + 1, Relaxed);
        self.fence();
    }

    fn fence(&self) {
        if !weakened!("poller_fence") {
            // SeqCst: D2. Pairs with A2 in `to_alarm`.
            fence(SeqCst);
        }
    }

    fn end(&self) {
        // Release: pairs with `try_take`.
        self.0.store(0, Release);
    }

    /// Returns the worker that must be unparked for an earlier deadline (A2 and A3).
    #[cfg_attr(not(feature = "time"), allow(dead_code, reason = "timers alarm"))]
    fn to_alarm(&self) -> Option<usize> {
        // SeqCst: A2. Pairs with D2 in `fence`.
        fence(SeqCst);
        self.holder()
    }

    fn holder(&self) -> Option<usize> {
        // Relaxed: ordered by the fence before, where that matters.
        self.0.load(Relaxed).checked_sub(1)
    }
}

impl Pool {
    /// Leaves a token for core `index`, and wakes its thread wherever it sleeps.
    #[inline]
    pub(crate) fn unpark(&self, index: usize) {
        self.remotes[index].parker.unpark_or(|| self.drivers.wake());
    }

    /// Wakes the workers that sleep for a wheel, not the caller's own, that got an earlier
    /// deadline.
    #[cfg(feature = "time")]
    pub(crate) fn alarm(&self, wheel: usize) {
        if weakened!("poller_alarm") {
            return;
        }
        if wheel < self.remotes.len() {
            // The wheel's own core sleeps for it, if it sleeps.
            self.unpark(wheel);
        }
        if let Some(index) = self.drivers.role.to_alarm() {
            self.unpark(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PollerRole;
    #[cfg(not(blitz_loom))]
    use super::PollerUsefulness;
    use crate::engine::prim::{
        Arc, AtomicBool, Ordering::Relaxed, model, parker::Parker, thread, weakened,
    };

    #[cfg(not(blitz_loom))]
    #[test]
    fn a_poller_that_was_needless_several_times_is_spared() {
        let usefulness = PollerUsefulness::default();
        for others_are_idle in [true, true, true, false, true, true, true] {
            usefulness.learn(others_are_idle);
            assert!(!usefulness.is_doubtful());
        }
        usefulness.learn(true);
        assert!(usefulness.is_doubtful());
        usefulness.learn(false);
        assert!(!usefulness.is_doubtful(), "it was of use");
    }

    #[test]
    fn an_earlier_timer_is_slept_for() {
        model(|| {
            let shared = Arc::new((PollerRole::new(), Parker::new(), AtomicBool::new(false)));
            let armer = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the fences order it, as they do a wheel's next deadline.
                    shared.2.store(true, Relaxed);
                    if let Some(_poller) =
                        shared.0.to_alarm().filter(|_| !weakened!("poller_alarm"))
                    {
                        shared.1.unpark();
                    }
                }
            });
            assert!(shared.0.try_take(0));
            // Without a time-out: a deadline that is not seen is a deadlock in this model.
            while !shared.2.load(Relaxed) {
                shared.1.park();
            }
            shared.0.end();
            armer.join().unwrap();
        });
    }
}

#[cfg(all(test, blitz_loom, feature = "net"))]
mod models {
    use super::{Driver, PoolDrivers, WakeReason};
    use crate::engine::prim::{
        Arc, AtomicBool,
        Ordering::{Acquire, Release},
        model,
        parker::Parker,
        thread,
    };

    /// Two workers that only wait for one event.
    struct PollingWorkers {
        drivers: PoolDrivers,
        parkers: [Parker; 2],
        dispatched: AtomicBool,
    }

    impl PollingWorkers {
        fn unpark(&self, index: usize) {
            self.parkers[index].unpark_or(|| self.drivers.wake());
        }

        /// Sleeps until the event was dispatched, by this worker or the other.
        fn work(&self, index: usize) {
            // Acquire: pairs with the Release below.
            while !self.dispatched.load(Acquire) {
                let reason = self.drivers.sleep(&self.parkers[index], index, false);
                if let WakeReason::Events(mut role) = reason {
                    role.dispatch();
                    // Release: pairs with the Acquire above.
                    self.dispatched.store(true, Release);
                    drop(role);
                    self.unpark(1 - index);
                }
            }
        }
    }

    /// Worker 0 is called away, once, from wherever it sleeps: before the event, while it is on
    /// its way, or after. If both slept on their parkers, this would be a deadlock.
    #[test]
    fn an_event_is_dispatched_whichever_worker_sleeps_in_the_driver() {
        model(|| {
            let driver = Driver::of_a_model();
            let registration = driver.registered(0, 0);
            let workers = Arc::new(PollingWorkers {
                drivers: PoolDrivers::none().with_driver(driver.clone()),
                parkers: [Parker::new(), Parker::new()],
                dispatched: AtomicBool::new(false),
            });
            let other = thread::spawn({
                let workers = workers.clone();
                move || workers.work(1)
            });
            let world = thread::spawn({
                let workers = workers.clone();
                move || {
                    workers.unpark(0);
                    driver.kernel().set(0, libc::POLLIN);
                }
            });
            workers.work(0);
            other.join().unwrap();
            world.join().unwrap();
            drop(registration);
        });
    }
}
