//! `time`, `io` and `net`, tested from outside.
//!
//! Nothing here knows how they work inside. A test says in its name what a reader of
//! the documentation may rely on, and fails if that does not hold. No test waits for
//! time to pass so that something else may happen meanwhile: an order is made by polls
//! by hand, by gates, or by the paused clock. Where real time is looked at, a test asks
//! only whether something came too early. `watch` ends a test that hangs.
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

// What the tests are made with; part of it is used by other tests alone.
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

// Bytes, without a system call.
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
mod postponing;
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
