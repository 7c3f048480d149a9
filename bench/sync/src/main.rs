//! Locks and channels on every contender, interleaved in child processes.
//!
//! `sync run` is the driver; it starts itself as `sync --child` for each figure.
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
#[path = "../../sched/src/row.rs"]
mod row;
#[allow(dead_code, reason = "it serves all comparisons; no row here needs all of it")]
#[path = "../../sched/src/bell.rs"]
mod bell;
mod claims;
mod heap;
mod on_tasks;
mod by_hand;
mod own;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The program's name, and its record's.
pub(crate) const NAME: &str = "sync";

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 5] = [
    ("tokio", "as #[tokio::main] builds it; what the ratios are against"),
    ("tokio-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz-io (not in builds without the feature `blitz`)"),
    ("blitz-off", "blitz-io without preemption (only when named)"),
    ("go", "../sched/go (only with `go` on PATH)"),
];

/// Contenders that take part only when named. The cost of preemption is measured separately.
pub(crate) const ONLY_WHEN_NAMED: [&str; 1] = ["blitz-off"];

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 2] = ["tokio", "async-channel"];

/// Figures published by the project from whose design ours began.
pub(crate) const CLAIMS: Option<row::Claims> = Some(claims::CLAIMS);

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
        "blitz" | "blitz-off" => workloads::on_blitz(row, workers, budget),
        _ => return Err(format!("no contender {contender} in this build: see `sync list`")),
    })
}
