//! One tick after the other.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{Duration, Instant, Sleep, at_most_30_years, sleep_until};

/// A tick that is not later than this was not missed: timers are never exact. Tokio's
/// figure, which its users know.
const LATE: Duration = Duration::from_millis(5);

/// Ticks with so much time in between, the first one at once.
///
/// The time between two ticks counts from tick to tick, whatever is done in between; after
/// a [`sleep`](super::sleep) in a loop it would come on top. Ticks that were missed are
/// made up for as [`MissedTickBehavior`] says: all at once, unless told otherwise.
///
/// # Panics
///
/// If `period` is zero, if there is no runtime on this thread, or it was built without
/// [`enable_time`](crate::runtime::Builder::enable_time).
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

/// Ticks with so much time in between, the first one at `start`; otherwise as [`interval`].
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

/// What an [`Interval`] does when a tick was missed: nobody asked for it until it was more
/// than 5 ms late.
///
/// With a tick every 100 ms, and nobody there from 120 to 270:
///
/// | | ticks at |
/// |---|---|
/// | `Burst` | 0, 100, 270 (for 200), 300, 400, … |
/// | `Delay` | 0, 100, 270 (for 200), 370, 470, … |
/// | `Skip` | 0, 100, 270 (for 200), 300, 400, … |
///
/// and from 120 to 370, where `Burst` makes up for two:
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
    /// Missed ticks come one after the other without waiting, until all are made up for.
    #[default]
    Burst,
    /// Ticks are counted anew, from the one that was late.
    Delay,
    /// Missed ticks are left out; the next one is when it would have been anyway.
    Skip,
}

impl MissedTickBehavior {
    /// The tick after the one that was to be at `tick`, and was missed until `now`.
    pub(super) fn after(self, tick: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => tick + period,
            Self::Delay => now + period,
            Self::Skip => {
                let into_period = (now - tick).as_nanos() % period.as_nanos();
                // A period is at most 30 years, so what is left of one fits.
                let into_period = u64::try_from(into_period).unwrap_or(u64::MAX);
                now + (period - Duration::from_nanos(into_period))
            }
        }
    }
}

/// Ticks, returned by [`interval`] and [`interval_at`].
///
/// Dropping it ends them.
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
    /// Until the next tick.
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

impl Interval {
    fn new(delay: Sleep, period: Duration) -> Self {
        let missed = MissedTickBehavior::default();
        Self { delay: Box::pin(delay), period: at_most_30_years(period), missed }
    }

    /// Waits for the next tick; answers when that was to be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no tick.
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

    /// As [`tick`](Self::tick), for those who poll by hand. Only a poll that is pending sees
    /// to it that the task is woken.
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
        // Armed when it is polled again: nobody waits for it before.
        self.delay.as_mut().reset_unarmed(next);
        Poll::Ready(tick)
    }

    /// The next tick is one period from now; what was missed is forgotten.
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

    /// The next tick is now, and the others follow from there.
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

    /// The next tick is so much from now, and the others follow from there.
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

    /// The next tick is at that time, and the others follow from there. If it is over, it
    /// was missed.
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

    /// What it does when a tick was missed.
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

    /// Says what to do when a tick was missed.
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

    /// The time from tick to tick.
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
