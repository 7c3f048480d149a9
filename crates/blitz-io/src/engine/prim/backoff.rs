//! Bounded spinning: 1, 2, 4 … 32 pauses, then [`Backoff::spin`] returns `false` so that the
//! caller does something better than spin.

use super::{spin_loop, thread};

/// Number of steps. The last has 2^5 pauses, all together 63: about a microsecond on x86. Picked,
/// not measured; it only has to outlast a few instructions of another thread.
const STEPS: u32 = 6;

/// Counter of the steps of one bounded spin.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    step: u32,
}

impl Backoff {
    /// Spins twice as long as the last time. Returns `false` once the steps are used up.
    #[inline]
    pub(crate) fn spin(&mut self) -> bool {
        if self.step >= STEPS {
            return false;
        }
        for _ in 0..1u32 << self.step {
            spin_loop();
        }
        self.step += 1;
        true
    }

    /// Waits briefly for another thread that is in the middle of a few instructions, in which it
    /// neither calls other code nor waits. Spins first, and then yields to the scheduler, because
    /// that thread may have lost its processor. The caller loops until the other thread is done,
    /// and must say at the call why nothing else can delay it.
    #[inline]
    #[cfg_attr(not(feature = "sync"), allow(dead_code, reason = "channels and cells wait so"))]
    pub(crate) fn pause(&mut self) {
        if cfg!(blitz_loom) || !self.spin() {
            thread::yield_now();
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Backoff, STEPS};

    #[test]
    fn backoff_ends() {
        let mut backoff = Backoff::default();
        let spins = std::iter::from_fn(|| backoff.spin().then_some(())).count();
        assert_eq!(spins, STEPS as usize);
    }
}
