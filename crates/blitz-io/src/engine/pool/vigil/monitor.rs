//! The one thread that watches all cores of the process.
//!
//! It is started by the first poll of a pool that wants to be watched, sleeps without a time-out
//! while nobody is at work, and ends some seconds after the last such pool has. Pools that are watched are
//! on its list from their first poll to their end. The list's lock is held for a whole round:
//! so a pool that has been struck off is not looked at any more, and a pool that is on it has
//! cores that keep it, so the monitor is never the last to let one go.
//!
//! A process that was forked has no monitor, though its memory says so: a pool that begins
//! there gets a new one. The old one's lock may be held by a thread that is not there, so
//! nothing of it is touched.
//!
//! A sandbox that is entered later may forbid the barrier that the protocol needs. Then the
//! monitor says so and ends, and tasks have to cooperate, as they would without it.

use std::{
    ptr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::{Pool, Watched, bell::Bell};
#[cfg(not(blitz_loom))]
use crate::engine::prim::per_process::PerProcess;
use crate::engine::prim::{Mutex, barrier::was_refused, lock, process::Process, thread};

/// Rounds in which nobody was at work, after which the monitor sleeps for ever: a pool that
/// gets a request every few milliseconds does not pay a wake-up for each.
const IDLE_ROUNDS: u32 = 4;

/// How long it stays when there is no pool left: the next one may be about to begin.
const STAYS: Duration = Duration::from_secs(2);

/// How often a system that refuses the thread is asked again, at the most.
const AGAIN: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Monitor {
    process: Process,
    pub(crate) bell: Bell,
    roll: Mutex<Roll>,
}

struct Roll {
    pools: Vec<Weak<Pool>>,
    /// Since when there is none.
    empty: Option<Instant>,
    running: bool,
    refused: Option<Instant>,
}

/// That of this process, once there was need of one.
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

/// Puts the pool on the monitor's list, and starts the monitor if it is not there. If the
/// system refuses, the pool is as it would be without one, and asks again when it next begins
/// to work.
#[cfg(not(blitz_loom))]
#[cold]
pub(super) fn enlist(pool: &Arc<Pool>, watched: &Watched) {
    let monitor = monitor();
    // First: a round takes no lock of those who wait for it.
    let struck_off = lock(&watched.struck_off);
    let mut roll = lock(&monitor.roll);
    if watched.monitor.get().is_some() || *struck_off || pool.is_stopping() {
        return;
    }
    if !roll.running {
        if roll.refused.is_some_and(|refused| refused.elapsed() < AGAIN) {
            return;
        }
        let thread = thread::Builder::new().name("blitz-monitor".to_owned());
        match thread.spawn(move || monitor.live()) {
            Ok(_) => roll.running = true,
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
    // Also if it naps: what it knows of may be looked at seldom.
    monitor.bell.ring();
}

/// Models have threads enough of their own.
#[cfg(blitz_loom)]
pub(super) fn enlist(_: &Arc<Pool>, _: &Watched) {}

impl Pool {
    /// Strikes the pool off the monitor's list: its last core ends.
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
            // It is to come to its end.
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
            // Since the last look, and not since the nap has begun: a process may be stopped in
            // the middle of a round, too.
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
    /// The barrier that was granted at first is refused now: no core can be taken any more.
    #[cold]
    fn give_up(&self) {
        // Nobody is started in this one's place, and nobody rings.
        // Not kept: whoever lets a pool go runs the destructors of users.
        let is_missed = lock(&self.roll).pools.iter().any(|pool| pool.strong_count() > 0);
        if is_missed {
            super::stall::tell_of_blindness();
        }
    }
}

/// What a round over all pools says.
struct Round {
    tick: Duration,
    at_work: bool,
}

/// How long the monitor sleeps between two rounds, at the most.
const LONGEST: Duration = Duration::from_millis(100);

impl Roll {
    fn pools(&self) -> impl Iterator<Item = Arc<Pool>> {
        self.pools.iter().filter_map(Weak::upgrade)
    }

    /// Whether the monitor has something to do: without a pool, to come to its end.
    fn any_at_work(&self) -> bool {
        self.pools.is_empty() || self.pools().any(|pool| pool.is_at_work())
    }

    /// Whether there has been no pool for a while.
    fn is_over(&mut self, now: Instant) -> bool {
        if !self.pools.is_empty() {
            self.empty = None;
            return false;
        }
        now.saturating_duration_since(*self.empty.get_or_insert(now)) >= STAYS
    }

    /// `late`: how much later than it wanted to the monitor is; `None` if it has slept for
    /// ever, and nothing that it knew is worth anything.
    fn round(&self, now: Instant, late: Option<Duration>) -> Round {
        let mut round = Round { tick: LONGEST, at_work: self.pools.is_empty() };
        for pool in self.pools() {
            round.tick = round.tick.min(pool.look(now, late));
            round.at_work |= pool.is_at_work();
        }
        round
    }
}
