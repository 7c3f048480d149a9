//! One xorshift generator per core and per thread. It picks which worker to steal from first and
//! which branch of a `select!` to try first; nothing secret depends on it.
//!
//! A runtime that is built with a seed derives all of its generators from that seed.

use std::hash::{BuildHasher, RandomState};

use super::{AtomicU64, Ordering::Relaxed};

/// Marsaglia's xorshift64* generator: three shifts and a multiplication.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Creates a generator with its own stream. Every seed is valid, zero included.
    pub(crate) fn new(seed: u64) -> Self {
        // Xorshift stays at zero once it is there; an odd constant moves zero away and keeps
        // neighbouring seeds (worker 0, 1, 2 …) apart.
        Self((seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a seed that differs from process to process, taken from `std`'s hasher keys.
    pub(crate) fn process_seed() -> u64 {
        RandomState::new().hash_one(0u8)
    }

    /// Creates a generator that continues from a saved [`state`](Self::state).
    #[inline]
    #[cfg_attr(not(feature = "macros"), allow(dead_code, reason = "`select!` uses it"))]
    pub(crate) fn resume(state: u64) -> Self {
        debug_assert_ne!(state, 0, "xorshift is stuck at zero");
        Self(state)
    }

    /// Returns the current state, from which [`resume`](Self::resume) continues. Never zero.
    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.0
    }

    /// Returns the next number and advances the state.
    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        let mut x = self.0;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0 = x;
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Returns a number below `bound`, by multiplication instead of division.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

/// Mixes every bit of the word into all others: Steele's and Vigna's finaliser of splitmix64.
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The seed from which all generators of one runtime are derived.
#[derive(Debug)]
pub(crate) struct Seeds {
    seed: u64,
    /// Number of `block_on` calls so far.
    calls: AtomicU64,
}

/// Prefixes for the kinds of generators, so that no two kinds share a stream.
const CORE: u64 = 1 << 62;
const WORKER: u64 = 2 << 62;

impl Seeds {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, calls: AtomicU64::new(0) }
    }

    /// Returns the generator of the core `index`.
    pub(crate) fn core(&self, index: usize) -> Rng {
        self.stream(CORE | index as u64)
    }

    /// Returns the generator of the thread that works with the core `index`.
    pub(crate) fn worker(&self, index: usize) -> Rng {
        self.stream(WORKER | index as u64)
    }

    /// Returns the generator for the thread of the next `block_on`.
    pub(crate) fn next_call(&self) -> Rng {
        // Relaxed: the numbers only have to differ; calls that are ordered get their numbers in
        // that order, because all are on one word.
        self.stream(self.calls.fetch_add(1, Relaxed))
    }

    fn stream(&self, number: u64) -> Rng {
        Rng::new(mix(self.seed ^ mix(number)))
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Rng, Seeds};

    #[test]
    fn one_seed_gives_many_streams_and_the_same_ones_again() {
        let streams = |seed| {
            let seeds = Seeds::new(seed);
            let mut all: Vec<Rng> = (0..8).map(|index| seeds.core(index)).collect();
            all.extend((0..8).map(|index| seeds.worker(index)));
            all.extend((0..8).map(|_| seeds.next_call()));
            all.iter_mut().map(|rng| rng.next_u32()).collect::<Vec<_>>()
        };
        assert_eq!(streams(7), streams(7));
        let mut all = [streams(0), streams(1), streams(2)].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3 * 24);
    }

    #[test]
    fn a_generator_goes_on_where_it_was() {
        let mut straight = Rng::new(3);
        let mut halting = Rng::new(3);
        for _ in 0..100 {
            halting = Rng::resume(halting.state());
            assert_eq!(halting.next_u32(), straight.next_u32());
        }
    }

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
