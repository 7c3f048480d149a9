//! Waiting for the first of many futures.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::wait::future_set::FutureSet;

/// Waits for the first of many futures to complete, and drops the others.
///
/// The futures are polled by the task that awaits the race: at first all of them, beginning
/// with a random one, then each only when it was woken. The losers are dropped in the order
/// in which they were given, before the winner's output is returned.
///
/// # Cancel safety
///
/// The losers are cancelled, so they must be cancel safe. If the race itself is dropped, so
/// are all futures, and none of them has completed.
///
/// # Panics
///
/// Panics if there are no futures, because none could ever win. The future panics if one of
/// the futures does, and if it is polled after that, or after it completed.
///
/// # Examples
///
/// ```
/// use blitz_io::future::{pending, race_all};
///
/// # blitz_io::run(async {
/// let request = async |replica: u32| match replica {
///     3 => "the third replies",
///     _ => pending().await,
/// };
/// assert_eq!(race_all((1..=5).map(request)).await, "the third replies");
/// # });
/// ```
#[track_caller]
pub fn race_all<I>(futures: I) -> RaceAll<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    RaceAll { many: starters(futures), done: false }
}

/// Waits for the first of many futures to succeed, and drops the others.
///
/// Behaves like [`race_all`], except that a future that fails only leaves the race.
///
/// # Errors
///
/// If all futures fail, returns their errors in the order of the futures.
///
/// # Cancel safety
///
/// The losers are cancelled, so they must be cancel safe. If the race itself is dropped, so
/// are the futures that are left and the errors of those that failed; none has succeeded.
///
/// # Panics
///
/// Panics if there are no futures. The future panics if one of the futures does, and if it is
/// polled after that, or after it completed.
///
/// # Examples
///
/// ```
/// use blitz_io::future::race_ok;
///
/// # blitz_io::run(async {
/// let parse = async |text: &str| text.parse::<i32>();
/// assert_eq!(race_ok(["one", "2"].map(parse)).await, Ok(2));
/// let errors = race_ok(["one", "two"].map(parse)).await.unwrap_err();
/// assert_eq!(errors.len(), 2);
/// # });
/// ```
#[track_caller]
pub fn race_ok<I, T, E>(futures: I) -> RaceOk<<I::Item as IntoFuture>::IntoFuture, E>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    let many = starters(futures);
    let errors = (0..many.running()).map(|_| None).collect();
    RaceOk { many, errors, done: false }
}

#[track_caller]
fn starters<I, F: Future>(futures: I) -> FutureSet<F>
where
    I: IntoIterator<Item: IntoFuture<IntoFuture = F>>,
{
    let many = FutureSet::new(futures.into_iter().map(IntoFuture::into_future), super::any_index);
    assert!(many.running() > 0, "a race without futures has no end: give it one at least");
    many
}

/// Future returned by [`race_all`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{RaceAll, Ready, race_all, ready};
///
/// let alone: RaceAll<Ready<u8>> = race_all([ready(1)]);
/// assert_eq!(blitz_io::run(alone), 1);
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct RaceAll<F> {
    many: FutureSet<F>,
    done: bool,
}

impl<F: Future> Future for RaceAll<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        assert!(!this.done, "`race_all` is polled after it is done");
        let (_, output) = ready!(this.many.poll_next(cx)).expect("there is one at least");
        this.done = true;
        this.many.clear();
        Poll::Ready(output)
    }
}

impl<F> fmt::Debug for RaceAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaceAll").field("futures", &self.many).finish_non_exhaustive()
    }
}

/// Future returned by [`race_ok`].
///
/// # Examples
///
/// ```
/// use blitz_io::future::{RaceOk, Ready, race_ok, ready};
///
/// let alone: RaceOk<Ready<Result<(), u8>>, u8> = race_ok([ready(Err(1))]);
/// assert_eq!(blitz_io::run(alone), Err(vec![1]));
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct RaceOk<F, E> {
    many: FutureSet<F>,
    errors: Vec<Option<E>>,
    done: bool,
}

/// Nothing in this type is pinned: the futures are in a box, and errors are only moved.
impl<F, E> Unpin for RaceOk<F, E> {}

impl<T, E, F: Future<Output = Result<T, E>>> Future for RaceOk<F, E> {
    type Output = Result<T, Vec<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.done, "`race_ok` is polled after it is done");
        while let Some((index, output)) = ready!(this.many.poll_next(cx)) {
            match output {
                Err(error) => this.errors[index] = Some(error),
                Ok(value) => {
                    this.done = true;
                    this.many.clear();
                    this.errors.clear();
                    return Poll::Ready(Ok(value));
                }
            }
        }
        this.done = true;
        // By value and without filtering, so that `collect` reuses the memory of the vector.
        let errors = std::mem::take(&mut this.errors).into_iter();
        Poll::Ready(Err(errors.map(|error| error.expect("all have failed")).collect()))
    }
}

impl<F, E> fmt::Debug for RaceOk<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaceOk").field("futures", &self.many).finish_non_exhaustive()
    }
}
