//! Formats samples as a table, a record and raw numbers.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::measure::{Metric, median};
use crate::{CONTENDERS, ROWS};

/// The output of one server and its client.
pub(crate) struct Sample {
    pub(crate) round: usize,
    pub(crate) contender: &'static str,
    pub(crate) row: &'static str,
    pub(crate) outcome: Result<Vec<Metric>, String>,
}

/// Everything that was measured.
pub(crate) struct Run {
    pub(crate) machine: Vec<(&'static str, String)>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) how: String,
}

/// The note that explains the table.
const NOTE: &str = "Medians over rounds. Latencies and processor time are better if they are \
smaller, rates (/s) if they are larger; a ratio is turned so that above one the contender is better \
than `stock`, and that of `stock-again` is noise. At a fixed rate `echoes` says only whether the server \
kept up. Sorts take what processor time there is: look at `cpu_per_sort` there, not at `cpu`.";

/// Returns the factor by which a figure is better than another one of the same unit.
fn better(unit: &str, figure: f64, than: f64) -> f64 {
    if unit == "/s" { figure / than } else { than / figure }
}

impl Run {
    /// Returns the median over rounds of one figure.
    fn figure(&self, row: &str, metric: &str, contender: &str) -> Option<f64> {
        let same = |sample: &&Sample| (sample.row, sample.contender) == (row, contender);
        let metrics = self.samples.iter().filter(same).filter_map(|it| it.outcome.as_ref().ok());
        let of_name = |metrics: &Vec<Metric>| metrics.iter().find(|it| it.name == metric).cloned();
        let mut values: Vec<f64> = metrics.filter_map(of_name).map(|it| it.value).collect();
        (!values.is_empty()).then(|| median(&mut values))
    }

    /// Returns the rows and metrics that were measured, rows in their order.
    fn lines(&self) -> Vec<(&'static str, String, String)> {
        let mut lines = Vec::new();
        for row in &ROWS {
            for sample in self.samples.iter().filter(|sample| sample.row == row.name) {
                for Metric { name, unit, .. } in sample.outcome.iter().flatten() {
                    let line = (row.name, name.clone(), unit.clone());
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
            }
        }
        lines
    }

    /// Returns true if a contender has a column in the table. The usual ones always do.
    fn has(&self, contender: &str) -> bool {
        let is_extra = CONTENDERS.iter().any(|it| it.name == contender && it.is_extra);
        !is_extra || self.samples.iter().any(|sample| sample.contender == contender)
    }

    /// Returns the table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let names: Vec<&str> =
            CONTENDERS.iter().map(|it| it.name).filter(|name| self.has(name)).collect();
        let ratios = names.iter().filter(|name| **name != "stock");
        let heads = names.iter().map(|name| (*name).to_owned());
        let heads = heads.chain(ratios.clone().map(|name| format!("{name} better by")));
        let heads: Vec<String> = ["row".to_owned()].into_iter().chain(heads).collect();
        let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
        for (row, metric, unit) in self.lines() {
            let figure = |contender: &str| self.figure(row, &metric, contender);
            let cell = |value: Option<f64>, digits: usize| {
                value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
            };
            let mut cells = vec![format!("{row}.{metric} ({unit})")];
            cells.extend(names.iter().map(|name| cell(figure(name), 1)));
            cells.extend(ratios.clone().map(|contender| {
                let both = figure(contender).zip(figure("stock"));
                cell(both.map(|(figure, than)| better(&unit, figure, than)), 3)
            }));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        let _ = writeln!(text, "\n{NOTE}");
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
        let _ = writeln!(text, "- method: {}\n", self.how);
        text.push_str(&self.table());
        text.push_str("\n## Rows\n\n");
        for row in ROWS.iter().filter(|row| self.samples.iter().any(|it| it.row == row.name)) {
            let _ = writeln!(text, "- `{}`: {}", row.name, row.what);
        }
        for Sample { round, contender, row, outcome } in &self.samples {
            if let Err(why) = outcome {
                let _ = writeln!(text, "- FAILED: {contender}, {row}, round {round}: {why}");
            }
        }
        fs::write(&path, text)?;
        path.canonicalize()
    }

    fn csv(&self) -> String {
        let mut text = String::from("row,round,contender,metric,unit,value,failure\n");
        for Sample { round, contender, row, outcome } in &self.samples {
            let start = format!("{row},{round},{contender}");
            match outcome {
                Ok(metrics) => {
                    for Metric { name, unit, value, .. } in metrics {
                        let _ = writeln!(text, "{start},{name},{unit},{value:.3},");
                    }
                }
                Err(why) => {
                    let _ = writeln!(text, "{start},,,,{}", why.replace([',', '\n'], " "));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Sample};
    use crate::measure::Metric;

    #[test]
    fn above_one_is_better_whatever_the_unit() {
        let sample = |contender, us, rate| Sample {
            round: 0,
            contender,
            row: "mixed",
            outcome: Ok(vec![
                Metric::new("p99", "us", us, None),
                Metric::new("sorts", "/s", rate, None),
            ]),
        };
        let samples = vec![sample("stock", 200.0, 20.0), sample("blitz", 100.0, 30.0)];
        let table = Run { machine: Vec::new(), samples, how: String::new() }.table();
        assert!(table.contains("| mixed.p99 (us) | 200.0 | – | 100.0 | – | 2.000 |"), "{table}");
        assert!(table.contains("| mixed.sorts (/s) | 20.0 | – | 30.0 | – | 1.500 |"), "{table}");
    }
}
