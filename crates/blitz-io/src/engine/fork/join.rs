//! Runs two closures, potentially in parallel. The protocol is made for a join from which no thread
//! steals: that has no read-modify-write and no fence.
//!
//! # Protocol
//! ```text
//! J1 pushes b on the deque, as a job in this frame
//! J2 runs a, and catches its panic
//! J3 if b has not run and is on top of the deque: pops it and runs b here
//! J4 else: runs the jobs above b, and then b if it is still on the deque
//! J5 else a thief took b, or a wait inside of a ran it: waits for the latch
//! ```
//! The frame is left only when b is no longer in any queue: after J3, J4 or J5; if a panicked,
//! after J5, where the wait finds b if it is still on the deque. So both closures always run, and
//! if both panic, the panic of a is the one that propagates.
//!
//! # Rejected
//! A guard that is dropped when a unwinds: measured slower than `catch_unwind`, and b would run
//! during an unwinding.
//!
//! # Checked by
//! `a_panic_of_either_half_waits_for_the_other` and others in tests/it/parallel/join.rs.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use super::{
    call, global,
    job::{JobRef, PanicPayload, StackJob},
    worker::{self, Worker},
};
use crate::engine::prim::discard;

/// Runs both closures, potentially in parallel. Each receives the worker that runs it, and whether
/// that is another thread than the one that called.
///
/// # Safety
/// 1. `worker` is the worker of this thread. 2. `b` and its result may be sent to another thread.
#[inline(always)]
pub(crate) unsafe fn join<A, B, RA, RB>(worker: &Worker, injected: bool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA,
    B: FnOnce(&Worker, bool) -> RB,
{
    let deque = worker.deque();
    // The index is kept in the job, and so in memory: in a register, it would be saved and restored
    // by every call, also by calls that do not join.
    let index = deque.top();
    let job = StackJob::new(b, index);
    // SAFETY: 1. the worker is this thread's (our obligation 1), so we own its deque. 2. `publish`
    // follows at once if it is due. 3. `index` was just read from `top`.
    if unsafe { deque.push_at(job.header(), index) } {
        worker.publish();
    }
    let first = match catch_unwind(AssertUnwindSafe(|| a(worker, injected))) {
        Ok(first) => first,
        Err(payload) => abandon(worker, &job, payload),
    };
    // SAFETY: 1. the worker is this thread's (our obligation 1). 2. Joins nest: all that `a` began
    // have ended. 3. The latch is unset, so the job was not taken in another way.
    if job.index().is_some_and(|index| unsafe { deque.pop_at(index) }) {
        // SAFETY: 1. the job was just popped. 2. It is not run as a job.
        let b = unsafe { job.take() };
        return (first, b(worker, injected));
    }
    let second = recover(worker, &job, injected);
    (first, second)
}

/// Performs steps J4 and J5: gets the result of `b` if it was not on top of the deque.
#[cold]
#[inline(never)]
fn recover<B, RB>(worker: &Worker, job: &StackJob<B, RB>, injected: bool) -> RB
where
    B: FnOnce(&Worker, bool) -> RB,
{
    let own = JobRef::from_header(job.header());
    // The jobs above may take long, and meanwhile no push would notice a thief's request.
    if worker.deque().is_requested() {
        worker.publish();
    }
    while !job.latch().is_set() {
        match worker.pop() {
            Some(top) if top == own => {
                // SAFETY: 1. the job was just popped. 2. It is not run as a job.
                let b = unsafe { job.take() };
                return b(worker, injected);
            }
            // SAFETY: 1. the job was just popped, and is run once. 2. Both workers are this
            // thread's, and the job was on its deque.
            Some(other) => unsafe { other.run(Some(worker), worker) },
            None => worker.wait_until(job.latch()),
        }
    }
    // SAFETY: 1. the loop ended, so the latch is set. 2. The outcome is read once.
    unsafe { job.outcome() }.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Waits for `b` after `a` has panicked, and then resumes that panic.
#[cold]
#[inline(never)]
fn abandon<B, RB>(worker: &Worker, job: &StackJob<B, RB>, payload: PanicPayload) -> !
where
    B: FnOnce(&Worker, bool) -> RB,
{
    worker.wait_until(job.latch());
    // SAFETY: 1. the latch is set, because `wait_until` has returned. 2. The outcome is read once.
    discard(unsafe { job.outcome() });
    resume_unwind(payload)
}

/// Performs a [`join`] on the worker of this thread, or on the global pool if the thread has none.
#[inline(always)]
pub(crate) fn join_current<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
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
    // SAFETY: the pointer is not null, so it is the worker of this thread, which holds its pool.
    let worker = unsafe { &*worker };
    if size_of::<A>() + size_of::<B>() > MAX_INLINED_SIZE {
        // SAFETY: 1. `worker` came from this thread's `CURRENT`. 2. The bounds require `Send` of
        // `B` and `RB`.
        return unsafe { join_not_inlined(worker, a, b) };
    }
    // SAFETY: 1. `worker` came from this thread's `CURRENT`. 2. The bounds require `Send` of `B` and
    // `RB`.
    unsafe { join(worker, false, a, b) }
}

/// The largest size of captured variables for which a join is inlined. Larger closures are joined
/// by a call: their work takes longer than the call, and loops around an inlined join are compiled
/// worse (a sort lost a tenth).
const MAX_INLINED_SIZE: usize = 4 * size_of::<usize>();

/// Performs a [`join`] that is not inlined into its caller.
///
/// # Safety
/// The obligations of [`join`] hold.
#[inline(never)]
unsafe fn join_not_inlined<A, B, RA, RB>(worker: &Worker, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&Worker, bool) -> RA,
    B: FnOnce(&Worker, bool) -> RB,
{
    // SAFETY: 1. our caller's worker is that of this thread. 2. It may send `B` and `RB`.
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
        // SAFETY: 1. `on_worker` passes the worker of the thread that runs the closure. 2. The
        // bounds require `Send` of `B` and `RB`.
        unsafe { join(worker, injected, a, b) }
    })
}

/// Performs a [`join`] on a worker that is known to be this thread's.
#[inline(always)]
pub(crate) fn join_on<A, B, RA, RB>(worker: CurrentWorker<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(CurrentWorker<'_>) -> RA,
    B: FnOnce(CurrentWorker<'_>) -> RB + Send,
    RB: Send,
{
    // SAFETY: 1. a `CurrentWorker` proves that its worker is this thread's. 2. The bounds require
    // `Send` of `B` and `RB`.
    unsafe {
        join(
            worker.worker,
            false,
            #[inline(always)]
            |worker: &Worker, _| a(CurrentWorker { worker, not_send: PhantomData }),
            #[inline(always)]
            |worker: &Worker, _| b(CurrentWorker { worker, not_send: PhantomData }),
        )
    }
}

/// Proof that the worker is the one of this thread: the value can be neither sent nor shared.
#[derive(Clone, Copy)]
pub(crate) struct CurrentWorker<'a> {
    worker: &'a Worker,
    not_send: PhantomData<*mut ()>,
}

impl<'a> CurrentWorker<'a> {
    /// Wraps the worker that a job was given.
    ///
    /// # Safety
    /// 1. `worker` is the worker of this thread.
    pub(crate) unsafe fn new(worker: &'a Worker) -> Self {
        Self { worker, not_send: PhantomData }
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
    fn a_join_that_comes_back_to_other_jobs_publishes_requested_jobs() {
        with_worker(|worker| {
            let was_requested = std::sync::Mutex::new(None);
            let other = |worker: &Worker| {
                *was_requested.lock().unwrap() = Some(worker.deque().is_requested())
            };
            let a = |worker: &Worker, _| {
                // SAFETY: 1. the job runs before the join returns. 2. Its end does nothing.
                worker.push(unsafe { HeapJob::make(other, |_: &Worker| {}) });
                // This request comes after that push, so no push will notice it.
                worker.deque().request();
            };
            // SAFETY: 1. the worker is this thread's. 2. The pool has no other thread to send
            // anything to.
            let _ = unsafe { join(worker, false, a, |_, _| ()) };
            assert_eq!(*was_requested.lock().unwrap(), Some(false), "published before the job ran");
        });
    }
}
