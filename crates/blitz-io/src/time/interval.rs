//! A sequence of ticks at a fixed period.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{Duration, Instant, Sleep, at_most_30_years, sleep_until};

/// Lateness up to which a tick does not count as missed, because timers are never exact. The
/// value is Tokio's, which its users know.
const LATE: Duration = Duration::from_millis(5);

/// Creates an interval that ticks every `period`, for the first time at once.
///
/// The period counts from tick to tick, whatever the task does in between; with a
/// [`sleep`](super::sleep) in a loop, the time of the work would be added. Missed ticks are
/// handled according to [`MissedTickBehavior`]; by default they follow in a burst.
///
/// # Panics
///
/// Panics if `period` is zero, if there is no current runtime on this thread, or if it was
/// built without [`enable_time`](crate::runtime::Builder::enable_time).
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration, Instant};
///
/// # blitz_io::run(async {
/// let start = Instant::now();
/// let mut interval = time::interval(Duration::from_millis(2));
/// interval.tick().await;
/// interval.tick().await;
/// interval.tick().await;
/// assert!(start.elapsed() >= Duration::from_millis(4));
/// # });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "{ZERO}");
    Interval::new(sleep_until(Instant::now()), period)
}

/// Creates an interval that ticks every `period`, for the first time at `start`.
///
/// Behaves like [`interval`] otherwise.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, Instant, interval_at};
///
/// # blitz_io::run(async {
/// let start = Instant::now() + Duration::from_millis(3);
/// let mut interval = interval_at(start, Duration::from_millis(2));
/// assert_eq!(interval.tick().await, start);
/// assert!(Instant::now() >= start);
/// assert_eq!(interval.tick().await, start + Duration::from_millis(2));
/// # });
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "{ZERO}");
    Interval::new(sleep_until(start), period)
}

const ZERO: &str = "`period` must be non-zero. For something that is always ready, use no timer";

/// Behavior of an [`Interval`] when a tick was missed: it was polled more than 5 ms late.
///
/// With a period of 100 ms, if the interval is not polled from 120 to 270:
///
/// | | ticks at |
/// |---|---|
/// | `Burst` | 0, 100, 270 (for 200), 300, 400, … |
/// | `Delay` | 0, 100, 270 (for 200), 370, 470, … |
/// | `Skip` | 0, 100, 270 (for 200), 300, 400, … |
///
/// and if it is not polled from 120 to 370, where `Burst` catches up on two ticks:
///
/// | | ticks at |
/// |---|---|
/// | `Burst` | 0, 100, 370 (for 200), 370 (for 300), 400, 500, … |
/// | `Delay` | 0, 100, 370 (for 200), 470, 570, … |
/// | `Skip` | 0, 100, 370 (for 200), 400, 500, … |
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration, MissedTickBehavior};
///
/// # blitz_io::run(async {
/// let mut interval = time::interval(Duration::from_millis(50));
/// interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// interval.tick().await;
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// Missed ticks follow one another without waiting, until all were delivered.
    #[default]
    Burst,
    /// The period starts anew at the late tick.
    Delay,
    /// Missed ticks are skipped; the next tick is due when it would have been anyway.
    Skip,
}

impl MissedTickBehavior {
    /// Returns the tick that follows the one due at `tick`, which was missed until `now`.
    pub(super) fn after(self, tick: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => tick + period,
            Self::Delay => now + period,
            Self::Skip => {
                let into_period = (now - tick).as_nanos() % period.as_nanos();
                // A period is at most 30 years, so the remainder in nanoseconds fits.
                let into_period = u64::try_from(into_period).unwrap_or(u64::MAX);
                now + (period - Duration::from_nanos(into_period))
            }
        }
    }
}

/// Sequence of ticks, created by [`interval`] and [`interval_at`].
///
/// Dropping it cancels its timer.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{self, Duration};
///
/// # blitz_io::run(async {
/// let mut interval = time::interval(Duration::from_millis(1));
/// let first = interval.tick().await;
/// let second = interval.tick().await;
/// assert_eq!(second - first, Duration::from_millis(1));
/// # });
/// ```
#[derive(Debug)]
pub struct Interval {
    /// The sleep until the next tick.
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

impl Interval {
    fn new(delay: Sleep, period: Duration) -> Self {
        let missed = MissedTickBehavior::default();
        Self { delay: Box::pin(delay), period: at_most_30_years(period), missed }
    }

    /// Waits for the next tick and returns the time at which it was due.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no tick.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_millis(1));
    /// for _ in 0..3 {
    ///     interval.tick().await;
    /// }
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick, like [`tick`](Self::tick).
    ///
    /// The task is woken for the next tick only if this returned [`Poll::Pending`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_secs(3600));
    /// std::future::poll_fn(|cx| interval.poll_tick(cx)).await;
    /// # });
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(cx));
        let (tick, now) = (self.delay.deadline(), Instant::now());
        let next = if now > tick + LATE {
            self.missed.after(tick, now, self.period)
        } else {
            tick + self.period
        };
        // Armed when it is polled again, because no task waits for it before.
        self.delay.as_mut().reset_unarmed(next);
        Poll::Ready(tick)
    }

    /// Resets the interval: the next tick is one period from now, and missed ticks are dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration, Instant};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_millis(2));
    /// let start = Instant::now();
    /// interval.reset();
    /// assert!(interval.tick().await - start >= Duration::from_millis(2));
    /// # });
    /// ```
    pub fn reset(&mut self) {
        self.delay.as_mut().reset(Instant::now() + self.period);
    }

    /// Resets the interval to tick immediately; the following ticks count from now.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_secs(3600));
    /// interval.tick().await;
    /// interval.reset_immediately();
    /// interval.tick().await;
    /// # });
    /// ```
    pub fn reset_immediately(&mut self) {
        self.delay.as_mut().reset(Instant::now());
    }

    /// Resets the interval to tick after `after`; the following ticks count from then.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_secs(3600));
    /// interval.tick().await;
    /// interval.reset_after(Duration::from_millis(1));
    /// interval.tick().await;
    /// # });
    /// ```
    pub fn reset_after(&mut self, after: Duration) {
        self.delay.as_mut().reset(Instant::now() + at_most_30_years(after));
    }

    /// Resets the interval to tick at `deadline`; the following ticks count from then.
    ///
    /// A tick at a deadline in the past counts as missed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration, Instant};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_secs(3600));
    /// let at = Instant::now() + Duration::from_millis(1);
    /// interval.reset_at(at);
    /// assert_eq!(interval.tick().await, at);
    /// # });
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// Returns how the interval handles missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration, MissedTickBehavior};
    ///
    /// # blitz_io::run(async {
    /// let interval = time::interval(Duration::from_secs(1));
    /// assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// # });
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets how the interval handles missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration, MissedTickBehavior};
    ///
    /// # blitz_io::run(async {
    /// let mut interval = time::interval(Duration::from_secs(1));
    /// interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    /// assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Delay);
    /// # });
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// Returns the period of the interval.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{self, Duration};
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(time::interval(Duration::from_secs(1)).period(), Duration::from_secs(1));
    /// # });
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }
}
