//! Jobs that borrow from a frame, which waits for all of them.
//!
//! # Protocol
//! A scope lies in the frame of `scope`. Its countdown counts the body and each job that was
//! spawned into it; a job spawns only while it, or the body, still counts. The frame
//! waits for the countdown after the body has ended, however it ended; the last touch of the frame by a
//! job is the last step of [`Countdown::end_one`].
//!
//! The first panic, of the body or of a job, is kept and goes on when all have ended.
//! Others are dropped.
//!
//! # Checked by
//! The models of `latch`; `the_first_panic_of_a_scope_leaves_when_all_jobs_have_ended` and
//! others in tests/it/parallel_scope.rs.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
};

use super::{
    broadcast::BroadcastContext,
    job::{HeapJob, JobRef, Line, Payload},
    latch::{self, Countdown, Waiter},
    registry::{Registry, Seat},
    worker::{self, Worker},
};
use crate::engine::prim::{Mutex, discard, lock, parker::Parker};

/// Who waits for a scope.
#[derive(Clone)]
enum Owner {
    Worker(Seat),
    Thread(Arc<Parker>),
}

impl Waiter for Owner {
    fn unpark(&self) {
        match self {
            Self::Worker(seat) => seat.unpark(),
            Self::Thread(parker) => parker.unpark(),
        }
    }
}

/// What both kinds of scopes are made of.
struct Base<'scope> {
    registry: Arc<Registry>,
    countdown: Countdown<Owner>,
    /// Of a thread that belongs to no pool.
    parker: Option<Arc<Parker>>,
    panic: Mutex<Option<Payload>>,
    /// Invariant in `'scope`, and a home of closures that are sent to other threads.
    #[expect(clippy::type_complexity, reason = "it is the type of what is spawned")]
    jobs: PhantomData<Box<dyn FnOnce(&Scope<'scope>) + Send + Sync + 'scope>>,
}

impl Base<'_> {
    fn new(registry: Arc<Registry>, owner: Option<&Worker>) -> Self {
        let (owner, parker) = match owner {
            Some(worker) => (Owner::Worker(Seat::of(worker)), None),
            None => {
                let parker = Arc::new(Parker::new());
                (Owner::Thread(parker.clone()), Some(parker))
            }
        };
        Self {
            registry,
            countdown: Countdown::new(1, owner),
            parker,
            panic: Mutex::new(None),
            jobs: PhantomData,
        }
    }

    /// Runs the body, waits for all jobs, and goes on with the first panic.
    fn complete<R>(&self, owner: Option<&Worker>, body: impl FnOnce() -> R) -> R {
        let outcome = catch_unwind(AssertUnwindSafe(body));
        let result = match outcome {
            Ok(result) => Some(result),
            Err(payload) => {
                self.keep(payload);
                None
            }
        };
        // SAFETY: 1. the body is counted since `new`, and the frame is ours.
        unsafe { Countdown::end_one(&raw const self.countdown) };
        match (owner, &self.parker) {
            (Some(worker), _) => worker.wait_until(self.countdown.latch()),
            (None, Some(parker)) => latch::block(self.countdown.latch(), parker),
            (None, None) => unreachable!("a scope is waited for by who made it"),
        }
        if let Some(payload) = lock(&self.panic).take() {
            // The result goes first: what it borrows is still there.
            drop(result);
            resume_unwind(payload);
        }
        result.expect("a body that did not panic has a result")
    }

    fn keep(&self, payload: Payload) {
        let mut kept = lock(&self.panic);
        let superfluous = match &*kept {
            None => kept.replace(payload),
            Some(_) => Some(payload),
        };
        drop(kept);
        discard(superfluous);
    }

    /// Runs a job of the scope, and ends it.
    ///
    /// # Safety
    /// 1. The scope is there, and counts this job. It may be gone when this returns.
    unsafe fn run(this: *const Self, job: impl FnOnce()) {
        // SAFETY: 1. until `end_one`.
        let base = unsafe { &*this };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
            base.keep(payload);
        }
        // SAFETY: 1.; the last touch.
        unsafe { Countdown::end_one(&raw const (*this).countdown) };
    }
}

/// A pointer to a scope that waits.
struct Pointer<S>(*const S);

impl<S> Clone for Pointer<S> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

// SAFETY: scopes are `Sync`, and who has a pointer to one is counted by it.
unsafe impl<S: Sync> Send for Pointer<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Pointer<S> {}

impl<S> Pointer<S> {
    /// By a method, so that closures take the whole pointer along and not its field.
    fn get(&self) -> *const S {
        self.0
    }
}

/// A place for jobs that may borrow what outlives the call that made it; see
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
    base: Base<'scope>,
}

/// A [`Scope`] whose jobs start in the order in which a thread spawned them; see
/// [`scope_fifo`](crate::parallel::scope_fifo).
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
    base: Base<'scope>,
    /// One for each worker of the pool, the guest too.
    lines: Box<[Line]>,
}

/// Runs `op` with a scope on `owner`, a worker of this thread; jobs go to its pool.
pub(crate) fn scope<'scope, R>(owner: &Worker, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let scope = Scope { base: Base::new(owner.shared(), Some(owner)) };
    scope.base.complete(Some(owner), || op(&scope))
}

/// Runs `op` with a scope on this thread; jobs go to `registry`.
pub(crate) fn in_place<'scope, R>(
    registry: Arc<Registry>,
    op: impl FnOnce(&Scope<'scope>) -> R,
) -> R {
    // SAFETY: not null, so it is the worker of this thread, which holds its pool.
    let owner = unsafe { worker::current().as_ref() };
    let scope = Scope { base: Base::new(registry, owner) };
    scope.base.complete(owner, || op(&scope))
}

/// As [`scope`].
pub(crate) fn scope_fifo<'scope, R>(owner: &Worker, op: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
    let scope = ScopeFifo::new(owner.shared(), Some(owner));
    scope.base.complete(Some(owner), || op(&scope))
}

/// As [`in_place`].
pub(crate) fn in_place_fifo<'scope, R>(
    registry: Arc<Registry>,
    op: impl FnOnce(&ScopeFifo<'scope>) -> R,
) -> R {
    // SAFETY: as in `in_place`.
    let owner = unsafe { worker::current().as_ref() };
    let scope = ScopeFifo::new(registry, owner);
    scope.base.complete(owner, || op(&scope))
}

impl<'scope> Scope<'scope> {
    /// Spawns a job into the scope, which does not end before it.
    ///
    /// The job gets the scope, and may spawn more. It is run by any thread of the pool.
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
        let scope = Pointer(self);
        let run = move |_: &Worker| {
            // SAFETY: the scope counts this job until `run` ends it.
            let scope = unsafe { &*scope.get() };
            // SAFETY: 1. counted by `add`.
            unsafe { Base::run(&raw const scope.base, || body(scope)) };
        };
        // SAFETY: 1. `'scope` outlives the scope, which waits for the job.
        self.base.registry.place(unsafe { HeapJob::make(run) });
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
        let scope = Pointer(self);
        // SAFETY: the scope counts the jobs, and `body` is called by those alone.
        unsafe {
            spread(&self.base, move |context| body(&*scope.get(), context));
        }
    }
}

impl<'scope> ScopeFifo<'scope> {
    fn new(registry: Arc<Registry>, owner: Option<&Worker>) -> Self {
        let lines = (0..registry.workers.len()).map(|_| Line::new()).collect();
        Self { base: Base::new(registry, owner), lines }
    }

    /// Spawns a job into the scope, behind those that this thread has spawned into it.
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
        let scope = Pointer(self);
        let run = move |_: &Worker| {
            // SAFETY: the scope counts this job until `run` ends it.
            let scope = unsafe { &*scope.get() };
            // SAFETY: 1. counted by `add`.
            unsafe { Base::run(&raw const scope.base, || body(scope)) };
        };
        // SAFETY: 1. `'scope` outlives the scope, which waits for the job.
        let job = unsafe { HeapJob::make(run) };
        match self.base.registry.current() {
            // SAFETY: 1. the line is part of the scope, which waits for all jobs, and a
            // place in it is taken before the job that it stands for has ended.
            Some(worker) => worker.push(unsafe { self.lines[worker.index()].push(job) }),
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
        let scope = Pointer(self);
        // SAFETY: as in `Scope::spawn_broadcast`.
        unsafe {
            spread(&self.base, move |context| body(&*scope.get(), context));
        }
    }
}

/// One job of the scope for each worker.
///
/// # Safety
/// 1. What `body` borrows outlives the scope of `base`.
unsafe fn spread(base: &Base<'_>, body: impl Fn(BroadcastContext<'_>) + Send + Sync) {
    let count = base.registry.threads();
    base.countdown.add(count);
    let (body, base_pointer) = (Arc::new(body), Pointer(base));
    let jobs: Vec<JobRef> = (0..count)
        .map(|_| {
            let (body, base) = (body.clone(), base_pointer.clone());
            let run = move |worker: &Worker| {
                // Taken along, so that the last one goes before the scope does.
                let job = move || body(BroadcastContext::new(worker));
                // SAFETY: 1. counted by `add`.
                unsafe { Base::run(base.get(), job) };
            };
            // SAFETY: 1. the scope waits for the job, and `body` outlives it.
            unsafe { HeapJob::make(run) }
        })
        .collect();
    // Ours goes before the jobs can end the scope.
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

impl Base<'_> {
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("threads", &self.registry.threads())
            .field("panicked", &lock(&self.panic).is_some())
            .finish_non_exhaustive()
    }
}
