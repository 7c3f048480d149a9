//! Tests of fibers through the public API: `cargo test -p blitz-io --features fiber --test fiber`.

#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]

#[allow(dead_code, reason = "shared with the search for leaks, which uses all of it")]
#[path = "../support/count.rs"]
mod count;

#[path = "../support/mod.rs"]
mod support;
use support::{child, watch};

mod fiber;
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
