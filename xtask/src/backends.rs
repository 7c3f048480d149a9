//! Runs the tests of io, net and time with each event backend forced.
//!
//! `cargo test` covers only the backend that is chosen by default. The others are rarely used, so
//! this command keeps them correct.

use std::{process::Command, time::Duration};

use crate::{Outcome, faults::BACKENDS, shell};

/// Text of `cargo xtask backends --help`.
pub const HELP: &str = "\
cargo xtask backends [--only FILTER,…] [name …]

Runs the integration tests of the runtime crate, and the examples in the docs of io, net
and time, with BLITZ_IO_BACKEND set to epoll, poll and uring in turn, or only to what is named.
What this system refuses is left out.
  --only FILTER,…  runs only the integration tests whose names contain a filter";

/// Limit against hangs, build included; a run of all takes a minute or two.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Runs `cargo xtask backends`.
pub fn main(arguments: &[String]) -> Outcome {
    let (only, arguments) = match arguments {
        [flag, filters, rest @ ..] if flag == "--only" => (Some(filters.as_str()), rest),
        all => (None, all),
    };
    if let Some(unknown) = arguments.iter().find(|name| !BACKENDS.contains(&name.as_str())) {
        return Err(format!("`{unknown}` is not forced here: say {}", BACKENDS.join(" or ")));
    }
    let mut failed = Vec::new();
    for backend in BACKENDS {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == backend) {
            continue;
        }
        if !is_to_be_had(backend)? {
            println!("{backend}: skipped, this system refuses it");
            continue;
        }
        for (what, mut command) in runs(only) {
            println!("{backend}: {what}");
            command.env("BLITZ_IO_BACKEND", backend);
            if !shell::run(&mut command, LIMIT)?.success() {
                failed.push(format!("{what} with {backend}"));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join("; "))) }
}

/// Returns true if a runtime with this event backend can be built here; `blitz doctor` fails if
/// not.
fn is_to_be_had(backend: &str) -> Result<bool, String> {
    let mut command = shell::cargo();
    command.args(["run", "-q", "-p", "blitz", "--", "doctor"]).env("BLITZ_IO_BACKEND", backend);
    Ok(shell::capture(&mut command, LIMIT)?.end.success())
}

/// Returns the commands that are run for each backend.
fn runs(only: Option<&str>) -> Vec<(&'static str, Command)> {
    let test = || {
        let mut command = shell::cargo();
        command.args(["test", "-q"]);
        command
    };
    let (mut tests, mut examples) = (test(), test());
    // Built as `cargo test --workspace` builds it, so that it is not built twice.
    tests.args(["--workspace", "--no-fail-fast", "--test", "it"]);
    if let Some(filters) = only {
        tests.arg("--").args(filters.split(','));
        return vec![("integration tests", tests)];
    }
    // Doc tests are selected by the paths of their files.
    examples.args(["-p", "blitz-io", "--doc", "--", "src/io/", "src/net/", "src/time/"]);
    vec![("integration tests", tests), ("examples of io, net and time", examples)]
}
