//! Sleeping, timeouts, ticks, and what time it is.
//!
//! | | |
//! |---|---|
//! | [`sleep`], [`sleep_until`] | wait for a time |
//! | [`timeout`], [`timeout_at`] | wait for a future, but not longer than that |
//! | [`interval`], [`interval_at`] | wait for one tick after the other |
//! | [`Instant`] | what time it is, on the runtime's clock |
//!
//! Timers are exact to some tens of microseconds, which is what the system's own are late
//! by; they are never early. They are kept in a wheel for each core, so that workers do not
//! wait for each other to arm or cancel one.
//!
//! Timers belong to a runtime: make them inside [`Runtime::block_on`] or a task, or after
//! [`Handle::enter`]. Then they can be awaited anywhere, for as long as that runtime is
//! there.
//!
//! With the feature `test-util` the clock can be paused ([`pause`], [`advance`],
//! [`resume`]): then it stands still as long as there is something to do, and jumps to the
//! next timer when there is not. A test that sleeps for an hour takes no time.
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
mod here;
mod instant;
mod interval;
#[cfg(feature = "test-util")]
mod pausing;
mod sleep;
mod timeout;

#[doc(no_inline)]
pub use std::time::Duration;

#[cfg(feature = "test-util")]
pub use self::pausing::{advance, pause, resume};
pub use self::{
    instant::Instant,
    interval::{Interval, MissedTickBehavior, interval, interval_at},
    sleep::{Sleep, sleep, sleep_until},
    timeout::{Timeout, timeout, timeout_at},
};

/// The longest time that is waited for if a longer one is asked for: 30 years. Not every
/// system can tell an instant that is 100 years away.
fn at_most_30_years(duration: Duration) -> Duration {
    duration.min(Duration::from_secs(30 * 365 * 86_400))
}

#[cfg(all(test, not(blitz_loom)))]
mod tests;
