//! The runtime's clock: nanoseconds since it was created.
//!
//! With the feature `test-util` it can be paused. Then it stands still until it is advanced; the
//! runtime itself advances it to the next timer when it has nothing else to do, unless that is
//! inhibited. A clock that was never paused costs one additional check.

#[cfg(feature = "test-util")]
use std::time::Duration;
use std::time::Instant;

#[cfg(feature = "test-util")]
use crate::engine::prim::{Mutex, OnceLock, lock};

/// A clock that counts from its creation, and can be paused in tests.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    #[cfg(feature = "test-util")]
    test: Pausing,
}

/// The state that a clock needs to be paused.
#[cfg(feature = "test-util")]
#[derive(Debug)]
struct Pausing {
    allowed: bool,
    /// Initialized once the clock was paused: from then on the time is that of `state`.
    used: OnceLock<()>,
    state: Mutex<State>,
}

#[cfg(feature = "test-util")]
#[derive(Debug)]
struct State {
    /// The time when the clock was paused, plus what it was advanced by.
    base: Instant,
    /// When it began to run on from there; `None` while it is paused.
    runs_since: Option<Instant>,
    /// The number of reasons why the runtime must not advance the clock.
    inhibitors: usize,
}

/// Set once any clock of the process was ever paused. [`Instant`]s are also created without a
/// runtime, and as long as this is unset nothing else has to be checked for them.
#[cfg(feature = "test-util")]
static ANY_PAUSED: OnceLock<()> = OnceLock::new();

/// Returns whether any clock of the process was ever paused.
#[cfg(feature = "test-util")]
#[inline]
pub(crate) fn any_was_paused() -> bool {
    ANY_PAUSED.get().is_some()
}

impl Clock {
    /// Creates a clock that runs. Only the clock of a runtime with a single thread may be paused.
    pub(crate) fn new(may_be_paused: bool) -> Self {
        let start = Instant::now();
        #[cfg(not(feature = "test-util"))]
        let _ = may_be_paused;
        Self {
            start,
            #[cfg(feature = "test-util")]
            test: Pausing {
                allowed: may_be_paused,
                used: OnceLock::new(),
                state: Mutex::new(State { base: start, runs_since: Some(start), inhibitors: 0 }),
            },
        }
    }

    /// Returns the current time.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        #[cfg(feature = "test-util")]
        if self.test.used.get().is_some() {
            return lock(&self.test.state).now();
        }
        Instant::now()
    }

    /// Returns the current time in nanoseconds since the clock was created.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.ns_of(self.now())
    }

    /// Returns an instant in nanoseconds since the clock was created: zero if it was before that,
    /// and `u64::MAX` if it is 584 years away or more.
    #[inline]
    pub(crate) fn ns_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start);
        // This avoids the wide multiplication that `as_nanos` needs.
        let whole = since.as_secs().checked_mul(1_000_000_000);
        whole.and_then(|ns| ns.checked_add(u64::from(since.subsec_nanos()))).unwrap_or(u64::MAX)
    }

    /// Returns whether the clock is paused.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        #[cfg(feature = "test-util")]
        if self.test.used.get().is_some() {
            return lock(&self.test.state).runs_since.is_none();
        }
        false
    }
}

#[cfg(feature = "test-util")]
impl State {
    fn now(&self) -> Instant {
        match self.runs_since {
            Some(since) => self.base + since.elapsed(),
            None => self.base,
        }
    }
}

/// Pausing and advancing, for tests. The errors are the panic messages of `time::pause` and the
/// other functions of its kind.
#[cfg(feature = "test-util")]
impl Clock {
    /// Pauses the clock.
    pub(crate) fn pause(&self) -> Result<(), &'static str> {
        if !self.test.allowed {
            return Err("`time::pause()` requires the `current_thread` Tokio runtime. This is \
                        the default Runtime used by `#[tokio::test]. Make the runtime with \
                        `Builder::new_current_thread`.");
        }
        let mut state = lock(&self.test.state);
        if state.runs_since.is_none() {
            return Err("time is already frozen: call `time::pause` once, and not in a runtime \
                        that was started paused");
        }
        (state.base, state.runs_since) = (state.now(), None);
        ANY_PAUSED.get_or_init(|| ());
        self.test.used.get_or_init(|| ());
        Ok(())
    }

    /// Resumes the clock.
    pub(crate) fn resume(&self) -> Result<(), &'static str> {
        let mut state = lock(&self.test.state);
        if state.runs_since.is_some() {
            return Err("time is not frozen: call `time::pause` before");
        }
        state.runs_since = Some(Instant::now());
        Ok(())
    }

    /// Advances a paused clock by `duration`.
    ///
    /// # Panics
    /// If the new time is too late for an `Instant`.
    pub(crate) fn advance(&self, duration: Duration) -> Result<(), &'static str> {
        let mut state = lock(&self.test.state);
        if state.runs_since.is_some() {
            return Err("time is not frozen: call `time::pause` before");
        }
        state.base += duration;
        Ok(())
    }

    /// Advances a paused clock to that time, if it is later.
    pub(super) fn advance_to(&self, ns: u64) {
        let mut state = lock(&self.test.state);
        let Some(target) = self.start.checked_add(Duration::from_nanos(ns)) else { return };
        if state.runs_since.is_none() && target > state.base {
            state.base = target;
        }
    }

    /// Keeps the runtime from advancing the clock, until it was allowed again as often as it was
    /// inhibited.
    pub(crate) fn inhibit_auto_advance(&self) {
        lock(&self.test.state).inhibitors += 1;
    }

    /// Takes one [`inhibit_auto_advance`](Self::inhibit_auto_advance) back.
    pub(crate) fn allow_auto_advance(&self) {
        lock(&self.test.state).inhibitors -= 1;
    }

    /// Returns whether the runtime may advance the clock: it is paused, and that is not inhibited.
    pub(crate) fn can_auto_advance(&self) -> bool {
        if self.test.used.get().is_none() {
            return false;
        }
        let state = lock(&self.test.state);
        state.runs_since.is_none() && state.inhibitors == 0
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::Clock;

    #[test]
    fn instants_are_counted_from_the_start_and_saturate() {
        let clock = Clock::new(false);
        assert_eq!(clock.ns_of(clock.start), 0);
        assert_eq!(clock.ns_of(clock.start + Duration::from_nanos(16_385)), 16_385);
        if let Some(before) = clock.start.checked_sub(Duration::from_secs(1)) {
            assert_eq!(clock.ns_of(before), 0);
        }
        let years = |count: u64| Duration::from_secs(count * 365 * 86_400);
        if let Some(far) = clock.start.checked_add(years(600)) {
            assert_eq!(clock.ns_of(far), u64::MAX);
        }
        assert!(clock.now_ns() <= clock.ns_of(Instant::now()));
    }

    #[cfg(feature = "test-util")]
    #[test]
    fn a_paused_clock_moves_only_when_it_is_moved() {
        let clock = Clock::new(true);
        assert!(clock.advance(Duration::ZERO).is_err() && clock.resume().is_err());
        clock.pause().unwrap();
        let paused = clock.now();
        assert!(clock.pause().is_err() && clock.is_paused() && clock.can_auto_advance());
        clock.advance(Duration::from_nanos(7)).unwrap();
        assert_eq!(clock.now() - paused, Duration::from_nanos(7));
        clock.advance_to(clock.now_ns() + 5);
        clock.advance_to(0);
        assert_eq!(clock.now() - paused, Duration::from_nanos(12));
        clock.inhibit_auto_advance();
        assert!(!clock.can_auto_advance());
        clock.allow_auto_advance();
        clock.resume().unwrap();
        assert!(clock.now() - paused >= Duration::from_nanos(12) && !clock.is_paused());
    }

    #[cfg(feature = "test-util")]
    #[test]
    fn the_clock_of_many_threads_is_not_paused() {
        assert!(Clock::new(false).pause().is_err());
    }
}
