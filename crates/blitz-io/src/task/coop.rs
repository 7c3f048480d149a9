//! Cooperative scheduling: a task with operations that are always ready still lets others run.
//!
//! A task runs until it waits. If what it waits for is always ready (a channel that is never empty,
//! a socket that always has data), it would keep its worker forever. So each poll of a task, and of
//! the future of `block_on`, begins with a *budget* of 128 operations. Every operation of the
//! runtime that completes takes one unit; when none is left, the next operation returns
//! [`Pending`](Poll::Pending) once, and the task goes to the end of its run queue.
//!
//! - Long computations cooperate by calling [`consume_budget`], or by time with [`checkpoint`].
//! - A future that completes by other means cooperates when it is wrapped in [`cooperative`], or
//!   when it calls [`poll_proceed`] inside its own `poll`.
//! - [`unconstrained`] exempts a future from the budget.
//! - [`has_budget_remaining`] returns `true` if the current task has budget left.
//!
//! [`RuntimeMetrics::budget_forced_yield_count`] counts how often an empty budget made a task
//! yield.
//!
//! [`RuntimeMetrics::budget_forced_yield_count`]:
//! crate::runtime::RuntimeMetrics::budget_forced_yield_count
//!
//! # Examples
//!
//! ```
//! use blitz_io::task::coop;
//!
//! # blitz_io::run(async {
//! let sum = blitz_io::spawn(async {
//!     let mut sum = 0u64;
//!     for n in 0..10_000 {
//!         sum += n;
//!         coop::consume_budget().await; // others run here, once in 128 times
//!     }
//!     sum
//! });
//! assert_eq!(sum.await.unwrap(), 49_995_000);
//! # });
//! ```

use std::{
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::engine::work::task::budget::{self, Budget, BudgetUnit};

/// Consumes a unit of budget, and yields to the runtime if none was left.
///
/// Call it in loops that compute for a long time without awaiting an operation of the runtime. It
/// costs a few instructions, unlike [`yield_now`](crate::task::yield_now), which goes through the
/// run queue each time.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// async fn longest(lines: impl Iterator<Item = String>) -> usize {
///     let mut longest = 0;
///     for line in lines {
///         longest = longest.max(line.len());
///         task::consume_budget().await;
///     }
///     longest
/// }
///
/// # blitz_io::run(async {
/// let lines = (0..1_000).map(|n| "x".repeat(n % 80));
/// assert_eq!(longest(lines).await, 79);
/// # });
/// ```
pub async fn consume_budget() {
    poll_fn(|cx| budget::poll_proceed(cx).map(|unit| unit.spend())).await;
}

/// Returns `true` if the current poll has lasted so long that it should let other tasks run.
///
/// That is after about half of the runtime's [slice](crate::runtime::Preemption::slice), so that a
/// task which yields then does so before the slice ends. This function is for loops that cannot
/// await at every step, in functions that are not `async`: they check it, and return to a caller
/// that awaits a [`checkpoint`]. It costs two loads.
///
/// The runtime has to watch the clock for this. So the function returns `false` on runtimes that
/// have neither [preemption](crate::runtime::Builder::preemption) nor a [stall
/// report](crate::runtime::Builder::on_task_stall), in the future of `block_on`, and outside of
/// tasks.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// let sums = blitz_io::spawn(async {
///     let (mut sum, mut numbers) = (0_u64, 0..);
///     // As much as fits into a slice: for example, a call to a library that can be resumed.
///     while !task::should_yield() {
///         sum = sum.wrapping_add(numbers.next().unwrap());
///     }
///     task::yield_now().await;
///     (sum, numbers)
/// });
/// let (sum, rest) = sums.await.unwrap();
/// assert_eq!(sum, (0..rest.start).sum());
/// # });
/// ```
#[inline]
pub fn should_yield() -> bool {
    crate::engine::work::thread_context::should_yield()
}

/// Yields to the runtime if the current poll has lasted so long that it [should](should_yield), and
/// otherwise continues at once.
///
/// Unlike [`consume_budget`], which yields after a number of calls, this yields by time. It can be
/// called as often as needed, because it costs two loads.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::{runtime::{Builder, Preemption}, task};
///
/// // Without preemption, the only worker is not taken away from a task that computes.
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .preemption(Preemption::disabled())
///     .on_task_stall(|stall| println!("{stall}"))
///     .build()?;
/// let (tx, rx) = mpsc::channel();
/// let hash = rt.spawn(async move {
///     let mut hash = 0u64;
///     while rx.try_recv().is_err() {
///         hash = (hash ^ 7).wrapping_mul(0x100_0000_01b3);
///         task::checkpoint().await;
///     }
///     hash
/// });
/// // So this task runs because the other one calls `checkpoint`.
/// rt.spawn(async move { tx.send(()).unwrap() });
/// rt.block_on(hash).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn checkpoint() {
    if should_yield() {
        crate::task::yield_now().await;
    }
}

/// Returns `true` if the current task has budget left.
///
/// Outside of tasks and of `block_on`, and inside [`unconstrained`], there is no limit, and the
/// function returns `true`.
///
/// # Examples
///
/// ```
/// use blitz_io::task::coop;
///
/// # blitz_io::run(async {
/// let mut done = 0;
/// while coop::has_budget_remaining() {
///     done += 1;
///     coop::consume_budget().await;
/// }
/// assert_eq!(done, 128);
/// # });
/// ```
#[inline]
pub fn has_budget_remaining() -> bool {
    budget::has_remaining()
}

/// Takes a unit of budget for an operation, or returns `Poll::Pending` if none is left; the task
/// has been woken in that case.
///
/// A future calls this before it tries its operation. If the operation completes, the future must
/// call [`made_progress`](RestoreOnPending::made_progress) on the returned value; otherwise
/// dropping that value gives the unit back.
///
/// # Examples
///
/// ```
/// use std::{collections::VecDeque, future::poll_fn, task::{Poll, ready}};
/// use blitz_io::task::coop;
///
/// # blitz_io::run(async {
/// let mut queue: VecDeque<u32> = (0..300).collect();
/// let mut taken = 0;
/// poll_fn(|cx| {
///     loop {
///         let unit = ready!(coop::poll_proceed(cx));
///         let Some(_item) = queue.pop_front() else { return Poll::Ready(()) };
///         unit.made_progress();
///         taken += 1;
///     }
/// })
/// .await;
/// assert_eq!(taken, 300); // in three polls
/// # });
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    budget::poll_proceed(cx).map(|unit| RestoreOnPending { unit, on_this_thread: PhantomData })
}

/// Returns `Pending` and wakes the task if no budget is left; the macros call it before they poll
/// their branches.
#[doc(hidden)]
#[inline]
pub fn poll_budget_available(cx: &mut Context<'_>) -> Poll<()> {
    budget::available(cx)
}

/// A unit of budget taken by [`poll_proceed`], which is given back when this is dropped unless
/// [`made_progress`](Self::made_progress) was called.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use blitz_io::task::coop;
///
/// let mut cx = Context::from_waker(Waker::noop());
/// // Outside of a runtime there is no limit.
/// let Poll::Ready(unit) = coop::poll_proceed(&mut cx) else { unreachable!() };
/// unit.made_progress();
/// ```
#[derive(Debug)]
#[must_use = "the unit goes back when this is dropped"]
pub struct RestoreOnPending {
    unit: BudgetUnit,
    on_this_thread: PhantomData<*mut ()>,
}

impl RestoreOnPending {
    /// Marks the operation as completed, so the unit is spent.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, task::Poll};
    /// use blitz_io::task::coop;
    ///
    /// # blitz_io::run(async {
    /// let future = poll_fn(|cx| coop::poll_proceed(cx).map(|unit| {
    ///     unit.made_progress();
    ///     42
    /// }));
    /// assert_eq!(future.await, 42);
    /// # });
    /// ```
    pub fn made_progress(&self) {
        self.unit.spend();
    }
}

pin_project! {
    /// The future of [`cooperative`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::coop::{Coop, cooperative};
    ///
    /// # blitz_io::run(async {
    /// let ready: Coop<std::future::Ready<u8>> = cooperative(std::future::ready(1));
    /// assert_eq!(ready.await, 1);
    /// # });
    /// ```
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Coop<F: Future> {
        #[pin]
        future: F,
    }
}

/// Wraps a future so that completing it costs one unit of budget; it is not polled while none is
/// left.
///
/// Use it for futures that do not know about this runtime and may be ready many times in a row.
///
/// # Examples
///
/// ```
/// use blitz_io::task::coop;
///
/// # blitz_io::run(async {
/// for n in 0..1_000 {
///     // Always ready, and yet the task yields once in 128 times.
///     assert_eq!(coop::cooperative(std::future::ready(n)).await, n);
/// }
/// # });
/// ```
#[inline]
pub fn cooperative<F: Future>(fut: F) -> Coop<F> {
    Coop { future: fut }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let unit = ready!(budget::poll_proceed(cx));
        let polled = self.project().future.poll(cx);
        if polled.is_ready() {
            unit.spend();
        }
        polled
    }
}

pin_project! {
    /// The future of [`unconstrained`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::{Unconstrained, unconstrained};
    ///
    /// # blitz_io::run(async {
    /// let free: Unconstrained<std::future::Ready<u8>> = unconstrained(std::future::ready(1));
    /// assert_eq!(free.await, 1);
    /// # });
    /// ```
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    #[derive(Debug)]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

/// Exempts a future from cooperative scheduling: while it is polled its budget is unlimited, and
/// the runtime never makes it yield.
///
/// If the future never waits by itself, no other task can run on its worker. Its operations consume
/// nothing of the budget of the surrounding task.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// task::unconstrained(async {
///     for _ in 0..1_000 {
///         task::consume_budget().await; // never yields
///         assert!(task::coop::has_budget_remaining());
///     }
/// })
/// .await;
/// # });
/// ```
pub fn unconstrained<F>(inner: F) -> Unconstrained<F> {
    Unconstrained { future: inner }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        budget::with_budget(Budget::unlimited(), || self.project().future.poll(cx))
    }
}
