//! Scopes: jobs that may borrow from a frame, which waits for all of them.
//!
//! # Protocol
//! A scope lies in the frame of `scope`. Its countdown counts the body and each job that was
//! spawned into it; a job can be spawned only by the body or a job that is still counted. The frame
//! waits for the countdown after the body has ended, whether that returned or panicked. A job's
//! last touch of the frame is the last step of [`Countdown::end_one`].
//!
//! The first panic, of the body or of a job, is kept, and resumed when all have ended. Other panics
//! are dropped.
//!
//! # Checked by
//! `a_panic_is_there_when_all_have_ended`, weakened as `scope_keeps_first`; the models of `latch`;
//! `the_first_panic_of_a_scope_leaves_when_all_jobs_have_ended` and others in
//! tests/it/parallel/scope.rs.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use super::{
    broadcast::BroadcastContext,
    job::{HeapJob, JobFifo, JobRef, PanicPayload},
    latch::Countdown,
    registry::Registry,
    waiting_thread::{Pointer, WaitingThread},
    worker::Worker,
};
use crate::engine::prim::{Mutex, discard, lock};

/// The first panic of a scope. A job keeps its panic before it ends, so the thread that has waited
/// for all jobs finds it.
struct FirstPanic(Mutex<Option<PanicPayload>>);

impl FirstPanic {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn keep(&self, payload: PanicPayload) {
        let mut kept = lock(&self.0);
        let superfluous = match &*kept {
            None => kept.replace(payload),
            Some(_) => Some(payload),
        };
        drop(kept);
        // This is outside of the lock, because the destructor is user code.
        discard(superfluous);
    }

    fn take(&self) -> Option<PanicPayload> {
        lock(&self.0).take()
    }

    fn is_kept(&self) -> bool {
        lock(&self.0).is_some()
    }
}

/// The common part of both kinds of scopes.
struct ScopeBase<'scope> {
    registry: Arc<Registry>,
    countdown: Countdown<WaitingThread>,
    panic: FirstPanic,
    /// Makes the type invariant in `'scope`, and as `Send` and `Sync` as the closures that are
    /// spawned.
    #[expect(clippy::type_complexity, reason = "it is the type of what is spawned")]
    jobs: PhantomData<Box<dyn FnOnce(&Scope<'scope>) + Send + Sync + 'scope>>,
}

impl ScopeBase<'_> {
    /// Creates a scope for which this thread will wait.
    fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            countdown: Countdown::new(1, WaitingThread::this_thread()),
            panic: FirstPanic::new(),
            jobs: PhantomData,
        }
    }

    /// Runs the body, waits for all jobs, and resumes the first panic.
    fn complete<R>(&self, body: impl FnOnce() -> R) -> R {
        let outcome = catch_unwind(AssertUnwindSafe(body));
        let result = match outcome {
            Ok(result) => Some(result),
            Err(payload) => {
                self.panic.keep(payload);
                None
            }
        };
        // SAFETY: 1. the body is counted since `new`, and the countdown lies in our own frame.
        unsafe { Countdown::end_one(&raw const self.countdown) };
        self.countdown.waiter().wait(self.countdown.latch());
        if let Some(payload) = self.panic.take() {
            // The result is dropped first, while what it borrows is still there. Its destructor
            // must not replace the panic by one of its own.
            discard(result);
            resume_unwind(payload);
        }
        result.expect("a body that did not panic has a result")
    }

    /// Creates a job of the scope, which must count it already.
    ///
    /// # Safety
    /// 1. What `body` borrows outlives the scope.
    unsafe fn job(&self, body: impl FnOnce(&Worker) + Send) -> JobRef {
        let base = Pointer::to(self);
        let run = move |worker: &Worker| {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(worker))) {
                // SAFETY: the scope waits for the job, which ends below.
                unsafe { &*base.get() }.panic.keep(payload);
            }
        };
        let countdown = Pointer::to(&self.countdown);
        // SAFETY: 1. the countdown counts this job. This is the last touch.
        let end = move |_: &Worker| unsafe { Countdown::end_one(countdown.get()) };
        // SAFETY: 1. the scope waits for the job, and what `body` borrows outlives the scope (our
        // obligation 1). 2. The end holds a pointer, not a reference.
        unsafe { HeapJob::make(run, end) }
    }
}

/// A scope for jobs that may borrow what outlives it, as passed to the closure of
/// [`scope`](crate::parallel::scope).
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let sum = AtomicU32::new(0);
/// blitz_io::parallel::scope(|scope| {
///     for number in 1..=4 {
///         let sum = &sum;
///         scope.spawn(move |_| {
///             sum.fetch_add(number, Relaxed);
///         });
///     }
/// });
/// assert_eq!(sum.into_inner(), 10);
/// ```
pub struct Scope<'scope> {
    base: ScopeBase<'scope>,
}

/// A [`Scope`] in which the jobs that a thread spawns start in the order of their spawning, as
/// passed to the closure of [`scope_fifo`](crate::parallel::scope_fifo).
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// let pool = blitz_io::parallel::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
/// let order = Mutex::new(Vec::new());
/// pool.scope_fifo(|scope| {
///     for number in 0..3 {
///         let order = &order;
///         scope.spawn_fifo(move |_| order.lock().unwrap().push(number));
///     }
/// });
/// assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
/// ```
pub struct ScopeFifo<'scope> {
    base: ScopeBase<'scope>,
    /// One FIFO queue for each worker of the pool, including the temporary one.
    fifos: Box<[JobFifo]>,
}

/// Runs `op` with a scope for which `owner`, the worker of this thread, waits; jobs go to its pool.
pub(crate) fn scope<'scope, R>(owner: &Worker, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    in_place(owner.shared(), op)
}

/// Runs `op` with a scope for which this thread waits; jobs go to `registry`.
pub(crate) fn in_place<'scope, R>(
    registry: Arc<Registry>,
    op: impl FnOnce(&Scope<'scope>) -> R,
) -> R {
    let scope = Scope { base: ScopeBase::new(registry) };
    scope.base.complete(|| op(&scope))
}

/// Runs `op` with a FIFO scope for which `owner`, the worker of this thread, waits; jobs go to its
/// pool.
pub(crate) fn scope_fifo<'scope, R>(owner: &Worker, op: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
    in_place_fifo(owner.shared(), op)
}

/// Runs `op` with a FIFO scope for which this thread waits; jobs go to `registry`.
pub(crate) fn in_place_fifo<'scope, R>(
    registry: Arc<Registry>,
    op: impl FnOnce(&ScopeFifo<'scope>) -> R,
) -> R {
    let scope = ScopeFifo::new(registry);
    scope.base.complete(|| op(&scope))
}

impl<'scope> Scope<'scope> {
    /// Spawns a job into the scope, which does not end before the job has.
    ///
    /// The job receives the scope, and may spawn more jobs. Any thread of the pool may run it.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut halves = [0; 2];
    /// let (left, right) = halves.split_at_mut(1);
    /// blitz_io::parallel::scope(|scope| {
    ///     scope.spawn(|_| left[0] = 1);
    ///     scope.spawn(|_| right[0] = 2);
    /// });
    /// assert_eq!(halves, [1, 2]);
    /// ```
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        self.base.countdown.add(1);
        let scope = Pointer::to(self);
        // SAFETY: the scope counts the job until it has ended, so the scope is still there.
        let run = move |_: &Worker| body(unsafe { &*scope.get() });
        // SAFETY: 1. `'scope` outlives the scope.
        self.base.registry.push(unsafe { self.base.job(run) });
    }

    /// Spawns a job that each thread of the pool runs once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// let calls = AtomicUsize::new(0);
    /// blitz_io::parallel::scope(|scope| {
    ///     scope.spawn_broadcast(|_, _| {
    ///         calls.fetch_add(1, Relaxed);
    ///     });
    /// });
    /// assert_eq!(calls.into_inner(), blitz_io::parallel::current_num_threads());
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let scope = Pointer::to(self);
        // SAFETY: the scope counts the jobs, so it is there while they run; only they call `body`,
        // which outlives the scope.
        unsafe {
            spread(&self.base, move |context| body(&*scope.get(), context));
        }
    }
}

impl<'scope> ScopeFifo<'scope> {
    fn new(registry: Arc<Registry>) -> Self {
        let fifos = (0..registry.workers.len()).map(|_| JobFifo::new()).collect();
        Self { base: ScopeBase::new(registry), fifos }
    }

    /// Spawns a job into the scope; it starts after the jobs that this thread has spawned into it
    /// before.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    ///
    /// let ran = AtomicBool::new(false);
    /// blitz_io::parallel::scope_fifo(|scope| scope.spawn_fifo(|_| ran.store(true, Relaxed)));
    /// assert!(ran.into_inner());
    /// ```
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        self.base.countdown.add(1);
        let scope = Pointer::to(self);
        // SAFETY: the scope counts the job until it has ended, so the scope is still there.
        let run = move |_: &Worker| body(unsafe { &*scope.get() });
        // SAFETY: 1. `'scope` outlives the scope.
        let job = unsafe { self.base.job(run) };
        match self.base.registry.current() {
            // SAFETY: 1. the `JobFifo` is part of the scope, which waits for all jobs, and a
            // placeholder is taken off a deque before the job that it stands for has ended.
            Some(worker) => worker.push(unsafe { self.fifos[worker.index()].push(job) }),
            None => self.base.registry.inject(job),
        }
    }

    /// Spawns a job that each thread of the pool runs once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    ///
    /// let calls = AtomicUsize::new(0);
    /// blitz_io::parallel::scope_fifo(|scope| {
    ///     scope.spawn_broadcast(|_, _| {
    ///         calls.fetch_add(1, Relaxed);
    ///     });
    /// });
    /// assert_eq!(calls.into_inner(), blitz_io::parallel::current_num_threads());
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        let scope = Pointer::to(self);
        // SAFETY: the scope counts the jobs, so it is there while they run; only they call `body`,
        // which outlives the scope.
        unsafe {
            spread(&self.base, move |context| body(&*scope.get(), context));
        }
    }
}

/// Spawns one job of the scope for each worker.
///
/// # Safety
/// 1. What `body` borrows outlives the scope of `base`.
unsafe fn spread(base: &ScopeBase<'_>, body: impl Fn(BroadcastContext<'_>) + Send + Sync) {
    let count = base.registry.threads();
    base.countdown.add(count);
    let body = Arc::new(body);
    let jobs: Vec<JobRef> = (0..count)
        .map(|_| {
            let body = body.clone();
            // Each job owns a clone, so that the last clone is dropped before the scope goes.
            let run = move |worker: &Worker| body(BroadcastContext::new(worker));
            // SAFETY: 1. what `body` borrows outlives the scope (our obligation 1).
            unsafe { base.job(run) }
        })
        .collect();
    // Our clone is dropped before the jobs can end the scope.
    drop(body);
    base.registry.broadcast(jobs.into_iter());
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.describe("Scope", f)
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.describe("ScopeFifo", f)
    }
}

impl ScopeBase<'_> {
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("threads", &self.registry.threads())
            .field("panicked", &self.panic.is_kept())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models {
    use std::sync::Arc as StdArc;

    use super::FirstPanic;
    use crate::engine::{
        fork::latch::{Countdown, block},
        prim::{Arc, model, parker::Parker, thread, weakened},
    };

    /// Two jobs of a scope panic while its body ends and waits.
    #[test]
    fn a_panic_is_there_when_all_have_ended() {
        model(|| {
            let parker = StdArc::new(Parker::new());
            let shared = Arc::new((Countdown::new(3, parker.clone()), FirstPanic::new()));
            let jobs = [1u32, 2].map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    // SAFETY: 1. the countdown exists, because all threads hold it, and each is one
                    // of the three that are counted.
                    let end = || unsafe { Countdown::end_one(&raw const shared.0) };
                    if weakened!("scope_keeps_first") {
                        end();
                        shared.1.keep(Box::new(number));
                    } else {
                        shared.1.keep(Box::new(number));
                        end();
                    }
                })
            });
            // SAFETY: 1. the body is the third that is counted.
            unsafe { Countdown::end_one(&raw const shared.0) };
            block(shared.0.latch(), &parker);
            let first = shared.1.take().expect("two have panicked");
            assert!(first.downcast::<u32>().is_ok_and(|number| (1..=2).contains(&*number)));
            assert!(shared.1.take().is_none(), "the other one is dropped");
            for job in jobs {
                job.join().unwrap();
            }
        });
    }
}
