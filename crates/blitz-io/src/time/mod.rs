//! Timers: sleeps, timeouts and intervals, and the runtime's clock.
//!
//! | | |
//! |---|---|
//! | [`sleep`], [`sleep_until`] | wait for a time |
//! | [`timeout`], [`timeout_at`] | wait for a future, for a limited time |
//! | [`interval`], [`interval_at`] | wait for a sequence of ticks |
//! | [`Instant`] | a point in time on the runtime's clock |
//!
//! Timers never fire early. They fire late by some tens of microseconds, which is the latency
//! of the operating system's own timers. Each core has a timer wheel of its own, so workers do
//! not contend when they arm or cancel a timer.
//!
//! A timer belongs to a runtime: create it inside [`Runtime::block_on`] or a task, or after
//! [`Handle::enter`]. It can then be awaited anywhere, for as long as that runtime exists.
//!
//! With the feature `test-util` the clock can be paused ([`pause`], [`advance`],
//! [`resume`]): then time stands still as long as there is work to do, and jumps to the next
//! timer when there is none. A test that sleeps for an hour takes no time.
//!
//! ```
//! use blitz_io::time::{self, Duration, Instant};
//!
//! # blitz_io::run(async {
//! let start = Instant::now();
//! time::sleep(Duration::from_millis(5)).await;
//! assert!(start.elapsed() >= Duration::from_millis(5));
//!
//! let never = std::future::pending::<()>();
//! assert!(time::timeout(Duration::from_millis(5), never).await.is_err());
//! # });
//! ```
//!
//! [`Runtime::block_on`]: crate::runtime::Runtime::block_on
//! [`Handle::enter`]: crate::runtime::Handle::enter
#![cfg_attr(not(feature = "test-util"), doc = "\n[`pause`]: #\n[`advance`]: #\n[`resume`]: #")]
#![cfg_attr(not(feature = "rt"), doc = "\n[`Runtime::block_on`]: #\n[`Handle::enter`]: #")]
#![forbid(unsafe_code)]

pub mod error;
mod context;
mod instant;
mod interval;
#[cfg(feature = "test-util")]
mod pause_clock;
mod sleep;
mod timeout;

#[doc(no_inline)]
pub use std::time::Duration;

#[cfg(feature = "test-util")]
pub use self::pause_clock::{advance, pause, resume};
pub use self::{
    instant::Instant,
    interval::{Interval, MissedTickBehavior, interval, interval_at},
    sleep::{Sleep, sleep, sleep_until},
    timeout::{Timeout, timeout, timeout_at},
};

/// Limits a duration to 30 years, the longest time that a timer waits, because not every
/// system can represent an instant that is 100 years away.
fn at_most_30_years(duration: Duration) -> Duration {
    duration.min(Duration::from_secs(30 * 365 * 86_400))
}

#[cfg(all(test, not(blitz_loom)))]
mod tests;
