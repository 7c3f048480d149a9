//! Tests runtimes: how they are built, entered, measured and ended, and how they fail.

pub(crate) mod auto_traits;
mod bad_input;
mod block_on;
mod blocking_thread_limit;
mod builder;
mod current_thread;
pub(crate) mod dump;
mod enter;
mod hostile;
mod hostile_blocking;
mod idle;
mod local_runtime;
mod metrics;
mod handles_after_shutdown;
#[cfg(all(unix, feature = "full", feature = "test-util"))]
mod panic_messages;
mod panics;
mod rng_seed;
mod shutdown;
mod shutdown_blocking;
mod shutdown_waits;
mod stress;
mod task_hooks;
mod thread_hooks;
mod thread_limit;
mod unhandled_panic;
