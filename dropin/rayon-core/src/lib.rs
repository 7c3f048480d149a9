//! blitz-io under rayon-core's name.
//!
//! Patched in for the published package, it is the thread pool under Rayon's parallel iterators:
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = "blitz-io/dropin/rayon-core" }
//! ```
//!
//! Its version is that of the newest published one, so an existing lock file is followed. If a
//! newer one is published, Cargo may fall back to that with no more than a warning; `cargo tree -i
//! rayon-core` shows which one is used.
//!
//! This package has no code: each line below re-exports a part of `blitz_io::parallel`.

#![forbid(unsafe_code)]

/// A constant that proves which `rayon-core` is linked; the real one has no such constant.
#[doc(hidden)]
pub const BLITZ_IO_DROPIN: &str = env!("CARGO_PKG_VERSION");

#[doc(inline)]
pub use blitz_io::parallel::{
    BroadcastContext, FnContext, Scope, ScopeFifo, ThreadBuilder, ThreadPool, ThreadPoolBuildError,
    ThreadPoolBuilder, Yield, broadcast, current_num_threads, current_thread_has_pending_tasks,
    current_thread_index, in_place_scope, in_place_scope_fifo, join, join_context, max_num_threads,
    scope, scope_fifo, spawn, spawn_broadcast, spawn_fifo, yield_local, yield_now,
};

#[doc(hidden)]
#[allow(deprecated, reason = "kept for programs that still use them")]
pub use blitz_io::parallel::{Configuration, initialize};
