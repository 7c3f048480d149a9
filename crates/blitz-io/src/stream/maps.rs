//! Streams that turn items into other values.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::{Fuse, add_to_hint, debug_of_stream};

pin_project! {
    /// The stream of [`StreamExt::map`](super::StreamExt::map).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).map(|n| n + 1);
    /// assert!(format!("{made:?}").starts_with("Map"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Map<S, F> {
        #[pin]
        stream: S,
        f: F,
    }
}

pin_project! {
    /// The stream of [`StreamExt::map_while`](super::StreamExt::map_while).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).map_while(Some);
    /// assert!(format!("{made:?}").starts_with("MapWhile"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct MapWhile<S, F> {
        #[pin]
        stream: S,
        f: F,
        over: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::then`](super::StreamExt::then).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).then(async |n| n);
    /// assert!(format!("{made:?}").starts_with("Then"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Then<S, Fut, F> {
        #[pin]
        stream: Fuse<S>,
        #[pin]
        future: Option<Fut>,
        f: F,
    }
}

debug_of_stream!(Map<S, F>, MapWhile<S, F>, Then<S, Fut, F>);

impl<S, F> Map<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f }
    }
}

impl<S, F> MapWhile<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f, over: false }
    }
}

impl<S, Fut, F> Then<S, Fut, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream: Fuse::new(stream), future: None, f }
    }
}

impl<T, S: Stream, F: FnMut(S::Item) -> T> Stream for Map<S, F> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.project();
        Poll::Ready(ready!(this.stream.poll_next(cx)).map(this.f))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl<T, S: Stream, F: FnMut(S::Item) -> Option<T>> Stream for MapWhile<S, F> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.project();
        if *this.over {
            return Poll::Ready(None);
        }
        let item = ready!(this.stream.poll_next(cx)).and_then(this.f);
        *this.over = item.is_none();
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.over { (0, Some(0)) } else { (0, self.stream.size_hint().1) }
    }
}

impl<S: Stream, Fut: Future, F: FnMut(S::Item) -> Fut> Stream for Then<S, Fut, F> {
    type Item = Fut::Output;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Fut::Output>> {
        let mut this = self.project();
        if this.future.is_none() {
            let Some(item) = ready!(this.stream.poll_next(cx)) else { return Poll::Ready(None) };
            this.future.set(Some((this.f)(item)));
        }
        let future = this.future.as_mut().as_pin_mut().expect("it was set above");
        let output = ready!(future.poll(cx));
        this.future.set(None);
        Poll::Ready(Some(output))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        add_to_hint(self.stream.size_hint(), usize::from(self.future.is_some()))
    }
}
