//! Runs a closure on a pool, as a future of its result.
//!
//! # Protocol
//! The job and the future share one cell, which is the only allocation: it holds the closure first
//! and the outcome later.
//!
//! ```text
//!           the pool runs the job         the closure ends      the future is dropped
//! QUEUED    --> RUNNING, takes closure                          --> GONE, drops the closure
//! RUNNING                                 --> DONE, wakes       --> GONE
//! DONE                                                          --> GONE, drops the outcome
//! GONE      nothing to do                 drops the outcome
//! ```
//! Every transition is an atomic exchange, and the side that makes it owns the content that goes
//! with it. The future owns what it found QUEUED or DONE once it has set GONE. The job owns the
//! content from RUNNING on, and also the outcome, if the future was dropped meanwhile. A poll of
//! the future registers its waker before it checks for DONE; the job sets DONE before it wakes
//! (`wait::waker_cell`).
//!
//! # Invariants
//! - The content is taken once; nothing is left in it when the cell is freed.
//! - No user's code (closure, destructors, wakers) runs where the state says that the other side
//!   may touch the content.
//! - A job holds the pool until it has ended, as a spawned job does. On a thread of a pool that has
//!   ended already, the closure is run on the spot.
//! - A job waits in the pool's injector, whichever thread started it. If a thread of the pool polls
//!   the future, it takes the job back from there and runs it: it may be the only thread that
//!   could, and it runs no jobs while it waits for a future. A job that is no longer there is with
//!   another thread.
//!
//! # Rejected
//! - A poll that runs jobs of its thread until the awaited one has run: jobs that block on a
//!   runtime panic inside of another runtime's task, and may take long.
//! - Jobs on the deque of the worker that starts one: the thread that awaits the job would have to
//!   search for it below the jobs on top of it. If it were left there, the deque would grow by one
//!   for each job that such a thread awaits.
//!
//! # Checked by
//! `a_result_wakes_the_awaiting_task`, `a_future_that_is_dropped_leaves_nothing_behind`; weakened
//! as `run_outcome_release`, `run_gone_exchange`.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    call,
    job::{JobHeader, JobRef, PanicPayload},
    registry::Registry,
    worker::Worker,
};
use crate::engine::{
    preempt::handoff::Blocked,
    prim::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed},
        UnsafeCell, discard, weakened,
    },
    wait::waker_cell::WakerCell,
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context::waits_for,
    },
};

const QUEUED: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const GONE: u32 = 3;

enum Content<F, R> {
    Closure(F),
    Outcome(Result<R, PanicPayload>),
    Nothing,
}

#[repr(C)]
struct RunCell<F, R> {
    header: JobHeader,
    state: AtomicU32,
    waker: WakerCell,
    /// The pool that the job belongs to; only compared, never dereferenced.
    registry: *const Registry,
    content: UnsafeCell<Content<F, R>>,
}

// SAFETY: the content has one owner at a time (see Protocol above), and its types may be sent. The
// pointer is never dereferenced.
unsafe impl<F: Send, R: Send> Send for RunCell<F, R> {}
// SAFETY: sharing is sound, because only the content's one owner touches it, and its types are
// `Send`.
unsafe impl<F: Send, R: Send> Sync for RunCell<F, R> {}

impl<F: FnOnce() -> R, R> RunCell<F, R> {
    fn new(closure: F, registry: *const Registry) -> Self {
        Self {
            header: JobHeader::new(Self::run),
            state: AtomicU32::new(QUEUED),
            waker: WakerCell::new(),
            registry,
            content: UnsafeCell::new(Content::Closure(closure)),
        }
    }

    /// Replaces the content, and returns the old one.
    ///
    /// # Safety
    /// 1. The caller owns the content.
    unsafe fn replace(&self, content: Content<F, R>) -> Content<F, R> {
        // SAFETY: 1. the caller owns the content, so no other thread touches it.
        self.content.with_mut(|it| unsafe { std::mem::replace(&mut *it, content) })
    }

    fn exchange(&self, from: u32, to: u32) -> Result<u32, u32> {
        let order = if weakened!("run_outcome_release") { Relaxed } else { AcqRel };
        // AcqRel, and Acquire on failure: the content changes its owner. Each exchange pairs with
        // all others.
        self.state.compare_exchange(from, to, order, Acquire)
    }

    /// Runs the closure as the job does, unless the future was dropped.
    fn perform(&self) {
        if self.exchange(QUEUED, RUNNING).is_err() {
            return;
        }
        // SAFETY: 1. the job owns the content from RUNNING on.
        let Content::Closure(closure) = (unsafe { self.replace(Content::Nothing) }) else {
            unreachable!("a job runs once")
        };
        let outcome = catch_unwind(AssertUnwindSafe(closure));
        // SAFETY: 1. the state is still RUNNING or GONE, so the job owns the content.
        unsafe { self.replace(Content::Outcome(outcome)) };
        let last = catch_unwind(AssertUnwindSafe(|| match self.exchange(RUNNING, DONE) {
            Ok(_) => self.waker.wake(),
            // SAFETY: 1. the future was dropped while the closure ran, and left the content to the
            // job.
            Err(_) => drop(unsafe { self.replace(Content::Nothing) }),
        }));
        // If a user's waker or destructor panicked, the panic hook has reported it.
        discard(last);
    }

    /// # Safety
    /// The obligations of [`JobRef::run`] hold, and `header` was made from an `Arc` of this type.
    unsafe fn run(header: NonNull<JobHeader>, _from: Option<&Worker>, by: &Worker) {
        // SAFETY: `start` made the pointer from an `Arc`, and the job is run once.
        let cell = unsafe { Arc::from_raw(header.as_ptr().cast::<Self>().cast_const()) };
        cell.perform();
        // The cell may still hold a waker, which is user code and may panic when it is dropped.
        discard(cell);
        by.registry().release();
    }
}

/// The future's view of the cell, without the closure's type.
trait ErasedRunCell<R>: Send + Sync {
    fn waker(&self) -> &WakerCell;

    /// Takes the outcome, if there is one. It is returned once.
    fn take(&self) -> Option<Result<R, PanicPayload>>;

    /// Runs the closure on this worker, if the worker belongs to the pool and the job is still
    /// queued.
    fn run_on(&self, worker: &Worker);

    /// Gives up the future's side of the cell, when the future is dropped.
    fn leave(&self);

    fn has_begun(&self) -> bool;
}

impl<F: FnOnce() -> R + Send, R: Send> ErasedRunCell<R> for RunCell<F, R> {
    fn waker(&self) -> &WakerCell {
        &self.waker
    }

    fn take(&self) -> Option<Result<R, PanicPayload>> {
        if self.exchange(DONE, GONE).is_err() {
            return None;
        }
        // SAFETY: 1. the future owns the content, because it has moved the state from DONE to GONE.
        match unsafe { self.replace(Content::Nothing) } {
            Content::Outcome(outcome) => Some(outcome),
            _ => unreachable!("a job that is done has an outcome"),
        }
    }

    fn run_on(&self, worker: &Worker) {
        let registry = worker.registry();
        // A queued job holds its pool, so no other pool can be at that address.
        if self.has_begun() || !std::ptr::eq(registry, self.registry) {
            return;
        }
        let this = JobRef::from_header(NonNull::from(self).cast());
        if let Some(job) = registry.take_back(this) {
            // If this thread is a runtime's worker as well, its tasks go on meanwhile on another
            // thread.
            let _blocked = Blocked::if_worker();
            // SAFETY: 1. the job was just taken from the injector, and is run once. 2. The caller's
            // worker is this thread's.
            unsafe { job.run(None, worker) };
        }
    }

    fn leave(&self) {
        let was = if weakened!("run_gone_exchange") {
            // Relaxed: a mistake on purpose, which the model must find.
            let was = self.state.load(Relaxed);
            self.state.store(GONE, Relaxed);
            was
        } else {
            // AcqRel: takes the content over. Pairs with the exchanges in `exchange`.
            self.state.swap(GONE, AcqRel)
        };
        // The waker is dropped now, so that its task need not live on until the pool comes to the
        // job.
        let waker = self.waker.take();
        if was == QUEUED || was == DONE {
            // SAFETY: 1. the job does not touch the content after GONE, because it had not begun or
            // was done.
            drop(unsafe { self.replace(Content::Nothing) });
        }
        drop(waker);
    }

    fn has_begun(&self) -> bool {
        // Relaxed: a guess, and for debug output.
        self.state.load(Relaxed) != QUEUED
    }
}

/// The future of a closure that runs on a pool, returned by
/// [`parallel::run`](crate::parallel::run).
///
/// # Examples
///
/// ```
/// use blitz_io::parallel;
///
/// # blitz_io::run(async {
/// let both = blitz_io::join!(parallel::run(|| 1), parallel::run(|| 2));
/// assert_eq!(both, (1, 2));
/// # });
/// ```
#[must_use = "a closure that has not begun when this is dropped does not run: await it"]
pub struct Run<R> {
    /// `None` once the future has completed.
    cell: Option<Arc<dyn ErasedRunCell<R>>>,
}

/// Gives the closure to the pool, which the caller must hold, and returns the future of its result.
pub(crate) fn start<F, R>(registry: &Registry, closure: F) -> Run<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let cell = Arc::new(RunCell::new(closure, registry));
    if !registry.hold(1) {
        // The pool has ended, and this is the user's own thread, or one that is about to leave it.
        cell.perform();
        return Run { cell: Some(cell) };
    }
    // SAFETY: 1. `RunCell` is `repr(C)` and begins with its header, and `RunCell::run` turns it
    // into an `Arc` again.
    let job = unsafe { JobRef::of_shared(cell.clone()) };
    registry.inject(job);
    Run { cell: Some(cell) }
}

impl<R> Future for Run<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Some(cell) = &self.cell else { panic!("`Run` polled after completion") };
        let unit = ready!(budget::poll_proceed(context));
        // This comes before the waker is registered, because no task needs to be woken for a result
        // that is made here.
        call::with_current(|worker| cell.run_on(worker));
        let outcome = cell.take().or_else(|| {
            cell.waker().register(context.waker());
            cell.take()
        });
        let Some(outcome) = outcome else {
            waits_for(WaitReason::Parallel);
            return Poll::Pending;
        };
        unit.spend();
        self.cell = None;
        Poll::Ready(outcome.unwrap_or_else(|payload| resume_unwind(payload)))
    }
}

impl<R> Drop for Run<R> {
    fn drop(&mut self) {
        if let Some(cell) = self.cell.take() {
            cell.leave();
        }
    }
}

impl<R> std::fmt::Debug for Run<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.cell {
            None => "over",
            Some(cell) if cell.has_begun() => "begun",
            Some(_) => "waiting",
        };
        f.debug_struct("Run").field("state", &state).finish()
    }
}

#[cfg(test)]
mod models {
    use std::{
        future::Future,
        pin::Pin,
        sync::Arc as StdArc,
        task::{Context, Poll},
    };

    use super::{Run, RunCell};
    use crate::engine::{
        prim::{AtomicUsize, Ordering::Relaxed, model, thread},
        wait::test_waker::CountingWaker,
    };

    fn start<F: FnOnce() -> R + Send + 'static, R: Send + 'static>(
        closure: F,
    ) -> (thread::JoinHandle<()>, Run<R>) {
        let cell = StdArc::new(RunCell::new(closure, std::ptr::null()));
        let job = thread::spawn({
            let cell = cell.clone();
            move || cell.perform()
        });
        (job, Run { cell: Some(cell) })
    }

    #[test]
    fn a_result_wakes_the_awaiting_task() {
        model(|| {
            let (job, mut run) = start(|| 7);
            let counter = CountingWaker::new();
            let value = loop {
                let waker = counter.waker();
                match Pin::new(&mut run).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(value) => break value,
                    Poll::Pending => counter.wait(),
                }
            };
            assert_eq!(value, 7);
            job.join().unwrap();
        });
    }

    /// Counts its own drop, wherever that happens.
    struct RunDropCounter(StdArc<AtomicUsize>);

    impl Drop for RunDropCounter {
        fn drop(&mut self) {
            // Relaxed: a count, read after the joins.
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_future_that_is_dropped_leaves_nothing_behind() {
        model(|| {
            let (closures, results) =
                (StdArc::new(AtomicUsize::new(0)), StdArc::new(AtomicUsize::new(0)));
            let (begun, captured) =
                (StdArc::new(AtomicUsize::new(0)), RunDropCounter(closures.clone()));
            let (job, run) = start({
                let (results, begun) = (results.clone(), begun.clone());
                move || {
                    let _captured = captured;
                    // Relaxed: a count, read after the joins.
                    begun.fetch_add(1, Relaxed);
                    RunDropCounter(results)
                }
            });
            drop(run);
            job.join().unwrap();
            assert_eq!(closures.load(Relaxed), 1);
            assert_eq!(results.load(Relaxed), begun.load(Relaxed));
        });
    }
}
