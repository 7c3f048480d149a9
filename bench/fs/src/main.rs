//! Files on every contender, interleaved in child processes.
//!
//! `fs run` is the driver; it starts itself as `fs --child` for each figure. ../README.md says
//! how to run it, how to read it, and why it is done this way. All but the workloads is
//! compiled from `../sched`.

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
mod material;
mod plain;
mod files;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use measure::Metric;

/// The program's name, and its record's.
pub(crate) const NAME: &str = "fs";

/// All contenders, and a description of each.
pub(crate) const CONTENDERS: [(&str, &str); 6] = [
    ("tokio", "as #[tokio::main] builds it; what the ratios are against"),
    ("tokio-again", "the same once more: how far two equal things differ is the noise floor"),
    ("blitz", "blitz-io (not in builds without the feature `blitz`)"),
    ("blitz-threads", "the same with BLITZ_FS_INLINE=never: nothing is tried at once"),
    ("blitz-ring", "the same with BLITZ_FS_INLINE=uring: reads at an offset by io_uring"),
    ("plain", "std's calls on one thread, without a runtime, and `cp`: the system's part"),
];

/// Contenders that are no runtimes, or are not configured as usual.
pub(crate) const ONLY_WHEN_NAMED: [&str; 3] = ["blitz-threads", "blitz-ring", "plain"];

/// The packages whose versions a record names.
pub(crate) const PACKAGES: [&str; 1] = ["tokio"];

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
        #[cfg(feature = "blitz")]
        "blitz-threads" | "blitz-ring" => {
            let way = if contender == "blitz-ring" { "uring" } else { "never" };
            // SAFETY: the environment must not be read concurrently, and no other thread has been
            // started yet.
            unsafe { std::env::set_var("BLITZ_FS_INLINE", way) };
            workloads::on_blitz(row, workers, budget)
        }
        "plain" => plain::run(row, budget),
        _ => return Err(format!("no contender {contender} in this build: see `fs list`")),
    })
}
