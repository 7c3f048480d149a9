//! Gives code that runs inside a poll access to the core of its thread.
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
    prim::{lock, thread_id, thread_number as number},
    work::{current, task::arena::Arena},
};

#[cfg(feature = "time")]
pub(crate) use current::Inside;
pub(crate) use current::inside;

/// Returns a small number of this thread, to spread threads over locks.
pub(crate) fn thread_number() -> usize {
    number()
}

/// Returns true if this thread holds a core of `pool`. Must be called [`inside`], or in the
/// runtime's own code.
#[inline]
pub(crate) fn holds_core_of(pool: &Pool) -> bool {
    current::with(|current| std::ptr::eq(current.pool.get(), std::ptr::from_ref(pool).cast()))
}

/// Returns the core that this thread holds, if it is one of `pool`. Must be called [`inside`], or
/// in the runtime's own code; the core is this thread's for as long as that lasts.
#[inline(always)]
pub(crate) fn core_of(pool: &Pool) -> Option<NonNull<Core>> {
    let core = holds_core_of(pool).then(|| current::with(|current| current.core.get()))?;
    NonNull::new(core.cast())
}

/// Returns the wheel of the core that this thread holds, if it is one of these timers. Must be
/// called [`inside`], and timers must be armed in it inside, too, so that the next thread of the
/// core finds them in the wheel.
#[cfg(feature = "time")]
#[inline]
pub(crate) fn current_wheel(timers: &Timers) -> Option<usize> {
    current::with(|current| {
        // SAFETY: `pool` is null, or the pool of the core that this thread holds, which keeps it
        // alive.
        let pool = unsafe { current.pool.get().cast::<Pool>().as_ref() }?;
        let is_of_these = pool.drivers.timers().is_some_and(|own| std::ptr::eq(&**own, timers));
        is_of_these.then(|| current.index.get())
    })
}

/// Returns the index of the core that this thread holds.
pub(crate) fn core_index() -> Option<usize> {
    let _inside = inside();
    current::with(|current| (!current.core.get().is_null()).then(|| current.index.get()))
}

/// Returns a small number for a thread that spawns onto `pool`, to spread such threads: the index
/// of its core, or the thread's own number.
pub(crate) fn spawner_number(pool: &Pool) -> usize {
    let _inside = inside();
    if holds_core_of(pool) { current::with(|current| current.index.get()) } else { number() }
}

/// Returns the `Arena` of the core that this thread holds. Must be called [`inside`].
///
/// # Panics
/// If this thread holds no core, which callers must have checked.
#[inline]
pub(crate) fn arena() -> NonNull<Arena> {
    current::with(|current| current.arena.get()).expect("this thread holds no core")
}

/// Marks a thread that is starting the threads of a pool. The user's function that names them may
/// start another pool meanwhile, so the marks form a chain.
pub(crate) struct StartingPool(Box<StartingLink>);

struct StartingLink {
    pool: *const Pool,
    outer: *const StartingLink,
}

impl StartingPool {
    /// Marks this thread; returns `None` if it is starting the threads of `pool` already.
    pub(crate) fn new(pool: &Pool) -> Option<Self> {
        if is_starting(pool) {
            return None;
        }
        current::with(|current| {
            let link = Box::new(StartingLink { pool, outer: current.starting.get().cast() });
            current.starting.set((&raw const *link).cast());
            Some(Self(link))
        })
    }
}

/// Returns true if this thread is starting the threads of `pool`.
pub(crate) fn is_starting(pool: &Pool) -> bool {
    let mut link = current::with(|current| current.starting.get()).cast::<StartingLink>();
    // SAFETY: links are boxed, and leave the chain before they are dropped.
    while let Some(starting) = unsafe { link.as_ref() } {
        if std::ptr::eq(starting.pool, pool) {
            return true;
        }
        link = starting.outer;
    }
    false
}

impl Drop for StartingPool {
    fn drop(&mut self) {
        current::with(|current| current.starting.set(self.0.outer.cast()));
    }
}

/// Calls `f`, which must run no user code, with the core of this thread. Must be called [`inside`],
/// or in the runtime's own code.
///
/// # Panics
/// If this thread holds no core, which callers must have checked.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    let core = current::with(|current| current.core.get()).cast::<Core>();
    assert!(!core.is_null(), "this thread holds no core");
    // SAFETY: the core is this thread's (it is not taken while we are inside), no other thread has
    // a reference, and `f` does not call this function again, because it runs no code but the
    // engine's.
    f(unsafe { &mut *core })
}

/// A guard for the core that this thread holds, until it is released.
pub(crate) struct CoreGuard {
    _counting: current::CountingYields,
}

impl CoreGuard {
    /// Makes `core` the core of this thread.
    pub(crate) fn new(core: Box<Core>) -> Self {
        *lock(&core.remote().thread) = Some(thread_id());
        // SAFETY: obligation 1 of `CountingYields::new`: the counters live with the pool, which the
        // core keeps until `release`; a thread that may lose its core before keeps the pool itself.
        let _counting =
            unsafe { current::CountingYields::new(core.counters().forced_yields.word()) };
        current::with(|current| {
            assert!(current.core.get().is_null(), "this thread holds a core already");
            current.arena.set(Some(core.arena));
            current.pool.set(Arc::as_ptr(&core.pool).cast());
            current.index.set(core.index);
            let core = NonNull::from(Box::leak(core)).cast();
            current.core.set(core.as_ptr());
            current::began_with_core(core);
            Self { _counting }
        })
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
    current::with(|current| {
        let core = current.core.replace(std::ptr::null_mut()).cast::<Core>();
        if core.is_null() {
            return None;
        }
        current.arena.set(None);
        current.pool.set(std::ptr::null());
        current::ended_with_core();
        // SAFETY: `CoreGuard::new` got the pointer from a box, and it is taken once, because null
        // is left.
        let mut core = unsafe { Box::from_raw(core) };
        core.flush_batch();
        Some(core)
    })
}
