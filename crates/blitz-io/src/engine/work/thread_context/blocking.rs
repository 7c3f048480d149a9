//! The part of `blocking`: the permission to block on this thread, and the thread's slot in the
//! blocking pool.

use std::cell::Cell;

#[cfg(feature = "fiber")]
use super::fiber::FiberKey;
use super::{erased::Erased, with};

/// The key of a blocking pool.
pub(crate) enum BlockingPoolKey {}

/// The words of `blocking` in the thread's context.
pub(super) struct BlockingPart {
    /// The kind of blocking that is allowed on this thread. Belongs to a stack (`stack.rs`).
    policy: Cell<BlockingPolicy>,
    /// The blocking pool that this thread belongs to.
    membership: Cell<Membership>,
    /// True if this thread stays idle until its runtime ends instead of exiting: it was started as
    /// a worker, or it has started a child process. A child may have requested a signal for the end
    /// of the *thread* that started it (`PR_SET_PDEATHSIG`). A former worker ends earlier
    /// if a panic stops the worker pool, because all workers end then.
    stays: Cell<bool>,
}

/// The permission to block this thread: to start a `block_on`, or to enter `block_in_place`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockingPolicy {
    /// The thread may block as it is.
    Allowed,
    /// The thread may block only inside `block_in_place`, which hands its core off: it is a worker,
    /// or inside a `block_on` that runs no tasks.
    InPlaceOnly,
    /// The thread must not block, because everything else that it runs would wait.
    Forbidden,
}

/// The blocking pool that a thread belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Membership {
    /// The pool, or null.
    pub(crate) pool: Erased<BlockingPoolKey>,
    /// True if the thread has ended its work there.
    pub(crate) has_left: bool,
}

impl BlockingPart {
    pub(super) const fn new() -> Self {
        Self {
            policy: Cell::new(BlockingPolicy::Allowed),
            membership: Cell::new(Membership { pool: Erased::null(), has_left: false }),
            stays: Cell::new(false),
        }
    }
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl BlockingPart {
    pub(super) fn stack_words(&self) -> BlockingPolicy {
        self.policy.get()
    }

    pub(super) fn exchange(&self, policy: BlockingPolicy) -> BlockingPolicy {
        self.policy.replace(policy)
    }
}

/// Returns the kind of blocking that is allowed on this thread.
pub(crate) fn policy() -> BlockingPolicy {
    with(|context| context.blocking.policy.get())
}

/// Changes the kind of blocking that is allowed on this thread, and returns the former one.
pub(crate) fn replace_policy(policy: BlockingPolicy) -> BlockingPolicy {
    with(|context| context.blocking.policy.replace(policy))
}

/// Changes the kind of blocking that is allowed on this thread.
pub(crate) fn set_policy(policy: BlockingPolicy) {
    with(|context| context.blocking.policy.set(policy));
}

/// Returns the blocking pool that this thread belongs to.
pub(crate) fn membership() -> Membership {
    with(|context| context.blocking.membership.get())
}

/// Makes this thread one of `pool`, or of none if that is null.
pub(crate) fn set_pool(pool: Erased<BlockingPoolKey>) {
    with(|context| context.blocking.membership.set(Membership { pool, has_left: false }));
}

/// Records that this thread has ended its work in its pool.
pub(crate) fn set_left_pool() {
    with(|context| {
        let membership = &context.blocking.membership;
        membership.set(Membership { has_left: true, ..membership.get() });
    });
}

/// Returns true if this thread stays idle until its runtime ends.
pub(crate) fn stays() -> bool {
    with(|context| context.blocking.stays.get())
}

/// Makes this thread stay idle until its runtime ends, instead of exiting.
pub(crate) fn set_stays() {
    with(|context| context.blocking.stays.set(true));
}

/// Marks this thread as one that must not block, until this is dropped.
///
/// A fiber on it may not leave its stack either, because a thread that blocks runs the tasks of
/// others, or has them wait for it.
pub(crate) struct NoBlocking {
    before: BlockingPolicy,
    #[cfg(feature = "fiber")]
    fiber: Erased<FiberKey>,
}

impl NoBlocking {
    /// Marks the thread; returns `None` if it is marked already. `kind` says what
    /// `block_in_place` may do.
    pub(crate) fn enter(kind: BlockingPolicy) -> Option<Self> {
        with(|context| {
            if context.blocking.policy.get() != BlockingPolicy::Allowed {
                return None;
            }
            Some(Self {
                before: context.blocking.policy.replace(kind),
                #[cfg(feature = "fiber")]
                fiber: context.fiber.replace_fiber(Erased::null()),
            })
        })
    }

    /// Returns true if this thread may block now.
    pub(crate) fn is_allowed_to_block() -> bool {
        policy() == BlockingPolicy::Allowed
    }
}

impl Drop for NoBlocking {
    fn drop(&mut self) {
        with(|context| {
            context.blocking.policy.set(self.before);
            #[cfg(feature = "fiber")]
            context.fiber.replace_fiber(self.fiber);
        });
    }
}
