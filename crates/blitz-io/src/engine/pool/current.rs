//! How code that runs inside a poll reaches the core of its thread.
//!
//! The core is lent for a closure at a time. No user code runs inside, and no
//! reference leaves: when a core can be taken from a thread that is stuck in a
//! poll, this is the one place that has to ask whether the thread still has it.

use super::{Pool, core::Core};
use crate::engine::{prim::thread_number as number, work::current};

/// A small number of this thread, to spread threads over locks.
pub(crate) fn thread_number() -> usize {
    number()
}

/// Whether this thread holds a core of `pool`.
#[inline]
pub(crate) fn holds_core_of(pool: &Pool) -> bool {
    let core = current::with(|current| current.core.get()).cast::<Core>();
    // SAFETY: the pointer is null or that of the core this thread holds; only its
    // `pool` is read.
    !core.is_null() && std::ptr::eq(unsafe { &*(*core).pool }, pool)
}

/// The index of the core that this thread holds.
pub(crate) fn core_index() -> Option<usize> {
    let core = current::with(|current| current.core.get()).cast::<Core>();
    // SAFETY: as in `holds_core_of`.
    (!core.is_null()).then(|| unsafe { (*core).index })
}

/// Lends the core of this thread to `f`, which runs no code of users.
///
/// # Panics
/// If this thread holds none: callers have looked.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&mut Core) -> R) -> R {
    let core = current::with(|current| current.core.get()).cast::<Core>();
    assert!(!core.is_null(), "this thread holds no core");
    // SAFETY: the core is this thread's, nobody else has a reference, and `f`
    // does not come back here, since it runs no code but the engine's.
    f(unsafe { &mut *core })
}

/// A core in the hands of this thread, until it is given up again.
pub(crate) struct Held {
    before: *mut (),
}

impl Held {
    /// Makes `core` the core of this thread.
    pub(crate) fn new(core: Box<Core>) -> Self {
        current::with(|current| {
            assert!(current.home.get().is_none(), "this thread holds a core already");
            current.home.set(Some(core.home));
            Self { before: current.core.replace(Box::into_raw(core).cast()) }
        })
    }

    /// Takes the core out of this thread's hands.
    pub(crate) fn release(self) -> Box<Core> {
        current::with(|current| {
            current.home.set(None);
            let core = current.core.replace(self.before).cast::<Core>();
            // SAFETY: `new` made it of a box, and nobody else took it.
            unsafe { Box::from_raw(core) }
        })
    }
}
