//! Counts the allocations of operations that must not allocate, or not more than once.
//!
//! A program of its own, because it replaces the global allocator by one that counts.
#![cfg(all(feature = "rt-multi-thread", feature = "sync", not(blitz_loom)))]

#[allow(dead_code, reason = "only the counters of threads are used")]
#[path = "../support/counting_allocator.rs"]
mod counting_allocator;
#[path = "../support/mod.rs"]
mod support;

mod join_set;
mod sync;
