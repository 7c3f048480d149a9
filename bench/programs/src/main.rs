//! Published servers and database clients on stock Tokio and on blitz-io in its place: what changes
//! for users that move a program over.
//!
//! `programs run` is the driver. `stock/` and `dropin/` compile one source, `servers/src`, with the
//! published Tokio and with the drop-in. For each figure the driver starts one of the two, puts a
//! load on it (wrk, an epoll client, tonic's client) or starts the database that it talks to, and
//! reads processor time, threads and memory from outside. ../README.md says why comparisons are run
//! this way.

#[path = "../../net/src/client.rs"]
mod client;
#[path = "../../net/src/limits.rs"]
mod limits;
mod dufs;
mod locks;
mod process;
mod quota;
mod rows;
mod setup;
#[path = "../servers/src/tally.rs"]
mod tally;
mod trial;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use harness::program::Program;
use harness::{Comparison, Contender, Effort, Extra, Plan};

use crate::quota::Quota;
use crate::rows::ROWS;
use crate::setup::Setup;
use crate::tally::Tally;

const STOCK: Program = Program::Beside { folder: ".", binary: "programs-stock" };
const DROPIN: Program = Program::Beside { folder: "../dropin", binary: "programs-dropin" };

static COMPARISON: Comparison = Comparison {
    rows: &ROWS,
    contenders: &[
        Contender::TOKIO.by(STOCK),
        Contender::TOKIO_AGAIN.by(STOCK),
        Contender { what: "blitz-io under Tokio's name", ..Contender::BLITZ }.by(DROPIN),
        Contender::BLITZ_OFF.by(DROPIN),
    ],
    packages: &[
        "tokio",
        "hyper",
        "hyper-util",
        "axum",
        "tonic",
        "sqlx",
        "tokio-postgres",
        "deadpool-postgres",
        "redis",
    ],
    // This program has no contender in it.
    has_blitz: false,
    counted: None,
    extras: &[
        Extra {
            option: "--quota",
            default: 0,
            what: "processor time for the measured process, in percent of a core; without, no limit",
        },
        Extra { option: "--busy", default: 0, what: "processes beside that never sleep" },
    ],
    // wrk counts in whole seconds.
    quick: Effort { rounds: 1, slow_rounds: 1, budget: Duration::from_secs(1) },
    full: Effort { rounds: 5, slow_rounds: 5, budget: Duration::from_secs(3) },
    // Without it, `--contenders tokio,blitz` saves a third of the time.
    noise: None,
    trial: trial::trial,
    how: trial::how,
    // The lock file there has the versions that a record names.
    ..Comparison::new("programs", concat!(env!("CARGO_MANIFEST_DIR"), "/stock"))
};

fn main() -> ExitCode {
    let words = harness::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", options @ ..] => harness::exit(run(options)),
        ["--echo", words @ ..] => harness::exit(echo(words)),
        // Ends when its parent kills it.
        ["--spin"] => loop {
            std::hint::spin_loop();
        },
        _ => harness::main(&COMPARISON),
    }
}

/// Leaves out the rows that lack a program, prepares what the others need, and runs them.
fn run(options: &[&str]) -> Result<(), String> {
    limits::raise();
    let mut plan = Plan::parse(&COMPARISON, options)?;
    setup::leave_out(&mut plan);
    if plan.rows.is_empty() {
        return Err("no row is left: install what is missing".into());
    }
    let percent = plan.extra("--quota");
    let quota = match (percent > 0).then(|| Quota::new(percent)).transpose() {
        Ok(quota) => quota,
        Err(why) => {
            eprintln!("all rows are skipped: no quota can be set ({why}); run this as root");
            return Ok(());
        }
    };
    // Removes the temporary folder and the control group when it is dropped.
    let _setup = Setup::make(&mut plan, quota)?;
    harness::driver::run(&plan)
}

/// The client of the echo rows, a process of its own: keeps connections busy for a span, and prints
/// a tally.
fn echo(words: &[&str]) -> Result<(), String> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some(&[port, connections, span_ms]) = numbers.as_deref() else {
        return Err("port, connections and time are numbers: `programs run` starts this".into());
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
    let mut client = client::Client::connect(address, connections as usize);
    let start = Instant::now();
    let latencies = client.load(Duration::from_millis(span_ms));
    let latencies = latencies.into_iter().map(|ns| ns as u32).collect();
    println!("{}", Tally::of(latencies, 1, start.elapsed().as_micros() as f64).line());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn row_names_are_unique_and_each_row_has_its_work() {
        harness::check::names(&crate::COMPARISON);
        for row in &crate::ROWS {
            let _ = crate::rows::work(row);
        }
    }
}
