//! Waiting for the first of a few futures.
//!
//! All of the few are polled whenever one was woken: for such a small number that is cheaper
//! than a waker for each, and it allocates nothing.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

/// Waits for the first of a few futures to complete, and drops the others.
///
/// The futures are the members of a tuple, from two to eight, all with the same output.
/// They may be of different types. Where outputs differ, make them variants of an
/// `enum`, or use [`select!`](crate::select). For many futures of one type there is
/// [`race_all`](super::race_all).
///
/// Each poll of the race polls every future, beginning with a random one: if several are
/// ready, any of them may win. The losers are dropped in the order in which they were given,
/// before the winner's output is returned.
///
/// # Cancel safety
///
/// The losers are cancelled, so they must be cancel safe. If the race itself is dropped, so
/// are all futures, and none of them has completed.
///
/// # Panics
///
/// The future panics if one of the futures does, and if it is polled after it completed.
///
/// # Examples
///
/// ```
/// use blitz_io::future::{pending, race};
///
/// # blitz_io::run(async {
/// async fn from_the_cache() -> &'static str {
///     pending().await
/// }
///
/// let found = race((from_the_cache(), async { "from the source" })).await;
/// assert_eq!(found, "from the source");
/// # });
/// ```
pub fn race<R: Race>(futures: R) -> R::Future {
    futures.into_race()
}

/// Futures that [`race`] accepts: tuples of two to eight futures with the same output.
///
/// # Examples
///
/// ```
/// use blitz_io::future::{Race, race};
///
/// async fn twice<R: Race<Output = u32>>(futures: R) -> u32 {
///     2 * race(futures).await
/// }
///
/// # blitz_io::run(async {
/// assert_eq!(twice((async { 1 }, async { 1 })).await, 2);
/// # });
/// ```
pub trait Race {
    /// The output of each future.
    type Output;

    /// The future that [`race`] returns.
    type Future: Future<Output = Self::Output>;

    /// Creates the future; called by [`race`].
    #[doc(hidden)]
    fn into_race(self) -> Self::Future;
}

pin_project! {
    /// One future of a race, until it completes or loses.
    // With C's layout the tag has memory of its own. In an `Option` it could be in a niche of
    // the future, and reading it would read the future's memory from outside while the future
    // keeps pointers into itself.
    #[repr(C)]
    #[project = Projected]
    enum Runner<F> {
        Running { #[pin] future: F },
        Gone,
    }
}

impl<F: Future> Runner<F> {
    /// Polls the future; one that is gone is always pending.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            Projected::Running { future } => future.poll(cx),
            Projected::Gone => Poll::Pending,
        }
    }
}

macro_rules! races {
    ($($name:ident $count:literal: $($runner:ident $field:ident $place:literal),+;)+) => {$(
        pin_project! {
            #[doc = concat!("A race of ", $count, ".")]
            #[must_use = "futures do nothing unless they are awaited"]
            pub struct $name<$($runner),+> {
                $(#[pin] $field: Runner<$runner>,)+
                done: bool,
            }
        }

        impl<$($runner),+> std::fmt::Debug for $name<$($runner),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct("Race").field("done", &self.done).finish_non_exhaustive()
            }
        }

        impl<T, $($runner: Future<Output = T>),+> Future for $name<$($runner),+> {
            type Output = T;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
                let mut this = self.project();
                assert!(!*this.done, "a race is polled after it is done");
                let first = super::any_index($count);
                for turn in 0..$count {
                    let polled = match (first + turn) % $count {
                        $($place => this.$field.as_mut().poll(cx),)+
                        _ => unreachable!("a remainder is below what was divided by"),
                    };
                    if let Poll::Ready(output) = polled {
                        *this.done = true;
                        $(this.$field.set(Runner::Gone);)+
                        return Poll::Ready(output);
                    }
                }
                Poll::Pending
            }
        }

        impl<T, $($runner: Future<Output = T>),+> Race for ($($runner,)+) {
            type Output = T;
            type Future = $name<$($runner),+>;

            fn into_race(self) -> Self::Future {
                let ($($field,)+) = self;
                $name { $($field: Runner::Running { future: $field },)+ done: false }
            }
        }
    )+};
}

races! {
    RaceOf2 2: A a 0, B b 1;
    RaceOf3 3: A a 0, B b 1, C c 2;
    RaceOf4 4: A a 0, B b 1, C c 2, D d 3;
    RaceOf5 5: A a 0, B b 1, C c 2, D d 3, E e 4;
    RaceOf6 6: A a 0, B b 1, C c 2, D d 3, E e 4, F f 5;
    RaceOf7 7: A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6;
    RaceOf8 8: A a 0, B b 1, C c 2, D d 3, E e 4, F f 5, G g 6, H h 7;
}
