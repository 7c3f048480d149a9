//! Numbers that nobody else in the process has.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A count that a model keeps outside of what it models.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

// Relaxed throughout: models run on one thread, and plain runs join theirs.
#[cfg(test)]
impl Tally {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How the executions of a model ended: if one of the two ends never comes, the model asks less
/// than it says.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Ends([Tally; 2]);

#[cfg(test)]
impl Ends {
    pub(crate) fn count(&self, which: bool) {
        self.0[usize::from(which)].add();
    }

    /// After the model. A plain run has as few executions as it likes; and of one that is weakened
    /// something else is expected.
    pub(crate) fn assert_both_came(&self) {
        if cfg!(blitz_loom) && std::env::var_os("BLITZ_WEAKEN").is_none() {
            assert!(self.0.iter().all(|tally| tally.get() > 0), "one end never came: {self:?}");
        }
    }
}

/// Takes `count` numbers in a row that nobody else will get; never zero.
pub(crate) fn take(count: u64) -> u64 {
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(count, Relaxed)
}
