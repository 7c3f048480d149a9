//! The runtime's clock: nanoseconds since it was made.
//!
//! With the feature `test-util` it can be paused. Then it stands still until somebody
//! advances it; the runtime itself does, to the next timer, when it has nothing else to do
//! and nobody has inhibited that. A clock that was never paused costs one look more.

#[cfg(feature = "test-util")]
use std::time::Duration;
use std::time::Instant;

#[cfg(feature = "test-util")]
use crate::engine::prim::{Mutex, OnceLock, lock};

/// See the module.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    #[cfg(feature = "test-util")]
    test: Pausing,
}

/// What a clock needs to be paused.
#[cfg(feature = "test-util")]
#[derive(Debug)]
struct Pausing {
    allowed: bool,
    /// There once it was paused: from then on the time is that of `state`.
    used: OnceLock<()>,
    state: Mutex<State>,
}

#[cfg(feature = "test-util")]
#[derive(Debug)]
struct State {
    /// The time when it was paused, and what it was advanced by.
    base: Instant,
    /// When it began to run on from there; `None` while it is paused.
    runs_since: Option<Instant>,
    /// Who does not want it to be advanced by the runtime.
    inhibitors: usize,
}

/// Whether any clock of the process was ever paused: [`Instant`]s are asked for without a
/// runtime too, and then nothing else has to be looked at.
#[cfg(feature = "test-util")]
static ANY_PAUSED: OnceLock<()> = OnceLock::new();

/// See [`ANY_PAUSED`].
#[cfg(feature = "test-util")]
#[inline]
pub(crate) fn any_was_paused() -> bool {
    ANY_PAUSED.get().is_some()
}

impl Clock {
    /// A clock that runs. Only the clock of one thread may be paused.
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

    /// The time.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        #[cfg(feature = "test-util")]
        if self.test.used.get().is_some() {
            return lock(&self.test.state).now();
        }
        Instant::now()
    }

    /// The time in nanoseconds since the clock was made.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.ns_of(self.now())
    }

    /// An instant in nanoseconds since the clock was made: zero if it was before, and the
    /// greatest number if it is 584 years away or more.
    #[inline]
    pub(crate) fn ns_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start);
        // Without the wide multiplication that `as_nanos` needs.
        let whole = since.as_secs().checked_mul(1_000_000_000);
        whole.and_then(|ns| ns.checked_add(u64::from(since.subsec_nanos()))).unwrap_or(u64::MAX)
    }

    /// Whether the time stands still.
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

/// The errors are what `time::pause` and its like panic with.
#[cfg(feature = "test-util")]
impl Clock {
    /// Stops the time.
    pub(crate) fn pause(&self) -> Result<(), &'static str> {
        if !self.test.allowed {
            return Err("`time::pause()` requires the `current_thread` Tokio runtime. This is \
                        the default Runtime used by `#[tokio::test]`: make the runtime with \
                        `Builder::new_current_thread`");
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

    /// Lets the time run on.
    pub(crate) fn resume(&self) -> Result<(), &'static str> {
        let mut state = lock(&self.test.state);
        if state.runs_since.is_some() {
            return Err("time is not frozen: call `time::pause` before");
        }
        state.runs_since = Some(Instant::now());
        Ok(())
    }

    /// Moves a time that stands still.
    ///
    /// # Panics
    /// If an `Instant` cannot be as late as that.
    pub(crate) fn advance(&self, duration: Duration) -> Result<(), &'static str> {
        let mut state = lock(&self.test.state);
        if state.runs_since.is_some() {
            return Err("time is not frozen: call `time::pause` before");
        }
        state.base += duration;
        Ok(())
    }

    /// Moves a time that stands still to that one, if it is later.
    pub(super) fn advance_to(&self, ns: u64) {
        let mut state = lock(&self.test.state);
        let Some(target) = self.start.checked_add(Duration::from_nanos(ns)) else { return };
        if state.runs_since.is_none() && target > state.base {
            state.base = target;
        }
    }

    /// From now on the runtime does not advance the time, until as many have allowed it.
    pub(crate) fn inhibit_auto_advance(&self) {
        lock(&self.test.state).inhibitors += 1;
    }

    /// Takes one [`inhibit_auto_advance`](Self::inhibit_auto_advance) back.
    pub(crate) fn allow_auto_advance(&self) {
        lock(&self.test.state).inhibitors -= 1;
    }

    /// Whether the runtime may advance the time: it stands still, and nobody minds.
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
