//! Counts heap allocations, where a row requests it.
//!
//! The allocator is the system's. While nothing is counted it costs every contender the same one
//! load for each call; times are measured then, counts afterwards.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

struct Counted;

#[global_allocator]
static HEAP: Counted = Counted;

static COUNTING: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Counts a block of `bytes`. Relaxed, all of them: the figures are read after the
/// threads of the workload were joined or waited for.
fn count(bytes: usize) {
    if COUNTING.load(Relaxed) {
        BYTES.fetch_add(bytes, Relaxed);
        BLOCKS.fetch_add(1, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the obligations, which are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the obligations, which are those of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the obligations; `ptr` came from the system's allocator with
        // `layout`.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the obligations; `ptr` came from the system's allocator with
        // `layout`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Taken {
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
}

/// Counts what the whole process allocates while `work` runs. What is freed meanwhile is not
/// subtracted.
pub(crate) fn taken_by<T>(work: impl FnOnce() -> T) -> (Taken, T) {
    let now = || Taken { bytes: BYTES.load(Relaxed), blocks: BLOCKS.load(Relaxed) };
    let before = now();
    COUNTING.store(true, Relaxed);
    let result = work();
    COUNTING.store(false, Relaxed);
    let after = now();
    let taken = Taken { bytes: after.bytes - before.bytes, blocks: after.blocks - before.blocks };
    (taken, result)
}

/// Held by tests that count, because counting is global to the process, and tests run in threads of
/// it.
#[cfg(test)]
pub(crate) static ONE_COUNTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted_while_counting_is_on() {
        let _one = ONE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (taken, kept) = taken_by(|| std::hint::black_box(vec![1_u8; 1 << 20]));
        // At least, because other tests run concurrently.
        assert!(taken.bytes >= kept.len() && taken.blocks >= 1, "{taken:?}");
        let bytes = BYTES.load(Relaxed);
        drop(std::hint::black_box(vec![1_u8; 1 << 20]));
        assert_eq!(BYTES.load(Relaxed), bytes);
    }
}
