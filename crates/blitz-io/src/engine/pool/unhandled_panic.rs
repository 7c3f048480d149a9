//! Ends a runtime when one of its tasks panics, if it is configured to.
//!
//! # Protocol
//! ```text
//! The thread that polled the task      A thread in `block_on`
//! U1 sets `happened`                   B1 puts its parker among `callers` (lock)
//! U2 the pool stops (`stop`: S2), and  B2 reads `happened`; if set, panics
//!    threads that were its workers are
//!    released
//! U3 unparks all `callers` (lock)      B3 polls, parks, and back to B2
//! ```
//! One of the two locks comes first. If B1's, U3 finds the parker, and its token ends B3. If U3's,
//! U1 came before it, and B2 sees that.
//!
//! U1 comes before the task completes, so a `block_on` that was woken by the task's end sees it,
//! too: it panics, whichever thread was faster.
//!
//! # Checked by
//! `a_panic_reaches_every_block_on`; weakened as `unhandled_flag_first`.

use std::sync::Arc;

use super::Pool;
use crate::engine::prim::{
    AtomicBool, Mutex,
    Ordering::{Acquire, Release},
    lock,
    parker::Parker,
    weakened,
};

/// The state for panics of tasks that end the runtime.
pub(crate) struct Unhandled {
    /// True if a panic ends the runtime.
    ends: bool,
    happened: AtomicBool,
    callers: Mutex<Vec<Arc<Parker>>>,
}

impl Unhandled {
    pub(crate) fn new(ends: bool) -> Self {
        Self { ends, happened: AtomicBool::new(false), callers: Mutex::new(Vec::new()) }
    }

    /// Returns true if a task has panicked and that ends the runtime.
    #[inline]
    pub(crate) fn has_happened(&self) -> bool {
        // Acquire: pairs with the Release in `raise`.
        self.ends && self.happened.load(Acquire)
    }

    /// Panics if a task's panic ends the runtime (B2).
    ///
    /// # Panics
    /// If [`has_happened`](Self::has_happened) returns true.
    #[track_caller]
    #[inline]
    pub(crate) fn check(&self) {
        if self.has_happened() {
            fail();
        }
    }

    /// Registers the parker of a `block_on` (B1), until the returned value is dropped.
    pub(crate) fn register(&self, parker: &Arc<Parker>) -> Option<BlockOnCaller<'_>> {
        if !self.ends {
            return None;
        }
        lock(&self.callers).push(parker.clone());
        Some(BlockOnCaller { unhandled: self, parker: parker.clone() })
    }

    /// Sets the flag and unparks all callers (U1 and U3), with `stop` in between (U2).
    fn raise(&self, stop: impl FnOnce()) {
        if !weakened!("unhandled_flag_first") {
            // Release: what the task did is seen by the threads that panic because of it. Pairs
            // with the Acquire in `has_happened`.
            self.happened.store(true, Release);
        }
        stop();
        for parker in lock(&self.callers).iter() {
            parker.unpark();
        }
        // Release: publishes what the task did. Pairs with the Acquire in `has_happened`.
        self.happened.store(true, Release);
    }
}

/// A `block_on` that is unparked when the runtime ends for a panic.
pub(crate) struct BlockOnCaller<'a> {
    unhandled: &'a Unhandled,
    parker: Arc<Parker>,
}

impl Drop for BlockOnCaller<'_> {
    fn drop(&mut self) {
        lock(&self.unhandled.callers).retain(|parker| !Arc::ptr_eq(parker, &self.parker));
    }
}

/// Panics in a `block_on`, because the panic of a task has ended its runtime.
#[cold]
#[track_caller]
fn fail() -> ! {
    panic!(
        "a spawned task panicked and the runtime is configured to shut down on unhandled panic: \
         the panic itself was reported before; build another runtime to go on"
    );
}

impl Pool {
    /// Stops the pool because a task of it panicked, if it is configured to. The task's output is
    /// not stored yet.
    #[cold]
    pub(crate) fn on_task_panic(&self) {
        if self.unhandled.ends {
            self.unhandled.raise(|| {
                self.set_stopping();
                if let Some(spare_threads) = self.spare_threads() {
                    spare_threads.release_workers();
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc as Plain;

    use super::Unhandled;
    use crate::engine::prim::{Arc, model, parker::Parker, thread};

    /// Two threads are in `block_on` when a task panics, at any step of theirs.
    #[test]
    fn a_panic_reaches_every_block_on() {
        model(|| {
            let unhandled = Arc::new(Unhandled::new(true));
            let callers = [(); 2].map(|()| {
                let unhandled = unhandled.clone();
                thread::spawn(move || {
                    let parker = Plain::new(Parker::new());
                    let _caller = unhandled.register(&parker);
                    while !unhandled.has_happened() {
                        parker.park();
                    }
                })
            });
            unhandled.raise(|| ());
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }
}
