//! Checks that the tests of a comparison make, and an example for the tests of this crate.

use std::time::Duration;

use crate::measure::Metric;
use crate::report::{Run, Sample};
use crate::{Comparison, Row};

/// Checks that names are unique, and that rows are lacked by contenders that exist.
///
/// # Panics
/// Panics if they are not.
pub fn names(comparison: &Comparison) {
    let mut names: Vec<_> = comparison.rows.iter().map(|row| row.name).collect();
    names.sort_unstable();
    let doubled = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(doubled, None, "row names are unique");
    for name in comparison.rows.iter().flat_map(|row| row.lacks) {
        assert!(comparison.contenders.iter().any(|known| known.name == *name), "{name}");
    }
}

/// Checks that every row, with the smallest budget, ends on its own and gives plausible figures.
///
/// # Panics
/// Panics if one does not.
pub fn every_row_ends(rows: &[Row], run: impl Fn(&str, usize, Duration) -> Option<Vec<Metric>>) {
    for row in rows {
        for workers in [1, 2].into_iter().filter(|&workers| row.runs_with(workers)) {
            let metrics = run(row.name, workers, Duration::ZERO);
            let metrics = metrics.unwrap_or_else(|| panic!("{} is missing", row.name));
            let timed = |metric: &&Metric| metric.unit == "ns";
            assert!(metrics.iter().filter(timed).all(|metric| metric.value > 0.0));
            assert!(metrics.iter().all(|metric| metric.value.is_finite()), "{metrics:?}");
        }
    }
}

/// Returns the output of a child that succeeded, as tests of tables need it.
pub fn sample(
    round: usize,
    contender: &'static str,
    row: &'static str,
    metrics: Vec<Metric>,
) -> Sample {
    Sample { round, contender, row, workers: 1, outcome: Ok(metrics) }
}

/// Returns a run with these samples and without a machine, as tests of tables need it.
pub fn run(comparison: &'static Comparison, samples: Vec<Sample>) -> Run {
    let measured = |name| samples.iter().any(|sample| sample.contender == name);
    let contenders = comparison.contenders.iter().filter(|it| measured(it.name)).collect();
    Run { comparison, machine: Vec::new(), contenders, samples, how: "by hand".into() }
}

#[cfg(test)]
pub use example::{EXAMPLE, run_of, uncounted};

#[cfg(test)]
mod example {
    use crate::contender::Contender;
    use crate::measure::Metric;
    use crate::plan::Extra;
    use crate::report::{Run, Sample};
    use crate::{Comparison, Row};

    pub static EXAMPLE: Comparison = Comparison {
        rows: &[Row::new("a", "one"), Row::new("b", "another").lacked_by(&["smol"])],
        contenders: &[
            Contender::TOKIO,
            Contender::TOKIO_AGAIN,
            Contender::BLITZ,
            Contender::new("smol", "another").only_when_named(),
        ],
        has_blitz: false,
        extras: &[Extra { option: "--rate", default: 10, what: "requests in a second" }],
        ..Comparison::new("example", env!("CARGO_MANIFEST_DIR"))
    };

    static UNCOUNTED: Comparison = Comparison { counted: None, ..Comparison::new("example", "") };

    /// Returns a row of one figure: `values` are a contender's rounds, `None` a failure.
    fn samples(contender: &'static str, values: &[Option<f64>]) -> Vec<Sample> {
        let outcome = |value: &Option<f64>| match value {
            Some(value) => Ok(vec![Metric::new("", "ns", *value, Some(value * 2.0))]),
            None => Err("did not end within 30 s".to_string()),
        };
        let sample = |(round, value)| Sample {
            round,
            contender,
            row: "a",
            workers: 2,
            outcome: outcome(value),
        };
        values.iter().enumerate().map(sample).collect()
    }

    /// Returns a run of the example with these contenders' rounds.
    pub fn run_of(all: &[(&'static str, &[Option<f64>])]) -> Run {
        super::run(&EXAMPLE, all.iter().flat_map(|(name, values)| samples(name, values)).collect())
    }

    /// Returns the same of a comparison that does not count workers.
    pub fn uncounted(all: &[(&'static str, &[Option<f64>])]) -> Run {
        Run { comparison: &UNCOUNTED, ..run_of(all) }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLE, every_row_ends, names};
    use crate::{Comparison, Metric, Row};

    #[test]
    fn names_that_are_right_pass() {
        names(&EXAMPLE);
    }

    #[test]
    #[should_panic(expected = "unique")]
    fn a_name_that_stands_twice_is_found() {
        static TWICE: Comparison = Comparison {
            rows: &[Row::new("a", ""), Row::new("a", "")],
            ..Comparison::new("twice", "")
        };
        names(&TWICE);
    }

    #[test]
    #[should_panic(expected = "missing")]
    fn a_row_without_a_workload_is_found() {
        let only_a = |row: &str, _, _| (row == "a").then(|| vec![Metric::new("", "ns", 1.0, None)]);
        every_row_ends(EXAMPLE.rows, only_a);
    }
}
