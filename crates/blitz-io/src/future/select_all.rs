//! Many, one after the other, as they end.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use crate::engine::wait::many::Many;

/// Takes many futures, to be waited for one by one, in the order in which they end.
///
/// They are polled by the task that awaits [`next`](SelectAll::next), and only then: at
/// first each, from a random one on, then each when it was woken, those that were woken
/// first before others. Dropping the set drops those that have not ended.
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
/// while let Some((place, turns)) = waits.next().await {
///     ended.push((place, turns));
/// }
/// assert_eq!(ended, [(1, 0), (2, 1), (0, 2)]);
/// # });
/// ```
pub fn select_all<I>(futures: I) -> SelectAll<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    SelectAll { many: Many::new(futures.into_iter().map(IntoFuture::into_future), super::anyone) }
}

/// What [`select_all`] gives: futures that have not ended.
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
    many: Many<F>,
}

impl<F: Future> SelectAll<F> {
    /// Waits until a future ends, and gives its place among those that
    /// [`select_all`] took, from 0, and its output; `None` if all have ended.
    ///
    /// # Cancel safety
    ///
    /// If this is dropped before it is done, no future has ended by it, and the set is
    /// as it was: the next call goes on. So it may stand in a branch of
    /// [`select!`](crate::select).
    ///
    /// # Panics
    ///
    /// The future panics if one of the futures does, and from then on.
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

    /// [`next`](Self::next) for those who poll by hand.
    ///
    /// # Panics
    ///
    /// If one of the futures does, and from then on.
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

    /// How many have not ended.
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

    /// Whether all have ended.
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

/// What [`SelectAll::next`] gives.
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
