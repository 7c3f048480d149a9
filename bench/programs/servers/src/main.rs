//! The measured programs: servers and database clients, as a user of the published crates writes
//! them.
//!
//! `stock/` and `dropin/` compile this source, one with the published Tokio and the other with
//! blitz-io under its name. `programs` starts the outcome: `serve NAME` prints a port and serves
//! until it is killed; `client NAME PORT` measures itself; `load` puts requests on a server.

mod clients;
mod rpc;
mod servers;
mod tally;
mod web;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use crate::clients::Span;

/// The runtime that is linked: the drop-in's version, from a constant that the published Tokio does
/// not have.
#[cfg(feature = "dropin")]
const RUNTIME: &str = tokio::BLITZ_IO_DROPIN;
#[cfg(not(feature = "dropin"))]
const RUNTIME: &str = "stock";

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[&str]) -> Result<(), String> {
    match words {
        ["serve", name, rest @ ..] => {
            let backend = rest.first().map(|word| number(word)).transpose()?;
            servers::serve(name, backend.map(|port| port as u16)).await
        }
        ["client", name, port, warm_ms, span_ms] => {
            let span = Span { warm: millis(warm_ms)?, counted: millis(span_ms)? };
            clients::run(name, number(port)? as u16, span).await
        }
        ["load", port, connections, tasks, span_ms] => {
            let span = Span { warm: Duration::ZERO, counted: millis(span_ms)? };
            let (connections, tasks) = (number(connections)? as usize, number(tasks)? as usize);
            let tally = rpc::load(number(port)? as u16, connections, tasks, span).await;
            say(&tally.line())
        }
        _ => Err("this is started by bench/programs".into()),
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn millis(word: &str) -> Result<Duration, String> {
    number(word).map(Duration::from_millis)
}

/// Prints a line and flushes it, because the output is a pipe.
fn say(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
}
