//! Reports events that do not come from the selector to their record.
//!
//! Windows completes operations on named pipes on threads of its own. Those threads report the
//! completions as a driver's turn would.

use std::sync::Arc;

use super::{Driver, ready::Ready, sources::Token};
use crate::engine::wait::batch::Batch;

/// The right to report events of one registration; events after the registration's end are dropped.
#[derive(Debug)]
pub(crate) struct Teller {
    driver: Arc<Driver>,
    token: Token,
}

impl Teller {
    pub(super) fn new(driver: Arc<Driver>, token: Token) -> Self {
        Self { driver, token }
    }

    /// Sets readiness and wakes the tasks that wait for it, so wakers of users run here.
    pub(crate) fn tell(&self, ready: Ready) {
        let mut batch = Batch::new();
        self.driver.sources.tell(self.token, ready, &mut batch);
        batch.wake_all();
        self.driver.counters.ready(1);
    }
}
