//! The tests of io, net and time with each way to wait for events forced.
//!
//! What is chosen by itself is tested by `cargo test`; the others are rarely used, and this
//! is how they are kept right.

use std::{process::Command, time::Duration};

use crate::{Outcome, faults::BACKENDS, shell};

/// Text of `cargo xtask backends --help`.
pub const HELP: &str = "\
cargo xtask backends [name …]

Runs the integration tests of the runtime crate, and the examples in the docs of io, net
and time, with BLITZ_IO_BACKEND set to epoll, poll and uring in turn, or only to what is named.";

/// A run of all takes a minute or two; this is against hangs, and the build is in it.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// `cargo xtask backends`.
pub fn main(arguments: &[String]) -> Outcome {
    if let Some(unknown) = arguments.iter().find(|name| !BACKENDS.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is not forced here: say {}", BACKENDS.join(" or ")));
    }
    let mut failed = Vec::new();
    for backend in BACKENDS {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == backend) {
            continue;
        }
        for (what, mut command) in runs() {
            println!("{backend}: {what}");
            command.env("BLITZ_IO_BACKEND", backend);
            if !shell::run(&mut command, LIMIT)?.success() {
                failed.push(format!("{what} with {backend}"));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join("; "))) }
}

/// What is run for each.
fn runs() -> Vec<(&'static str, Command)> {
    let test = || {
        let mut command = shell::cargo();
        // The clock can be stopped only with it.
        command.args(["test", "-q", "-p", "blitz-io", "--features", "test-util"]);
        command
    };
    let (mut tests, mut examples) = (test(), test());
    tests.args(["--no-fail-fast", "--test", "io", "--test", "net_time", "--test", "it"]);
    // Examples are named by their files.
    examples.args(["--doc", "--", "src/io/", "src/net/", "src/time/"]);
    vec![("integration tests", tests), ("examples of io, net and time", examples)]
}
