//! Streams that pass on some of the items.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::{coop, debug_of_stream};

pin_project! {
    /// The stream of [`StreamExt::filter`](super::StreamExt::filter).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).filter(|n| *n > 0);
    /// assert!(format!("{made:?}").starts_with("Filter"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Filter<S, F> {
        #[pin]
        stream: S,
        f: F,
    }
}

pin_project! {
    /// The stream of [`StreamExt::filter_map`](super::StreamExt::filter_map).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).filter_map(Some);
    /// assert!(format!("{made:?}").starts_with("FilterMap"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct FilterMap<S, F> {
        #[pin]
        stream: S,
        f: F,
    }
}

pin_project! {
    /// The stream of [`StreamExt::take_while`](super::StreamExt::take_while).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).take_while(|n| *n > 0);
    /// assert!(format!("{made:?}").starts_with("TakeWhile"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct TakeWhile<S, F> {
        #[pin]
        stream: S,
        f: F,
        // Set when no more items are to be taken.
        decided: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::skip_while`](super::StreamExt::skip_while).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).skip_while(|n| *n > 0);
    /// assert!(format!("{made:?}").starts_with("SkipWhile"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct SkipWhile<S, F> {
        #[pin]
        stream: S,
        f: F,
        // Set when no more items are to be skipped.
        decided: bool,
    }
}

pin_project! {
    /// The stream of [`StreamExt::take`](super::StreamExt::take).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).take(1);
    /// assert!(format!("{made:?}").starts_with("Take"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Take<S> {
        #[pin]
        stream: S,
        left: usize,
    }
}

pin_project! {
    /// The stream of [`StreamExt::skip`](super::StreamExt::skip).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).skip(1);
    /// assert!(format!("{made:?}").starts_with("Skip"));
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub struct Skip<S> {
        #[pin]
        stream: S,
        left: usize,
    }
}

debug_of_stream!(
    Filter<S, F>,
    FilterMap<S, F>,
    TakeWhile<S, F>,
    SkipWhile<S, F>,
    Take<S>,
    Skip<S>
);

impl<S, F> Filter<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f }
    }
}

impl<S, F> FilterMap<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f }
    }
}

impl<S, F> TakeWhile<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f, decided: false }
    }
}

impl<S, F> SkipWhile<S, F> {
    pub(super) fn new(stream: S, f: F) -> Self {
        Self { stream, f, decided: false }
    }
}

impl<S> Take<S> {
    pub(super) fn new(stream: S, n: usize) -> Self {
        Self { stream, left: n }
    }
}

impl<S> Skip<S> {
    pub(super) fn new(stream: S, n: usize) -> Self {
        Self { stream, left: n }
    }
}

impl<S: Stream, F: FnMut(&S::Item) -> bool> Stream for Filter<S, F> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            match ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx))) {
                Some(item) if !(this.f)(&item) => {}
                item => return Poll::Ready(item),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.stream.size_hint().1)
    }
}

impl<T, S: Stream, F: FnMut(S::Item) -> Option<T>> Stream for FilterMap<S, F> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut this = self.project();
        loop {
            let Some(item) = ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx)))
            else {
                return Poll::Ready(None);
            };
            if let Some(item) = (this.f)(item) {
                return Poll::Ready(Some(item));
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.stream.size_hint().1)
    }
}

impl<S: Stream, F: FnMut(&S::Item) -> bool> Stream for TakeWhile<S, F> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if *this.decided {
            return Poll::Ready(None);
        }
        let item = ready!(this.stream.poll_next(cx)).filter(this.f);
        *this.decided = item.is_none();
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.decided { (0, Some(0)) } else { (0, self.stream.size_hint().1) }
    }
}

impl<S: Stream, F: FnMut(&S::Item) -> bool> Stream for SkipWhile<S, F> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.decided {
            return this.stream.poll_next(cx);
        }
        loop {
            match ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx))) {
                Some(item) if (this.f)(&item) => {}
                item => {
                    *this.decided = item.is_some();
                    return Poll::Ready(item);
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.stream.size_hint();
        (if self.decided { least } else { 0 }, most)
    }
}

impl<S: Stream> Stream for Take<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if *this.left == 0 {
            return Poll::Ready(None);
        }
        let item = ready!(this.stream.poll_next(cx));
        *this.left = if item.is_some() { *this.left - 1 } else { 0 };
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.left == 0 {
            return (0, Some(0));
        }
        let (least, most) = self.stream.size_hint();
        (least.min(self.left), Some(most.map_or(self.left, |most| most.min(self.left))))
    }
}

impl<S: Stream> Stream for Skip<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        while *this.left > 0 {
            match ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx))) {
                Some(_) => *this.left -= 1,
                None => return Poll::Ready(None),
            }
        }
        this.stream.poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.stream.size_hint();
        (least.saturating_sub(self.left), most.map(|most| most.saturating_sub(self.left)))
    }
}
