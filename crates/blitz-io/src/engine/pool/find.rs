//! What a core runs next.
//!
//! In this order: the intake if it is due, the LIFO slot, the ring, the intake;
//! then, as a searcher, half of somebody's ring, somebody's LIFO slot, and the
//! intake once more. A searcher leaves alone who keeps up with its queue (`watch`).
//!
//! *Due*: a steady local load must not starve what comes from outside, so every
//! so often the intake is asked first: about once in a millisecond, whatever a
//! poll takes. The interval in polls follows from the average duration of a poll,
//! which is measured over a few dozen polls at a time, with shifts.

use super::{Config, core::Core, watch};
use crate::engine::{
    prim::{
        clock::{POLLS_PER_READING, Reading},
        spin_loop,
    },
    work::task::cell::Task,
};

/// How many tasks in a row may come from the LIFO slot before the ring has its
/// turn: two tasks that wake each other must not shut out the rest.
const LIFO_STREAK: u8 = 3;

/// How long something may wait in the intake while cores are busy.
const INTAKE_LATENCY_NS: u64 = 1_000_000;

/// The interval's limits, in polls: the design's.
const INTERVAL: std::ops::RangeInclusive<u32> = 8..=255;

/// Polls slower than this are timed one by one: the reading is then 0.1 %.
const SLOW_POLL_NS: u32 = 32_000;

/// How often a core looks up from its queue.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The average duration of a poll.
    average_ns: u32,
    /// The same without an assumption at the start: zero until something is known.
    mean_ns: u32,
    /// Polls between two looks at the intake.
    interval: u32,
    fixed: bool,
    /// Polls until the next look.
    intake_in: u32,
    /// Time since the last look, as far as the clock was read.
    since_intake_ns: u64,
    /// Polls between two readings of the clock.
    reading_every: u32,
    /// Polls until the end of the worker's tick.
    tick_in: u32,
    tick_polls: u32,
    /// Something ran since the thread last slept.
    ran_since_park: bool,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Self {
        let interval = config.intake_interval.unwrap_or(*INTERVAL.start());
        Self {
            // Nothing is known: assume polls that deserve a look every time.
            average_ns: SLOW_POLL_NS,
            mean_ns: 0,
            interval,
            fixed: config.intake_interval.is_some(),
            intake_in: interval,
            since_intake_ns: 0,
            reading_every: 1,
            tick_in: config.tick_polls,
            tick_polls: config.tick_polls,
            ran_since_park: true,
        }
    }

    /// Takes a reading of the clock into account.
    fn learn(&mut self, reading: Reading) {
        self.since_intake_ns = self.since_intake_ns.saturating_add(reading.elapsed_ns);
        if reading.polls == 0 {
            return;
        }
        let sample = reading.elapsed_ns / u64::from(reading.polls);
        let sample = i64::try_from(sample).unwrap_or(i64::MAX).min(i64::from(u32::MAX));
        self.average_ns = follow(self.average_ns, sample);
        let first = u32::try_from(sample).unwrap_or(u32::MAX).max(1);
        self.mean_ns = if self.mean_ns == 0 { first } else { follow(self.mean_ns, sample) };
        self.reading_every = (SLOW_POLL_NS / self.average_ns).clamp(1, POLLS_PER_READING);
        if !self.fixed {
            let polls = INTAKE_LATENCY_NS / u64::from(self.average_ns);
            let polls = u32::try_from(polls).unwrap_or(u32::MAX);
            self.interval = polls.clamp(*INTERVAL.start(), *INTERVAL.end());
        }
    }

    fn intake_is_due(&self) -> bool {
        self.intake_in == 0 || (!self.fixed && self.since_intake_ns >= INTAKE_LATENCY_NS)
    }

    fn looked_at_intake(&mut self) {
        self.intake_in = self.interval;
        self.since_intake_ns = 0;
    }

    #[cfg(test)]
    pub(crate) fn interval(&self) -> u32 {
        self.interval
    }
}

/// An average with one sample more: α = 3/32, near the design's 0.1, without a
/// division.
#[inline]
fn follow(average: u32, sample: i64) -> u32 {
    let average = i64::from(average);
    let next = average + (((sample - average) * 3) >> 5);
    u32::try_from(next).unwrap_or(0).max(1)
}

/// Looks at the queues before a searcher sleeps. A look with its pause takes 40 to
/// 60 ns here, all of them about as long as falling asleep and being woken.
const LOOKS: u32 = 50;

/// Times in a row that lingering may be in vain before it is given up for a while.
const VAIN: u8 = 4;

/// For so many times of going to sleep.
const GIVEN_UP: u8 = 32;

/// Whether it pays to linger before sleeping: it does where work comes in a steady
/// trickle from outside, and costs processor time where it comes seldom.
#[derive(Debug)]
pub(crate) struct Patience {
    vain: u8,
    rest: u8,
}

impl Patience {
    pub(crate) const fn new() -> Self {
        Self { vain: 0, rest: 0 }
    }

    pub(crate) fn is_left(&mut self) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        true
    }

    pub(crate) fn learn(&mut self, found: bool) {
        self.vain = if found { 0 } else { self.vain + 1 };
        if self.vain >= VAIN {
            // One more try when the rest is over.
            *self = Self { vain: VAIN - 1, rest: GIVEN_UP };
        }
    }
}

impl Core {
    /// The next task that is this core's anyway, or waits in the intake.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Task> {
        if self.pace.intake_is_due() {
            self.pace.looked_at_intake();
            if let Some(task) = self.take_batch() {
                self.count_poll();
                return Some(task);
            }
        }
        let task = self.take_own().or_else(|| self.take_batch())?;
        self.count_poll();
        Some(task)
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
            // It waits its turn behind the others, where thieves can see it.
            self.push_ring(task);
        }
        self.lifo_streak = 0;
        let task = self.ring.pop()?;
        self.counters().popped.add(1);
        Some(task)
    }

    /// A batch from the intake: the first to run, the rest into the ring.
    pub(crate) fn take_batch(&mut self) -> Option<Task> {
        if self.pool.intake.is_empty() {
            return None;
        }
        let wanted = self.pool.intake.batch_size(self.pool.config.workers);
        if !self.pool.config.threaded {
            // Behind what waits already: the order of arrival is kept.
            let Self { pool, fifo, .. } = self;
            let fetched = pool.intake.pop_batch_into(wanted, |batch| {
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
        // Into the ring before the intake says that they are gone: a worker that is
        // about to sleep must see them.
        let (first, moved) = pool.intake.pop_batch_into(wanted.min(room + 1), |mut batch| {
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

    /// As a searcher: what others have too much of.
    pub(crate) fn search(&mut self) -> Option<Task> {
        if !self.searching {
            if !self.pool.idle.start_searching() {
                return None;
            }
            self.searching = true;
        }
        self.keep_up = 0;
        let task = self.steal_half().or_else(|| self.steal_lifo()).or_else(|| self.take_batch())?;
        self.count_poll();
        Some(task)
    }

    /// Before a searcher sleeps: looks a few times more, if that has paid lately.
    ///
    /// While it lingers it counts as searching, so nobody pays for waking it.
    #[cold]
    pub(crate) fn linger(&mut self) -> Option<Task> {
        if !self.searching || self.keep_up != 0 || !self.pool.idle.has_room() {
            return None;
        }
        if !self.patience.is_left() {
            return None;
        }
        let found = (0..LOOKS).any(|_| {
            spin_loop();
            self.pool.has_visible_work()
        });
        self.patience.learn(found);
        if found { self.search() } else { None }
    }

    fn steal_half(&mut self) -> Option<Task> {
        let Self { pool, ring, rng, index, keep_up, .. } = self;
        // A second round if a victim was busy with another thief: it may have more.
        for _ in 0..2 {
            let mut busy = false;
            for victim in victims(rng, pool.remotes.len(), *index) {
                if watch::keeps_up(&pool.remotes[victim]) {
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
            if *keep_up & bit(victim) != 0 {
                continue;
            }
            if let Some(task) = pool.remotes[victim].lifo.take() {
                let counters = &pool.remotes[*index].counters;
                counters.steals.add(1);
                counters.stolen.add(1);
                return Some(task);
            }
        }
        None
    }

    /// Counts a poll towards everything that happens every so many polls.
    #[inline]
    fn count_poll(&mut self) {
        self.counters().polled.add(1);
        self.pace.ran_since_park = true;
        self.pace.intake_in = self.pace.intake_in.saturating_sub(1);
        if self.clock.count(&self.pool.tick, self.pace.reading_every) {
            self.read_clock();
        }
        self.pace.tick_in = self.pace.tick_in.saturating_sub(1);
        self.round_left = self.round_left.saturating_sub(1);
    }

    /// Whether all that was in the ring at the last round has had its turn; then the next
    /// one begins.
    #[cfg(feature = "net")]
    pub(crate) fn begins_round(&mut self) -> bool {
        let begins = self.round_left == 0;
        if begins {
            let waiting = self.fifo.len() + self.pool.intake.len() / self.pool.config.workers;
            self.round_left = self.ring.len() + waiting as u32;
        }
        begins
    }

    fn read_clock(&mut self) {
        let reading = self.clock.read(&self.pool.tick);
        self.counters().busy_ns.add(reading.elapsed_ns);
        self.pace.learn(reading);
        self.since_look_ns = self.since_look_ns.saturating_add(reading.elapsed_ns);
        self.look_is_due |= self.pool.duties.are_due(self.index, self.since_look_ns);
        self.counters().mean_poll_ns.set(u64::from(self.pace.mean_ns));
    }

    /// Whether something waits where nobody but this core looks, or in its ring.
    pub(crate) fn has_own(&self) -> bool {
        !self.fifo.is_empty() || !self.remote().lifo.is_empty() || !self.ring.is_empty()
    }

    /// Brings the figures up to date before the thread sleeps.
    pub(crate) fn before_park(&mut self) {
        self.read_clock();
        if !self.pace.ran_since_park {
            self.counters().idle_wakeups.add(1);
        }
    }

    /// The last that is counted: who was stopped before it slept has been busy, too.
    pub(crate) fn before_end(&mut self) {
        self.read_clock();
    }

    /// The time asleep is nobody's.
    pub(crate) fn after_park(&mut self) {
        self.clock.restart(&self.pool.tick);
        self.since_look_ns = 0;
        self.pace.ran_since_park = false;
    }

    /// Whether it is time to look after driver and timers.
    #[inline]
    pub(crate) fn take_look(&mut self) -> bool {
        std::mem::take(&mut self.look_is_due)
    }

    /// The same, after a poll of a root future: it counts as one towards the clock.
    pub(crate) fn count_root(&mut self) -> bool {
        if self.clock.count(&self.pool.tick, self.pace.reading_every) {
            self.read_clock();
        }
        self.take_look()
    }

    /// Whether a worker's tick has ended, and with it the time to look after what is
    /// not a task.
    #[inline]
    pub(crate) fn take_tick(&mut self) -> bool {
        if self.pace.tick_in > 0 {
            return false;
        }
        self.pace.tick_in = self.pace.tick_polls;
        true
    }
}

/// A core's bit in `Core::keep_up`.
fn bit(core: usize) -> u64 {
    1 << (core % u64::BITS as usize)
}

/// All other cores, from a random one on.
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
    use super::{INTERVAL, Pace, Reading};

    fn pace() -> Pace {
        Pace {
            average_ns: 1_000,
            mean_ns: 0,
            interval: 100,
            fixed: false,
            intake_in: 100,
            since_intake_ns: 0,
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
            pace.learn(Reading { elapsed_ns: 32 * 100, polls: 32 });
        }
        assert_eq!(pace.interval(), *INTERVAL.end());
        for _ in 0..200 {
            pace.learn(Reading { elapsed_ns: 32 * 10_000, polls: 32 });
        }
        assert!((99..=101).contains(&pace.interval()), "{pace:?}");
        for _ in 0..200 {
            pace.learn(Reading { elapsed_ns: 32 * 1_000_000, polls: 32 });
        }
        assert_eq!(pace.interval(), *INTERVAL.start());
    }

    #[test]
    fn slow_polls_make_the_intake_due_by_time() {
        let mut pace = pace();
        assert!(!pace.intake_is_due());
        pace.learn(Reading { elapsed_ns: 2_000_000, polls: 1 });
        assert!(pace.intake_is_due());
        pace.looked_at_intake();
        assert!(!pace.intake_is_due());
    }

    #[test]
    fn absurd_readings_do_no_harm() {
        let mut pace = pace();
        for reading in [
            Reading { elapsed_ns: u64::MAX, polls: 1 },
            Reading { elapsed_ns: 0, polls: 32 },
            Reading { elapsed_ns: u64::MAX, polls: 0 },
        ] {
            for _ in 0..100 {
                pace.learn(reading);
                assert!(INTERVAL.contains(&pace.interval()));
                assert!(pace.reading_every >= 1);
            }
        }
    }
}
