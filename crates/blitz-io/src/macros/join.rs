//! `join!`: several futures in one task, until all are done.
//!
//! # Names without end
//! The expansion needs a variable per future, and a pattern macro cannot count.
//! But it can call itself once per future, and a name that an expansion writes
//! is not the same name as in the expansion before. So `future` below is as many
//! variables as there are futures.
//!
//! # Rejected
//! A list of pairs in pairs would need no names, but pads each future for itself:
//! a byte, a word and a byte would take three words instead of two.

/// Waits for several futures at once, and gives all their outputs in a tuple.
///
/// The futures run in turns within the current task: concurrently, but never in
/// parallel. To use several cores, [spawn](crate::task::spawn) them and join the
/// handles. All outputs are waited for, errors too; [`try_join!`](crate::try_join)
/// ends with the first error.
///
/// Any number of futures may be given, and everything that can be made into a
/// future.
///
/// # Whose turn it is
///
/// Every time the task is polled another future is polled first, so that one
/// which uses up the whole budget of the task does not keep the others waiting
/// for ever. Written first, `biased;` always polls from the left to the right
/// instead. That spares the counter, and then it is up to the caller that a busy
/// future at the left does not starve those at its right.
///
/// # Cancel safety
///
/// Dropping the future that contains it drops all futures that are not done, and
/// the outputs of those that are.
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
/// On several threads, and polled in this order:
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
        // The closure has a reference, not the futures: it may be moved, they not.
        let futures = &mut futures;
        let mut order = <$crate::macros::support::$order as ::core::default::Default>::default();
        $crate::macros::support::poll_fn(move |cx| {
            let ($( $name, )+) = &mut *futures;
            let first = order.first();
            let mut waiting = false;
            let mut count = 0u32;
            // From the first to the end, then from the beginning to the first.
            for wrapped in [false, true] {
                count = 0u32;
                $(
                    if (count < first) == wrapped {
                        // SAFETY: the futures lie in a variable that nothing else
                        // can name, and stay there until they are dropped.
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
            // SAFETY: as above.
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
