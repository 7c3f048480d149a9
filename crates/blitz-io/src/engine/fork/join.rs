//! Two closures, perhaps in parallel: the price of a join that nobody steals from.
//!
//! # Protocol
//! ```text
//! J1 puts b on the stack, as a job in this frame
//! J2 runs a, and catches what it throws
//! J3 if nobody has run it and it is there, on top: takes it off, runs b here
//! J4 else: runs what lies above it, then b if that is still there
//! J5 else a thief has it, or a wait inside of a ran it: waits for the latch
//! ```
//! The frame is left only when b is no longer in any queue: after J3, J4 or J5, and if a
//! panicked after J5 (whose wait finds b on the stack, if it is there). So both closures
//! always run, and of two panics that of a is the one that leaves.
//!
//! # Rejected
//! A guard that is dropped when a unwinds: measured slower than `catch_unwind`, and b would
//! run during an unwinding.
//!
//! # Checked by
//! `a_panic_of_either_half_waits_for_the_other` and others in tests/it/parallel_join.rs.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use super::{
    call, global,
    job::{JobRef, Payload, StackJob},
    worker::{self, Worker},
};
use crate::engine::prim::discard;

/// Runs both; each is told which worker runs it and whether that is another thread than it
/// could have expected.
///
/// # Safety
/// 1. `worker` is that of this thread. 2. `b` and what it returns may be sent to another.
#[inline(always)]
pub(crate) unsafe fn join<A, B, RA, RB>(worker: &Worker, injected: bool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA,
    B: FnOnce(&Worker, bool) -> RB,
{
    let stack = worker.stack();
    // In the job, and so in memory: kept in a register it would be saved by each call, also by
    // those that do not join.
    let index = stack.top();
    let job = StackJob::new(b, index);
    // SAFETY: 1. as here. 2. `answer` follows at once. 3. Just asked.
    if unsafe { stack.push_at(job.header(), index) } {
        worker.answer();
    }
    let first = match catch_unwind(AssertUnwindSafe(|| a(worker, injected))) {
        Ok(first) => first,
        Err(payload) => abandon(worker, &job, payload),
    };
    // SAFETY: 1. as here. 2. Joins end before what called them. 3. Its latch is unset.
    if job.index().is_some_and(|index| unsafe { stack.pop_at(index) }) {
        // SAFETY: 1. just taken off. 2. It is not run as a job.
        let b = unsafe { job.take() };
        return (first, b(worker, injected));
    }
    let second = recover(worker, &job, injected);
    (first, second)
}

/// J4 and J5.
#[cold]
#[inline(never)]
fn recover<B, RB>(worker: &Worker, job: &StackJob<B, RB>, injected: bool) -> RB
where
    B: FnOnce(&Worker, bool) -> RB,
{
    let own = JobRef::from_header(job.header());
    // What lies above may take long, and no push comes meanwhile to look for those who ask.
    if worker.stack().is_asked() {
        worker.answer();
    }
    while !job.latch().is_set() {
        match worker.pop() {
            Some(top) if top == own => {
                // SAFETY: 1. just taken off. 2. It is not run as a job.
                let b = unsafe { job.take() };
                return b(worker, injected);
            }
            // SAFETY: 1. just taken off. 2. This thread's worker and stack.
            Some(other) => unsafe { other.run(Some(worker), worker) },
            None => worker.wait_until(job.latch()),
        }
    }
    // SAFETY: 1. the loop. 2. Once.
    unsafe { job.outcome() }.unwrap_or_else(|payload| resume_unwind(payload))
}

/// The first half panicked: waits for the second and goes on.
#[cold]
#[inline(never)]
fn abandon<B, RB>(worker: &Worker, job: &StackJob<B, RB>, payload: Payload) -> !
where
    B: FnOnce(&Worker, bool) -> RB,
{
    worker.wait_until(job.latch());
    // SAFETY: 1. just waited. 2. Once.
    discard(unsafe { job.outcome() });
    resume_unwind(payload)
}

/// [`join`] on the worker of this thread; on the global pool if it has none.
#[inline(always)]
pub(crate) fn join_here<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA + Send,
    B: FnOnce(&Worker, bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let worker = worker::current();
    if worker.is_null() {
        return join_outside(a, b);
    }
    // SAFETY: not null, so it is the worker of this thread, which holds its pool.
    let worker = unsafe { &*worker };
    if size_of::<A>() + size_of::<B>() > INLINED {
        // SAFETY: 1. as above. 2. The bounds.
        return unsafe { join_apart(worker, a, b) };
    }
    // SAFETY: 1. as above. 2. The bounds.
    unsafe { join(worker, false, a, b) }
}

/// Closures that capture more than this are joined by a call: what they do takes longer than
/// that, and the loops round a join that is inlined are compiled worse (a sort lost a tenth).
const INLINED: usize = 4 * size_of::<usize>();

/// [`join`], called.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn join_apart<A, B, RA, RB>(worker: &Worker, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA,
    B: FnOnce(&Worker, bool) -> RB,
{
    // SAFETY: as here.
    unsafe { join(worker, false, a, b) }
}

#[cold]
#[inline(never)]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA + Send,
    B: FnOnce(&Worker, bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    call::on_worker(global::registry(), |worker, injected| {
        // SAFETY: 1. `on_worker` says so. 2. The bounds.
        unsafe { join(worker, injected, a, b) }
    })
}

/// [`join`] on a worker that is known to be that of this thread.
#[inline(always)]
pub(crate) fn join_on<A, B, RA, RB>(worker: Here<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(Here<'_>) -> RA,
    B: FnOnce(Here<'_>) -> RB + Send,
    RB: Send,
{
    // SAFETY: 1. `Here` says so. 2. The bounds.
    unsafe {
        join(
            worker.worker,
            false,
            #[inline(always)]
            |worker: &Worker, _| a(Here { worker, stays: PhantomData }),
            #[inline(always)]
            |worker: &Worker, _| b(Here { worker, stays: PhantomData }),
        )
    }
}

/// Proof that the worker is that of this thread: it is neither sent nor shared.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    worker: &'a Worker,
    stays: PhantomData<*mut ()>,
}

impl<'a> Here<'a> {
    /// For the worker that a job was given.
    ///
    /// # Safety
    /// 1. It is that of this thread.
    pub(crate) unsafe fn new(worker: &'a Worker) -> Self {
        Self { worker, stays: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn worker(&self) -> &'a Worker {
        self.worker
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::join;
    use crate::engine::fork::{
        job::HeapJob,
        worker::{Worker, for_test::with_worker},
    };

    #[test]
    fn a_join_that_comes_back_to_others_jobs_answers_who_asked() {
        with_worker(|worker| {
            let was_asked = std::sync::Mutex::new(None);
            let left =
                |worker: &Worker| *was_asked.lock().unwrap() = Some(worker.stack().is_asked());
            let a = |worker: &Worker, _| {
                // SAFETY: 1. it runs before the join returns. 2. It does nothing.
                worker.push(unsafe { HeapJob::make(left, |_: &Worker| {}) });
                // After that push, so no push will see it.
                worker.stack().demand();
            };
            // SAFETY: 1. this thread's worker. 2. Nobody else is there.
            let _ = unsafe { join(worker, false, a, |_, _| ()) };
            assert_eq!(*was_asked.lock().unwrap(), Some(false), "answered before the job ran");
        });
    }
}
