//! Formats samples as a table, a record and raw numbers.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::CLAIMS;
use crate::measure::{Metric, median};
use crate::workloads::ROWS;

/// The output of one child.
pub(crate) struct Sample {
    pub(crate) round: usize,
    pub(crate) contender: String,
    pub(crate) row: &'static str,
    pub(crate) workers: usize,
    pub(crate) outcome: Result<Vec<Metric>, String>,
}

/// Everything that was measured.
pub(crate) struct Run {
    pub(crate) machine: Vec<(&'static str, String)>,
    pub(crate) contenders: Vec<String>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) how: String,
}

/// One line of the table: a row's figure at a number of workers.
struct Line<'a> {
    run: &'a Run,
    row: &'static str,
    workers: usize,
    metric: &'a Metric,
}

/// The columns that are always there; others follow when they were measured.
const COLUMNS: [&str; 9] = [
    "row",
    "workers",
    "tokio",
    "blitz",
    "ratio (tokio/blitz)",
    "smol",
    "go",
    "noise floor",
    "cpu ratio (blitz/tokio)",
];

impl Run {
    pub(crate) fn failures(&self) -> usize {
        self.samples.iter().filter(|sample| sample.outcome.is_err()).count()
    }

    /// Returns the table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let extra: Vec<&String> = self
            .contenders
            .iter()
            .filter(|name| crate::ONLY_WHEN_NAMED.contains(&name.as_str()))
            .collect();
        let mut rows = vec![COLUMNS.iter().map(|column| column.to_string()).collect::<Vec<_>>()];
        rows[0].extend(extra.iter().map(|name| name.to_string()));
        rows[0].extend(CLAIMS.map(|claims| claims.whose.to_string()));
        for line in self.lines() {
            let mut cells = line.cells();
            cells.extend(extra.iter().map(|name| line.figure(name)));
            cells.extend(CLAIMS.map(|claims| claims.of(&line.name()).to_string()));
            rows.push(cells);
        }
        aligned(&rows)
    }

    /// Returns the rows in the order they were measured. A row whose children all failed keeps a
    /// line, because it must be seen.
    fn lines(&self) -> Vec<Line<'_>> {
        static NO_FIGURE: Metric =
            Metric { name: String::new(), unit: String::new(), value: f64::NAN, cpu_ns: None };
        let mut lines: Vec<Line<'_>> = Vec::new();
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for sample in &self.samples {
            let key = (sample.row, sample.workers);
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let same = |other: &&Sample| (other.row, other.workers) == key;
            let measured =
                self.samples.iter().filter(same).find_map(|sample| sample.outcome.as_ref().ok());
            let metrics = measured.map_or(std::slice::from_ref(&NO_FIGURE), Vec::as_slice);
            lines.extend(metrics.iter().map(|metric| Line {
                run: self,
                row: sample.row,
                workers: sample.workers,
                metric,
            }));
        }
        lines
    }

    /// Writes `<date>-<name>.md` and `.csv`; a record of the same day is kept and
    /// the new one numbered. Returns the path of the first.
    pub(crate) fn record(&self, directory: &Path, name: &str) -> io::Result<PathBuf> {
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
            writeln!(text, "- {what}: {value}").expect("a string takes all");
        }
        writeln!(text, "- method: {}", self.how).expect("a string takes all");
        text.push_str(
            "\nMedians over rounds; smaller is better; `~` marks a ratio within the noise \
             floor.\nThe README of `bench/` says how each column comes about.\n\n",
        );
        text.push_str(&self.table());
        text.push_str(CLAIMS.map_or("", |claims| claims.note));
        text.push_str("\n## Rows\n\n");
        for row in ROWS.iter().filter(|row| self.samples.iter().any(|s| s.row == row.name)) {
            writeln!(text, "- `{}`: {}", row.name, row.what).expect("a string takes all");
        }
        if self.failures() > 0 {
            text.push_str("\n## Failures\n\n");
        }
        for sample in &self.samples {
            if let Err(why) = &sample.outcome {
                let Sample { round, contender, row, workers, .. } = sample;
                writeln!(text, "- {contender}, {row}, w{workers}, round {round}: {why}")
                    .expect("a string takes all");
            }
        }
        text
    }

    fn csv(&self) -> String {
        let mut text =
            String::from("row,workers,round,contender,metric,unit,value,cpu_ns,failure\n");
        for Sample { round, contender, row, workers, outcome } in &self.samples {
            let mut line = |rest: String| {
                writeln!(text, "{row},{workers},{round},{contender},{rest}")
                    .expect("a string takes all");
            };
            match outcome {
                Ok(metrics) => metrics.iter().for_each(|metric| {
                    let Metric { name, unit, value, cpu_ns } = metric;
                    let cpu = cpu_ns.map_or(String::new(), |cpu| format!("{cpu:.3}"));
                    line(format!("{name},{unit},{value:.3},{cpu},"));
                }),
                Err(why) => line(format!(",,,,\"{}\"", why.replace('"', "'"))),
            }
        }
        text
    }
}

impl Line<'_> {
    fn name(&self) -> String {
        match self.metric.name.as_str() {
            "" => self.row.to_string(),
            metric => format!("{}.{metric}", self.row),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name(),
            self.workers.to_string(),
            self.figure("tokio"),
            self.figure("blitz"),
            self.ratio(),
            self.figure("smol"),
            self.figure("go"),
            self.noise(),
            self.cpu_ratio(),
        ]
    }

    /// Returns this line's metric in each round in which the contender has it.
    fn values(&self, contender: &str, pick: impl Fn(&Metric) -> Option<f64>) -> Vec<f64> {
        let is_mine = |sample: &&Sample| {
            (sample.contender.as_str(), sample.row, sample.workers)
                == (contender, self.row, self.workers)
        };
        let metric_of = |sample: &Sample| {
            let metrics = sample.outcome.as_ref().ok()?;
            metrics.iter().find(|metric| metric.name == self.metric.name).and_then(&pick)
        };
        self.run.samples.iter().filter(is_mine).filter_map(metric_of).collect()
    }

    /// Returns the median over rounds.
    fn wall(&self, contender: &str) -> Option<f64> {
        let mut values = self.values(contender, |metric| Some(metric.value));
        (!values.is_empty()).then(|| median(&mut values))
    }

    fn cpu(&self, contender: &str) -> Option<f64> {
        let mut values = self.values(contender, |metric| metric.cpu_ns);
        (!values.is_empty()).then(|| median(&mut values))
    }

    /// Returns the figure as printed; failures show even when other rounds succeeded.
    fn figure(&self, contender: &str) -> String {
        let is_mine = |sample: &&Sample| {
            (sample.contender.as_str(), sample.row, sample.workers)
                == (contender, self.row, self.workers)
        };
        let failed = |sample: &&Sample| sample.outcome.is_err();
        let all = self.run.samples.iter().filter(is_mine).count();
        let failures = self.run.samples.iter().filter(is_mine).filter(failed).count();
        match self.wall(contender) {
            None if all == 0 => "–".into(),
            None => "FAILED".into(),
            Some(value) => {
                let figure = format!("{} {}", short(value), self.metric.unit);
                match failures {
                    0 => figure,
                    _ => format!("{figure} ({failures} of {all} FAILED)"),
                }
            }
        }
    }

    /// Returns Tokio's figure divided by ours, marked where noise could explain the difference.
    fn ratio(&self) -> String {
        match (self.wall("tokio"), self.wall("blitz")) {
            (Some(tokio), Some(blitz)) if short(tokio) == "0" && short(blitz) == "0" => "=".into(),
            (Some(tokio), Some(blitz)) => {
                let ratio = tokio / blitz;
                // As a factor either way, so that 1.1 and 1/1.1 are equally far.
                let distance = ratio.max(1.0 / ratio) - 1.0;
                let noise = self.noise_floor().unwrap_or(0.0);
                format!("{ratio:.2}{}", if distance <= noise { " ~" } else { "" })
            }
            _ => "–".into(),
        }
    }

    fn cpu_ratio(&self) -> String {
        match (self.cpu("blitz"), self.cpu("tokio")) {
            (Some(blitz), Some(tokio)) => format!("{:.2}", blitz / tokio),
            _ => "–".into(),
        }
    }

    /// Returns how far Tokio differs from itself: between the medians, and in the median round. The
    /// larger counts, because one of them is sometimes small by luck.
    fn noise_floor(&self) -> Option<f64> {
        let distance = |a: f64, b: f64| if a == b { 0.0 } else { (a / b).max(b / a) - 1.0 };
        let (a, b) = ("tokio", "tokio-again");
        let medians = distance(self.wall(a)?, self.wall(b)?);
        let rounds = self
            .values(a, |metric| Some(metric.value))
            .into_iter()
            .zip(self.values(b, |metric| Some(metric.value)));
        let mut distances: Vec<f64> = rounds.map(|(a, b)| distance(a, b)).collect();
        Some(medians.max(median(&mut distances)))
    }

    fn noise(&self) -> String {
        match self.noise_floor() {
            None => "–".into(),
            // Zero in one and not in the other: any ratio could be chance.
            Some(noise) if noise.is_infinite() => "±∞".into(),
            Some(noise) => format!("±{:.1} %", noise * 100.0),
        }
    }
}

/// Formats a number with up to three significant digits, which is more than the noise allows.
fn short(value: f64) -> String {
    match value {
        tiny if tiny < 0.05 => "0".into(),
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

/// Returns a Markdown table that can also be read as text.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "))
            .expect("a string takes all");
        if number == 0 {
            let rule = widths.iter().enumerate().map(|(column, &width)| {
                if column == 0 { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
            });
            writeln!(text, "| {} |", rule.collect::<Vec<_>>().join(" | "))
                .expect("a string takes all");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row of one figure: `values` are a contender's rounds, `None` a failure.
    fn samples(contender: &str, values: &[Option<f64>]) -> Vec<Sample> {
        let outcome = |value: &Option<f64>| match value {
            Some(value) => Ok(vec![Metric::new("", "ns", *value, Some(value * 2.0))]),
            None => Err("did not end within 30 s".to_string()),
        };
        let sample = |(round, value)| Sample {
            round,
            contender: contender.into(),
            row: "ping_pong",
            workers: 2,
            outcome: outcome(value),
        };
        values.iter().enumerate().map(sample).collect()
    }

    fn run_of(all: &[(&str, &[Option<f64>])]) -> Run {
        Run {
            machine: vec![("kernel", "one".into())],
            contenders: all.iter().map(|(name, _)| name.to_string()).collect(),
            samples: all.iter().flat_map(|(name, values)| samples(name, values)).collect(),
            how: "by hand".into(),
        }
    }

    #[test]
    fn the_ratio_is_of_medians_and_the_cpu_ratio_its_inverse_here() {
        let run = run_of(&[
            ("tokio", &[Some(90.0), Some(100.0), Some(900.0)]),
            ("tokio-again", &[Some(90.0), Some(100.0), Some(900.0)]),
            ("blitz", &[Some(50.0), Some(49.0), Some(51.0)]),
        ]);
        let cells = run.lines()[0].cells();
        assert_eq!(
            cells,
            ["ping_pong", "2", "100 ns", "50.0 ns", "2.00", "–", "–", "±0.0 %", "0.50"]
        );
    }

    #[test]
    fn a_ratio_within_the_noise_is_marked() {
        let run = run_of(&[
            ("tokio", &[Some(100.0)]),
            ("tokio-again", &[Some(125.0)]),
            ("blitz", &[Some(90.0)]),
        ]);
        let cells = run.lines()[0].cells();
        assert_eq!((cells[4].as_str(), cells[7].as_str()), ("1.11 ~", "±25.0 %"));
    }

    #[test]
    fn equal_medians_do_not_hide_rounds_that_differ() {
        let run = run_of(&[
            ("tokio", &[Some(100.0), Some(150.0), Some(200.0)]),
            ("tokio-again", &[Some(200.0), Some(150.0), Some(100.0)]),
        ]);
        assert_eq!(run.lines()[0].noise_floor(), Some(1.0));
    }

    #[test]
    fn a_ratio_to_nothing_is_marked() {
        let run = run_of(&[
            ("tokio", &[Some(0.0)]),
            ("tokio-again", &[Some(1.0)]),
            ("blitz", &[Some(0.5)]),
        ]);
        let cells = run.lines()[0].cells();
        assert_eq!((cells[4].as_str(), cells[7].as_str()), ("0.00 ~", "±∞"));
    }

    #[test]
    fn failures_are_seen_in_the_table_the_record_and_the_numbers() {
        let run = run_of(&[("tokio", &[Some(1.0), None]), ("blitz", &[None, None])]);
        let cells = run.lines()[0].cells();
        assert_eq!((cells[2].as_str(), cells[3].as_str()), ("1.00 ns (1 of 2 FAILED)", "FAILED"));
        assert_eq!(run.failures(), 3);
        assert!(run.markdown("x").contains("- blitz, ping_pong, w2, round 1: did not end"));
        assert_eq!(run.csv().matches("did not end").count(), 3);
    }

    #[test]
    fn a_row_without_any_figure_keeps_its_line() {
        let run = run_of(&[("tokio", &[None]), ("blitz", &[None])]);
        assert!(run.table().contains("FAILED"));
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
}
