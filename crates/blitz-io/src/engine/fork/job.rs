//! A job: a closure behind one pointer, on a frame or on the heap.
//!
//! # Protocol
//! A job begins with its `Header`, and a pointer to that is what queues hold. Whoever takes
//! a job from a queue runs it, once, by `run`. A job on a frame ([`StackJob`], [`CallJob`])
//! stays until its latch is set; one on the heap ([`HeapJob`]) frees itself.
//!
//! No job unwinds into whoever runs it: what a user's closure throws is caught and kept in
//! the job, or handed to the pool. So a frame whose job is in a queue is never left by an
//! unwinding that the frame's function does not see. If one did, the process would abort.
//!
//! What is told of a job's end may free what the job borrowed. So whatever a closure has
//! captured is gone before that is told: a closure that is called by value lends its
//! references to the call, to the very end of it. The user's part of a [`HeapJob`] and its
//! *end* are two closures for that reason, and the end has pointers only.
//!
//! # Checked by
//! `a_job_on_a_frame_gives_its_result_or_its_panic`, `a_heap_job_runs_once_and_is_freed`,
//! `the_end_of_a_heap_job_comes_when_its_closure_is_gone`, `a_line_runs_the_oldest_first`.

use std::{
    any::Any,
    collections::VecDeque,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    sync::Arc,
};

use super::{
    latch::{Latch, Waiter},
    registry::AbortOnUnwind,
    stack::Index,
    worker::Worker,
};
use crate::engine::prim::{Mutex, UnsafeCell, lock};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// How a job is run: the job, the worker whose stack it was taken from (none if it was
/// injected or broadcast), and the worker that runs it.
pub(crate) type Run = unsafe fn(NonNull<Header>, Option<&Worker>, &Worker);

/// The first word of each job.
pub(crate) struct Header {
    run: Run,
}

impl Header {
    /// For a job of another kind than those below.
    pub(crate) fn new(run: Run) -> Self {
        Self { run }
    }
}

/// A job in a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobRef(NonNull<Header>);

// SAFETY: whoever makes one of a closure that may not be sent does not put it into a queue:
// all constructors want `Send`, or their callers say why it stays.
unsafe impl Send for JobRef {}

impl JobRef {
    /// From a queue that holds pointers.
    pub(crate) fn from_header(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn header(self) -> NonNull<Header> {
        self.0
    }

    /// A job that shares its memory with somebody.
    ///
    /// # Safety
    /// 1. A `T` begins with its header, and to run it takes the `Arc` back.
    pub(crate) unsafe fn of_shared<T: Send + Sync>(job: Arc<T>) -> Self {
        // SAFETY: an `Arc` is not null.
        Self(unsafe { NonNull::new_unchecked(Arc::into_raw(job).cast_mut().cast()) })
    }

    /// Runs the job.
    ///
    /// # Safety
    /// 1. The caller took the job from a queue, and runs it once. 2. `by` is the worker of
    ///    this thread, and `from` that from whose stack it was taken.
    #[inline]
    pub(crate) unsafe fn run(self, from: Option<&Worker>, by: &Worker) {
        // SAFETY: a job in a queue is there until it has run (1.).
        let run = unsafe { self.0.as_ref() }.run;
        // Jobs do not unwind. If something of ours did, it would leave frames behind whose
        // jobs others have.
        let abort = AbortOnUnwind("a bug in the pool");
        // SAFETY: 1. and 2.
        unsafe { run(self.0, from, by) };
        std::mem::forget(abort);
    }
}

/// The second half of a join: it lies in the frame of the first, which stays until the
/// latch is set or the job was taken back.
#[repr(C)]
pub(crate) struct StackJob<F, R> {
    header: Header,
    latch: Latch,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, Payload>>>,
}

impl<F, R> StackJob<F, R>
where
    F: FnOnce(&Worker, bool) -> R,
{
    /// A job that will be pushed at that index of its stack.
    #[inline(always)]
    pub(crate) fn new(closure: F, index: Index) -> Self {
        Self {
            header: Header { run: Self::run },
            latch: Latch::with(index),
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> NonNull<Header> {
        // From the whole job, not from its first field: `run` casts it back.
        NonNull::from(self).cast()
    }

    #[inline(always)]
    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Where it was pushed, if it has not run elsewhere. For the one who pushed it, before it
    /// has waited.
    #[inline(always)]
    pub(crate) fn index(&self) -> Option<Index> {
        self.latch.number()
    }

    /// The closure.
    ///
    /// # Safety
    /// 1. The caller took the job from the queue, or never put it there. 2. It does not run it.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> F {
        // SAFETY: 1. and 2.: nobody else reads it, and it is read once.
        self.closure.with_mut(|closure| unsafe { ManuallyDrop::take(&mut *closure) })
    }

    /// What the closure returned, or threw.
    ///
    /// # Safety
    /// 1. The latch is set. 2. It is called once.
    pub(crate) unsafe fn outcome(&self) -> Result<R, Payload> {
        // SAFETY: 1. it was written before the latch was set. 2. It is read once.
        self.result.with(|result| unsafe { (*result).assume_init_read() })
    }

    /// # Safety
    /// As [`JobRef::run`], with a header of this type's job.
    #[cold]
    unsafe fn run(header: NonNull<Header>, from: Option<&Worker>, by: &Worker) {
        let this: *const Self = header.as_ptr().cast();
        {
            // SAFETY: the frame stays until the latch is set, below.
            let job = unsafe { &*this };
            // SAFETY: 1. `run`'s caller took the job. 2. As does `run` here, once.
            let closure = unsafe { job.take() };
            let outcome = catch_unwind(AssertUnwindSafe(|| closure(by, true)));
            // SAFETY: the one who waits reads it after the latch is set.
            job.result.with_mut(|result| unsafe { (*result).write(outcome) });
        }
        // SAFETY: the last touch of the frame.
        if unsafe { Latch::set(&raw const (*this).latch) } {
            // Who waits is the owner of the stack; it lives as long as the pool of `by`.
            if let Some(owner) = from {
                owner.call();
            }
        }
    }
}

/// A job that another thread than a pool's waits for, or one of another pool.
#[repr(C)]
pub(crate) struct CallJob<F, R, W> {
    header: Header,
    latch: Latch,
    waiter: W,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, Payload>>>,
}

impl<F, R, W> CallJob<F, R, W>
where
    F: FnOnce(&Worker) -> R + Send,
    R: Send,
    W: Waiter,
{
    pub(crate) fn new(closure: F, waiter: W) -> Self {
        Self {
            header: Header { run: Self::run },
            latch: Latch::new(),
            waiter,
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The job for a queue.
    ///
    /// # Safety
    /// 1. The caller waits for the latch before the job goes. 2. It puts it into one queue, once.
    pub(crate) unsafe fn job(&self) -> JobRef {
        JobRef(NonNull::from(self).cast())
    }

    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// What the closure returned; goes on with what it threw.
    ///
    /// # Safety
    /// 1. The latch is set. 2. It is called once.
    pub(crate) unsafe fn into_result(self) -> R {
        // SAFETY: 1. and 2., as in `StackJob::outcome`.
        let outcome = self.result.with(|result| unsafe { (*result).assume_init_read() });
        outcome.unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// # Safety
    /// As [`JobRef::run`], with a header of this type's job.
    unsafe fn run(header: NonNull<Header>, _from: Option<&Worker>, by: &Worker) {
        let this: *const Self = header.as_ptr().cast();
        let waiter = {
            // SAFETY: the frame stays until the latch is set, below.
            let job = unsafe { &*this };
            // SAFETY: the job is run once.
            let closure = job.closure.with_mut(|it| unsafe { ManuallyDrop::take(&mut *it) });
            let outcome = catch_unwind(AssertUnwindSafe(|| closure(by)));
            // SAFETY: the one who waits reads it after the latch is set.
            job.result.with_mut(|result| unsafe { (*result).write(outcome) });
            job.waiter.clone()
        };
        // SAFETY: the last touch of the frame.
        if unsafe { Latch::set(&raw const (*this).latch) } {
            waiter.unpark();
        }
    }
}

/// A job that nobody's frame holds.
#[repr(C)]
pub(crate) struct HeapJob<F, E> {
    header: Header,
    closure: F,
    end: E,
}

impl<F: FnOnce(&Worker) + Send, E: FnOnce(&Worker) + Send> HeapJob<F, E> {
    /// The job for a queue: runs `closure` and then `end`. Neither must unwind: the process
    /// would abort.
    ///
    /// # Safety
    /// 1. `closure` is run before what it borrows goes. 2. `end` borrows nothing that may go by
    ///    what it does: it has pointers for that.
    pub(crate) unsafe fn make(closure: F, end: E) -> JobRef {
        let job = Box::new(Self { header: Header { run: Self::run }, closure, end });
        JobRef(NonNull::from(Box::leak(job)).cast())
    }

    /// # Safety
    /// As [`JobRef::run`], with a header of this type's job.
    unsafe fn run(header: NonNull<Header>, _from: Option<&Worker>, by: &Worker) {
        // SAFETY: `make` leaked it, and it is run once.
        let job = unsafe { Box::from_raw(header.as_ptr().cast::<Self>()) };
        let Self { closure, end, .. } = *job;
        closure(by);
        end(by);
    }
}

/// Jobs that run in the order in which they came, though a stack does not.
///
/// The stack gets a place in the line for each job; whoever takes a place runs the
/// oldest job.
#[repr(C)]
pub(crate) struct Line {
    header: Header,
    jobs: Mutex<VecDeque<JobRef>>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { header: Header { run: Self::run }, jobs: Mutex::new(VecDeque::new()) }
    }

    /// Puts the job at the end of the line; the answer is a place in it, for a queue.
    ///
    /// # Safety
    /// 1. The line stays where it is until all its places have run.
    pub(crate) unsafe fn push(&self, job: JobRef) -> JobRef {
        lock(&self.jobs).push_back(job);
        JobRef(NonNull::from(self).cast())
    }

    /// # Safety
    /// As [`JobRef::run`], with the header of a line.
    unsafe fn run(header: NonNull<Header>, from: Option<&Worker>, by: &Worker) {
        // SAFETY: the line stays until all its places have run, and this one is running.
        let line = unsafe { header.cast::<Self>().as_ref() };
        let job = lock(&line.jobs).pop_front();
        let job = job.expect("a place in a line stands for one job");
        // SAFETY: 1. taken from the line, once. 2. As for the place.
        unsafe { job.run(from, by) };
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering::SeqCst};

    use super::{HeapJob, JobRef, Line, StackJob};
    use crate::engine::fork::worker::{Worker, for_test::with_worker};

    #[test]
    fn a_job_on_a_frame_gives_its_result_or_its_panic() {
        with_worker(|worker| {
            for panics in [false, true] {
                let job = StackJob::new(
                    |_, migrated| {
                        assert!(migrated);
                        if panics {
                            std::panic::resume_unwind(Box::new(5));
                        }
                        "fine"
                    },
                    1,
                );
                // SAFETY: 1. run once. 2. This thread's worker, from whose stack it might be.
                unsafe { JobRef::from_header(job.header()).run(Some(worker), worker) };
                assert!(job.latch().is_set());
                // SAFETY: 1. just seen. 2. Once.
                match unsafe { job.outcome() } {
                    Ok(value) => assert_eq!((value, panics), ("fine", false)),
                    Err(payload) => assert!(panics && payload.is::<i32>()),
                }
            }
        });
    }

    #[test]
    fn a_heap_job_runs_once_and_is_freed() {
        with_worker(|worker| {
            let held = Arc::new(());
            let count = AtomicUsize::new(0);
            // SAFETY: 1. it runs in the next line.
            let job = unsafe {
                HeapJob::make(
                    {
                        let (held, count) = (held.clone(), &count);
                        move |_: &Worker| {
                            let _held = held;
                            count.fetch_add(1, SeqCst);
                        }
                    },
                    |_: &Worker| {},
                )
            };
            // SAFETY: 1. once. 2. As above.
            unsafe { job.run(None, worker) };
            assert_eq!((count.load(SeqCst), Arc::strong_count(&held)), (1, 1));
        });
    }

    /// Says when it goes.
    struct Captured<'a>(&'a AtomicUsize);

    impl Drop for Captured<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn the_end_of_a_heap_job_comes_when_its_closure_is_gone() {
        with_worker(|worker| {
            let (gone, gone_at_end) = (AtomicUsize::new(0), AtomicUsize::new(9));
            let captured = Captured(&gone);
            // SAFETY: 1. it runs in the next line. 2. The frame stays.
            let job = unsafe {
                HeapJob::make(
                    move |_: &Worker| _ = &captured,
                    |_: &Worker| gone_at_end.store(gone.load(SeqCst), SeqCst),
                )
            };
            // SAFETY: 1. once. 2. This thread's worker.
            unsafe { job.run(None, worker) };
            assert_eq!(gone_at_end.into_inner(), 1);
        });
    }

    #[test]
    fn a_line_runs_the_oldest_first() {
        with_worker(|worker| {
            let order = std::sync::Mutex::new(Vec::new());
            let line = Line::new();
            let places: Vec<_> = (0..4)
                .map(|number| {
                    let order = &order;
                    // SAFETY: 1. it runs below.
                    let job = unsafe {
                        let run = move |_: &Worker| order.lock().unwrap().push(number);
                        HeapJob::make(run, |_: &Worker| {})
                    };
                    // SAFETY: 1. the line is dropped after its places have run.
                    unsafe { line.push(job) }
                })
                .collect();
            for place in places.into_iter().rev() {
                // SAFETY: 1. once each. 2. As above.
                unsafe { place.run(None, worker) };
            }
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        });
    }
}
