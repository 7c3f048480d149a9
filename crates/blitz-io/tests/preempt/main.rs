//! Tasks that do not let others run, tested through the public API.
//!
//! A program of its own, because hogs take processors from other tests in the same process.
#![cfg(all(feature = "rt-multi-thread", feature = "time", feature = "sync", not(blitz_loom)))]

#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/watch.rs"]
mod watch;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/child.rs"]
mod child;

#[path = "../it/sandbox.rs"]
mod sandbox;

mod preempting;
mod bridges;
#[cfg(all(feature = "net", feature = "fs", feature = "stream"))]
mod yielding;
#[cfg(all(unix, feature = "net"))]
mod io;
#[cfg(target_os = "linux")]
mod blame;
#[cfg(target_os = "linux")]
mod alone;
#[cfg(target_os = "linux")]
mod telling;
#[cfg(target_os = "linux")]
mod throttled;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod waiting;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod stacks;
