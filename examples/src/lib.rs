//! Small programs on blitz-io, one idea each.
//!
//! Run one with `cargo run -p blitz-io-examples --bin hello_tasks`. Each checks
//! what it shows, so a run that ends well is also a test.
//!
//! Tasks:
//!
//! - `hello_tasks`: spawn some and join them;
//! - `abort_and_shield`: abort one, but not in the middle of a write;
//! - `fan_out_fan_in`: split work, spread it, combine the results;
//! - `panic_abort`: how a panic in a task ends, with unwinding and without;
//! - `structure`: a scope, a set, blocking work, and a dump of live tasks;
//! - `pipeline`: tasks that communicate through bounded channels.
//!
//! Fork-join, for computations:
//!
//! - `quicksort [COUNT]`: both sides of a partition at once, by `parallel::join`;
//! - `mandelbrot [WIDTHxHEIGHT] [FILE]`: a picture whose rows are drawn in parallel by
//!   `parallel::scope`;
//! - `word_count [PATH]...`: the words of many files, by Rayon's parallel iterators on our pool.
//!
//! Servers, which serve forever if they are given an address, and check themselves if not:
//!
//! - `echo`: TCP, one task for each connection;
//! - `chat`: lines from each guest to all, by a broadcast channel;
//! - `graceful`: a shutdown under load that loses no request, and names connections that do not
//!   end;
//! - `http`: HTTP/1.1, by hyper on this runtime;
//! - `proxy`: bytes both ways, with time-outs on connecting and on silence;
//! - `render_server`: HTTP with responses that are computed by `parallel::run`.

#![forbid(unsafe_code)]

pub mod picture;
