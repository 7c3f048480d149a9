//! A point in time on the runtime's clock.

use std::{fmt, ops, time::Duration};

use super::context;

/// A point in time on a monotonic clock.
///
/// Wraps `std`'s [`Instant`](std::time::Instant) and converts to and from it. The difference is
/// [`now`](Instant::now): inside a runtime with a paused clock (feature `test-util`) it returns the
/// time at which the clock stands.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, Instant, sleep_until};
///
/// # blitz_io::run(async {
/// let deadline = Instant::now() + Duration::from_millis(2);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    std: std::time::Instant,
}

impl Instant {
    /// Returns the current time.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::Instant;
    ///
    /// let now = Instant::now();
    /// assert!(Instant::now() >= now);
    /// ```
    #[inline]
    pub fn now() -> Instant {
        Self::from_std(context::now())
    }

    /// Creates an instant from `std`'s.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::Instant;
    ///
    /// let std = std::time::Instant::now();
    /// assert_eq!(Instant::from_std(std).into_std(), std);
    /// ```
    #[inline]
    pub fn from_std(std: std::time::Instant) -> Instant {
        Instant { std }
    }

    /// Converts the instant to `std`'s.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::Instant;
    ///
    /// let std: std::time::Instant = Instant::now().into_std();
    /// # let _ = std;
    /// ```
    #[inline]
    pub fn into_std(self) -> std::time::Instant {
        self.std
    }

    /// Returns the time elapsed since `earlier`, or zero if that is later.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// let later = now + Duration::from_secs(1);
    /// assert_eq!(later.duration_since(now), Duration::from_secs(1));
    /// assert_eq!(now.duration_since(later), Duration::ZERO);
    /// ```
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// Returns the time elapsed since `earlier`, or `None` if that is later.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// let later = now + Duration::from_secs(1);
    /// assert_eq!(later.checked_duration_since(now), Some(Duration::from_secs(1)));
    /// assert_eq!(now.checked_duration_since(later), None);
    /// ```
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.std.checked_duration_since(earlier.std)
    }

    /// Returns the time elapsed since `earlier`, or zero if that is later.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// let later = now + Duration::from_secs(1);
    /// assert_eq!(now.saturating_duration_since(later), Duration::ZERO);
    /// ```
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// Returns the time elapsed since this instant, or zero if it is in the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let tomorrow = Instant::now() + Duration::from_secs(86_400);
    /// assert_eq!(tomorrow.elapsed(), Duration::ZERO);
    /// ```
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// Returns the instant `duration` later, or `None` if it cannot be represented.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// assert_eq!(now.checked_add(Duration::ZERO), Some(now));
    /// assert_eq!(now.checked_add(Duration::MAX), None);
    /// ```
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_add(duration).map(Self::from_std)
    }

    /// Returns the instant `duration` earlier, or `None` if it cannot be represented.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant};
    ///
    /// let now = Instant::now();
    /// assert_eq!((now + Duration::from_secs(1)).checked_sub(Duration::from_secs(1)), Some(now));
    /// assert_eq!(now.checked_sub(Duration::MAX), None);
    /// ```
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_sub(duration).map(Self::from_std)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Instant {
        Self::from_std(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> std::time::Instant {
        instant.into_std()
    }
}

impl ops::Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Self::from_std(self.std + duration)
    }
}

impl ops::AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl ops::Sub for Instant {
    type Output = Duration;

    /// Returns the time elapsed since `earlier`, or zero if that is later.
    fn sub(self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }
}

impl ops::Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Self::from_std(self.std - duration)
    }
}

impl ops::SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
