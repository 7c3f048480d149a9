//! The allocator of this program: the system's, and two counters.
//!
//! What lives is counted, not what was ever allocated: a scenario that gives back all
//! it took leaves both numbers as they were.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicIsize, Ordering::Relaxed},
};

/// See the module.
struct Counting;

// Relaxed throughout: who reads has seen every other thread end, so nobody counts
// meanwhile. Signed, so that a block too many given back is seen as well.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What lives at one moment, or the difference of two moments.
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

    /// What has been added since `before`.
    pub(crate) fn since(self, before: Live) -> Live {
        Live { blocks: self.blocks - before.blocks, bytes: self.bytes - before.bytes }
    }
}

fn took(blocks: isize, bytes: usize) {
    BLOCKS.fetch_add(blocks, Relaxed);
    BYTES.fetch_add(blocks * bytes as isize, Relaxed);
}

// SAFETY: 1. Every call goes to the system's allocator with the arguments it came with,
// and what that answers is answered, so the contract is the system's. 2. Counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: 1 above; the caller keeps the contract of `alloc`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            took(1, layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: 1 above; the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            took(1, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        took(-1, layout.size());
        // SAFETY: 1 above; the block came from `System`, as all of ours do.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: 1 above; the block came from `System`, as all of ours do.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            took(-1, layout.size());
            took(1, size);
        }
        moved
    }
}
