//! Streams that combine two streams into one.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::Fuse;

pin_project! {
    /// The stream of [`StreamExt::merge`](super::StreamExt::merge).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).merge(stream::once(2));
    /// assert!(format!("{made:?}").starts_with("Merge"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Merge<S, U> {
        #[pin]
        left: Fuse<S>,
        #[pin]
        right: Fuse<U>,
        // Which stream the next poll begins with. It alternates, so that neither stream can starve
        // the other.
        right_first: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::chain`](super::StreamExt::chain).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).chain(stream::once(2));
    /// assert!(format!("{made:?}").starts_with("Chain"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Chain<S, U> {
        #[pin]
        first: Fuse<S>,
        #[pin]
        second: U,
    }
}

impl<S, U> Merge<S, U> {
    pub(super) fn new(left: S, right: U) -> Self {
        Self { left: Fuse::new(left), right: Fuse::new(right), right_first: false }
    }
}

impl<S, U> Chain<S, U> {
    pub(super) fn new(first: S, second: U) -> Self {
        Self { first: Fuse::new(first), second }
    }
}

impl<S: Stream, U: Stream<Item = S::Item>> Stream for Merge<S, U> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        let right_first = *this.right_first;
        *this.right_first = !right_first;
        if right_first {
            one_of(this.right, this.left, cx)
        } else {
            one_of(this.left, this.right, cx)
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        sum(self.left.size_hint(), self.right.size_hint())
    }
}

/// Polls both streams in order and returns the first item, or `None` when both have ended.
fn one_of<T>(
    first: Pin<&mut Fuse<impl Stream<Item = T>>>,
    second: Pin<&mut Fuse<impl Stream<Item = T>>>,
    cx: &mut Context<'_>,
) -> Poll<Option<T>> {
    let over = match first.poll_next(cx) {
        Poll::Ready(None) => true,
        Poll::Ready(item) => return Poll::Ready(item),
        Poll::Pending => false,
    };
    match ready!(second.poll_next(cx)) {
        None if !over => Poll::Pending,
        item => Poll::Ready(item),
    }
}

impl<S: Stream, U: Stream<Item = S::Item>> Stream for Chain<S, U> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if let Some(item) = ready!(this.first.poll_next(cx)) {
            return Poll::Ready(Some(item));
        }
        this.second.poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        sum(self.first.size_hint(), self.second.size_hint())
    }
}

fn sum(left: (usize, Option<usize>), right: (usize, Option<usize>)) -> (usize, Option<usize>) {
    let most = left.1.zip(right.1).and_then(|(left, right)| left.checked_add(right));
    (left.0.saturating_add(right.0), most)
}

impl<S: fmt::Debug, U: fmt::Debug> fmt::Debug for Merge<S, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").field("left", &self.left).field("right", &self.right).finish()
    }
}

impl<S: fmt::Debug, U: fmt::Debug> fmt::Debug for Chain<S, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("first", &self.first).field("second", &self.second).finish()
    }
}
