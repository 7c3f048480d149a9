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
//! What belongs to a stack and lies in a thread's words (which runtime was entered, scopes of
//! task-locals) is exchanged with each switch. The task, its budget and the verdict of a poll
//! are set by whoever polls, and are right by themselves; except that a frame that has no budget
//! (`unconstrained`, `block_in_place`) has none after a wait, either.
//!
//! # Cancellation
//! A fiber that is dropped while it is suspended is *cancelled*: it is resumed once more, and
//! the wait that it stands in unwinds, as a panic does, but without a report. Destructors run,
//! on the fiber's stack and thread. A fiber that catches that and waits again is unwound again;
//! after [`PATIENCE`] times it is *abandoned*: never resumed, its stack leaked, and its thread,
//! when all others have ended, put to sleep. That is sound as any thread is that sleeps for ever:
//! whatever its frames have lent out lives on, thread-locals among it (*given up*).
//! Where panics abort nothing can be unwound, and a fiber that is cancelled is abandoned at once.
//!
//! # While the thread unwinds
//! The count of panics is the thread's, not the stack's: another fiber that ran meanwhile would
//! be taken for one that panics, and would end the process with its first panic. So a wait in
//! a destructor that runs because of a panic, or of a cancellation, blocks the thread until its
//! future is done; the other fibers of the thread wait.
//!
//! # Invariants
//! - *One thread*: a strand that was polled is polled and dropped on that thread (`nest`).
//! - *Suspended in one place*: a fiber is suspended by `suspend` below and by nothing else, and
//!   only on its own stack, outside of other tasks, sets of local tasks, jobs of fork-join and
//!   `block_on`: whatever keeps a pointer to its own frame in a word of the thread. Nor under
//!   a lock of ours under which users' code runs (`current::Holding`).
//! - *Given up*: the strand's memory, in the task's cell, is used again after that, and so code on
//!   the fiber's stack gets no reference into it that it could lend to another thread. The waker
//!   that futures see is on the stack.
//!
//! # Rejected
//! corosensei's own forced unwinding: it begins again as often as it is caught.
//!
//! # Checked by
//! tests/fiber; of *given up* `what_a_poll_lends_out_lies_on_the_fibers_own_stack`.

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

use super::{nest::Nest, overflow::Record, stack::Stack};
#[cfg(feature = "parallel")]
use crate::engine::fork;
use crate::engine::{
    pool::{drive, vigil::stall::tell_lines},
    prim::{clock::Unit, is_panicking},
    work::{
        current::{self, Words},
        scopes::Aside,
        task::{budget::Budget, cell::Header},
    },
};

/// How often a fiber may catch its cancellation. Picked, not measured: more than anybody
/// nests, and few enough to be over at once.
const PATIENCE: u32 = 64;

/// How long a fiber runs before a checkpoint lets others run, where the runtime was not told.
/// Go's figure.
pub(super) const SLICE: Duration = Duration::from_millis(10);

/// Of so many waits one is a checkpoint: futures that are ready would never let others run.
/// Picked, not measured.
const WAITS_PER_CHECKPOINT: u32 = 32;

/// What a fiber is resumed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    GoOn,
    Unwind,
}

/// How a fiber's closure ended.
type Outcome<R> = Result<R, Box<dyn Any + Send>>;

type Fiber<R> = Coroutine<Order, (), Outcome<R>, Stack>;

/// The payload of a cancellation.
struct Cancelled;

/// See the module.
pub(crate) struct Strand<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    stage: Stage<F, R>,
    frame: Frame,
    /// Code on the fiber's stack points to the frame.
    _pinned: PhantomPinned,
}

enum Stage<F, R> {
    /// Not polled yet; without a stack if it never will be.
    New(F, Option<Stack>),
    Begun(Fiber<R>),
    Over,
}

/// What code on the fiber's stack reaches of its strand, and the carrier at the same time.
struct Frame {
    nest: Arc<Nest>,
    yielder: Cell<*const Yielder<Order, ()>>,
    /// A clone of the task's own, which is good for longer than one poll's: a future may be in
    /// the middle of its poll while the fiber is suspended. It lies on the fiber's stack, as all
    /// that its code may lend out (*given up*).
    waker: Cell<*const Waker>,
    task: Cell<Option<NonNull<Header>>>,
    cancelled: Cell<bool>,
    /// How often that was said.
    raised: Cell<u32>,
    /// When it was resumed.
    since: Cell<u32>,
    /// How often it has waited, roughly.
    waits: Cell<u32>,
    /// How often it was suspended.
    turns: Cell<u64>,
    /// How long it may run while others wait, in milliseconds.
    slice: u32,
    words: Cell<Option<Words>>,
    /// It was suspended where it has no budget, by a frame that took it away for a time.
    unlimited: Cell<bool>,
    scopes: Cell<Aside>,
    record: OnceCell<Record>,
}

// SAFETY: before the first poll it is a closure, which is `Send`, and a stack that is empty.
// From then on it stays on one thread (*one thread*), except for its memory, in which there is
// nothing but an output, which is `Send`, or nothing.
unsafe impl<F, R> Send for Strand<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
}

impl<F, R> Strand<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(crate) fn new(f: F, stack: Option<Stack>, nest: Arc<Nest>) -> Self {
        let slice = u32::try_from(nest.slice.as_millis()).unwrap_or(u32::MAX).max(1);
        let frame = Frame {
            nest,
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
            scopes: Cell::new(Aside::nothing()),
            record: OnceCell::new(),
        };
        Self { stage: Stage::New(f, stack), frame, _pinned: PhantomPinned }
    }

    /// The first poll: makes the stack ready, with the closure on it.
    ///
    /// # Safety
    /// 1. `this` is pinned, and on the thread where it stays.
    unsafe fn begin(this: &mut Self, waker: &Waker) {
        let Stage::New(f, stack) = std::mem::replace(&mut this.stage, Stage::Over) else {
            unreachable!("a fiber begins once");
        };
        let stack = stack.expect("one without a stack is never polled");
        let frame = &this.frame;
        frame.note(&stack);
        let frame: *const Frame = frame;
        let waker = waker.clone();
        let root = move |yielder: &Yielder<Order, ()>, _: Order| -> Outcome<R> {
            let waker = waker;
            // SAFETY: 1.: the strand outlives what is on its stack, or leaks it.
            let frame = unsafe { &*frame };
            frame.yielder.set(yielder);
            frame.waker.set(&raw const waker);
            catch_unwind(AssertUnwindSafe(f))
        };
        this.stage = Stage::Begun(Coroutine::with_stack(stack, root));
    }

    /// Runs the fiber until it is suspended or over; then its stack is kept for others.
    ///
    /// # Safety
    /// 1. As `begin`, which was called.
    unsafe fn resume(this: &mut Self, order: Order) -> Option<Outcome<R>> {
        let Stage::Begun(fiber) = &mut this.stage else {
            panic!("a fiber was polled after its end");
        };
        let outside = this.frame.enter();
        let result = fiber.resume(order);
        this.frame.leave(outside);
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(outcome) => {
                if let Stage::Begun(fiber) = std::mem::replace(&mut this.stage, Stage::Over) {
                    this.frame.nest.stacks.keep(fiber.into_stack());
                }
                Some(outcome)
            }
        }
    }

    /// Unwinds what is on the stack.
    ///
    /// # Safety
    /// 1. As `resume`.
    #[cold]
    unsafe fn cancel(this: &mut Self) {
        // Where panics abort there is nothing that unwinds.
        let outcome = if cfg!(panic = "abort") {
            None
        } else {
            // SAFETY: 1.
            unsafe { Self::resume(this, Order::Unwind) }
        };
        match outcome {
            Some(Ok(output)) => drop(output),
            Some(Err(payload)) if payload.is::<Cancelled>() => {}
            // A panic of the user's own, which is the task's end then.
            Some(Err(payload)) => resume_unwind(payload),
            None => this.abandon(),
        }
    }

    /// Leaks the stack with all that is on it.
    #[cold]
    fn abandon(&mut self) {
        std::mem::forget(std::mem::replace(&mut self.stage, Stage::Over));
        self.frame.nest.abandon();
        if cfg!(panic = "abort") {
            return;
        }
        let at = self.frame.record.get().map(|record| record.spawned_at);
        let at = at.map_or_else(String::new, |at| format!(" spawned at {at}"));
        // Not by this thread: others may hold the lock of standard error.
        tell_lines(format!(
            "blitz-io: a fiber{at} was cancelled {PATIENCE} times and caught it each time: it is \
             given up, and its stack is leaked; let the unwinding go on when `fiber::wait` \
             unwinds\n"
        ));
    }
}

impl<F, R> Future for Strand<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        // SAFETY: nothing is moved out of it but the closure, before code can point to it.
        let this = unsafe { self.get_unchecked_mut() };
        if matches!(this.stage, Stage::New(..)) {
            // SAFETY: 1. we are pinned, and the nest polls on one thread.
            unsafe { Self::begin(this, cx.waker()) };
        }
        // SAFETY: 1. as above.
        match unsafe { Self::resume(this, Order::GoOn) } {
            None => Poll::Pending,
            Some(Ok(output)) => Poll::Ready(output),
            Some(Err(payload)) => resume_unwind(payload),
        }
    }
}

impl<F, R> Drop for Strand<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New(f, stack) => {
                // First: the closure's drop may panic.
                stack.into_iter().for_each(|stack| self.frame.nest.stacks.keep(stack));
                drop(f);
            }
            stage @ Stage::Begun(_) => {
                self.stage = stage;
                // SAFETY: 1. it was pinned until now, and the nest drops it where it polled it.
                unsafe { Self::cancel(self) };
            }
            Stage::Over => {}
        }
    }
}

impl Frame {
    fn note(&self, stack: &Stack) {
        let task = current::task().expect("a fiber is polled as a task");
        // SAFETY: a task is alive while it is current.
        let (header, name) = unsafe { (task.as_ref(), Header::name(task)) };
        self.task.set(Some(task));
        self.record.get_or_init(|| Record {
            guard: stack.guard(),
            room: stack.room(),
            name: name.map_or(ptr::null(), |name| name.as_ptr()),
            name_len: name.map_or(0, |name| name.len()),
            spawned_at: header.spawned_at,
            id: header.id.as_u64(),
        });
    }

    /// The thread's words become the fiber's; the answer is what they were.
    fn enter(&self) -> Words {
        self.since.set(Unit::Millis.now());
        // The first time it begins where the carrier stands.
        let mut words = self.words.get().unwrap_or_else(Words::of_new_stack);
        words.fiber = ptr::from_ref(self).cast();
        let record = self.record.get().expect("it has begun");
        words.stack = ptr::from_ref(record).cast();
        words.room = (record.guard.end, record.guard.end + record.room);
        let outside = words.exchange();
        self.scopes.get().put_back();
        if self.unlimited.get() {
            current::with(|current| current.budget.set(Budget::unlimited()));
        }
        outside
    }

    fn leave(&self, outside: Words) {
        self.scopes.set(Aside::take());
        // Not null only if the fiber has ended and leaked its way into a `LocalSet`, which must
        // not become the others'.
        current::with(|current| {
            current.local.set(ptr::null());
            self.unlimited.set(current.budget.get() == Budget::unlimited());
        });
        self.words.set(Some(outside.exchange()));
    }

    /// Switches to the carrier, and comes back with the next poll. Not if it is cancelled: then
    /// it unwinds, however often that was caught.
    fn suspend(&self) {
        self.check();
        self.turns.set(self.turns.get() + 1);
        // SAFETY: `root` put it there, and is on the stack that we are on.
        let yielder = unsafe { &*self.yielder.get() };
        if yielder.suspend(()) == Order::Unwind {
            self.cancelled.set(true);
            self.raise();
        }
    }

    /// Unwinds the fiber, or gives up.
    #[cold]
    fn raise(&self) -> ! {
        self.raised.set(self.raised.get() + 1);
        if self.raised.get() <= PATIENCE {
            resume_unwind(Box::new(Cancelled));
        }
        // SAFETY: as in `suspend`.
        let yielder = unsafe { &*self.yielder.get() };
        loop {
            // Whoever cancelled it does not resume it any more.
            yielder.suspend(());
        }
    }

    /// Whether it has run for a slice: the monitor says so in time, if this thread is watched.
    /// If it is not, or the system had no thread for a monitor, the clock does.
    fn is_overdue(&self) -> bool {
        current::with(|current| current.is_overdue())
            || Unit::Millis.now().wrapping_sub(self.since.get()) >= self.slice
    }

    fn check(&self) {
        if self.cancelled.get() {
            self.raise();
        }
    }

    /// Whether it was aborted, or its runtime ends: the carrier unwinds it when it is suspended.
    fn must_end(&self) -> bool {
        let task = self.task.get().expect("it has begun");
        // SAFETY: the task is running, and so alive.
        let aborted = unsafe { task.as_ref() }.state.snapshot().must_cancel();
        aborted || self.nest.is_stopping()
    }

    /// What a wait does first. One whose future is ready would else see no end, and a loop of
    /// those would have none.
    #[inline]
    fn begin_wait(&self) {
        self.check();
        if self.must_end() {
            current::set_yielded();
            self.suspend();
        }
        self.waits.set(self.waits.get().wrapping_add(1));
        if self.waits.get().is_multiple_of(WAITS_PER_CHECKPOINT) {
            checkpoint();
        }
    }
}

/// Why code that asks to be suspended cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unable {
    NoFiber,
    InBlockOn,
    InTask,
    InLocalSet,
    InLock,
    #[cfg(feature = "parallel")]
    InJob,
}

impl Unable {
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

/// The fiber on whose stack this is called, if it can be suspended here.
fn able<'a>() -> Result<&'a Frame, Unable> {
    let (fiber, stack, local, locks, task) = current::with(|current| {
        let (fiber, stack) = (current.fiber.get(), current.stack.get());
        (fiber, stack, current.local.get(), current.locks.get(), current::task())
    });
    // SAFETY: the frame is there while its stack is in use; the caller is on that.
    let Some(frame) = (unsafe { fiber.cast::<Frame>().as_ref() }) else {
        return Err(if stack.is_null() { Unable::NoFiber } else { Unable::InBlockOn });
    };
    if !local.is_null() {
        return Err(Unable::InLocalSet);
    }
    if task != frame.task.get() {
        return Err(Unable::InTask);
    }
    if locks != 0 {
        return Err(Unable::InLock);
    }
    #[cfg(feature = "parallel")]
    if !fork::worker::current().is_null() {
        return Err(Unable::InJob);
    }
    Ok(frame)
}

/// Whether this is called on a fiber that can be suspended.
pub(crate) fn is_able() -> bool {
    able().is_ok()
}

/// Waits for a future; the fiber is suspended while it is not ready.
///
/// # Panics
/// If the caller is not on a fiber that can be suspended here.
#[track_caller]
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let frame = match able() {
        Ok(frame) => frame,
        // The fiber is not left then, and a second panic would end the process.
        Err(Unable::InLock) if is_panicking() => return drive::wait_for(None, future),
        Err(why) => panic!("{}", why.text()),
    };
    if is_panicking() {
        return drive::wait_for(None, future);
    }
    frame.begin_wait();
    // SAFETY: `root` put it there, and keeps it until nothing is above it on the stack.
    let waker = unsafe { &*frame.waker.get() };
    let mut future = pin!(future);
    loop {
        frame.check();
        let turns = frame.turns.get();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
            return output;
        }
        if frame.turns.get() != turns {
            // It has waited inside of its poll, and a wake-up that was for what it had polled
            // before came to that wait: all waits of a fiber have one waker.
            continue;
        }
        // What it holds while it waits is held while other fibers run.
        if let Err(why) = able() {
            panic!("{}", why.text());
        }
        frame.suspend();
    }
}

/// Lets the other fibers of this thread run if this one has run for a slice, and unwinds it if
/// it is to end. Nothing where it cannot be suspended.
#[inline]
pub(crate) fn checkpoint() {
    let Ok(frame) = able() else { return };
    if is_panicking() {
        return;
    }
    frame.check();
    let task = frame.task.get().expect("it has begun");
    // SAFETY: the task is running, and so alive.
    let ends = unsafe { task.as_ref() }.state.snapshot().must_cancel();
    if ends || frame.is_overdue() {
        current::set_yielded();
        frame.suspend();
    }
}
