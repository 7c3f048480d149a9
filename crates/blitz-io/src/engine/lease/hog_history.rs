//! A task's history of long polls: whether it was caught in one, and how many short polls it has
//! had since.
//!
//! The history is a byte in the header. The thread that polls the task next reads it after the
//! thread that wrote it, in the order of polls: the byte is a figure that itself orders nothing.

use crate::engine::prim::gauge::ByteGauge;

/// The number of short polls in a row after which a task is trusted again: the prototype's figure.
const FORGIVEN_AFTER: u8 = 4;

/// The value of a task that is never trusted.
const LONG_RUNNING: u8 = u8::MAX;

/// A task's history of long polls. Tasks with a bad one are polled by threads without a core.
#[derive(Debug, Default)]
pub(crate) struct HogHistory(ByteGauge);

impl HogHistory {
    /// Creates the history of a new task; `long_running` if it was declared to have long polls.
    #[inline]
    pub(crate) fn new(long_running: bool) -> Self {
        let hog_history = Self::default();
        if long_running {
            hog_history.0.set(LONG_RUNNING);
        }
        hog_history
    }

    /// Returns true if a thread without a core should poll the task.
    #[inline(always)]
    pub(crate) fn is_hog(&self) -> bool {
        self.0.get() != 0
    }

    /// Returns true if the task was declared to have long polls.
    pub(crate) fn is_long_running(&self) -> bool {
        self.0.get() == LONG_RUNNING
    }

    /// Records that a poll of the task lasted too long.
    pub(crate) fn record_hog(&self) {
        if !self.is_long_running() {
            self.0.set(FORGIVEN_AFTER);
        }
    }

    /// Records a poll of a known hog, and whether it was short.
    pub(crate) fn record_poll(&self, was_short: bool) {
        match self.0.get() {
            0 | LONG_RUNNING => {}
            left if was_short => self.0.set(left - 1),
            _ => self.0.set(FORGIVEN_AFTER),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{FORGIVEN_AFTER, HogHistory};

    #[test]
    fn several_short_polls_in_a_row_end_the_distrust() {
        let hog_history = HogHistory::new(false);
        assert!(!hog_history.is_hog());
        hog_history.record_hog();
        for _ in 1..FORGIVEN_AFTER {
            hog_history.record_poll(true);
            assert!(hog_history.is_hog());
        }
        hog_history.record_poll(false);
        for _ in 1..FORGIVEN_AFTER {
            hog_history.record_poll(true);
            assert!(hog_history.is_hog(), "once more it was too long");
        }
        hog_history.record_poll(true);
        assert!(!hog_history.is_hog());
        hog_history.record_poll(true);
        assert!(!hog_history.is_hog(), "there is nothing to forget");
    }

    #[test]
    fn a_task_declared_as_long_running_is_never_trusted() {
        let hog_history = HogHistory::new(true);
        hog_history.record_hog();
        (0..1000).for_each(|_| hog_history.record_poll(true));
        assert!(hog_history.is_hog());
    }
}
