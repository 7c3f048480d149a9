//! A clock that is read seldom.
//!
//! Reading the time costs 22 ns, half of a small poll. A core keeps the time of its last reading
//! and reads again only when it has polled a few dozen tasks or when the monitor (the thread that
//! watches for stuck tasks) has advanced its [`ScanCount`] in between. So a core knows the time to
//! within a few dozen polls, and to within a scan of the monitor when polls are
//! slow.

use std::time::{Duration, Instant};

use super::{AtomicU32, OnceLock, Ordering::Relaxed};

/// Maximum number of polls between two readings. At 100 ns a poll that is a reading every 3 µs
/// and 0.7 ns a poll; picked, not measured further.
pub(crate) const POLLS_PER_READING: u32 = 32;

/// The number of scans of the monitor, which it advances to make every core read its clock.
#[derive(Debug, Default)]
pub(crate) struct ScanCount(AtomicU32);

impl ScanCount {
    /// Advances the count, so that every core reads its clock after its current poll.
    #[allow(dead_code, reason = "the monitor calls it")]
    pub(crate) fn advance(&self) {
        // Relaxed: a hint to read the clock; it orders nothing.
        self.0.fetch_add(1, Relaxed);
    }
}

/// The time of the first reading in this process; timestamps count from here.
static START: OnceLock<ClockStart> = OnceLock::new();

struct ClockStart {
    instant: Instant,
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    monotonic_ns: u64,
}

fn start() -> &'static ClockStart {
    START.get_or_init(|| ClockStart {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        monotonic_ns: linux::read(libc::CLOCK_MONOTONIC),
        instant: Instant::now(),
    })
}

fn since_start(now: Instant) -> Duration {
    now.saturating_duration_since(start().instant)
}

/// Returns the milliseconds without the upper bits, and without the wide division that
/// `as_millis` needs.
fn millis(duration: Duration) -> u32 {
    (duration.as_secs() as u32).wrapping_mul(1_000).wrapping_add(duration.subsec_millis())
}

/// The unit of the timestamps of tasks, which count from the first reading of the process and
/// drop the upper bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampUnit {
    /// Milliseconds of the coarse clock: imprecise, and almost free.
    Millis,
    /// Microseconds of the exact clock, for runtimes that measure how long tasks wait for a poll.
    Micros,
}

impl TimestampUnit {
    /// Returns the time now. Milliseconds come from the system's coarse clock, which moves every
    /// few milliseconds and costs a third of the exact one.
    pub(crate) fn now(self) -> u32 {
        match self {
            Self::Millis => coarse_now_ms(),
            Self::Micros => since_start(Instant::now()).as_micros() as u32,
        }
    }

    /// Returns the time between two timestamps. A timestamp that was made after `now` was read
    /// counts as zero. So the longest result is half of the range: 24 days, or 35 minutes in
    /// microseconds.
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
        // SAFETY: `time` is a valid `timespec` for the kernel to write. The call cannot fail,
        // because every Linux has these clocks.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
    }
}

/// Bound on the lag of the coarse clock: its step is 1 to 10 ms, and a virtual machine adds to
/// that when its timekeeping processor was not scheduled for a while.
#[cfg(all(target_os = "linux", not(blitz_loom), feature = "time"))]
const MAX_LAG_NS: u64 = 100_000_000;

/// A rough timestamp that costs a quarter of an exact one, for times that are seldom needed.
#[cfg(feature = "time")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoarseInstant {
    #[cfg(all(target_os = "linux", not(blitz_loom)))]
    coarse_ns: u64,
    #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
    instant: Instant,
}

#[cfg(feature = "time")]
impl CoarseInstant {
    /// Returns a rough timestamp of now.
    #[inline]
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(all(target_os = "linux", not(blitz_loom)))]
            coarse_ns: linux::read(libc::CLOCK_MONOTONIC_COARSE),
            #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
            instant: Instant::now(),
        }
    }

    /// Returns a time that is not before this timestamp was made, and not after `now`. On Linux
    /// that is `now` itself if less than about a tenth of a second has passed.
    pub(crate) fn latest_instant(self, now: Instant) -> Instant {
        #[cfg(all(target_os = "linux", not(blitz_loom)))]
        {
            let latest = self.coarse_ns.saturating_add(MAX_LAG_NS);
            let latest = Duration::from_nanos(latest.saturating_sub(start().monotonic_ns));
            start().instant.checked_add(latest).map_or(now, |latest| now.min(latest))
        }
        #[cfg(not(all(target_os = "linux", not(blitz_loom))))]
        now.min(self.instant)
    }
}

/// The coarse time of one core.
#[derive(Debug)]
pub(crate) struct CoarseClock {
    now: Instant,
    /// The time `now` in milliseconds, as [`TimestampUnit::Millis`] counts.
    now_ms: u32,
    /// The scan count at the last reading.
    seen: u32,
    /// Polls since the last reading.
    polls: u32,
}

/// The time and the number of polls between two readings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockReading {
    pub(crate) elapsed_ns: u64,
    pub(crate) polls: u32,
}

impl CoarseClock {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { now, now_ms: millis(since_start(now)), seen: 0, polls: 0 }
    }

    /// Returns the time of the last reading in milliseconds, as [`TimestampUnit::Millis`] counts.
    #[inline(always)]
    pub(crate) fn now_ms(&self) -> u32 {
        self.now_ms
    }

    /// Counts a poll. Returns true when [`read`](Self::read) is due: after `every` polls, or when
    /// the scan count has advanced.
    #[inline]
    pub(crate) fn count(&mut self, scan_count: &ScanCount, every: u32) -> bool {
        self.polls += 1;
        // Relaxed: a hint that orders nothing, as in `ScanCount::advance`.
        self.polls >= every || scan_count.0.load(Relaxed) != self.seen
    }

    /// Reads the clock. Returns the time and the number of polls since the last reading.
    pub(crate) fn read(&mut self, scan_count: &ScanCount) -> ClockReading {
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(self.now).as_nanos();
        let reading = ClockReading {
            elapsed_ns: u64::try_from(elapsed).unwrap_or(u64::MAX),
            polls: self.polls,
        };
        self.now = now;
        self.now_ms = millis(since_start(now));
        // Relaxed: a hint that orders nothing, as in `ScanCount::advance`.
        self.seen = scan_count.0.load(Relaxed);
        self.polls = 0;
        reading
    }

    /// Restarts the measurement after a sleep, so that the time asleep is not counted as work.
    pub(crate) fn restart(&mut self, scan_count: &ScanCount) {
        self.read(scan_count);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    #[cfg(feature = "time")]
    use std::time::{Duration, Instant};

    #[cfg(feature = "time")]
    use super::CoarseInstant;
    use super::{CoarseClock, POLLS_PER_READING, ScanCount};

    #[cfg(feature = "time")]
    #[test]
    fn a_mark_is_never_taken_for_earlier_and_not_for_much_later() {
        let before = Instant::now();
        let mark = CoarseInstant::now();
        let after = Instant::now();
        for passed in [0, 1, 99, 100, 101, 5_000, 1_000_000] {
            let now = after + Duration::from_millis(passed);
            let seen = mark.latest_instant(now);
            assert!(seen >= before && seen <= now, "{passed} ms");
            assert!(seen <= after + Duration::from_millis(100), "{passed} ms");
        }
    }

    #[test]
    fn the_clock_is_due_after_some_polls_or_at_once_when_the_scan_count_moves() {
        let scan_count = ScanCount::default();
        let mut clock = CoarseClock::new();
        for _ in 1..POLLS_PER_READING {
            assert!(!clock.count(&scan_count, POLLS_PER_READING));
        }
        assert!(clock.count(&scan_count, POLLS_PER_READING));
        assert_eq!(clock.read(&scan_count).polls, POLLS_PER_READING);
        assert!(!clock.count(&scan_count, POLLS_PER_READING));
        scan_count.advance();
        assert!(clock.count(&scan_count, POLLS_PER_READING));
    }
}
