//! Scheduler workloads on every contender, interleaved in child processes.
//!
//! `sched run` is the driver; it starts itself as `sched --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod contender;
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
        Contender::new("smol", "one Executor and N threads that run it"),
        Contender::new("go", "go/main.go (only with `go` on PATH)")
            .by(Program::Go { folder: "go" }),
        Contender::BLITZ_OFF,
        Contender::new("tokio-bare", "Tokio without its I/O and time drivers (only when named)")
            .only_when_named(),
        Contender::new(
            "futex",
            "a bare thread, parked and unparked (only when named, wake rows alone)",
        )
        .only_when_named(),
    ],
    packages: &["tokio", "smol", "async-executor", "async-task"],
    has_blitz: cfg!(feature = "blitz"),
    child,
    ..Comparison::new("sched", env!("CARGO_MANIFEST_DIR"))
};

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    match contender {
        "tokio" | "tokio-again" => workloads::run::<contender::Tokio>(row, workers, budget),
        "tokio-bare" => workloads::run::<contender::TokioBare>(row, workers, budget),
        "futex" => workloads::run_bare_thread(row, budget),
        "smol" => workloads::run::<contender::Smol>(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-off" => workloads::run::<contender::Blitz>(row, workers, budget),
        _ => None,
    }
}
