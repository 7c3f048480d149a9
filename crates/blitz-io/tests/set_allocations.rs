//! A member of a set costs no allocation besides its cell, and cells are recycled.
//!
//! A program of its own, because it counts the calls of the global allocator.
#![cfg(all(feature = "rt", not(blitz_loom)))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use blitz_io::{runtime::Builder, task::JoinSet};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator, and counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    /// # Safety
    /// The contract is that of the trait method.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    /// The contract is that of the trait method.
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and the block came from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_thousand_members_in_recycled_cells_allocate_for_the_set_alone() {
    let rt = Builder::new_current_thread().build().expect("a runtime");
    rt.block_on(rt.spawn(async {
        for round in 0..3 {
            let before = COUNT.with(Cell::get);
            let mut set = JoinSet::new();
            for n in 0..1000u64 {
                set.spawn(async move { n });
            }
            let mut sum = 0;
            while let Some(output) = set.join_next().await {
                sum += output.unwrap();
            }
            drop(set);
            let allocations = COUNT.with(Cell::get) - before;
            assert_eq!(sum, 499_500);
            match round {
                0 => assert!(allocations < 1100, "{allocations} for a thousand new members"),
                _ => assert!(allocations <= 1, "{allocations} for recycled ones"),
            }
        }
    }))
    .expect("the counts are right");
}
