//! Broadcasts: runs one closure on every thread of a pool.
//!
//! # Protocol
//! Each worker has a queue of its own for broadcasts, which it checks after its deque. The thread
//! that broadcasts fills those queues itself and waits for a countdown (`waiting_thread`). If
//! it is a thread of the pool, its own wait runs its part. No other thread is involved: a worker
//! that waited for the others on a caller's behalf would be one less to run jobs, and might, while
//! it waits, start a job that ends only after the broadcast has returned.
//!
//! # Checked by
//! `a_broadcast_wakes_a_worker_that_falls_asleep`,
//! `a_broadcast_runs_once_on_each_thread_and_keeps_their_order`,
//! `a_broadcast_from_outside_returns_before_the_jobs_that_it_spawned`.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use super::{
    job::{HeapJob, JobRef, PanicPayload},
    latch::Countdown,
    registry::Registry,
    waiting_thread::{Pointer, WaitingThread},
    worker::Worker,
};
use crate::engine::prim::{Mutex, discard, lock};

/// The context of one call of a broadcast closure: the thread that runs it, and its pool.
///
/// # Examples
///
/// ```
/// let squares = blitz_io::parallel::broadcast(|context| {
///     assert!(context.index() < context.num_threads());
///     context.index() * context.index()
/// });
/// assert!(squares.iter().enumerate().all(|(index, square)| *square == index * index));
/// ```
pub struct BroadcastContext<'a> {
    worker: &'a Worker,
    /// Keeps the value on its thread.
    not_send: PhantomData<&'a mut dyn Fn()>,
}

impl<'a> BroadcastContext<'a> {
    pub(crate) fn new(worker: &'a Worker) -> Self {
        Self { worker, not_send: PhantomData }
    }

    /// Returns the index of this thread in its pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let indices = blitz_io::parallel::broadcast(|context| context.index());
    /// assert!(indices.into_iter().eq(0..blitz_io::parallel::current_num_threads()));
    /// ```
    #[inline]
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// Returns the number of threads that run the closure.
    ///
    /// # Examples
    ///
    /// ```
    /// let counts = blitz_io::parallel::broadcast(|context| context.num_threads());
    /// assert_eq!(counts[0], counts.len());
    /// ```
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.worker.registry().threads()
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index())
            .field("num_threads", &self.num_threads())
            .finish_non_exhaustive()
    }
}

/// Runs `op` on each worker, and waits for all; the calling thread need not belong to the pool.
pub(crate) fn broadcast<R: Send>(
    registry: &Registry,
    op: &(impl Fn(BroadcastContext<'_>) -> R + Sync),
) -> Vec<R> {
    let count = registry.threads();
    let results: Vec<Mutex<Option<Result<R, PanicPayload>>>> =
        (0..count).map(|_| Mutex::new(None)).collect();
    let countdown = Countdown::new(count, WaitingThread::this_thread());
    let end = Pointer::to(&countdown);
    let jobs: Vec<JobRef> = results
        .iter()
        .map(|result| {
            let run = move |by: &Worker| {
                let outcome = catch_unwind(AssertUnwindSafe(|| op(BroadcastContext::new(by))));
                *lock(result) = Some(outcome);
            };
            let end = end.clone();
            // SAFETY: 1. this job is one of the `count` that are counted, so the countdown is still
            // there.
            let end = move |_: &Worker| unsafe { Countdown::end_one(end.get()) };
            // SAFETY: 1. we wait for the countdown, so what `run` borrows outlives it. 2. The end
            // holds a pointer, not a reference.
            unsafe { HeapJob::make(run, end) }
        })
        .collect();
    registry.broadcast(jobs.into_iter());
    countdown.waiter().wait(countdown.latch());
    let outcomes = results.iter().map(|result| lock(result).take());
    let outcomes: Result<Vec<R>, PanicPayload> =
        first_panic(outcomes.map(|it| it.expect("all have ended")));
    outcomes.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Collects all results, or the first panic. With a panic, the results are dropped one by one,
/// outside of an unwinding, so that a destructor that panics does not abort the process.
fn first_panic<R>(
    outcomes: impl Iterator<Item = Result<R, PanicPayload>>,
) -> Result<Vec<R>, PanicPayload> {
    let mut results = Vec::with_capacity(outcomes.size_hint().0);
    let mut first = None;
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            Err(payload) if first.is_none() => first = Some(payload),
            Err(payload) => discard(payload),
        }
    }
    let Some(payload) = first else { return Ok(results) };
    results.into_iter().for_each(discard);
    Err(payload)
}

/// Runs `op` on each worker, without waiting for it.
pub(crate) fn spawn_broadcast(
    registry: &Registry,
    op: impl Fn(BroadcastContext<'_>) + Send + Sync + 'static,
) {
    let count = registry.threads();
    if !registry.hold(count) {
        // The pool has ended, and this thread is the only one of its threads that is left.
        if let Some(worker) = registry.current() {
            registry.catch_unwind(move || op(BroadcastContext::new(worker)));
        }
        return;
    }
    let op = Arc::new(op);
    let jobs: Vec<JobRef> = (0..count)
        .map(|_| {
            let op = op.clone();
            let run = move |by: &Worker| {
                by.registry().catch_unwind(move || op(BroadcastContext::new(by)));
            };
            // SAFETY: 1. and 2. neither closure borrows anything.
            unsafe { HeapJob::make(run, |by: &Worker| by.registry().release()) }
        })
        .collect();
    registry.broadcast(jobs.into_iter());
}
