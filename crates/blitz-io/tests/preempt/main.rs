//! Tests tasks that do not let others run, through the public API.
//!
//! A program of its own, because hogs take processors from other tests in the same process.
#![cfg(all(feature = "rt-multi-thread", feature = "time", feature = "sync", not(blitz_loom)))]

#[path = "../support/mod.rs"]
mod support;

mod hand_off;
mod waits_in_polls;
#[cfg(all(feature = "net", feature = "fs", feature = "stream"))]
mod yielding;
#[cfg(all(unix, feature = "net"))]
mod io;
#[cfg(target_os = "linux")]
mod attribution;
#[cfg(target_os = "linux")]
mod own_process;
#[cfg(target_os = "linux")]
mod reports;
#[cfg(target_os = "linux")]
mod throttled;
#[cfg(target_os = "linux")]
mod name_lookup;
#[cfg(target_os = "linux")]
mod blocked_reports;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod stacks;
