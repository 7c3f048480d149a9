//! One xorshift generator per core: whom to rob first, nothing secret.

use std::hash::{BuildHasher, RandomState};

/// Marsaglia's xorshift64* : three shifts and a multiplication.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator with its own stream. Any seed will do, zero included.
    pub(crate) fn new(seed: u64) -> Self {
        // Xorshift is stuck at zero; an odd constant moves zero away and keeps
        // neighbouring seeds (worker 0, 1, 2 …) apart.
        Self((seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A seed that differs from process to process, from std's hasher keys.
    pub(crate) fn process_seed() -> u64 {
        RandomState::new().hash_one(0u8)
    }

    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        let mut x = self.0;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0 = x;
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// A number below `bound`, by multiplication instead of division.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::Rng;

    #[test]
    fn every_victim_is_drawn() {
        for seed in 0..8 {
            let mut rng = Rng::new(seed);
            let mut seen = [0u32; 5];
            for _ in 0..10_000 {
                seen[rng.below(5) as usize] += 1;
            }
            assert!(seen.iter().all(|&n| (1_600..2_400).contains(&n)), "{seed}: {seen:?}");
        }
    }
}
