//! Tests fibers through the public API: `cargo test -p blitz-io --features fiber --test fiber`.
//! A program of its own, because no other test is built with the feature, and because it replaces
//! the global allocator.

#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]

#[allow(dead_code, reason = "fibers count only what is live")]
#[path = "../support/counting_allocator.rs"]
mod counting_allocator;

#[path = "../support/mod.rs"]
mod support;

mod fiber;
mod plain_stack;
mod basics;
mod wait_points;
mod cancel;
mod nested_waits;
mod shutdown;
mod many;
mod memory;
mod overflow;
mod migration;
mod signal_switch;
mod hazards;
mod stalls;
