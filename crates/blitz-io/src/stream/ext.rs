//! The extension trait with the methods of streams.

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

/// Methods that every [`Stream`] has.
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
    /// Waits for the next item and returns it, or `None` at the end of the stream.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item, because it only borrows the stream.
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

    /// Waits for the next item of a stream of results and returns it as `Result<Option<T>, E>`, so
    /// that `?` can be used.
    ///
    /// # Errors
    ///
    /// The error of the next item, if that item is an `Err`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item, like that of [`next`](Self::next).
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

    /// Returns a stream that applies a closure to each item.
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

    /// Returns a stream that applies a closure to each item until the closure returns `None`. It
    /// then ends permanently.
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

    /// Returns a stream that turns each item into a future and awaits it before it polls for the
    /// next item.
    ///
    /// The future is stored in the stream, so dropping the future of [`next`](Self::next) does not
    /// drop it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// let numbers = stream::iter([1, 2]).then(async |n| {
    ///     blitz_io::task::yield_now().await;
    ///     n + 1
    /// });
    /// assert_eq!(numbers.collect::<Vec<_>>().await, [2, 3]);
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

    /// Returns a stream of the items of both streams, in the order in which they become available.
    /// It ends when both have ended.
    ///
    /// The two streams are polled alternately: each poll begins with the stream that the previous
    /// poll did not begin with, so a stream that is always ready does not starve the other.
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

    /// Returns a stream of the items for which the closure returns `true`.
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

    /// Returns a stream of the values that the closure returns for the items, without the items for
    /// which it returns `None`.
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

    /// Returns a stream that drops this one when it ends, and returns `None` from then on.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{self, StreamExt};
    ///
    /// # blitz_io::run(async {
    /// // An iterator that returns more items after its first `None`.
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

    /// Returns a stream of the first `n` items. After them this stream is not polled again.
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

    /// Returns a stream of the items before the first one for which the closure returns `false`.
    /// That item is dropped.
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

    /// Returns a stream of all items but the first `n`.
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

    /// Returns a stream that begins with the first item for which the closure returns `false`.
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

    /// Returns `true` if the closure returns `true` for all items. Stops at the first item for
    /// which it returns `false`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the items that were already tested.
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

    /// Returns `true` if the closure returns `true` for any item. Stops at the first such item.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the items that were already tested.
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

    /// Returns a stream of the items of this stream, followed by those of `other`.
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

    /// Combines all items into one value, by calling a closure with the value so far and each item.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream and the value so far.
    ///
    /// # Panics
    ///
    /// The future panics if the closure panics, and if it is polled after completion.
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

    /// Collects all items into a collection; see [`FromStream`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream and the items that were collected. To keep the items,
    /// take them with [`next`](Self::next).
    ///
    /// # Panics
    ///
    /// The future panics if it is polled after completion.
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

    /// Returns a stream of the same items, with a method to peek at the next one.
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

    /// Returns a stream of the items that yields an error if the next item takes longer than
    /// `duration`.
    ///
    /// The time is measured from this call, and then from each item. After an error the stream
    /// continues to wait for the next item, without another error before that item.
    ///
    /// The returned stream is not `Unpin`, so it must be pinned before [`next`](Self::next) can be
    /// called.
    ///
    /// # Panics
    ///
    /// In the cases in which [`time::sleep`](crate::time::sleep) panics.
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

    /// Returns a stream of the items that yields an error for each tick of the interval without an
    /// item.
    ///
    /// The interval is reset by this call and by each item, so its first tick comes one period
    /// later.
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

    /// Returns a stream of the items with a pause of at least `duration` between them.
    ///
    /// The pause begins when an item is returned; this stream is not polled before the pause is
    /// over. The returned stream is not `Unpin`, so it must be pinned before [`next`](Self::next)
    /// can be called.
    ///
    /// # Panics
    ///
    /// In the cases in which [`time::sleep`](crate::time::sleep) panics.
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

    /// Returns a stream of chunks of `max_size` items, or fewer if `duration` has passed since the
    /// first item of the chunk.
    ///
    /// No chunk is empty. When this stream ends, the items gathered so far become the last chunk.
    /// Until a chunk is returned its items are stored in the stream, so dropping the future of
    /// [`next`](Self::next) loses nothing. The returned stream is not `Unpin`, so it must be pinned
    /// before `next` can be called.
    ///
    /// # Panics
    ///
    /// If `max_size` is zero, and in the cases in which [`time::sleep`](crate::time::sleep) panics.
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
