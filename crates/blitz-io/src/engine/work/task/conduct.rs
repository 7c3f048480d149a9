//! Whether a task has been caught in a poll that lasted too long, and how often it has behaved
//! since.
//!
//! A byte in the header. Whoever polls the task next reads it, after the one who wrote it: a
//! figure that orders nothing.

use crate::engine::prim::gauge::ByteGauge;

/// Good polls in a row after which a task is trusted again: the prototype's figure.
const GOOD: u8 = 4;

/// Never.
const FOR_EVER: u8 = u8::MAX;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Conduct(ByteGauge);

impl Conduct {
    /// Of a task that says of itself that its polls are long.
    #[inline]
    pub(crate) fn new(long_running: bool) -> Self {
        let conduct = Self::default();
        if long_running {
            conduct.0.set(FOR_EVER);
        }
        conduct
    }

    /// Whether it is better polled by a thread without a core.
    #[inline(always)]
    pub(crate) fn is_doubtful(&self) -> bool {
        self.0.get() != 0
    }

    /// Whether it has said so itself.
    pub(crate) fn is_for_ever(&self) -> bool {
        self.0.get() == FOR_EVER
    }

    /// It was in one poll for too long.
    pub(crate) fn caught(&self) {
        if !self.is_for_ever() {
            self.0.set(GOOD);
        }
    }

    /// It was polled without a core, for a short time or not.
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
