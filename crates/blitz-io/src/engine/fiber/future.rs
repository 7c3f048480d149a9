//! The future of a fiber: a poll switches to its stack, a wait switches back.
//!
//! ```text
//!   carrier's stack                      fiber's stack
//!   poll ── exchange words ── resume ──> root: the user's closure
//!                                          wait(future): polls it
//!   Pending <── exchange words <───────── suspend, if it is not ready
//!   poll ── exchange words ── resume ──> … polls it again
//!   Ready  <── exchange words <────────── the closure has returned
//! ```
//! State that belongs to a stack but is stored in thread-local words (which runtime was entered,
//! scopes of task-locals) is exchanged with each switch. The task, its budget and the result flags
//! of a poll are set by the caller of `poll`, and need no exchange; except that a frame that runs
//! without a budget (`unconstrained`, `block_in_place`) must have none after a wait either.
//!
//! # Cancellation
//! A fiber that is dropped while it is suspended is *cancelled*: it is resumed once more, and the
//! wait in which it is suspended unwinds, as a panic does, but without a report. Destructors run on
//! the fiber's stack and thread. A fiber that catches the unwinding and waits again is unwound
//! again; after [`MAX_CANCELLATIONS`] times it is *abandoned*: it is never resumed, its stack is
//! leaked, and its thread, when all other fibers have ended, is put to sleep. That is as sound as
//! any thread that sleeps for ever: everything to which its frames have given out references stays
//! alive, including thread-locals (*given up*). Where panics abort nothing can be unwound, so a
//! fiber that is cancelled is abandoned at once.
//!
//! # While the thread unwinds
//! The count of panics belongs to the thread, not to the stack: another fiber that ran meanwhile
//! would be taken for one that panics, and its first panic would end the process. So a wait in a
//! destructor that runs because of a panic or a cancellation blocks the thread until its future is
//! done; the other fibers of the thread wait.
//!
//! # Invariants
//! - *One thread*: a future that was polled is polled and dropped on that thread (`queue`).
//! - *Suspended in one place*: a fiber is suspended by `suspend` below and by nothing else, and
//!   only on its own stack, outside of other tasks, sets of local tasks, jobs of fork-join and
//!   `block_on`: all code that keeps a pointer to its own frame in a thread-local word. Nor is it
//!   suspended under a lock of ours under which user code runs (`thread_context::LockHeldGuard`).
//! - *Given up*: the future's memory, in the task's cell, is reused after the fiber was abandoned.
//!   So code on the fiber's stack must get no reference into it that it could pass to another
//!   thread. The waker that futures see is on the stack.
//!
//! # Rejected
//! corosensei's own forced unwinding, because it starts again each time it is caught.
//!
//! # Checked by
//! tests/fiber; for *given up* `the_waker_of_a_poll_lies_on_the_fibers_own_stack`.

use std::{
    any::Any,
    cell::{Cell, OnceCell},
    future::Future,
    marker::PhantomPinned,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    ptr::{self, NonNull},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::{overflow::OverflowRecord, queue::FiberQueue, stack::FiberStack};
#[cfg(feature = "parallel")]
use crate::engine::fork;
use crate::engine::{
    pool::drive,
    preempt::stall::write_lines,
    prim::{clock::TimestampUnit, is_panicking},
    work::{
        scopes::SuspendedScopes,
        task::{
            budget::{self, Budget},
            cell::Header,
        },
        thread_context::{
            self,
            erased::{Erased, ErasedKey},
            fiber::FiberKey,
            stack::StackContext,
        },
    },
};

/// How often a fiber may catch its cancellation. Picked, not measured: more than any program nests,
/// and few enough to be over at once.
const MAX_CANCELLATIONS: u32 = 64;

/// How long a fiber runs before a checkpoint lets others run, where the runtime has no setting. The
/// number is Go's.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// One in this many waits is a checkpoint, because waits for futures that are ready would never let
/// other fibers run. Picked, not measured.
const WAITS_PER_CHECKPOINT: u32 = 32;

/// Purpose for which a fiber is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResumeKind {
    Continue,
    Unwind,
}

/// Result of a fiber's closure: its output, or the payload of its panic.
type Outcome<R> = Result<R, Box<dyn Any + Send>>;

type Fiber<R> = Coroutine<ResumeKind, (), Outcome<R>, FiberStack>;

/// Panic payload of a cancellation.
struct Cancelled;

/// The future of a fiber: its closure, and the stack that the closure runs on.
pub(crate) struct FiberFuture<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    stage: FiberStage<F, R>,
    frame: FiberFrame,
    /// Pinned, because code on the fiber's stack points to the frame.
    _pinned: PhantomPinned,
}

enum FiberStage<F, R> {
    /// Not polled yet; without a stack if it never will be.
    New(F, Option<FiberStack>),
    Begun(Fiber<R>),
    Over,
}

/// The part of the future that code on the fiber's stack and the carrier both access.
pub(crate) struct FiberFrame {
    queue: Arc<FiberQueue>,
    yielder: Cell<*const Yielder<ResumeKind, ()>>,
    /// A clone of the task's own waker, which stays valid for longer than that of one poll, because
    /// a future may be in the middle of its poll while the fiber is suspended. It lies on the
    /// fiber's stack, as does everything that the fiber's code may pass to other threads (*given
    /// up*).
    waker: Cell<*const Waker>,
    task: Cell<Option<NonNull<Header>>>,
    cancelled: Cell<bool>,
    /// How often the cancellation was raised.
    raised: Cell<u32>,
    /// When the fiber was last resumed.
    since: Cell<u32>,
    /// How often the fiber has waited, modulo 2^32.
    waits: Cell<u32>,
    /// How often the fiber was suspended.
    turns: Cell<u64>,
    /// How long the fiber may run while others wait, in milliseconds.
    slice: u32,
    words: Cell<Option<StackContext>>,
    /// Set if the fiber was suspended without a budget, by a frame that lifted it for a time.
    unlimited: Cell<bool>,
    scopes: Cell<SuspendedScopes>,
    record: OnceCell<OverflowRecord>,
}

// SAFETY: before the first poll the future is a closure, which is `Send`, and a stack that is
// empty. From then on it stays on one thread (*one thread*), except for its memory, which then
// holds only an output, which is `Send`, or nothing.
unsafe impl<F, R> Send for FiberFuture<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
}

impl<F, R> FiberFuture<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(f: F, stack: Option<FiberStack>, queue: Arc<FiberQueue>) -> Self {
        let slice = u32::try_from(queue.slice.as_millis()).unwrap_or(u32::MAX).max(1);
        let frame = FiberFrame {
            queue,
            yielder: Cell::new(ptr::null()),
            waker: Cell::new(ptr::null()),
            task: Cell::new(None),
            cancelled: Cell::new(false),
            raised: Cell::new(0),
            since: Cell::new(0),
            waits: Cell::new(0),
            turns: Cell::new(0),
            slice,
            words: Cell::new(None),
            unlimited: Cell::new(false),
            scopes: Cell::new(SuspendedScopes::empty()),
            record: OnceCell::new(),
        };
        Self { stage: FiberStage::New(f, stack), frame, _pinned: PhantomPinned }
    }

    /// Prepares the stack with the closure on it, at the first poll.
    ///
    /// # Safety
    /// 1. `this` is pinned, and on the thread where it stays.
    unsafe fn begin(this: &mut Self, waker: &Waker) {
        let FiberStage::New(f, stack) = std::mem::replace(&mut this.stage, FiberStage::Over) else {
            unreachable!("a fiber begins once");
        };
        let stack = stack.expect("one without a stack is never polled");
        let frame = &this.frame;
        frame.init_record(&stack);
        let frame: *const FiberFrame = frame;
        let waker = waker.clone();
        let root = move |yielder: &Yielder<ResumeKind, ()>, _: ResumeKind| -> Outcome<R> {
            let waker = waker;
            // SAFETY: by obligation 1 the frame does not move, and the future outlives what is on
            // its stack, or leaks it.
            let frame = unsafe { &*frame };
            frame.yielder.set(yielder);
            frame.waker.set(&raw const waker);
            catch_unwind(AssertUnwindSafe(f))
        };
        this.stage = FiberStage::Begun(Coroutine::with_stack(stack, root));
    }

    /// Runs the fiber until it is suspended or over. When it is over, its stack is kept for reuse.
    ///
    /// # Safety
    /// 1. `begin` was called, and its obligation still holds: `this` is pinned and on its thread.
    unsafe fn resume(this: &mut Self, kind: ResumeKind) -> Option<Outcome<R>> {
        let FiberStage::Begun(fiber) = &mut this.stage else {
            panic!("a fiber was polled after its end");
        };
        let outside = this.frame.enter();
        let result = fiber.resume(kind);
        this.frame.leave(outside);
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(outcome) => {
                if let FiberStage::Begun(fiber) =
                    std::mem::replace(&mut this.stage, FiberStage::Over)
                {
                    this.frame.queue.stacks.keep(fiber.into_stack());
                }
                Some(outcome)
            }
        }
    }

    /// Unwinds what is on the stack.
    ///
    /// # Safety
    /// 1. The obligation of `resume` holds: `begin` was called, and `this` is pinned and on its
    ///    thread.
    #[cold]
    unsafe fn cancel(this: &mut Self) {
        // Where panics abort, nothing can be unwound.
        let outcome = if cfg!(panic = "abort") {
            None
        } else {
            // SAFETY: 1. `begin` was called, and `this` is pinned and on its thread.
            unsafe { Self::resume(this, ResumeKind::Unwind) }
        };
        match outcome {
            Some(Ok(output)) => drop(output),
            Some(Err(payload)) if payload.is::<Cancelled>() => {}
            // A panic of the user's own, which then is the task's outcome.
            Some(Err(payload)) => resume_unwind(payload),
            None => this.abandon(),
        }
    }

    /// Leaks the stack with all that is on it.
    #[cold]
    fn abandon(&mut self) {
        std::mem::forget(std::mem::replace(&mut self.stage, FiberStage::Over));
        self.frame.queue.abandon();
        if cfg!(panic = "abort") {
            return;
        }
        let at = self.frame.record.get().map(|record| record.spawned_at);
        let at = at.map_or_else(String::new, |at| format!(" spawned at {at}"));
        // Not written by this thread, because others may hold the lock of standard error.
        write_lines(format!(
            "blitz-io: a fiber{at} was cancelled {MAX_CANCELLATIONS} times and caught it each time: it is \
             given up, and its stack is leaked; let the unwinding go on when `fiber::wait` \
             unwinds\n"
        ));
    }
}

impl<F, R> Future for FiberFuture<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        // SAFETY: nothing is moved out of it but the closure, before any code can point to it.
        let this = unsafe { self.get_unchecked_mut() };
        if matches!(this.stage, FiberStage::New(..)) {
            // SAFETY: obligation 1: we are pinned, and the fiber queue polls on one thread.
            unsafe { Self::begin(this, cx.waker()) };
        }
        // SAFETY: obligation 1: `begin` was called, we are pinned, and the fiber queue polls on one
        // thread.
        match unsafe { Self::resume(this, ResumeKind::Continue) } {
            None => Poll::Pending,
            Some(Ok(output)) => Poll::Ready(output),
            Some(Err(payload)) => resume_unwind(payload),
        }
    }
}

impl<F, R> Drop for FiberFuture<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, FiberStage::Over) {
            FiberStage::New(f, stack) => {
                // The stack is kept first, because the closure's drop may panic.
                stack.into_iter().for_each(|stack| self.frame.queue.stacks.keep(stack));
                drop(f);
            }
            stage @ FiberStage::Begun(_) => {
                self.stage = stage;
                // SAFETY: obligation 1: `begin` was called, `self` was pinned until now, and the
                // fiber queue drops it on the thread where it was polled.
                unsafe { Self::cancel(self) };
            }
            FiberStage::Over => {}
        }
    }
}

impl ErasedKey for FiberKey {
    type Target = FiberFrame;
}

impl FiberFrame {
    fn init_record(&self, stack: &FiberStack) {
        let task = thread_context::task().expect("a fiber is polled as a task");
        // SAFETY: a task is alive while it is current.
        let (header, name) = unsafe { (task.as_ref(), Header::name(task)) };
        self.task.set(Some(task));
        self.record.get_or_init(|| OverflowRecord {
            guard: stack.guard(),
            room: stack.room(),
            name: name.map_or(ptr::null(), |name| name.as_ptr()),
            name_len: name.map_or(0, |name| name.len()),
            spawned_at: header.spawned_at,
            id: header.id.as_u64(),
        });
    }

    /// Replaces the thread's words by those of the fiber; returns the old ones.
    fn enter(&self) -> StackContext {
        self.since.set(TimestampUnit::Millis.now());
        // The first time, the fiber starts with a copy of the carrier's words.
        let mut words = self.words.get().unwrap_or_else(StackContext::of_new_stack);
        let record = self.record.get().expect("it has begun");
        let bounds = (record.guard.end, record.guard.end + record.room);
        words.set_fiber(Erased::new(self), Erased::new(record), bounds);
        let outside = words.exchange();
        self.scopes.get().put_back();
        if self.unlimited.get() {
            budget::set(Budget::unlimited());
        }
        outside
    }

    fn leave(&self, outside: StackContext) {
        self.scopes.set(SuspendedScopes::take());
        // Not null only if the fiber has ended and leaked its guard of a `LocalSet`, which must not
        // apply to the other fibers.
        thread_context::local::set_innermost(Erased::null());
        self.unlimited.set(budget::remaining() == Budget::unlimited());
        self.words.set(Some(outside.exchange()));
    }

    /// Switches to the carrier, and returns at the next poll. If the fiber is cancelled, it unwinds
    /// instead, however often that was caught.
    fn suspend(&self) {
        self.check();
        self.turns.set(self.turns.get() + 1);
        // SAFETY: `root` stored the pointer, and its frame is on the stack that we are on.
        let yielder = unsafe { &*self.yielder.get() };
        if yielder.suspend(()) == ResumeKind::Unwind {
            self.cancelled.set(true);
            self.raise();
        }
    }

    /// Unwinds the fiber, or, if that was caught too often, suspends it for good.
    #[cold]
    fn raise(&self) -> ! {
        self.raised.set(self.raised.get() + 1);
        if self.raised.get() <= MAX_CANCELLATIONS {
            resume_unwind(Box::new(Cancelled));
        }
        // SAFETY: `root` stored the pointer, and its frame is on the stack that we are on.
        let yielder = unsafe { &*self.yielder.get() };
        loop {
            // An abandoned fiber is never resumed.
            yielder.suspend(());
        }
    }

    /// Returns true if the fiber has run for a slice. If this thread is watched, the monitor's mark
    /// shows that in time; if it is not, or the system had no thread for a monitor, the clock does.
    fn should_yield(&self) -> bool {
        thread_context::should_yield()
            || TimestampUnit::Millis.now().wrapping_sub(self.since.get()) >= self.slice
    }

    fn check(&self) {
        if self.cancelled.get() {
            self.raise();
        }
    }

    /// Returns true if the fiber was aborted, or its runtime ends: then the carrier unwinds it when
    /// it is suspended.
    fn must_end(&self) -> bool {
        let task = self.task.get().expect("it has begun");
        // SAFETY: the task is running, and so alive.
        let aborted = unsafe { task.as_ref() }.state.snapshot().must_cancel();
        aborted || self.queue.is_stopping()
    }

    /// Makes the checks at the beginning of a wait. Without them a wait for a future that is ready
    /// would not notice an abort, and a loop of such waits would never end.
    #[inline]
    fn begin_wait(&self) {
        self.check();
        if self.must_end() {
            thread_context::set_yielded();
            self.suspend();
        }
        self.waits.set(self.waits.get().wrapping_add(1));
        if self.waits.get().is_multiple_of(WAITS_PER_CHECKPOINT) {
            checkpoint();
        }
    }
}

/// Reason why the calling code cannot be suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CannotSuspend {
    NoFiber,
    InBlockOn,
    InTask,
    InLocalSet,
    InLock,
    #[cfg(feature = "parallel")]
    InJob,
}

impl CannotSuspend {
    fn text(self) -> &'static str {
        match self {
            Self::NoFiber => {
                "`fiber::wait` was called outside of a fiber: call it inside of a closure that \
                 `fiber::spawn` runs, or `.await` the future"
            }
            Self::InBlockOn => {
                "`fiber::wait` was called inside of a `block_on`, which must not leave its \
                 thread: `.await` the future there"
            }
            Self::InTask => {
                "`fiber::wait` was called inside of a task that is polled or dropped on a \
                 fiber's stack: `.await` the future there"
            }
            Self::InLocalSet => {
                "`fiber::wait` was called inside of a `LocalSet`, whose tasks are not the \
                 fiber's: `.await` the future there, or drop the guard of `LocalSet::enter` first"
            }
            Self::InLock => {
                "`fiber::wait` was called under a lock that other fibers of the thread would wait \
                 for with the thread, and so for ever: drop the `watch::Ref` first, return from \
                 the closure that changes or looks at a watched value, or from the poll of a \
                 stream that `io::split` shares"
            }
            #[cfg(feature = "parallel")]
            Self::InJob => {
                "`fiber::wait` was called inside of a fork-join job: wait before or after it"
            }
        }
    }
}

/// Returns the fiber that this is called on, if it can be suspended here.
fn current_frame<'a>() -> Result<&'a FiberFrame, CannotSuspend> {
    let state = thread_context::fiber::suspend_state();
    // SAFETY: the frame is alive while its stack is in use, and the caller runs on that stack.
    let Some(frame) = (unsafe { state.fiber.get().as_ref() }) else {
        return Err(if state.is_on_stack {
            CannotSuspend::InBlockOn
        } else {
            CannotSuspend::NoFiber
        });
    };
    if state.is_in_local_set {
        return Err(CannotSuspend::InLocalSet);
    }
    if state.task != frame.task.get() {
        return Err(CannotSuspend::InTask);
    }
    if state.locks != 0 {
        return Err(CannotSuspend::InLock);
    }
    #[cfg(feature = "parallel")]
    if !fork::worker::current().is_null() {
        return Err(CannotSuspend::InJob);
    }
    Ok(frame)
}

/// Returns true if the caller runs on a fiber that can be suspended here.
pub(crate) fn can_suspend() -> bool {
    current_frame().is_ok()
}

/// Waits for a future; the fiber is suspended while the future is not ready.
///
/// # Panics
/// If the caller is not on a fiber that can be suspended here.
#[track_caller]
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let frame = match current_frame() {
        Ok(frame) => frame,
        // This wait does not switch away from the fiber, and a second panic would end the process.
        Err(CannotSuspend::InLock) if is_panicking() => return drive::wait_for(None, future),
        Err(reason) => panic!("{}", reason.text()),
    };
    if is_panicking() {
        return drive::wait_for(None, future);
    }
    frame.begin_wait();
    // SAFETY: `root` stored the pointer, and keeps the waker until nothing is above it on the
    // stack.
    let waker = unsafe { &*frame.waker.get() };
    let mut future = pin!(future);
    loop {
        frame.check();
        let turns = frame.turns.get();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
            return output;
        }
        if frame.turns.get() != turns {
            // The fiber has waited inside of the future's poll, and that wait may have consumed a
            // wake-up meant for what the future had polled before, because all waits of a fiber
            // share one waker.
            continue;
        }
        // Locks that the future's poll holds would stay held while other fibers run.
        if let Err(reason) = current_frame() {
            panic!("{}", reason.text());
        }
        frame.suspend();
    }
}

/// Lets the other fibers of this thread run if this one has run for a slice, and unwinds it if it
/// was aborted. Does nothing where the fiber cannot be suspended.
#[inline]
pub(crate) fn checkpoint() {
    let Ok(frame) = current_frame() else { return };
    if is_panicking() {
        return;
    }
    frame.check();
    if frame.must_end() || frame.should_yield() {
        thread_context::set_yielded();
        frame.suspend();
    }
}
