//! Formats samples as a record and raw numbers, and computes the medians that tables consist of.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Comparison;
use crate::contender::Contender;
use crate::measure::{Metric, median, quartile};

/// The output of one child.
pub struct Sample {
    pub round: usize,
    pub contender: &'static str,
    pub row: &'static str,
    pub workers: usize,
    pub outcome: Result<Vec<Metric>, String>,
}

/// Everything that was measured.
pub struct Run {
    pub comparison: &'static Comparison,
    pub machine: Vec<(&'static str, String)>,
    pub contenders: Vec<&'static Contender>,
    pub samples: Vec<Sample>,
    pub how: String,
}

/// One line of a table: a row's figure at a number of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub row: &'static str,
    pub workers: usize,
    /// The metric's name: empty for a row with one figure.
    pub metric: String,
    pub unit: String,
}

impl Line {
    /// Returns the row's name, with the metric's behind a dot if it has one.
    pub fn name(&self) -> String {
        match self.metric.as_str() {
            "" => self.row.to_string(),
            metric => format!("{}.{metric}", self.row),
        }
    }
}

impl Run {
    pub fn failures(&self) -> usize {
        self.samples.iter().filter(|sample| sample.outcome.is_err()).count()
    }

    /// Returns true if a contender took part.
    pub fn has(&self, contender: &str) -> bool {
        self.contenders.iter().any(|known| known.name == contender)
    }

    /// Returns the samples of a contender for a line's row.
    pub fn samples_of<'a>(
        &'a self,
        line: &'a Line,
        contender: &'a str,
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            (sample.contender, sample.row, sample.workers) == (contender, line.row, line.workers)
        })
    }

    /// Returns a line's metric in each round in which the contender has it.
    pub fn values(
        &self,
        line: &Line,
        contender: &str,
        pick: impl Fn(&Metric) -> Option<f64>,
    ) -> Vec<f64> {
        let metric_of = |sample: &Sample| {
            let metrics = sample.outcome.as_ref().ok()?;
            metrics.iter().find(|metric| metric.name == line.metric).and_then(&pick)
        };
        self.samples_of(line, contender).filter_map(metric_of).collect()
    }

    /// Returns the median over rounds of a contender's figure.
    pub fn figure(&self, line: &Line, contender: &str) -> Option<f64> {
        median_of(self.values(line, contender, |metric| Some(metric.value)))
    }

    /// Returns the lower quartile, the median and the upper quartile over rounds of a contender's
    /// figure. Each of them is the figure of one round.
    pub fn quartiles(&self, line: &Line, contender: &str) -> Option<[f64; 3]> {
        let mut values = self.values(line, contender, |metric| Some(metric.value));
        (!values.is_empty()).then(|| [1, 2, 3].map(|quarters| quartile(&mut values, quarters)))
    }

    /// Returns the median over rounds of a contender's figure as `format` prints it, or a dash if
    /// there is none. Failures show even when other rounds succeeded.
    pub fn printed(&self, line: &Line, contender: &str, format: impl Fn(f64) -> String) -> String {
        let failed = |sample: &&Sample| sample.outcome.is_err();
        let all = self.samples_of(line, contender).count();
        let failures = self.samples_of(line, contender).filter(failed).count();
        match (self.figure(line, contender), failures) {
            (None, 0) => "–".into(),
            (None, _) => "FAILED".into(),
            (Some(value), 0) => format(value),
            (Some(value), _) => format!("{} ({failures} of {all} FAILED)", format(value)),
        }
    }

    /// Returns the median over rounds of a contender's figure with `digits` digits after the point.
    pub fn cell(&self, line: &Line, contender: &str, digits: usize) -> String {
        self.printed(line, contender, |value| cell(Some(value), digits))
    }

    /// Returns the contenders of a row, in the order in which its first round measured them.
    pub fn contenders_of(&self, row: &str) -> Vec<&'static str> {
        let first = self.samples.iter().filter(|sample| (sample.row, sample.round) == (row, 0));
        first.map(|sample| sample.contender).collect()
    }

    /// Returns the median over rounds of the processor time of an operation.
    pub fn cpu(&self, line: &Line, contender: &str) -> Option<f64> {
        median_of(self.values(line, contender, |metric| metric.cpu_ns))
    }

    /// Returns the lines of a table, rows in the order they were measured. A row whose children all
    /// failed keeps a line, because it must be seen.
    pub fn lines(&self) -> Vec<Line> {
        let mut keys: Vec<(&'static str, usize)> = Vec::new();
        for sample in &self.samples {
            let key = (sample.row, sample.workers);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.into_iter().flat_map(|(row, workers)| self.lines_of(row, workers)).collect()
    }

    fn lines_of(&self, row: &'static str, workers: usize) -> Vec<Line> {
        let line = |metric: &str, unit: &str| Line {
            row,
            workers,
            metric: metric.to_owned(),
            unit: unit.to_owned(),
        };
        let mut lines = Vec::new();
        for sample in self.samples.iter().filter(|it| (it.row, it.workers) == (row, workers)) {
            for Metric { name, unit, .. } in sample.outcome.iter().flatten() {
                let line = line(name, unit);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        if lines.is_empty() {
            lines.push(line("", ""));
        }
        lines
    }

    /// Returns the table, as Markdown.
    pub fn table(&self) -> String {
        (self.comparison.table)(self)
    }

    /// Writes `<date>-<name>.md` and `.csv`; a record of the same day is kept and
    /// the new one numbered. Returns the path of the first.
    pub fn record(&self, directory: &Path, name: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(directory)?;
        let stem = format!("{}-{name}", crate::machine::today());
        let numbered = |number: usize| match number {
            1 => directory.join(format!("{stem}.md")),
            _ => directory.join(format!("{stem}-{number}.md")),
        };
        let path = (1..).map(numbered).find(|path| !path.exists()).expect("numbers do not end");
        fs::write(path.with_extension("csv"), self.csv())?;
        fs::write(&path, self.markdown(name))?;
        path.canonicalize()
    }

    fn markdown(&self, name: &str) -> String {
        let mut text = format!("# {name}, {}\n\n", crate::machine::today());
        for (what, value) in &self.machine {
            let _ = writeln!(text, "- {what}: {value}");
        }
        let _ = writeln!(text, "- method: {}\n", self.how);
        if !self.comparison.intro.is_empty() {
            let _ = writeln!(text, "{}\n", self.comparison.intro);
        }
        text.push_str(&self.table());
        text.push_str(self.comparison.claims.map_or("", |claims| claims.note));
        text.push_str("\n## Rows\n\n");
        let measured = |name: &str| self.samples.iter().any(|sample| sample.row == name);
        for row in self.comparison.rows.iter().filter(|row| measured(row.name)) {
            let _ = writeln!(text, "- `{}`: {}", row.name, row.what);
        }
        if self.failures() > 0 {
            text.push_str("\n## Failures\n\n");
        }
        for sample in &self.samples {
            if let Err(why) = &sample.outcome {
                let Sample { round, contender, row, workers, .. } = sample;
                let workers = self.counted(format!(", w{workers}"));
                let _ = writeln!(text, "- {contender}, {row}{workers}, round {round}: {why}");
            }
        }
        text
    }

    fn csv(&self) -> String {
        let head = self.counted(format!(",{}", self.comparison.counted.unwrap_or_default()));
        let cpu = self.counted(",cpu_ns".to_owned());
        let mut text = format!("row{head},round,contender,metric,unit,value{cpu},failure\n");
        for Sample { round, contender, row, workers, outcome } in &self.samples {
            let workers = self.counted(format!(",{workers}"));
            let mut line = |rest: String| {
                let _ = writeln!(text, "{row}{workers},{round},{contender},{rest}");
            };
            match outcome {
                Ok(metrics) => metrics.iter().for_each(|metric| {
                    let Metric { name, unit, value, cpu_ns } = metric;
                    let cpu = cpu_ns.map_or(String::new(), |cpu| format!("{cpu:.3}"));
                    let cpu = self.counted(format!(",{cpu}"));
                    line(format!("{name},{unit},{value:.3}{cpu},"));
                }),
                Err(why) => {
                    let cpu = self.counted(",".to_owned());
                    line(format!(",,{cpu},\"{}\"", why.replace('"', "'")));
                }
            }
        }
        text
    }

    /// Returns a part of the text that stands there only if the comparison counts workers.
    fn counted(&self, part: String) -> String {
        if self.comparison.counted.is_some() { part } else { String::new() }
    }
}

fn median_of(mut values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| median(&mut values))
}

/// Returns a number as it stands in a table, or a dash.
pub fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns a table as Markdown, a line of text for each row.
pub fn plain(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if number == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Line, Run, Sample, plain};
    use crate::Comparison;
    use crate::check::{run_of, uncounted};
    use crate::measure::Metric;

    #[test]
    fn failures_are_seen_in_the_record_and_the_numbers() {
        let run = run_of(&[("tokio", &[Some(1.0), None]), ("blitz", &[None, None])]);
        assert_eq!(run.failures(), 3);
        assert!(run.markdown("x").contains("- blitz, a, w2, round 1: did not end"));
        assert_eq!(run.csv().matches("did not end").count(), 3);
    }

    #[test]
    fn every_line_of_the_numbers_has_the_columns_of_their_head() {
        let run = run_of(&[("tokio", &[Some(1.0), None])]);
        assert!(run.csv().starts_with("row,workers,round,contender,metric,unit,value,cpu_ns,"));
        let uncounted = uncounted(&[("tokio", &[Some(1.0), None])]);
        assert!(uncounted.csv().starts_with("row,round,contender,metric,unit,value,failure\n"));
        for (run, commas) in [(run, 8), (uncounted, 6)] {
            let csv = run.csv();
            assert!(csv.lines().all(|line| line.matches(',').count() == commas), "{csv}");
        }
    }

    #[test]
    fn rows_keep_their_order_and_their_metrics_together() {
        let sample = |round, row, names: &[&str]| Sample {
            round,
            contender: "tokio",
            row,
            workers: 1,
            outcome: Ok(names.iter().map(|name| Metric::new(name, "us", 1.0, None)).collect()),
        };
        let samples =
            vec![sample(0, "b", &["p50"]), sample(0, "a", &[""]), sample(1, "b", &["p50", "p99"])];
        let run = Run { samples, ..run_of(&[]) };
        let names: Vec<String> = run.lines().iter().map(Line::name).collect();
        assert_eq!(names, ["b.p50", "b.p99", "a"]);
    }

    #[test]
    fn a_cell_shows_failures_and_what_was_not_measured() {
        let run = run_of(&[
            ("tokio", &[Some(1.0), None, Some(3.0)]),
            ("blitz", &[None]),
            ("smol", &[Some(0.5)]),
        ]);
        let line = &run.lines()[0];
        let cells = ["tokio", "blitz", "smol", "go"].map(|name| run.cell(line, name, 1));
        assert_eq!(cells, ["2.0 (1 of 3 FAILED)", "FAILED", "0.5", "–"]);
        assert_eq!(run.contenders_of("a"), ["tokio", "blitz", "smol"]);
        assert!(run.contenders_of("b").is_empty());
    }

    #[test]
    fn quartiles_are_over_rounds() {
        let run = run_of(&[("tokio", &[Some(3.0), Some(1.0), None, Some(2.0)])]);
        let line = &run.lines()[0];
        assert_eq!(run.quartiles(line, "tokio"), Some([1.0, 2.0, 2.0]));
        assert_eq!(run.quartiles(line, "blitz"), None);
    }

    #[test]
    fn a_second_record_of_a_day_does_not_replace_the_first() {
        let place = std::env::temp_dir().join(format!("bench-record-{}", std::process::id()));
        let run = run_of(&[("tokio", &[Some(1.0)])]);
        let first = run.record(&place, "x").expect("a temporary directory can be written");
        let second = run.record(&place, "x").expect("a temporary directory can be written");
        assert_ne!(first, second);
        assert!(first.with_extension("csv").exists() && second.exists());
        fs::remove_dir_all(place).expect("it was made above");
    }

    #[test]
    fn a_record_has_the_table_of_its_comparison() {
        static OWN: Comparison = Comparison {
            table: |_| plain(&[vec!["row".into(), "own".into()], vec!["a".into(), "1".into()]]),
            intro: "",
            ..Comparison::new("own", "")
        };
        let run = Run { comparison: &OWN, ..run_of(&[("tokio", &[Some(1.0)])]) };
        let text = run.markdown("own");
        assert!(text.contains("- method: by hand\n\n| row | own |\n|---|---|\n| a | 1 |\n"));
    }
}
