//! Files on every contender, interleaved in child processes.
//!
//! `fs run` is the driver; it starts itself as `fs --child` for each figure. ../README.md says
//! how to run it, how to read it, and why it is done this way.

mod material;
mod plain;
mod files;
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
        Contender::new(
            "blitz-threads",
            "the same with BLITZ_FS_INLINE=never: nothing is tried at once",
        )
        .by(Program::Blitz)
        .with_environment(&[("BLITZ_FS_INLINE", "never")])
        .only_when_named(),
        Contender::new(
            "blitz-uring",
            "the same with BLITZ_FS_INLINE=uring: reads at an offset by io_uring",
        )
        .by(Program::Blitz)
        .with_environment(&[("BLITZ_FS_INLINE", "uring")])
        .only_when_named(),
        Contender::new(
            "plain",
            "std's calls on one thread, without a runtime, and `cp`: the system's part",
        )
        .only_when_named(),
    ],
    packages: &["tokio"],
    has_blitz: cfg!(feature = "blitz"),
    child,
    ..Comparison::new("fs", env!("CARGO_MANIFEST_DIR"))
};

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    match contender {
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-threads" | "blitz-uring" => workloads::on_blitz(row, workers, budget),
        "plain" => plain::run(row, budget),
        _ => None,
    }
}
