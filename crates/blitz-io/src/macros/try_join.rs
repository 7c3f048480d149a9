//! `try_join!`: several futures in one task, until all are done or one fails.
//!
//! The macro is built like `join!`, where the naming of the variables is explained.

/// Waits for several futures at once, until all have returned `Ok` or one has returned
/// `Err`.
///
/// If all futures return `Ok`, the result is `Ok` with a tuple of their values. The first
/// `Err` ends the wait, and the futures that have not completed by then are dropped. All
/// futures must have the same error type.
///
/// The futures are polled in turn within the current task, and `biased;` is supported, as
/// in [`join!`](crate::join). A spawned task goes on when its handle is dropped: an error
/// of one handle does not stop the tasks of the others.
///
/// # Cancel safety
///
/// Dropping the enclosing future drops all futures that have not completed, and the outputs
/// of those that have.
///
/// # Examples
///
/// ```
/// async fn number(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
///
/// # blitz_io::run(async {
/// let both = blitz_io::try_join!(number("40"), number("2"));
/// assert_eq!(both, Ok((40, 2)));
///
/// // The first error ends the wait.
/// let failed = blitz_io::try_join!(number("forty"), std::future::pending::<Result<(), _>>());
/// assert!(failed.is_err());
/// # });
/// ```
///
/// Spawned tasks with results of their own:
///
/// ```
/// use std::io;
///
/// /// Returns the output of a task; a panic becomes an error like any other.
/// async fn flat<T>(task: blitz_io::task::JoinHandle<io::Result<T>>) -> io::Result<T> {
///     task.await.unwrap_or_else(|panicked| Err(panicked.into()))
/// }
///
/// # blitz_io::run(async {
/// let fine = blitz_io::spawn(async { Ok(1) });
/// let broken = blitz_io::spawn(async { Err::<(), _>(io::Error::other("disk full")) });
/// let error = blitz_io::try_join!(flat(fine), flat(broken)).unwrap_err();
/// assert_eq!(error.to_string(), "disk full");
/// # });
/// ```
#[macro_export]
macro_rules! try_join {
    (biased; $($future:expr),* $(,)?) => {
        $crate::__try_join!(Declared [] $($future,)*)
    };
    ($($future:expr),* $(,)?) => {
        $crate::__try_join!(Rotating [] $($future,)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __try_join {
    ($order:ident [$($named:tt)*] $future:expr, $($left:tt)*) => {
        $crate::__try_join!($order [$($named)* (future $future)] $($left)*)
    };
    ($order:ident []) => {
        ::core::future::ready(::core::result::Result::Ok(())).await
    };
    ($order:ident [$(($name:ident $future:expr))+]) => {{
        // One error type for all futures.
        let error = ::core::marker::PhantomData;
        $( let $name = $crate::macros::support::Fallible(error, $future, ::core::marker::PhantomData); )+
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
                        match future.poll_ok(cx) {
                            $crate::macros::support::Poll::Ready(::core::result::Result::Ok(())) => {}
                            $crate::macros::support::Poll::Ready(::core::result::Result::Err(error)) => {
                                return $crate::macros::support::Poll::Ready(
                                    ::core::result::Result::Err(error),
                                );
                            }
                            $crate::macros::support::Poll::Pending => waiting = true,
                        }
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
            match ($( unsafe { $crate::macros::support::Pin::new_unchecked(&mut *$name) }.take_ok(), )+) {
                ($( ::core::option::Option::Some($name), )+) => {
                    $crate::macros::support::Poll::Ready(::core::result::Result::Ok(($( $name, )+)))
                }
                _ => ::core::unreachable!("`try_join!` was polled after it had completed"),
            }
        })
        .await
    }};
}
