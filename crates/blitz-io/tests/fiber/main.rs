//! Tests of fibers through the public API: `cargo test -p blitz-io --features fiber --test fiber`.

#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]

#[allow(dead_code, reason = "shared with the search for leaks, which uses all of it")]
#[path = "../leaks/count.rs"]
mod count;

#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/watch.rs"]
mod watch;
#[allow(dead_code, reason = "they serve other tests too")]
#[path = "../it/child.rs"]
mod child;
mod fiber;
mod basics;
mod places;
mod cancelling;
mod nested;
mod ending;
mod many;
mod memory;
mod overflow;
mod migrating;
mod interrupting;
mod hazards;
mod watched;
