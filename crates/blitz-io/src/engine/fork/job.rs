//! A job: a closure behind one pointer, in a stack frame or on the heap.
//!
//! # Protocol
//! A job begins with its `JobHeader`, and queues hold pointers to headers. The thread that takes a
//! job from a queue runs it, once, by `run`. A job in a stack frame ([`StackJob`], [`CallJob`])
//! stays there until its latch is set; one on the heap ([`HeapJob`]) frees itself.
//!
//! No job unwinds into the thread that runs it: a panic of a user's closure is caught and kept in
//! the job, or passed to the pool. So a frame that has a job in a queue is never left by an
//! unwinding that the frame's function does not see. If one did unwind, the process would abort.
//!
//! Reporting the end of a job may free what the job borrowed. So everything that a closure has
//! captured must be dropped before the end is reported: a closure that is called by value keeps its
//! references until the very end of the call. That is why the user's part of a [`HeapJob`] and its
//! *end* are two closures, and the end holds pointers only.
//!
//! # Checked by
//! `a_job_on_a_frame_gives_its_result_or_its_panic`, `a_heap_job_runs_once_and_is_freed`,
//! `the_end_of_a_heap_job_comes_when_its_closure_is_gone`, `a_fifo_runs_the_oldest_first`.

use std::{
    any::Any,
    collections::VecDeque,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    sync::Arc,
};

use super::{
    deque::Index,
    latch::{Latch, Unpark},
    registry::AbortIfPanic,
    worker::Worker,
};
use crate::engine::prim::{Mutex, UnsafeCell, lock};

/// The payload of a panic.
pub(crate) type PanicPayload = Box<dyn Any + Send>;

/// The function that runs a job. Its arguments are the job, the worker that owns the deque from
/// which it was taken (none if it was injected or broadcast), and the worker that runs it.
pub(crate) type RunFn = unsafe fn(NonNull<JobHeader>, Option<&Worker>, &Worker);

/// The first word of each job.
pub(crate) struct JobHeader {
    run: RunFn,
}

impl JobHeader {
    /// Creates the header of a job of another kind than those in this file.
    pub(crate) fn new(run: RunFn) -> Self {
        Self { run }
    }
}

/// A pointer to a job, as queues hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobRef(NonNull<JobHeader>);

// SAFETY: a `JobRef` of a closure that may not be sent must not be put into a queue. All
// constructors require `Send`, or their callers say why the job stays on its thread.
unsafe impl Send for JobRef {}

impl JobRef {
    /// Creates a reference from a header pointer that a queue held.
    pub(crate) fn from_header(header: NonNull<JobHeader>) -> Self {
        Self(header)
    }

    pub(crate) fn header(self) -> NonNull<JobHeader> {
        self.0
    }

    /// Creates a reference to a job that is shared through an `Arc`.
    ///
    /// # Safety
    /// 1. A `T` begins with its header, and running it takes the `Arc` back.
    pub(crate) unsafe fn of_shared<T: Send + Sync>(job: Arc<T>) -> Self {
        // SAFETY: an `Arc` is not null.
        Self(unsafe { NonNull::new_unchecked(Arc::into_raw(job).cast_mut().cast()) })
    }

    /// Runs the job.
    ///
    /// # Safety
    /// 1. The caller took the job from a queue, and runs it once. 2. `by` is the worker of this
    ///    thread, and `from` is the owner of the deque from which the job was taken.
    #[inline]
    pub(crate) unsafe fn run(self, from: Option<&Worker>, by: &Worker) {
        // SAFETY: a job that was in a queue stays in memory until it has run, and obligation 1 says
        // that it has not.
        let run = unsafe { self.0.as_ref() }.run;
        // Jobs do not unwind. If our own code did, the unwinding would leave frames with jobs that
        // other threads still hold.
        let abort = AbortIfPanic("a bug in the pool");
        // SAFETY: 1. our caller took the job from a queue and runs it once. 2. `by` is the worker of
        // this thread, and `from` the owner of the deque.
        unsafe { run(self.0, from, by) };
        std::mem::forget(abort);
    }
}

/// The second closure of a join. It lies in the frame of the join, which is not left until the
/// latch is set or the job was taken back.
#[repr(C)]
pub(crate) struct StackJob<F, R> {
    header: JobHeader,
    latch: Latch,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, PanicPayload>>>,
}

impl<F, R> StackJob<F, R>
where
    F: FnOnce(&Worker, bool) -> R,
{
    /// Creates a job that will be pushed at `index` of its deque.
    #[inline(always)]
    pub(crate) fn new(closure: F, index: Index) -> Self {
        Self {
            header: JobHeader { run: Self::run },
            latch: Latch::with(index),
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> NonNull<JobHeader> {
        // The pointer is made from the whole job, not from its first field, because `run` casts it
        // back to the job.
        NonNull::from(self).cast()
    }

    #[inline(always)]
    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Returns the index at which the job was pushed, or `None` if it has run elsewhere. Only for
    /// the thread that pushed it, before that thread has waited for the latch.
    #[inline(always)]
    pub(crate) fn index(&self) -> Option<Index> {
        self.latch.number()
    }

    /// Moves the closure out of the job.
    ///
    /// # Safety
    /// 1. The caller took the job from the queue, or never put it there. 2. The job is not run.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> F {
        // SAFETY: no other thread reads the closure, because the caller has the job (1), and it is
        // read once, because the job is not run (2).
        self.closure.with_mut(|closure| unsafe { ManuallyDrop::take(&mut *closure) })
    }

    /// Returns the closure's result, or its panic.
    ///
    /// # Safety
    /// 1. The latch is set. 2. This method is called once.
    pub(crate) unsafe fn outcome(&self) -> Result<R, PanicPayload> {
        // SAFETY: 1. the outcome was written before the latch was set. 2. It is read once.
        self.result.with(|result| unsafe { (*result).assume_init_read() })
    }

    /// # Safety
    /// The obligations of [`JobRef::run`] hold, and `header` is the header of a job of this type.
    #[cold]
    unsafe fn run(header: NonNull<JobHeader>, from: Option<&Worker>, by: &Worker) {
        let this: *const Self = header.as_ptr().cast();
        {
            // SAFETY: the frame stays until the latch is set, below.
            let job = unsafe { &*this };
            // SAFETY: 1. the caller of `run` took the job from a queue. 2. It is run once, and this
            // is that run.
            let closure = unsafe { job.take() };
            let outcome = catch_unwind(AssertUnwindSafe(|| closure(by, true)));
            // SAFETY: the waiting thread reads the result only after the latch is set.
            job.result.with_mut(|result| unsafe { (*result).write(outcome) });
        }
        // SAFETY: the latch is still there, because only this call sets it. It is the last touch of
        // the frame.
        if unsafe { Latch::set(&raw const (*this).latch) } {
            // The waiting thread is the owner of the deque; that worker lives as long as the pool
            // of `by`.
            if let Some(owner) = from {
                owner.wake();
            }
        }
    }
}

/// A job for which a thread outside of the pool waits: a thread of no pool, or of another one.
#[repr(C)]
pub(crate) struct CallJob<F, R, W> {
    header: JobHeader,
    latch: Latch,
    waiter: W,
    closure: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<Result<R, PanicPayload>>>,
}

impl<F, R, W> CallJob<F, R, W>
where
    F: FnOnce(&Worker) -> R + Send,
    R: Send,
    W: Unpark,
{
    pub(crate) fn new(closure: F, waiter: W) -> Self {
        Self {
            header: JobHeader { run: Self::run },
            latch: Latch::new(),
            waiter,
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the reference to put into a queue.
    ///
    /// # Safety
    /// 1. The caller waits for the latch before the job is moved or dropped. 2. It puts the job
    ///    into one queue, once.
    pub(crate) unsafe fn job(&self) -> JobRef {
        JobRef(NonNull::from(self).cast())
    }

    pub(crate) fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Returns the closure's result, or resumes its panic.
    ///
    /// # Safety
    /// 1. The latch is set. 2. This method is called once.
    pub(crate) unsafe fn into_result(self) -> R {
        // SAFETY: 1. the outcome was written before the latch was set. 2. It is read once, because
        // `self` is consumed.
        let outcome = self.result.with(|result| unsafe { (*result).assume_init_read() });
        outcome.unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// # Safety
    /// The obligations of [`JobRef::run`] hold, and `header` is the header of a job of this type.
    unsafe fn run(header: NonNull<JobHeader>, _from: Option<&Worker>, by: &Worker) {
        let this: *const Self = header.as_ptr().cast();
        let waiter = {
            // SAFETY: the frame stays until the latch is set, below.
            let job = unsafe { &*this };
            // SAFETY: the closure is read once, because the job is run once.
            let closure = job.closure.with_mut(|it| unsafe { ManuallyDrop::take(&mut *it) });
            let outcome = catch_unwind(AssertUnwindSafe(|| closure(by)));
            // SAFETY: the waiting thread reads the result only after the latch is set.
            job.result.with_mut(|result| unsafe { (*result).write(outcome) });
            job.waiter.clone()
        };
        // SAFETY: the latch is still there, because only this call sets it. It is the last touch of
        // the frame.
        if unsafe { Latch::set(&raw const (*this).latch) } {
            waiter.unpark();
        }
    }
}

/// A job on the heap, which frees itself when it has run.
#[repr(C)]
pub(crate) struct HeapJob<F, E> {
    header: JobHeader,
    closure: F,
    end: E,
}

impl<F: FnOnce(&Worker) + Send, E: FnOnce(&Worker) + Send> HeapJob<F, E> {
    /// Creates a job that runs `closure` and then `end`, and returns the reference to put into a
    /// queue. Neither closure may unwind: the process would abort.
    ///
    /// # Safety
    /// 1. `closure` is run before what it borrows goes. 2. `end` borrows nothing that may be freed
    ///    by what it does: it must hold pointers for that.
    pub(crate) unsafe fn make(closure: F, end: E) -> JobRef {
        let job = Box::new(Self { header: JobHeader { run: Self::run }, closure, end });
        JobRef(NonNull::from(Box::leak(job)).cast())
    }

    /// # Safety
    /// The obligations of [`JobRef::run`] hold, and `header` is the header of a job of this type.
    unsafe fn run(header: NonNull<JobHeader>, _from: Option<&Worker>, by: &Worker) {
        // SAFETY: `make` leaked the box, and the job is run once.
        let job = unsafe { Box::from_raw(header.as_ptr().cast::<Self>()) };
        let Self { closure, end, .. } = *job;
        closure(by);
        end(by);
    }
}

/// A FIFO queue of jobs on top of a deque, which by itself runs the newest job first.
///
/// For each job, the deque gets a placeholder that points to this queue. The thread that takes a
/// placeholder runs the oldest job in the queue.
#[repr(C)]
pub(crate) struct JobFifo {
    header: JobHeader,
    jobs: Mutex<VecDeque<JobRef>>,
}

impl JobFifo {
    pub(crate) fn new() -> Self {
        Self { header: JobHeader { run: Self::run }, jobs: Mutex::new(VecDeque::new()) }
    }

    /// Appends the job to the queue, and returns the placeholder for it, which must be put on a
    /// deque.
    ///
    /// # Safety
    /// 1. The `JobFifo` stays where it is until all its placeholders have run.
    pub(crate) unsafe fn push(&self, job: JobRef) -> JobRef {
        lock(&self.jobs).push_back(job);
        JobRef(NonNull::from(self).cast())
    }

    /// # Safety
    /// The obligations of [`JobRef::run`] hold, and `header` is the header of a `JobFifo`.
    unsafe fn run(header: NonNull<JobHeader>, from: Option<&Worker>, by: &Worker) {
        // SAFETY: the `JobFifo` stays until all its placeholders have run, and this one is still
        // running.
        let fifo = unsafe { header.cast::<Self>().as_ref() };
        let job = lock(&fifo.jobs).pop_front();
        let job = job.expect("a placeholder stands for one job");
        // SAFETY: 1. the job was just taken from the `JobFifo`, and is run once. 2. Our caller
        // vouches for both workers.
        unsafe { job.run(from, by) };
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering::SeqCst};

    use super::{HeapJob, JobFifo, JobRef, StackJob};
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
                // SAFETY: 1. the job is run once. 2. The worker is this thread's, and the job might
                // have been on its deque.
                unsafe { JobRef::from_header(job.header()).run(Some(worker), worker) };
                assert!(job.latch().is_set());
                // SAFETY: 1. the line above saw that the latch is set. 2. The outcome is read once.
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
            let shared = Arc::new(());
            let count = AtomicUsize::new(0);
            // SAFETY: 1. the job runs in the next statement. 2. Its end borrows nothing.
            let job = unsafe {
                HeapJob::make(
                    {
                        let (shared, count) = (shared.clone(), &count);
                        move |_: &Worker| {
                            let _shared = shared;
                            count.fetch_add(1, SeqCst);
                        }
                    },
                    |_: &Worker| {},
                )
            };
            // SAFETY: 1. the job is run once. 2. The worker is this thread's.
            unsafe { job.run(None, worker) };
            assert_eq!((count.load(SeqCst), Arc::strong_count(&shared)), (1, 1));
        });
    }

    /// Counts its own drop.
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
            // SAFETY: 1. the job runs in the next statement. 2. The end borrows from this frame,
            // which it does not free.
            let job = unsafe {
                HeapJob::make(
                    move |_: &Worker| _ = &captured,
                    |_: &Worker| gone_at_end.store(gone.load(SeqCst), SeqCst),
                )
            };
            // SAFETY: 1. the job is run once. 2. The worker is this thread's.
            unsafe { job.run(None, worker) };
            assert_eq!(gone_at_end.into_inner(), 1);
        });
    }

    #[test]
    fn a_fifo_runs_the_oldest_first() {
        with_worker(|worker| {
            let order = std::sync::Mutex::new(Vec::new());
            let fifo = JobFifo::new();
            let placeholders: Vec<_> = (0..4)
                .map(|number| {
                    let order = &order;
                    // SAFETY: 1. the job runs below. 2. Its end borrows nothing.
                    let job = unsafe {
                        let run = move |_: &Worker| order.lock().unwrap().push(number);
                        HeapJob::make(run, |_: &Worker| {})
                    };
                    // SAFETY: 1. the `JobFifo` is dropped after its placeholders have run.
                    unsafe { fifo.push(job) }
                })
                .collect();
            for placeholder in placeholders.into_iter().rev() {
                // SAFETY: 1. each placeholder is run once. 2. The worker is this thread's.
                unsafe { placeholder.run(None, worker) };
            }
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        });
    }
}
