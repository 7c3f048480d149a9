//! Histograms of durations, with one writer, any number of readers, and no shared cache line.
//!
//! A [`Scale`] says which bucket a duration belongs to. *Linear*: all buckets are equally wide.
//! *Log*: each power of two is cut into `2^precision` equal parts, so that a bucket is never wider
//! than `2^-precision` of the durations in it; the narrow buckets at the lower end are merged into
//! the first one.
//!
//! The last bucket of either scale has no upper end.

use std::ops::Range;

use super::counters::Counter;
use crate::engine::prim::pad::CachePadded;

/// The boundaries of the buckets, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear {
        /// The width of a bucket; not zero.
        width_ns: u64,
        /// The number of buckets; not zero.
        buckets: usize,
    },
    Log {
        precision: u32,
        /// Number of steps of the scale below the second bucket, less one.
        skipped: u64,
        /// The number of buckets; not zero.
        buckets: usize,
    },
}

impl Scale {
    /// Creates a log scale: its first bucket ends at `min_ns` or before, and its last one begins at
    /// `max_ns` or just after.
    pub(crate) fn log(precision: u32, min_ns: u64, max_ns: u64) -> Self {
        let skipped = step(min_ns, precision).saturating_sub(1);
        let mut last = step(max_ns, precision);
        // The step after the last number has no beginning.
        if beginning(last, precision) < max_ns && beginning(last + 1, precision) < u64::MAX {
            last += 1;
        }
        let buckets = (last.saturating_sub(skipped)).max(1) + 1;
        let buckets = usize::try_from(buckets).expect("64 times 2^10 steps at the most");
        Self::Log { precision, skipped, buckets }
    }

    /// Creates a log scale on which each bucket is as wide as all before it together: the first one
    /// ends at `first_ns`, rounded up to a power of two.
    pub(crate) fn doubling(first_ns: u64, buckets: usize) -> Self {
        let first = first_ns.checked_next_power_of_two().unwrap_or(1 << 63);
        Self::Log { precision: 0, skipped: step(first, 0) - 1, buckets }
    }

    pub(crate) fn buckets(&self) -> usize {
        match *self {
            Self::Linear { buckets, .. } | Self::Log { buckets, .. } => buckets,
        }
    }

    fn bucket_of(&self, ns: u64) -> usize {
        let bucket = match *self {
            Self::Linear { width_ns, .. } => ns / width_ns,
            Self::Log { precision, skipped, .. } => step(ns, precision).saturating_sub(skipped),
        };
        usize::try_from(bucket).unwrap_or(usize::MAX).min(self.buckets() - 1)
    }

    /// Returns the range of durations that belong into a bucket.
    pub(crate) fn range(&self, bucket: usize) -> Range<u64> {
        let start = if bucket == 0 { 0 } else { self.begins_at(bucket) };
        let end = if bucket + 1 == self.buckets() { u64::MAX } else { self.begins_at(bucket + 1) };
        start..end
    }

    /// Returns the beginning of a bucket that is not the first.
    pub(crate) fn begins_at(&self, bucket: usize) -> u64 {
        match *self {
            Self::Linear { width_ns, .. } => width_ns.saturating_mul(bucket as u64),
            Self::Log { precision, skipped, .. } => beginning(bucket as u64 + skipped, precision),
        }
    }
}

/// Returns the step of an unbounded log scale that `ns` belongs to: its leading bits, with
/// `precision` of them behind the first, and its magnitude above those.
fn step(ns: u64, precision: u32) -> u64 {
    let magnitude = ns.checked_ilog2().unwrap_or(0).saturating_sub(precision);
    (u64::from(magnitude) << precision) + (ns >> magnitude)
}

/// Returns the beginning of a step; the inverse of [`step`].
fn beginning(step: u64, precision: u32) -> u64 {
    let magnitude = (step >> precision).saturating_sub(1);
    let leading = step - (magnitude << precision);
    if magnitude > u64::from(leading.leading_zeros()) {
        // The step begins past the largest `u64`.
        return u64::MAX;
    }
    leading << magnitude
}

/// Number of counters on one cache line: as many as fit into 128 bytes, the longest line of a
/// common machine.
const PER_LINE: usize = 16;

/// The durations that one core measured.
#[derive(Debug)]
pub(crate) struct Histogram {
    scale: Scale,
    /// The counters in whole cache lines, so that no two cores write to the same line.
    lines: Box<[CachePadded<[Counter; PER_LINE]>]>,
}

impl Histogram {
    pub(crate) fn new(scale: Scale) -> Self {
        let lines = scale.buckets().div_ceil(PER_LINE);
        Self { scale, lines: (0..lines).map(|_| CachePadded::default()).collect() }
    }

    /// Counts a duration. Must be called only by the core's holder.
    pub(crate) fn record(&self, ns: u64) {
        self.counter(self.scale.bucket_of(ns)).add(1);
    }

    /// Returns the number of durations in a bucket.
    pub(crate) fn count(&self, bucket: usize) -> u64 {
        self.counter(bucket).get()
    }

    fn counter(&self, bucket: usize) -> &Counter {
        &self.lines[bucket / PER_LINE][bucket % PER_LINE]
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::{Histogram, Scale};

    /// Asserts that the ranges follow each other from zero to the end, that none is empty, and that
    /// both ends of each belong to it.
    fn assert_sound(scale: Scale) {
        let mut next = 0;
        for bucket in 0..scale.buckets() {
            let range = scale.range(bucket);
            assert_eq!(range.start, next, "{scale:?}: a gap before {bucket}");
            assert!(range.start < range.end, "{scale:?}: {bucket} is empty");
            assert_eq!(scale.bucket_of(range.start), bucket, "{scale:?}");
            assert_eq!(scale.bucket_of(range.end - 1), bucket, "{scale:?}");
            next = range.end;
        }
        assert_eq!(next, u64::MAX);
        assert_eq!(scale.bucket_of(u64::MAX), scale.buckets() - 1);
    }

    #[test]
    fn a_linear_scale_has_equal_buckets() {
        let scale = Scale::Linear { width_ns: 50, buckets: 3 };
        assert_sound(scale);
        let ranges: Vec<_> = (0..3).map(|bucket| scale.range(bucket)).collect();
        assert_eq!(ranges, [0..50, 50..100, 100..u64::MAX]);
        assert_sound(Scale::Linear { width_ns: 1, buckets: 1 });
    }

    #[test]
    fn a_doubling_scale_doubles() {
        let scale = Scale::doubling(50_000, 4);
        assert_sound(scale);
        let ranges: Vec<_> = (0..4).map(|bucket| scale.range(bucket)).collect();
        let first = 65_536;
        let last = 4 * first..u64::MAX;
        assert_eq!(ranges, [0..first, first..2 * first, 2 * first..4 * first, last]);
        let finest = Scale::doubling(1, 10);
        assert_sound(finest);
        assert_eq!(finest.range(9), 256..u64::MAX);
    }

    #[test]
    fn a_log_scale_cuts_each_power_of_two_into_equal_parts() {
        let scale = Scale::log(2, 100, 60_000_000_000);
        assert_sound(scale);
        assert_eq!(scale.buckets(), 119);
        assert_eq!((scale.range(0), scale.range(1)), (0..96, 96..112));
        assert_eq!(Scale::log(10, 100, 60_000_000_000).buckets(), 27_291);
        let coarse = Scale::log(0, 20_000, 4_000_000);
        assert_eq!(
            (coarse.buckets(), coarse.range(0), coarse.range(1).end),
            (10, 0..16_384, 32_768)
        );
    }

    #[test]
    fn scales_past_the_end_of_the_numbers_are_sound() {
        assert_sound(Scale::log(10, 1 << 40, u64::MAX));
        assert_sound(Scale::log(0, 0, u64::MAX));
        assert_sound(Scale::log(3, 1_000, 1));
    }

    #[test]
    fn a_recorded_value_is_counted_once_in_its_bucket() {
        let histogram = Histogram::new(Scale::Linear { width_ns: 10, buckets: 40 });
        for ns in 0..1_000 {
            histogram.record(ns);
        }
        let counts: Vec<_> = (0..40).map(|bucket| histogram.count(bucket)).collect();
        assert_eq!(counts[..39], [10; 39]);
        assert_eq!(counts[39], 610);
    }

    proptest! {
        #[test]
        fn every_log_scale_is_sound(
            precision in 0u32..=10,
            min in 0u64..20_000_000_000,
            max in 1u64..1_000_000_000_000,
        ) {
            let scale = Scale::log(precision, min, max);
            assert_sound(scale);
            if max > min {
                // The scale covers at least the requested range.
                prop_assert!(scale.range(0).end <= min.max(1));
                prop_assert!(scale.range(scale.buckets() - 1).start >= max);
                prop_assert!(scale.range(scale.buckets() - 2).start < max);
            }
            for bucket in 1..scale.buckets() - 1 {
                let range = scale.range(bucket);
                let width = range.end - range.start;
                prop_assert!((width - 1) << precision <= range.start, "{range:?} is too wide");
            }
        }
    }
}
