//! `select!`: several futures in one task, until the first is done.
//!
//! # How it is put together
//! `__select!` takes one branch per call and assigns it the next entry of a list: its
//! number, its name and a `_`. The name is that of the variable that holds its future, and
//! of its variant of `Finished`; the `_` stands for the type of its output. When no branch
//! is left, the head of the list is the number of branches.
//!
//! # Whether an output matches
//! A pattern may move out of the value that it matches, so it can be applied only once: in
//! the last `match`, after all futures are dropped. But the macro must know before whether
//! it matches. A guard that sets a flag and then returns false finds that out: a guard runs
//! only after its pattern has matched, and bindings are moved only after the guard has
//! returned true.
//!
//! # Rejected
//! Matching on a reference to the output. This needs a pattern without `mut`, `ref` and
//! `&`, and so a procedural macro that rewrites it; and a pattern that was right for a
//! value may be wrong for a reference to it.

/// Waits for several futures at once, runs the handler of the first one to complete with an
/// output that matches its pattern, and drops the others.
///
/// The macro is used in async code, with branches of this form:
///
/// ```text
/// <pattern> = <future> (, if <precondition>)? => <handler>,
/// ```
///
/// and optionally `else => <expression>` at the end. There may be up to 64 branches. The
/// comma may be omitted after a handler that is a block, and after the last handler.
/// Handlers are ordinary code of the enclosing function: they may `.await`, `return`,
/// `break` and use `?`. All handlers have the same type, which is the type of the whole
/// expression.
///
/// # What happens
///
/// 1. The preconditions are evaluated. If the precondition of a branch is false, the branch
///    is disabled.
/// 2. The expressions of all futures are evaluated, including those of disabled branches;
///    but the futures of disabled branches are never polled.
/// 3. The futures are polled in turn, beginning with one that is chosen at random each
///    time.
/// 4. When a future completes, its output is matched against the pattern. If it does not
///    match, the branch is disabled, and the others go on.
/// 5. If it matches, all futures are dropped, and the handler runs.
/// 6. When all branches are disabled, `else` is evaluated.
///
/// The futures run within the current task: concurrently, but never in parallel. To use
/// several cores, [spawn](crate::task::spawn) them and select among the handles.
///
/// # Fairness
///
/// The random choice makes the macro fair: a branch that is always ready does not keep
/// another from winning. If the list begins with `biased;`, the branches are polled from
/// top to bottom instead. That saves the random number and makes the order deterministic,
/// but then the caller has to make sure that the lower branches are not starved: place the
/// branch that ends a loop above the one that gives it work.
///
/// A task that has used up its budget goes to the end of its run queue before any branch is
/// polled, so a loop around `select!` lets other tasks run.
///
/// # Panics
///
/// Panics if all branches are disabled and there is no `else`.
///
/// # Cancel safety
///
/// The futures that have not won are dropped at the `.await` that they have reached. In a
/// loop this happens all the time, so each of them should be *cancel safe*: if it is
/// dropped before it completes, nothing is lost, and a new one continues where it was. The
/// documentation of a function states whether it is cancel safe.
///
/// - An `async` block or function is as safe as its weakest `.await` with work done before
///   it and work left after it: anything that was read, taken or counted and is held in its
///   local variables is lost.
/// - A future that must not be lost can be created once, outside the loop, and passed to
///   the branch by reference (`&mut future`): it then continues in the next round. Use
///   [`pin!`](crate::pin) for futures that are not `Unpin`. A
///   [`JoinHandle`](crate::task::JoinHandle) is `Unpin`, and its task goes on even if the
///   handle is dropped.
/// - A future that has completed must not be polled again. Use a precondition for that:
///   `&mut future, if !done`.
///
/// # Examples
///
/// ```
/// async fn fetch(mirror: &str) -> String {
///     # if mirror == "far" { std::future::pending::<()>().await }
///     format!("from {mirror}")
/// }
///
/// # blitz_io::run(async {
/// let reply = blitz_io::select! {
///     reply = fetch("near") => reply,
///     reply = fetch("far") => reply,
/// };
/// assert_eq!(reply, "from near");
/// # });
/// ```
///
/// A future that lives longer than one round, and a branch that is disabled when its
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
/// A precondition is evaluated once, before any future is polled, so it does not see
/// changes that the futures make. Anything that a handler needs to know should be part of
/// the output.
///
/// A fixed order, so that the loop ends even if there is always work:
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

    // The end of the list, with and without `else`.
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

    // A branch with a handler that is a block, or an expression followed by a comma, or the
    // last expression.
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

    // A `select!` with nothing but `else`.
    (@finish $start:ident $count:tt [] $else:expr) => {
        $else
    };
    (@finish $start:ident $count:tt [$((
        $number:tt $name:ident $any:tt; $pattern:pat = $future:expr,
        [$($precondition:expr)?] => $handler:expr
    ))+] $else:expr) => {{
        // In scope for the user's futures and handlers, because Tokio's macro has it there
        // and programs rely on that.
        #[allow(unused_imports)]
        use $crate::macros::support::Pin;
        // A block of its own, so that the futures are dropped before a handler runs,
        // because the handler may use what they have borrowed.
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
                // This borrows the whole variable, so the closure has only a reference to
                // the futures: it may be moved although they may not.
                let futures = &mut futures;
                let first = $crate::macros::support::$start($count);
                let mut waiting = false;
                for wrapped in [false, true] {$(
                    if disabled.is_next($number, first, wrapped) {
                        // No user code is in here, except for patterns.
                        #[allow(unused_variables, unused_mut, unreachable_code, unreachable_patterns)]
                        'branch: {
                            // SAFETY: the futures are in a variable that nothing else can
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
        // The braces make it a value, which a pattern such as `ref mut` may change.
        match { finished } {
            $( $crate::macros::support::Finished::$name($pattern) => $handler, )+
            $crate::macros::support::Finished::Disabled => $else,
            #[allow(unreachable_patterns)]
            _ => ::core::unreachable!("a pattern of `select!` matched once and then no more"),
        }
    }};
}
