//! The outcome of a load: how many requests were completed in which time, and their latencies.
//!
//! Load generators and clients print it as one line, which the driver reads; `tally.lua` makes wrk
//! print the same.

/// The counts and latencies of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) requests: f64,
    /// The time that they took together, in microseconds.
    pub(crate) span_us: f64,
    /// The 50th, 99th and 99.9th percentile of the latency, in microseconds.
    pub(crate) percentiles_us: [f64; 3],
    /// Requests that failed, for whatever reason.
    pub(crate) errors: f64,
}

/// The ranks of the percentiles.
const RANKS: [f64; 3] = [0.5, 0.99, 0.999];

impl Tally {
    /// Returns the tally of latencies in nanoseconds that were measured within `span_us`. Each is
    /// that of a batch of `batch` requests.
    pub(crate) fn of(mut latencies_ns: Vec<u32>, batch: usize, span_us: f64) -> Tally {
        latencies_ns.sort_unstable();
        let at = |rank: f64| {
            let place = (latencies_ns.len() as f64 * rank).ceil() as usize;
            latencies_ns.get(place.max(1) - 1).map_or(f64::NAN, |ns| f64::from(*ns) / 1e3)
        };
        let requests = (latencies_ns.len() * batch) as f64;
        Tally { requests, span_us, percentiles_us: RANKS.map(at), errors: 0.0 }
    }

    /// Returns the line that the driver reads.
    pub(crate) fn line(&self) -> String {
        let Tally { requests, span_us, percentiles_us: [p50, p99, p999], errors } = self;
        format!("tally {requests:.0} {span_us:.0} {p50:.3} {p99:.3} {p999:.3} {errors:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn percentiles_are_of_the_sorted_latencies() {
        let tally = Tally::of((1..=2000).rev().map(|us| us * 1000).collect(), 1, 5e6);
        assert_eq!(tally.percentiles_us, [1000.0, 1980.0, 1998.0]);
        assert_eq!(tally.line(), "tally 2000 5000000 1000.000 1980.000 1998.000 0");
    }

    #[test]
    fn a_batch_counts_as_its_requests() {
        assert_eq!(Tally::of(vec![7, 9], 100, 1.0).requests, 200.0);
    }
}
