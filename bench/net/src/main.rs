//! Sockets and timers on every contender, interleaved in child processes.
//!
//! `net run` is the driver; it starts itself as `net --child` for each figure.
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
mod limits;
mod bare;
mod client;
mod lateness;
mod sockets;
mod timers;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The program's name, and its record's.
pub(crate) const NAME: &str = "net";

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 6] = [
    ("tokio", "as #[tokio::main] builds it; what the ratios are against"),
    ("tokio-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz-io (not in builds without the feature `blitz`)"),
    ("blitz-off", "blitz-io without preemption (only when named)"),
    ("bare", "a loop round epoll, without a runtime: the system's part (only the echoes)"),
    ("bare-crossed", "the same with the ends of a connection on different threads"),
];

/// Contenders that take part only when named. The last two are no runtimes, and do not have all
/// rows.
pub(crate) const ONLY_WHEN_NAMED: [&str; 3] = ["blitz-off", "bare", "bare-crossed"];

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
    limits::raise();
    Ok(match contender {
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-off" => workloads::on_blitz(row, workers, budget),
        "bare" => bare::run(row, workers, budget, false),
        "bare-crossed" => bare::run(row, workers, budget, true),
        _ => return Err(format!("no contender {contender} in this build: see `net list`")),
    })
}
