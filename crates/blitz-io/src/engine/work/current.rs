//! The one thread-local: what this thread is doing for which runtime.
//!
//! It holds plain words and needs no destructor, so it is there until the very
//! end of a thread. The upper layers keep their own pointers in it as opaque
//! words and give them their types (`pool/current.rs`).

use std::{cell::Cell, ptr::NonNull};

use crate::engine::prim::{AtomicU64, Ordering::Relaxed, ids, per_thread, rng::Rng};

use super::task::{
    budget::Budget,
    cell::{Header, Id},
    home::Home,
    moment::Wait,
};

/// See the module.
pub(crate) struct Current {
    /// The task whose future is being polled or dropped.
    task: Cell<Option<NonNull<Header>>>,
    /// What is left of its budget.
    pub(crate) budget: Cell<Budget>,
    /// What is to be said of this poll, if it answers `Pending`.
    verdict: Cell<Verdict>,
    /// The home of the core that this thread holds.
    pub(crate) home: Cell<Option<NonNull<Home>>>,
    /// The core that this thread holds (`pool` knows the type).
    pub(crate) core: Cell<*mut ()>,
    /// The pool of that core, and the core's number, so that neither has to be
    /// asked while it is borrowed.
    pub(crate) pool: Cell<*const ()>,
    pub(crate) index: Cell<usize>,
    /// The driver that this thread looks into before it sleeps, while it holds that core
    /// (`driver` knows the type).
    pub(crate) driver: Cell<*const ()>,
    /// The runtime that was entered last (`runtime` knows the type).
    pub(crate) entered: Cell<*const ()>,
    /// How many enter guards are alive: they must go in order.
    pub(crate) depth: Cell<usize>,
    /// The pools whose threads this thread is starting (`pool` knows the type).
    pub(crate) starting: Cell<*const ()>,
    /// Whether this thread is blocked inside `block_on`, or runs tasks.
    pub(crate) blocking: Cell<Blocking>,
    /// Where yields that the budget forces are counted ([`CountingYields`]).
    forced_yields: Cell<*const AtomicU64>,
    /// The state of this thread's generator; zero before its first use.
    random: Cell<u64>,
    /// The sets of local tasks that were entered, innermost first (`local` knows
    /// the type).
    pub(crate) local: Cell<*const ()>,
    /// See [`thread`]; zero until somebody asks.
    thread: Cell<u64>,
    /// The crew that this thread is of (`blocking` knows the type), and whether it has
    /// come to its end there.
    pub(crate) crew: Cell<*const ()>,
    pub(crate) has_left_crew: Cell<bool>,
}

/// Whether `block_on` may start on this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// Yes.
    Allowed,
    /// No, except inside `block_in_place`: it is a worker, or inside a `block_on` that
    /// runs nobody's tasks.
    InPlace,
    /// No: whatever else this thread runs would wait.
    Forbidden,
}

impl Current {
    const fn new() -> Self {
        Self {
            task: Cell::new(None),
            budget: Cell::new(Budget::unlimited()),
            verdict: Cell::new(Verdict::NONE),
            home: Cell::new(None),
            core: Cell::new(std::ptr::null_mut()),
            pool: Cell::new(std::ptr::null()),
            index: Cell::new(0),
            driver: Cell::new(std::ptr::null()),
            entered: Cell::new(std::ptr::null()),
            depth: Cell::new(0),
            starting: Cell::new(std::ptr::null()),
            blocking: Cell::new(Blocking::Allowed),
            forced_yields: Cell::new(std::ptr::null()),
            random: Cell::new(0),
            local: Cell::new(std::ptr::null()),
            thread: Cell::new(0),
            crew: Cell::new(std::ptr::null()),
            has_left_crew: Cell::new(false),
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

/// A number of this thread that no other thread of the process has, or will have
/// after its end: addresses and the system's numbers are used again.
pub(crate) fn thread() -> u64 {
    with(|current| {
        if current.thread.get() == 0 {
            current.thread.set(ids::take(1));
        }
        current.thread.get()
    })
}

/// The task being polled or dropped on this thread.
#[inline]
pub(crate) fn task() -> Option<NonNull<Header>> {
    with(|current| current.task.get())
}

/// Its ID.
pub(crate) fn task_id() -> Option<Id> {
    // SAFETY: a task is alive while it is current.
    task().map(|task| unsafe { task.as_ref() }.id)
}

/// Marks the current task as yielding; it will be queued behind the others.
#[inline]
pub(crate) fn set_yielded() {
    with(|current| current.verdict.set(Verdict { yielded: true, ..current.verdict.get() }));
}

/// The number of the core that this thread holds, if it looks into that driver.
#[cfg(feature = "net")]
#[inline]
pub(crate) fn worker_of_driver(driver: *const ()) -> Option<usize> {
    with(|current| (current.driver.get() == driver).then(|| current.index.get()))
}

/// Says what the current task waits for: called by primitives that answer `Pending`.
#[inline]
pub(crate) fn waits_for(wait: Wait) {
    with(|current| current.verdict.set(Verdict { wait, ..current.verdict.get() }));
}

/// What is to be said of the poll since [`Entered`] began; forgets it.
#[inline]
pub(crate) fn take_verdict() -> Verdict {
    with(|current| current.verdict.replace(Verdict::NONE))
}

/// What a poll that answers `Pending` was like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    /// The task has yielded: it is queued behind the others.
    pub(crate) yielded: bool,
    /// What it waits for, as the primitive says that answered `Pending` last.
    pub(crate) wait: Wait,
}

impl Verdict {
    const NONE: Self = Self { yielded: false, wait: Wait::Unknown };
}

/// While it lives, `task` is this thread's current task, with a fresh budget.
pub(crate) struct Entered {
    task: Option<NonNull<Header>>,
    budget: Budget,
    verdict: Verdict,
}

impl Entered {
    #[inline]
    pub(crate) fn new(task: NonNull<Header>, budget: Budget) -> Self {
        with(|current| Self {
            task: current.task.replace(Some(task)),
            budget: current.budget.replace(budget),
            verdict: current.verdict.replace(Verdict::NONE),
        })
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        with(|current| {
            current.task.set(self.task);
            current.budget.set(self.budget);
            current.verdict.set(self.verdict);
        });
    }
}

/// While it lives, yields that the budget forces on this thread are counted there.
pub(crate) struct CountingYields {
    before: *const AtomicU64,
}

impl CountingYields {
    /// # Safety
    /// 1. `count` lives until this is dropped, on this thread and in order.
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
    // SAFETY: obligation 1 of `CountingYields::new`.
    if let Some(count) = unsafe { count.as_ref() } {
        // Relaxed: a figure, which orders nothing.
        count.fetch_add(1, Relaxed);
    }
}

/// A number below `bound`, from this thread's generator: that of the seeded runtime
/// that works here, else one that is seeded by the process.
#[inline]
#[cfg_attr(not(feature = "macros"), allow(dead_code, reason = "`select!` asks"))]
pub(crate) fn random_below(bound: u32) -> u32 {
    with(|current| {
        let mut rng = match current.random.get() {
            0 => Rng::new(Rng::process_seed()),
            state => Rng::resume(state),
        };
        let number = rng.below(bound);
        current.random.set(rng.state());
        number
    })
}

/// While it lives, this thread draws from a generator of a seeded runtime.
pub(crate) struct Seeded {
    before: u64,
}

impl Seeded {
    pub(crate) fn new(rng: &Rng) -> Self {
        with(|current| Self { before: current.random.replace(rng.state()) })
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        with(|current| current.random.set(self.before));
    }
}
