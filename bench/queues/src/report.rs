//! Computes medians, and prints their table.

use std::fmt::Write;

use harness::measure::quartile;

use crate::Case;

pub(crate) struct Row {
    group: &'static str,
    name: &'static str,
    low: f64,
    median: f64,
    high: f64,
}

impl Row {
    pub(crate) fn new(case: &Case, mut figures: Vec<f64>) -> Self {
        // A round in which there was nothing to measure returns NaN.
        figures.retain(|figure| !figure.is_nan());
        let [low, median, high] = [1, 2, 3].map(|part| quartile(&mut figures, part));
        Self { group: case.group, name: case.name, low, median, high }
    }
}

pub(crate) fn table(rows: &[Row], rounds: usize) -> String {
    let mut text = machine();
    let _ =
        writeln!(text, "Median of {rounds} rounds, with the quartiles; ns per unit of the row.\n");
    text.push_str("| what | contender | median | quartiles | against the first |\n");
    text.push_str("|---|---|--:|--:|--:|\n");
    for row in rows {
        let first = rows.iter().find(|first| first.group == row.group).expect("row is in rows");
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2}–{:.2} | {:.2} |",
            row.group,
            row.name,
            row.median,
            row.low,
            row.high,
            row.median / first.median
        );
    }
    let floor = rows.windows(2).filter(|pair| pair[1].name.ends_with("again")).map(|pair| {
        let percent = (pair[1].median / pair[0].median - 1.0).abs() * 100.0;
        format!("{} {percent:.1} %", pair[0].group)
    });
    let floor: Vec<_> = floor.collect();
    if !floor.is_empty() {
        let _ = writeln!(text, "\nNoise floor (a contender against itself): {}.", floor.join("; "));
    }
    text
}

/// Describes the machine that the figures were taken on, as far as Linux reports it.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map_or("unknown processor", |l| l.1);
    let kernel = read("/proc/sys/kernel/osrelease");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cores} cores, {} {}\n\n", std::env::consts::OS, kernel.trim())
}
