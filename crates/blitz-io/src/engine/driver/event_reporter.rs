//! Reports events that do not come from the selector to their record.
//!
//! Windows completes operations on named pipes on threads of its own. Those threads report the
//! completions as a driver's turn would.

use std::sync::Arc;

use super::{Driver, ready::Ready, record_table::Token};
use crate::engine::wait::wake_list::WakeList;

/// The right to report events of one registration; events after the registration's end are dropped.
#[derive(Debug)]
pub(crate) struct EventReporter {
    driver: Arc<Driver>,
    token: Token,
}

impl EventReporter {
    pub(super) fn new(driver: Arc<Driver>, token: Token) -> Self {
        Self { driver, token }
    }

    /// Sets readiness and wakes the tasks that wait for it, so wakers of users run here.
    pub(crate) fn report(&self, ready: Ready) {
        let mut wake_list = WakeList::new();
        self.driver.record_table.dispatch(self.token, ready, &mut wake_list);
        wake_list.wake_all();
        self.driver.counters.ready(1);
    }
}
