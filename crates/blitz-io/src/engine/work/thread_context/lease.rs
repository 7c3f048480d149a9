//! The part of `lease`: the record of this thread's poll and core, for threads that may take the
//! core away, and the guard under which the core pointers of this thread are valid.

use std::{cell::Cell, marker::PhantomData, ops::Range, ptr::NonNull, time::Instant};

use super::{ThreadContext, erased::Erased, with};
use crate::engine::{
    lease::{Lease, PollRecord, SavedPoll, stack_request::StackTrace},
    prim::{Ordering::SeqCst, compiler_fence, const_unless_loom},
    work::task::cell::Header,
};

/// The key of a `block_on` that is watched while it runs local tasks.
pub(crate) enum WatchedBlockOnKey {}

/// The words of `lease` in the thread's context.
pub(in crate::engine::work) struct LeasePart {
    /// The thread's record of its core, for threads that may take the core away. While it says
    /// that this thread is in user code, the core of the [`PoolPart`](super::pool::PoolPart) may
    /// be out of date.
    poll_record: PollRecord,
    /// The [`Lease`] through which other threads read `poll_record` and may take the core; null if
    /// this thread is not watched.
    lease: Cell<*const Lease>,
    /// The time by which a task that is polled without a core should have returned. Such a poll
    /// is not watched from outside any more once its runtime ends, so it checks the time itself.
    poll_deadline: Cell<Option<Instant>>,
    /// The `block_on` to notify before local tasks run on this thread.
    watched_block_on: Cell<Erased<WatchedBlockOnKey>>,
}

impl LeasePart {
    const_unless_loom! {
    pub(super) fn new() -> Self {
        Self {
            poll_record: PollRecord::new(),
            lease: Cell::new(std::ptr::null()),
            poll_deadline: Cell::new(None),
            watched_block_on: Cell::new(Erased::null()),
        }
    }
    }

    /// Returns true if the poll on this thread has lasted so long that it should let others run.
    #[inline(always)]
    pub(in crate::engine::work) fn should_yield(&self) -> bool {
        !self.is_unmarked() && self.check_mark_and_clock()
    }

    /// Returns true if the poll is certainly not marked; false means that it may be.
    #[inline(always)]
    pub(in crate::engine::work) fn is_unmarked(&self) -> bool {
        self.poll_record.is_unmarked()
    }

    #[cold]
    fn check_mark_and_clock(&self) -> bool {
        self.poll_record.should_yield()
            || self.poll_deadline.get().is_some_and(|until| Instant::now() >= until)
    }

    /// Returns the [`Lease`] through which this thread is watched, if it is.
    #[inline(always)]
    fn lease(&self) -> Option<&Lease> {
        // SAFETY: obligation 1 of `LeaseGuard::new`: the lease lives until the pointer is replaced.
        unsafe { self.lease.get().as_ref() }
    }

    /// Records that this thread has the core from now on, if the thread is watched.
    pub(super) fn began_with_core(&self, core: NonNull<()>) {
        self.lease().into_iter().for_each(|lease| lease.begin(&self.poll_record, core));
    }

    /// Records that this thread, which is inside, gives up the core.
    pub(super) fn ended_with_core(&self) {
        self.lease().into_iter().for_each(|lease| lease.end(&self.poll_record));
    }
}

impl ThreadContext {
    /// Finds out whether the thread still has its core, after the quick check did not show that:
    /// the core is claimed or taken, or a fence must be passed first.
    #[cold]
    fn reclaim(&self) {
        let part = &self.lease;
        // Code that was inside before has found this out already.
        let Some(lease) = part.lease().filter(|_| !part.poll_record.was_inside()) else { return };
        if !lease.reclaim(&part.poll_record) {
            self.pool.forget_core();
        }
    }

    /// Finds out, at the end of a poll, whether the thread still has its core. Returns true if it
    /// was taken and the task should be remembered as a hog.
    #[cold]
    fn leave(&self) -> bool {
        let Some(lease) = self.lease.lease() else { return false };
        if lease.leave(&self.lease.poll_record) {
            return false;
        }
        self.pool.forget_core();
        lease.is_hog()
    }
}

/// Returns true if the poll on this thread has lasted so long that it should let others run.
#[inline(always)]
pub(crate) fn should_yield() -> bool {
    with(|context| context.lease.should_yield())
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
    with(|context| {
        if !context.lease.poll_record.reclaim() {
            context.reclaim();
        }
    });
    Inside { _not_send: PhantomData }
}

/// Does what [`inside`] does if no thread wants the core; else returns `None`, and the caller
/// must use [`inside`].
#[inline(always)]
pub(crate) fn try_inside() -> Option<Inside> {
    with(|context| {
        if !context.lease.poll_record.reclaim() {
            context.lease.poll_record.resume();
            return None;
        }
        Some(Inside { _not_send: PhantomData })
    })
}

/// Creates an [`Inside`] for a loop that runs tasks and is in the runtime's own code already,
/// where the core pointers are valid anyway.
#[inline(always)]
pub(crate) fn nested_inside() -> Inside {
    with(|context| context.lease.poll_record.go_deeper());
    Inside { _not_send: PhantomData }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        with(|context| context.lease.poll_record.resume());
    }
}

/// Marks the beginning of user code, on behalf of `task`. Only for loops that run tasks and borrow
/// nothing of the core, because the core may be taken meanwhile. Code that drops a task in the
/// middle of another operation must not call this, and so keeps the core for as long as that takes.
#[inline(always)]
pub(crate) fn enter_user_code(task: NonNull<Header>) {
    with(|context| context.lease.poll_record.enter(task.cast()));
}

/// Marks the beginning of user code for a set of tasks that is polled by unknown code. Does so
/// only where no core is ever taken, and where this is not a part of another poll. Returns true
/// if it did.
#[inline(always)]
pub(crate) fn enter_user_code_in_place(task: NonNull<Header>) -> bool {
    with(|context| {
        let is_right = !context.lease.poll_record.is_in_user_code()
            && context.lease.lease().is_some_and(Lease::keeps_core);
        if is_right {
            context.lease.poll_record.enter(task.cast());
        }
        is_right
    })
}

/// Marks the end of user code; afterwards the core pointers are valid again. Returns true if the
/// task should be remembered as a hog, because the core was taken during its poll.
#[inline(always)]
pub(crate) fn leave_user_code() -> bool {
    with(|context| !context.lease.poll_record.reclaim() && context.leave())
}

/// Records that this thread has the core from now on, if the thread is watched.
pub(crate) fn began_with_core(core: NonNull<()>) {
    with(|context| context.lease.began_with_core(core));
}

/// Returns the `block_on` to notify before local tasks run on this thread, or null.
#[inline]
pub(crate) fn watched_block_on() -> Erased<WatchedBlockOnKey> {
    with(|context| context.lease.watched_block_on.get())
}

/// Replaces the `block_on` to notify before local tasks run on this thread, and returns the former
/// one.
pub(crate) fn replace_watched_block_on(
    watched_block_on: Erased<WatchedBlockOnKey>,
) -> Erased<WatchedBlockOnKey> {
    with(|context| context.lease.watched_block_on.replace(watched_block_on))
}

/// A guard under which this thread is watched through a [`Lease`], or not at all.
pub(crate) struct LeaseGuard {
    before: *const Lease,
    /// The content of the thread's [`PollRecord`] before, if the thread was not watched.
    saved: Option<SavedPoll>,
    watched_block_on: Erased<WatchedBlockOnKey>,
    poll_deadline: Option<Instant>,
}

impl LeaseGuard {
    /// Lets other threads watch this one through `lease`; `None` for a thread that keeps its core.
    ///
    /// # Safety
    /// 1. The lease lives until the guard is dropped, on this thread and in order.
    pub(crate) unsafe fn new(lease: Option<&Lease>) -> Self {
        let pointer = lease.map_or(std::ptr::null(), std::ptr::from_ref);
        let lease_guard = with(|context| {
            assert!(!context.pool.holds_core(), "a thread that waits has no core");
            let saved = match context.lease.lease() {
                Some(before) => {
                    before.suspend(&context.lease.poll_record);
                    None
                }
                None => Some(context.lease.poll_record.save()),
            };
            if let Some(lease) = lease {
                // SAFETY: 1. the poll record is this thread's, and is detached when the guard is
                // dropped.
                unsafe { lease.attach(&context.lease.poll_record) };
            }
            Self {
                before: context.lease.lease.replace(pointer),
                saved,
                watched_block_on: context.lease.watched_block_on.replace(Erased::null()),
                poll_deadline: context.lease.poll_deadline.take(),
            }
        });
        // SeqCst: for the compiler. From here on a signal handler on this thread (`trace`) finds
        // the lease.
        compiler_fence(SeqCst);
        lease_guard
    }

    /// Hides this thread's poll from a future that the thread blocks on. That poll may have
    /// been marked, and its mark must not apply to the future: it would never be cleared, and every
    /// operation that checks it would yield for ever.
    pub(crate) fn hidden() -> Self {
        // SAFETY: 1. there is no lease.
        unsafe { Self::new(None) }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        with(|context| {
            let over = context.lease.lease();
            context.lease.lease.set(self.before);
            // SeqCst: for the compiler. From here on a signal handler on this thread does not find
            // the lease, which may be freed afterwards.
            compiler_fence(SeqCst);
            over.into_iter().for_each(|over| over.detach(&context.lease.poll_record));
            match context.lease.lease() {
                // SAFETY: 1. obligation 1 of `new`, when it was called with this earlier lease.
                Some(before) => unsafe { before.reattach(&context.lease.poll_record) },
                None => self
                    .saved
                    .into_iter()
                    .for_each(|saved| context.lease.poll_record.restore(saved)),
            }
            context.lease.watched_block_on.set(self.watched_block_on);
            context.lease.poll_deadline.set(self.poll_deadline);
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
        with(|context| {
            // On a thread that is watched, the lease was created with the flag for the clock.
            let is_unwatched = context.lease.lease().is_none();
            if is_unwatched {
                context.lease.poll_record.set_offloaded(true);
            }
            Self { before: context.lease.poll_deadline.replace(until), is_unwatched }
        })
    }
}

impl Drop for PollDeadline {
    fn drop(&mut self) {
        with(|context| {
            if self.is_unwatched {
                context.lease.poll_record.set_offloaded(false);
            }
            context.lease.poll_deadline.set(self.before);
        });
    }
}

/// Writes this thread's position, if it is requested. Called in a signal handler: it allocates
/// nothing and waits for nothing. `write` gets the bounds of the thread's stack, and of the stack
/// of the fiber that runs on it, if one does.
#[allow(dead_code, reason = "some systems capture no stacks")]
pub(crate) fn respond_to_stack_request(write: impl FnOnce(&mut StackTrace, [Range<usize>; 2])) {
    with(|context| {
        #[cfg(feature = "fiber")]
        let fiber = context.fiber.bounds();
        #[cfg(not(feature = "fiber"))]
        let fiber = 0..0;
        if let Some(lease) = context.lease.lease() {
            let write = |trace: &mut StackTrace, own| write(trace, [own, fiber]);
            lease.respond(&context.lease.poll_record, write);
        }
    });
}
