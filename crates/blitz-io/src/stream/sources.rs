//! Functions that create simple streams.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::coop;

/// Creates a stream of the items of an iterator.
///
/// Each item takes a unit of the task's budget, so a long iterator lets other tasks run.
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// let mut stream = stream::iter([17, 19]);
/// assert_eq!(stream.next().await, Some(17));
/// assert_eq!(stream.next().await, Some(19));
/// assert_eq!(stream.next().await, None);
/// # });
/// ```
pub fn iter<I: IntoIterator>(i: I) -> Iter<I::IntoIter> {
    Iter(i.into_iter())
}

/// Creates a stream of one value.
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// let mut one = stream::once(1);
/// assert_eq!((one.next().await, one.next().await), (Some(1), None));
/// # });
/// ```
pub fn once<T>(value: T) -> Once<T> {
    Once(Some(value))
}

/// Creates a stream that has no items and ends at once.
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// assert_eq!(stream::empty::<i32>().next().await, None);
/// # });
/// ```
pub const fn empty<T>() -> Empty<T> {
    Empty(std::marker::PhantomData)
}

/// Creates a stream that never yields an item and never ends.
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// let mut never = stream::pending::<i32>();
/// blitz_io::select! {
///     biased;
///     _ = never.next() => unreachable!(),
///     () = std::future::ready(()) => {}
/// }
/// # });
/// ```
pub const fn pending<T>() -> Pending<T> {
    Pending(std::marker::PhantomData)
}

/// The stream of [`iter`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream;
///
/// let made = stream::iter([1]);
/// assert!(format!("{made:?}").starts_with("Iter"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "streams do nothing unless polled"]
pub struct Iter<I>(I);

/// No field is structurally pinned.
impl<I> Unpin for Iter<I> {}

/// The stream of [`once`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream;
///
/// let made = stream::once(1);
/// assert!(format!("{made:?}").starts_with("Once"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "streams do nothing unless polled"]
pub struct Once<T>(Option<T>);

/// No field is structurally pinned.
impl<T> Unpin for Once<T> {}

/// The stream of [`empty`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream;
///
/// let made = stream::empty::<u8>();
/// assert!(format!("{made:?}").starts_with("Empty"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "streams do nothing unless polled"]
pub struct Empty<T>(std::marker::PhantomData<fn() -> T>);

/// The stream of [`pending`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream;
///
/// let made = stream::pending::<u8>();
/// assert!(format!("{made:?}").starts_with("Pending"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "streams do nothing unless polled"]
pub struct Pending<T>(std::marker::PhantomData<fn() -> T>);

impl<I: Iterator> Stream for Iter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I::Item>> {
        coop::poll_item(cx, |_| Poll::Ready(self.0.next()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> Stream for Once<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(self.0.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.0.is_some());
        (left, Some(left))
    }
}

impl<T> Stream for Empty<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(0))
    }
}

impl<T> Stream for Pending<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Pending
    }
}
