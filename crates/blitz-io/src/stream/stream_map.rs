//! A map of streams that is itself a stream of all their items.

use std::{
    borrow::Borrow,
    fmt,
    hash::Hash,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::{any_index, coop};

/// A collection of streams with keys that is itself a stream of pairs of a key and an item.
///
/// Streams can be added and removed at any time. All of them are polled by the task that polls the
/// map, beginning with a random one, so that none can starve the others. A stream that has ended is
/// removed. The map returns `None` when it is empty; this is not final, because another stream may
/// be inserted.
///
/// The map is designed for some dozen streams: keys are compared one after the other, and a poll
/// polls every stream until one has an item. For thousands of streams, spawn a task for each and
/// let the tasks send into one channel.
///
/// Streams that are not `Unpin` must be pinned before they are inserted: `Box::pin(stream)`.
///
/// # Examples
///
/// ```
/// use blitz_io::{channel::mpsc, stream::{StreamExt, StreamMap, wrappers::ReceiverStream}};
///
/// # blitz_io::run(async {
/// let (one, first) = mpsc::channel(8);
/// let (two, second) = mpsc::channel(8);
/// let mut map = StreamMap::new();
/// map.insert("one", ReceiverStream::new(first));
/// map.insert("two", ReceiverStream::new(second));
///
/// two.send(2).await.unwrap();
/// assert_eq!(map.next().await, Some(("two", 2)));
/// one.send(1).await.unwrap();
/// assert_eq!(map.next().await, Some(("one", 1)));
///
/// drop((one, two));
/// assert_eq!(map.next().await, None);
/// assert!(map.is_empty());
/// # });
/// ```
pub struct StreamMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> StreamMap<K, V> {
    /// Creates an empty map without allocating.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{Pending, StreamMap};
    ///
    /// let map: StreamMap<&str, Pending<()>> = StreamMap::new();
    /// assert!(map.is_empty());
    /// ```
    pub fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Creates an empty map with room for `capacity` streams.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{Pending, StreamMap};
    ///
    /// let map: StreamMap<&str, Pending<()>> = StreamMap::with_capacity(10);
    /// assert!(map.capacity() >= 10);
    /// ```
    pub fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity) }
    }

    /// Returns the number of streams that the map can hold without allocating.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{Pending, StreamMap};
    ///
    /// assert_eq!(StreamMap::<u8, Pending<()>>::new().capacity(), 0);
    /// ```
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Returns an iterator over the keys, in unspecified order.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert_eq!(map.keys().collect::<Vec<_>>(), [&"a"]);
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Returns an iterator over the streams, in unspecified order.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert_eq!(map.values().count(), 1);
    /// ```
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, stream)| stream)
    }

    /// Returns an iterator over mutable references to the streams, in unspecified order.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamExt, StreamMap, iter};
    ///
    /// # blitz_io::run(async {
    /// let mut map = StreamMap::new();
    /// map.insert("a", iter([1, 2]));
    /// for stream in map.values_mut() {
    ///     stream.next().await;
    /// }
    /// assert_eq!(map.next().await, Some(("a", 2)));
    /// # });
    /// ```
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, stream)| stream)
    }

    /// Returns an iterator over the keys and streams, in unspecified order.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert!(map.iter().all(|(key, _)| *key == "a"));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.entries.iter()
    }

    /// Returns an iterator over mutable references to the keys and streams, in unspecified order.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, empty};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", empty::<i32>());
    /// map.iter_mut().for_each(|(_, stream)| *stream = empty());
    /// ```
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut (K, V)> {
        self.entries.iter_mut()
    }

    /// Returns the number of streams in the map.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert_eq!(map.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the map contains no streams.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// assert!(map.is_empty());
    /// map.insert("a", pending::<i32>());
    /// assert!(!map.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes and drops all streams.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// map.clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Inserts a stream and returns the one that was stored under the same key, if any.
    ///
    /// This does not wake a task that waits for the map, because no task can be waiting while the
    /// caller has mutable access to the map.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// assert!(map.insert("a", pending::<i32>()).is_none());
    /// assert!(map.insert("a", pending::<i32>()).is_some());
    /// assert_eq!(map.len(), 1);
    /// ```
    pub fn insert(&mut self, k: K, stream: V) -> Option<V>
    where
        K: Hash + Eq,
    {
        if let Some((_, old)) = self.entries.iter_mut().find(|(key, _)| *key == k) {
            return Some(mem::replace(old, stream));
        }
        self.entries.push((k, stream));
        None
    }

    /// Removes the stream with the given key and returns it, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert!(map.remove("a").is_some());
    /// assert!(map.remove("a").is_none());
    /// ```
    pub fn remove<Q>(&mut self, k: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let index = self.index_of(k)?;
        Some(self.entries.swap_remove(index).1)
    }

    /// Returns `true` if the map contains a stream with the given key.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, pending};
    ///
    /// let mut map = StreamMap::new();
    /// map.insert("a", pending::<i32>());
    /// assert!(map.contains_key("a") && !map.contains_key("b"));
    /// ```
    pub fn contains_key<Q>(&self, k: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.index_of(k).is_some()
    }

    fn index_of<Q>(&self, k: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.entries.iter().position(|(key, _)| key.borrow() == k)
    }
}

impl<K: Unpin, V: Stream + Unpin> StreamMap<K, V> {
    /// Polls the streams, beginning with a random one, and returns the index and the item of the
    /// first that has one. Removes streams that have ended.
    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, V::Item)>> {
        let first = if self.entries.is_empty() { 0 } else { any_index(self.entries.len()) };
        // Polls from `first` to the end, and then the streams before it. When a stream has ended,
        // the last stream takes its place and is polled next: it may be polled twice, but none is
        // left out.
        let (mut index, mut until) = (first, self.entries.len());
        loop {
            if index >= until.min(self.entries.len()) {
                if until == first || first == 0 {
                    break;
                }
                (index, until) = (0, first);
                continue;
            }
            match coop::poll_item(cx, |cx| Pin::new(&mut self.entries[index].1).poll_next(cx)) {
                Poll::Ready(Some(item)) => return Poll::Ready(Some((index, item))),
                Poll::Ready(None) => drop(self.entries.swap_remove(index)),
                Poll::Pending => index += 1,
            }
        }
        if self.entries.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl<K: Clone + Unpin, V: Stream + Unpin> StreamMap<K, V> {
    /// Waits for at least one item and moves all items that are available into `buffer`, up to
    /// `limit`; returns their number, which is zero if the map is empty or `limit` is zero.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no item was taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::stream::{StreamMap, iter};
    ///
    /// # blitz_io::run(async {
    /// let mut map = StreamMap::new();
    /// map.insert("a", iter([1, 2]));
    /// map.insert("b", iter([3, 4]));
    /// let mut items = Vec::new();
    /// assert_eq!(map.next_many(&mut items, 10).await, 4);
    /// # });
    /// ```
    pub async fn next_many(&mut self, buffer: &mut Vec<(K, V::Item)>, limit: usize) -> usize {
        std::future::poll_fn(|cx| self.poll_next_many(cx, buffer, limit)).await
    }

    /// Polls for at least one item; see [`next_many`](Self::next_many).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use blitz_io::stream::{StreamMap, iter};
    ///
    /// # blitz_io::run(async {
    /// let mut map = StreamMap::new();
    /// map.insert("a", iter([1, 2]));
    /// let mut items = Vec::new();
    /// assert_eq!(poll_fn(|cx| map.poll_next_many(cx, &mut items, 1)).await, 1);
    /// # });
    /// ```
    pub fn poll_next_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<(K, V::Item)>,
        limit: usize,
    ) -> Poll<usize> {
        let mut added = 0;
        while added < limit {
            match self.poll_entry(cx) {
                Poll::Ready(Some((index, item))) => {
                    buffer.push((self.entries[index].0.clone(), item));
                    added += 1;
                }
                Poll::Ready(None) => break,
                Poll::Pending if added == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(added)
    }
}

impl<K: Clone + Unpin, V: Stream + Unpin> Stream for StreamMap<K, V> {
    type Item = (K, V::Item);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_entry(cx);
        polled.map(|found| found.map(|(index, item)| (self.entries[index].0.clone(), item)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values().fold((0, Some(0)), |(least, most), stream| {
            let (more_least, more_most) = stream.size_hint();
            let most = most.zip(more_most).and_then(|(most, more)| usize::checked_add(most, more));
            (usize::saturating_add(least, more_least), most)
        })
    }
}

impl<K, V> Default for StreamMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for StreamMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, stream)| (key, stream))).finish()
    }
}

impl<K: Hash + Eq, V> FromIterator<(K, V)> for StreamMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Hash + Eq, V> Extend<(K, V)> for StreamMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, stream) in entries {
            self.insert(key, stream);
        }
    }
}
