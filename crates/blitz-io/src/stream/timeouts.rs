//! Streams with timeouts, pauses and time limits.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::{Fuse, coop, debug_of_stream};
use crate::time::{Duration, Instant, Interval, Sleep, error::Elapsed, sleep, sleep_until};

/// The maximum capacity that is reserved for a chunk at first, because `max_size` may be
/// arbitrarily large.
const FIRST_PLACES: usize = 1024;

pin_project! {
    /// The stream of [`StreamExt::timeout`](super::StreamExt::timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let made = stream::iter([1]).timeout(Duration::from_secs(1));
    /// assert!(format!("{made:?}").starts_with("Timeout"));
    /// # });
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Timeout<S> {
        #[pin]
        stream: Fuse<S>,
        #[pin]
        deadline: Sleep,
        duration: Duration,
        // Set when the timeout has been reported and no item has come since.
        timeout_returned: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::timeout_repeating`](super::StreamExt::timeout_repeating).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::{self, Duration}};
    ///
    /// # blitz_io::run(async {
    /// let made = stream::iter([1]).timeout_repeating(time::interval(Duration::from_secs(1)));
    /// assert!(format!("{made:?}").starts_with("TimeoutRepeating"));
    /// # });
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct TimeoutRepeating<S> {
        #[pin]
        stream: Fuse<S>,
        interval: Interval,
    }
}

pin_project! {
    /// The stream of [`StreamExt::throttle`](super::StreamExt::throttle).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let made = stream::iter([1]).throttle(Duration::from_secs(1));
    /// assert!(format!("{made:?}").starts_with("Throttle"));
    /// # });
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Throttle<S> {
        #[pin]
        stream: S,
        #[pin]
        pause: Sleep,
        duration: Duration,
        // Set while the pause after an item is not over.
        pausing: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::chunks_timeout`](super::StreamExt::chunks_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let made = stream::iter([1]).chunks_timeout(2, Duration::from_secs(1));
    /// assert!(format!("{made:?}").starts_with("ChunksTimeout"));
    /// # });
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct ChunksTimeout<S: Stream> {
        #[pin]
        stream: Fuse<S>,
        #[pin]
        deadline: Sleep,
        duration: Duration,
        items: Vec<S::Item>,
        max_size: usize,
    }
}

debug_of_stream!(Timeout<S>, TimeoutRepeating<S>, Throttle<S>);

impl<S: Stream + std::fmt::Debug> std::fmt::Debug for ChunksTimeout<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunksTimeout")
            .field("stream", &self.stream)
            .field("gathered", &self.items.len())
            .finish_non_exhaustive()
    }
}

impl<S: Stream> Timeout<S> {
    #[track_caller]
    pub(super) fn new(stream: S, duration: Duration) -> Self {
        let deadline = sleep(duration);
        Self { stream: Fuse::new(stream), deadline, duration, timeout_returned: false }
    }
}

impl<S: Stream> TimeoutRepeating<S> {
    pub(super) fn new(stream: S, mut interval: Interval) -> Self {
        // The time to the first item is measured from here.
        interval.reset();
        Self { stream: Fuse::new(stream), interval }
    }
}

impl<S: Stream> Throttle<S> {
    #[track_caller]
    pub(super) fn new(stream: S, duration: Duration) -> Self {
        Self { stream, pause: sleep_until(Instant::now()), duration, pausing: false }
    }
}

impl<S> Throttle<S> {
    /// Returns a reference to the wrapped stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let throttled = stream::iter([1, 2]).throttle(Duration::from_secs(1));
    /// assert!(format!("{:?}", throttled.get_ref()).contains("Iter"));
    /// # });
    /// ```
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns a mutable reference to the wrapped stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let mut throttled = stream::iter([1, 2]).throttle(Duration::from_secs(1));
    /// // Polled directly, the wrapped stream does not pause.
    /// assert_eq!(throttled.get_mut().next().await, Some(1));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the wrapped stream, which has no pauses.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let throttled = stream::iter([1, 2]).throttle(Duration::from_secs(1));
    /// assert_eq!(throttled.into_inner().next().await, Some(1));
    /// # });
    /// ```
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Stream> ChunksTimeout<S> {
    #[track_caller]
    pub(super) fn new(stream: S, max_size: usize, duration: Duration) -> Self {
        assert!(max_size > 0, "`max_size` must be non-zero: a chunk has at least one item");
        let deadline = sleep_until(Instant::now());
        Self { stream: Fuse::new(stream), deadline, duration, items: Vec::new(), max_size }
    }

    /// Takes the items that were gathered for the next chunk.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::{Duration, timeout}};
    ///
    /// # blitz_io::run(async {
    /// let source = stream::iter([1, 2]).chain(stream::pending());
    /// let mut chunks = Box::pin(source.chunks_timeout(8, Duration::from_secs(3600)));
    /// assert!(timeout(Duration::from_millis(1), chunks.next()).await.is_err());
    /// assert_eq!(chunks.as_mut().take_remainder(), [1, 2]);
    /// # });
    /// ```
    pub fn take_remainder(self: Pin<&mut Self>) -> Vec<S::Item> {
        mem::take(self.project().items)
    }

    /// Drops the stream and returns the items that were gathered for the next chunk.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let chunks = stream::iter([1, 2]).chunks_timeout(8, Duration::from_secs(1));
    /// assert!(chunks.into_remainder().is_empty());
    /// # });
    /// ```
    pub fn into_remainder(self) -> Vec<S::Item> {
        self.items
    }
}

impl<S: Stream> Stream for Timeout<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(cx) {
            if item.is_some() {
                this.deadline.reset(after(*this.duration));
                *this.timeout_returned = false;
            }
            return Poll::Ready(item.map(Ok));
        }
        if *this.timeout_returned {
            return Poll::Pending;
        }
        ready!(this.deadline.as_mut().poll(cx));
        *this.timeout_returned = true;
        Poll::Ready(Some(Err(Elapsed::new())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.stream.size_hint();
        // A timeout may be reported before each item, and before the end.
        (least, most.and_then(|most| most.checked_mul(2)?.checked_add(1)))
    }
}

impl<S: Stream> Stream for TimeoutRepeating<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(cx) {
            if item.is_some() {
                this.interval.reset();
            }
            return Poll::Ready(item.map(Ok));
        }
        ready!(this.interval.poll_tick(cx));
        Poll::Ready(Some(Err(Elapsed::new())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.stream.size_hint().0, None)
    }
}

impl<S: Stream> Stream for Throttle<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.pausing {
            ready!(this.pause.as_mut().poll(cx));
            *this.pausing = false;
        }
        let item = ready!(this.stream.poll_next(cx));
        if item.is_some() && !this.duration.is_zero() {
            this.pause.reset(after(*this.duration));
            *this.pausing = true;
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl<S: Stream> Stream for ChunksTimeout<S> {
    type Item = Vec<S::Item>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<S::Item>>> {
        let mut this = self.project();
        loop {
            match coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx)) {
                Poll::Ready(Some(item)) => {
                    if this.items.is_empty() {
                        this.items.reserve((*this.max_size).min(FIRST_PLACES));
                        this.deadline.as_mut().reset(after(*this.duration));
                    }
                    this.items.push(item);
                    if this.items.len() >= *this.max_size {
                        return Poll::Ready(Some(mem::take(this.items)));
                    }
                }
                Poll::Ready(None) => {
                    let rest = mem::take(this.items);
                    return Poll::Ready((!rest.is_empty()).then_some(rest));
                }
                Poll::Pending => break,
            }
        }
        if this.items.is_empty() {
            return Poll::Pending;
        }
        ready!(this.deadline.poll(cx));
        Poll::Ready(Some(mem::take(this.items)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.stream.size_hint();
        let gathered = usize::from(!self.items.is_empty());
        let chunks = least.saturating_add(self.items.len()).div_ceil(self.max_size);
        (chunks, most.and_then(|most| most.checked_add(gathered)))
    }
}

/// Returns the instant `duration` from now, or about 30 years from now if that cannot be
/// represented.
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or(now + Duration::from_secs(30 * 365 * 86_400))
}
