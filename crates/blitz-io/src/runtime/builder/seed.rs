//! Seeds, with which a runtime repeats its random choices.

use std::fmt;

use super::Builder;
use crate::engine::prim::rng::mix;

/// How many polls a seeded runtime makes between two checks of the injector. A fixed number,
/// because an interval that follows measured time would not repeat. It is near what the tuning
/// arrives at for polls of 30 µs; it was chosen, not measured.
const STEADY_INTERVAL: u32 = 31;

/// A seed for the random choices of a runtime.
///
/// See [`Builder::rng_seed`].
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::{Builder, RngSeed};
///
/// let seed = RngSeed::from_bytes(b"make me a seed");
/// let rt = Builder::new_current_thread().rng_seed(seed).build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct RngSeed(u64);

impl RngSeed {
    /// Creates a seed from bytes.
    ///
    /// Equal bytes give equal seeds, on every machine.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::RngSeed;
    ///
    /// let seed = RngSeed::from_bytes(&7u64.to_le_bytes());
    /// # let _ = seed;
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Self {
        // The length comes first, so that bytes with trailing zeros give another seed than without.
        let start = mix(bytes.len() as u64 ^ 0x9e37_79b9_7f4a_7c15);
        Self(bytes.iter().fold(start, |word, &byte| mix(word ^ u64::from(byte)) ^ word))
    }

    pub(super) fn word(&self) -> u64 {
        self.0
    }
}

impl fmt::Debug for RngSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RngSeed({:#018x})", self.0)
    }
}

impl Builder {
    /// Sets the seed of the random choices of the runtime, and of `select!` inside it.
    ///
    /// With a seed, a current-thread runtime repeats itself: as long as only one thread at a time
    /// calls [`block_on`](crate::runtime::Runtime::block_on), and no tasks or wakes come from other
    /// threads, the same program makes the same choices and runs its tasks in the same order,
    /// whatever the duration of their polls. Each call of `block_on` has its own sequence of random
    /// numbers. On a multi-thread runtime the choices of each worker repeat, but not which worker
    /// runs which task. Every runtime that this builder builds starts from the same seed.
    ///
    /// A current-thread runtime with a seed checks the global queue every 31 polls unless
    /// [`global_queue_interval`](Self::global_queue_interval) is set, because an interval that
    /// follows the clock would not repeat.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::runtime::{Builder, RngSeed};
    ///
    /// let seed = RngSeed::from_bytes(b"place your seed here");
    /// let rt = Builder::new_current_thread().rng_seed(seed).build()?;
    /// rt.block_on(async { /* the same choices every time */ });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn rng_seed(&mut self, seed: RngSeed) -> &mut Self {
        self.seed = Some(seed);
        self
    }

    /// Returns the fixed interval for checks of the injector if this runtime must repeat itself.
    pub(super) fn steady_interval(&self, threaded: bool) -> Option<u32> {
        (self.seed.is_some() && !threaded).then_some(STEADY_INTERVAL)
    }
}
