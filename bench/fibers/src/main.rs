//! Fibers beside tasks of the same runtime and threads, interleaved in child processes.
//!
//! `fibers run` is the driver; it starts itself as `fibers --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use harness::plan::rounds;
use harness::report::{Line, Run, cell, plain};
use harness::{Comparison, Contender, Effort, Metric, Row};

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::new("fiber", "fibers of blitz-io, on one thread"),
        Contender::new("task", "tasks of blitz-io, on one worker"),
        Contender::new("thread", "threads of the standard library"),
    ],
    child,
    counted: None,
    // The number of operations of a child is fixed, so there is no budget.
    quick: Effort { rounds: 1, slow_rounds: 1, budget: Duration::ZERO },
    // Nine rounds put two beyond each quartile. Picked, not measured.
    full: Effort { rounds: 9, slow_rounds: 9, budget: Duration::ZERO },
    noise: None,
    how: |plan, _| rounds(plan),
    table,
    intro: "Medians over rounds; smaller is better. `rounds apart` is the distance between the \
            quartiles of the rounds, as a part of their median, of the contender that has the most.",
    ..Comparison::new("fibers", env!("CARGO_MANIFEST_DIR"))
};

const ROWS: [Row; 5] = [
    Row::new("yield", "one yields, no other task is there"),
    Row::new("hand-over", "two hand over to each other, there and back"),
    Row::new("start", "one starts another and waits for it"),
    Row::new("many", "10,000 are started, wait, are woken and end").lacked_by(&["thread"]),
    Row::new("bytes", "memory of each of 10,000 that wait").lacked_by(&["thread"]),
];

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, _: usize, _: Duration) -> Option<Vec<Metric>> {
    workloads::measure(contender, row)
}

/// Returns the table, as Markdown.
fn table(run: &Run) -> String {
    let names = run.comparison.contenders.iter().map(|contender| contender.name);
    let heads = ["row"].into_iter().chain(names.clone()).chain(["rounds apart"]);
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    for line in run.lines() {
        let mut cells = vec![format!("{} ({})", line.row, line.unit)];
        cells.extend(names.clone().map(|name| run.cell(&line, name, 0)));
        let apart = names.clone().filter_map(|name| spread(run, &line, name)).reduce(f64::max);
        cells.push(format!("{} %", cell(apart.map(|apart| apart * 100.0), 0)));
        rows.push(cells);
    }
    plain(&rows)
}

/// Returns the distance between the quartiles of the rounds, as a fraction of their median.
fn spread(run: &Run, line: &Line, contender: &str) -> Option<f64> {
    run.quartiles(line, contender).map(|[low, median, high]| (high - low) / median)
}

#[cfg(test)]
mod tests {
    use harness::Metric;
    use harness::check::{run, sample};

    use crate::COMPARISON;

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&COMPARISON);
    }

    #[test]
    fn the_table_has_medians_and_the_largest_spread() {
        let figure = |value| vec![Metric::new("", "ns", value, None)];
        let samples = [(0, 100.0), (1, 110.0), (2, 90.0), (3, 100.0), (4, 150.0)];
        let fibers = samples.map(|(round, value)| sample(round, "fiber", "yield", figure(value)));
        let task = sample(0, "task", "yield", figure(50.0));
        let table = run(&COMPARISON, fibers.into_iter().chain([task]).collect()).table();
        assert!(table.contains("| yield (ns) | 100 | 50 | – | 10 % |"), "{table}");
    }
}
