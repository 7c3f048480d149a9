//! A clock that is read seldom.
//!
//! Reading the time costs 22 ns, half of a small poll. A core keeps the time of
//! its last reading and reads again only when it has polled a few dozen tasks
//! or when the monitor (the thread that watches for stuck tasks, once it is
//! there) has moved its tick in between. So a core knows the time to within a
//! few dozen polls, and to within a tick when polls are slow.

use std::time::{Duration, Instant};

use super::{AtomicU32, OnceLock, Ordering::Relaxed};

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

/// When this process first asked for the time.
static START: OnceLock<Start> = OnceLock::new();

struct Start {
    instant: Instant,
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    monotonic_ns: u64,
}

fn start() -> &'static Start {
    START.get_or_init(|| Start {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        monotonic_ns: linux::read(libc::CLOCK_MONOTONIC),
        instant: Instant::now(),
    })
}

fn since_start(now: Instant) -> Duration {
    now.saturating_duration_since(start().instant)
}

/// Without the upper bits, and without the wide division that `as_millis` needs.
fn millis(duration: Duration) -> u32 {
    (duration.as_secs() as u32).wrapping_mul(1_000).wrapping_add(duration.subsec_millis())
}

/// How the time is counted that tasks are stamped with: since the process began, and
/// without the upper bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Coarse, and all but free.
    Millis,
    /// Exact, for those who want to know how long tasks wait for a poll.
    Micros,
}

impl Unit {
    /// The time now. Milliseconds are those of the system's coarse clock, which ticks
    /// every few of them and costs a third of the exact one.
    pub(crate) fn now(self) -> u32 {
        match self {
            Self::Millis => coarse_now_ms(),
            Self::Micros => since_start(Instant::now()).as_micros() as u32,
        }
    }

    /// The time between two stamps. One that was made after `now` was read is as old as
    /// nothing, and so nothing is older than half of what can be counted: 24 days, or
    /// 35 minutes in microseconds.
    pub(crate) fn elapsed(self, now: u32, since: u32) -> Duration {
        let elapsed = now.wrapping_sub(since);
        let elapsed = if elapsed > u32::MAX / 2 { 0 } else { u64::from(elapsed) };
        match self {
            Self::Millis => Duration::from_millis(elapsed),
            Self::Micros => Duration::from_micros(elapsed),
        }
    }
}

fn coarse_now_ms() -> u32 {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    {
        let now_ns = linux::read(libc::CLOCK_MONOTONIC_COARSE);
        (now_ns.saturating_sub(start().monotonic_ns) / 1_000_000) as u32
    }
    #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
    millis(since_start(Instant::now()))
}

#[cfg(all(target_os = "linux", not(blitz_loom)))]
mod linux {
    #[inline]
    pub(super) fn read(clock: libc::clockid_t) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes a `timespec` where we have one. It cannot fail:
        // every Linux has these clocks.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
    }
}

/// How far the coarse clock may be behind: its tick is 1 to 10 ms, and a virtual machine
/// whose timekeeping processor was not run for a while adds to that.
#[cfg(all(target_os = "linux", not(blitz_loom), feature = "time"))]
const BEHIND_NS: u64 = 100_000_000;

/// A moment, noted for a quarter of what the time costs; for what is seldom needed.
#[cfg(feature = "time")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    coarse_ns: u64,
    #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
    instant: Instant,
}

#[cfg(feature = "time")]
impl Mark {
    #[inline]
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            coarse_ns: linux::read(libc::CLOCK_MONOTONIC_COARSE),
            #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
            instant: Instant::now(),
        }
    }

    /// A time that is not before that moment, and not after `now`: `now` itself, if not
    /// more than a tenth of a second has passed.
    pub(crate) fn seen_at(self, now: Instant) -> Instant {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let latest = self.coarse_ns.saturating_add(BEHIND_NS);
            let latest = Duration::from_nanos(latest.saturating_sub(start().monotonic_ns));
            start().instant.checked_add(latest).map_or(now, |latest| now.min(latest))
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        now.min(self.instant)
    }
}

/// One core's coarse time.
#[derive(Debug)]
pub(crate) struct CoarseClock {
    now: Instant,
    /// The same as [`Unit::Millis`] counts.
    now_ms: u32,
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
        let now = Instant::now();
        Self { now, now_ms: millis(since_start(now)), seen: 0, polls: 0 }
    }

    /// The time of the last reading, as [`Unit::Millis`] counts.
    #[inline(always)]
    pub(crate) fn now_ms(&self) -> u32 {
        self.now_ms
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
        self.now_ms = millis(since_start(now));
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
    #[cfg(feature = "time")]
    use std::time::{Duration, Instant};

    #[cfg(feature = "time")]
    use super::Mark;
    use super::{CoarseClock, POLLS_PER_READING, Tick};

    #[cfg(feature = "time")]
    #[test]
    fn a_mark_is_never_taken_for_earlier_and_not_for_much_later() {
        let before = Instant::now();
        let mark = Mark::now();
        let after = Instant::now();
        for passed in [0, 1, 99, 100, 101, 5_000, 1_000_000] {
            let now = after + Duration::from_millis(passed);
            let seen = mark.seen_at(now);
            assert!(seen >= before && seen <= now, "{passed} ms");
            assert!(seen <= after + Duration::from_millis(100), "{passed} ms");
        }
    }

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
