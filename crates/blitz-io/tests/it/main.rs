//! Tests the runtime through the public API, as its documentation describes it.
//!
//! No test depends on how the engine works. A test's name states what a reader of the documentation
//! may rely on, and the test fails if that does not hold. No test waits for time to pass in order
//! to succeed: threads and tasks meet at gates and channels, futures are polled by hand, or the
//! clock is paused; where real time matters, a test checks only whether something came too early.
//! `watchdog` ends a test that hangs.
//!
//! There is one folder for each part of the crate. Tests that need a process of their own are in
//! the other programs of `tests/`; the first lines of each say why.
#![cfg(all(feature = "rt-multi-thread", not(blitz_loom)))]
#![allow(clippy::waker_clone_wake, reason = "waking by value is what is tested")]
#![allow(clippy::async_yields_async, reason = "handles as outputs are what is tested")]
#![allow(clippy::await_holding_refcell_ref, reason = "polled by hand, on one thread")]

#[path = "../support/mod.rs"]
mod support;

#[cfg(all(feature = "fs", feature = "io-util", feature = "macros"))]
mod fs;
mod future;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod io;
mod macros;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod net;
#[cfg(feature = "parallel")]
mod parallel;
mod runtime;
mod shutdown;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "sync")]
mod sync;
mod task;
#[cfg(all(feature = "macros", feature = "net", feature = "test-util"))]
mod time;
