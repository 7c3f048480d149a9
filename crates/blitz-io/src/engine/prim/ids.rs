//! Numbers that nobody else in the process has.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Takes `count` numbers in a row that nobody else will get; never zero.
pub(crate) fn take(count: u64) -> u64 {
    // Relaxed: the numbers only have to differ.
    NEXT.fetch_add(count, Relaxed)
}
