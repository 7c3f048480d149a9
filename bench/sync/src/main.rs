//! Locks and channels on every contender, interleaved in child processes.
//!
//! `sync run` is the driver; it starts itself as `sync --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod claims;
mod heap;
mod on_tasks;
mod by_hand;
mod own;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use harness::program::Program;
use harness::{Comparison, Contender, Metric};

use crate::workloads::ROWS;

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::TOKIO,
        Contender::TOKIO_AGAIN,
        Contender::BLITZ,
        Contender::BLITZ_OFF,
        Contender::new("go", "../sched/go (only with `go` on PATH)")
            .by(Program::Go { folder: "../sched/go" }),
    ],
    packages: &["tokio", "async-channel"],
    has_blitz: cfg!(feature = "blitz"),
    child,
    claims: Some(claims::CLAIMS),
    ..Comparison::new("sync", env!("CARGO_MANIFEST_DIR"))
};

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    match contender {
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-off" => workloads::on_blitz(row, workers, budget),
        _ => None,
    }
}
