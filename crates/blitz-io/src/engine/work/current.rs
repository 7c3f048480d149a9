//! The one thread-local: what this thread is doing for which runtime.
//!
//! It holds plain words and needs no destructor, so it is there until the very
//! end of a thread. The upper layers keep their own pointers in it as opaque
//! words and give them their types (`pool/current.rs`).

use std::{cell::Cell, marker::PhantomData, ops::Range, ptr::NonNull, time::Instant};

use crate::engine::prim::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence, ids, made_in_constants, per_thread,
    rng::Rng,
};

use super::{
    inquiry::Answer,
    task::{
        budget::Budget,
        cell::{Header, Id},
        home::Home,
        moment::Wait,
    },
    tenure::{Said, Sign, Tenure},
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
    /// What it says of that core. While it says that this thread is in a user's code, the
    /// five words above may be out of date, and are read inside of an [`Inside`] only; or where it
    /// is known that nobody takes that core, as of pools without threads.
    sign: Sign,
    /// Who is to be told that local tasks are about to run (`pool` knows the type).
    pub(crate) guest: Cell<*const ()>,
    /// Who listens to that, and may take the core away: null if nobody does.
    tenure: Cell<*const Tenure>,
    /// Until when a task that is polled without a core should be through. Nobody looks at
    /// such a poll from outside once its runtime ends, so it looks itself.
    lent: Cell<Option<Instant>>,
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
    /// The fiber that code on this thread may suspend, and the one whose stack it is on:
    /// inside of a `block_on` only the second (`fiber` knows the types).
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(crate) fiber: Cell<*const ()>,
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    pub(crate) stack: Cell<*const ()>,
    /// From where to where that stack goes.
    #[cfg(feature = "fiber")]
    #[allow(dead_code, reason = "there are systems without fibers")]
    room: Cell<(usize, usize)>,
    /// How many locks it holds under which users' code runs ([`Holding`]).
    #[cfg(feature = "fiber")]
    pub(crate) locks: Cell<usize>,
    /// The scopes of task-locals that were entered, innermost first.
    #[cfg(feature = "fiber")]
    pub(crate) scopes: Cell<*const super::scopes::Link>,
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
    made_in_constants! {
    fn new() -> Self {
        Self {
            task: Cell::new(None),
            budget: Cell::new(Budget::unlimited()),
            verdict: Cell::new(Verdict::NONE),
            home: Cell::new(None),
            core: Cell::new(std::ptr::null_mut()),
            pool: Cell::new(std::ptr::null()),
            index: Cell::new(0),
            driver: Cell::new(std::ptr::null()),
            sign: Sign::new(),
            guest: Cell::new(std::ptr::null()),
            tenure: Cell::new(std::ptr::null()),
            lent: Cell::new(None),
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
            #[cfg(feature = "fiber")]
            fiber: Cell::new(std::ptr::null()),
            #[cfg(feature = "fiber")]
            stack: Cell::new(std::ptr::null()),
            #[cfg(feature = "fiber")]
            room: Cell::new((0, 0)),
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

impl Current {
    /// The core was taken away: from now on this thread is like any other without one.
    #[cold]
    fn lose(&self) {
        self.core.set(std::ptr::null_mut());
        self.home.set(None);
        self.pool.set(std::ptr::null());
        self.driver.set(std::ptr::null());
    }

    /// Whether the poll on this thread has lasted for so long that it should let others run.
    #[inline(always)]
    pub(crate) fn is_overdue(&self) -> bool {
        !self.is_quiet() && self.hears_of_it()
    }

    /// Whether it certainly has not.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.sign.is_quiet()
    }

    #[cold]
    fn hears_of_it(&self) -> bool {
        self.sign.is_overdue() || self.lent.get().is_some_and(|until| Instant::now() >= until)
    }

    /// Somebody wants the core, or has it, or a fence is to be passed: finds out.
    #[cold]
    fn reclaim(&self) {
        // Who was inside before knows what it has.
        let Some(tenure) = self.tenure().filter(|_| !self.sign.was_inside()) else { return };
        if !tenure.reclaim(&self.sign) {
            self.lose();
        }
    }

    /// The same at the end of a poll. Answers whether that is to be remembered.
    #[cold]
    fn leave(&self) -> bool {
        let Some(tenure) = self.tenure() else { return false };
        if tenure.leave(&self.sign) {
            return false;
        }
        self.lose();
        tenure.is_hog()
    }

    /// Who listens to what this thread says.
    #[inline(always)]
    fn tenure(&self) -> Option<&Tenure> {
        // SAFETY: obligation 1 of `Tenured::new`.
        unsafe { self.tenure.get().as_ref() }
    }
}

/// While it lives, what this thread knows of its core is true: nobody takes the core away,
/// and one that was taken is known to be. No code of users should run meanwhile: it would be
/// right, but others would wait for it.
#[must_use]
pub(crate) struct Inside {
    /// It is this thread that is inside.
    _here: PhantomData<*const ()>,
}

#[inline(always)]
pub(crate) fn inside() -> Inside {
    with(|current| {
        if !current.sign.reclaim() {
            current.reclaim();
        }
    });
    Inside { _here: PhantomData }
}

/// The same where nobody wants the core; `None` if [`inside`] is to find out.
#[inline(always)]
pub(crate) fn at_once_inside() -> Option<Inside> {
    with(|current| {
        if !current.sign.reclaim() {
            current.sign.resume();
            return None;
        }
        Some(Inside { _here: PhantomData })
    })
}

/// The same for who runs tasks and is in the runtime's own code anyway: what it knows of its core
/// is true already.
#[inline(always)]
pub(crate) fn deeper() -> Inside {
    with(|current| current.sign.go_deeper());
    Inside { _here: PhantomData }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        with(|current| current.sign.resume());
    }
}

/// A user's code begins, for the sake of `task`. Only for those who run tasks and have nothing of
/// the core in their hands: whoever drops a task in the middle of something else has the core for
/// as long as that takes.
#[inline(always)]
pub(crate) fn enter_user_code(task: NonNull<Header>) {
    with(|current| current.sign.enter(task));
}

/// The same for a set of tasks that is polled by it is not known whom: only where no core is
/// ever taken, and this is not a part of another poll. Answers whether it was said.
#[inline(always)]
pub(crate) fn enter_user_code_in_place(task: NonNull<Header>) -> bool {
    with(|current| {
        let is_right =
            !current.sign.is_in_user_code() && current.tenure().is_some_and(Tenure::keeps_its_core);
        if is_right {
            current.sign.enter(task);
        }
        is_right
    })
}

/// It is over. Afterwards what this thread knows of its core is true. Answers whether it took
/// so long that the task is to be remembered for it.
#[inline(always)]
pub(crate) fn leave_user_code() -> bool {
    with(|current| !current.sign.reclaim() && current.leave())
}

/// The thread has the core from now on, and says so to who may take it away, if anybody may.
pub(crate) fn began_with_core(core: NonNull<()>) {
    with(|current| {
        current.tenure().into_iter().for_each(|tenure| tenure.begin(&current.sign, core));
    });
}

/// It gives the core up. It is inside.
pub(crate) fn ended_with_core() {
    with(|current| current.tenure().into_iter().for_each(|tenure| tenure.end(&current.sign)));
}

/// While it lives, somebody listens to what this thread says of its core.
pub(crate) struct Tenured {
    before: *const Tenure,
    /// What it said before, if nobody listened.
    said: Option<Said>,
    guest: *const (),
    lent: Option<Instant>,
}

impl Tenured {
    /// `None` for a thread whose core nobody takes.
    ///
    /// # Safety
    /// 1. The tenure lives until this is dropped, on this thread and in order.
    pub(crate) unsafe fn new(tenure: Option<&Tenure>) -> Self {
        let pointer = tenure.map_or(std::ptr::null(), std::ptr::from_ref);
        let tenured = with(|current| {
            assert!(current.core.get().is_null(), "who waits has no core");
            let said = match current.tenure() {
                Some(before) => {
                    before.suspend(&current.sign);
                    None
                }
                None => Some(current.sign.begin_anew()),
            };
            if let Some(tenure) = tenure {
                // SAFETY: 1. they are this thread's, and it is detached when this is dropped.
                unsafe { tenure.attach(&current.sign) };
            }
            Self {
                before: current.tenure.replace(pointer),
                said,
                guest: current.guest.replace(std::ptr::null()),
                lent: current.lent.take(),
            }
        });
        // SeqCst: for the compiler. A handler of signals on this thread (`answer`) finds it
        // from here on.
        compiler_fence(SeqCst);
        tenured
    }

    /// For a future that this thread waits for, which may be in the middle of a poll that is
    /// long overdue. That one's mark is not this one's: it would never be taken away, and
    /// whatever asks for it would yield for ever.
    pub(crate) fn hidden() -> Self {
        // SAFETY: 1. there is none.
        unsafe { Self::new(None) }
    }
}

impl Drop for Tenured {
    fn drop(&mut self) {
        with(|current| {
            let over = current.tenure();
            current.tenure.set(self.before);
            // SeqCst: for the compiler. What it pointed to is freed afterwards, and a handler of
            // signals on this thread finds it no more.
            compiler_fence(SeqCst);
            over.into_iter().for_each(|over| over.detach(&current.sign));
            match current.tenure() {
                // SAFETY: 1. as in `new`, of the one before.
                Some(before) => unsafe { before.go_on(&current.sign) },
                None => self.said.into_iter().for_each(|said| current.sign.go_on(said)),
            }
            current.guest.set(self.guest);
            current.lent.set(self.lent);
        });
    }
}

/// While it lives, this thread polls a task that was lent to it, which should be through by then.
pub(crate) struct Borrowing {
    before: Option<Instant>,
    /// Nobody listens to it meanwhile.
    is_unheard: bool,
}

impl Borrowing {
    pub(crate) fn until(until: Option<Instant>) -> Self {
        with(|current| {
            // Who listens has said that there is a clock.
            let is_unheard = current.tenure().is_none();
            if is_unheard {
                current.sign.set_lent(true);
            }
            Self { before: current.lent.replace(until), is_unheard }
        })
    }
}

impl Drop for Borrowing {
    fn drop(&mut self) {
        with(|current| {
            if self.is_unheard {
                current.sign.set_lent(false);
            }
            current.lent.set(self.before);
        });
    }
}

/// Says where this thread is, if it is asked: in a handler of signals. It allocates nothing and
/// waits for nothing. `write` gets the bounds of the thread's stack, and of that of the fiber
/// that runs on it, if one does.
#[allow(dead_code, reason = "there are systems on which nobody is asked")]
pub(crate) fn answer(write: impl FnOnce(&mut Answer, [Range<usize>; 2])) {
    with(|current| {
        #[cfg(feature = "fiber")]
        let (start, end) = current.room.get();
        #[cfg(not(feature = "fiber"))]
        let (start, end) = (0, 0);
        if let Some(tenure) = current.tenure() {
            let write = |answer: &mut Answer, own| write(answer, [own, start..end]);
            tenure.answer(&current.sign, write);
        }
    });
}

/// The number of the core that this thread holds, if it looks into that driver. Asked
/// [`inside`].
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

/// The words that belong to a stack and not to its thread: a fiber takes its own along when
/// it leaves the thread to another. The task, its budget and the verdict are not among them:
/// whoever polls sets them, each time. (That a frame has no budget is remembered by the fiber.)
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Clone, Copy)]
pub(crate) struct Words {
    entered: *const (),
    depth: usize,
    starting: *const (),
    blocking: Blocking,
    pub(crate) fiber: *const (),
    pub(crate) stack: *const (),
    pub(crate) room: (usize, usize),
    locks: usize,
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl Words {
    /// Of a stack on which nothing has run, on this thread. It does not own the reference to the
    /// runtime that its carrier has entered. So guards on it count from a depth of their own: one
    /// of the carrier's that is dropped there, or the other way round, is out of order, and takes
    /// nothing away.
    pub(crate) fn of_new_stack() -> Self {
        Self { depth: usize::MAX / 2, ..Self::here() }
    }

    /// This thread's.
    fn here() -> Self {
        with(|current| Self {
            entered: current.entered.get(),
            depth: current.depth.get(),
            starting: current.starting.get(),
            blocking: current.blocking.get(),
            fiber: current.fiber.get(),
            stack: current.stack.get(),
            room: current.room.get(),
            locks: current.locks.get(),
        })
    }

    /// Puts these in the place of this thread's, which are the answer.
    pub(crate) fn exchange(self) -> Self {
        with(|current| Self {
            entered: current.entered.replace(self.entered),
            depth: current.depth.replace(self.depth),
            starting: current.starting.replace(self.starting),
            blocking: current.blocking.replace(self.blocking),
            fiber: current.fiber.replace(self.fiber),
            stack: current.stack.replace(self.stack),
            room: current.room.replace(self.room),
            locks: current.locks.replace(self.locks),
        })
    }
}

/// While it lives, a lock is held under which users' code runs: no fiber is suspended here. Another
/// one of the thread that wants the lock would block the thread, and nobody would ever give it
/// back. One that is leaked is its fiber's for ever, as the lock is. One that another fiber drops,
/// which got it through a thread-local, may let that one wait too early: no worse than without.
#[must_use]
#[allow(dead_code, reason = "only some features have such locks")]
pub(crate) struct Holding(());

#[allow(dead_code, reason = "only some features have such locks")]
impl Holding {
    #[inline(always)]
    pub(crate) fn lock() -> Self {
        #[cfg(feature = "fiber")]
        with(|current| current.locks.set(current.locks.get() + 1));
        Self(())
    }
}

#[cfg(feature = "fiber")]
impl Drop for Holding {
    #[inline(always)]
    fn drop(&mut self) {
        with(|current| current.locks.set(current.locks.get().saturating_sub(1)));
    }
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
