//! The one thread-local: the task, core and runtime that this thread is working for.
//!
//! It holds plain words and needs no destructor, so it is available until the very
//! end of a thread. The upper layers keep their own pointers in it as opaque
//! words and convert them to their types (`pool/current.rs`).

use std::{
    cell::Cell,
    marker::PhantomData,
    ops::Range,
    ptr::NonNull,
    time::{Duration, Instant},
};

use crate::engine::prim::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence, const_unless_loom, ids, per_thread,
    rng::Rng,
};

use super::task::{
    arena::Arena,
    budget::Budget,
    cell::{Header, Id},
    timestamp::WaitReason,
};
use crate::engine::lease::{Lease, PollRecord, SavedPoll, stack_request::StackTrace};

/// The words of this thread: its current task, budget, core, runtime and scopes.
pub(crate) struct Current {
    /// The task whose future is being polled or dropped.
    task: Cell<Option<NonNull<Header>>>,
    /// The rest of that task's budget.
    pub(crate) budget: Cell<Budget>,
    /// The outcome of this poll, if it returns `Pending`.
    poll_outcome: Cell<PollOutcome>,
    /// The arena of the core that this thread holds.
    pub(crate) arena: Cell<Option<NonNull<Arena>>>,
    /// The core that this thread holds (`pool` knows the type).
    pub(crate) core: Cell<*mut ()>,
    /// The pool of that core, and the core's number, so that neither has to be
    /// read from the core, which may be borrowed.
    pub(crate) pool: Cell<*const ()>,
    pub(crate) index: Cell<usize>,
    /// The thread's record of its core, for threads that may take the core away. While it says
    /// that this thread is in user code, `arena`, `core`, `pool` and `index` may be out of date,
    /// and must be read only while an [`Inside`] is held; or where no thread can take that core, as
    /// in pools without threads.
    poll_record: PollRecord,
    /// The `WatchedBlockOn` to notify before local tasks run on this thread (`pool` knows the
    /// type).
    pub(crate) watched_block_on: Cell<*const ()>,
    /// The [`Lease`] through which other threads read `poll_record` and may take the core; null if
    /// this thread is not watched.
    lease: Cell<*const Lease>,
    /// The time by which a task that is polled without a core should have returned. Such a poll
    /// is not watched from outside any more once its runtime ends, so it checks the time itself.
    poll_deadline: Cell<Option<Instant>>,
    /// The time for which the task that is polled next on this thread was queued, if measured.
    latency: Cell<Option<Duration>>,
    /// The runtime that was entered last (`runtime` knows the type).
    pub(crate) entered: Cell<*const ()>,
    /// The number of enter guards that are alive; they must be dropped in order.
    pub(crate) depth: Cell<usize>,
    /// The pools whose threads this thread is starting (`pool` knows the type).
    pub(crate) starting: Cell<*const ()>,
    /// The kind of blocking that is allowed on this thread.
    pub(crate) blocking: Cell<BlockingPolicy>,
    /// The counter of yields that the budget forces ([`CountingYields`]).
    forced_yields: Cell<*const AtomicU64>,
    /// The state of this thread's generator; zero before its first use.
    rng_state: Cell<u64>,
    /// The sets of local tasks that were entered, innermost first (`local` knows
    /// the type).
    pub(crate) local: Cell<*const ()>,
    /// The number that [`thread`] returns; zero until it is first called.
    thread: Cell<u64>,
    /// The blocking pool that this thread belongs to (`blocking` knows the type), and whether the
    /// thread has ended its work there.
    pub(crate) blocking_pool: Cell<*const ()>,
    pub(crate) has_left_blocking_pool: Cell<bool>,
    /// True if this thread stays idle until its runtime ends instead of exiting: it was started
    /// as a worker, or it has started a child process. A child may have requested a signal for
    /// the end of the *thread* that started it (`PR_SET_PDEATHSIG`).
    pub(crate) stays: Cell<bool>,
    /// The fiber that code on this thread may suspend, and the fiber whose stack it is on.
    /// Inside of a `block_on` only the second is set (`fiber` knows the types).
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(crate) fiber: Cell<*const ()>,
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(crate) stack: Cell<*const ()>,
    /// The bounds of that stack.
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    stack_bounds: Cell<(usize, usize)>,
    /// The number of locks that this thread holds while user code runs ([`LockHeldGuard`]).
    #[cfg(feature = "fiber")]
    pub(crate) locks: Cell<usize>,
    /// The scopes of task-locals that were entered, innermost first.
    #[cfg(feature = "fiber")]
    pub(crate) scopes: Cell<*const super::scopes::ScopeLink>,
}

/// The permission to start a `block_on` on this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockingPolicy {
    /// A `block_on` may start.
    Allowed,
    /// A `block_on` may start only inside `block_in_place`: the thread is a worker, or inside a
    /// `block_on` that runs no tasks.
    InPlace,
    /// No `block_on` may start, because everything else that this thread runs would wait.
    Forbidden,
}

impl Current {
    const_unless_loom! {
    fn new() -> Self {
        Self {
            task: Cell::new(None),
            budget: Cell::new(Budget::unlimited()),
            poll_outcome: Cell::new(PollOutcome::NONE),
            arena: Cell::new(None),
            core: Cell::new(std::ptr::null_mut()),
            pool: Cell::new(std::ptr::null()),
            index: Cell::new(0),
            poll_record: PollRecord::new(),
            watched_block_on: Cell::new(std::ptr::null()),
            lease: Cell::new(std::ptr::null()),
            poll_deadline: Cell::new(None),
            latency: Cell::new(None),
            entered: Cell::new(std::ptr::null()),
            depth: Cell::new(0),
            starting: Cell::new(std::ptr::null()),
            blocking: Cell::new(BlockingPolicy::Allowed),
            forced_yields: Cell::new(std::ptr::null()),
            rng_state: Cell::new(0),
            local: Cell::new(std::ptr::null()),
            thread: Cell::new(0),
            blocking_pool: Cell::new(std::ptr::null()),
            has_left_blocking_pool: Cell::new(false),
            stays: Cell::new(false),
            #[cfg(feature = "fiber")]
            fiber: Cell::new(std::ptr::null()),
            #[cfg(feature = "fiber")]
            stack: Cell::new(std::ptr::null()),
            #[cfg(feature = "fiber")]
            stack_bounds: Cell::new((0, 0)),
            #[cfg(feature = "fiber")]
            locks: Cell::new(0),
            #[cfg(feature = "fiber")]
            scopes: Cell::new(std::ptr::null()),
        }
    }
    }
}

per_thread! {
    static CURRENT: Current = Current::new();
}

/// Reads or changes this thread's words.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Current) -> R) -> R {
    CURRENT.with(|current| f(current))
}

/// Returns a number for this thread that no other thread of the process has, or will have
/// after its end. Addresses and the system's thread IDs would not do, because they are reused.
pub(crate) fn thread() -> u64 {
    with(|current| {
        if current.thread.get() == 0 {
            current.thread.set(ids::take(1));
        }
        current.thread.get()
    })
}

/// Returns the task that is being polled or dropped on this thread.
#[inline]
pub(crate) fn task() -> Option<NonNull<Header>> {
    with(|current| current.task.get())
}

/// Returns the ID of the task that is being polled or dropped on this thread.
pub(crate) fn task_id() -> Option<Id> {
    // SAFETY: a task is alive while it is current.
    task().map(|task| unsafe { task.as_ref() }.id)
}

/// Marks the current task as yielding; it will be queued behind the others.
#[inline]
pub(crate) fn set_yielded() {
    with(|current| {
        current.poll_outcome.set(PollOutcome { yielded: true, ..current.poll_outcome.get() })
    });
}

impl Current {
    /// Forgets the core, which was taken away: from now on this thread is one without a core.
    #[cold]
    fn forget_core(&self) {
        self.core.set(std::ptr::null_mut());
        self.arena.set(None);
        self.pool.set(std::ptr::null());
    }

    /// Returns true if the poll on this thread has lasted so long that it should let others run.
    #[inline(always)]
    pub(crate) fn is_overdue(&self) -> bool {
        !self.is_unmarked() && self.check_overdue()
    }

    /// Returns true if the poll is certainly not overdue; false means that it may be.
    #[inline(always)]
    pub(crate) fn is_unmarked(&self) -> bool {
        self.poll_record.is_unmarked()
    }

    #[cold]
    fn check_overdue(&self) -> bool {
        self.poll_record.is_overdue()
            || self.poll_deadline.get().is_some_and(|until| Instant::now() >= until)
    }

    /// Finds out whether the thread still has its core, after the quick check did not show that:
    /// the core is claimed or taken, or a fence must be passed first.
    #[cold]
    fn reclaim(&self) {
        // Code that was inside before has found this out already.
        let Some(lease) = self.lease().filter(|_| !self.poll_record.was_inside()) else { return };
        if !lease.reclaim(&self.poll_record) {
            self.forget_core();
        }
    }

    /// Finds out, at the end of a poll, whether the thread still has its core. Returns true if it
    /// was taken and the task should be remembered as a hog.
    #[cold]
    fn leave(&self) -> bool {
        let Some(lease) = self.lease() else { return false };
        if lease.leave(&self.poll_record) {
            return false;
        }
        self.forget_core();
        lease.is_hog()
    }

    /// Returns the [`Lease`] through which this thread is watched, if it is.
    #[inline(always)]
    fn lease(&self) -> Option<&Lease> {
        // SAFETY: obligation 1 of `LeaseGuard::new`: the lease lives until the pointer is replaced.
        unsafe { self.lease.get().as_ref() }
    }
}

/// A guard under which this thread's core pointers are valid: no thread takes the core away, and
/// a core that was taken is known to be gone. No user code should run meanwhile: that would be
/// sound, but a thread that wants to take the core would wait for it.
#[must_use]
pub(crate) struct Inside {
    /// Keeps the guard on the thread that is inside.
    _not_send: PhantomData<*const ()>,
}

/// Enters the runtime's own code from user code, and makes the core pointers valid.
#[inline(always)]
pub(crate) fn inside() -> Inside {
    with(|current| {
        if !current.poll_record.reclaim() {
            current.reclaim();
        }
    });
    Inside { _not_send: PhantomData }
}

/// Does what [`inside`] does if no thread wants the core; else returns `None`, and the caller
/// must use [`inside`].
#[inline(always)]
pub(crate) fn try_inside() -> Option<Inside> {
    with(|current| {
        if !current.poll_record.reclaim() {
            current.poll_record.resume();
            return None;
        }
        Some(Inside { _not_send: PhantomData })
    })
}

/// Creates an [`Inside`] for a loop that runs tasks and is in the runtime's own code already,
/// where the core pointers are valid anyway.
#[inline(always)]
pub(crate) fn nested_inside() -> Inside {
    with(|current| current.poll_record.go_deeper());
    Inside { _not_send: PhantomData }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        with(|current| current.poll_record.resume());
    }
}

/// Marks the beginning of user code, on behalf of `task`. Only for loops that run tasks and borrow
/// nothing of the core, because the core may be taken meanwhile. Code that drops a task in the
/// middle of another operation must not call this, and so keeps the core for as long as that takes.
#[inline(always)]
pub(crate) fn enter_user_code(task: NonNull<Header>) {
    with(|current| current.poll_record.enter(task.cast()));
}

/// Marks the beginning of user code for a set of tasks that is polled by unknown code. Does so
/// only where no core is ever taken, and where this is not a part of another poll. Returns true
/// if it did.
#[inline(always)]
pub(crate) fn enter_user_code_in_place(task: NonNull<Header>) -> bool {
    with(|current| {
        let is_right = !current.poll_record.is_in_user_code()
            && current.lease().is_some_and(Lease::keeps_core);
        if is_right {
            current.poll_record.enter(task.cast());
        }
        is_right
    })
}

/// Marks the end of user code; afterwards the core pointers are valid again. Returns true if the
/// task should be remembered as a hog, because the core was taken during its poll.
#[inline(always)]
pub(crate) fn leave_user_code() -> bool {
    with(|current| !current.poll_record.reclaim() && current.leave())
}

/// Records that this thread has the core from now on, if the thread is watched.
pub(crate) fn began_with_core(core: NonNull<()>) {
    with(|current| {
        current.lease().into_iter().for_each(|lease| lease.begin(&current.poll_record, core));
    });
}

/// Records that this thread, which is inside, gives up the core.
pub(crate) fn ended_with_core() {
    with(|current| current.lease().into_iter().for_each(|lease| lease.end(&current.poll_record)));
}

/// A guard under which this thread is watched through a [`Lease`], or not at all.
pub(crate) struct LeaseGuard {
    before: *const Lease,
    /// The content of the thread's [`PollRecord`] before, if the thread was not watched.
    saved: Option<SavedPoll>,
    watched_block_on: *const (),
    poll_deadline: Option<Instant>,
}

impl LeaseGuard {
    /// Lets other threads watch this one through `lease`; `None` for a thread that keeps its core.
    ///
    /// # Safety
    /// 1. The lease lives until the guard is dropped, on this thread and in order.
    pub(crate) unsafe fn new(lease: Option<&Lease>) -> Self {
        let pointer = lease.map_or(std::ptr::null(), std::ptr::from_ref);
        let lease_guard = with(|current| {
            assert!(current.core.get().is_null(), "a thread that waits has no core");
            let saved = match current.lease() {
                Some(before) => {
                    before.suspend(&current.poll_record);
                    None
                }
                None => Some(current.poll_record.save()),
            };
            if let Some(lease) = lease {
                // SAFETY: 1. the poll record is this thread's, and is detached when the guard is dropped.
                unsafe { lease.attach(&current.poll_record) };
            }
            Self {
                before: current.lease.replace(pointer),
                saved,
                watched_block_on: current.watched_block_on.replace(std::ptr::null()),
                poll_deadline: current.poll_deadline.take(),
            }
        });
        // SeqCst: for the compiler. From here on a signal handler on this thread (`trace`) finds
        // the lease.
        compiler_fence(SeqCst);
        lease_guard
    }

    /// Hides this thread's poll from a future that the thread blocks on. That poll may be long
    /// overdue, and its mark must not apply to the future: it would never be cleared, and every
    /// operation that checks it would yield for ever.
    pub(crate) fn hidden() -> Self {
        // SAFETY: 1. there is no lease.
        unsafe { Self::new(None) }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        with(|current| {
            let over = current.lease();
            current.lease.set(self.before);
            // SeqCst: for the compiler. From here on a signal handler on this thread does not find
            // the lease, which may be freed afterwards.
            compiler_fence(SeqCst);
            over.into_iter().for_each(|over| over.detach(&current.poll_record));
            match current.lease() {
                // SAFETY: 1. obligation 1 of `new`, when it was called with this earlier lease.
                Some(before) => unsafe { before.reattach(&current.poll_record) },
                None => self.saved.into_iter().for_each(|saved| current.poll_record.restore(saved)),
            }
            current.watched_block_on.set(self.watched_block_on);
            current.poll_deadline.set(self.poll_deadline);
        });
    }
}

/// A guard under which this thread polls an offloaded task, which should return by a given time.
pub(crate) struct PollDeadline {
    before: Option<Instant>,
    /// True if this thread is not watched meanwhile.
    is_unwatched: bool,
}

impl PollDeadline {
    /// Creates the guard; `until` is the time by which the poll should return.
    pub(crate) fn until(until: Option<Instant>) -> Self {
        with(|current| {
            // On a thread that is watched, the lease was created with the flag for the clock.
            let is_unwatched = current.lease().is_none();
            if is_unwatched {
                current.poll_record.set_offloaded(true);
            }
            Self { before: current.poll_deadline.replace(until), is_unwatched }
        })
    }
}

impl Drop for PollDeadline {
    fn drop(&mut self) {
        with(|current| {
            if self.is_unwatched {
                current.poll_record.set_offloaded(false);
            }
            current.poll_deadline.set(self.before);
        });
    }
}

/// Writes this thread's position, if it is requested. Called in a signal handler: it allocates
/// nothing and waits for nothing. `write` gets the bounds of the thread's stack, and of the stack
/// of the fiber that runs on it, if one does.
#[allow(dead_code, reason = "some systems capture no stacks")]
pub(crate) fn respond_to_stack_request(write: impl FnOnce(&mut StackTrace, [Range<usize>; 2])) {
    with(|current| {
        #[cfg(feature = "fiber")]
        let (start, end) = current.stack_bounds.get();
        #[cfg(not(feature = "fiber"))]
        let (start, end) = (0, 0);
        if let Some(lease) = current.lease() {
            let write = |trace: &mut StackTrace, own| write(trace, [own, start..end]);
            lease.respond(&current.poll_record, write);
        }
    });
}

/// Records what the current task waits for; called by primitives that return `Pending`.
#[inline]
pub(crate) fn waits_for(wait: WaitReason) {
    with(|current| current.poll_outcome.set(PollOutcome { wait, ..current.poll_outcome.get() }));
}

/// Returns the outcome of the poll since [`CurrentTaskGuard`] began, and resets it.
#[inline]
pub(crate) fn take_poll_outcome() -> PollOutcome {
    with(|current| current.poll_outcome.replace(PollOutcome::NONE))
}

/// Records how long the task that this thread polls next was queued, for its hooks.
pub(crate) fn set_latency(latency: Option<Duration>) {
    with(|current| current.latency.set(latency));
}

/// Returns the time that [`set_latency`] recorded, and resets it, because it is not that of a
/// task that is polled inside this one.
pub(crate) fn take_latency() -> Option<Duration> {
    with(|current| current.latency.take())
}

/// The outcome of a poll that returns `Pending`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollOutcome {
    /// The task has yielded: it is queued behind the others.
    pub(crate) yielded: bool,
    /// The thing that the task waits for, as the last primitive that returned `Pending` recorded.
    pub(crate) wait: WaitReason,
}

impl PollOutcome {
    const NONE: Self = Self { yielded: false, wait: WaitReason::Unknown };
}

/// The words that belong to a stack and not to its thread: a fiber takes its own along when
/// it is suspended and another one runs on the thread. The task, its budget and the poll's outcome
/// are not among them, because the code that polls sets them each time. (That a frame has no budget
/// is remembered by the fiber.)
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Clone, Copy)]
pub(crate) struct StackContext {
    entered: *const (),
    depth: usize,
    starting: *const (),
    blocking: BlockingPolicy,
    pub(crate) fiber: *const (),
    pub(crate) stack: *const (),
    pub(crate) stack_bounds: (usize, usize),
    locks: usize,
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl StackContext {
    /// Returns the words of a new stack on this thread. The stack does not own the reference to the
    /// runtime that its carrier has entered. So guards on it count from a depth of their own: a
    /// carrier's guard that is dropped there, or the other way round, is out of order, and leaves
    /// the entered runtime alone.
    pub(crate) fn of_new_stack() -> Self {
        Self { depth: usize::MAX / 2, ..Self::of_this_thread() }
    }

    /// Returns a copy of this thread's words.
    fn of_this_thread() -> Self {
        with(|current| Self {
            entered: current.entered.get(),
            depth: current.depth.get(),
            starting: current.starting.get(),
            blocking: current.blocking.get(),
            fiber: current.fiber.get(),
            stack: current.stack.get(),
            stack_bounds: current.stack_bounds.get(),
            locks: current.locks.get(),
        })
    }

    /// Replaces this thread's words with these, and returns the former ones.
    pub(crate) fn exchange(self) -> Self {
        with(|current| Self {
            entered: current.entered.replace(self.entered),
            depth: current.depth.replace(self.depth),
            starting: current.starting.replace(self.starting),
            blocking: current.blocking.replace(self.blocking),
            fiber: current.fiber.replace(self.fiber),
            stack: current.stack.replace(self.stack),
            stack_bounds: current.stack_bounds.replace(self.stack_bounds),
            locks: current.locks.replace(self.locks),
        })
    }
}

/// A guard for a lock that is held while user code runs: no fiber is suspended meanwhile. Another
/// fiber of the thread that wants the lock would block the thread, and so the lock would never be
/// released. A leaked guard stays with its fiber for ever, as the lock does. If another fiber drops
/// the guard, which it got through a thread-local, that fiber may be suspended too early: no worse
/// than without the guard.
#[must_use]
#[allow(dead_code, reason = "only some features have such locks")]
pub(crate) struct LockHeldGuard(());

#[allow(dead_code, reason = "only some features have such locks")]
impl LockHeldGuard {
    /// Counts a lock that the caller takes or has taken.
    #[inline(always)]
    pub(crate) fn lock() -> Self {
        #[cfg(feature = "fiber")]
        with(|current| current.locks.set(current.locks.get() + 1));
        Self(())
    }
}

#[cfg(feature = "fiber")]
impl Drop for LockHeldGuard {
    #[inline(always)]
    fn drop(&mut self) {
        with(|current| current.locks.set(current.locks.get().saturating_sub(1)));
    }
}

/// A guard under which `task` is this thread's current task, with a budget of its own.
pub(crate) struct CurrentTaskGuard {
    task: Option<NonNull<Header>>,
    budget: Budget,
    poll_outcome: PollOutcome,
}

impl CurrentTaskGuard {
    #[inline]
    pub(crate) fn new(task: NonNull<Header>, budget: Budget) -> Self {
        with(|current| Self {
            task: current.task.replace(Some(task)),
            budget: current.budget.replace(budget),
            poll_outcome: current.poll_outcome.replace(PollOutcome::NONE),
        })
    }
}

impl Drop for CurrentTaskGuard {
    #[inline]
    fn drop(&mut self) {
        with(|current| {
            current.task.set(self.task);
            current.budget.set(self.budget);
            current.poll_outcome.set(self.poll_outcome);
        });
    }
}

/// A guard under which yields that the budget forces on this thread are counted.
pub(crate) struct CountingYields {
    before: *const AtomicU64,
}

impl CountingYields {
    /// Counts forced yields in `count`.
    ///
    /// # Safety
    /// 1. `count` lives until the guard is dropped, on this thread and in order.
    pub(crate) unsafe fn new(count: &AtomicU64) -> Self {
        with(|current| Self { before: current.forced_yields.replace(count) })
    }
}

impl Drop for CountingYields {
    fn drop(&mut self) {
        with(|current| current.forced_yields.set(self.before));
    }
}

/// Counts a yield that the budget forced, for the runtime that polls on this thread.
#[cold]
pub(crate) fn count_forced_yield() {
    let count = with(|current| current.forced_yields.get());
    // SAFETY: obligation 1 of `CountingYields::new`: the counter lives until the pointer is
    // replaced.
    if let Some(count) = unsafe { count.as_ref() } {
        // Relaxed: a figure, which orders nothing.
        count.fetch_add(1, Relaxed);
    }
}

/// Returns a random number below `bound` from this thread's generator, which is that of the
/// seeded runtime that works here, else one that is seeded by the process.
#[inline]
#[cfg_attr(not(feature = "macros"), allow(dead_code, reason = "`select!` uses it"))]
pub(crate) fn random_below(bound: u32) -> u32 {
    with(|current| {
        let mut rng = match current.rng_state.get() {
            0 => Rng::new(Rng::process_seed()),
            state => Rng::resume(state),
        };
        let number = rng.below(bound);
        current.rng_state.set(rng.state());
        number
    })
}

/// A guard under which this thread draws from the generator of a seeded runtime.
pub(crate) struct SeededRngGuard {
    before: u64,
}

impl SeededRngGuard {
    pub(crate) fn new(rng: &Rng) -> Self {
        with(|current| Self { before: current.rng_state.replace(rng.state()) })
    }
}

impl Drop for SeededRngGuard {
    fn drop(&mut self) {
        with(|current| current.rng_state.set(self.before));
    }
}
