//! Children and signals on every contender, interleaved in child processes.
//!
//! `os run` is the driver; it starts itself as `os --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way. All but
//! the workloads is compiled from `../sched`.

#[path = "../../sched/src/command.rs"]
mod command;
#[path = "../../sched/src/driver.rs"]
mod driver;
#[path = "../../sched/src/machine.rs"]
mod machine;
#[allow(dead_code, reason = "it serves all comparisons; no row here needs all of it")]
#[path = "../../sched/src/measure.rs"]
mod measure;
#[path = "../../sched/src/report.rs"]
mod report;
#[allow(dead_code, reason = "it serves all comparisons; no row here needs all of it")]
#[path = "../../sched/src/row.rs"]
mod row;
mod bare;
mod sender;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The program's name, and its record's.
pub(crate) const NAME: &str = "os";

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 4] = [
    ("tokio", "as #[tokio::main] builds it; what the ratios are against"),
    ("tokio-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz-io (not in builds without the feature `blitz`)"),
    ("bare", "std's processes; a loop that reads a signalfd: the system's part"),
];

/// No contender is left out by default.
pub(crate) const ONLY_WHEN_NAMED: [&str; 0] = [];

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 2] = ["tokio", "mio"];

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
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" => workloads::on_blitz(row, workers, budget),
        "bare" => bare::run(row, budget),
        _ => return Err(format!("no contender {contender} in this build: see `os list`")),
    })
}
