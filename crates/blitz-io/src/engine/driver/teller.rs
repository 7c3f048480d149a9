//! Events that do not come from the mechanism: whoever learns of them tells the record.
//!
//! Windows completes operations on named pipes on threads of its own. What they find out
//! is told as a turn would tell it.

use std::sync::Arc;

use super::{Driver, ready::Ready, sources::Token};
use crate::engine::wait::batch::Batch;

/// The right to tell events of one registration; those that come after its end reach nobody.
#[derive(Debug)]
pub(crate) struct Teller {
    driver: Arc<Driver>,
    token: Token,
}

impl Teller {
    pub(super) fn new(driver: Arc<Driver>, token: Token) -> Self {
        Self { driver, token }
    }

    /// Sets what is ready, and wakes who waits for it: users' code runs.
    pub(crate) fn tell(&self, ready: Ready) {
        let mut batch = Batch::new();
        self.driver.sources.tell(self.token, ready, &mut batch);
        batch.wake_all();
        self.driver.counters.ready(1);
    }
}
