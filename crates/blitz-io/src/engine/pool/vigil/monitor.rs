//! The monitor: one thread that watches all cores of the process.
//!
//! The thread is started by the first poll of a pool that is to be watched, sleeps without a
//! time-out while no watched thread is busy, and ends some seconds after the last such pool. A
//! watched pool is on the monitor's list from its first poll to its end. The list's lock is held
//! for a whole round. So a pool that has been struck off is not examined any more; and a pool that
//! is on the list is kept alive by its cores, so the monitor never drops the last reference to a
//! pool.
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

use super::{Pool, Watched, bell::Bell};
#[cfg(not(blitz_loom))]
use crate::engine::prim::per_process::PerProcess;
use crate::engine::{
    prim::{Mutex, barrier::was_refused, lock, process::Process},
    threads::service,
};

/// Number of rounds without a busy thread after which the monitor sleeps without a time-out. With
/// several rounds, a pool that gets a request every few milliseconds does not pay a wake-up for
/// each.
const IDLE_ROUNDS: u32 = 4;

/// How long the monitor stays when no pool is left, because the next one may be about to begin.
const STAYS: Duration = Duration::from_secs(2);

/// Least time between two attempts to start the thread on a system that refuses it.
const AGAIN: Duration = Duration::from_secs(1);

/// The monitor of the process: its list of pools, and the [`Bell`] that it sleeps on.
pub(crate) struct Monitor {
    process: Process,
    pub(crate) bell: Bell,
    roll: Mutex<Roll>,
}

struct Roll {
    pools: Vec<Weak<Pool>>,
    /// Since when there is no pool.
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
        process: Process::this(),
        bell: Bell::new(),
        roll: Mutex::new(Roll { pools: Vec::new(), empty: None, running: false, refused: None }),
    })
}

/// Puts the pool on the monitor's list, and starts the monitor if it does not run. If the system
/// refuses the thread, the pool runs unwatched, and tries again when it next becomes busy.
#[cfg(not(blitz_loom))]
#[cold]
pub(super) fn enlist(pool: &Arc<Pool>, watched: &Watched) {
    let monitor = monitor();
    // Locked before `roll`: a round holds `roll` and never takes this lock, so it does not
    // deadlock.
    let struck_off = lock(&watched.struck_off);
    let mut roll = lock(&monitor.roll);
    if watched.monitor.get().is_some() || *struck_off || pool.is_stopping() {
        return;
    }
    if !roll.running {
        if roll.refused.is_some_and(|refused| refused.elapsed() < AGAIN) {
            return;
        }
        match service::start("blitz-monitor", move || monitor.live()) {
            Ok(()) => roll.running = true,
            Err(_) => {
                roll.refused = Some(Instant::now());
                return;
            }
        }
    }
    roll.pools.push(Arc::downgrade(pool));
    assert!(watched.monitor.set(monitor).is_ok(), "a pool is on one list, once");
    drop(roll);
    drop(struck_off);
    // Also if the monitor naps: its interval may be too long for this pool.
    monitor.bell.ring();
}

/// Models start no monitor, because they have threads enough of their own.
#[cfg(blitz_loom)]
pub(super) fn enlist(_: &Arc<Pool>, _: &Watched) {}

impl Pool {
    /// Strikes the pool off the monitor's list, when its last core ends.
    pub(in crate::engine::pool) fn strike_off(&self) {
        let Some(watched) = &self.watched else { return };
        let mut struck_off = lock(&watched.struck_off);
        *struck_off = true;
        let monitor = watched.monitor.get();
        let Some(monitor) = monitor.filter(|monitor| monitor.process == Process::this()) else {
            return;
        };
        let mut roll = lock(&monitor.roll);
        let own = ptr::from_ref(self);
        let place = roll.pools.iter().position(|pool| ptr::eq(pool.as_ptr(), own));
        let struck = place.map(|place| roll.pools.swap_remove(place));
        let is_last = roll.pools.is_empty();
        drop(roll);
        drop(struck);
        if is_last {
            // So that the monitor comes to its end.
            monitor.bell.ring();
        }
    }
}

impl Monitor {
    fn live(&self) {
        let mut idle = 0;
        let mut tick = None;
        let mut last = Instant::now();
        loop {
            match tick {
                Some(tick) => self.bell.nap(tick),
                None => {
                    self.bell.sleep(|| lock(&self.roll).any_at_work());
                    idle = 0;
                }
            }
            if was_refused() {
                return self.give_up();
            }
            let now = Instant::now();
            // Measured from the last round, and not from the begin of the nap, because a process
            // may be stopped in the middle of a round too.
            let late = tick.map(|tick| now.saturating_duration_since(last).saturating_sub(tick));
            last = now;
            let round = {
                let mut roll = lock(&self.roll);
                if roll.is_over(now) {
                    roll.running = false;
                    return;
                }
                roll.round(now, late)
            };
            super::stall::retry();
            idle = if round.at_work { 0 } else { idle + 1 };
            tick = (idle < IDLE_ROUNDS).then_some(round.tick);
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
        let is_missed = lock(&self.roll).pools.iter().any(|pool| pool.strong_count() > 0);
        if is_missed {
            super::stall::tell_of_blindness();
        }
    }
}

/// Result of a round over all pools.
struct Round {
    tick: Duration,
    at_work: bool,
}

/// Maximum time between two rounds.
const LONGEST: Duration = Duration::from_millis(100);

impl Roll {
    fn pools(&self) -> impl Iterator<Item = Arc<Pool>> {
        self.pools.iter().filter_map(Weak::upgrade)
    }

    /// Returns true if the monitor has something to do: with no pool left, that is to end.
    fn any_at_work(&self) -> bool {
        self.pools.is_empty() || self.pools().any(|pool| pool.is_at_work())
    }

    /// Returns true if there has been no pool for a while.
    fn is_over(&mut self, now: Instant) -> bool {
        if !self.pools.is_empty() {
            self.empty = None;
            return false;
        }
        now.saturating_duration_since(*self.empty.get_or_insert(now)) >= STAYS
    }

    /// Examines all pools. `late` is how much later than planned the round begins; `None` after a
    /// sleep without a time-out, which makes all earlier measurements worthless.
    fn round(&self, now: Instant, late: Option<Duration>) -> Round {
        let mut round = Round { tick: LONGEST, at_work: self.pools.is_empty() };
        for pool in self.pools() {
            round.tick = round.tick.min(pool.look(now, late));
            round.at_work |= pool.is_at_work();
        }
        round
    }
}
