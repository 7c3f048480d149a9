//! `time`, `io` and `net`, tested through the public API.
//!
//! No test depends on how they work inside. A test's name states what a reader of the documentation
//! may rely on, and the test fails if that does not hold. No test waits for time to pass so that
//! something else may happen meanwhile: an order is established by polls by hand, by gates, or by
//! the paused clock. Where real time matters, a test checks only whether something came too early.
//! `watch` ends a test that hangs.
#![cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "rt-multi-thread",
    feature = "sync",
    feature = "test-util",
    not(blitz_loom)
))]
#![allow(clippy::await_holding_refcell_ref, reason = "polled by hand, on one thread")]

// Shared helpers; some of their functions are used only by other test programs.
#[allow(dead_code)]
#[path = "../it/watch.rs"]
mod watch;
#[allow(dead_code)]
#[path = "../it/gate.rs"]
mod gate;
#[allow(dead_code)]
#[path = "../it/tally.rs"]
mod tally;
#[allow(dead_code)]
#[path = "../it/caught.rs"]
mod caught;
#[allow(dead_code)]
#[path = "../it/child.rs"]
mod child;
#[allow(dead_code)]
#[path = "../sync/polled.rs"]
mod polled;
mod on;
mod pairs;

// Time.
mod instant;
mod sleeping;
mod timing_out;
mod intervals;
mod paused;
mod timers_model;

// Byte streams, without a system call.
mod read_buf;
mod reading;
mod writing;
mod buffering;
mod copying;
mod in_memory;
mod memory_model;

// Sockets and pipes.
mod tcp;
mod tcp_halves;
mod tcp_options;
mod addresses;
mod udp;
#[cfg(unix)]
mod queued;
#[cfg(unix)]
mod unix_streams;
#[cfg(unix)]
mod unix_datagrams;
#[cfg(unix)]
mod pipes;
#[cfg(windows)]
mod named_pipes;
#[cfg(unix)]
mod owned;
#[cfg(unix)]
#[allow(deprecated, reason = "what programs have is tested too")]
mod async_fd;

// What holds for all of them.
mod cancelling;
mod shared;
mod fairness;
mod ends;
mod storms;
