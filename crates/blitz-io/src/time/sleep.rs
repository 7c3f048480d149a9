//! Waiting until a point in time.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{Duration, Instant, at_most_30_years, context, error::Error};
use crate::engine::{
    prim::Arc,
    wheel::{Timer, TimerShutdown, TimersRef},
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

/// Waits until `duration` has elapsed.
///
/// The duration counts from this call, not from the first poll. The wait is never shorter; how
/// much longer it is depends on the system's timers (some tens of microseconds) and on the
/// load. A duration of more than 30 years is treated as 30 years.
///
/// # Cancel safety
///
/// Dropping the future cancels the timer.
///
/// # Panics
///
/// Panics if there is no current runtime on this thread, or if it was built without
/// [`enable_time`](crate::runtime::Builder::enable_time). So instead of
/// `runtime.block_on(sleep(..))` write `runtime.block_on(async { sleep(..).await })`.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, Instant, sleep};
///
/// # blitz_io::run(async {
/// let start = Instant::now();
/// sleep(Duration::from_millis(10)).await;
/// assert!(start.elapsed() >= Duration::from_millis(10));
/// # });
/// ```
#[cfg_attr(docsrs, doc(alias = "delay_for"))]
#[cfg_attr(docsrs, doc(alias = "wait"))]
#[inline]
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    // A sleep of zero must be complete at its first poll, so that poll checks the clock.
    Sleep::new(
        Instant::now() + at_most_30_years(duration),
        duration.is_zero(),
        context::timers_ref(),
    )
}

/// Waits until `deadline` is reached.
///
/// # Cancel safety
///
/// Dropping the future cancels the timer.
///
/// # Panics
///
/// Panics if there is no current runtime on this thread, or if it was built without
/// [`enable_time`](crate::runtime::Builder::enable_time).
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, Instant, sleep_until};
///
/// # blitz_io::run(async {
/// let deadline = Instant::now() + Duration::from_millis(10);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
#[cfg_attr(docsrs, doc(alias = "delay_until"))]
#[inline]
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, true, context::timers_ref())
}

pin_project! {
    /// Future returned by [`sleep`] and [`sleep_until`].
    ///
    /// Polling it again after it completed returns ready again. [`reset`](Sleep::reset) changes
    /// the deadline without creating a new future. Pin the future to reset it, or to poll it in
    /// a loop around `select!`.
    ///
    /// # Panics
    ///
    /// Polling panics after the runtime of the timer has ended.
    ///
    /// # Examples
    ///
    /// A sleep that starts anew with each message:
    ///
    /// ```
    /// use blitz_io::{
    ///     sync::mpsc,
    ///     time::{Duration, Instant, sleep},
    /// };
    ///
    /// # blitz_io::run(async {
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// blitz_io::spawn(async move {
    ///     for n in 0..3 {
    ///         sender.send(n).await.unwrap();
    ///     }
    ///     std::future::pending::<()>().await;
    ///     drop(sender);
    /// });
    ///
    /// let idle = Duration::from_millis(20);
    /// let mut quiet = std::pin::pin!(sleep(idle));
    /// let mut received = 0;
    /// loop {
    ///     blitz_io::select! {
    ///         Some(_) = receiver.recv() => {
    ///             received += 1;
    ///             quiet.as_mut().reset(Instant::now() + idle);
    ///         }
    ///         () = &mut quiet => break,
    ///     }
    /// }
    /// assert_eq!(received, 3);
    /// # });
    /// ```
    #[project(!Unpin)]
    #[cfg_attr(docsrs, doc(alias = "Delay"))]
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Sleep {
        deadline: Instant,
        // Whether the poll that arms the timer checks the clock first, because the deadline may
        // well have passed. Otherwise the wheel finds that out, a little later.
        checks_clock: bool,
        #[pin]
        timer: Timer,
    }
}

impl Sleep {
    /// Creates a sleep until `deadline`; with `checks_clock` the poll that arms its timer checks
    /// the clock first.
    #[inline]
    pub(super) fn new(deadline: Instant, checks_clock: bool, timers_ref: Arc<TimersRef>) -> Self {
        Self { deadline, checks_clock, timer: Timer::new(timers_ref) }
    }

    /// Returns the deadline, at which the sleep completes.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant, sleep};
    ///
    /// # blitz_io::run(async {
    /// let now = Instant::now();
    /// assert!(sleep(Duration::from_secs(1)).deadline() >= now + Duration::from_secs(1));
    /// # });
    /// ```
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns `true` if the deadline has passed.
    ///
    /// A sleep that was never polled or reset is not armed yet, and returns `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, sleep};
    ///
    /// # blitz_io::run(async {
    /// let mut sleep = std::pin::pin!(sleep(Duration::from_millis(1)));
    /// assert!(!sleep.is_elapsed());
    /// sleep.as_mut().await;
    /// assert!(sleep.is_elapsed());
    /// # });
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.timer.is_fired()
    }

    /// Changes the deadline, before or after the sleep has completed.
    ///
    /// A task that waits for the sleep is woken at the new deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Instant, sleep};
    ///
    /// # blitz_io::run(async {
    /// let mut sleep = std::pin::pin!(sleep(Duration::from_secs(3600)));
    /// sleep.as_mut().reset(Instant::now() + Duration::from_millis(1));
    /// sleep.await;
    /// # });
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let mut this = self.project();
        (*this.deadline, *this.checks_clock) = (deadline, true);
        let timers = this.timer.timers();
        let clock = timers.clock();
        // Not left to the wheel, which may not have been advanced for long: a sleep that is reset
        // to a deadline in the past must be complete at once.
        if clock.now() >= deadline.into_std() {
            return this.timer.as_mut().fire_now();
        }
        let deadline_ns = clock.ns_of(deadline.into_std());
        this.timer.as_mut().reset(deadline_ns, context::wheel_of);
    }

    /// Changes the deadline and disarms the timer, so no task is woken until it is polled again.
    pub(super) fn reset_unarmed(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        (*this.deadline, *this.checks_clock) = (deadline, true);
        this.timer.disarm();
    }

    #[inline]
    fn poll_timer(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TimerShutdown>> {
        let mut this = self.project();
        let timers = this.timer.timers();
        let clock = timers.clock();
        let deadline = this.deadline.into_std();
        let deadline_ns = clock.ns_of(deadline);
        let unarmed = this.timer.is_unarmed();
        if unarmed && (*this.checks_clock || clock.is_paused()) && clock.now() >= deadline {
            this.timer.as_mut().fire_now();
        }
        this.timer.poll(cx.waker(), deadline_ns, context::wheel_of)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::poll_proceed(cx));
        let Poll::Ready(polled) = self.poll_timer(cx) else {
            thread_context::waits_for(WaitReason::Time);
            return Poll::Pending;
        };
        unit.spend();
        match polled {
            Ok(()) => Poll::Ready(()),
            Err(TimerShutdown) => panic_shut_down(),
        }
    }
}

/// Panics because the timers were shut down with their runtime.
#[cold]
pub(super) fn panic_shut_down() -> ! {
    panic!("A Tokio 1.x context was found, but it is being shutdown. ({})", Error::shutdown())
}
