//! Waiting for many futures one by one, as they complete.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::wait::future_set::FutureSet;

/// Creates a set of many futures that can be awaited one by one, in the order in which they
/// complete.
///
/// The futures are polled by the task that awaits [`next`](SelectAll::next), and only then:
/// at first all of them, beginning with a random one, then each when it was woken, in the
/// order of the wake-ups. Dropping the set drops the futures that have not completed.
///
/// # Examples
///
/// ```
/// use blitz_io::{future::select_all, task::yield_now};
///
/// # blitz_io::run(async {
/// let mut waits = select_all([2, 0, 1].map(async |turns| {
///     for _ in 0..turns {
///         yield_now().await;
///     }
///     turns
/// }));
/// let mut ended = Vec::new();
/// while let Some((index, turns)) = waits.next().await {
///     ended.push((index, turns));
/// }
/// assert_eq!(ended, [(1, 0), (2, 1), (0, 2)]);
/// # });
/// ```
pub fn select_all<I>(futures: I) -> SelectAll<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    SelectAll {
        many: FutureSet::new(futures.into_iter().map(IntoFuture::into_future), super::any_index),
    }
}

/// Set of futures that have not completed yet, created by [`select_all`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{Ready, SelectAll, ready, select_all};
///
/// # blitz_io::run(async {
/// let mut one: SelectAll<Ready<char>> = select_all([ready('a')]);
/// assert_eq!(one.len(), 1);
/// assert_eq!(one.next().await, Some((0, 'a')));
/// assert!(one.is_empty());
/// assert_eq!(one.next().await, None);
/// # });
/// ```
pub struct SelectAll<F> {
    many: FutureSet<F>,
}

impl<F: Future> SelectAll<F> {
    /// Waits until a future completes and returns its index among those that [`select_all`] was
    /// given, from 0, and its output; returns `None` if all have completed.
    ///
    /// # Cancel safety
    ///
    /// If this is dropped before it completes, no output is lost and the set is as it was: the
    /// next call goes on. So it can be used in a branch of [`select!`](crate::select).
    ///
    /// # Panics
    ///
    /// The future panics if one of the futures does, and at every poll after that.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::future::{ready, select_all};
    ///
    /// # blitz_io::run(async {
    /// let mut both = select_all([ready(1), ready(2)]);
    /// let mut sum = 0;
    /// while let Some((_, number)) = both.next().await {
    ///     sum += number;
    /// }
    /// assert_eq!(sum, 3);
    /// # });
    /// ```
    #[allow(clippy::should_implement_trait, reason = "a stream's name for it, not an iterator's")]
    pub fn next(&mut self) -> Next<'_, F> {
        Next { all: self }
    }

    /// Polls for the next future that completes, like [`next`](Self::next).
    ///
    /// # Panics
    ///
    /// Panics if one of the futures does, and at every call after that.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::future::{poll_fn, ready, select_all};
    ///
    /// # blitz_io::run(async {
    /// let mut one = select_all([ready(1)]);
    /// assert_eq!(poll_fn(|cx| one.poll_next(cx)).await, Some((0, 1)));
    /// # });
    /// ```
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        self.many.poll_next(cx)
    }

    /// Returns the number of futures that have not completed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::future::{pending, select_all};
    ///
    /// assert_eq!(select_all([pending::<()>(), pending()]).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.many.running()
    }

    /// Returns `true` if all futures have completed.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::future::{Ready, select_all};
    ///
    /// assert!(select_all::<[Ready<()>; 0]>([]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<F> fmt::Debug for SelectAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectAll").field("futures", &self.many).finish()
    }
}

/// Future returned by [`SelectAll::next`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{Next, Ready, ready, select_all};
///
/// # blitz_io::run(async {
/// let mut one = select_all([ready(1)]);
/// let next: Next<'_, Ready<i32>> = one.next();
/// assert_eq!(next.await, Some((0, 1)));
/// # });
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct Next<'a, F> {
    all: &'a mut SelectAll<F>,
}

impl<F: Future> Future for Next<'_, F> {
    type Output = Option<(usize, F::Output)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().all.poll_next(cx)
    }
}

impl<F> fmt::Debug for Next<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("all", &self.all).finish()
    }
}
