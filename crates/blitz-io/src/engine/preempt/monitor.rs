//! The monitor: one thread that watches all cores of the process.
//!
//! The thread is started by the first poll of a pool that is to be watched, sleeps without a
//! time-out while no watched thread is busy, and ends some seconds after the last such pool. A
//! watched pool is on the monitor's list from its first poll to its end. The list's lock is held
//! for a whole round. So a pool that has been unregistered is not examined any more; and a pool
//! that is on the list is kept alive by its cores, so the monitor never drops the last reference to
//! a pool.
//!
//! A forked process has no monitor thread, although the memory that it inherited says so: a pool
//! that begins there starts a new one. The lock of the old monitor may be held by a thread that
//! does not exist there, so nothing of the old monitor is touched.
//!
//! A sandbox that is entered later may forbid the barrier that the protocol needs. Then the monitor
//! reports this and ends, and tasks must cooperate, as they would without it.

use std::{
    ptr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::{Pool, WatchedPool, notifier::MonitorNotifier};
#[cfg(not(blitz_loom))]
use crate::engine::prim::per_process::PerProcess;
use crate::engine::{
    prim::{Mutex, barrier::was_refused, lock, process::ProcessIdentity},
    threads::service,
};

/// Number of rounds without a busy thread after which the monitor sleeps without a time-out. With
/// several rounds, a pool that gets a request every few milliseconds does not pay a wake-up for
/// each.
const IDLE_ROUNDS: u32 = 4;

/// How long the monitor stays when no pool is left, because the next one may be about to begin.
const LINGER: Duration = Duration::from_secs(2);

/// Least time between two attempts to start the thread on a system that refuses it.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The monitor of the process: its list of pools, and the [`MonitorNotifier`] that it sleeps on.
pub(crate) struct Monitor {
    process: ProcessIdentity,
    pub(crate) notifier: MonitorNotifier,
    watch_list: Mutex<WatchList>,
}

struct WatchList {
    pools: Vec<Weak<Pool>>,
    /// The time since which the list has been empty; `None` if it is not.
    empty: Option<Instant>,
    running: bool,
    refused: Option<Instant>,
}

/// The monitor of this process, once one was needed.
#[cfg(not(blitz_loom))]
static MONITOR: PerProcess<Monitor> = PerProcess::new();

#[cfg(not(blitz_loom))]
fn monitor() -> &'static Monitor {
    MONITOR.get(|| Monitor {
        process: ProcessIdentity::current(),
        notifier: MonitorNotifier::new(),
        watch_list: Mutex::new(WatchList {
            pools: Vec::new(),
            empty: None,
            running: false,
            refused: None,
        }),
    })
}

/// Puts the pool on the monitor's list, and starts the monitor if it does not run. If the system
/// refuses the thread, the pool runs unwatched, and tries again when it next becomes busy.
#[cfg(not(blitz_loom))]
#[cold]
pub(super) fn register_pool(pool: &Arc<Pool>, watched: &WatchedPool) {
    let monitor = monitor();
    // Locked before `watch_list`: a round holds `watch_list` and never takes this lock, so it does
    // not deadlock.
    let unregistered = lock(&watched.unregistered);
    let mut watch_list = lock(&monitor.watch_list);
    if watched.monitor.get().is_some() || *unregistered || pool.is_stopping() {
        return;
    }
    if !watch_list.running {
        if watch_list.refused.is_some_and(|refused| refused.elapsed() < RETRY_INTERVAL) {
            return;
        }
        match service::start("blitz-monitor", move || monitor.run()) {
            Ok(()) => watch_list.running = true,
            Err(_) => {
                watch_list.refused = Some(Instant::now());
                return;
            }
        }
    }
    watch_list.pools.push(Arc::downgrade(pool));
    assert!(watched.monitor.set(monitor).is_ok(), "a pool is on one list, once");
    drop(watch_list);
    drop(unregistered);
    // Also if the monitor sleeps with a time-out: its interval may be too long for this pool.
    monitor.notifier.notify();
}

/// Models start no monitor, because they have threads enough of their own.
#[cfg(blitz_loom)]
pub(super) fn register_pool(_: &Arc<Pool>, _: &WatchedPool) {}

impl Pool {
    /// Takes the pool off the monitor's list, when its last core ends.
    pub(crate) fn unregister_pool(&self) {
        let Some(watched) = &self.watched else { return };
        let mut unregistered = lock(&watched.unregistered);
        *unregistered = true;
        let monitor = watched.monitor.get();
        let Some(monitor) = monitor.filter(|monitor| monitor.process == ProcessIdentity::current())
        else {
            return;
        };
        let mut watch_list = lock(&monitor.watch_list);
        let own = ptr::from_ref(self);
        let index = watch_list.pools.iter().position(|pool| ptr::eq(pool.as_ptr(), own));
        let removed = index.map(|index| watch_list.pools.swap_remove(index));
        let is_last = watch_list.pools.is_empty();
        drop(watch_list);
        drop(removed);
        if is_last {
            // Wakes the monitor, so that it notices that no pool is left, and ends.
            monitor.notifier.notify();
        }
    }
}

impl Monitor {
    fn run(&self) {
        let mut idle = 0;
        let mut interval = None;
        let mut last = Instant::now();
        loop {
            match interval {
                Some(interval) => self.notifier.sleep_for(interval),
                None => {
                    self.notifier.sleep(|| lock(&self.watch_list).any_needs_watching());
                    idle = 0;
                }
            }
            if was_refused() {
                return self.give_up();
            }
            let now = Instant::now();
            // Measured from the last round, and not from the beginning of the sleep, because a
            // process may be stopped in the middle of a round too.
            let late = interval
                .map(|interval| now.saturating_duration_since(last).saturating_sub(interval));
            last = now;
            let round = {
                let mut watch_list = lock(&self.watch_list);
                if watch_list.is_over(now) {
                    watch_list.running = false;
                    return;
                }
                watch_list.round(now, late)
            };
            super::stall::retry();
            idle = if round.needs_watching { 0 } else { idle + 1 };
            interval = (idle < IDLE_ROUNDS).then_some(round.interval);
        }
    }
}

impl Monitor {
    /// Ends the monitor, because the barrier that was granted at first is refused now: no core can
    /// be taken any more.
    #[cold]
    fn give_up(&self) {
        // `running` stays set, so no monitor is started in place of this one, and none is woken.
        // Pools are not upgraded here, because dropping the last reference to a pool runs user
        // destructors.
        let has_pools = lock(&self.watch_list).pools.iter().any(|pool| pool.strong_count() > 0);
        if has_pools {
            super::stall::report_refused_barrier();
        }
    }
}

/// Result of a round over all pools.
struct Round {
    interval: Duration,
    needs_watching: bool,
}

/// Maximum time between two rounds.
const MAX_INTERVAL: Duration = Duration::from_millis(100);

impl WatchList {
    fn pools(&self) -> impl Iterator<Item = Arc<Pool>> {
        self.pools.iter().filter_map(Weak::upgrade)
    }

    /// Returns true if the monitor has something to do: with no pool left, that is to end.
    fn any_needs_watching(&self) -> bool {
        self.pools.is_empty() || self.pools().any(|pool| pool.needs_watching())
    }

    /// Returns true if there has been no pool for a while.
    fn is_over(&mut self, now: Instant) -> bool {
        if !self.pools.is_empty() {
            self.empty = None;
            return false;
        }
        now.saturating_duration_since(*self.empty.get_or_insert(now)) >= LINGER
    }

    /// Examines all pools. `late` is how much later than planned the round begins; `None` after a
    /// sleep without a time-out, which makes all earlier measurements worthless.
    fn round(&self, now: Instant, late: Option<Duration>) -> Round {
        let mut round = Round { interval: MAX_INTERVAL, needs_watching: self.pools.is_empty() };
        for pool in self.pools() {
            round.interval = round.interval.min(pool.scan(now, late));
            round.needs_watching |= pool.needs_watching();
        }
        round
    }
}
