//! Small programs on blitz-io, one idea each.
//!
//! Run one with `cargo run -p blitz-io-examples --bin hello_tasks`. Each checks
//! what it shows, so a run that ends well is also a test:
//!
//! - `hello_tasks`: spawn some tasks and join them;
//! - `abort_and_shield`: stop a task, but not in the middle of a write;
//! - `fan_out_fan_in`: cut a piece of work, spread it, put the answers together;
//! - `panic_abort`: how a panic in a task ends, with unwinding and without.

#![forbid(unsafe_code)]
