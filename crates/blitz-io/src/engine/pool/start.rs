//! Marks a thread that is starting the threads of a pool.

use super::Pool;
use crate::engine::work::thread_context::{
    erased::{Erased, ErasedKey},
    pool::{StartingKey, set_starting, starting},
};

/// Marks a thread that is starting the threads of a pool. The user's function that names them may
/// start another pool meanwhile, so the marks form a chain.
pub(crate) struct StartingPool(Box<StartingLink>);

/// A link in the chain of pools that a thread is starting threads for.
pub(crate) struct StartingLink {
    pool: *const Pool,
    outer: Erased<StartingKey>,
}

impl ErasedKey for StartingKey {
    type Target = StartingLink;
}

impl StartingPool {
    /// Marks this thread; returns `None` if it is starting the threads of `pool` already.
    pub(crate) fn new(pool: &Pool) -> Option<Self> {
        if is_starting(pool) {
            return None;
        }
        let link = Box::new(StartingLink { pool, outer: starting() });
        set_starting(Erased::new(&raw const *link));
        Some(Self(link))
    }
}

/// Returns true if this thread is starting the threads of `pool`.
pub(crate) fn is_starting(pool: &Pool) -> bool {
    let mut link = starting();
    // SAFETY: links are boxed, and leave the chain before they are dropped.
    while let Some(starting) = unsafe { link.get().as_ref() } {
        if std::ptr::eq(starting.pool, pool) {
            return true;
        }
        link = starting.outer;
    }
    false
}

impl Drop for StartingPool {
    fn drop(&mut self) {
        set_starting(self.0.outer);
    }
}
