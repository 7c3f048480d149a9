//! `select!`: several futures in one task, until the first is done.
//!
//! # How it is put together
//! `__select!` takes one branch per call and gives it the next entry of a list:
//! its number, its name and a `_`. The name is that of the variable that holds
//! its future, and of its variant of `Finished`; the `_` stands for the type of
//! its output. When no branch is left, the head of the list is their number.
//!
//! # Whether an output matches
//! A pattern may move out of what it matches, and so may be tried once only: in
//! the last `match`, after all futures are dropped. But whether it matches must be
//! known before. A guard that notes that it was asked, and then declines, finds
//! that out: it runs only after its pattern has matched, and bindings are moved
//! only after it has agreed.
//!
//! # Rejected
//! Matching on a reference to the output. It needs a pattern without `mut`, `ref`
//! and `&`, thus a procedural macro that rewrites it; and a pattern that was right
//! for a value may be wrong for a reference to it.

/// Waits for several futures at once, runs the handler of the first that completes
/// with an output that fits, and drops the others.
///
/// It is used in async code, with branches like these:
///
/// ```text
/// <pattern> = <future> (, if <precondition>)? => <handler>,
/// ```
///
/// and at the end, if it is wanted, `else => <expression>`. There may be 64
/// branches. A comma may be left out after a handler that is a block, and after
/// the last one. Handlers are ordinary code of the function around: they may
/// `.await`, `return`, `break` and use `?`, and they all have the same type, which
/// is that of the whole.
///
/// # What happens
///
/// 1. The preconditions are evaluated. A branch whose precondition is false is
///    disabled.
/// 2. The expressions of all futures are evaluated, those of disabled branches
///    too; but their futures are never polled.
/// 3. The futures are polled in turns, beginning with one that is drawn by lot
///    each time.
/// 4. When one completes, its output is compared to the pattern. If it does not
///    match, the branch is disabled, and the others go on.
/// 5. If it matches, all futures are dropped, and the handler runs.
/// 6. When all branches are disabled, `else` is evaluated.
///
/// The futures run within the current task: concurrently, but never in parallel.
/// To use several cores, [spawn](crate::task::spawn) them and select among the
/// handles.
///
/// # Fairness
///
/// The lot makes it fair: a branch that is always ready does not keep another from
/// winning. Written first, `biased;` polls from the top to the bottom instead. That
/// spares the draw and makes the order certain, and then it is up to the caller
/// that those below are not starved: put what ends the loop above what feeds it.
///
/// A task that has used up its budget goes to the end of its queue before any
/// branch is polled, so a loop around `select!` lets other tasks run.
///
/// # Panics
///
/// If all branches are disabled and there is no `else`.
///
/// # Cancel safety
///
/// The futures that have not won are dropped at whatever `.await` they were. In a
/// loop this happens all the time, so each of them should be *cancel safe*: when it
/// is dropped before it completes, nothing is lost, and starting it anew goes on
/// where it was. The documentation of a function says whether it is.
///
/// - An `async` block or function is as safe as its weakest `.await` that has
///   something done before it and something to do after it: what was read, taken or
///   counted, and lies in its variables, is lost.
/// - What must not be lost can be made once, outside of the loop, and given to the
///   branch by reference (`&mut future`): it then goes on with the next round.
///   [`pin!`](crate::pin) serves for futures that are not `Unpin`. A
///   [`JoinHandle`](crate::task::JoinHandle) is `Unpin`, and its task goes on
///   whatever becomes of the handle.
/// - A future that has completed must not be polled again. Use a precondition for
///   that: `&mut future, if !done`.
///
/// # Examples
///
/// ```
/// async fn ask(mirror: &str) -> String {
///     # if mirror == "far" { std::future::pending::<()>().await }
///     format!("from {mirror}")
/// }
///
/// # blitz_io::run(async {
/// let answer = blitz_io::select! {
///     answer = ask("near") => answer,
///     answer = ask("far") => answer,
/// };
/// assert_eq!(answer, "from near");
/// # });
/// ```
///
/// A future that lives longer than a round, and a branch that is disabled when its
/// pattern does not match:
///
/// ```
/// # async fn next(left: &mut Vec<u32>) -> Option<u32> {
/// #     blitz_io::task::yield_now().await;
/// #     left.pop()
/// # }
/// # blitz_io::run(async {
/// let mut left = vec![3, 2, 1];
/// let mut task = blitz_io::spawn(async { 10 });
/// let (mut sum, mut done) = (0, false);
/// loop {
///     blitz_io::select! {
///         Some(number) = next(&mut left) => sum += number,
///         result = &mut task, if !done => {
///             sum += result.unwrap();
///             done = true;
///         }
///         else => break,
///     }
/// }
/// assert_eq!(sum, 16);
/// # });
/// ```
///
/// A precondition is evaluated once, before anything is polled; it cannot know
/// what the futures find out. What a handler needs to know is better part of the
/// output.
///
/// In a fixed order, so that the end is seen even if there is always work:
///
/// ```
/// use blitz_io::task::yield_now;
///
/// # blitz_io::run(async {
/// let end = async {
///     for _ in 0..3 { yield_now().await }
/// };
/// blitz_io::pin!(end);
/// let mut rounds = 0;
/// loop {
///     blitz_io::select! {
///         biased;
///
///         () = &mut end => break,
///         () = std::future::ready(()) => {
///             rounds += 1;
///             yield_now().await;
///         }
///     }
/// }
/// assert_eq!(rounds, 3);
/// # });
/// ```
#[macro_export]
macro_rules! select {
    () => {
        ::core::compile_error!("select! requires at least one branch.")
    };
    (biased;) => {
        ::core::compile_error!("select! requires at least one branch.")
    };
    (biased; $($branches:tt)+) => {
        $crate::__select!(@begin in_order $($branches)+)
    };
    ($($branches:tt)+) => {
        $crate::__select!(@begin thread_rng_n $($branches)+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    (@begin $start:ident $($branches:tt)+) => {
        $crate::__select!($start [] [
            (0 _0 _) (1 _1 _) (2 _2 _) (3 _3 _) (4 _4 _) (5 _5 _) (6 _6 _) (7 _7 _)
            (8 _8 _) (9 _9 _) (10 _10 _) (11 _11 _) (12 _12 _) (13 _13 _) (14 _14 _)
            (15 _15 _) (16 _16 _) (17 _17 _) (18 _18 _) (19 _19 _) (20 _20 _) (21 _21 _)
            (22 _22 _) (23 _23 _) (24 _24 _) (25 _25 _) (26 _26 _) (27 _27 _) (28 _28 _)
            (29 _29 _) (30 _30 _) (31 _31 _) (32 _32 _) (33 _33 _) (34 _34 _) (35 _35 _)
            (36 _36 _) (37 _37 _) (38 _38 _) (39 _39 _) (40 _40 _) (41 _41 _) (42 _42 _)
            (43 _43 _) (44 _44 _) (45 _45 _) (46 _46 _) (47 _47 _) (48 _48 _) (49 _49 _)
            (50 _50 _) (51 _51 _) (52 _52 _) (53 _53 _) (54 _54 _) (55 _55 _) (56 _56 _)
            (57 _57 _) (58 _58 _) (59 _59 _) (60 _60 _) (61 _61 _) (62 _62 _) (63 _63 _)
            (64)
        ] $($branches)+)
    };

    // The end, with and without `else`.
    ($start:ident [$($taken:tt)*] [($count:tt $($entry:tt)*) $($free:tt)*]) => {
        $crate::__select!(@finish $start $count [$($taken)*]
            ::core::panic!("all branches are disabled and there is no else branch"))
    };
    ($start:ident [$($taken:tt)*] [($count:tt $($entry:tt)*) $($free:tt)*]
        else => $else:expr $(,)?) => {
        $crate::__select!(@finish $start $count [$($taken)*] $else)
    };
    ($start:ident [$($taken:tt)*] [$($free:tt)*] else => $else:expr, $($rest:tt)+) => {
        ::core::compile_error!("`else` is the last branch of select!: move it to the end")
    };
    ($start:ident [$($taken:tt)*] [(64)] $($rest:tt)+) => {
        ::core::compile_error!("up to 64 branches supported")
    };

    // A branch: its handler is a block, or an expression with a comma behind it, or
    // the last.
    ($start:ident [$($taken:tt)*] [($($entry:tt)*) $($free:tt)*]
        $pattern:pat = $future:expr $(, if $precondition:expr)? => $handler:block, $($rest:tt)*) => {
        $crate::__select!($start
            [$($taken)* ($($entry)*; $pattern = $future, [$($precondition)?] => $handler)]
            [$($free)*] $($rest)*)
    };
    ($start:ident [$($taken:tt)*] [($($entry:tt)*) $($free:tt)*]
        $pattern:pat = $future:expr $(, if $precondition:expr)? => $handler:block $($rest:tt)*) => {
        $crate::__select!($start
            [$($taken)* ($($entry)*; $pattern = $future, [$($precondition)?] => $handler)]
            [$($free)*] $($rest)*)
    };
    ($start:ident [$($taken:tt)*] [($($entry:tt)*) $($free:tt)*]
        $pattern:pat = $future:expr $(, if $precondition:expr)? => $handler:expr) => {
        $crate::__select!($start
            [$($taken)* ($($entry)*; $pattern = $future, [$($precondition)?] => $handler)]
            [$($free)*])
    };
    ($start:ident [$($taken:tt)*] [($($entry:tt)*) $($free:tt)*]
        $pattern:pat = $future:expr $(, if $precondition:expr)? => $handler:expr, $($rest:tt)*) => {
        $crate::__select!($start
            [$($taken)* ($($entry)*; $pattern = $future, [$($precondition)?] => $handler)]
            [$($free)*] $($rest)*)
    };

    // Nothing but `else`.
    (@finish $start:ident $count:tt [] $else:expr) => {
        $else
    };
    (@finish $start:ident $count:tt [$((
        $number:tt $name:ident $any:tt; $pattern:pat = $future:expr,
        [$($precondition:expr)?] => $handler:expr
    ))+] $else:expr) => {{
        // In a block of their own, so that the futures are dropped before a handler
        // runs: it may use what they have borrowed.
        let finished = {
            let mut disabled =
                $crate::macros::support::Disabled::<{ $crate::macros::support::bytes($count) }>::none();
            $($(
                let enabled: bool = $precondition;
                if !enabled {
                    disabled.add($number);
                }
            )?)+
            $( let $name = $crate::macros::support::Awaited($future); )+
            let mut futures = ($( $crate::macros::support::IntoFuture::into_future($name), )+);
            $crate::macros::support::poll_fn(|cx| {
                $crate::macros::support::ready!($crate::macros::support::poll_budget_available(cx));
                // This borrows the whole variable, so the closure has a reference to
                // the futures: it may be moved, they not.
                let futures = &mut futures;
                let first = $crate::macros::support::$start($count);
                let mut waiting = false;
                for wrapped in [false, true] {$(
                    if disabled.is_next($number, first, wrapped) {
                        // No code of the user's is in here, except for patterns.
                        #[allow(unused_variables, unused_mut, unreachable_code, unreachable_patterns)]
                        'branch: {
                            // SAFETY: the futures lie in a variable that nothing else can
                            // name, and stay there until they are dropped.
                            let future = unsafe {
                                $crate::macros::support::Pin::new_unchecked(&mut futures.$number)
                            };
                            let output = match $crate::macros::support::Future::poll(future, cx) {
                                $crate::macros::support::Poll::Ready(output) => output,
                                $crate::macros::support::Poll::Pending => {
                                    waiting = true;
                                    break 'branch;
                                }
                            };
                            disabled.add($number);
                            let mut matches = false;
                            match { output } {
                                $pattern if { matches = true; false } => {}
                                output => if matches {
                                    return $crate::macros::support::Poll::Ready(
                                        $crate::macros::support::Finished::$name(output),
                                    );
                                },
                            }
                        }
                    }
                )+}
                if waiting {
                    return $crate::macros::support::Poll::Pending;
                }
                let none: $crate::macros::support::Finished<$($any),+> =
                    $crate::macros::support::Finished::Disabled;
                $crate::macros::support::Poll::Ready(none)
            })
            .await
        };
        // In braces it is a value, which a pattern may change: `ref mut`.
        match { finished } {
            $( $crate::macros::support::Finished::$name($pattern) => $handler, )+
            $crate::macros::support::Finished::Disabled => $else,
            #[allow(unreachable_patterns)]
            _ => ::core::unreachable!("a pattern of `select!` matched once and then no more"),
        }
    }};
}
