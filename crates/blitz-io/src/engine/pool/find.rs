//! Chooses the task that a core runs next.
//!
//! The order is: the injector (the shared queue) if it is due, the LIFO slot, the ring (the core's
//! run queue), the injector; then, as a searcher, half of another core's ring, another core's LIFO
//! slot, and the injector once more. A searcher does not steal from a core that keeps up with its
//! queue (`keep_up`). A core that expects events first checks whether one other core is behind, and a
//! busy one checks now and then whether one is stuck; neither counts as searching.
//!
//! *Due*: a steady local load must not starve tasks that come from outside, so the injector is
//! checked first about once in a millisecond, or after the poll that lasts longer. The interval in
//! polls follows from the average duration of a poll, which is measured over a few dozen polls at a
//! time, with shifts.

use super::{Config, core::Core, keep_up};
use crate::engine::{
    prim::{
        clock::{ClockReading, POLLS_PER_READING},
        spin_loop,
    },
    work::task::cell::Task,
};

/// Number of tasks in a row that may come from the LIFO slot before the ring has its turn, because
/// two tasks that wake each other must not starve the rest.
const LIFO_STREAK: u8 = 3;

/// The longest time between two checks of the injector, up to the length of one poll. (A task may
/// wait longer, if others are in front of it.)
const INJECTOR_LATENCY_NS: u64 = 1_000_000;

/// The limits of the interval in polls, as docs/design/scheduling.md gives them.
const INTERVAL: std::ops::RangeInclusive<u32> = 8..=255;

/// Polls slower than this are timed one by one, because reading the clock then costs 0.1 %.
const SLOW_POLL_NS: u32 = 32_000;

/// The intervals, in polls, at which a core checks the injector, reads the clock and ends a tick.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The average duration of a poll, which starts with an assumption.
    average_ns: u32,
    /// The average duration of a poll without an assumption at the start: zero until a poll was
    /// measured.
    mean_ns: u32,
    /// Number of polls between two checks of the injector.
    interval: u32,
    fixed: bool,
    /// Number of polls until the next check of the injector.
    injector_in: u32,
    /// Time since the last check of the injector, up to the last reading of the clock.
    since_injector_ns: u64,
    /// Number of polls between two readings of the clock.
    reading_every: u32,
    /// Number of polls until the end of the worker's tick.
    tick_in: u32,
    tick_polls: u32,
    /// True if a task ran since the thread last slept.
    ran_since_park: bool,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Self {
        let interval = config.global_queue_interval.unwrap_or(*INTERVAL.start());
        Self {
            // Nothing is measured yet: assume polls so slow that each is timed.
            average_ns: SLOW_POLL_NS,
            mean_ns: 0,
            interval,
            fixed: config.global_queue_interval.is_some(),
            injector_in: interval,
            since_injector_ns: 0,
            reading_every: 1,
            tick_in: config.tick_polls,
            tick_polls: config.tick_polls,
            // A start without work counts as a wake-up without work, as it does in Tokio.
            ran_since_park: false,
        }
    }

    /// Updates the averages and the intervals with a reading of the clock.
    fn learn(&mut self, reading: ClockReading) {
        self.since_injector_ns = self.since_injector_ns.saturating_add(reading.elapsed_ns);
        if reading.polls == 0 {
            return;
        }
        let sample = reading.elapsed_ns / u64::from(reading.polls);
        let sample = i64::try_from(sample).unwrap_or(i64::MAX).min(i64::from(u32::MAX));
        self.average_ns = moving_average(self.average_ns, sample);
        let first = u32::try_from(sample).unwrap_or(u32::MAX).max(1);
        self.mean_ns = if self.mean_ns == 0 { first } else { moving_average(self.mean_ns, sample) };
        self.reading_every = (SLOW_POLL_NS / self.average_ns).clamp(1, POLLS_PER_READING);
        if !self.fixed {
            let polls = INJECTOR_LATENCY_NS / u64::from(self.average_ns);
            let polls = u32::try_from(polls).unwrap_or(u32::MAX);
            self.interval = polls.clamp(*INTERVAL.start(), *INTERVAL.end());
        }
    }

    fn injector_is_due(&self) -> bool {
        self.injector_in == 0 || (!self.fixed && self.since_injector_ns >= INJECTOR_LATENCY_NS)
    }

    fn injector_was_checked(&mut self) {
        self.injector_in = self.interval;
        self.since_injector_ns = 0;
    }

    #[cfg(test)]
    pub(crate) fn interval(&self) -> u32 {
        self.interval
    }
}

/// Returns the moving average after one more sample: α = 3/32, near the design's 0.1, without a
/// division.
#[inline]
fn moving_average(average: u32, sample: i64) -> u32 {
    let average = i64::from(average);
    let next = average + (((sample - average) * 3) >> 5);
    u32::try_from(next).unwrap_or(0).max(1)
}

/// Number of times that a searcher checks the queues before it sleeps. A check with its pause takes
/// 40 to 60 ns on the machine it was measured on, and all of them about as long as falling asleep
/// and being woken.
const SPINS: u32 = 50;

/// Number of times in a row that spinning may find nothing before it is skipped for a while.
const VAIN_SPINS: u8 = 4;

/// Number of times that a worker goes to sleep without spinning after [`VAIN_SPINS`] failures.
const SKIPPED_SPINS: u8 = 32;

/// Decides whether a worker spins before it sleeps: this pays where work comes in a steady trickle
/// from outside, and costs processor time where it comes seldom.
#[derive(Debug)]
pub(crate) struct SpinPolicy {
    failures: u8,
    skips: u8,
}

impl SpinPolicy {
    pub(crate) const fn new() -> Self {
        Self { failures: 0, skips: 0 }
    }

    pub(crate) fn should_spin(&mut self) -> bool {
        if self.skips > 0 {
            self.skips -= 1;
            return false;
        }
        true
    }

    pub(crate) fn learn(&mut self, found: bool) {
        self.failures = if found { 0 } else { self.failures + 1 };
        if self.failures >= VAIN_SPINS {
            // Allow one more try after the pause.
            *self = Self { failures: VAIN_SPINS - 1, skips: SKIPPED_SPINS };
        }
    }
}

impl Core {
    /// Takes the next task from this core's own queues or from the injector.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Task> {
        if self.pace.injector_is_due() {
            self.pace.injector_was_checked();
            if let Some(task) = self.take_batch() {
                self.count_poll();
                return Some(task);
            }
        }
        let task = self.take_own().or_else(|| self.take_batch())?;
        self.count_poll();
        Some(task)
    }

    /// Takes the first of the tasks that have yielded, unless the root future must run before them.
    pub(crate) fn next_deferred(&mut self, root_is_woken: bool) -> Option<Task> {
        if root_is_woken || self.deferred.is_empty() {
            return None;
        }
        self.undefer();
        self.next()
    }

    /// Queues the tasks that have yielded behind all others.
    pub(crate) fn undefer(&mut self) {
        self.fifo.append(std::mem::take(&mut self.deferred));
    }

    #[inline]
    fn take_own(&mut self) -> Option<Task> {
        if !self.pool.config.threaded {
            return self.fifo.pop_front();
        }
        if self.lifo_streak < LIFO_STREAK {
            if let Some(task) = self.remote().lifo.take() {
                self.lifo_streak += 1;
                self.counters().lifo_hits.add(1);
                return Some(task);
            }
        } else if let Some(task) = self.remote().lifo.take() {
            // The task waits for its turn behind the others, where thieves can see it.
            self.push_ring(task);
        }
        self.lifo_streak = 0;
        let task = self.ring.pop()?;
        self.counters().popped.add(1);
        Some(task)
    }

    /// Takes a batch from the injector: returns the first task, and puts the rest into the ring.
    pub(crate) fn take_batch(&mut self) -> Option<Task> {
        if self.pool.injector.is_empty() {
            return None;
        }
        let wanted = self.pool.injector.batch_size(self.pool.config.workers);
        if !self.pool.config.threaded {
            // Append the batch behind the tasks that wait already, so the order of arrival is kept.
            let Self { pool, fifo, .. } = self;
            let fetched = pool.injector.pop_batch_into(wanted, |batch| {
                let count = batch.len();
                fifo.append(batch);
                count
            });
            self.counters().fetched.add(fetched as u64);
            self.counters().batch_fetches.add(1);
            return self.fifo.pop_front();
        }
        let room = self.ring.room() as usize;
        let Self { pool, ring, .. } = self;
        // The tasks must be in the ring before the injector says that they are gone, because a
        // worker that is about to sleep must see them.
        let (first, moved) = pool.injector.pop_batch_into(wanted.min(room + 1), |mut batch| {
            let first = batch.pop_front();
            let moved = ring.push_chain(&mut batch);
            debug_assert!(batch.is_empty(), "the batch was cut to fit");
            (first, moved)
        });
        let first = first?;
        self.counters().pushed.add(u64::from(moved));
        self.counters().batch_fetches.add(1);
        Some(first)
    }

    /// Steals a task as a searcher: from other rings, then LIFO slots, then from the injector.
    pub(crate) fn search(&mut self) -> Option<Task> {
        if !self.searching {
            if !self.pool.idle.start_searching() {
                return None;
            }
            self.searching = true;
            // The time of the search must not count towards the average poll, by which other
            // searchers decide whether to steal from this core.
            self.read_clock();
        }
        self.keep_up = 0;
        let task = self.steal_half().or_else(|| self.steal_lifo()).or_else(|| self.take_batch())?;
        self.count_poll();
        Some(task)
    }

    /// Steals from one other core that is behind or stuck. A core that has run out of tasks and
    /// expects events calls this before it polls the driver. It need not count as searching.
    pub(crate) fn steal_if_behind(&mut self) -> Option<Task> {
        let victim = self.suspected_core()?;
        let is_stuck = self.stuck_ns(victim).is_some();
        if !is_stuck && !keep_up::is_behind(&self.pool.remotes[victim]) {
            return None;
        }
        let task = self.steal_from(victim, is_stuck)?;
        if !self.ring.is_empty() {
            self.wake_worker();
        }
        self.count_poll();
        Some(task)
    }

    /// Steals from one other core if that is stuck. A core that is busy calls this between two
    /// tasks. What it steals goes behind its own tasks, so it steals only if those take less time
    /// than the other core has been stuck for.
    #[inline]
    pub(crate) fn relieve_stuck_core(&mut self) {
        let now_ns = self.counters().busy_ns.get();
        if self.suspect.is_due(now_ns) {
            self.relieve_if_stuck();
        }
    }

    #[cold]
    fn relieve_if_stuck(&mut self) {
        let Some(victim) = self.suspected_core() else { return };
        if self.stuck_ns(victim).is_some_and(|stuck_ns| self.queued_ns() < stuck_ns)
            && let Some(task) = self.steal_from(victim, true)
        {
            self.push_ring(task);
            self.wake_worker();
        }
    }

    /// Returns the core to check: the one that had tasks at the last check, or any other. Returns
    /// `None` if there is no other core.
    fn suspected_core(&mut self) -> Option<usize> {
        let Self { pool, rng, index, suspect, .. } = self;
        Some(suspect.or(victims(rng, pool.remotes.len(), *index).next()?))
    }

    fn stuck_ns(&mut self, victim: usize) -> Option<u64> {
        let now_ns = self.counters().busy_ns.get();
        self.suspect.stuck_ns(victim, &self.pool.remotes[victim], now_ns)
    }

    /// Steals half of a core's ring, or else the task in its LIFO slot if that is permitted. Returns
    /// the first; the others are in this core's ring.
    #[cold]
    fn steal_from(&mut self, victim: usize, with_lifo: bool) -> Option<Task> {
        let Self { pool, ring, index, .. } = self;
        let remote = &pool.remotes[victim];
        let stolen = remote.thief.steal_half_into(ring);
        let lifo = || if with_lifo { remote.lifo.take() } else { None };
        let task = stolen.first.or_else(lifo)?;
        let counters = &pool.remotes[*index].counters;
        counters.steals.add(1);
        counters.stolen.add(u64::from(stolen.moved) + 1);
        Some(task)
    }

    /// Returns the time that the tasks in this core's queue will take, by its average poll.
    fn queued_ns(&self) -> u64 {
        let queued = u64::from(self.ring.len()).saturating_add(self.fifo.len() as u64);
        queued.saturating_mul(u64::from(self.pace.mean_ns))
    }

    /// Checks the queues for some microseconds more before a searcher sleeps, if that has paid
    /// lately.
    ///
    /// A worker counts as searching while it spins, so no producer pays for waking it.
    #[cold]
    pub(crate) fn spin_before_sleep(&mut self) -> Option<Task> {
        if !self.searching || self.keep_up != 0 || !self.pool.idle.has_room() {
            return None;
        }
        if !self.spin_policy.should_spin() {
            return None;
        }
        let found = (0..SPINS).any(|_| {
            spin_loop();
            self.pool.has_visible_work()
        });
        self.spin_policy.learn(found);
        if found { self.search() } else { None }
    }

    fn steal_half(&mut self) -> Option<Task> {
        let Self { pool, ring, rng, index, keep_up, .. } = self;
        // Do a second round if a victim was busy with another thief, because it may have more.
        for _ in 0..2 {
            let mut busy = false;
            for victim in victims(rng, pool.remotes.len(), *index) {
                if keep_up::keeps_up(&pool.remotes[victim]) {
                    *keep_up |= bit(victim);
                    continue;
                }
                let stolen = pool.remotes[victim].thief.steal_half_into(ring);
                busy |= stolen.busy;
                if let Some(task) = stolen.first {
                    let counters = &pool.remotes[*index].counters;
                    counters.steals.add(1);
                    counters.stolen.add(u64::from(stolen.moved) + 1);
                    return Some(task);
                }
            }
            if !busy {
                break;
            }
        }
        None
    }

    fn steal_lifo(&mut self) -> Option<Task> {
        let Self { pool, rng, index, keep_up, .. } = self;
        for victim in victims(rng, pool.remotes.len(), *index) {
            let remote = &pool.remotes[victim];
            if is_skipped(*keep_up, victim, pool.remotes.len(), || remote.thief.is_empty()) {
                continue;
            }
            if let Some(task) = remote.lifo.take() {
                let counters = &pool.remotes[*index].counters;
                counters.steals.add(1);
                counters.stolen.add(1);
                return Some(task);
            }
        }
        None
    }

    /// Counts a poll towards everything that happens once in a number of polls.
    #[inline]
    fn count_poll(&mut self) {
        self.counters().polled.add(1);
        self.pace.ran_since_park = true;
        self.pace.injector_in = self.pace.injector_in.saturating_sub(1);
        if self.clock.count(&self.pool.scan_count, self.pace.reading_every) {
            self.read_clock();
        }
        self.pace.tick_in = self.pace.tick_in.saturating_sub(1);
    }

    fn read_clock(&mut self) {
        let reading = self.clock.read(&self.pool.scan_count);
        self.counters().busy_ns.add(reading.elapsed_ns);
        self.pace.learn(reading);
        self.since_maintenance_ns = self.since_maintenance_ns.saturating_add(reading.elapsed_ns);
        self.maintenance_is_due |= self.pool.drivers.is_maintenance_due(
            self.index,
            self.since_maintenance_ns,
            self.queued_ns(),
        );
        self.counters().mean_poll_ns.set(u64::from(self.pace.mean_ns));
    }

    /// Returns true if a task waits in the ring, or in a queue that only this core reads.
    pub(crate) fn has_own_tasks(&self) -> bool {
        !self.fifo.is_empty()
            || !self.deferred.is_empty()
            || !self.remote().lifo.is_empty()
            || !self.ring.is_empty()
    }

    /// Brings the counters up to date before the thread sleeps.
    pub(crate) fn before_park(&mut self) {
        self.read_clock();
        if !self.pace.ran_since_park {
            self.counters().idle_wakeups.add(1);
        }
    }

    /// Brings the counters up to date for the last time: a core that is stopped before it slept was
    /// busy until now.
    pub(crate) fn before_end(&mut self) {
        self.read_clock();
    }

    /// Restarts the clock after the thread slept, because the time asleep counts towards no poll.
    pub(crate) fn after_park(&mut self) {
        self.clock.restart(&self.pool.scan_count);
        self.since_maintenance_ns = 0;
        self.pace.ran_since_park = false;
    }

    /// Returns true, once, if it is time to poll the I/O driver and fire timers.
    #[inline]
    pub(crate) fn take_maintenance_due(&mut self) -> bool {
        std::mem::take(&mut self.maintenance_is_due)
    }

    /// Counts a poll of a root future towards the clock, and returns true, once, if it is time to
    /// poll the I/O driver and fire timers.
    pub(crate) fn count_root_poll(&mut self) -> bool {
        if self.clock.count(&self.pool.scan_count, self.pace.reading_every) {
            self.read_clock();
        }
        self.take_maintenance_due()
    }

    /// Returns true if a worker's tick has ended, when the worker must take back the task cells
    /// that other threads have returned. The driver and the timers go by the clock instead.
    #[inline]
    pub(crate) fn take_tick(&mut self) -> bool {
        if self.pace.tick_in > 0 {
            return false;
        }
        self.pace.tick_in = self.pace.tick_polls;
        true
    }
}

/// Returns the bit of a core in `Core::keep_up`.
fn bit(core: usize) -> u64 {
    1 << (core % u64::BITS as usize)
}

/// Returns true if a searcher does not steal from the LIFO slot of a core because that core keeps
/// up.
///
/// Cores beyond the 64th share bits, so a set bit may belong to another core. A core that keeps up
/// was seen with something in its ring. So where bits are shared, a core with an empty ring is not
/// skipped: it may be stuck in a poll, and no searcher would check its slot for as long as the
/// other core keeps up.
fn is_skipped(
    keep_up: u64,
    victim: usize,
    cores: usize,
    ring_is_empty: impl FnOnce() -> bool,
) -> bool {
    keep_up & bit(victim) != 0 && (cores <= u64::BITS as usize || !ring_is_empty())
}

/// Iterates over all other cores, starting at a random one.
fn victims(
    rng: &mut crate::engine::prim::rng::Rng,
    cores: usize,
    own: usize,
) -> impl Iterator<Item = usize> + use<> {
    let start = rng.below(cores as u32) as usize;
    (start..cores).chain(0..start).filter(move |&victim| victim != own)
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{ClockReading, INTERVAL, Pace, bit, is_skipped};

    #[test]
    fn a_core_that_shares_its_bit_is_not_taken_for_the_other() {
        let keep_up = bit(1);
        for cores in [2, 64] {
            assert!(is_skipped(keep_up, 1, cores, || unreachable!("no bit is shared")));
            assert!(!is_skipped(keep_up, 0, cores, || unreachable!("its bit is clear")));
        }
        for cores in [65, 66, 256] {
            assert!(is_skipped(keep_up, 1, cores, || false));
            assert!(!is_skipped(keep_up, 65, cores, || true), "it may be stuck");
            assert!(!is_skipped(keep_up, 64, cores, || unreachable!("its bit is clear")));
        }
    }

    fn pace() -> Pace {
        Pace {
            average_ns: 1_000,
            mean_ns: 0,
            interval: 100,
            fixed: false,
            injector_in: 100,
            since_injector_ns: 0,
            reading_every: 32,
            tick_in: 128,
            tick_polls: 128,
            ran_since_park: true,
        }
    }

    #[test]
    fn short_polls_make_the_interval_long_and_long_ones_short() {
        let mut pace = pace();
        for _ in 0..200 {
            pace.learn(ClockReading { elapsed_ns: 32 * 100, polls: 32 });
        }
        assert_eq!(pace.interval(), *INTERVAL.end());
        for _ in 0..200 {
            pace.learn(ClockReading { elapsed_ns: 32 * 10_000, polls: 32 });
        }
        assert!((99..=101).contains(&pace.interval()), "{pace:?}");
        for _ in 0..200 {
            pace.learn(ClockReading { elapsed_ns: 32 * 1_000_000, polls: 32 });
        }
        assert_eq!(pace.interval(), *INTERVAL.start());
    }

    #[test]
    fn slow_polls_make_the_injector_due_by_time() {
        let mut pace = pace();
        assert!(!pace.injector_is_due());
        pace.learn(ClockReading { elapsed_ns: 2_000_000, polls: 1 });
        assert!(pace.injector_is_due());
        pace.injector_was_checked();
        assert!(!pace.injector_is_due());
    }

    #[test]
    fn absurd_readings_do_no_harm() {
        let mut pace = pace();
        for reading in [
            ClockReading { elapsed_ns: u64::MAX, polls: 1 },
            ClockReading { elapsed_ns: 0, polls: 32 },
            ClockReading { elapsed_ns: u64::MAX, polls: 0 },
        ] {
            for _ in 0..100 {
                pace.learn(reading);
                assert!(INTERVAL.contains(&pace.interval()));
                assert!(pace.reading_every >= 1);
            }
        }
    }
}
