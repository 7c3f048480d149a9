//! The traits of `io` and their methods, tested through the public API.
//!
//! These tests need no runtime: sources and sinks follow a script, and futures are polled by hand,
//! so that a test decides where every wait, error and short read occurs.
#![cfg(all(feature = "io-util", not(blitz_loom)))]

// Shared helpers.
mod script;

mod traits;
mod read_buf;
mod reading;
mod numbers;
mod to_end;
mod until;
mod pieces;
mod writing;
mod seeking;
mod auto_traits;

// Comparison with std.
mod like_std;
