//! Futures that combine all items of a stream into one value.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    future::Future,
    hash::{BuildHasher, Hash},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::{coop, debug_of_stream};

/// The future of [`StreamExt::all`](super::StreamExt::all).
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// let mut source = stream::iter([1]);
/// let made = source.all(|_| true);
/// assert!(format!("{made:?}").starts_with("AllFuture"));
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct AllFuture<'a, S: ?Sized, F> {
    stream: &'a mut S,
    f: F,
}

/// No field is structurally pinned.
impl<S: ?Sized, F> Unpin for AllFuture<'_, S, F> {}

/// The future of [`StreamExt::any`](super::StreamExt::any).
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// let mut source = stream::iter([1]);
/// let made = source.any(|_| true);
/// assert!(format!("{made:?}").starts_with("AnyFuture"));
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct AnyFuture<'a, S: ?Sized, F> {
    stream: &'a mut S,
    f: F,
}

/// No field is structurally pinned.
impl<S: ?Sized, F> Unpin for AnyFuture<'_, S, F> {}

pin_project! {
    /// The future of [`StreamExt::fold`](super::StreamExt::fold).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).fold(0, |sum, n| sum + n);
    /// assert!(format!("{made:?}").starts_with("FoldFuture"));
    /// ```
    #[must_use = "futures do nothing unless polled"]
    pub struct FoldFuture<S, B, F> {
        #[pin]
        stream: S,
        value: Option<B>,
        f: F,
    }
}

pin_project! {
    /// The future of [`StreamExt::collect`](super::StreamExt::collect).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// let made = stream::iter([1]).collect::<Vec<_>>();
    /// assert!(format!("{made:?}").starts_with("Collect"));
    /// ```
    #[must_use = "futures do nothing unless polled"]
    pub struct Collect<S: Stream, T: FromStream<S::Item>> {
        #[pin]
        stream: S,
        gathered: Option<T::Gathered>,
    }
}

/// Types that [`StreamExt::collect`](super::StreamExt::collect) can build from items.
///
/// These are the collections of the standard library, `String`, `()`, and a `Result` of one of
/// them, which is complete at the first error. The trait cannot be implemented outside of this
/// crate.
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// let good: Result<Vec<i32>, &str> = stream::iter([Ok(1), Ok(2)]).collect().await;
/// assert_eq!(good, Ok(vec![1, 2]));
/// let bad: Result<Vec<i32>, &str> = stream::iter([Ok(1), Err("two"), Ok(3)]).collect().await;
/// assert_eq!(bad, Err("two"));
/// # });
/// ```
pub trait FromStream<T>: sealed::Gather<T> {}

impl<T, C: sealed::Gather<T>> FromStream<T> for C {}

mod sealed {
    /// Builds a collection item by item.
    pub trait Gather<T>: Sized {
        /// The part of the collection that has been built so far.
        type Gathered;

        fn begin(at_least: usize) -> Self::Gathered;

        /// Adds an item; returns `false` if the collection is complete.
        fn add(gathered: &mut Self::Gathered, item: T) -> bool;

        fn finish(gathered: Self::Gathered) -> Self;
    }
}

use sealed::Gather;

/// The maximum capacity that is reserved at first, because a stream may return any size hint.
const FIRST_PLACES: usize = 1024;

macro_rules! gathered_by_extending {
    ($(<$($param:ident $(: [$($bound:tt)*])?),*> $item:ty => $type:ty;)*) => {$(
        impl<$($param $(: $($bound)*)?),*> Gather<$item> for $type {
            type Gathered = Self;

            fn begin(_: usize) -> Self {
                Self::default()
            }

            fn add(gathered: &mut Self, item: $item) -> bool {
                gathered.extend([item]);
                true
            }

            fn finish(gathered: Self) -> Self {
                gathered
            }
        }
    )*};
}

gathered_by_extending! {
    <T> T => VecDeque<T>;
    <T: [Ord]> T => BTreeSet<T>;
    <T: [Eq + Hash], H: [BuildHasher + Default]> T => HashSet<T, H>;
    <K: [Ord], V> (K, V) => BTreeMap<K, V>;
    <K: [Eq + Hash], V, H: [BuildHasher + Default]> (K, V) => HashMap<K, V, H>;
}

impl<T> Gather<T> for Vec<T> {
    type Gathered = Self;

    fn begin(at_least: usize) -> Self {
        Vec::with_capacity(at_least.min(FIRST_PLACES))
    }

    fn add(gathered: &mut Self, item: T) -> bool {
        gathered.push(item);
        true
    }

    fn finish(gathered: Self) -> Self {
        gathered
    }
}

impl<T> Gather<T> for Box<[T]> {
    type Gathered = Vec<T>;

    fn begin(at_least: usize) -> Vec<T> {
        <Vec<T> as Gather<T>>::begin(at_least)
    }

    fn add(gathered: &mut Vec<T>, item: T) -> bool {
        gathered.push(item);
        true
    }

    fn finish(gathered: Vec<T>) -> Self {
        gathered.into_boxed_slice()
    }
}

impl<T: AsRef<str>> Gather<T> for String {
    type Gathered = Self;

    fn begin(_: usize) -> Self {
        String::new()
    }

    fn add(gathered: &mut Self, item: T) -> bool {
        gathered.push_str(item.as_ref());
        true
    }

    fn finish(gathered: Self) -> Self {
        gathered
    }
}

impl Gather<()> for () {
    type Gathered = ();

    fn begin(_: usize) {}

    fn add((): &mut (), (): ()) -> bool {
        true
    }

    fn finish((): ()) {}
}

impl<T, E, C: Gather<T>> Gather<Result<T, E>> for Result<C, E> {
    type Gathered = Result<C::Gathered, E>;

    fn begin(at_least: usize) -> Self::Gathered {
        Ok(C::begin(at_least))
    }

    fn add(gathered: &mut Self::Gathered, item: Result<T, E>) -> bool {
        match (&mut *gathered, item) {
            (Ok(gathered), Ok(item)) => C::add(gathered, item),
            (_, Err(error)) => {
                *gathered = Err(error);
                false
            }
            (Err(_), Ok(_)) => false,
        }
    }

    fn finish(gathered: Self::Gathered) -> Self {
        gathered.map(C::finish)
    }
}

debug_of_stream!(FoldFuture<S, B, F>);

impl<S: Stream + fmt::Debug, T: FromStream<S::Item>> fmt::Debug for Collect<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collect").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug + ?Sized, F> fmt::Debug for AllFuture<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllFuture").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug + ?Sized, F> fmt::Debug for AnyFuture<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyFuture").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<'a, S: ?Sized, F> AllFuture<'a, S, F> {
    pub(super) fn new(stream: &'a mut S, f: F) -> Self {
        Self { stream, f }
    }
}

impl<'a, S: ?Sized, F> AnyFuture<'a, S, F> {
    pub(super) fn new(stream: &'a mut S, f: F) -> Self {
        Self { stream, f }
    }
}

impl<S, B, F> FoldFuture<S, B, F> {
    pub(super) fn new(stream: S, init: B, f: F) -> Self {
        Self { stream, value: Some(init), f }
    }
}

impl<S: Stream, T: FromStream<S::Item>> Collect<S, T> {
    pub(super) fn new(stream: S) -> Self {
        let gathered = Some(T::begin(stream.size_hint().0));
        Self { stream, gathered }
    }
}

impl<S: Stream + Unpin + ?Sized, F: FnMut(S::Item) -> bool> Future for AllFuture<'_, S, F> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = &mut *self;
        loop {
            match ready!(coop::poll_item(cx, |cx| Pin::new(&mut *this.stream).poll_next(cx))) {
                Some(item) => {
                    if !(this.f)(item) {
                        return Poll::Ready(false);
                    }
                }
                None => return Poll::Ready(true),
            }
        }
    }
}

impl<S: Stream + Unpin + ?Sized, F: FnMut(S::Item) -> bool> Future for AnyFuture<'_, S, F> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = &mut *self;
        loop {
            match ready!(coop::poll_item(cx, |cx| Pin::new(&mut *this.stream).poll_next(cx))) {
                Some(item) => {
                    if (this.f)(item) {
                        return Poll::Ready(true);
                    }
                }
                None => return Poll::Ready(false),
            }
        }
    }
}

impl<S: Stream, B, F: FnMut(B, S::Item) -> B> Future for FoldFuture<S, B, F> {
    type Output = B;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B> {
        let mut this = self.project();
        loop {
            let item = ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx)));
            let value = this.value.take().expect("`fold` is polled after it is done");
            match item {
                Some(item) => *this.value = Some((this.f)(value, item)),
                None => return Poll::Ready(value),
            }
        }
    }
}

impl<S: Stream, T: FromStream<S::Item>> Future for Collect<S, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut this = self.project();
        loop {
            let item = ready!(coop::poll_item(cx, |cx| this.stream.as_mut().poll_next(cx)));
            let gathered = this.gathered.as_mut().expect("`collect` is polled after it is done");
            let goes_on = item.is_some_and(|item| T::add(gathered, item));
            if !goes_on {
                let gathered = this.gathered.take().expect("it is there, two lines above");
                return Poll::Ready(T::finish(gathered));
            }
        }
    }
}
