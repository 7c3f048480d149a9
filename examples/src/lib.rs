//! Small programs on blitz-io, one idea each.
//!
//! Run one with `cargo run -p blitz-io-examples --bin hello_tasks`. Each checks
//! what it shows, so a run that ends well is also a test.
//!
//! Tasks:
//!
//! - `hello_tasks`: spawn some and join them;
//! - `abort_and_shield`: stop one, but not in the middle of a write;
//! - `fan_out_fan_in`: cut a piece of work, spread it, put the answers together;
//! - `panic_abort`: how a panic in a task ends, with unwinding and without;
//! - `structure`: a scope, a set, blocking work, and who is alive;
//! - `pipeline`: tasks that talk through channels with a bound.
//!
//! Fork-join, for what computes:
//!
//! - `quicksort [COUNT]`: both sides of a partition at once, by `parallel::join`;
//! - `mandelbrot [WIDTHxHEIGHT] [FILE]`: a picture, its rows drawn in parallel by `parallel::scope`;
//! - `word_count [PATH]...`: the words of many files, by Rayon's parallel iterators on our pool.
//!
//! Servers; they serve for ever if they are given an address, and check themselves if not:
//!
//! - `echo`: TCP, one task for each connection;
//! - `chat`: lines from each to all, by a broadcast channel;
//! - `graceful`: a shutdown under load that loses no request, and names who does not end;
//! - `http`: HTTP/1.1, by hyper on this runtime;
//! - `proxy`: bytes both ways, with time-outs on connecting and on silence;
//! - `render_server`: HTTP whose answers are computed, by `parallel::run`.

#![forbid(unsafe_code)]

pub mod picture;
