//! Waiting for a future for a limited time.

use std::{
    future::IntoFuture,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{
    Duration, Instant, Sleep,
    context::{self, Creation},
    error::Elapsed,
    sleep::panic_shut_down,
    sleep_until,
};
use crate::engine::{
    prim::Arc,
    wheel::TimersRef,
    work::task::budget::{self, Budget},
};

/// Waits for `future`, but for at most `duration` from this call on.
///
/// The future is polled before the time is checked. So a future that is ready at once always wins,
/// and a future that does not yield can run longer than its time. A timeout with a future that is
/// ready at once arms no timer. On Linux up to a tenth of a second between this call and the first
/// poll may not count, because the time of the call is noted with a coarse clock.
///
/// # Errors
///
/// Returns [`Elapsed`] if the time elapsed first; the future is dropped with the timeout.
///
/// # Cancel safety
///
/// Dropping the timeout drops the future and cancels the timer.
/// [`into_inner`](Timeout::into_inner) returns the future.
///
/// # Panics
///
/// Panics if there is no current runtime on this thread, or if it was built without
/// [`enable_time`](crate::runtime::Builder::enable_time).
///
/// # Examples
///
/// ```
/// use blitz_io::{
///     sync::oneshot,
///     time::{Duration, timeout},
/// };
///
/// # blitz_io::run(async {
/// let (sender, mut receiver) = oneshot::channel();
/// assert!(timeout(Duration::from_millis(1), &mut receiver).await.is_err());
/// sender.send(7).unwrap();
/// assert_eq!(timeout(Duration::from_millis(1), receiver).await, Ok(Ok(7)));
/// # });
/// ```
#[inline]
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    let delay = match context::record_creation() {
        Some(creation) => Delay::NotCreated { creation, duration },
        None => Delay::Created {
            sleep: sleep_from(Instant::now(), duration, false, context::timers_ref()),
        },
    };
    Timeout { value: future.into_future(), delay }
}

/// Waits for `future`, but at most until `deadline`.
///
/// Behaves like [`timeout`] otherwise.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, Instant, timeout_at};
///
/// # blitz_io::run(async {
/// let deadline = Instant::now() + Duration::from_millis(1);
/// assert_eq!(timeout_at(deadline, async { 7 }).await, Ok(7));
/// assert!(timeout_at(deadline, std::future::pending::<()>()).await.is_err());
/// # });
/// ```
#[inline]
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    let delay = Delay::Created { sleep: Some(sleep_until(deadline)) };
    Timeout { value: future.into_future(), delay }
}

/// Creates the sleep that ends `duration` after `created`; returns `None` if that cannot be
/// represented, and so is never. With `may_be_over` the clock is checked before the timer is
/// armed.
fn sleep_from(
    created: Instant,
    duration: Duration,
    may_be_over: bool,
    timers_ref: Arc<TimersRef>,
) -> Option<Sleep> {
    let deadline = created.checked_add(duration)?;
    Some(Sleep::new(deadline, may_be_over || duration.is_zero(), timers_ref))
}

pin_project! {
    /// The time limit of a timeout. Most need no sleep, because their future is ready at once,
    /// before the clock is read.
    #[project = DelayNow]
    #[derive(Debug)]
    pub(super) enum Delay {
        // The sleep is not created yet; it ends `duration` after `creation`.
        NotCreated { creation: Creation, duration: Duration },
        // The sleep was created; `None` if the timeout never elapses.
        Created {
            #[pin]
            sleep: Option<Sleep>,
        },
    }
}

impl Delay {
    /// Returns the sleep, and creates it if there is none; `None` for a timeout that never
    /// elapses.
    ///
    /// # Panics
    /// Panics if the sleep must be created and the runtime has ended.
    #[inline]
    fn sleep(mut self: Pin<&mut Self>) -> Option<Pin<&mut Sleep>> {
        if let DelayNow::NotCreated { creation, duration } = self.as_mut().project() {
            let sleep = create_sleep(creation, *duration);
            self.set(Self::Created { sleep });
        }
        match self.project() {
            DelayNow::Created { sleep } => sleep.as_pin_mut(),
            DelayNow::NotCreated { .. } => unreachable!("it was made above"),
        }
    }
}

fn create_sleep(creation: &Creation, duration: Duration) -> Option<Sleep> {
    let Some(timers_ref) = creation.timers_ref() else { panic_shut_down() };
    let now = Instant::now();
    let created = creation.time(now);
    sleep_from(created, duration, created < now, timers_ref)
}

pin_project! {
    /// Future returned by [`timeout`] and [`timeout_at`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, Timeout, timeout};
    ///
    /// # blitz_io::run(async {
    /// let waiting: Timeout<_> = timeout(Duration::from_secs(1), async { 7 });
    /// assert_eq!(waiting.await, Ok(7));
    /// # });
    /// ```
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Timeout<T> {
        #[pin]
        pub(super) value: T,
        #[pin]
        pub(super) delay: Delay,
    }
}

impl<T> Timeout<T> {
    /// Returns a reference to the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, timeout};
    ///
    /// # blitz_io::run(async {
    /// let waiting = timeout(Duration::from_secs(1), std::future::ready(7));
    /// assert!(format!("{:?}", waiting.get_ref()).contains('7'));
    /// # });
    /// ```
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, timeout};
    ///
    /// # blitz_io::run(async {
    /// let mut waiting = timeout(Duration::from_secs(1), std::future::ready(7));
    /// *waiting.get_mut() = std::future::ready(8);
    /// assert_eq!(waiting.await, Ok(8));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Consumes the timeout and returns the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::time::{Duration, timeout};
    ///
    /// # blitz_io::run(async {
    /// let waiting = timeout(Duration::from_secs(1), async { 7 });
    /// assert_eq!(waiting.into_inner().await, 7);
    /// # });
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let had_budget = budget::has_remaining();
        if let Poll::Ready(value) = this.value.poll(cx) {
            return Poll::Ready(Ok(value));
        }
        match this.delay.sleep() {
            Some(delay) => poll_delay(delay, cx, had_budget).map(Err),
            None => Poll::Pending,
        }
    }
}

/// Polls the sleep of a timeout; without the limit of the budget if the future has just used
/// it up, because otherwise a future that does so in each poll would never time out.
fn poll_delay(delay: Pin<&mut Sleep>, cx: &mut Context<'_>, had_budget: bool) -> Poll<Elapsed> {
    let polled = if had_budget && !budget::has_remaining() {
        budget::with_budget(Budget::unlimited(), || delay.poll(cx))
    } else {
        delay.poll(cx)
    };
    polled.map(|()| Elapsed::new())
}
