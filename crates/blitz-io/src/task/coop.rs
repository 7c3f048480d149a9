//! Cooperation: a task that always finds something ready still lets others run.
//!
//! A task runs until it waits. If what it waits for is always there (a channel
//! that is never empty, a socket that always has data) it would keep its worker
//! for ever. So each poll of a task, and of the future of `block_on`, begins with
//! a *budget* of 128 operations. Every operation of the runtime that completes
//! takes one unit; when none is left, the next one answers
//! [`Pending`](Poll::Pending) once, and the task goes to the end of its queue.
//!
//! - Long computations take part with [`consume_budget`], or by time with [`checkpoint`].
//! - A future that completes by other means takes part with [`cooperative`], or
//!   with [`poll_proceed`] inside its own `poll`.
//! - [`unconstrained`] takes a future out.
//! - [`has_budget_remaining`] asks.
//!
//! [`RuntimeMetrics::budget_forced_yield_count`] tells how often it came to that.
//!
//! [`RuntimeMetrics::budget_forced_yield_count`]: crate::runtime::RuntimeMetrics::budget_forced_yield_count
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

use crate::engine::work::task::budget::{self, Budget, Unit};

/// Consumes a unit of budget, and yields to the runtime if there was none left.
///
/// Put it into loops that compute for long without waiting for anything of the
/// runtime. It costs a few instructions, unlike
/// [`yield_now`](crate::task::yield_now), which goes through the queue each time.
///
/// # Cancel safety
///
/// Nothing is lost if it is dropped.
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
    poll_fn(|cx| budget::proceed(cx).map(|unit| unit.spend())).await;
}

/// Returns whether the poll that this is called in has lasted for so long that it should let
/// others run: for about half of the runtime's [slice](crate::runtime::Preemption::slice), so that
/// who asks is in time.
///
/// For loops that cannot wait at every step, in functions that are not `async`: they ask, and
/// come back to a [`checkpoint`]. It costs two loads.
///
/// Somebody has to look at the clock for it. So the answer is `false` on runtimes without
/// [preemption](crate::runtime::Builder::preemption) and without a
/// [report](crate::runtime::Builder::on_task_stall), in the future of `block_on`, and outside
/// of tasks.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// let sums = blitz_io::spawn(async {
///     let (mut sum, mut numbers) = (0_u64, 0..);
///     // As much as fits into a slice: a call to a library that can go on later, say.
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
    crate::engine::work::current::with(|current| current.is_overdue())
}

/// Lets others run, if this poll has lasted for so long that it [should](should_yield); else
/// it goes on at once.
///
/// Unlike [`consume_budget`], which yields after a number of calls, it yields by time, and can
/// be called as often as one likes: it costs two loads.
///
/// # Cancel safety
///
/// Nothing is lost if it is dropped.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::{runtime::{Builder, Preemption}, task};
///
/// // Its only worker is not taken from a task that computes.
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .preemption(Preemption::disabled())
///     .on_task_stall(|stall| println!("{stall}"))
///     .build()?;
/// let (tell, told) = mpsc::channel();
/// let hash = rt.spawn(async move {
///     let mut hash = 0u64;
///     while told.try_recv().is_err() {
///         hash = (hash ^ 7).wrapping_mul(0x100_0000_01b3);
///         task::checkpoint().await;
///     }
///     hash
/// });
/// // So this one has a turn because the other asks.
/// rt.spawn(async move { tell.send(()).unwrap() });
/// rt.block_on(hash).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn checkpoint() {
    if should_yield() {
        crate::task::yield_now().await;
    }
}

/// Returns whether the current task has budget left.
///
/// Outside of a task, of `block_on` and inside [`unconstrained`] there is no limit,
/// and the answer is `true`.
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
    budget::is_left()
}

/// Takes a unit of budget for an operation, or returns `Poll::Pending` if none is
/// left; the task has been woken in that case.
///
/// It is what a future calls before it tries its operation. If the operation
/// completes, it says so with [`made_progress`](RestoreOnPending::made_progress);
/// if not, the unit goes back when the answer is dropped.
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
    budget::proceed(cx).map(|unit| RestoreOnPending { unit, on_this_thread: PhantomData })
}

/// What the macros ask before they poll their branches.
#[doc(hidden)]
#[inline]
pub fn poll_budget_available(cx: &mut Context<'_>) -> Poll<()> {
    budget::available(cx)
}

/// A unit of budget that was taken by [`poll_proceed`]; it goes back when this is
/// dropped, unless [`made_progress`](Self::made_progress) was called.
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
    unit: Unit,
    on_this_thread: PhantomData<*mut ()>,
}

impl RestoreOnPending {
    /// Signals that the operation completed: the unit is spent.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, task::Poll};
    /// use blitz_io::task::coop;
    ///
    /// # blitz_io::run(async {
    /// let answer = poll_fn(|cx| coop::poll_proceed(cx).map(|unit| {
    ///     unit.made_progress();
    ///     42
    /// }));
    /// assert_eq!(answer.await, 42);
    /// # });
    /// ```
    pub fn made_progress(&self) {
        self.unit.spend();
    }
}

pin_project! {
    /// Future for the [`cooperative`] function.
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

/// Makes a future take part: completing it costs one unit of budget, and it is not
/// polled while none is left.
///
/// For futures that know nothing of this runtime and may be ready many times in a
/// row.
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
        let unit = ready!(budget::proceed(cx));
        let polled = self.project().future.poll(cx);
        if polled.is_ready() {
            unit.spend();
        }
        polled
    }
}

pin_project! {
    /// Future for the [`unconstrained`] function.
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

/// Turns cooperation off for a future: while it is polled there is no limit, and
/// the runtime never makes it yield.
///
/// If it never waits by itself, it keeps its worker from all other tasks there.
/// What it does costs nothing of the budget of the task around it.
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
        budget::under(Budget::unlimited(), || self.project().future.poll(cx))
    }
}
