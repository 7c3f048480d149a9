//! Scopes of task-locals on threads that run fibers: values in a thread-local that are valid as
//! long as a frame is on the stack, although other fibers use the thread in between.
//!
//! The scope of a task-local writes a word of its thread and writes the former one back at
//! its end, in the order of the stack. Two fibers on one thread are two stacks, so a word that
//! one of them wrote must not be seen, or written back, while the other runs. So scopes form a
//! chain, and a fiber that is suspended takes the chain of its own stack along.
//!
//! # Protocol
//! ```text
//! enter     the scope exchanges the thread's word for its own and becomes the innermost
//! leave     the scope, which is the innermost, exchanges them back
//! suspend   a fiber is suspended: every scope exchanges back, from the innermost outwards
//! put back  the fiber resumes: every scope exchanges again, from the outermost inwards
//! ```
//! Taking a chain off its thread reverses it, so that each walk begins at the right end.
//!
//! # Invariants
//! - *In order*: a link is entered and left on one stack, and a stack's frames end in order.
//! - *One at a time*: on a thread, the scopes of one stack are in place, and of no other.
//!
//! # Checked by
//! `task_locals_stay_with_their_fiber`, `a_borrowed_task_local_is_borrowed_by_its_fiber_alone`.

use std::{cell::Cell, ptr};

use super::thread_context;

/// A scope's link in the chain.
#[derive(Debug)]
pub(crate) struct ScopeLink {
    outer: Cell<*const ScopeLink>,
    /// Exchanges the thread's word for the one that lies beside this link.
    #[allow(dead_code, reason = "there are systems without fibers")]
    exchange: unsafe fn(*const ScopeLink),
}

impl ScopeLink {
    /// Creates the link of a scope.
    ///
    /// # Safety
    /// 1. `exchange` may be called with this link, wherever it is then, on the thread on
    ///    which it was entered and until it was left.
    pub(crate) unsafe fn new(exchange: unsafe fn(*const ScopeLink)) -> Self {
        Self { outer: Cell::new(ptr::null()), exchange }
    }

    /// Begins the scope, which has exchanged its word, as the innermost of its thread.
    ///
    /// # Safety
    /// 1. The link stays where it is until [`leave`](Self::leave), on this stack and in order.
    /// 2. The pointer may be used for all that `exchange` reaches through it.
    #[inline]
    pub(crate) unsafe fn enter(link: *const Self) {
        // SAFETY: obligation 1: the link stays where it is.
        let outer = unsafe { &(*link).outer };
        thread_context::with(|context| outer.set(context.fiber.replace_scopes(link)));
    }

    /// Ends the scope.
    ///
    /// # Safety
    /// 1. The scope has begun.
    #[inline]
    pub(crate) unsafe fn leave(link: *const Self) {
        // SAFETY: obligation 1; and by obligation 1 of `enter` the link is still where it was.
        let outer = unsafe { (*link).outer.get() };
        thread_context::with(|context| {
            debug_assert!(ptr::eq(context.fiber.scopes(), link), "a scope was left out of order");
            context.fiber.replace_scopes(outer);
        });
    }
}

/// The scopes of a stack that is not running, outermost first.
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuspendedScopes(*const ScopeLink);

#[allow(dead_code, reason = "there are systems without fibers")]
impl SuspendedScopes {
    /// Returns an empty chain.
    pub(crate) const fn empty() -> Self {
        Self(ptr::null())
    }

    /// Takes all scopes of this thread: those of the fiber that has just been suspended.
    #[inline]
    pub(crate) fn take() -> Self {
        let innermost = thread_context::with(|context| context.fiber.replace_scopes(ptr::null()));
        if innermost.is_null() { Self::empty() } else { Self(exchange_all(innermost)) }
    }

    /// Puts the scopes back before their fiber resumes, on this thread, which has none now.
    #[inline]
    pub(crate) fn put_back(self) {
        if !self.0.is_null() {
            let innermost = exchange_all(self.0);
            let before = thread_context::with(|context| context.fiber.replace_scopes(innermost));
            debug_assert!(before.is_null(), "scopes of two stacks on one thread");
        }
    }
}

/// Makes every scope exchange its word, reverses the chain and returns its new head.
#[allow(dead_code, reason = "there are systems without fibers")]
#[cold]
fn exchange_all(first: *const ScopeLink) -> *const ScopeLink {
    let (mut done, mut next) = (ptr::null(), first);
    // SAFETY: links leave the chain before their frames end, and frames of a stack that does
    // not run cannot end.
    while let Some(link) = unsafe { next.as_ref() } {
        // SAFETY: obligation 1 of `ScopeLink::new`: a fiber stays on its thread.
        unsafe { (link.exchange)(next) };
        let outer = link.outer.replace(done);
        done = std::mem::replace(&mut next, outer);
    }
    done
}
