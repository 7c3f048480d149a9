//! A clock that is read seldom.
//!
//! Reading the time costs 22 ns, half of a small poll. A core keeps the time of
//! its last reading and reads again only when it has polled a few dozen tasks
//! or when the monitor (the thread that watches for stuck tasks, once it is
//! there) has moved its tick in between. So a core knows the time to within a
//! few dozen polls, and to within a tick when polls are slow.

use std::time::Instant;

use super::{AtomicU32, Ordering::Relaxed};

/// Polls between two readings at the most. At 100 ns a poll that is a reading every 3 µs
/// and 0.7 ns a poll; picked, not measured further.
pub(crate) const POLLS_PER_READING: u32 = 32;

/// The tick that a monitor moves; nobody moves it yet.
#[derive(Debug, Default)]
pub(crate) struct Tick(AtomicU32);

impl Tick {
    /// Moves the tick: every core reads its clock after its current poll.
    #[allow(dead_code, reason = "the monitor calls it")]
    pub(crate) fn advance(&self) {
        // Relaxed: a hint to look at the clock; it orders nothing.
        self.0.fetch_add(1, Relaxed);
    }
}

/// One core's coarse time.
#[derive(Debug)]
pub(crate) struct CoarseClock {
    now: Instant,
    seen: u32,
    polls: u32,
}

/// What passed since the last reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) elapsed_ns: u64,
    pub(crate) polls: u32,
}

impl CoarseClock {
    pub(crate) fn new() -> Self {
        Self { now: Instant::now(), seen: 0, polls: 0 }
    }

    /// Counts a poll; says whether it is time for `read`: after `every` polls.
    #[inline]
    pub(crate) fn count(&mut self, tick: &Tick, every: u32) -> bool {
        self.polls += 1;
        // Relaxed: see `Tick::advance`.
        self.polls >= every || tick.0.load(Relaxed) != self.seen
    }

    /// Reads the clock; answers with what passed since the last reading.
    pub(crate) fn read(&mut self, tick: &Tick) -> Reading {
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(self.now).as_nanos();
        let reading =
            Reading { elapsed_ns: u64::try_from(elapsed).unwrap_or(u64::MAX), polls: self.polls };
        self.now = now;
        // Relaxed: see `Tick::advance`.
        self.seen = tick.0.load(Relaxed);
        self.polls = 0;
        reading
    }

    /// Forgets the time that passed asleep, so that it is not taken for work.
    pub(crate) fn restart(&mut self, tick: &Tick) {
        self.read(tick);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{CoarseClock, POLLS_PER_READING, Tick};

    #[test]
    fn the_clock_is_due_after_some_polls_or_at_once_when_the_tick_moves() {
        let tick = Tick::default();
        let mut clock = CoarseClock::new();
        for _ in 1..POLLS_PER_READING {
            assert!(!clock.count(&tick, POLLS_PER_READING));
        }
        assert!(clock.count(&tick, POLLS_PER_READING));
        assert_eq!(clock.read(&tick).polls, POLLS_PER_READING);
        assert!(!clock.count(&tick, POLLS_PER_READING));
        tick.advance();
        assert!(clock.count(&tick, POLLS_PER_READING));
    }
}
