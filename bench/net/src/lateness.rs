//! Statistics of lateness.

use std::time::{Duration, Instant};

use harness::measure::{Metric, percentile};

/// Returns the nanoseconds past `deadline`; it must not be called before it.
pub(crate) fn late_ns(deadline: Instant) -> f64 {
    // Early is an error for every contender, and would show as a good figure.
    let now = Instant::now();
    assert!(now >= deadline, "a timer was early by {:?}", deadline - now);
    (now - deadline).as_nanos() as f64
}

/// Returns median, 99th percentile and maximum, in microseconds.
pub(crate) fn figures(mut late: Vec<f64>) -> Vec<Metric> {
    let mut at = |name: &str, percent: usize| {
        Metric::new(name, "ns", percentile(&mut late, percent), None).in_us()
    };
    vec![at("p50", 50), at("p99", 99), at("max", 100)]
}

/// The least number of samples; more are taken until the budget is used up. A p99 of fewer is one
/// of the three largest.
pub(crate) const LEAST: usize = 300;

/// Returns true if a loop that takes samples should continue.
pub(crate) fn wants_more(taken: usize, start: Instant, budget: Duration) -> bool {
    taken < LEAST || start.elapsed() < budget
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_microseconds() {
        let metrics = figures((1..=100).map(|number| f64::from(number) * 1000.0).collect());
        let values: Vec<f64> = metrics.iter().map(|metric| metric.value).collect();
        assert_eq!(values, [50.0, 99.0, 100.0]);
    }

    #[test]
    #[should_panic(expected = "early")]
    fn early_is_no_figure() {
        late_ns(Instant::now() + Duration::from_secs(3600));
    }
}
