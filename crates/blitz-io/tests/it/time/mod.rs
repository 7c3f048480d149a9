//! Time.

mod timeout_moved;
mod workers;

// With a clock that can be paused.
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod instant;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod interval;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod paused;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod sleep;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod timeout;
#[cfg(all(
    feature = "io-util",
    feature = "macros",
    feature = "net",
    feature = "sync",
    feature = "test-util"
))]
mod timers_model;
