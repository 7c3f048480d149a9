//! The traits of `io` and their methods, tested from outside.
//!
//! Nothing here needs a runtime: sources and sinks follow a script, and futures are polled
//! by hand, so that every wait, error and short read is where a test puts it.
#![cfg(all(feature = "io-util", not(blitz_loom)))]

// What the tests are made with.
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

// Compared with std.
mod like_std;
