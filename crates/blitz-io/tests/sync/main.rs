//! The primitives of `sync` and their channels, tested through the public API.
//!
//! No test depends on how they work inside. A test's name states what a reader of the documentation
//! may rely on, and the test fails if that does not hold. Futures are polled by hand where an order
//! matters, so that no test waits for time to pass; `watch` ends a test that hangs.
#![cfg(all(feature = "sync", feature = "rt-multi-thread", not(blitz_loom)))]
#![allow(clippy::await_holding_refcell_ref, reason = "polled by hand, on one thread")]
#![allow(clippy::waker_clone_wake, reason = "waking by value is what is tested")]

// Shared helpers; some of their functions are used only by the tests of the runtime.
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
#[path = "../it/make.rs"]
mod make;
mod polled;
mod wakers;
mod cut;

// One file for each primitive.
mod semaphore;
mod mutex;
mod rwlock;
mod barrier;
mod notify;
mod once_cell;
mod set_once;
mod token;

// One file for each channel.
mod mpsc_bounded;
mod mpsc_unbounded;
mod oneshot;
mod broadcast;
mod watching;

// What holds for all of them.
mod cancelling;
mod reentrant;
mod hostile;
mod budget;
mod beyond;
mod blocking;
mod debugging;
mod stress;

// Random operations, compared with a model that is too simple to be wrong.
mod semaphore_model;
mod mpsc_model;
mod oneshot_model;
mod broadcast_model;
mod watch_model;
