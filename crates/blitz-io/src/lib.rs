//! A runtime for everything concurrent in a program: tasks, I/O, timers and parallel computation.
//!
//! blitz-io has a work-stealing scheduler for asynchronous tasks, a pool of threads for blocking
//! code, timers, sockets, files, processes and signals, locks and channels, and a fork-join pool.
//! Names, signatures, semantics and paths are Tokio's, so most programs are ported by writing
//! `blitz_io` where they had `tokio`. Fork-join has Rayon's names.
//!
//! # A first program
//!
//! Put `blitz-io = "0.1"` under `[dependencies]`. This program spawns eight tasks, which run on
//! all workers of the runtime, and awaits their results:
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
//! [`#[main]`](main) starts a multi-thread runtime and runs the function on it;
//! [`#[test]`](test) does the same for a test, with a current-thread runtime. Without
//! attributes, [`run`] starts a runtime for one future, and [`runtime::Builder`] configures one.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`task`] | spawning tasks and waiting for them; blocking code; task-locals; yielding |
//! | [`runtime`] | runtimes: configuration, handles, metrics, task dumps, preemption |
//! | [`sync`] | mutexes, semaphores, barriers, cells, notifications, cancellation tokens |
//! | [`channel`] | channels: `mpsc`, `oneshot`, `broadcast`, `watch` and `mpmc` |
//! | [`time`] | sleeps, timeouts, intervals, and a clock that tests can pause |
//! | [`io`] | the asynchronous I/O traits, buffers, copying, in-memory pipes, standard streams |
//! | [`net`] | TCP, UDP and Unix sockets, pipes, name resolution |
//! | [`fs`] | files and directories |
//! | [`process`] | child processes, their pipes and their exit |
//! | [`signal`] | Ctrl-C, Unix signals and Windows console events |
//! | [`stream`] | combinators and wrappers for the `Stream` trait of `futures-core` |
//! | [`future`] | racing and joining several futures |
//! | [`parallel`] | fork-join on a pool of threads, with Rayon's names |
//! | [`shutdown`] | graceful shutdown with a deadline and a report |
//! | [`buf`] | buffers that are passed by value to an I/O operation and returned with its result |
//! | `fiber` | tasks with their own stacks (feature `fiber`) |
//!
//! The macros [`join!`], [`try_join!`], [`select!`], [`pin!`] and [`task_local!`] are at the root.
//!
//! # When to use what
//!
//! **Running code.** Use [`spawn`] for code that awaits, [`task::spawn_blocking`] for calls that
//! block their thread, and [`parallel::run()`] for computations that can use several processors. A
//! long loop inside a task should call [`task::checkpoint`] now and then. A
//! [`task::LocalSet`] or a [`runtime::LocalRuntime`] runs futures that are not [`Send`]. Code that
//! cannot be `async`, such as a callback of a C library or an `Iterator`, can wait in a fiber.
//!
//! **Many tasks.** A [`task::JoinSet`] returns results as tasks end, a [`task::TaskTracker`] only
//! waits until all of them have ended, and a [`task::scope()`] does not complete before every task
//! that was spawned in it. [`spawn`] never waits and has no limit; use [`task::spawn_bounded`] or a
//! [`sync::Semaphore`] where there must be one.
//!
//! **Sending values.** Use [`channel::mpsc`] for one consumer, [`channel::mpmc`] if several
//! consumers share the work, [`channel::broadcast`] if each of them needs every value,
//! [`channel::watch`] if only the latest value counts, and [`channel::oneshot`] for one value.
//!
//! **Sharing state.** A [`std::sync::Mutex`] is right as long as its guard is not held across an
//! `.await`; use [`sync::Mutex`] or [`sync::RwLock`] if it is.
//!
//! **Ending.** A [`sync::CancellationToken`] requests that tasks stop,
//! [`JoinHandle::abort`](task::JoinHandle::abort) cancels one at its next `.await`,
//! [`task::shield()`] defers an abort until a section is done, and [`shutdown::Shutdown`] stops all
//! tasks of a program within a deadline and names those that did not end in time.
//!
//! **Finding out what hangs.** [`Handle::dump`](runtime::Handle::dump) lists all tasks and what
//! each of them waits for. [`Builder::on_task_stall`](runtime::Builder::on_task_stall) reports
//! tasks that compute for long or block their thread.
//!
//! # Features
//!
//! Features that Tokio has are named as there. The default is `full`, which enables every feature
//! of the first table.
//!
//! | in `full` | enables |
//! |---|---|
//! | `rt` | [`runtime`] with current-thread runtimes, and [`task`] |
//! | `rt-multi-thread` | multi-thread runtimes and [`run`]; implies `rt` |
//! | `macros` | the attributes and the macros |
//! | `sync` | [`sync`] and [`channel`], neither of which needs a runtime |
//! | `time` | [`time`] |
//! | `net` | [`net`]; implies `rt` |
//! | `fs` | [`fs`]; implies `rt` and `sync` |
//! | `io-util` | the methods of the I/O traits; the traits themselves are always there |
//! | `io-std` | the standard streams; implies `rt` |
//! | `signal` | [`signal`]; implies `net` |
//! | `process` | [`process`]; implies `signal`, `io-util` and `io-std` |
//! | `stream` | [`stream`]; not a feature of Tokio |
//! | `parallel` | [`parallel`], which needs no runtime; not a feature of Tokio |
//! | `parking_lot` | nothing: it is accepted because Tokio has it |
//!
//! | not in `full` | enables |
//! |---|---|
//! | `test-util` | pausing and advancing the clock; implies `rt`, `sync` and `time` |
//! | `tracing` | spans and events for `tracing` subscribers, reports of stalled tasks included |
//! | `stall-stacks` | function names in the stack traces of stalled tasks (Linux); implies `rt` |
//! | `fiber` | `fiber` on Unix with x86-64 or aarch64, nothing elsewhere; implies `rt` |
//! | `tokio-names` | `tokio-rt-worker` as the default name of threads |
//!
//! [`shutdown`] needs `rt`, `sync` and `time`, and [`buf`] needs `net` or `fs`. How the stack
//! traces for `stall-stacks` are captured is described at
//! [`Preemption::capture_stacks`](runtime::Preemption::capture_stacks). Without any feature the
//! crate starts no thread and has no runtime.
//!
//! # Differences from Tokio
//!
//! - **Preemption.** When a task of a multi-thread runtime stays in one poll for longer than 10 ms,
//!   because it computes or because it blocks its thread, another thread takes over its worker and
//!   the other tasks go on. So the number of workers does not bound how many polls run at once.
//!   See [`runtime::Preemption`], which also says how to disable it.
//! - **Workers.** By default their number is that of the processors that the process may use, or
//!   the CPU quota of its cgroup if that is smaller. `BLITZ_WORKER_THREADS` comes before
//!   `TOKIO_WORKER_THREADS`.
//! - **Timers** are not rounded to milliseconds. They are exact to some tens of microseconds, and
//!   never early.
//! - **Unstable interfaces of Tokio** (metrics, task hooks, names, dumps, seeds, the policy for
//!   unhandled panics) are available on every flavor, without a `cfg` flag.
//! - **Files** in the page cache are read without a change of threads on Linux.
//! - **Name resolution** uses at most a quarter of the blocking threads; other look-ups wait.
//! - **Other places.** `CancellationToken` is in [`sync`], `TaskTracker` in [`task`], and
//!   what tokio-stream has in [`stream`].
//! - **Types** are not those of the real Tokio. To use a library that needs Tokio, patch the
//!   package `tokio` with the drop-in of the repository, or use the adapters of `blitz-io-compat`.
//!
//! # Links
//!
//! - [From Tokio to blitz-io](https://github.com/blitz-io/blitz-io/blob/HEAD/docs/guide.md): what
//!   to change, what improves by itself, and what differs.
//! - [Cancel safety](https://github.com/blitz-io/blitz-io/blob/HEAD/docs/cancel-safety.md): what
//!   is lost when a future is dropped, for every asynchronous function.
//! - [Architecture](https://github.com/blitz-io/blitz-io/blob/HEAD/ARCHITECTURE.md) and
//!   [design](https://github.com/blitz-io/blitz-io/blob/HEAD/docs/design/README.md): how the
//!   runtime works, and why it is built so.
//! - [Examples](https://github.com/blitz-io/blitz-io/tree/HEAD/examples) and
//!   [benchmarks](https://github.com/blitz-io/blitz-io/blob/HEAD/docs/benchmarks.md).

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

/// Creates a multi-thread runtime and runs a future on it to completion.
///
/// The runtime has the default configuration of [`Runtime::new`](runtime::Runtime::new), and is
/// shut down before this function returns.
///
/// # Panics
///
/// If the future panics, if the runtime cannot be started, or if called inside an
/// asynchronous context.
///
/// # Examples
///
/// ```
/// let output = blitz_io::run(async { blitz_io::spawn(async { 42 }).await.unwrap() });
/// assert_eq!(output, 42);
/// ```
#[cfg(feature = "rt-multi-thread")]
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    match runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("cannot start a runtime: {error}"),
    }
}

/// Examples of the guide, compiled and run with the other doc tests.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../../../docs/guide.md")]
mod guide {}

/// The first program of the README, compiled and run with the other doc tests.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
