//! The table of a comparison with Tokio: figures, a ratio, and the noise floor that it is read by.

use std::fmt::Write as _;

use crate::measure::median;
use crate::report::{Line, Run};

/// The contender that ratios are against, and its second name.
pub const NOISE: (&str, &str) = ("tokio", "tokio-again");

/// The paragraph above the table in a record.
pub const INTRO: &str = "Medians over rounds; smaller is better; `~` marks a ratio within the noise \
floor.\nThe README of `bench/` says how each column comes about.";

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

/// The columns of those that a comparison has only if it counts workers. One that does not has
/// whole programs as contenders, and figures of its own for processor time.
const COUNTED: [&str; 4] = ["workers", "smol", "go", "cpu ratio (blitz/tokio)"];

/// Returns the table, as Markdown.
pub fn table(run: &Run) -> String {
    let claims = run.comparison.claims;
    let shown = |column: &str| run.comparison.counted.is_some() || !COUNTED.contains(&column);
    let extra: Vec<&str> =
        run.contenders.iter().filter(|it| it.only_when_named).map(|it| it.name).collect();
    let columns = COLUMNS.into_iter().filter(|column| shown(column));
    let mut rows = vec![columns.map(str::to_string).collect::<Vec<_>>()];
    rows[0].extend(extra.iter().map(|name| name.to_string()));
    rows[0].extend(claims.map(|claims| claims.whose.to_string()));
    for line in run.lines() {
        let printed = Printed { run, line: &line };
        let cells = COLUMNS.into_iter().zip(printed.cells());
        let mut cells: Vec<_> = cells.filter(|it| shown(it.0)).map(|it| it.1).collect();
        cells.extend(extra.iter().map(|name| printed.figure(name)));
        cells.extend(claims.map(|claims| claims.of(&line.name()).to_string()));
        rows.push(cells);
    }
    aligned(&rows)
}

/// A line of the table on its way to text.
struct Printed<'a> {
    run: &'a Run,
    line: &'a Line,
}

impl Printed<'_> {
    fn cells(&self) -> Vec<String> {
        vec![
            self.line.name(),
            self.line.workers.to_string(),
            self.figure("tokio"),
            self.figure("blitz"),
            self.ratio(),
            self.figure("smol"),
            self.figure("go"),
            self.noise(),
            self.cpu_ratio(),
        ]
    }

    /// Returns the median over rounds.
    fn wall(&self, contender: &str) -> Option<f64> {
        self.run.figure(self.line, contender)
    }

    fn figure(&self, contender: &str) -> String {
        let with_unit = |value| format!("{} {}", short(value), self.line.unit);
        self.run.printed(self.line, contender, with_unit)
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
        match (self.run.cpu(self.line, "blitz"), self.run.cpu(self.line, "tokio")) {
            (Some(blitz), Some(tokio)) => format!("{:.2}", blitz / tokio),
            _ => "–".into(),
        }
    }

    /// Returns how far Tokio differs from itself: between the medians, and in the median round. The
    /// larger counts, because one of them is sometimes small by luck.
    fn noise_floor(&self) -> Option<f64> {
        let distance = |a: f64, b: f64| if a == b { 0.0 } else { (a / b).max(b / a) - 1.0 };
        let (a, b) = NOISE;
        let medians = distance(self.wall(a)?, self.wall(b)?);
        let values = |contender| self.run.values(self.line, contender, |it| Some(it.value));
        let rounds = values(a).into_iter().zip(values(b));
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
        let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rule = widths.iter().enumerate().map(|(column, &width)| {
                if column == 0 { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
            });
            let _ = writeln!(text, "| {} |", rule.collect::<Vec<_>>().join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Printed;
    use crate::check::{run_of, uncounted};
    use crate::report::Run;

    fn cells(run: &Run) -> Vec<String> {
        Printed { run, line: &run.lines()[0] }.cells()
    }

    #[test]
    fn the_ratio_is_of_medians_and_the_cpu_ratio_its_inverse_here() {
        let run = run_of(&[
            ("tokio", &[Some(90.0), Some(100.0), Some(900.0)]),
            ("tokio-again", &[Some(90.0), Some(100.0), Some(900.0)]),
            ("blitz", &[Some(50.0), Some(49.0), Some(51.0)]),
        ]);
        let cells = cells(&run);
        assert_eq!(cells, ["a", "2", "100 ns", "50.0 ns", "2.00", "–", "–", "±0.0 %", "0.50"]);
    }

    #[test]
    fn a_ratio_within_the_noise_is_marked() {
        let run = run_of(&[
            ("tokio", &[Some(100.0)]),
            ("tokio-again", &[Some(125.0)]),
            ("blitz", &[Some(90.0)]),
        ]);
        let cells = cells(&run);
        assert_eq!((cells[4].as_str(), cells[7].as_str()), ("1.11 ~", "±25.0 %"));
    }

    #[test]
    fn equal_medians_do_not_hide_rounds_that_differ() {
        let run = run_of(&[
            ("tokio", &[Some(100.0), Some(150.0), Some(200.0)]),
            ("tokio-again", &[Some(200.0), Some(150.0), Some(100.0)]),
        ]);
        let line = &run.lines()[0];
        assert_eq!(Printed { run: &run, line }.noise_floor(), Some(1.0));
    }

    #[test]
    fn a_ratio_to_nothing_is_marked() {
        let run = run_of(&[
            ("tokio", &[Some(0.0)]),
            ("tokio-again", &[Some(1.0)]),
            ("blitz", &[Some(0.5)]),
        ]);
        let cells = cells(&run);
        assert_eq!((cells[4].as_str(), cells[7].as_str()), ("0.00 ~", "±∞"));
    }

    #[test]
    fn failures_are_seen_in_the_table() {
        let run = run_of(&[("tokio", &[Some(1.0), None]), ("blitz", &[None, None])]);
        let cells = cells(&run);
        assert_eq!((cells[2].as_str(), cells[3].as_str()), ("1.00 ns (1 of 2 FAILED)", "FAILED"));
    }

    #[test]
    fn a_row_without_any_figure_keeps_its_line() {
        let run = run_of(&[("tokio", &[None]), ("blitz", &[None])]);
        assert!(run.table().contains("FAILED"));
    }

    #[test]
    fn a_comparison_that_counts_no_workers_has_no_columns_about_them() {
        let run = uncounted(&[("tokio", &[Some(4.0)]), ("blitz", &[Some(2.0)])]);
        let table = super::table(&run);
        let words: Vec<&str> = table.split('|').map(str::trim).collect();
        assert_eq!(words[1..6], ["row", "tokio", "blitz", "ratio (tokio/blitz)", "noise floor"]);
        assert!(table.lines().last().is_some_and(|line| line.contains("| 2.00 ns |")), "{table}");
    }

    #[test]
    fn a_contender_that_must_be_named_gets_a_column() {
        let run = run_of(&[("tokio", &[Some(1.0)]), ("smol", &[Some(3.0)])]);
        let head = run.table().lines().next().map(str::to_owned);
        assert!(head.is_some_and(|head| head.trim_end().ends_with("|    smol |")));
    }
}
