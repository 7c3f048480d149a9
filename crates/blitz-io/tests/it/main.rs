//! The runtime as its documentation describes it, tested through the public API.
//!
//! No test depends on how the engine works. A test's name states what a reader of the documentation
//! may rely on, and the test fails if that does not hold. No test waits for time to pass in order
//! to succeed: threads and tasks meet at gates and channels, and `watch` ends a test that hangs.
#![cfg(all(feature = "rt-multi-thread", not(blitz_loom)))]
#![allow(clippy::waker_clone_wake, reason = "waking by value is what is tested")]
#![allow(clippy::async_yields_async, reason = "handles as outputs are what is tested")]

// Shared helpers.
mod watch;
mod gate;
mod tally;
mod caught;
mod child;
mod sandbox;
mod make;
mod by_hand;

// Tasks.
mod joining;
mod aborting;
mod outputs;
mod shapes;
mod join_wakers;
mod shielding;
mod yielding;
mod coop;

// Macros.
mod join_macros;
mod selecting;
mod task_locals;
mod backpressure;
mod futures;

// Code that blocks.
mod blocking;
mod blocking_end;
mod ends;
mod in_place;
mod join_set;
mod time_smoke;
mod timeouts;
mod tracking;
mod scopes;

// Byte streams.
#[cfg(feature = "io-util")]
mod io_by_hand;
#[cfg(feature = "io-util")]
mod io_buffers;
#[cfg(feature = "io-util")]
mod io_copying;
#[cfg(feature = "io-util")]
mod io_halves;
#[cfg(feature = "io-util")]
mod io_pipes;
#[cfg(all(unix, feature = "io-util", feature = "net"))]
mod io_async_fd;
#[cfg(all(unix, feature = "io-util", feature = "io-std"))]
mod io_standard;

// Synchronisation.
mod locks;

// The runtime.
mod building;
mod hooks;
mod task_hooks;
mod dump;
mod figures;
mod seeds;
mod one_thread;
mod entering;
mod shutdown;
mod late;
mod local_set;
mod local_runtime;

// Synchronisation, with the feature `sync`.
#[cfg(feature = "sync")]
mod wakers;
#[cfg(feature = "sync")]
mod noticing;
#[cfg(feature = "sync")]
mod rounds;
#[cfg(feature = "sync")]
mod once;
#[cfg(feature = "sync")]
mod cancelling;

#[cfg(all(feature = "sync", feature = "time"))]
mod graceful;
#[cfg(all(feature = "stream", feature = "sync", feature = "time"))]
mod streams;
#[cfg(all(feature = "stream", feature = "sync", feature = "net", feature = "io-util"))]
mod stream_wrappers;

// The network.
#[cfg(all(feature = "net", feature = "io-util"))]
mod net_pairs;
#[cfg(all(feature = "net", feature = "io-util"))]
mod net_tcp;
#[cfg(all(feature = "net", feature = "io-util"))]
mod net_udp;
#[cfg(all(unix, feature = "net", feature = "io-util"))]
mod net_unix;
mod hostile_driver;
#[cfg(all(feature = "net", feature = "io-util"))]
mod net_failing;

// Failures, load, and idleness.
mod bad_input;
#[cfg(all(unix, feature = "full", feature = "test-util"))]
mod panic_texts;
mod out_of_threads;
mod blocking_out_of_threads;
mod panics;
mod unhandled;
mod storm;
mod idle;
mod marker_traits;
mod once_broken;
mod hostile;
mod hostile_more;
mod hostile_sets;
mod hostile_blocking;

// Fork-join.
#[cfg(feature = "parallel")]
mod parallel_join;
#[cfg(feature = "parallel")]
mod parallel_scope;
#[cfg(feature = "parallel")]
mod parallel_pool;
#[cfg(feature = "parallel")]
mod parallel_async;
#[cfg(feature = "parallel")]
mod parallel_hostile;
#[cfg(feature = "parallel")]
mod parallel_storm;
