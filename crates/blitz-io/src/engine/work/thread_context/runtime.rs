//! The part of `runtime`: the runtime that was entered last on this thread.

use std::cell::Cell;

use super::{erased::Erased, with};

/// The key of an entered runtime.
pub(crate) enum RuntimeKey {}

/// The words of `runtime` in the thread's context. They belong to a stack (`stack.rs`).
pub(super) struct RuntimePart {
    /// The runtime that was entered last.
    entered: Cell<Erased<RuntimeKey>>,
    /// The number of enter guards that are alive; they must be dropped in order.
    depth: Cell<usize>,
}

/// The state of a [`RuntimePart`] before a runtime was entered, and how deep that one is.
pub(crate) struct EnteredRuntime {
    before: Erased<RuntimeKey>,
    depth: usize,
}

/// The words of a [`RuntimePart`] that a stack takes along.
#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Clone, Copy)]
pub(super) struct RuntimeWords {
    entered: Erased<RuntimeKey>,
    pub(super) depth: usize,
}

impl RuntimePart {
    pub(super) const fn new() -> Self {
        Self { entered: Cell::new(Erased::null()), depth: Cell::new(0) }
    }
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl RuntimePart {
    pub(super) fn stack_words(&self) -> RuntimeWords {
        RuntimeWords { entered: self.entered.get(), depth: self.depth.get() }
    }

    pub(super) fn exchange(&self, words: RuntimeWords) -> RuntimeWords {
        RuntimeWords {
            entered: self.entered.replace(words.entered),
            depth: self.depth.replace(words.depth),
        }
    }
}

/// Returns the runtime that was entered last on this thread, or null.
#[inline]
pub(crate) fn entered() -> Erased<RuntimeKey> {
    with(|context| context.runtime.entered.get())
}

impl EnteredRuntime {
    /// Makes `runtime` the one that was entered last.
    pub(crate) fn new(runtime: Erased<RuntimeKey>) -> Self {
        with(|context| {
            let part = &context.runtime;
            let depth = part.depth.get() + 1;
            part.depth.set(depth);
            Self { before: part.entered.replace(runtime), depth }
        })
    }

    /// Returns how many runtimes this thread had entered when this one was entered, with this one.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Leaves this runtime, which must be the innermost, and returns that runtime.
    /// Returns null if [`leave_with_all_inside`](Self::leave_with_all_inside) has left it, and
    /// `None` if it is not the innermost.
    pub(crate) fn leave(&self) -> Option<Erased<RuntimeKey>> {
        with(|context| {
            let part = &context.runtime;
            if part.depth.get() < self.depth {
                // An outer context was left by `leave_with_all_inside`: the thread is at its end,
                // and this guard outlived the thread's contexts in a thread-local.
                return Some(Erased::null());
            }
            if part.depth.get() != self.depth {
                return None;
            }
            part.depth.set(self.depth - 1);
            Some(part.entered.replace(self.before))
        })
    }

    /// Leaves this runtime and every runtime that was entered inside it. Returns the
    /// runtime that was left, or `None` if others were inside.
    pub(crate) fn leave_with_all_inside(&self) -> Option<Erased<RuntimeKey>> {
        with(|context| {
            let part = &context.runtime;
            let inside = part.depth.replace(self.depth - 1) != self.depth;
            let inner = part.entered.replace(self.before);
            // The contexts in between keep their references to runtimes, which are leaked as the
            // guards were.
            (!inside).then_some(inner)
        })
    }
}
