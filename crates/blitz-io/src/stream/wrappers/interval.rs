//! The stream of an interval.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::impl_inner_access;
use crate::time::{Instant, Interval};

/// A stream of the ticks of an interval, which never ends.
///
/// # Examples
///
/// ```
/// use blitz_io::{stream::{StreamExt, wrappers::IntervalStream}, time::{self, Duration}};
///
/// # blitz_io::run(async {
/// let ticks = IntervalStream::new(time::interval(Duration::from_millis(1)));
/// assert_eq!(ticks.take(3).collect::<Vec<_>>().await.len(), 3);
/// # });
/// ```
#[derive(Debug)]
pub struct IntervalStream {
    inner: Interval,
}

impl IntervalStream {
    /// Creates a stream from an interval.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::wrappers::IntervalStream, time::{self, Duration}};
    ///
    /// # blitz_io::run(async {
    /// let ticks = IntervalStream::new(time::interval(Duration::from_secs(1)));
    /// # });
    /// ```
    pub fn new(interval: Interval) -> Self {
        Self { inner: interval }
    }

    /// Returns the interval.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::wrappers::IntervalStream, time::{self, Duration}};
    ///
    /// # blitz_io::run(async {
    /// let ticks = IntervalStream::new(time::interval(Duration::from_secs(1)));
    /// assert_eq!(ticks.into_inner().period(), Duration::from_secs(1));
    /// # });
    /// ```
    pub fn into_inner(self) -> Interval {
        self.inner
    }
}

impl Stream for IntervalStream {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.inner.poll_tick(cx).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

impl_inner_access! {
    <> IntervalStream: Interval;
}
