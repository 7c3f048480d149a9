//! `fs`, tested through its public API.
//!
//! The tests know one thing about the implementation: an operation that needs no blocking thread
//! starts none, and threads can be counted. A test's name states what a reader of the documentation
//! may rely on, and the test fails if that does not hold. No test waits for time to pass; `watch`
//! ends one that hangs. `forced` runs the other tests again with each method to read and copy
//! forced.
#![cfg(all(
    feature = "fs",
    feature = "io-util",
    feature = "macros",
    feature = "rt-multi-thread",
    not(blitz_loom)
))]

// Shared helpers; some of their functions are used only by other test programs.
#[allow(dead_code)]
#[path = "../it/watch.rs"]
mod watch;
#[allow(dead_code)]
#[path = "../it/caught.rs"]
mod caught;
#[allow(dead_code)]
#[path = "../it/child.rs"]
mod child;
#[allow(dead_code)]
#[path = "../it/by_hand.rs"]
mod by_hand;
mod place;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod refusal;

// One module for each part of the API.
mod whole;
mod files;
mod opening;
mod offsets;
mod paths;
mod directories;
mod copies;
mod errors;
mod markers;

// Operations with and without a blocking thread.
#[cfg(target_os = "linux")]
mod at_once;
#[cfg(target_os = "linux")]
mod special;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod refused;
#[cfg(target_os = "linux")]
mod forced;

// Failures.
mod hostile;
#[cfg(target_os = "linux")]
mod faults;
