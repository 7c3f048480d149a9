//! Taking items of a stream one by one.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::{StreamExt, coop, fuse::Fuse};

/// The future of [`StreamExt::next`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// let mut source = stream::iter([1]);
/// let made = source.next();
/// assert!(format!("{made:?}").starts_with("Next"));
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Next<'a, S: ?Sized>(pub(super) &'a mut S);

/// The future of [`StreamExt::try_next`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// let mut source = stream::iter([Ok::<_, ()>(1)]);
/// let made = source.try_next();
/// assert!(format!("{made:?}").starts_with("TryNext"));
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct TryNext<'a, S: ?Sized>(pub(super) Next<'a, S>);

pin_project! {
    /// The stream of [`StreamExt::peekable`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).peekable();
    /// assert!(format!("{made:?}").starts_with("Peekable"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Peekable<S: Stream> {
        peeked: Option<S::Item>,
        #[pin]
        stream: Fuse<S>,
    }
}

impl<S: Stream> Peekable<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { peeked: None, stream: Fuse::new(stream) }
    }

    /// Waits for the next item and returns a reference to it, without taking it from the stream.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: an item that was received stays in the stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut numbers = stream::iter([1, 2]).peekable();
    /// assert_eq!(numbers.peek().await, Some(&1));
    /// assert_eq!(numbers.next().await, Some(1));
    /// # });
    /// ```
    pub async fn peek(&mut self) -> Option<&S::Item>
    where
        S: Unpin,
    {
        if self.peeked.is_none() {
            self.peeked = self.stream.next().await;
        }
        self.peeked.as_ref()
    }
}

impl<S: Stream + Unpin + ?Sized> Future for Next<'_, S> {
    type Output = Option<S::Item>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        coop::poll_item(cx, |cx| Pin::new(&mut *self.0).poll_next(cx))
    }
}

impl<T, E, S: Stream<Item = Result<T, E>> + Unpin + ?Sized> Future for TryNext<'_, S> {
    type Output = Result<Option<T>, E>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Option::transpose)
    }
}

impl<S: Stream> Stream for Peekable<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if let Some(item) = this.peeked.take() {
            return Poll::Ready(Some(item));
        }
        Poll::Ready(ready!(this.stream.poll_next(cx)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        super::add_to_hint(self.stream.size_hint(), usize::from(self.peeked.is_some()))
    }
}

impl<S: Stream + fmt::Debug> fmt::Debug for Peekable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peekable")
            .field("peeked", &self.peeked.is_some())
            .field("stream", &self.stream)
            .finish()
    }
}
