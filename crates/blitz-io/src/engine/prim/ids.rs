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

/// Takes `count` numbers in a row that nobody else will get; never zero.
pub(crate) fn take(count: u64) -> u64 {
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(count, Relaxed)
}
