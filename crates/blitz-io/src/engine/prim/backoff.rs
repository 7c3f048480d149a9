//! Waiting a little, with an end: 1, 2, 4 … 32 pauses, then the caller is told
//! to do something better than spin.

use super::{spin_loop, thread};

/// 2^5 pauses in the last step, 63 in all: about a microsecond on x86. Picked,
/// not measured; it only has to outlast a few instructions of another thread.
const STEPS: u32 = 6;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    step: u32,
}

impl Backoff {
    /// Spins one step longer than the last time; `false` once the steps are used up.
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

    /// Lets another thread go on that is in the middle of a few instructions, in which it
    /// calls nobody and waits for nobody: spins, and then lets others run, since that one may
    /// have lost its processor. The caller's loop ends when the other one is through; whoever
    /// calls this says why nothing else can keep that one.
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
