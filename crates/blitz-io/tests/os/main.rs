//! Tests signals and child processes through the public API.
//!
//! Both belong to the whole process, so each test runs in a process of its own.
#![cfg(all(unix, feature = "rt-multi-thread", feature = "sync", not(blitz_loom)))]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "signal")]
mod signals;
#[cfg(all(target_os = "linux", feature = "process"))]
mod processes;

/// Returns true if a runtime with this backend can be built: some systems refuse io_uring.
#[cfg(feature = "signal")]
fn has_backend(name: &str) -> bool {
    let backend = name.parse().expect("the name of a backend");
    let mut builder = blitz_io::runtime::Builder::new_current_thread();
    builder.io_backend(backend).enable_io().build().is_ok()
}
