//! The part of `fiber`: the fiber that this thread runs, its stack, its locks and its scopes.

#[cfg(feature = "fiber")]
use std::{cell::Cell, ops::Range, ptr::NonNull};

#[cfg(feature = "fiber")]
use super::erased::Erased;
#[cfg(feature = "fiber")]
use super::with;
#[cfg(feature = "fiber")]
use crate::engine::work::{scopes::ScopeLink, task::cell::Header};

/// The key of a fiber.
#[cfg(feature = "fiber")]
pub(crate) enum FiberKey {}

/// The key of the record that describes a fiber's stack.
#[cfg(feature = "fiber")]
pub(crate) enum StackRecordKey {}

/// The words of `fiber` in the thread's context. They belong to a stack (`stack.rs`); scopes are
/// taken along by `work/scopes.rs`.
#[cfg(feature = "fiber")]
pub(in crate::engine::work) struct FiberPart {
    /// The fiber that code on this thread may suspend; null inside of a `block_on`.
    fiber: Cell<Erased<FiberKey>>,
    /// The record of the stack that this thread is on, if it is a fiber's.
    stack: Cell<Erased<StackRecordKey>>,
    /// The bounds of that stack.
    bounds: Cell<(usize, usize)>,
    /// The number of locks that this thread holds while user code runs ([`LockHeldGuard`]).
    locks: Cell<usize>,
    /// The scopes of task-locals that were entered, innermost first.
    scopes: Cell<*const ScopeLink>,
}

/// The words of a [`FiberPart`] that a stack takes along.
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Clone, Copy)]
pub(super) struct FiberWords {
    pub(super) fiber: Erased<FiberKey>,
    pub(super) stack: Erased<StackRecordKey>,
    pub(super) bounds: (usize, usize),
    locks: usize,
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl FiberPart {
    pub(super) const fn new() -> Self {
        Self {
            fiber: Cell::new(Erased::null()),
            stack: Cell::new(Erased::null()),
            bounds: Cell::new((0, 0)),
            locks: Cell::new(0),
            scopes: Cell::new(std::ptr::null()),
        }
    }

    /// Replaces the fiber that code on this thread may suspend, and returns the former one.
    pub(super) fn replace_fiber(&self, fiber: Erased<FiberKey>) -> Erased<FiberKey> {
        self.fiber.replace(fiber)
    }

    /// Returns the bounds of the fiber's stack that this thread is on; an empty range without one.
    pub(super) fn bounds(&self) -> Range<usize> {
        let (start, end) = self.bounds.get();
        start..end
    }

    pub(super) fn stack_words(&self) -> FiberWords {
        FiberWords {
            fiber: self.fiber.get(),
            stack: self.stack.get(),
            bounds: self.bounds.get(),
            locks: self.locks.get(),
        }
    }

    pub(super) fn exchange(&self, words: FiberWords) -> FiberWords {
        FiberWords {
            fiber: self.fiber.replace(words.fiber),
            stack: self.stack.replace(words.stack),
            bounds: self.bounds.replace(words.bounds),
            locks: self.locks.replace(words.locks),
        }
    }

    /// Returns the innermost scope of this thread, or null.
    #[inline(always)]
    pub(in crate::engine::work) fn scopes(&self) -> *const ScopeLink {
        self.scopes.get()
    }

    /// Replaces the innermost scope of this thread, and returns the former one.
    #[inline(always)]
    pub(in crate::engine::work) fn replace_scopes(
        &self,
        link: *const ScopeLink,
    ) -> *const ScopeLink {
        self.scopes.replace(link)
    }
}

/// The state of this thread that decides whether its code can be suspended.
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
pub(crate) struct SuspendState {
    /// The fiber that the code may suspend, or null.
    pub(crate) fiber: Erased<FiberKey>,
    /// True if the code runs on a fiber's stack.
    pub(crate) is_on_stack: bool,
    /// True if the code is inside of a set of local tasks.
    pub(crate) is_in_local_set: bool,
    /// The number of locks that the code holds.
    pub(crate) locks: usize,
    /// The current task.
    pub(crate) task: Option<NonNull<Header>>,
}

/// Returns the state of this thread that decides whether its code can be suspended.
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
#[inline]
pub(crate) fn suspend_state() -> SuspendState {
    with(|context| SuspendState {
        fiber: context.fiber.fiber.get(),
        is_on_stack: !context.fiber.stack.get().is_null(),
        is_in_local_set: context.local.is_inside_set(),
        locks: context.fiber.locks.get(),
        task: context.task.task(),
    })
}

/// Returns the record of the fiber's stack that this thread is on, or null. Called in a signal
/// handler.
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
pub(crate) fn stack_record() -> Erased<StackRecordKey> {
    with(|context| context.fiber.stack.get())
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
        with(|context| context.fiber.locks.set(context.fiber.locks.get() + 1));
        Self(())
    }
}

#[cfg(feature = "fiber")]
impl Drop for LockHeldGuard {
    #[inline(always)]
    fn drop(&mut self) {
        with(|context| context.fiber.locks.set(context.fiber.locks.get().saturating_sub(1)));
    }
}
