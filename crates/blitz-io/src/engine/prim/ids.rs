//! Numbers that are unique in the process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A counter outside the modelled state, which loom does not explore.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

// Relaxed throughout: a model runs all its threads on one system thread, and plain runs join
// theirs.
#[cfg(test)]
impl Tally {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counts how the executions of a model ended. If one of the two ends never comes, the model
/// checks less than it claims.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct ModelEnds([Tally; 2]);

#[cfg(test)]
impl ModelEnds {
    /// Counts an execution that ended in the way `which`.
    pub(crate) fn count(&self, which: bool) {
        self.0[usize::from(which)].add();
    }

    /// Asserts, after the model, that both ends came. Does nothing in a plain run, which may have
    /// too few executions, nor in a weakened run, in which another failure is expected.
    pub(crate) fn assert_both_came(&self) {
        if cfg!(blitz_loom) && std::env::var_os("BLITZ_WEAKEN").is_none() {
            assert!(self.0.iter().all(|tally| tally.get() > 0), "one end never came: {self:?}");
        }
    }
}

/// Reserves `count` consecutive numbers that are unique in the process, and returns the first.
/// Never returns zero.
pub(crate) fn take(count: u64) -> u64 {
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(count, Relaxed)
}
