//! Formats samples as a table, a record and raw numbers.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::measure::{Metric, median};
use crate::{CONTENDERS, ROWS};

/// The output of one child.
pub(crate) struct Sample {
    pub(crate) round: usize,
    pub(crate) contender: String,
    pub(crate) row: &'static str,
    pub(crate) threads: usize,
    pub(crate) outcome: Result<Vec<Metric>, String>,
}

/// Everything that was measured.
pub(crate) struct Run {
    pub(crate) machine: Vec<(&'static str, String)>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) how: String,
}

/// Ratios of two contenders' medians: the column's head, and the two.
const RATIOS: [(&str, &str, &str); 8] = [
    ("blitz/rayon", "blitz", "rayon"),
    ("blitz/sequential", "blitz", "sequential"),
    ("blitz/chili", "blitz", "chili"),
    ("native/chili", "native", "chili"),
    ("native/sequential", "native", "sequential"),
    ("on-blitz/rayon", "on-blitz", "rayon"),
    ("blitz/futex", "blitz", "futex"),
    ("noise (again/rayon)", "rayon-again", "rayon"),
];

/// Ratios of processor time, where it was measured.
const CPU_RATIOS: [(&str, &str, &str); 2] =
    [("cpu blitz/rayon", "blitz", "rayon"), ("cpu on-blitz/rayon", "on-blitz", "rayon")];

/// Trees that have a row for each order of visit. chili runs the second closure first, so its
/// figure for one of a pair is comparable with the others' figure for the other one.
const BOTH_ORDERS: [(&str, &str); 2] = [("tree_1m", "tree_1m_right"), ("tree_8m", "tree_8m_right")];

/// The note below the table.
const NOTE: &str = "`*`: chili runs the second closure first, so this is against its figure in the \
row of the other order, where it visits a tree as the others do here.";

/// Returns the row in which chili visits a tree in the order of this one, if there is one.
fn crossed(row: &str) -> Option<&'static str> {
    BOTH_ORDERS.iter().find_map(|&(left, right)| match row {
        _ if row == left => Some(right),
        _ if row == right => Some(left),
        _ => None,
    })
}

impl Run {
    /// Returns the median over rounds of one figure.
    fn figure(&self, row: &str, threads: usize, metric: &str, contender: &str) -> Option<f64> {
        self.median(row, threads, metric, contender, |metric| Some(metric.value))
    }

    fn median(
        &self,
        row: &str,
        threads: usize,
        metric: &str,
        contender: &str,
        of: impl Fn(Metric) -> Option<f64>,
    ) -> Option<f64> {
        let same = |sample: &&Sample| {
            (sample.row, sample.threads, sample.contender.as_str()) == (row, threads, contender)
        };
        let metrics = self.samples.iter().filter(same).filter_map(|it| it.outcome.as_ref().ok());
        let of_name = |metrics: &Vec<Metric>| metrics.iter().find(|it| it.name == metric).cloned();
        let mut values: Vec<f64> = metrics.filter_map(of_name).filter_map(of).collect();
        (!values.is_empty()).then(|| median(&mut values))
    }

    /// Returns the rows, counts and metrics that were measured, in order.
    fn lines(&self) -> Vec<(&'static str, usize, String, String)> {
        let mut lines = Vec::new();
        for Sample { row, threads, outcome, .. } in &self.samples {
            for Metric { name, unit, .. } in outcome.iter().flatten() {
                let line = (*row, *threads, name.clone(), unit.clone());
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// Returns the table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let names: Vec<&str> = CONTENDERS.iter().map(|(name, _)| *name).collect();
        let heads = RATIOS.iter().chain(&CPU_RATIOS).map(|(head, ..)| *head);
        let heads: Vec<&str> =
            ["row", "threads"].into_iter().chain(names.clone()).chain(heads).collect();
        let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
        for (row, threads, metric, unit) in self.lines() {
            let name = if metric.is_empty() { row.to_owned() } else { format!("{row}.{metric}") };
            let mut cells = vec![format!("{name} ({unit})"), threads.to_string()];
            let figure = |contender: &str| self.figure(row, threads, &metric, contender);
            let cell =
                |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
            cells.extend(names.iter().map(|name| cell(figure(name))));
            cells.extend(RATIOS.iter().map(|&(_, over, under)| {
                let other = crossed(row).filter(|_| under == "chili");
                let under = self.figure(other.unwrap_or(row), threads, &metric, under);
                let ratio = figure(over).zip(under).map(|(over, under)| over / under);
                let mark = if ratio.is_some() && other.is_some() { " *" } else { "" };
                cell(ratio) + mark
            }));
            let cpu =
                |contender| self.median(row, threads, &metric, contender, |metric| metric.cpu_ns);
            cells.extend(CPU_RATIOS.iter().map(|&(_, over, under)| {
                cell(cpu(over).zip(cpu(under)).map(|(over, under)| over / under))
            }));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        if text.contains(" * |") {
            let _ = writeln!(text, "\n{NOTE}");
        }
        text
    }

    /// Writes `<date>-<name>.md` and `.csv`; a record of the same day is kept and the new one
    /// numbered. Returns the path of the first.
    pub(crate) fn record(&self, directory: &Path, name: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(directory)?;
        let stem = format!("{}-{name}", crate::machine::today());
        let numbered = |number: usize| match number {
            1 => directory.join(format!("{stem}.md")),
            _ => directory.join(format!("{stem}-{number}.md")),
        };
        let path = (1..).map(numbered).find(|path| !path.exists()).expect("numbers do not end");
        fs::write(path.with_extension("csv"), self.csv())?;
        let mut text = format!("# {name}, {}\n\n", crate::machine::today());
        for (what, value) in &self.machine {
            let _ = writeln!(text, "- {what}: {value}");
        }
        let _ = writeln!(text, "- method: {}", self.how);
        text.push_str("\nMedians over rounds; smaller is better, in ratios too.\n\n");
        text.push_str(&self.table());
        text.push_str("\n## Rows\n\n");
        for row in ROWS.iter().filter(|row| self.samples.iter().any(|it| it.row == row.name)) {
            let _ = writeln!(text, "- `{}`: {}", row.name, row.what);
        }
        for Sample { round, contender, row, threads, outcome } in &self.samples {
            if let Err(why) = outcome {
                let _ = writeln!(
                    text,
                    "- FAILED: {contender}, {row}, w{threads}, round {round}: {why}"
                );
            }
        }
        fs::write(&path, text)?;
        path.canonicalize()
    }

    fn csv(&self) -> String {
        let mut text =
            String::from("row,threads,round,contender,metric,unit,value,cpu_ns,failure\n");
        for Sample { round, contender, row, threads, outcome } in &self.samples {
            let start = format!("{row},{threads},{round},{contender}");
            match outcome {
                Ok(metrics) => {
                    for Metric { name, unit, value, cpu_ns } in metrics {
                        let cpu = cpu_ns.map_or(String::new(), |cpu| format!("{cpu:.3}"));
                        let _ = writeln!(text, "{start},{name},{unit},{value:.3},{cpu},");
                    }
                }
                Err(why) => {
                    let _ = writeln!(text, "{start},,,,,{}", why.replace([',', '\n'], " "));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{NOTE, Run, Sample};
    use crate::measure::Metric;

    fn sample(round: usize, contender: &str, row: &'static str, value: f64) -> Sample {
        let outcome = Ok(vec![Metric::new("", "ns", value, None)]);
        Sample { round, contender: contender.into(), row, threads: 1, outcome }
    }

    fn table(samples: Vec<Sample>) -> String {
        Run { machine: Vec::new(), samples, how: String::new() }.table()
    }

    #[test]
    fn a_ratio_is_that_of_the_medians() {
        let table = table(vec![
            sample(0, "rayon", "fib", 10.0),
            sample(1, "rayon", "fib", 30.0),
            sample(2, "rayon", "fib", 20.0),
            sample(0, "blitz", "fib", 5.0),
        ]);
        assert!(table.contains("| fib (ns) | 1 | – | 20.000 | – | 5.000 |"));
        assert!(table.contains("| 0.250 |"));
        assert!(!table.contains(NOTE));
    }

    #[test]
    fn chili_is_compared_in_the_order_in_which_it_visits() {
        let table = table(vec![
            sample(0, "blitz", "tree_1m", 6.0),
            sample(0, "chili", "tree_1m", 4.0),
            sample(0, "blitz", "tree_1m_right", 2.0),
            sample(0, "chili", "tree_1m_right", 12.0),
        ]);
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("| tree_1m (").contains("| 0.500 * |"), "{table}");
        assert!(line("| tree_1m_right (").contains("| 0.500 * |"), "{table}");
        assert!(table.contains(NOTE));
    }
}
