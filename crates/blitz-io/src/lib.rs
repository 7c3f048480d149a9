//! One runtime for everything concurrent in a program.
//!
//! This version has a work-stealing scheduler, everything about tasks, code that blocks,
//! locks and channels, timers, and sockets, with Tokio's names, signatures and semantics at Tokio's paths. Programs
//! port by renaming `tokio` to `blitz_io`, as far as it reaches.
//!
//! ```
//! #[blitz_io::main]
//! async fn main() {
//!     let squares: Vec<_> = (0..8).map(|n| blitz_io::spawn(async move { n * n })).collect();
//!     let mut sum = 0;
//!     for square in squares {
//!         sum += square.await.unwrap();
//!     }
//!     assert_eq!(sum, 140);
//! }
//! ```
//!
//! # Features
//!
//! Tokio's names; `full` is the default. `rt` is the current-thread runtime and
//! tasks, `rt-multi-thread` the workers, `sync` locks and channels (which need no
//! runtime), `time` timers, `net` sockets, `fs` files, `signal` signals, `process` children (which
//! brings `signal`, `io-util` and `io-std`), `io-util` the methods of the I/O traits (the
//! traits themselves are always there), `io-std` the standard streams, `stream` the methods
//! of streams and what becomes one (not a feature of Tokio), `macros` the
//! attributes and macros, `test-util` (not in `full`) a clock that can be paused, `tracing`
//! (not in `full`) spans for subscribers, who are also told of tasks that do not let others run,
//! `stall-stacks` (not in `full`) the names of the calls that such a task is in
//! ([`Preemption::capture_stacks`](runtime::Preemption::capture_stacks)), `fiber` (not in `full`)
//! tasks with stacks of their own, on Unix with x86-64 or aarch64 (elsewhere it switches on
//! nothing). The others are accepted and switch on what will stand behind them. Without any, the
//! crate starts no thread and has no runtime.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(
    feature = "rt",
    feature = "sync",
    feature = "time",
    feature = "net",
    feature = "io-util",
    feature = "parallel",
    feature = "stream"
))]
#[cfg_attr(
    not(feature = "rt"),
    allow(dead_code, unreachable_pub, unused_imports, reason = "what waits needs a part of it")
)]
mod engine;
#[doc(hidden)]
pub mod macros;

#[cfg(any(feature = "net", feature = "fs"))]
pub mod buf;
#[cfg(feature = "sync")]
pub mod channel;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod fiber;
#[cfg(feature = "fs")]
pub mod fs;
pub mod future;
pub mod io;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "parallel")]
pub mod parallel;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "rt")]
pub mod runtime;
#[cfg(all(feature = "rt", feature = "sync", feature = "time"))]
pub mod shutdown;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(feature = "sync")]
pub mod sync;
#[cfg(feature = "rt")]
pub mod task;
#[cfg(feature = "time")]
pub mod time;

#[cfg(feature = "rt")]
pub use self::task::spawn;

#[cfg(all(feature = "macros", feature = "rt-multi-thread"))]
#[doc(inline)]
pub use blitz_io_macros::{main, test};

#[cfg(all(feature = "macros", feature = "rt", not(feature = "rt-multi-thread")))]
#[doc(inline)]
pub use blitz_io_macros::{main_rt as main, test_rt as test};

#[cfg(all(feature = "macros", not(feature = "rt")))]
#[doc(inline)]
pub use blitz_io_macros::{no_rt as main, no_rt as test};

/// Runs a future to completion on a new multi-thread runtime: the one-line start.
///
/// # Panics
///
/// If the future panics, if the runtime cannot be started, or inside an
/// asynchronous context.
///
/// # Examples
///
/// ```
/// let answer = blitz_io::run(async { blitz_io::spawn(async { 42 }).await.unwrap() });
/// assert_eq!(answer, 42);
/// ```
#[cfg(feature = "rt-multi-thread")]
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    match runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("cannot start a runtime: {error}"),
    }
}

/// What the benchmarks of the queues need; see bench/queues.
#[cfg(all(feature = "rt", blitz_variants))]
#[doc(hidden)]
pub use engine::queue::variants::for_bench as variants_for_bench;

/// What the benchmarks of fork-join's stack need; see bench/queues.
#[cfg(all(feature = "parallel", blitz_variants))]
#[doc(hidden)]
pub use engine::fork::for_bench as fork_for_bench;

/// The code of the guide, compiled and run with the other examples.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../../../docs/guide.md")]
mod guide {}
