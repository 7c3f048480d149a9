//! Sockets and timers on every contender, interleaved in child processes.
//!
//! `net run` is the driver; it starts itself as `net --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod limits;
mod bare;
mod client;
mod lateness;
mod sockets;
mod timers;
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
        Contender::BLITZ_OFF,
        Contender::new(
            "bare",
            "a loop round epoll, without a runtime: the system's part (only the echoes)",
        )
        .only_when_named(),
        Contender::new(
            "bare-crossed",
            "the same with the ends of a connection on different threads",
        )
        .only_when_named(),
    ],
    packages: &["tokio", "mio"],
    has_blitz: cfg!(feature = "blitz"),
    child,
    ..Comparison::new("net", env!("CARGO_MANIFEST_DIR"))
};

fn main() -> ExitCode {
    harness::main(&COMPARISON)
}

fn child(contender: &str, row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    limits::raise();
    match contender {
        "tokio" | "tokio-again" => workloads::on_tokio(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" | "blitz-off" => workloads::on_blitz(row, workers, budget),
        "bare" => bare::run(row, workers, budget, false),
        "bare-crossed" => bare::run(row, workers, budget, true),
        _ => None,
    }
}
