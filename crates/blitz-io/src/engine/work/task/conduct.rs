//! A task's history of long polls: whether it was caught in one, and how many short polls it
//! has had since.
//!
//! The history is a byte in the header. The thread that polls the task next reads it after the
//! thread that wrote it, in the order of polls: the byte is a figure that itself orders nothing.

use crate::engine::prim::gauge::ByteGauge;

/// The number of short polls in a row after which a task is trusted again: the prototype's figure.
const GOOD: u8 = 4;

/// The value of a task that is never trusted.
const FOR_EVER: u8 = u8::MAX;

/// A task's history of long polls. Tasks with a bad one are polled by threads without a core.
#[derive(Debug, Default)]
pub(crate) struct Conduct(ByteGauge);

impl Conduct {
    /// Creates the history of a new task; `long_running` if it was declared to have long polls.
    #[inline]
    pub(crate) fn new(long_running: bool) -> Self {
        let conduct = Self::default();
        if long_running {
            conduct.0.set(FOR_EVER);
        }
        conduct
    }

    /// Returns true if a thread without a core should poll the task.
    #[inline(always)]
    pub(crate) fn is_doubtful(&self) -> bool {
        self.0.get() != 0
    }

    /// Returns true if the task was declared to have long polls.
    pub(crate) fn is_for_ever(&self) -> bool {
        self.0.get() == FOR_EVER
    }

    /// Records that a poll of the task lasted too long.
    pub(crate) fn caught(&self) {
        if !self.is_for_ever() {
            self.0.set(GOOD);
        }
    }

    /// Records a poll by a thread without a core, and whether it was short.
    pub(crate) fn learn(&self, was_short: bool) {
        match self.0.get() {
            0 | FOR_EVER => {}
            left if was_short => self.0.set(left - 1),
            _ => self.0.set(GOOD),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Conduct, GOOD};

    #[test]
    fn who_behaves_several_times_in_a_row_is_trusted_again() {
        let conduct = Conduct::new(false);
        assert!(!conduct.is_doubtful());
        conduct.caught();
        for _ in 1..GOOD {
            conduct.learn(true);
            assert!(conduct.is_doubtful());
        }
        conduct.learn(false);
        for _ in 1..GOOD {
            conduct.learn(true);
            assert!(conduct.is_doubtful(), "once more it was too long");
        }
        conduct.learn(true);
        assert!(!conduct.is_doubtful());
        conduct.learn(true);
        assert!(!conduct.is_doubtful(), "there is nothing to forget");
    }

    #[test]
    fn who_says_so_is_never_trusted() {
        let conduct = Conduct::new(true);
        conduct.caught();
        (0..1000).for_each(|_| conduct.learn(true));
        assert!(conduct.is_doubtful());
    }
}
