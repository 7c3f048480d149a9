//! The comparison of bench/, which lives in workspaces of its own.

use std::time::Duration;

use crate::{Outcome, root, shell};

/// Text of `cargo xtask bench --help`.
pub const HELP: &str = "\
cargo xtask bench [sched | queues] [--quick] [--only <row>] …

Builds and runs the comparisons of bench/ in release: `sched` (runtimes) and
`queues` (run queues and their variants), or the one that is named. The other
arguments are passed on; both know --quick and --only. What is not there is
skipped and said so.";

const WORKSPACES: &[&str] = &["sched", "queues"];

/// A full comparison takes tens of minutes; half a day means that it hangs.
const LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// `cargo xtask bench`.
pub fn main(arguments: &[String]) -> Outcome {
    let named = arguments.first().filter(|name| WORKSPACES.contains(&name.as_str()));
    let passed = &arguments[usize::from(named.is_some())..];
    for workspace in WORKSPACES.iter().filter(|it| named.is_none_or(|name| name == *it)) {
        let folder = root().join("bench").join(workspace);
        if !folder.join("Cargo.toml").exists() {
            println!("skipped: bench/{workspace} is not there");
            continue;
        }
        let mut command = shell::cargo();
        // From inside: the folder has a configuration of its own.
        command.current_dir(folder).args(["run", "--release", "--"]);
        if *workspace == "sched" {
            command.arg("run");
        }
        if !shell::run(command.args(passed), LIMIT)?.success() {
            return Err(format!("bench/{workspace} failed"));
        }
    }
    Ok(())
}
