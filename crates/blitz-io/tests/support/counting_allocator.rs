//! Replaces the allocator of a test program by the system's with counters: what is live in the
//! process, and what the calling thread has allocated and freed.
//!
//! Each program that counts includes this file itself, because a program has one allocator.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicIsize, Ordering::Relaxed},
};

/// The system's allocator, with counters of live blocks and bytes.
struct Counting;

// Relaxed throughout: a thread that reads has seen every other thread end, so no thread counts
// meanwhile. Signed, so that a block that is freed twice is detected as well.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// The allocations of this thread, and what was freed on it.
    static OF_THREAD: Cell<OfThread> = const { Cell::new(OfThread::NONE) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of one thread since it started, or between two moments. A block that grows or
/// shrinks counts as one that is allocated and one that is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfThread {
    pub(crate) allocations: usize,
    pub(crate) bytes: usize,
    pub(crate) freed_bytes: usize,
}

impl OfThread {
    pub(crate) const NONE: Self = Self { allocations: 0, bytes: 0, freed_bytes: 0 };

    /// Returns the allocations of the calling thread until now.
    pub(crate) fn now() -> Self {
        OF_THREAD.get()
    }

    /// Returns what has been added since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            bytes: self.bytes - before.bytes,
            freed_bytes: self.freed_bytes - before.freed_bytes,
        }
    }

    /// Returns the bytes that this thread has allocated and not freed.
    pub(crate) fn kept_bytes(self) -> usize {
        self.bytes - self.freed_bytes
    }
}

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

fn allocated(bytes: usize) {
    BLOCKS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as isize, Relaxed);
    let mine = OF_THREAD.get();
    let (allocations, bytes) = (mine.allocations + 1, mine.bytes + bytes);
    OF_THREAD.set(OfThread { allocations, bytes, ..mine });
}

fn freed(bytes: usize) {
    BLOCKS.fetch_sub(1, Relaxed);
    BYTES.fetch_sub(bytes as isize, Relaxed);
    let mine = OF_THREAD.get();
    OF_THREAD.set(OfThread { freed_bytes: mine.freed_bytes + bytes, ..mine });
}

// SAFETY: 1. Every call goes to the system's allocator with unchanged arguments, and its result is
// returned, so the contract is the system's. 2. Counting neither allocates nor unwinds: the
// thread-local is constant and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the caller keeps the contract of
        // `alloc`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            allocated(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the caller keeps the contract of
        // `alloc_zeroed`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            allocated(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the arguments are passed on unchanged, and the block came from `System`, as all
        // blocks of this allocator do.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the arguments are passed on unchanged, and the block came from `System`, as all
        // blocks of this allocator do.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            freed(layout.size());
            allocated(size);
        }
        moved
    }
}
