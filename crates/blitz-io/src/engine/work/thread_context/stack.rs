//! The words of the context that belong to a stack and not to its thread.

use super::{
    ThreadContext,
    blocking::BlockingPolicy,
    erased::Erased,
    fiber::{FiberKey, FiberWords, StackRecordKey},
    pool::StartingKey,
    runtime::RuntimeWords,
    with,
};

/// The words that belong to a stack: a fiber takes its own along when it is suspended and another
/// one runs on the thread. The task, its budget and the poll's outcome are not among them, because
/// the code that polls sets them each time. (That a frame has no budget is remembered by the
/// fiber.)
#[allow(dead_code, reason = "there are systems without fibers")]
#[derive(Clone, Copy)]
pub(crate) struct StackContext {
    runtime: RuntimeWords,
    pool: Erased<StartingKey>,
    blocking: BlockingPolicy,
    fiber: FiberWords,
}

#[allow(dead_code, reason = "there are systems without fibers")]
impl StackContext {
    /// Returns the words of a new stack on this thread. The stack does not own the reference to the
    /// runtime that its carrier has entered. So guards on it count from a depth of their own: a
    /// carrier's guard that is dropped there, or the other way round, is out of order, and leaves
    /// the entered runtime alone.
    pub(crate) fn of_new_stack() -> Self {
        let mut words = with(Self::of);
        words.runtime.depth = usize::MAX / 2;
        words
    }

    /// Returns a copy of a thread's words.
    fn of(context: &ThreadContext) -> Self {
        Self {
            runtime: context.runtime.stack_words(),
            pool: context.pool.stack_words(),
            blocking: context.blocking.stack_words(),
            fiber: context.fiber.stack_words(),
        }
    }

    /// Records the fiber that runs on this stack, and the stack with its bounds.
    pub(crate) fn set_fiber(
        &mut self,
        fiber: Erased<FiberKey>,
        stack: Erased<StackRecordKey>,
        bounds: (usize, usize),
    ) {
        self.fiber.fiber = fiber;
        self.fiber.stack = stack;
        self.fiber.bounds = bounds;
    }

    /// Replaces this thread's words with these, and returns the former ones.
    pub(crate) fn exchange(self) -> Self {
        with(|context| Self {
            runtime: context.runtime.exchange(self.runtime),
            pool: context.pool.exchange(self.pool),
            blocking: context.blocking.exchange(self.blocking),
            fiber: context.fiber.exchange(self.fiber),
        })
    }
}
