//! A clock that ticks every millisecond beside tasks that do not yield.
//!
//! `preempt run` is the driver; it starts itself as `preempt --child` for each figure, and the
//! program in `go/`. ../README.md says how to run it, how to read it, and why it is done this way.
//!
//! Every deadline of a fixed schedule counts: a clock that is 50 ms late has missed fifty ticks,
//! and each of them is a figure. The hogs' own work is counted, too, so that a contender which is
//! in time because its hogs stand still shows it there.

mod report;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use harness::program::Program;
use harness::{Comparison, Contender, Effort, Metric, Row};

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::new("threads", "a thread for each task; what the hogs' work is against"),
        Contender::new("blitz", "blitz-io as it is"),
        Contender::new("blitz-off", "blitz-io without preemption"),
        Contender::new("tokio", "as #[tokio::main] builds it"),
        // Its hogs' work is not counted, because its loop is another compiler's.
        Contender::new("go", "go/main.go (only with `go` on PATH)")
            .by(Program::Go { folder: "go" }),
    ],
    packages: &["tokio"],
    child,
    counted: None,
    // Of a child's time a quick run needs several turns of a hog, a full one also two turns of
    // those that take a second.
    quick: Effort { rounds: 1, slow_rounds: 1, budget: Duration::from_millis(500) },
    full: Effort { rounds: 5, slow_rounds: 5, budget: Duration::from_millis(2000) },
    noise: None,
    table: report::table,
    intro: report::INTRO,
    ..Comparison::new("preempt", env!("CARGO_MANIFEST_DIR"))
};

const ROWS: [Row; 7] = [
    Row::new("none", "no hogs: what the clock alone is late by"),
    Row::new("2x100", "2 tasks that compute for 100 ms at a time"),
    Row::new("8x100", "8 tasks that compute for 100 ms at a time"),
    // Without preemption the clock does not tick once, which is known without measuring it.
    Row::new("8x1000", "8 tasks that compute for a second at a time")
        .lacked_by(&["blitz-off", "tokio"]),
    Row::new("sleeps", "8 tasks in std::thread::sleep for 100 ms at a time"),
    Row::new(
        "own-slot",
        "a task blocks on one that is next in the queue of its only worker; up to a second",
    )
    .lacked_by(&["threads", "go"]),
    // Without preemption they take 50 s, one after the other on two workers, which is known without
    // measuring it.
    Row::new("200-sleeps", "200 tasks in std::thread::sleep for 500 ms: until all are through")
        .lacked_by(&["blitz-off", "tokio", "go"]),
];

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, _: usize, budget: Duration) -> Option<Vec<Metric>> {
    workload::measure(contender, workload::load(row)?, budget)
}

#[cfg(test)]
mod tests {
    #[test]
    fn row_names_are_unique_and_each_row_has_a_load() {
        harness::check::names(&crate::COMPARISON);
        assert!(crate::ROWS.iter().all(|row| crate::workload::load(row.name).is_some()));
    }
}
