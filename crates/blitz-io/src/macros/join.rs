//! `join!`: several futures in one task, until all are done.
//!
//! # Names without end
//! The expansion needs a variable per future, and a declarative macro cannot count. But the
//! macro can call itself once per future, and by hygiene a name that one expansion
//! introduces differs from the same name in the expansion before. So `future` below is as
//! many variables as there are futures.
//!
//! # Rejected
//! A nested list of pairs would need no names, but it pads each future separately: a byte,
//! a word and a byte would take three words instead of two.

/// Waits for several futures at once, and returns all their outputs in a tuple.
///
/// The futures are polled in turn within the current task: they run concurrently, but never
/// in parallel. To use several cores, [spawn](crate::task::spawn) them and join the
/// handles. The macro waits for all outputs, even after an error;
/// [`try_join!`](crate::try_join) ends with the first error.
///
/// The macro takes any number of futures, and anything that implements `IntoFuture`.
///
/// # Order of polls
///
/// Each poll of the task begins with another future, so that a future that uses up the
/// whole budget of the task does not block the others for ever. If the list begins with
/// `biased;`, the futures are always polled from left to right instead. That saves the
/// counter, but then the caller has to make sure that a busy future on the left does not
/// starve those on its right.
///
/// # Cancel safety
///
/// Dropping the enclosing future drops all futures that have not completed, and the outputs
/// of those that have.
///
/// # Examples
///
/// ```
/// async fn price() -> u32 { 40 }
/// async fn postage() -> u32 { 2 }
///
/// # blitz_io::run(async {
/// let (price, postage) = blitz_io::join!(price(), postage());
/// assert_eq!(price + postage, 42);
/// # });
/// ```
///
/// With tasks on several threads, and a fixed order of polls:
///
/// ```
/// # blitz_io::run(async {
/// let left = blitz_io::spawn(async { 1 });
/// let right = blitz_io::spawn(async { 2 });
/// let (left, right) = blitz_io::join!(biased; left, right);
/// assert_eq!(left.unwrap() + right.unwrap(), 3);
/// # });
/// ```
#[macro_export]
macro_rules! join {
    (biased; $($future:expr),* $(,)?) => {
        $crate::__join!(Declared [] $($future,)*)
    };
    ($($future:expr),* $(,)?) => {
        $crate::__join!(Rotating [] $($future,)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __join {
    ($order:ident [$($named:tt)*] $future:expr, $($left:tt)*) => {
        $crate::__join!($order [$($named)* (future $future)] $($left)*)
    };
    ($order:ident []) => {
        ::core::future::ready(()).await
    };
    ($order:ident [$(($name:ident $future:expr))+]) => {{
        $( let $name = $crate::macros::support::Awaited($future); )+
        let mut futures = ($( $crate::macros::support::Joined::new($name), )+);
        // The closure has only a reference to the futures, so it may be moved although they
        // may not.
        let futures = &mut futures;
        let mut order = <$crate::macros::support::$order as ::core::default::Default>::default();
        $crate::macros::support::poll_fn(move |cx| {
            let ($( $name, )+) = &mut *futures;
            let first = order.first();
            let mut waiting = false;
            let mut count = 0u32;
            // Polls from the first future to the end, then from the beginning to the first.
            for wrapped in [false, true] {
                count = 0u32;
                $(
                    if (count < first) == wrapped {
                        // SAFETY: the futures are in a variable that nothing else can name,
                        // and stay there until they are dropped.
                        let future = unsafe { $crate::macros::support::Pin::new_unchecked(&mut *$name) };
                        waiting |= future.poll(cx).is_pending();
                    }
                    count += 1u32;
                )+
            }
            order.advance(count);
            if waiting {
                return $crate::macros::support::Poll::Pending;
            }
            // SAFETY: the futures stay in a variable that nothing else can name until they are
            // dropped.
            match ($( unsafe { $crate::macros::support::Pin::new_unchecked(&mut *$name) }.take(), )+) {
                ($( ::core::option::Option::Some($name), )+) => {
                    $crate::macros::support::Poll::Ready(($( $name, )+))
                }
                _ => ::core::unreachable!("`join!` was polled after it had completed"),
            }
        })
        .await
    }};
}
