//! hyper's clock and its sleeps.

#![forbid(unsafe_code)]

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use blitz_io::time::{self, Instant};
use hyper::rt::{Sleep, Timer};

/// A timer for hyper that uses the clock of the runtime.
///
/// Without a timer hyper has no time-outs: pass one to the builder of a connection.
///
/// # Panics
///
/// Sleeping outside of a runtime, or in one without time, panics as [`blitz_io::time::sleep`] does.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use blitz_io_compat::HyperTimer;
/// use hyper::rt::Timer;
///
/// # blitz_io::run(async {
/// let timer = HyperTimer::new();
/// let start = timer.now();
/// timer.sleep(Duration::from_millis(5)).await;
/// assert!(timer.now() - start >= Duration::from_millis(5));
///
/// // In a server:
/// let mut http = hyper::server::conn::http1::Builder::new();
/// http.timer(timer).header_read_timeout(Duration::from_secs(30));
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HyperTimer;

impl HyperTimer {
    /// Creates the timer, which has no state.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io_compat::HyperTimer;
    ///
    /// assert_eq!(HyperTimer::new(), HyperTimer::default());
    /// ```
    #[inline]
    pub fn new() -> Self {
        Self
    }
}

impl Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep { inner: time::sleep(duration) })
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep { inner: time::sleep_until(Instant::from_std(deadline)) })
    }

    fn now(&self) -> std::time::Instant {
        // Not std's clock, because the clock of the runtime may be paused.
        Instant::now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: std::time::Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            // Reset without an allocation, because hyper does this for each request of a
            // connection.
            Some(ours) => ours.project().inner.reset(Instant::from_std(new_deadline)),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

pin_project_lite::pin_project! {
    /// The sleep future of [`HyperTimer`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use blitz_io_compat::{HyperSleep, HyperTimer};
    /// use hyper::rt::Timer;
    ///
    /// # blitz_io::run(async {
    /// let sleep = HyperTimer::new().sleep(Duration::ZERO);
    /// assert!(sleep.is::<HyperSleep>());
    /// sleep.await;
    /// # });
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct HyperSleep {
        #[pin]
        inner: time::Sleep,
    }
}

impl Future for HyperSleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll(cx)
    }
}

impl Sleep for HyperSleep {}
