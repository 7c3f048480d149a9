//! Random numbers that a seed repeats.

/// A `splitmix64` generator: any seed is a good one, and generators that were seeded with
/// neighbouring numbers are independent of each other.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Creates the generator of one round of one seed.
    pub(crate) fn of_round(seed: u64, round: u64) -> Self {
        let mut chance = Self(seed);
        Self(chance.next() ^ round.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, which must not be zero.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        // The remainder is slightly biased, which does not matter here.
        (self.next() % u64::from(limit)) as u32
    }

    /// Returns true once in `times`, on average.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the elements.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u32) as usize]
    }

    /// Returns a time in microseconds: mostly short, sometimes up to `most`.
    pub(crate) fn micros(&mut self, most: u32) -> u32 {
        let most = if self.once_in(4) { most } else { most.div_ceil(10) };
        self.below(most + 1)
    }
}
