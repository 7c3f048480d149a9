//! Runs tests on a paused clock.

use std::{future::Future, time::Duration};

use blitz_io::runtime::Builder;

use super::watchdog;

/// Runs the test on a current-thread runtime with a paused clock.
pub(crate) fn paused<F: Future>(test: F) -> F::Output {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().enable_all().start_paused(true).build();
    rt.expect("a runtime").block_on(test)
}

/// Returns a duration of `count` milliseconds.
pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}
