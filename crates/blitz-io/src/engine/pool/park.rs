//! Puts a worker to sleep (steps W1 to W4 of `idle`), until there is work, an event or a due timer.
//!
//! # Where a worker sleeps
//! A sleeping core sleeps until its own timer wheel is due, or until a token comes to its parker.
//! One of the sleeping cores is the poller (see `poller`), which sleeps for events as well, and for
//! other wheels. Before each sleep, [`SleepingCore::choose`] returns where to sleep as a value:
//! - [`SleepIn::Driver`], as the poller, if no other thread holds the driver.
//! - [`SleepIn::Parker`] if another core is the poller. Also if the pool has no driver; then the
//!   first core that falls asleep is the poller there, for the timers.
//! - [`SleepIn::Briefly`] if another thread holds the driver and no core is the poller, or if the
//!   core is spared.
//!
//! # Which worker is spared
//! A worker that sleeps in the driver is woken by every event, also by those that a task on another
//! worker has just caused, and which that worker would have found a moment later. Two tasks that
//! send each other messages then change cores with each message. So a worker that is woken for
//! events and finds all others idle, several times in a row, is spared: it does not take the role
//! again while another worker is awake, but sleeps briefly, for [`BRIEF_SLEEP`], and then checks
//! whether that worker has polled the driver. If so, it sleeps on; if not, that worker is stuck,
//! and the spared one takes the role. (This is not the *short sleep* of `keep_up`, in which a
//! worker counts as searching.) The last worker that falls asleep sees that all sleep (W1 of
//! `idle`), and is not spared. No worker is spared where events come to the thread that waited for
//! them last (io_uring).
//!
//! # Checked by
//! `a_stop_wakes_every_sleeper_whatever_producers_do`,
//! `the_counts_are_right_after_sleeping`,
//! `the_counts_are_right_after_searching_and_sleeping`,
//! `work_is_left_to_another_searcher_only_if_there_is_one`,
//! `an_event_is_dispatched_whichever_worker_sleeps_in_the_driver`,
//! `the_last_worker_that_falls_asleep_sees_that_all_sleep`; weakened as `park_insists`,
//! `park_leaves_it_to_a_searcher`, `poller_takes_role`, `idle_counts_in_one_step`.

use std::time::Duration;

#[cfg(feature = "net")]
use super::poller::wait_for_events;
use super::{
    Pool,
    core::Remote,
    held_core,
    idle::SelfWoken,
    keep_up,
    poller::{self, DriverTurn, Maintenance, PoolDrivers},
};
#[cfg(feature = "time")]
use crate::engine::wheel::GRACE_NS;
use crate::engine::{
    prim::{AtomicU64, Ordering::Relaxed, parker::Parker, thread, weakened},
    threads::run_hook,
    work::task::arena,
};

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
    /// Counts that events have ended the core's sleep. Must be called only by the core's holder.
    #[cfg(any(test, feature = "net"))]
    fn learn(&self, others_are_idle: bool) {
        // Relaxed: one thread writes it, and no other reads it.
        let needless = if others_are_idle { self.0.load(Relaxed) + 1 } else { 0 };
        // Relaxed: one thread writes it, and no other reads it.
        self.0.store(needless, Relaxed);
    }

    /// Returns true if other workers would have been in time as well. Must be called only by the
    /// core's holder.
    fn is_doubtful(&self) -> bool {
        // Relaxed: read by the thread that writes it.
        self.0.load(Relaxed) >= NEEDLESS
    }
}

/// Sleeps until there may be something to do. This thread holds core `index`.
///
/// `is_wanted` returns true if something other than work wants the thread awake. It is called after
/// W2 of `idle`, so a thread that makes it true and then unparks this one is never missed.
///
/// The thread holds no core afterwards if a hook has stopped the pool.
pub(crate) fn park(pool: &Pool, index: usize, is_wanted: impl Fn() -> bool) {
    // Cells of this core that other threads have freed must not wait for as long as we sleep.
    arena::sweep_held_arena();
    if !held_core::holds_core_of(pool) {
        return;
    }
    if slept_shortly(pool, index) {
        return;
    }
    run_hook(pool.config.on_park.as_ref());
    if !held_core::holds_core_of(pool) {
        return;
    }
    // The hook and the values that the sweep dropped are user code, which may have placed a task
    // on this core, where no other worker will find it.
    let was_searching = held_core::with_core(|core| {
        core.before_park();
        if core.has_own_tasks() {
            return None;
        }
        let others_keep_up = core.keep_up != 0;
        Some((std::mem::take(&mut core.searching), others_keep_up))
    });
    let woken = was_searching.map(|(searching, others_keep_up)| {
        let (woken, maintenance) = sleep(pool, index, searching, others_keep_up, is_wanted);
        if let Some(maintenance) = maintenance {
            poller::maintain(pool, index, maintenance);
        }
        woken
    });
    run_hook(pool.config.on_unpark.as_ref());
    if !held_core::holds_core_of(pool) {
        return;
    }
    held_core::with_core(|core| {
        core.searching |= woken == Some(WokenFor::Work);
        core.after_park();
    });
}

/// Takes a short sleep instead of falling asleep, and returns true, if this is the only searcher
/// and it found only cores that keep up with their queues.
fn slept_shortly(pool: &Pool, index: usize) -> bool {
    let is_due = held_core::with_core(|core| {
        let is_due = core.searching && core.keep_up != 0 && !pool.idle.has_other_searchers();
        // A value that the sweep dropped may have placed a task here.
        is_due && !core.has_own_tasks()
    });
    if is_due {
        held_core::with_core(|core| core.before_park());
        keep_up::sleep_shortly(pool, index);
        held_core::with_core(|core| core.after_park());
    }
    is_due
}

#[derive(PartialEq, Eq)]
enum WokenFor {
    /// There is work, or was: the worker counts as searching.
    Work,
    /// Something other than work woke the worker.
    Other,
}

/// Announces the sleep, checks once more for work (W1 to W3 of `idle`), and sleeps until the worker
/// is woken. Also returns the maintenance that is due then, if any.
fn sleep(
    pool: &Pool,
    index: usize,
    was_searching: bool,
    others_keep_up: bool,
    is_wanted: impl Fn() -> bool,
) -> (WokenFor, Option<Maintenance<'_>>) {
    let wanted = || is_wanted() || pool.is_stopping() || arena::held_arena_needs_sweep();
    pool.idle.fall_asleep(index, was_searching);
    // Work that its owners keep up with is left to another searcher, if there is one: that searcher
    // stops by W1 or S1 of `idle` after this, and checks the queues then.
    let left_to_others =
        others_keep_up && (pool.idle.has_searchers() || weakened!("park_leaves_it_to_a_searcher"));
    if !left_to_others
        && pool.has_visible_work()
        && pool.idle.wake_self_for_work(index) == SelfWoken::Awake
    {
        return (WokenFor::Work, None);
    }
    if wanted() && pool.idle.wake_self_not_searching(index) == SelfWoken::Awake {
        return (WokenFor::Other, None);
    }
    let counters = &pool.remotes[index].counters;
    counters.parked.add(1);
    let (woken, reason) = sleep_until_woken(pool, index, wanted);
    counters.unparked.add(1);
    (woken, reason.maintenance())
}

/// Sleeps (W4 of `idle`), again and again, until another thread has woken this worker or it has
/// something to do.
fn sleep_until_woken(
    pool: &Pool,
    index: usize,
    wanted: impl Fn() -> bool,
) -> (WokenFor, WakeReason<'_>) {
    let Remote { parker, poller_usefulness, .. } = &pool.remotes[index];
    let core = SleepingCore { drivers: &pool.drivers, parker, index };
    let mut last_polls = None;
    loop {
        let now = pool.drivers.driver_polls();
        // Leave the driver to the awake workers only as long as one has polled it since last time.
        let spared = poller_usefulness.is_doubtful()
            && !pool.idle.all_sleep()
            && last_polls.replace(now) != Some(now);
        let reason = core.sleep_in(core.choose(spared));
        #[cfg(feature = "net")]
        if let WakeReason::Events(_) = &reason {
            poller_usefulness
                .learn(pool.idle.no_worker_runs() && pool.drivers.any_worker_can_take_events());
        }
        if !pool.idle.is_asleep(index) {
            return (WokenFor::Work, reason);
        }
        // Not reserved: there is maintenance to do, something other than work wants the worker
        // awake, or the token was left over.
        if !matches!(reason, WakeReason::Unparked) || wanted() {
            return (wake_self_now(pool, index), reason);
        }
    }
}

/// Wakes this worker, which must not sleep on, because the token that woke it is consumed.
///
/// Another worker that wakes itself may hold this worker's reservation for a moment and then give
/// it back, so one refusal does not mean that this worker will be unparked.
fn wake_self_now(pool: &Pool, index: usize) -> WokenFor {
    loop {
        if pool.idle.wake_self_not_searching(index) == SelfWoken::Awake {
            return WokenFor::Other;
        }
        if !pool.idle.is_asleep(index) {
            // Another thread has reserved it, and its token comes: one too many does no harm.
            return WokenFor::Work;
        }
        if weakened!("park_insists") {
            pool.remotes[index].parker.park();
        }
        thread::yield_now();
    }
}

/// Where a core sleeps.
#[must_use]
enum SleepIn<'a> {
    /// In the driver, as the poller. The core has the poller's role.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "there is no driver"))]
    Driver(DriverTurn<'a>),
    /// On the core's parker. The core has the poller's role if `is_poller` is true.
    Parker { is_poller: bool },
    /// On the core's parker for at most [`BRIEF_SLEEP`], because no worker is known to be the
    /// poller: an awake worker is polling the driver just now, or is about to, and may get stuck
    /// before it takes the role.
    #[cfg(feature = "net")]
    Briefly,
}

/// The reason why the sleep of a core ended.
#[must_use]
enum WakeReason<'a> {
    /// A token came, or the thread woke spuriously.
    Unparked,
    /// A timer is due.
    #[cfg_attr(not(feature = "time"), allow(dead_code, reason = "there are no timers"))]
    TimerDue,
    /// Events came, and have not been dispatched yet.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "there is no driver"))]
    Events(DriverTurn<'a>),
}

impl<'a> WakeReason<'a> {
    /// Returns the maintenance that is due after such a sleep.
    fn maintenance(self) -> Option<Maintenance<'a>> {
        match self {
            Self::Unparked => None,
            Self::TimerDue => Some(Maintenance::TimerDue),
            Self::Events(turn) => Some(Maintenance::Events(turn)),
        }
    }
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

/// A core that sleeps, or is about to.
struct SleepingCore<'a> {
    drivers: &'a PoolDrivers,
    parker: &'a Parker,
    index: usize,
}

impl<'a> SleepingCore<'a> {
    /// Chooses where to sleep, and takes the poller's role if no other core has it (D1 and
    /// D2 of `poller`). `spared` is true if another worker is about to poll the driver.
    fn choose(&self, spared: bool) -> SleepIn<'a> {
        #[cfg(feature = "net")]
        if let Some(driver) = self.drivers.driver() {
            if spared {
                return SleepIn::Briefly;
            }
            return match driver.try_lock() {
                Some(turn) if !weakened!("poller_takes_role") => {
                    self.drivers.take_role(self.index);
                    SleepIn::Driver(turn)
                }
                Some(_) => SleepIn::Parker { is_poller: false },
                None if self.drivers.poller().is_some() => SleepIn::Parker { is_poller: false },
                None => SleepIn::Briefly,
            };
        }
        let _ = spared;
        let is_poller = self.drivers.has_timers() && self.drivers.try_take_role(self.index);
        SleepIn::Parker { is_poller }
    }

    /// Sleeps once, until a token comes or there is maintenance to do. Gives the poller's role up
    /// afterwards.
    fn sleep_in(&self, sleep_in: SleepIn<'a>) -> WakeReason<'a> {
        match sleep_in {
            #[cfg(feature = "net")]
            SleepIn::Driver(turn) => self.sleep_in_driver(turn),
            SleepIn::Parker { is_poller } => {
                let reason = self.sleep_on_parker(is_poller);
                if is_poller {
                    self.drivers.end_role();
                }
                reason
            }
            #[cfg(feature = "net")]
            SleepIn::Briefly => self.sleep_briefly(),
        }
    }

    #[cfg(feature = "net")]
    fn sleep_in_driver(&self, mut turn: DriverTurn<'a>) -> WakeReason<'a> {
        let limit = self.sleep_limit(true);
        if limit == SleepLimit::Due || !self.parker.begin_sleep_elsewhere() {
            self.drivers.end_role();
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
        let mut events = wait_for_events(&mut turn, timeout);
        if limit == SleepLimit::Advanceable && events == 0 && !self.advance() {
            events = wait_for_events(&mut turn, None);
        }
        let called = self.parker.end_sleep_elsewhere();
        self.drivers.end_role();
        if events > 0 {
            WakeReason::Events(turn)
        } else if called {
            WakeReason::Unparked
        } else {
            WakeReason::TimerDue
        }
    }

    fn sleep_on_parker(&self, is_poller: bool) -> WakeReason<'a> {
        match self.sleep_limit(is_poller) {
            SleepLimit::Some(limit) if self.parker.park_timeout(limit) => WakeReason::Unparked,
            SleepLimit::Some(_) | SleepLimit::Due => WakeReason::TimerDue,
            SleepLimit::Advanceable if self.parker.try_take() => WakeReason::Unparked,
            SleepLimit::Advanceable if self.advance() => WakeReason::TimerDue,
            SleepLimit::Unbounded | SleepLimit::Paused | SleepLimit::Advanceable => {
                self.parker.park();
                WakeReason::Unparked
            }
        }
    }

    #[cfg(feature = "net")]
    #[cold]
    fn sleep_briefly(&self) -> WakeReason<'a> {
        match self.sleep_limit(false) {
            SleepLimit::Due => return WakeReason::TimerDue,
            SleepLimit::Some(limit) if limit < BRIEF_SLEEP => return self.sleep_on_parker(false),
            _ => self.parker.park_timeout(BRIEF_SLEEP),
        };
        WakeReason::Unparked
    }

    /// Returns how long the core may sleep (D3 of `poller`, for the poller).
    #[cfg(feature = "time")]
    fn sleep_limit(&self, is_poller: bool) -> SleepLimit {
        let Some(timers) = self.drivers.timers() else { return SleepLimit::Unbounded };
        let mut until = timers.next(self.index);
        if is_poller {
            until = poller::earlier(until, timers.next(timers.outside()));
            let others = (0..timers.outside()).filter(|&other| other != self.index);
            let late = others.filter_map(|other| timers.next(other)).min();
            until = poller::earlier(until, late.map(|late| late.saturating_add(GRACE_NS)));
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
    fn sleep_limit(&self, _is_poller: bool) -> SleepLimit {
        SleepLimit::Unbounded
    }

    /// Returns true if a paused clock may be moved. A thread that forbade it wakes the workers
    /// concerned before it allows it again, so this must be checked before the token is taken.
    #[cfg(feature = "test-util")]
    fn may_advance(&self) -> bool {
        self.drivers.timers().is_some_and(|timers| timers.clock().can_auto_advance())
    }

    #[cfg(all(feature = "time", not(feature = "test-util")))]
    fn may_advance(&self) -> bool {
        false
    }

    /// Moves a paused clock to the next deadline, if it may be moved. Returns true if a timer was
    /// woken.
    #[cfg(feature = "test-util")]
    fn advance(&self) -> bool {
        self.drivers.timers().is_some_and(|timers| timers.auto_advance() > 0)
    }

    #[cfg(not(feature = "test-util"))]
    fn advance(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    #[cfg(not(blitz_loom))]
    use super::PollerUsefulness;
    use super::{WokenFor, sleep};
    use crate::engine::{
        pool::{Pool, stop::tests::config},
        prim::{Ordering::Release, model, thread},
        work::task::cell::Label,
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

    /// Two workers sleep, and a producer reserves one of them while the pool stops.
    #[test]
    fn a_stop_wakes_every_sleeper_whatever_producers_do() {
        model(|| {
            let pool = Pool::new(config(2, true));
            let sleeper = thread::spawn({
                let pool = pool.clone();
                move || {
                    sleep(&pool, 1, false, false, || false);
                }
            });
            let producer = thread::spawn({
                let pool = pool.clone();
                move || {
                    pool.wake_one();
                }
            });
            // Release: like the store in `stop`.
            pool.stopping.store(true, Release);
            pool.remotes.iter().for_each(|remote| remote.parker.unpark());
            sleep(&pool, 0, false, false, || false);
            sleeper.join().unwrap();
            producer.join().unwrap();
            pool.stop();
        });
    }

    /// Two of three workers sleep, a task comes from outside, then the pool stops: a worker that
    /// woke for work must count as searching, and no other worker may be counted at all.
    fn books_balance(searching_first: bool) {
        let pool = Pool::new(config(3, true));
        let worker = |index: usize| {
            let pool = pool.clone();
            move || {
                let was_searching = searching_first && pool.idle.start_searching();
                u64::from(sleep(&pool, index, was_searching, false, || false).0 == WokenFor::Work)
            }
        };
        let (one, two) = (thread::spawn(worker(0)), thread::spawn(worker(1)));
        let at = Location::caller();
        drop(pool.spawn(async {}, Label::at(at)).unwrap_or_else(|refused| refused.end()));
        // Release: like the store in `stop`.
        pool.stopping.store(true, Release);
        pool.remotes.iter().for_each(|remote| remote.parker.unpark());
        let woken_for_work = one.join().unwrap() + two.join().unwrap();
        pool.idle.assert_all_awake(woken_for_work);
        pool.stop();
    }

    /// Two searchers, of which the second found that the others keep up with their queues, and a
    /// producer: one of the two must come, whichever sleeps first.
    #[test]
    fn work_is_left_to_another_searcher_only_if_there_is_one() {
        model(|| {
            let pool = Pool::new(config(4, true));
            assert!(pool.idle.start_searching() && pool.idle.start_searching());
            let searcher = |index: usize, others_keep_up: bool| {
                let pool = pool.clone();
                move || {
                    if sleep(&pool, index, true, others_keep_up, || false).0 == WokenFor::Work {
                        // Release: like the store in `stop`, so that the other searcher ends, too.
                        pool.stopping.store(true, Release);
                        pool.remotes.iter().for_each(|remote| remote.parker.unpark());
                    }
                }
            };
            let one = thread::spawn(searcher(0, false));
            let two = thread::spawn(searcher(1, true));
            let at = Location::caller();
            drop(pool.spawn(async {}, Label::at(at)).unwrap_or_else(|refused| refused.end()));
            one.join().unwrap();
            two.join().unwrap();
            pool.stop();
        });
    }

    #[test]
    fn the_counts_are_right_after_sleeping() {
        model(|| books_balance(false));
    }

    #[test]
    fn the_counts_are_right_after_searching_and_sleeping() {
        model(|| books_balance(true));
    }
}

#[cfg(all(test, blitz_loom, feature = "net"))]
mod models {
    use super::{PoolDrivers, SleepingCore, WakeReason};
    use crate::engine::{
        driver::Driver,
        prim::{
            Arc, AtomicBool,
            Ordering::{Acquire, Release},
            model,
            parker::Parker,
            thread,
        },
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
            let core = SleepingCore { drivers: &self.drivers, parker: &self.parkers[index], index };
            // Acquire: pairs with the Release below.
            while !self.dispatched.load(Acquire) {
                let reason = core.sleep_in(core.choose(false));
                if let WakeReason::Events(mut turn) = reason {
                    turn.dispatch();
                    // Release: pairs with the Acquire above.
                    self.dispatched.store(true, Release);
                    drop(turn);
                    self.unpark(1 - index);
                }
            }
        }
    }

    /// Worker 0 is unparked, once, wherever it sleeps: before the event, while it is on its way, or
    /// after. If both slept on their parkers, this would be a deadlock.
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
