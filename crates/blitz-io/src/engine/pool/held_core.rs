//! Gives code that runs inside a poll access to the core that its thread holds.
//!
//! The core is borrowed for one closure at a time. No user code runs inside, and no reference
//! leaves the closure. While a thread is in user code, its core may be taken from it
//! (`engine/lease`). So a function that is called from there and needs the core must begin with
//! [`inside`], after which it sees whether the thread still has one.

use std::{ptr::NonNull, sync::Arc};

use super::{Pool, core::Core};
#[cfg(feature = "time")]
use crate::engine::wheel::Timers;
use crate::engine::{
    prim::{lock, thread_id, thread_number},
    work::{
        task::arena::Arena,
        thread_context::{
            CountingYields,
            erased::{Erased, ErasedKey},
            inside,
            pool::{self, CoreKey, HeldCore, PoolKey},
        },
    },
};

impl ErasedKey for CoreKey {
    type Target = Core;
}

impl ErasedKey for PoolKey {
    type Target = Pool;
}

/// Returns true if this thread holds a core of `pool`. Must be called [`inside`], or in the
/// runtime's own code.
#[inline]
pub(crate) fn holds_core_of(pool: &Pool) -> bool {
    std::ptr::eq(pool::held().pool.get(), pool)
}

/// Returns the core that this thread holds, if it is one of `pool`. Must be called [`inside`], or
/// in the runtime's own code; the core is this thread's for as long as that lasts.
#[inline(always)]
pub(crate) fn core_of(pool: &Pool) -> Option<NonNull<Core>> {
    let core = holds_core_of(pool).then(|| pool::held().core)?;
    NonNull::new(core.get().cast_mut())
}

/// Returns the wheel of the core that this thread holds, if it is one of these timers. Must be
/// called [`inside`], and timers must be armed in it inside, too, so that the next thread of the
/// core finds them in the wheel.
#[cfg(feature = "time")]
#[inline]
pub(crate) fn current_wheel(timers: &Timers) -> Option<usize> {
    let HeldCore { pool, index, .. } = pool::held();
    // SAFETY: `pool` is null, or the pool of the core that this thread holds, which keeps it
    // alive.
    let pool = unsafe { pool.get().as_ref() }?;
    let is_of_these = pool.drivers.timers().is_some_and(|own| std::ptr::eq(&**own, timers));
    is_of_these.then_some(index)
}

/// Returns the index of the core that this thread holds.
pub(crate) fn core_index() -> Option<usize> {
    let _inside = inside();
    let HeldCore { core, index, .. } = pool::held();
    (!core.is_null()).then_some(index)
}

/// Returns a small number for a thread that spawns onto `pool`, to spread such threads: the index
/// of its core, or the thread's own number.
pub(crate) fn spawner_number(pool: &Pool) -> usize {
    let _inside = inside();
    if holds_core_of(pool) { pool::held().index } else { thread_number() }
}

/// Returns the `Arena` of the core that this thread holds. Must be called [`inside`].
///
/// # Panics
/// If this thread holds no core, which callers must have checked.
#[inline]
pub(crate) fn arena() -> NonNull<Arena> {
    pool::held().arena.expect("this thread holds no core")
}

/// Calls `f`, which must run no user code, with the core of this thread. Must be called
/// [`inside`], or in the runtime's own code.
///
/// # Panics
/// If this thread holds no core, which callers must have checked.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    let core = pool::held().core.get().cast_mut();
    assert!(!core.is_null(), "this thread holds no core");
    // SAFETY: the core is this thread's (it is not taken while we are inside), no other thread
    // has a reference, and `f` does not call this function again, because it runs no code but the
    // engine's.
    f(unsafe { &mut *core })
}

/// A guard for the core that this thread holds, until it is released.
pub(crate) struct CoreGuard {
    _counting: CountingYields,
}

impl CoreGuard {
    /// Makes `core` the core of this thread.
    pub(crate) fn new(core: Box<Core>) -> Self {
        *lock(&core.remote().thread) = Some(thread_id());
        // SAFETY: obligation 1 of `CountingYields::new`: the counters live with the pool, which
        // the core keeps until `release`; a thread that may lose its core before keeps the pool
        // itself.
        let _counting = unsafe { CountingYields::new(core.counters().forced_yields.word()) };
        assert!(pool::held().core.is_null(), "this thread holds a core already");
        let (arena, index) = (Some(core.arena), core.index);
        let pool = Erased::new(Arc::as_ptr(&core.pool));
        let core = Erased::new(Box::into_raw(core));
        pool::hold(HeldCore { core, pool, index, arena });
        Self { _counting }
    }

    /// Takes the core from this thread.
    ///
    /// # Panics
    /// If the core was handed off, which a caller that may have done so must check first.
    pub(crate) fn release(self) -> Box<Core> {
        take_core().expect("this thread holds no core")
    }
}

/// Takes the core from this thread, if it holds one. Its [`CoreGuard`] is then empty.
pub(crate) fn take_core() -> Option<Box<Core>> {
    let _inside = inside();
    let core = pool::take();
    if core.is_null() {
        return None;
    }
    // SAFETY: `CoreGuard::new` got the pointer from a box, and it is taken once, because null
    // is left.
    let mut core = unsafe { Box::from_raw(core.get().cast_mut()) };
    core.flush_batch();
    Some(core)
}
