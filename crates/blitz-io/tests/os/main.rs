//! Signals and children, tested from outside.
//!
//! Both are the whole process's, so each test runs in a process of its own.
#![cfg(all(unix, feature = "rt-multi-thread", feature = "sync", not(blitz_loom)))]

#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/watch.rs"]
mod watch;
#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/child.rs"]
mod child;

#[cfg(feature = "signal")]
mod signals;
#[cfg(all(target_os = "linux", feature = "process"))]
mod processes;
