//! Randomness that repeats.

use std::fmt;

use super::Builder;
use crate::engine::prim::rng::mix;

/// Polls between two looks at the intake where time must not decide: near what the
/// tuning arrives at for polls of 30 µs. Picked, not measured.
const STEADY_INTERVAL: u32 = 31;

/// A seed for random number generation.
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
    /// Generates a seed from the provided bytes.
    ///
    /// The same bytes give the same seed, on every machine.
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
        // The length first: bytes that end in zeros are others than those without.
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
    /// Sets the seed that the random choices of the runtime, and of `select!` inside
    /// of it, are derived from.
    ///
    /// A current-thread runtime then repeats itself: as long as one thread at a time
    /// calls [`block_on`](crate::runtime::Runtime::block_on), and nothing comes from
    /// other threads, the same program makes the same choices and runs its tasks in the
    /// same order, however long they take. Each call of `block_on` draws from a stream
    /// of its own. On a multi-thread runtime the choices of each worker repeat, but
    /// which task runs on which one does not. Every runtime that this builder builds
    /// starts from the same seed.
    ///
    /// Unless [`global_queue_interval`](Self::global_queue_interval) is set, such a
    /// current-thread runtime looks into the intake every 31 polls, since an interval
    /// that follows the clock would not repeat.
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

    /// The intake's interval of a runtime that must repeat.
    pub(super) fn steady_interval(&self, threaded: bool) -> Option<u32> {
        (self.seed.is_some() && !threaded).then_some(STEADY_INTERVAL)
    }
}
