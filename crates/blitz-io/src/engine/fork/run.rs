//! A closure on a pool, and the future of its result.
//!
//! # Protocol
//! Job and future share one cell, which is the only allocation: the closure lies in it first,
//! the outcome later.
//!
//! ```text
//!           the pool comes to the job     the closure ends      the future is dropped
//! QUEUED    --> RUNNING, takes closure                          --> GONE, drops the closure
//! RUNNING                                 --> DONE, wakes       --> GONE
//! DONE                                                          --> GONE, drops the outcome
//! GONE      nothing to do                 drops the outcome
//! ```
//! Every transition is an exchange, and who makes it owns the content that goes with it: the
//! future from GONE on what it found QUEUED or DONE, the job from RUNNING on, and again what
//! it made of it if the future went meanwhile. The future that is polled registers its waker
//! before it looks for DONE; the job says DONE before it wakes (`wait::waker_cell`).
//!
//! # Invariants
//! - The content is taken once; nothing is left in it when the cell goes.
//! - No user's code (closure, destructors, wakers) runs where the state says that the other
//!   side may touch the content.
//! - A job holds the pool until it has ended, as one that is spawned does. On a thread whose pool
//!   has ended already the closure is run on the spot.
//! - A job waits in the pool's intake, whoever gave it. A thread of the pool that polls takes it back from there and
//!   runs it: it may be the only one that could, and runs no jobs while it waits for a future.
//!   What is not there any more, another thread has.
//!
//! # Rejected
//! - A poll that runs jobs of its thread until the awaited one has come: jobs that block on a
//!   runtime themselves panic inside of another one's, and may take long.
//! - Jobs on the stack of a worker that gives one: who awaits it would have to look for it between jobs
//!   that lie above it. Left there, it would be one more for each that such a thread awaits.
//!
//! # Checked by
//! `a_result_wakes_who_awaits_it`, `a_future_that_is_dropped_leaves_nothing_behind`; weakened as
//! `run_outcome_release`, `run_gone_exchange`.

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
    job::{Header, JobRef, Payload},
    registry::Registry,
    worker::Worker,
};
use crate::engine::{
    pool::handoff::Blocked,
    prim::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed},
        UnsafeCell, discard, weakened,
    },
    wait::waker_cell::WakerCell,
    work::{
        current::waits_for,
        task::{budget, moment::Wait},
    },
};

const QUEUED: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const GONE: u32 = 3;

enum Content<F, R> {
    Closure(F),
    Outcome(Result<R, Payload>),
    Nothing,
}

#[repr(C)]
struct Cell<F, R> {
    header: Header,
    state: AtomicU32,
    waker: WakerCell,
    /// Whose job it is: to be compared, and no more.
    registry: *const Registry,
    content: UnsafeCell<Content<F, R>>,
}

// SAFETY: the content has one owner at a time (see the module), and what is in it may be sent.
// Nobody follows the pointer.
unsafe impl<F: Send, R: Send> Send for Cell<F, R> {}
// SAFETY: as above.
unsafe impl<F: Send, R: Send> Sync for Cell<F, R> {}

impl<F: FnOnce() -> R, R> Cell<F, R> {
    fn new(closure: F, registry: *const Registry) -> Self {
        Self {
            header: Header::new(Self::run),
            state: AtomicU32::new(QUEUED),
            waker: WakerCell::new(),
            registry,
            content: UnsafeCell::new(Content::Closure(closure)),
        }
    }

    /// # Safety
    /// 1. The caller owns the content.
    unsafe fn replace(&self, content: Content<F, R>) -> Content<F, R> {
        // SAFETY: 1.
        self.content.with_mut(|it| unsafe { std::mem::replace(&mut *it, content) })
    }

    fn exchange(&self, from: u32, to: u32) -> Result<u32, u32> {
        let order = if weakened!("run_outcome_release") { Relaxed } else { AcqRel };
        // AcqRel, and Acquire on failure: the content goes along. Each pairs with all others.
        self.state.compare_exchange(from, to, order, Acquire)
    }

    /// The job: runs the closure, if anybody still wants that.
    fn perform(&self) {
        if self.exchange(QUEUED, RUNNING).is_err() {
            return;
        }
        // SAFETY: 1. the job owns it from RUNNING on.
        let Content::Closure(closure) = (unsafe { self.replace(Content::Nothing) }) else {
            unreachable!("a job runs once")
        };
        let outcome = catch_unwind(AssertUnwindSafe(closure));
        // SAFETY: 1. as above.
        unsafe { self.replace(Content::Outcome(outcome)) };
        let last = catch_unwind(AssertUnwindSafe(|| match self.exchange(RUNNING, DONE) {
            Ok(_) => self.waker.wake(),
            // SAFETY: 1. the future has gone, and left it to us.
            Err(_) => drop(unsafe { self.replace(Content::Nothing) }),
        }));
        // A waker or a destructor of the user's has panicked, which its hook has told.
        discard(last);
    }

    /// # Safety
    /// As [`JobRef::run`], with a header that was made from an `Arc` of this type.
    unsafe fn run(header: NonNull<Header>, _from: Option<&Worker>, by: &Worker) {
        // SAFETY: `start` made it of an `Arc`, and it is run once.
        let cell = unsafe { Arc::from_raw(header.as_ptr().cast::<Self>().cast_const()) };
        cell.perform();
        // A waker may be left in it, which is a user's.
        discard(cell);
        by.registry().release();
    }
}

/// What the future knows of the cell.
trait Awaited<R>: Send + Sync {
    fn waker(&self) -> &WakerCell;

    /// The outcome, if there is one. It is answered once.
    fn take(&self) -> Option<Result<R, Payload>>;

    /// Runs the closure on this worker, if it is one of the pool's and nobody has taken the job.
    fn run_on(&self, worker: &Worker);

    /// The future goes.
    fn leave(&self);

    fn has_begun(&self) -> bool;
}

impl<F: FnOnce() -> R + Send, R: Send> Awaited<R> for Cell<F, R> {
    fn waker(&self) -> &WakerCell {
        &self.waker
    }

    fn take(&self) -> Option<Result<R, Payload>> {
        if self.exchange(DONE, GONE).is_err() {
            return None;
        }
        // SAFETY: 1. the future owns it from then on.
        match unsafe { self.replace(Content::Nothing) } {
            Content::Outcome(outcome) => Some(outcome),
            _ => unreachable!("who is done has an outcome"),
        }
    }

    fn run_on(&self, worker: &Worker) {
        let registry = worker.registry();
        // While the job waits it holds its pool: no other one is at that address.
        if self.has_begun() || !std::ptr::eq(registry, self.registry) {
            return;
        }
        let this = JobRef::from_header(NonNull::from(self).cast());
        if let Some(job) = registry.take_back(this) {
            // Others go on meanwhile, if this thread is a runtime's as well.
            let _blocked = Blocked::if_worker();
            // SAFETY: 1. just taken from the intake. 2. The caller's, which is this thread's.
            unsafe { job.run(None, worker) };
        }
    }

    fn leave(&self) {
        let was = if weakened!("run_gone_exchange") {
            // Relaxed: a mistake, on purpose.
            let was = self.state.load(Relaxed);
            self.state.store(GONE, Relaxed);
            was
        } else {
            // AcqRel: as in `exchange`.
            self.state.swap(GONE, AcqRel)
        };
        // The task that it belongs to need not live on until the pool comes to the job.
        let waker = self.waker.take();
        if was == QUEUED || was == DONE {
            // SAFETY: 1. nobody else touches it after that.
            drop(unsafe { self.replace(Content::Nothing) });
        }
        drop(waker);
    }

    fn has_begun(&self) -> bool {
        // Relaxed: for people to read, and a guess.
        self.state.load(Relaxed) != QUEUED
    }
}

/// The future of a closure that was given to a pool; see
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
    /// Nothing once it is over.
    cell: Option<Arc<dyn Awaited<R>>>,
}

/// Gives the closure to the pool, which the caller holds.
pub(crate) fn start<F, R>(registry: &Registry, closure: F) -> Run<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let cell = Arc::new(Cell::new(closure, registry));
    if !registry.hold(1) {
        // The pool has ended, and this is a thread that was lent to it or is about to leave it.
        cell.perform();
        return Run { cell: Some(cell) };
    }
    // SAFETY: 1. `Cell` is `repr(C)`, and `Cell::run` makes it an `Arc` again.
    let job = unsafe { JobRef::of_shared(cell.clone()) };
    registry.inject(job);
    Run { cell: Some(cell) }
}

impl<R> Future for Run<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Some(cell) = &self.cell else { panic!("`Run` polled after completion") };
        let unit = ready!(budget::proceed(context));
        // Before the waker is there: nobody need be woken for what is done here.
        call::with_current(|worker| cell.run_on(worker));
        let outcome = cell.take().or_else(|| {
            cell.waker().register(context.waker());
            cell.take()
        });
        let Some(outcome) = outcome else {
            waits_for(Wait::Parallel);
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

    use super::{Cell, Run};
    use crate::engine::{
        prim::{AtomicUsize, Ordering::Relaxed, model, thread},
        wait::bell::Bell,
    };

    fn start<F: FnOnce() -> R + Send + 'static, R: Send + 'static>(
        closure: F,
    ) -> (thread::JoinHandle<()>, Run<R>) {
        let cell = StdArc::new(Cell::new(closure, std::ptr::null()));
        let job = thread::spawn({
            let cell = cell.clone();
            move || cell.perform()
        });
        (job, Run { cell: Some(cell) })
    }

    #[test]
    fn a_result_wakes_who_awaits_it() {
        model(|| {
            let (job, mut run) = start(|| 7);
            let bell = Bell::new();
            let value = loop {
                let waker = bell.waker();
                match Pin::new(&mut run).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(value) => break value,
                    Poll::Pending => bell.listen(),
                }
            };
            assert_eq!(value, 7);
            job.join().unwrap();
        });
    }

    /// Counts its own end, wherever that comes.
    struct Counted(StdArc<AtomicUsize>);

    impl Drop for Counted {
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
            let (begun, captured) = (StdArc::new(AtomicUsize::new(0)), Counted(closures.clone()));
            let (job, run) = start({
                let (results, begun) = (results.clone(), begun.clone());
                move || {
                    let _captured = captured;
                    // Relaxed: as above.
                    begun.fetch_add(1, Relaxed);
                    Counted(results)
                }
            });
            drop(run);
            job.join().unwrap();
            assert_eq!(closures.load(Relaxed), 1);
            assert_eq!(results.load(Relaxed), begun.load(Relaxed));
        });
    }
}
