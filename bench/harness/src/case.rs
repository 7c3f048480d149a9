//! Cases: figures that the driver measures in its own process.
//!
//! Operations of a few nanoseconds on data that only one loop uses depend on nothing that another
//! case leaves behind, so they need no process of their own, and a round of them takes milliseconds.

use crate::measure::Metric;
use crate::plan::{Plan, rounds};
use crate::report::Sample;

/// One row on one contender, with the data that its loop uses in all rounds.
pub struct Case {
    pub row: &'static str,
    pub contender: &'static str,
    run: Box<dyn FnMut() -> Option<f64>>,
}

impl Case {
    /// Creates a case; `run` returns the nanoseconds of an operation.
    pub fn new(
        row: &'static str,
        contender: &'static str,
        mut run: impl FnMut() -> f64 + 'static,
    ) -> Case {
        Case::that_may_fail(row, contender, move || Some(run()))
    }

    /// Creates a case of threads that must run at the same time; `run` returns `None` if they did
    /// not, so that there was nothing to measure.
    pub fn that_may_fail(
        row: &'static str,
        contender: &'static str,
        run: impl FnMut() -> Option<f64> + 'static,
    ) -> Case {
        Case { row, contender, run: Box::new(run) }
    }

    /// Runs the case once, unmeasured, because the first run touches its code and its data.
    pub fn warm_up(&mut self) {
        (self.run)();
    }

    /// Runs the case once.
    pub fn measure(&mut self, round: usize) -> Sample {
        let outcome = match (self.run)() {
            Some(value) => Ok(vec![Metric::new("", "ns", value, None)]),
            None => Err("its threads never ran at the same time: the machine is busy".into()),
        };
        Sample { round, contender: self.contender, row: self.row, workers: 1, outcome }
    }
}

/// Describes the method of a comparison of cases.
pub fn how(plan: &Plan, _: Option<&str>) -> String {
    format!("{}, all in one process", rounds(plan))
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn a_case_keeps_its_data_from_round_to_round() {
        let mut runs = 0.0;
        let mut case = Case::new("a", "tokio", move || {
            runs += 1.0;
            runs
        });
        case.warm_up();
        let values = [0, 1].map(|round| case.measure(round).outcome.map(|it| it[0].value));
        assert_eq!(values, [Ok(2.0), Ok(3.0)]);
    }

    #[test]
    fn a_round_with_nothing_to_measure_is_a_failure() {
        let sample = Case::that_may_fail("a", "tokio", || None).measure(0);
        assert!(sample.outcome.is_err_and(|why| why.contains("busy")));
    }
}
