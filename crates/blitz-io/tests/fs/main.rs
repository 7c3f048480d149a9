//! `fs`, tested from outside.
//!
//! Nothing here knows how it works inside, but for one thing: what needs no thread starts
//! none, and that can be counted. A test says in its name what a reader of the documentation
//! may rely on, and fails if that does not hold. No test waits for time to pass; `watch` ends
//! one that hangs. `forced` runs the others again with each way to read and copy forced.
#![cfg(all(
    feature = "fs",
    feature = "io-util",
    feature = "macros",
    feature = "rt-multi-thread",
    not(blitz_loom)
))]

// What the tests are made with; part of it is used by other tests alone.
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

// Each part of the interface.
mod whole;
mod files;
mod opening;
mod offsets;
mod paths;
mod directories;
mod copies;
mod errors;
mod markers;

// Without a thread, or not.
#[cfg(target_os = "linux")]
mod at_once;
#[cfg(target_os = "linux")]
mod special;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod refused;
#[cfg(target_os = "linux")]
mod forced;

// What goes wrong.
mod hostile;
#[cfg(target_os = "linux")]
mod faults;
