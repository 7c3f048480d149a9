//! Runs the tests while signals interrupt their threads at random.
//!
//! A signal that is handled makes some system calls return early, and the runtime must handle that
//! so that no test notices. The tests' processes have a handler that does nothing
//! (`BLITZ_IT_INTERRUPT`), and a program beside them sends SIGURG to their threads, some hundred
//! times a second, until they end.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{
    Outcome, faults, model, root,
    shell::{self, End},
};

/// Text of `cargo xtask interrupt --help`.
pub const HELP: &str = "\
cargo xtask interrupt [--sample] [--slice <slice>] [filter …]

Builds the integration tests of the runtime crate and runs them while SIGURG is sent to random
threads of theirs. A filter picks tests by name.
  --sample          `it`, `preempt` and one of the others, another one for each commit
  --slice <slice>   with preemption on, and that slice: 1ms, say (BLITZ_PREEMPTION)

All this is for Linux.";

/// Limit against hangs; each takes a minute or two at most.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// The exit code of the sender if it has sent nothing.
const SKIPPED: i32 = 77;

/// The tests, and how they are selected and built: as in other steps of CI, so that little is built
/// twice. `it` is the largest by far.
const TESTS: [(&str, &str); 4] = [
    ("it", "--workspace"),
    ("preempt", "-p blitz-io --features stall-stacks"),
    ("os", "-p blitz-io --features stall-stacks"),
    ("fiber", "-p blitz-io --features fiber"),
];

/// The number of them that are in every sample.
const ALWAYS: usize = 2;

/// Runs `cargo xtask interrupt`.
pub fn main(arguments: &[String]) -> Outcome {
    let mut slice = None;
    let mut samples = false;
    let mut filters = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--slice" => slice = Some(arguments.next().ok_or("--slice wants one, as in 1ms")?),
            "--sample" => samples = true,
            "--" => {}
            flag if flag.starts_with('-') => {
                return Err(format!("`{flag}` is no argument of interrupt; see --help"));
            }
            filter => filters.push(filter),
        }
    }
    if !cfg!(target_os = "linux") {
        println!("skipped: signals are sent to threads by Linux's means");
        return Ok(());
    }
    let sender = faults::build(true)?;
    let mut failed = Vec::new();
    let (always, others) = TESTS.split_at(ALWAYS);
    let chosen = &others[model::commit_number() % others.len()];
    let others = if samples { std::slice::from_ref(chosen) } else { others };
    for (name, selection) in always.iter().chain(others) {
        let mut command = Command::new(&sender);
        command.arg("interrupt").arg(build(name, selection)?).args(&filters);
        command.current_dir(root().join("crates/blitz-io"));
        command.env("BLITZ_IT_INTERRUPT", "1");
        if let Some(slice) = slice {
            command.env("BLITZ_PREEMPTION", slice);
        }
        match shell::run(&mut command, LIMIT)? {
            end if end.success() => {}
            // A few filtered tests may end before the first signal; all of them do not.
            End::Exit(status) if status.code() == Some(SKIPPED) && !filters.is_empty() => {}
            End::TimedOut => failed.push(format!("{name} did not end")),
            End::Exit(_) => failed.push((*name).to_owned()),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these failed: {}", failed.join("; "))) }
}

/// Builds one of the integration tests; returns the binary.
fn build(name: &str, selection: &str) -> Result<PathBuf, String> {
    let mut command = shell::cargo();
    command.arg("test").args(selection.split(' ')).args(["--test", name, "--no-run"]);
    shell::build(&mut command, "crates/blitz-io", name)
}
