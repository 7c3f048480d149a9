//! A stream that stays ended.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

pin_project! {
    /// The stream of [`StreamExt::fuse`](super::StreamExt::fuse).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).fuse();
    /// assert!(format!("{made:?}").starts_with("Fuse"));
    /// ```
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Fuse<S> {
        #[pin]
        stream: Option<S>,
    }
}

impl<S> Fuse<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream: Some(stream) }
    }
}

impl<S: Stream> Stream for Fuse<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Some(stream) = self.as_mut().project().stream.as_pin_mut() else {
            return Poll::Ready(None);
        };
        let item = ready!(stream.poll_next(cx));
        if item.is_none() {
            self.project().stream.set(None);
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.as_ref().map_or((0, Some(0)), Stream::size_hint)
    }
}
