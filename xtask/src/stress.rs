//! The long tests: those of the runtime crate that are marked `#[ignore]`.

use std::time::Duration;

use crate::{Outcome, shell};

/// Text of `cargo xtask stress --help`.
pub const HELP: &str = "\
cargo xtask stress [filter …]

Runs the #[ignore]d tests of blitz-io in release, one at a time and with their
output; each prints its seed where it has one. A filter picks some by name.";

/// Long tests are made to take minutes; hours mean that one hangs.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Runs `cargo xtask stress`.
pub fn main(arguments: &[String]) -> Outcome {
    let mut command = shell::cargo();
    command.args(["test", "--release", "-p", "blitz-io", "--features", "fiber", "--", "--ignored"]);
    command.args(["--nocapture", "--test-threads=1"]).args(arguments);
    match shell::run(&mut command, LIMIT)? {
        end if end.success() => Ok(()),
        shell::End::TimedOut => Err("a stress test did not end; the last one named hangs".into()),
        shell::End::Exit(_) => Err("a stress test failed".into()),
    }
}
