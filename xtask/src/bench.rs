//! The comparison of bench/, which lives in workspaces of its own.

use std::time::Duration;

use crate::{Outcome, root, shell};

/// Text of `cargo xtask bench --help`.
pub const HELP: &str = "\
cargo xtask bench [--quick] [--only <workload>] …

Builds and runs bench/sched (runtimes) and bench/queues in release; arguments
are passed on as `run <arguments>`. What is not there is skipped and said so.";

const WORKSPACES: &[&str] = &["bench/sched", "bench/queues"];

/// A full comparison takes tens of minutes; half a day means that it hangs.
const LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// `cargo xtask bench`.
pub fn main(arguments: &[String]) -> Outcome {
    for workspace in WORKSPACES {
        let manifest = root().join(workspace).join("Cargo.toml");
        if !manifest.exists() {
            println!("skipped: {workspace} is not there");
            continue;
        }
        let mut command = shell::cargo();
        command.args(["run", "--release", "--manifest-path"]).arg(manifest);
        command.args(["--", "run"]).args(arguments);
        if !shell::run(&mut command, LIMIT)?.success() {
            return Err(format!("{workspace} failed"));
        }
    }
    Ok(())
}
