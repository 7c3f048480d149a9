//! The methods of streams.

use std::future::Future;

use futures_core::Stream;

use super::{
    AllFuture, AnyFuture, Chain, Collect, Filter, FilterMap, FoldFuture, FromStream, Fuse, Map,
    MapWhile, Merge, Next, Peekable, Skip, SkipWhile, Take, TakeWhile, Then, TryNext,
};
#[cfg(feature = "time")]
use super::{ChunksTimeout, Throttle, Timeout, TimeoutRepeating};
#[cfg(feature = "time")]
use crate::time::{Duration, Interval};

impl<S: Stream + ?Sized> StreamExt for S {}

/// Methods of every [`Stream`].
///
/// # Examples
///
/// ```
/// use blitz_io::stream::{self, StreamExt};
///
/// # blitz_io::run(async {
/// let mut words = stream::iter(["a", "stream", "of", "words"]).filter(|word| word.len() > 2);
/// while let Some(word) = words.next().await {
///     println!("{word}");
/// }
/// # });
/// ```
pub trait StreamExt: Stream {
    /// Waits for the next item; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item: it only borrows the stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut numbers = stream::iter(1..=2);
    /// assert_eq!(numbers.next().await, Some(1));
    /// assert_eq!(numbers.next().await, Some(2));
    /// assert_eq!(numbers.next().await, None);
    /// # });
    /// ```
    fn next(&mut self) -> Next<'_, Self>
    where
        Self: Unpin,
    {
        Next(self)
    }

    /// Waits for the next item of a stream of results, and turns it round for the `?`.
    ///
    /// # Errors
    ///
    /// The stream's next item, if that is an error.
    ///
    /// # Cancel safety
    ///
    /// As [`next`](Self::next).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut parsed = stream::iter(["1", "two"]).map(str::parse::<i32>);
    /// assert_eq!(parsed.try_next().await, Ok(Some(1)));
    /// assert!(parsed.try_next().await.is_err());
    /// assert_eq!(parsed.try_next().await, Ok(None));
    /// # });
    /// ```
    fn try_next<T, E>(&mut self) -> TryNext<'_, Self>
    where
        Self: Stream<Item = Result<T, E>> + Unpin,
    {
        TryNext(Next(self))
    }

    /// Each item made into another.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let doubled = stream::iter([1, 2]).map(|n| n * 2);
    /// assert_eq!(doubled.collect::<Vec<_>>().await, [2, 4]);
    /// # });
    /// ```
    fn map<T, F>(self, f: F) -> Map<Self, F>
    where
        F: FnMut(Self::Item) -> T,
        Self: Sized,
    {
        Map::new(self, f)
    }

    /// Each item made into another, until one cannot be: then it ends, for good.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let numbers = stream::iter(["1", "2", "three", "4"]).map_while(|n| n.parse::<i32>().ok());
    /// assert_eq!(numbers.collect::<Vec<_>>().await, [1, 2]);
    /// # });
    /// ```
    fn map_while<T, F>(self, f: F) -> MapWhile<Self, F>
    where
        F: FnMut(Self::Item) -> Option<T>,
        Self: Sized,
    {
        MapWhile::new(self, f)
    }

    /// Each item made into a future, which is awaited before the next item is asked for.
    ///
    /// The future is kept in the stream, so dropping [`next`](Self::next) does not drop it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let answers = stream::iter([1, 2]).then(async |n| {
    ///     blitz_io::task::yield_now().await;
    ///     n + 1
    /// });
    /// assert_eq!(answers.collect::<Vec<_>>().await, [2, 3]);
    /// # });
    /// ```
    fn then<F, Fut>(self, f: F) -> Then<Self, Fut, F>
    where
        F: FnMut(Self::Item) -> Fut,
        Fut: Future,
        Self: Sized,
    {
        Then::new(self, f)
    }

    /// The items of both streams, as they come; it ends when both have.
    ///
    /// The two are asked in turn: each poll begins with the one with which the last did not, so
    /// a stream that is always ready does not keep the other from being heard.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let merged = stream::iter([1, 3]).merge(stream::iter([2, 4, 5]));
    /// assert_eq!(merged.collect::<Vec<_>>().await, [1, 2, 3, 4, 5]);
    /// # });
    /// ```
    fn merge<U>(self, other: U) -> Merge<Self, U>
    where
        U: Stream<Item = Self::Item>,
        Self: Sized,
    {
        Merge::new(self, other)
    }

    /// Those items of which the closure says `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let even = stream::iter(1..=6).filter(|n| n % 2 == 0);
    /// assert_eq!(even.collect::<Vec<_>>().await, [2, 4, 6]);
    /// # });
    /// ```
    fn filter<F>(self, f: F) -> Filter<Self, F>
    where
        F: FnMut(&Self::Item) -> bool,
        Self: Sized,
    {
        Filter::new(self, f)
    }

    /// What the closure makes of the items, without those of which it makes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let numbers = stream::iter(["1", "two", "3"]).filter_map(|n| n.parse::<i32>().ok());
    /// assert_eq!(numbers.collect::<Vec<_>>().await, [1, 3]);
    /// # });
    /// ```
    fn filter_map<T, F>(self, f: F) -> FilterMap<Self, F>
    where
        F: FnMut(Self::Item) -> Option<T>,
        Self: Sized,
    {
        FilterMap::new(self, f)
    }

    /// The same stream, which is dropped when it has ended, and stays ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// // An iterator that goes on after its end.
    /// let mut count = 0;
    /// let odd = std::iter::from_fn(|| {
    ///     count += 1;
    ///     (count % 2 == 1).then_some(count)
    /// });
    /// let mut stream = stream::iter(odd).fuse();
    /// assert_eq!(stream.next().await, Some(1));
    /// assert_eq!(stream.next().await, None);
    /// assert_eq!(stream.next().await, None);
    /// # });
    /// ```
    fn fuse(self) -> Fuse<Self>
    where
        Self: Sized,
    {
        Fuse::new(self)
    }

    /// The first `n` items. After them the stream is not asked again.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(stream::iter(1..).take(2).collect::<Vec<_>>().await, [1, 2]);
    /// # });
    /// ```
    fn take(self, n: usize) -> Take<Self>
    where
        Self: Sized,
    {
        Take::new(self, n)
    }

    /// The items before the first of which the closure says `false`, which is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let small = stream::iter([1, 2, 9, 1]).take_while(|n| *n < 5);
    /// assert_eq!(small.collect::<Vec<_>>().await, [1, 2]);
    /// # });
    /// ```
    fn take_while<F>(self, f: F) -> TakeWhile<Self, F>
    where
        F: FnMut(&Self::Item) -> bool,
        Self: Sized,
    {
        TakeWhile::new(self, f)
    }

    /// All but the first `n` items.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(stream::iter(1..=4).skip(2).collect::<Vec<_>>().await, [3, 4]);
    /// # });
    /// ```
    fn skip(self, n: usize) -> Skip<Self>
    where
        Self: Sized,
    {
        Skip::new(self, n)
    }

    /// The items from the first on of which the closure says `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let rest = stream::iter([1, 2, 9, 1]).skip_while(|n| *n < 5);
    /// assert_eq!(rest.collect::<Vec<_>>().await, [9, 1]);
    /// # });
    /// ```
    fn skip_while<F>(self, f: F) -> SkipWhile<Self, F>
    where
        F: FnMut(&Self::Item) -> bool,
        Self: Sized,
    {
        SkipWhile::new(self, f)
    }

    /// Whether the closure says `true` of all items; the first other one ends it.
    ///
    /// # Cancel safety
    ///
    /// Items that it has seen are gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut numbers = stream::iter([1, 2, 3]);
    /// assert!(!numbers.all(|n| n < 2).await);
    /// assert_eq!(numbers.next().await, Some(3));
    /// # });
    /// ```
    fn all<F>(&mut self, f: F) -> AllFuture<'_, Self, F>
    where
        Self: Unpin,
        F: FnMut(Self::Item) -> bool,
    {
        AllFuture::new(self, f)
    }

    /// Whether the closure says `true` of an item; the first such one ends it.
    ///
    /// # Cancel safety
    ///
    /// Items that it has seen are gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut numbers = stream::iter([1, 2, 3]);
    /// assert!(numbers.any(|n| n == 2).await);
    /// assert_eq!(numbers.next().await, Some(3));
    /// # });
    /// ```
    fn any<F>(&mut self, f: F) -> AnyFuture<'_, Self, F>
    where
        Self: Unpin,
        F: FnMut(Self::Item) -> bool,
    {
        AnyFuture::new(self, f)
    }

    /// The items of this stream, and when it has ended those of the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let both = stream::iter([1, 2]).chain(stream::once(3));
    /// assert_eq!(both.collect::<Vec<_>>().await, [1, 2, 3]);
    /// # });
    /// ```
    fn chain<U>(self, other: U) -> Chain<Self, U>
    where
        U: Stream<Item = Self::Item>,
        Self: Sized,
    {
        Chain::new(self, other)
    }

    /// All items made into one value, one after the other.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the stream, and what was made of it.
    ///
    /// # Panics
    ///
    /// The future panics if the closure does, and if it is polled after it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(stream::iter(1..=4).fold(0, |sum, n| sum + n).await, 10);
    /// # });
    /// ```
    fn fold<B, F>(self, init: B, f: F) -> FoldFuture<Self, B, F>
    where
        Self: Sized,
        F: FnMut(B, Self::Item) -> B,
    {
        FoldFuture::new(self, init, f)
    }

    /// All items in a collection; see [`FromStream`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the stream and what was collected. To keep that, take the items by
    /// [`next`](Self::next).
    ///
    /// # Panics
    ///
    /// The future panics if it is polled after it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(stream::iter([1, 2]).collect::<Vec<_>>().await, [1, 2]);
    /// assert_eq!(stream::iter(["a", "b"]).collect::<String>().await, "ab");
    /// # });
    /// ```
    fn collect<T>(self) -> Collect<Self, T>
    where
        T: FromStream<Self::Item>,
        Self: Sized,
    {
        Collect::new(self)
    }

    /// The same stream, of which the next item can be looked at.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let mut numbers = stream::iter([1]).peekable();
    /// assert_eq!(numbers.peek().await, Some(&1));
    /// assert_eq!(numbers.next().await, Some(1));
    /// assert_eq!(numbers.peek().await, None);
    /// # });
    /// ```
    fn peekable(self) -> Peekable<Self>
    where
        Self: Sized,
    {
        Peekable::new(self)
    }

    /// The items, and an error when one takes longer than that to come.
    ///
    /// The time counts from here, and then from each item. When it is over, the stream is
    /// waited for further, without another error before the next item.
    ///
    /// The stream that this gives is not `Unpin`: pin it to ask for items.
    ///
    /// # Panics
    ///
    /// As [`time::sleep`](crate::time::sleep).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let source = stream::once(1).chain(stream::pending());
    /// let mut timed = pin!(source.timeout(Duration::from_millis(1)));
    /// assert!(matches!(timed.next().await, Some(Ok(1))));
    /// assert!(matches!(timed.next().await, Some(Err(_))));
    /// # });
    /// ```
    #[cfg(feature = "time")]
    #[track_caller]
    fn timeout(self, duration: Duration) -> Timeout<Self>
    where
        Self: Sized,
    {
        Timeout::new(self, duration)
    }

    /// The items, and an error for each tick of the interval that passes without one.
    ///
    /// The interval is reset here, and by each item: its first tick is one period later.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::{stream::{self, StreamExt}, time::{self, Duration}};
    ///
    /// # blitz_io::run(async {
    /// let source = stream::once(1).chain(stream::pending());
    /// let interval = time::interval(Duration::from_millis(1));
    /// let mut timed = pin!(source.timeout_repeating(interval));
    /// assert!(matches!(timed.next().await, Some(Ok(1))));
    /// assert!(matches!(timed.next().await, Some(Err(_))));
    /// assert!(matches!(timed.next().await, Some(Err(_))));
    /// # });
    /// ```
    #[cfg(feature = "time")]
    fn timeout_repeating(self, interval: Interval) -> TimeoutRepeating<Self>
    where
        Self: Sized,
    {
        TimeoutRepeating::new(self, interval)
    }

    /// The items, with at least so much time between them.
    ///
    /// The pause begins when an item is given out; before it is over the stream is not asked.
    /// The stream that this gives is not `Unpin`: pin it to ask for items.
    ///
    /// # Panics
    ///
    /// As [`time::sleep`](crate::time::sleep).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{stream::{self, StreamExt}, time::{Duration, Instant}};
    ///
    /// # blitz_io::run(async {
    /// let start = Instant::now();
    /// let slow = stream::iter(1..=3).throttle(Duration::from_millis(2));
    /// assert_eq!(slow.collect::<Vec<_>>().await, [1, 2, 3]);
    /// assert!(start.elapsed() >= Duration::from_millis(4));
    /// # });
    /// ```
    #[cfg(feature = "time")]
    #[track_caller]
    fn throttle(self, duration: Duration) -> Throttle<Self>
    where
        Self: Sized,
    {
        Throttle::new(self, duration)
    }

    /// The items in chunks: of `max_size`, or what came within `duration` of a chunk's first.
    ///
    /// No chunk is empty. What was gathered is given out when the stream ends. It is in the
    /// stream until then, so dropping [`next`](Self::next) loses nothing. The stream that this
    /// gives is not `Unpin`: pin it to ask for items.
    ///
    /// # Panics
    ///
    /// If `max_size` is zero, and as [`time::sleep`](crate::time::sleep).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::{stream::{self, StreamExt}, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let source = stream::iter(1..=3).chain(stream::pending());
    /// let mut chunks = pin!(source.chunks_timeout(2, Duration::from_millis(1)));
    /// assert_eq!(chunks.next().await, Some(vec![1, 2]));
    /// assert_eq!(chunks.next().await, Some(vec![3]));
    /// # });
    /// ```
    #[cfg(feature = "time")]
    #[track_caller]
    fn chunks_timeout(self, max_size: usize, duration: Duration) -> ChunksTimeout<Self>
    where
        Self: Sized,
    {
        ChunksTimeout::new(self, max_size, duration)
    }
}
