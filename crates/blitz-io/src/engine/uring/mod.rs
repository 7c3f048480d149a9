//! Operations on io_uring: the kernel is given a buffer, and reports when the operation is
//! complete.
//!
//! Each runtime has one uring, created with the first operation. It complements the driver, which
//! reports readiness: there, tasks only borrow their buffers, because the kernel never keeps them;
//! the operations of a uring own their buffers, because the kernel works on them whether a task
//! still waits or not.
//!
//! - [`op`]: one operation, and the ownership of its buffer.
//! - [`op_table`]: the operations that the kernel has, and their IDs.
//! - [`op_kind`]: the kinds of operations.
//! - [`system`]: Linux's io_uring; `no_uring` where there is none.
//! - [`op_future`]: the future of an operation.
//!
//! # The walk of an operation
//! 1. [`Uring::submit`] puts the payload (the buffer) into an [`Op`](op::Op), gives it an ID,
//!    pushes it and enters the kernel: one system call, which performs the operation at once if it
//!    can.
//! 2. It checks for completions. If its own is there, the future is ready at its first poll.
//! 3. Otherwise the kernel watches the descriptor. When the operation is complete the kernel queues
//!    the result and signals an eventfd that the driver watches: the thread that takes the driver's
//!    turn reaps.
//! 4. The result finds the future's task and wakes it; the future takes its payload back.
//! 5. A future that is dropped earlier requests a cancel and returns at once: the payload is
//!    dropped with the completion, by the thread that reaps it.
//!
//! # The rule of submission
//! When `submit` returns, the kernel has the operation. So no thread ever sleeps for an operation
//! that only another, busy thread could flush, and no descriptor is named after its borrow has
//! ended, because the kernel holds the file from then on. This costs one system call for each
//! operation; so does the readiness path, and one more if it had to wait.
//!
//! A busy thread does not delay completions: the kernel interrupts it for as long as it takes to
//! complete the thread's own operations. (If it interrupts a blocking system call, that call
//! returns EINTR, as for a signal.) A thread that exits ends the operations that it submitted and
//! that are not complete: their result is ECANCELED, at once or when there would have been
//! something to do. The future of such an operation submits it again, on the thread that polls it,
//! where the descriptor is borrowed; see [`op_future`].
//!
//! # Locks
//! `submission` is held while a thread pushes and enters the kernel; `reaping` while a thread takes
//! up to [`AT_ONCE`] completions out of the queue, or mutes the eventfd; `ops` inside of either.
//! Wakers and payloads belong to users, so they are called and dropped under none of these locks.
//!
//! # The end
//! The driver's shutdown wakes the waker that waits for the eventfd, and so closes the uring.
//! ```text
//! a thread that submits (`submission`)   the thread that closes
//! B1 if closed: is refused               C1 closes the uring, under `submission`
//! B2 assigns an ID, pushes, enters       C2 requests a cancel of each ID, enters
//!                                        C3 reaps, and waits, at most for `CLOSE_TIMEOUT`
//!                                        C4 wakes every task that has no result yet
//! ```
//! An operation comes before C1, and C2 finds its ID; or after, and is refused. A future that
//! gets ECANCELED submits again, and is refused too: with an error that says that the runtime
//! has ended, and with its payload.
//!
//! An operation that is not complete by C4 (it should be one that is stuck in a disk, never on a
//! socket) stays with the kernel. If its future is polled, the polling thread waits in the kernel
//! itself, because no other thread reaps any more and the future cannot be ready without its
//! payload. If there is no future, the memory of the operation is leaked when the uring is dropped:
//! it must not be freed while the kernel may write to it, and no thread will learn when that is
//! over.
//!
//! # When the kernel starts to refuse io_uring
//! A program may forbid itself io_uring after its first operation (seccomp). Then the system call
//! that submits fails; the kernel never got the operation, its payload comes back, and it and all
//! later ones are performed by readiness. What was under way stays so and completes normally, but
//! it can no longer be cancelled: until it is complete it keeps its payload and its file, whether
//! its future is still there or not. A program should therefore set up its sandbox before its first
//! operation.
//!
//! # Rejected
//! - A uring for each worker, bound to its thread: completions would wait for a busy thread, and
//!   the operations would end with the thread.
//! - Pushing now and entering the kernel once a tick: it saves most of 0.25 µs out of some 1.6 for
//!   an operation (docs/design/owned.md). But an operation that could complete at once would need a
//!   wake-up and a second poll; a future that is polled only once, or by a foreign executor inside
//!   of a task, would not complete at all. The SQE would name a descriptor that may be closed
//!   before the kernel reads it, and each way out of a poll would have to flush, on threads of
//!   other runtimes too.
//! - Freeing a payload when its future is dropped, after waiting for its cancel: a destructor would
//!   sleep in the kernel, and the destructor of a leaked future would not run.
//! - Keeping the descriptor alive by a reference count: only the system call that submits names it.
//!
//! # Checked by
//! `a_dropped_operation_against_its_completion_frees_its_payload_once`,
//! `an_operation_against_a_close_completes_or_is_refused`,
//! `a_completion_against_a_close_is_one_completion`,
//! `two_threads_that_reap_deliver_each_completion_once`, `a_late_cancel_ends_no_other_operation`,
//! `two_threads_that_find_no_room_both_begin`, `a_kernel_that_refuses_gives_every_payload_back`;
//! weakened as `uring_close_is_seen`, `uring_close_cancels`, `uring_minds_the_backlog`. With
//! the kernel: `uring/tests.rs` and `tests/it/net/owned_buffers.rs`.

use std::{
    io,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

pub(crate) mod op;
mod op_table;
pub(crate) mod op_kind;
pub(crate) mod op_future;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
))]
mod system;
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
)))]
#[path = "no_uring.rs"]
mod system;

#[cfg(test)]
mod models;
#[cfg(all(test, not(blitz_loom)))]
mod tests;

use self::{
    op::{CompleteOp, Op},
    op_kind::OpKind,
    op_table::{OpId, OpTable},
};
pub(crate) use self::{
    op_future::OpFuture,
    system::{SystemUring, UringFeatures, probe},
};
use super::{
    driver::{Direction, Driver, Registration, interest::Interest},
    prim::{
        AtomicBool, Mutex, MutexGuard, Ordering::Relaxed, discard, lock, store_lock::StoreLock,
        thread::yield_now, weakened,
    },
    wait::{coalescer::Coalescer, wake_list::WakeList},
};

/// The number of completions taken out of the queue at a time: the capacity of a wake list.
/// Two in a model, so that it needs a second round.
const AT_ONCE: usize = if cfg!(blitz_loom) { 2 } else { 32 };

/// The time that a close waits for the kernel. Sockets and pipes complete a cancel within
/// microseconds; picked, not measured.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The length of one wait of a close; short, because another thread may have reaped the completion
/// that it waits for.
const SHORT_WAIT: Duration = Duration::from_millis(5);

/// A request that is pushed to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Begin(OpId, OpKind),
    /// Cancel the operation with that ID.
    Cancel(OpId),
}

/// The reason why the kernel does not take what was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterError {
    /// There is no room until completions are taken.
    NoRoom,
    /// The error number of a lasting refusal: usually a sandbox has been set up since.
    Never(i32),
}

/// The reason why an operation was not submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmitError {
    /// The runtime has ended.
    Closed,
    /// The uring can no longer be used: the caller must perform the operation another way.
    Unusable,
}

/// The two queues and the system call, which a model replaces.
///
/// Callers of `push`, `backlog` and `enter` hold the lock `submission`; those of `take`,
/// `disable_eventfd` and `enable_eventfd` hold `reaping`. What a pushed operation points to lives
/// until its completion was taken, or for ever.
pub(crate) trait UringKernel {
    /// Pushes a request; returns false if there is no room.
    ///
    /// # Safety
    /// 1. The caller holds the lock `submission`.
    /// 2. What the kind of the request points to lives until its completion was taken, or for ever.
    unsafe fn push(&self, request: Request) -> bool;

    /// Returns the number of requests that were pushed and not yet taken by the kernel.
    ///
    /// # Safety
    /// 1. The caller holds the lock `submission`.
    unsafe fn backlog(&self) -> usize;

    /// Submits everything that was pushed.
    ///
    /// # Safety
    /// 1. The caller holds the lock `submission`.
    unsafe fn enter(&self) -> Result<(), EnterError>;

    /// Stops the kernel from signalling the eventfd until `enable_eventfd`, after which the caller
    /// must check for completions.
    ///
    /// # Safety
    /// 1. The caller holds the lock `reaping`.
    unsafe fn disable_eventfd(&self);

    /// Lets the kernel signal the eventfd again; the caller must then check for completions.
    ///
    /// # Safety
    /// 1. The caller holds the lock `reaping`.
    unsafe fn enable_eventfd(&self);

    /// Takes at most `most` completions; returns how many there were, and whether the kernel may
    /// have kept more for want of room.
    ///
    /// # Safety
    /// 1. The caller holds the lock `reaping`.
    unsafe fn take(&self, each: impl FnMut(OpId, i32), most: usize) -> (usize, bool);

    /// Makes the kernel queue the completions that it kept.
    fn fetch(&self);

    /// Waits for a completion, for at most `timeout`. It may return early.
    fn wait(&self, timeout: Duration);
}

/// The uring's reference to an operation under way.
type OpRef = Arc<dyn CompleteOp>;

/// The io_uring of a runtime, on which its tasks' operations run.
pub(crate) struct Uring<K = SystemUring> {
    kernel: K,
    submission: Mutex<Submission>,
    reaping: StoreLock<()>,
    ops: StoreLock<OpTable<OpRef>>,
    /// The eventfd's registration with the driver, until the close.
    registration: StoreLock<Option<Arc<Registration>>>,
    /// Set once the kernel refuses the system call.
    unusable: AtomicBool,
    /// Set at C4: from now on completions are reaped only by threads that poll a future.
    over: AtomicBool,
}

struct Submission {
    /// The number of requests that have ever been pushed.
    pushed: u64,
    closed: bool,
    counters: UringCounters,
}

/// Counters of what a uring has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UringCounters {
    /// The number of system calls that submit.
    pub(crate) entered: u64,
    /// The number of operations.
    pub(crate) begun: u64,
    /// The number of cancels that were requested for dropped futures.
    pub(crate) cancelled: u64,
}

impl Uring {
    /// Returns the uring of a driver's runtime; `None` if io_uring must not be used there, is not
    /// available here, or has since been refused.
    #[inline]
    pub(crate) fn of(driver: &Arc<Driver>) -> Option<&Self> {
        if !driver.allows_uring() {
            return None;
        }
        let uring: &Arc<Self> = driver.extension(|| Self::begin(driver)).as_ref()?;
        // Relaxed: a thread that does not see the flag finds it under the lock when it submits.
        (!uring.unusable.load(Relaxed)).then_some(uring)
    }

    /// Creates the uring of a driver, and registers its eventfd with the driver.
    #[cold]
    fn begin(driver: &Arc<Driver>) -> Option<Arc<Self>> {
        let kernel = SystemUring::new().ok()?;
        let registration = driver.register(kernel.eventfd(), Interest::READABLE).ok()?;
        let uring = Arc::new(Self::new(kernel));
        *uring.registration.lock() = Some(Arc::new(registration));
        Arc::new(Reaper { uring: Arc::downgrade(&uring), coalescer: Coalescer::new() }).wake();
        Some(uring)
    }

    /// Arranges for the next event of the eventfd to wake the reaper; closes the uring if the
    /// driver has shut down.
    fn poll_eventfd(&self, reaper: &Waker) {
        let Some(registration) = self.registration.lock().clone() else { return };
        let mut cx = Context::from_waker(reaper);
        while let Poll::Ready(event) = registration.poll_record(&mut cx, Direction::Read) {
            if event.is_shutdown() {
                // The eventfd is ignored from now on, so an error here does not matter.
                let _ = registration.deregister(self.kernel.eventfd());
                self.close();
                return;
            }
            registration.clear_readiness(event);
        }
    }
}

/// The waker that waits for the eventfd, in place of a task: it reaps on the thread that takes the
/// driver's turn.
struct Reaper {
    uring: Weak<Uring>,
    /// Makes wake-ups run one at a time. One that comes during another (because the waker cell was
    /// contended) makes that other run once more; otherwise the waker would call itself
    /// recursively.
    coalescer: Coalescer,
}

impl Wake for Reaper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(uring) = self.uring.upgrade() else { return };
        let reaper = Waker::from(self.clone());
        self.coalescer.run(|| {
            // Polling comes first, so that a signal during the reaping wakes again.
            uring.poll_eventfd(&reaper);
            uring.reap();
        });
    }
}

impl<K: UringKernel> Uring<K> {
    pub(crate) fn new(kernel: K) -> Self {
        Self {
            kernel,
            submission: Mutex::new(Submission {
                pushed: 0,
                closed: false,
                counters: UringCounters::default(),
            }),
            reaping: StoreLock::new(()),
            ops: StoreLock::new(OpTable::new()),
            registration: StoreLock::new(None),
            unusable: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Submits an operation, which owns the payload until it is complete. `kind` is called with the
    /// payload at its final address, and returns the operation to perform on it.
    ///
    /// # Errors
    /// Returns the payload and the reason if the uring cannot be used.
    ///
    /// # Safety
    /// 1. What the kind points to belongs to the payload, stays where it is when the payload is
    ///    moved, and is not accessed through anything but the payload.
    /// 2. The descriptor is open during the call.
    pub(crate) unsafe fn submit<P: Send + 'static>(
        &self,
        payload: P,
        kind: impl FnOnce(&mut P) -> OpKind,
    ) -> Result<OpFuture<'_, P, K>, (SubmitError, P)> {
        let op = Arc::new(Op::new(payload));
        // SAFETY: 1. the operation was created just above, so there is no other reference.
        let kind = unsafe { op.before(kind) };
        // SAFETY: 1. what the kind points to belongs to the payload (our obligation 1), which the
        // operation keeps until it is complete, as long as its reference is in `ops`. 2. The
        // descriptor is open during this call, by our obligation 2.
        match unsafe { self.submit_op(op.clone(), kind) } {
            Ok(id) => Ok(OpFuture::new(self, op, id)),
            // SAFETY: 1. the kernel has not seen the operation, and the other reference is gone. 2.
            // It is called once, because `op` is dropped here.
            Err(why) => Err((why, unsafe { op.take() })),
        }
    }

    /// Pushes an operation and submits it.
    ///
    /// # Safety
    /// 1. What the kind points to lives as long as the operation, or until its completion.
    /// 2. The descriptor is open during the call.
    unsafe fn submit_op(&self, op: OpRef, kind: OpKind) -> Result<OpId, SubmitError> {
        let mut submission = lock(&self.submission);
        if submission.closed && !weakened!("uring_close_is_seen") {
            return Err(SubmitError::Closed);
        }
        submission.counters.begun += 1;
        let id = self.ops.lock().insert(op);
        let (given, submission) = self.push(submission, Request::Begin(id, kind));
        drop(submission);
        if given.is_err() {
            // The kernel has not seen the operation, and will not, because no thread enters any
            // more.
            let op = self.ops.lock().remove(id);
            // The lock was released at the end of the statement above.
            drop(op);
        }
        // Also after an error, because the eventfd was muted for whatever completed meanwhile.
        self.reap();
        given.map(|()| id).map_err(|_| SubmitError::Unusable)
    }

    /// Requests the cancellation of an operation, which may be complete already.
    fn cancel(&self, id: OpId) {
        let mut submission = lock(&self.submission);
        if submission.closed {
            // `close` cancels all operations.
            return;
        }
        submission.counters.cancelled += 1;
        // If the kernel refuses the system call, the operation cannot be cancelled.
        let (_, submission) = self.push(submission, Request::Cancel(id));
        drop(submission);
        self.reap();
    }

    /// Pushes a request, and makes sure that the kernel takes it. The lock is released on the way
    /// if the kernel has no room.
    fn push<'a>(
        &'a self,
        mut submission: MutexGuard<'a, Submission>,
        request: Request,
    ) -> (Result<(), i32>, MutexGuard<'a, Submission>) {
        // Relaxed: written only under the lock, which we hold.
        if self.unusable.load(Relaxed) {
            return (Err(0), submission);
        }
        // SAFETY: 1. we hold the lock `submission`. 2. What an operation points to lives, by
        // obligation 1 of `submit_op`; a cancel points to nothing.
        while !unsafe { self.kernel.push(request) } {
            let (entered, again) = self.enter(submission, u64::MAX);
            submission = again;
            if entered.is_err() {
                return (entered, submission);
            }
        }
        submission.pushed += 1;
        let mine = submission.pushed;
        self.enter(submission, mine)
    }

    /// Submits what was pushed, up to the request with that count.
    fn enter<'a>(
        &'a self,
        mut submission: MutexGuard<'a, Submission>,
        mine: u64,
    ) -> (Result<(), i32>, MutexGuard<'a, Submission>) {
        loop {
            // Relaxed: written only under the lock, which we hold.
            if self.unusable.load(Relaxed) {
                return (Err(0), submission);
            }
            submission.counters.entered += 1;
            match self.enter_once() {
                Ok(()) => return (Ok(()), submission),
                Err(EnterError::Never(code)) => {
                    // Relaxed: written only under the lock, which we hold.
                    self.unusable.store(true, Relaxed);
                    return (Err(code), submission);
                }
                Err(EnterError::NoRoom) => {}
            }
            drop(submission);
            self.reap();
            yield_now();
            submission = lock(&self.submission);
            // SAFETY: 1. we hold the lock `submission`.
            let taken = submission.pushed - unsafe { self.kernel.backlog() } as u64;
            if taken >= mine || weakened!("uring_minds_the_backlog") {
                return (Ok(()), submission);
            }
        }
    }

    /// Enters the kernel once, with the eventfd muted for what completes before it returns: the
    /// caller must check for completions. The caller holds the lock `submission`.
    fn enter_once(&self) -> Result<(), EnterError> {
        let reaping = self.reaping.lock();
        // SAFETY: 1. we hold the lock `reaping`.
        unsafe { self.kernel.disable_eventfd() };
        drop(reaping);
        // SAFETY: 1. the caller holds the lock `submission`.
        let entered = unsafe { self.kernel.enter() };
        let reaping = self.reaping.lock();
        // SAFETY: 1. we hold the lock `reaping`.
        unsafe { self.kernel.enable_eventfd() };
        drop(reaping);
        entered
    }

    /// Takes all completions out of the queue and wakes the tasks, so wakers of users run here.
    pub(crate) fn reap(&self) {
        let mut wake_list = WakeList::new();
        let mut kept = false;
        loop {
            let mut completions: [Option<(OpRef, i32)>; AT_ONCE] = [const { None }; AT_ONCE];
            let (taken, full) = self.take(&mut completions);
            kept |= full;
            if taken == 0 {
                if !std::mem::take(&mut kept) {
                    break;
                }
                self.kernel.fetch();
            }
            for (op, result) in completions.into_iter().flatten() {
                if let Some(waker) = op.complete(result) {
                    if wake_list.is_full() {
                        wake_list.wake_all();
                    }
                    wake_list.push(waker);
                }
                // This may be the last reference, and then drops the payload, which is a user's.
                discard(op);
            }
        }
        wake_list.wake_all();
    }

    fn take(&self, completions: &mut [Option<(OpRef, i32)>; AT_ONCE]) -> (usize, bool) {
        let _reaping = self.reaping.lock();
        let mut ops = self.ops.lock();
        let mut slots = completions.iter_mut();
        let each = |id, result| {
            // `None`: the completion of a cancel.
            if let Some(op) = ops.remove(id)
                && let Some(slot) = slots.next()
            {
                *slot = Some((op, result));
            }
        };
        // SAFETY: 1. we hold the lock `reaping`.
        unsafe { self.kernel.take(each, AT_ONCE) }
    }

    /// Closes the uring (C1 to C4).
    #[cold]
    pub(crate) fn close(&self) {
        let mut submission = lock(&self.submission);
        if std::mem::replace(&mut submission.closed, true) {
            return;
        }
        let ids = self.ops.lock().ids();
        for id in ids.into_iter().filter(|_| !weakened!("uring_close_cancels")) {
            let (pushed, again) = self.push(submission, Request::Cancel(id));
            submission = again;
            if pushed.is_err() {
                break;
            }
        }
        drop(submission);
        self.reap();
        self.wait_for_all();
        // Relaxed: a future registers its waker and then checks this flag; `wake_all_tasks` takes
        // the waker after this store. Both exchange the waker cell, which orders them.
        self.over.store(true, Relaxed);
        self.wake_all_tasks();
        let registration = self.registration.lock().take();
        // The lock was released at the end of the statement above.
        drop(registration);
    }

    /// Waits until all operations are complete, at most for `CLOSE_TIMEOUT` (C3).
    fn wait_for_all(&self) {
        let begun = Instant::now();
        while self.ops.lock().len() > 0 && begun.elapsed() < CLOSE_TIMEOUT {
            self.kernel.wait(SHORT_WAIT);
            self.reap();
        }
    }

    /// Wakes every task that still waits, which then reaps for itself (C4).
    fn wake_all_tasks(&self) {
        let rest: Vec<OpRef> = self.ops.lock().each().map(|(_, op)| op.clone()).collect();
        let mut wake_list = WakeList::new();
        for op in rest {
            if let Some(waker) = op.waker() {
                if wake_list.is_full() {
                    wake_list.wake_all();
                }
                wake_list.push(waker);
            }
            discard(op);
        }
        wake_list.wake_all();
    }

    /// Returns true after C4, when only threads that poll a future reap.
    fn is_over(&self) -> bool {
        // Relaxed: `close` says how the waker cell orders it.
        self.over.load(Relaxed)
    }

    /// Waits for completions for a short time, and reaps them.
    #[cold]
    fn wait_and_reap(&self) {
        self.kernel.wait(SHORT_WAIT);
        self.reap();
    }

    /// Returns the number of operations that the kernel has.
    pub(crate) fn in_flight(&self) -> usize {
        self.ops.lock().len()
    }

    pub(crate) fn counters(&self) -> UringCounters {
        lock(&self.submission).counters
    }
}

impl<K> Drop for Uring<K> {
    fn drop(&mut self) {
        let ops = std::mem::replace(&mut *self.ops.lock(), OpTable::new());
        if ops.len() > 0 {
            // The kernel may write to their memory at any time, so it is leaked: see 'The end'.
            std::mem::forget(ops);
        }
    }
}

impl<K> std::fmt::Debug for Uring<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").finish_non_exhaustive()
    }
}

/// Returns the error for operations that are submitted after the end of the runtime.
pub(crate) fn closed_error() -> io::Error {
    super::driver::shut_down_error()
}
