//! The state of `select!`: the branch that has won, and the branches that are disabled.

use std::convert::Infallible;

/// The output type of a branch that does not exist.
pub type Off = Infallible;

macro_rules! finished {
    ($($branch:ident $output:ident)*) => {
        /// The branch that has won, with its output.
        ///
        /// One type serves every number of branches: the expansion writes as many
        /// `_` as it has branches, and the variants of the others cannot exist.
        #[derive(Debug)]
        pub enum Finished<$($output = Off),*> {
            $($branch($output),)*
            /// All branches are disabled.
            Disabled,
        }
    };
}

// Tokio's `select!` supports 64 branches too.
finished! {
    _0 T0 _1 T1 _2 T2 _3 T3 _4 T4 _5 T5 _6 T6 _7 T7 _8 T8 _9 T9 _10 T10 _11 T11 _12 T12
    _13 T13 _14 T14 _15 T15 _16 T16 _17 T17 _18 T18 _19 T19 _20 T20 _21 T21 _22 T22 _23 T23
    _24 T24 _25 T25 _26 T26 _27 T27 _28 T28 _29 T29 _30 T30 _31 T31 _32 T32 _33 T33 _34 T34
    _35 T35 _36 T36 _37 T37 _38 T38 _39 T39 _40 T40 _41 T41 _42 T42 _43 T43 _44 T44 _45 T45
    _46 T46 _47 T47 _48 T48 _49 T49 _50 T50 _51 T51 _52 T52 _53 T53 _54 T54 _55 T55 _56 T56
    _57 T57 _58 T58 _59 T59 _60 T60 _61 T61 _62 T62 _63 T63
}

/// Returns the number of bytes needed for one bit per branch.
pub const fn bytes(branches: usize) -> usize {
    branches.div_ceil(8)
}

/// The set of branches that are not polled, or no longer polled, with one bit for each.
#[derive(Debug)]
pub struct Disabled<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Disabled<BYTES> {
    #[inline]
    pub fn none() -> Self {
        Self([0; BYTES])
    }

    #[inline]
    pub fn add(&mut self, branch: u32) {
        self.0[branch as usize / 8] |= 1 << (branch % 8);
    }

    #[inline]
    pub fn has(&self, branch: u32) -> bool {
        self.0[branch as usize / 8] & (1 << (branch % 8)) != 0
    }

    /// Returns true if the branch is to be polled in this lap. The first lap goes from
    /// `first` to the end, the second from the beginning to `first`.
    #[inline]
    pub fn is_next(&self, branch: u32, first: u32, wrapped: bool) -> bool {
        (branch < first) == wrapped && !self.has(branch)
    }
}

#[cfg(test)]
mod tests {
    use super::Disabled;

    #[test]
    fn every_branch_has_a_bit_of_its_own() {
        let mut disabled = Disabled::<8>::none();
        for branch in (0..64).step_by(3) {
            disabled.add(branch);
        }
        for branch in 0..64 {
            assert_eq!(disabled.has(branch), branch % 3 == 0, "{branch}");
        }
    }

    #[test]
    fn two_laps_go_round_once() {
        let mut disabled = Disabled::<1>::none();
        disabled.add(1);
        let mut order = Vec::new();
        for wrapped in [false, true] {
            order.extend((0..5).filter(|branch| disabled.is_next(*branch, 3, wrapped)));
        }
        assert_eq!(order, [3, 4, 0, 2]);
    }
}
