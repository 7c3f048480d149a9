//! The part of `pool`: the core that this thread holds, and the pools that it is starting.

use std::{cell::Cell, ptr::NonNull};

use super::{erased::Erased, with};
use crate::engine::work::task::arena::Arena;

/// The key of a core.
pub(crate) enum CoreKey {}

/// The key of a pool.
pub(crate) enum PoolKey {}

/// The key of a link in the chain of pools that are being started.
pub(crate) enum StartingKey {}

/// A core that a thread holds. The other words are copies, so that none has to be read from the
/// core, which may be borrowed.
#[derive(Clone, Copy)]
pub(crate) struct HeldCore {
    pub(crate) core: Erased<CoreKey>,
    /// The pool of the core.
    pub(crate) pool: Erased<PoolKey>,
    /// The number of the core.
    pub(crate) index: usize,
    /// The arena of the core.
    pub(crate) arena: Option<NonNull<Arena>>,
}

/// The words of `pool` in the thread's context.
pub(super) struct PoolPart {
    /// The core that this thread holds. While the thread's poll record says that it is in user
    /// code, this may be out of date, and must be read only while an [`Inside`](super::Inside) is
    /// held; or where no thread can take that core, as in pools without threads.
    held: Cell<HeldCore>,
    /// The pools that this thread is starting threads for. Belongs to a stack (`stack.rs`).
    starting: Cell<Erased<StartingKey>>,
}

impl HeldCore {
    const NONE: Self = Self { core: Erased::null(), pool: Erased::null(), index: 0, arena: None };
}

impl PoolPart {
    pub(super) const fn new() -> Self {
        Self { held: Cell::new(HeldCore::NONE), starting: Cell::new(Erased::null()) }
    }

    /// Returns true if this thread holds a core.
    #[inline(always)]
    pub(super) fn holds_core(&self) -> bool {
        !self.held.get().core.is_null()
    }

    /// Forgets the core, which was taken away: from now on this thread is one without a core.
    #[cold]
    pub(super) fn forget_core(&self) {
        self.held.set(HeldCore::NONE);
    }
}

#[cfg(feature = "fiber")]
#[allow(dead_code, reason = "there are systems without fibers")]
impl PoolPart {
    pub(super) fn stack_words(&self) -> Erased<StartingKey> {
        self.starting.get()
    }

    pub(super) fn exchange(&self, starting: Erased<StartingKey>) -> Erased<StartingKey> {
        self.starting.replace(starting)
    }
}

/// Returns the core that this thread holds; its pointers are null without one. Must be called
/// [inside](super::inside), or in the runtime's own code.
#[inline(always)]
pub(crate) fn held() -> HeldCore {
    with(|context| context.pool.held.get())
}

/// Makes `held` the core of this thread, which has none, and records that in its lease.
pub(crate) fn hold(held: HeldCore) {
    with(|context| {
        context.pool.held.set(held);
        context.lease.began_with_core(held.core.untyped().expect("a held core is not null"));
    });
}

/// Takes the core from this thread, which is inside, and records that in its lease. Returns null
/// if it holds none.
pub(crate) fn take() -> Erased<CoreKey> {
    with(|context| {
        let HeldCore { core, .. } = context.pool.held.get();
        if !core.is_null() {
            context.pool.held.set(HeldCore::NONE);
            context.lease.ended_with_core();
        }
        core
    })
}

/// Makes `arena` the one that this thread holds, without a core.
#[cfg(test)]
pub(crate) fn hold_arena(arena: Option<NonNull<Arena>>) {
    with(|context| context.pool.held.set(HeldCore { arena, ..HeldCore::NONE }));
}

/// Returns the pools that this thread is starting threads for, innermost first, or null.
pub(crate) fn starting() -> Erased<StartingKey> {
    with(|context| context.pool.starting.get())
}

/// Replaces the chain of pools that this thread is starting threads for.
pub(crate) fn set_starting(link: Erased<StartingKey>) {
    with(|context| context.pool.starting.set(link));
}
