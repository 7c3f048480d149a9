//! A server under load beside parallel sorts in its process, on Tokio with Rayon and on ours.
//!
//! `mixed run` is the driver. For each figure it starts a server (itself, or `ours/`, which it
//! builds first) and a client (itself), and notifies the server when the client begins and ends to
//! count. ../README.md says why comparisons are run this way.

#[macro_use]
mod server;
mod client;
mod report;
mod trial;

use std::process::ExitCode;
use std::time::Duration;

use harness::program::Program;
use harness::{Comparison, Contender, Effort, Extra, Order, Row};

/// The server with Rayon on our rayon-core.
const OURS: Program = Program::Beside { folder: "ours", binary: "mixed-ours" };

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::new("stock", "Tokio beside Rayon: what ratios are against"),
        Contender::new(
            "stock-again",
            "the same once more: how far two equal things differ is the noise floor",
        ),
        Contender::new("blitz", "blitz-io beside the published rayon on our rayon-core").by(OURS),
        Contender::new(
            "tokio-ours",
            "Tokio beside Rayon on our rayon-core: the pool's part (only when named)",
        )
        .by(OURS)
        .only_when_named(),
        Contender::new(
            "blitz-rayon",
            "blitz-io beside the stock Rayon: the runtime's part (only when named)",
        )
        .only_when_named(),
    ],
    packages: &["tokio", "rayon", "rayon-core"],
    counted: None,
    extras: &[
        Extra { option: "--connections", default: 50, what: "connections of the client" },
        // About a tenth of what one core can serve: load, and time for sorts.
        Extra {
            option: "--rate",
            default: 10_000,
            what: "requests in a second, on all connections together",
        },
    ],
    // Time for dozens of sorts, and at the usual rate for two hundred requests beyond the 99th
    // percentile.
    quick: Effort { rounds: 2, slow_rounds: 2, budget: Duration::from_millis(500) },
    full: Effort { rounds: 11, slow_rounds: 11, budget: Duration::from_millis(2000) },
    order: Order::RoundByRound,
    // `stock-again` has a column of its own, and runs if it is named.
    noise: None,
    trial: trial::trial,
    how: trial::how,
    table: report::table,
    // The table ends with a note.
    intro: "",
    ..Comparison::new("mixed", env!("CARGO_MANIFEST_DIR"))
};

/// The load on the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    None,
    /// The rate of requests that the command line sets.
    FixedRate,
    /// The next request follows each reply.
    ClosedLoop,
}

const ROWS: [Row; 6] = [
    Row::new("echo_alone", "echoes at a fixed rate; nothing sorts"),
    Row::new(
        "sort_alone",
        "a thread that sorts 1,000,000 u64 over and over by par_sort_unstable(); no client",
    ),
    Row::new("mixed", "both: echoes at a fixed rate beside the sorts"),
    Row::new(
        "echo_full_alone",
        "echoes in a closed loop, each connection with one request at a time; nothing sorts",
    ),
    Row::new("mixed_full", "both: echoes in a closed loop beside the sorts"),
    Row::new(
        "mixed_handler",
        "the handler computes: each 100th request of a connection waits for a sort of \
         100,000 u64 on the pool (heavy), the others are echoes",
    ),
];

/// Returns the server's arguments and the client's load for a row.
fn setting(row: &Row) -> ([&'static str; 2], Client) {
    match row.name {
        "echo_alone" => (["echo", "quiet"], Client::FixedRate),
        "sort_alone" => (["echo", "sorting"], Client::None),
        "mixed" => (["echo", "sorting"], Client::FixedRate),
        "echo_full_alone" => (["echo", "quiet"], Client::ClosedLoop),
        "mixed_full" => (["echo", "sorting"], Client::ClosedLoop),
        "mixed_handler" => (["computing", "quiet"], Client::FixedRate),
        other => panic!("{other} has no setting: add it to `setting`"),
    }
}

mod on_tokio {
    server!(tokio);
    by_spawn!(tokio);
}

mod on_blitz {
    server!(blitz_io);
    by_spawn!(blitz_io);
}

/// The runtimes that run beside the stock Rayon.
const RUNTIMES: [(&str, server::Listen); 2] =
    [("tokio", on_tokio::listen), ("blitz", on_blitz::listen)];

fn main() -> ExitCode {
    let words = harness::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--server", ..] => harness::exit(server::main(&words, &RUNTIMES)),
        ["--client", port, load @ ..] => harness::exit(client(port, load)),
        _ => harness::main(&COMPARISON),
    }
}

fn client(port: &str, load: &[&str]) -> Result<(), String> {
    let known = port.parse().ok().zip(client::Load::parse(load));
    let (port, load) = known.ok_or("port and load are numbers: this is started by `mixed run`")?;
    client::main(port, load);
    Ok(())
}
