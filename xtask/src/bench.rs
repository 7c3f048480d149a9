//! The comparison of bench/, which lives in workspaces of its own.

use std::time::Duration;

use crate::{Outcome, root, shell};

/// Text of `cargo xtask bench --help`.
pub const HELP: &str = "\
cargo xtask bench [sched | sync | net | fs | os | fork | mixed | programs | preempt | fibers |
                   queues] [--quick] …

Builds and runs the comparisons of bench/ in release, or the one that is named:
  sched    runtimes                   fork     fork-join
  sync     locks and channels         mixed    a server beside sorts
  net      sockets and timers         preempt  a clock beside tasks that do not yield
  fs       files                      fibers   fibers, tasks and threads
  os       children and signals       queues   run queues and their variants
  programs published servers and database clients
The other arguments are passed on; all know --quick, and --only <row>. Each writes
its record to bench/record. A comparison that is missing is skipped, with a message.";

const WORKSPACES: &[&str] = &[
    "sched", "sync", "net", "fs", "os", "fork", "mixed", "programs", "preempt", "fibers", "queues",
];

/// A full comparison takes tens of minutes; half a day means that it hangs.
const LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs `cargo xtask bench`.
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
        command.current_dir(folder).args(["run", "--release", "--", "run"]);
        if !shell::run(command.args(passed), LIMIT)?.success() {
            return Err(format!("bench/{workspace} failed"));
        }
    }
    Ok(())
}
