//! Waiting for all of many futures.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::wait::future_set::FutureSet;

/// Waits for all of many futures and returns their outputs in the order of the futures.
///
/// Nothing is spawned: the futures are polled by the task that awaits this, each only when it
/// was woken. A future is dropped as soon as it has completed.
///
/// # Cancel safety
///
/// Dropping this drops the futures that have not completed, and the outputs of those that
/// have.
///
/// # Panics
///
/// The future panics if one of the futures does, and if it is polled after that, or
/// after it completed.
///
/// # Examples
///
/// ```
/// use blitz_io::future::join_all;
///
/// # blitz_io::run(async {
/// let squares = join_all((1..=4).map(async |n| n * n)).await;
/// assert_eq!(squares, [1, 4, 9, 16]);
/// # });
/// ```
pub fn join_all<I>(futures: I) -> JoinAll<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    JoinAll(Gathered::new(futures))
}

/// Waits for all of many futures to succeed, or for the first one that fails.
///
/// Behaves like [`join_all`], except that an error ends it at once: the futures that have not
/// completed are dropped, and so are the values of those that have, before the error is
/// returned.
///
/// # Errors
///
/// Returns the first error that occurs.
///
/// # Cancel safety
///
/// Dropping this drops the futures that have not completed, and the values of those that
/// have. An error cancels the other futures too.
///
/// # Panics
///
/// The future panics if one of the futures does, and if it is polled after that, or
/// after it completed.
///
/// # Examples
///
/// ```
/// use blitz_io::future::try_join_all;
///
/// # blitz_io::run(async {
/// let parse = async |text: &str| text.parse::<i32>();
/// assert_eq!(try_join_all(["1", "2"].map(parse)).await, Ok(vec![1, 2]));
/// assert!(try_join_all(["1", "two"].map(parse)).await.is_err());
/// # });
/// ```
pub fn try_join_all<I, T, E>(futures: I) -> TryJoinAll<<I::Item as IntoFuture>::IntoFuture, T>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    TryJoinAll(Gathered::new(futures))
}

/// Futures, and the outputs of those that have completed.
struct Gathered<F, T> {
    many: FutureSet<F>,
    outputs: Vec<Option<T>>,
    done: bool,
}

impl<F: Future, T> Gathered<F, T> {
    fn new<I>(futures: I) -> Self
    where
        I: IntoIterator<Item: IntoFuture<IntoFuture = F>>,
    {
        // In order: all must complete, so it does not matter which one begins.
        let many = FutureSet::new(futures.into_iter().map(IntoFuture::into_future), |_| 0);
        let outputs = (0..many.running()).map(|_| None).collect();
        Self { many, outputs, done: false }
    }

    fn finish(&mut self) -> Vec<T> {
        self.done = true;
        // By value, so that `collect` reuses the memory of the vector.
        let outputs = std::mem::take(&mut self.outputs).into_iter();
        outputs.map(|output| output.expect("all have ended")).collect()
    }
}

/// Future returned by [`join_all`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{JoinAll, Ready, join_all, ready};
///
/// let both: JoinAll<Ready<u8>> = join_all([ready(1), ready(2)]);
/// assert_eq!(blitz_io::run(both), [1, 2]);
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct JoinAll<F: Future>(Gathered<F, F::Output>);

/// Nothing in this type is pinned: the futures are in a box, and outputs are only moved.
impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut self.get_mut().0;
        assert!(!this.done, "`join_all` is polled after it is done");
        while let Some((index, output)) = ready!(this.many.poll_next(cx)) {
            this.outputs[index] = Some(output);
        }
        Poll::Ready(this.finish())
    }
}

impl<F: Future> fmt::Debug for JoinAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAll").field("running", &self.0.many.running()).finish_non_exhaustive()
    }
}

/// Future returned by [`try_join_all`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{Ready, TryJoinAll, ready, try_join_all};
///
/// let both: TryJoinAll<Ready<Result<u8, ()>>, u8> = try_join_all([ready(Ok(1)), ready(Ok(2))]);
/// assert_eq!(blitz_io::run(both), Ok(vec![1, 2]));
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct TryJoinAll<F, T>(Gathered<F, T>);

/// Nothing in this type is pinned: the futures are in a box, and values are only moved.
impl<F, T> Unpin for TryJoinAll<F, T> {}

impl<T, E, F: Future<Output = Result<T, E>>> Future for TryJoinAll<F, T> {
    type Output = Result<Vec<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut self.get_mut().0;
        assert!(!this.done, "`try_join_all` is polled after it is done");
        while let Some((index, output)) = ready!(this.many.poll_next(cx)) {
            match output {
                Ok(value) => this.outputs[index] = Some(value),
                Err(error) => {
                    this.done = true;
                    this.many.clear();
                    this.outputs.clear();
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(this.finish()))
    }
}

impl<F, T> fmt::Debug for TryJoinAll<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryJoinAll").field("futures", &self.0.many).finish_non_exhaustive()
    }
}
