//! The allocator of this program: the system's, with two counters.
//!
//! It counts the blocks and bytes that are live, not all that were ever allocated: a scenario that
//! frees everything it allocated leaves both numbers unchanged.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicIsize, Ordering::Relaxed},
};

/// The system's allocator, with counters of live blocks and bytes.
struct Counting;

// Relaxed throughout: a thread that reads has seen every other thread end, so no thread counts
// meanwhile. Signed, so that a block that is freed twice is detected as well.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The live blocks and bytes at one moment, or the difference of two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) blocks: isize,
    pub(crate) bytes: isize,
}

impl Live {
    pub(crate) const NOTHING: Live = Live { blocks: 0, bytes: 0 };

    pub(crate) fn now() -> Self {
        Self { blocks: BLOCKS.load(Relaxed), bytes: BYTES.load(Relaxed) }
    }

    /// Returns what has been added since `before`.
    pub(crate) fn since(self, before: Live) -> Live {
        Live { blocks: self.blocks - before.blocks, bytes: self.bytes - before.bytes }
    }
}

fn took(blocks: isize, bytes: usize) {
    BLOCKS.fetch_add(blocks, Relaxed);
    BYTES.fetch_add(blocks * bytes as isize, Relaxed);
}

// SAFETY: 1. Every call goes to the system's allocator with unchanged arguments, and its result is
// returned, so the contract is the system's. 2. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the caller keeps the contract of
        // `alloc`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            took(1, layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the caller keeps the contract of
        // `alloc_zeroed`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            took(1, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        took(-1, layout.size());
        // SAFETY: the arguments are passed on unchanged, and the block came from `System`, as all
        // blocks of this allocator do.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the block came from `System`, as all
        // blocks of this allocator do.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            took(-1, layout.size());
            took(1, size);
        }
        moved
    }
}
