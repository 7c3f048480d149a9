//! The thread-local of tasks and runtimes: the task, core and runtime that this thread works for.
//! (Fork-join workers and service threads have thread-locals of their own.)
//!
//! It holds plain words and needs no destructor, so it is available until the very end of a thread.
//!
//! Each layer has a part of its own, with private cells, in a file that is named after the layer
//! and has the functions through which that layer reaches its part:
//!
//! | file | what it holds | used by |
//! |---|---|---|
//! | `task` | the task that is polled, its budget, the outcome of the poll | `work`, and primitives that return `Pending` |
//! | `lease` | the record of this thread's poll, and the lease through which other threads read it | `work`, `pool`, `preempt` |
//! | `pool` | the core that this thread holds, and the pools that it is starting | `pool`, `work/task/arena.rs` |
//! | `blocking` | the permission to block, and this thread's slot in the blocking pool | `pool`, `preempt`, `blocking` |
//! | `local` | the sets of local tasks that were entered | `local` |
//! | `runtime` | the runtime that was entered last | `runtime` |
//! | `fiber` | the fiber that this thread runs, its stack, its locks and its scopes | `fiber`, `work/scopes.rs` |
//! | `thread` | the thread's own number and random numbers | all |
//!
//! Pointers to types of later layers are [`Erased`](erased::Erased): this module names a key for
//! each, and the layer that owns the type says which type that is. `stack` exchanges the words
//! that belong to a stack and not to its thread.

use crate::engine::prim::{const_unless_loom, per_thread};

pub(crate) mod blocking;
pub(crate) mod erased;
pub(crate) mod fiber;
mod lease;
pub(crate) mod local;
pub(crate) mod pool;
pub(crate) mod runtime;
#[cfg(feature = "fiber")]
pub(crate) mod stack;
mod task;
mod thread;

#[allow(unused_imports, reason = "only some features have such locks")]
pub(crate) use fiber::LockHeldGuard;
#[allow(unused_imports, reason = "some systems capture no stacks")]
pub(crate) use lease::respond_to_stack_request;
pub(crate) use lease::{
    Inside, LeaseGuard, PollDeadline, WatchedBlockOnKey, began_with_core, enter_user_code,
    enter_user_code_in_place, inside, leave_user_code, nested_inside, replace_watched_block_on,
    should_yield, try_inside, watched_block_on,
};
pub(crate) use task::{
    CountingYields, CurrentTaskGuard, PollOutcome, count_forced_yield, set_latency, set_yielded,
    take_latency, take_poll_outcome, task, task_id, waits_for,
};
#[cfg_attr(not(feature = "macros"), allow(unused_imports, reason = "`select!` uses it"))]
pub(crate) use thread::random_below;
pub(crate) use thread::{SeededRngGuard, thread};

/// The words of this thread, one part per layer.
pub(super) struct ThreadContext {
    pub(super) task: task::TaskPart,
    pub(super) lease: lease::LeasePart,
    pool: pool::PoolPart,
    blocking: blocking::BlockingPart,
    local: local::LocalPart,
    runtime: runtime::RuntimePart,
    thread: thread::ThreadPart,
    #[cfg(feature = "fiber")]
    pub(super) fiber: fiber::FiberPart,
}

impl ThreadContext {
    const_unless_loom! {
    fn new() -> Self {
        Self {
            task: task::TaskPart::new(),
            lease: lease::LeasePart::new(),
            pool: pool::PoolPart::new(),
            blocking: blocking::BlockingPart::new(),
            local: local::LocalPart::new(),
            runtime: runtime::RuntimePart::new(),
            thread: thread::ThreadPart::new(),
            #[cfg(feature = "fiber")]
            fiber: fiber::FiberPart::new(),
        }
    }
    }
}

per_thread! {
    static CONTEXT: ThreadContext = ThreadContext::new();
}

/// Reads or changes this thread's words. Later layers use the functions of their part instead.
#[inline(always)]
pub(super) fn with<R>(f: impl FnOnce(&ThreadContext) -> R) -> R {
    CONTEXT.with(|context| f(context))
}
