//! How code that runs inside a poll reaches the core of its thread.
//!
//! The core is lent for a closure at a time. No user code runs inside, and no
//! reference leaves. While a thread is in a user's code its core may be taken from it
//! (`work/tenure`): so what is called from there and wants the core begins with
//! [`inside`], and then finds what the thread still has.

use std::{ptr::NonNull, sync::Arc};

use super::{Pool, core::Core};
#[cfg(feature = "time")]
use crate::engine::wheel::Timers;
use crate::engine::{
    prim::{lock, thread_id, thread_number as number},
    work::{current, task::home::Home},
};

#[cfg(feature = "time")]
pub(crate) use current::Inside;
pub(crate) use current::inside;

/// A small number of this thread, to spread threads over locks.
pub(crate) fn thread_number() -> usize {
    number()
}

/// Whether this thread holds a core of `pool`. Asked [`inside`], or in the runtime's own code.
#[inline]
pub(crate) fn holds_core_of(pool: &Pool) -> bool {
    current::with(|current| std::ptr::eq(current.pool.get(), std::ptr::from_ref(pool).cast()))
}

/// The core that this thread holds, if it is one of `pool`. Asked [`inside`], or in the runtime's
/// own code; it is this thread's for as long as that lasts.
#[inline(always)]
pub(crate) fn core_of(pool: &Pool) -> Option<NonNull<Core>> {
    let core = holds_core_of(pool).then(|| current::with(|current| current.core.get()))?;
    NonNull::new(core.cast())
}

/// The wheel of the core that this thread holds, if it is one of these timers. Asked
/// [`inside`], and what is armed there is armed inside, too: whoever takes the core over finds
/// it in the wheel.
#[cfg(feature = "time")]
#[inline]
pub(crate) fn wheel_here(timers: &Timers) -> Option<usize> {
    current::with(|current| {
        // SAFETY: the pool of the core that this thread holds, which keeps it; null without.
        let pool = unsafe { current.pool.get().cast::<Pool>().as_ref() }?;
        let is_of_these = pool.duties.timers().is_some_and(|own| std::ptr::eq(&**own, timers));
        is_of_these.then(|| current.index.get())
    })
}

/// The index of the core that this thread holds.
pub(crate) fn core_index() -> Option<usize> {
    let _inside = inside();
    current::with(|current| (!current.core.get().is_null()).then(|| current.index.get()))
}

/// A small number for a thread that spawns onto `pool`, to spread those who do: its
/// core's, or its own.
pub(crate) fn spawner_number(pool: &Pool) -> usize {
    let _inside = inside();
    if holds_core_of(pool) { current::with(|current| current.index.get()) } else { number() }
}

/// The home of the core that this thread holds. Asked [`inside`].
///
/// # Panics
/// If this thread holds none: callers have looked.
#[inline]
pub(crate) fn home() -> NonNull<Home> {
    current::with(|current| current.home.get()).expect("this thread holds no core")
}

/// Held by a thread that starts the threads of a pool. The user's function that
/// names them may start another pool meanwhile, so they form a chain.
pub(crate) struct Starting(Box<Link>);

struct Link {
    pool: *const Pool,
    outer: *const Link,
}

impl Starting {
    /// `None` if this thread is at it already.
    pub(crate) fn new(pool: &Pool) -> Option<Self> {
        if is_starting(pool) {
            return None;
        }
        current::with(|current| {
            let link = Box::new(Link { pool, outer: current.starting.get().cast() });
            current.starting.set((&raw const *link).cast());
            Some(Self(link))
        })
    }
}

/// Whether this thread is starting the threads of `pool`.
pub(crate) fn is_starting(pool: &Pool) -> bool {
    let mut link = current::with(|current| current.starting.get()).cast::<Link>();
    // SAFETY: links are boxed, and leave the chain before they are dropped.
    while let Some(starting) = unsafe { link.as_ref() } {
        if std::ptr::eq(starting.pool, pool) {
            return true;
        }
        link = starting.outer;
    }
    false
}

impl Drop for Starting {
    fn drop(&mut self) {
        current::with(|current| current.starting.set(self.0.outer.cast()));
    }
}

/// Lends the core of this thread to `f`, which runs no code of users. Called [`inside`], or in
/// the runtime's own code.
///
/// # Panics
/// If this thread holds none: callers have looked.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    let core = current::with(|current| current.core.get()).cast::<Core>();
    assert!(!core.is_null(), "this thread holds no core");
    // SAFETY: the core is this thread's (nobody takes it while we are inside), nobody else
    // has a reference, and `f` does not come back here, since it runs no code but the
    // engine's.
    f(unsafe { &mut *core })
}

/// A core in the hands of this thread, until it is given up again.
pub(crate) struct Held {
    _counting: current::CountingYields,
}

impl Held {
    /// Makes `core` the core of this thread.
    pub(crate) fn new(core: Box<Core>) -> Self {
        *lock(&core.remote().thread) = Some(thread_id());
        // SAFETY: 1. the counters live with the pool, which the core keeps until
        // `release`.
        let _counting =
            unsafe { current::CountingYields::new(core.counters().forced_yields.word()) };
        current::with(|current| {
            assert!(current.core.get().is_null(), "this thread holds a core already");
            current.home.set(Some(core.home));
            current.pool.set(Arc::as_ptr(&core.pool).cast());
            current.index.set(core.index);
            #[cfg(feature = "net")]
            current
                .driver
                .set(core.pool.duties.driver().map_or(std::ptr::null(), Arc::as_ptr).cast());
            let core = NonNull::from(Box::leak(core)).cast();
            current.core.set(core.as_ptr());
            current::began_with_core(core);
            Self { _counting }
        })
    }

    /// Takes the core out of this thread's hands.
    ///
    /// # Panics
    /// If it was handed off: whoever may have done so looks first.
    pub(crate) fn release(self) -> Box<Core> {
        take_core().expect("this thread holds no core")
    }
}

/// Takes the core out of this thread's hands, if it has one. The [`Held`] that it was
/// in is then empty.
pub(crate) fn take_core() -> Option<Box<Core>> {
    let _inside = inside();
    current::with(|current| {
        let core = current.core.replace(std::ptr::null_mut()).cast::<Core>();
        if core.is_null() {
            return None;
        }
        current.home.set(None);
        current.pool.set(std::ptr::null());
        current.driver.set(std::ptr::null());
        current::ended_with_core();
        // SAFETY: `Held::new` made it of a box, and whoever takes it leaves null.
        let mut core = unsafe { Box::from_raw(core) };
        core.give_batch();
        Some(core)
    })
}
