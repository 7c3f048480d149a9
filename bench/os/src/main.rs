//! Children and signals on every contender, interleaved in child processes.
//!
//! `os run` is the driver; it starts itself as `os --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod bare;
mod sender;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use harness::{Comparison, Contender, Metric};

use crate::workloads::ROWS;

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::TOKIO,
        Contender::TOKIO_AGAIN,
        Contender::BLITZ,
        Contender::new("bare", "std's processes; a loop that reads a signalfd: the system's part"),
    ],
    packages: &["tokio", "mio"],
    has_blitz: cfg!(feature = "blitz"),
    child,
    ..Comparison::new("os", env!("CARGO_MANIFEST_DIR"))
};

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    match contender {
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" => workloads::on_blitz(row, workers, budget),
        "bare" => bare::run(row, budget),
        _ => None,
    }
}
