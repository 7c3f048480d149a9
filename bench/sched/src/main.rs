//! Scheduler workloads on every contender, interleaved in child processes.
//!
//! `sched run` is the driver; it starts itself as `sched --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.
//!
//! `bench/sync` compiles all of this but `bell`, `contender` and `workloads` by its path, so what
//! differs between the two comparisons is in this file.

mod bell;
mod contender;
mod measure;
mod row;
mod workloads;
mod driver;
mod machine;
mod report;
mod command;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The program's name, and its record's.
pub(crate) const NAME: &str = "sched";

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 8] = [
    ("tokio", "as #[tokio::main] builds it; what the ratios are against"),
    ("tokio-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz-io (not in builds without the feature `blitz`)"),
    ("smol", "one Executor and N threads that run it"),
    ("go", "go/main.go (only with `go` on PATH)"),
    ("blitz-off", "blitz-io without preemption (only when named)"),
    ("tokio-bare", "Tokio without its I/O and time drivers (only when named)"),
    ("futex", "a bare thread, parked and unparked (only when named, wake rows alone)"),
];

/// References for single questions; each has a column of its own when it runs.
pub(crate) const ONLY_WHEN_NAMED: [&str; 3] = ["blitz-off", "tokio-bare", "futex"];

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 4] = ["tokio", "smol", "async-executor", "async-task"];

/// No published figures exist for the same rows.
pub(crate) const CLAIMS: Option<row::Claims> = None;

fn main() -> ExitCode {
    command::main(child)
}

fn child(
    contender: &str,
    row: &str,
    workers: usize,
    budget: Duration,
) -> Result<Option<Vec<Metric>>, String> {
    Ok(match contender {
        "tokio" | "tokio-again" => workloads::run::<contender::Tokio>(row, workers, budget),
        "tokio-bare" => workloads::run::<contender::TokioBare>(row, workers, budget),
        "futex" => workloads::run_bare_thread(row, budget),
        "smol" => workloads::run::<contender::Smol>(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-off" => workloads::run::<contender::Blitz>(row, workers, budget),
        _ => return Err(format!("no contender {contender} in this build: see `sched list`")),
    })
}
