//! Runs the integration tests under a memory checker: finds leaks and uses after free.
//!
//! `tests/leaks` counts the blocks of chosen scenarios; this command checks every block of the
//! whole suite, and reports where lost blocks were allocated. Valgrind runs one thread at a time
//! and everything tens of times slower, so some tests cannot take part: each is named here with the
//! reason. Tests that leak on purpose, to show that nothing dangles, are the control: one of them
//! runs first, alone, and its leak must be found.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    model::passed,
    root,
    shell::{self, End},
};

/// Text of `cargo xtask leaks --help`.
pub const HELP: &str = "\
cargo xtask leaks [--list] [filter …]

Builds the integration tests of the runtime crate and runs them under valgrind's
memcheck; fails if a block is lost or touched wrongly. A filter picks tests by name.
  --list   the tests that are left out, and why

Without valgrind it is skipped, with a message. The whole report stays in
target/leaks/memcheck.txt.";

/// The factor for a test's own time limit: valgrind alone makes a test tens of times slower, and
/// the threads of a test take turns.
const PATIENCE: &str = "100";

/// Time limit of the run. Hours mean that a test hangs which is not in the list.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// The exit code of memcheck when it has found something; libtest does not use it.
const FOUND: i32 = 9;

/// Tests that are left out: a part of the name, and the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("runtime::stress::", CHURN),
    ("idle::", "looks at the processor time and the system calls of the process"),
    ("runtime::thread_limit::", CHILD),
    ("bad_input::the_number_of_workers_comes_from_the_environment", CHILD),
    ("runtime::shutdown_blocking::a_shutdown_that_waits_names_the_jobs", CHILD),
    ("hostile::cells_that_come_back_during_a_long_poll_are_used_again", RESIDENT),
];

const CHURN: &str = "makes tasks by the million: hours at this speed";
const CHILD: &str = "does its work in a process of its own, which is not looked at";
const RESIDENT: &str = "looks at the memory of the process, and spins while others work";

/// Tests that leak on purpose. The first is the control.
const LOSERS: &[(&str, &str)] = &[
    ("task::shield::a_forgotten_shield_leaves_its_task_unabortable_until_shutdown", FORGETS),
    ("runtime::enter::a_forgotten_guard_keeps_its_runtime_current_and_nothing_dangles", FORGETS),
    ("runtime::enter::a_guard_dropped_out_of_order_panics_and_nothing_dangles", OUT_OF_ORDER),
    ("runtime::enter::guards_dropped_out_of_order_by_a_panic_do_not_abort", OUT_OF_ORDER),
    (
        "runtime::hostile::a_leaked_enter_guard_in_a_task_does_not_make_the_drop_of_the_runtime_panic",
        FORGETS,
    ),
    ("runtime::hostile::a_guard_that_ends_with_its_thread_aborts_nothing", FORGETS),
];

const FORGETS: &str = "forgets a guard, and with it a reference to its runtime";
const OUT_OF_ORDER: &str = "leaves guards out of order, which costs a reference to their runtime";

/// Runs `cargo xtask leaks`.
pub fn main(arguments: &[String]) -> Outcome {
    let flag = |argument: &&String| argument.starts_with('-');
    if arguments.iter().any(|argument| argument == "--list") {
        left_out().for_each(|(name, why)| println!("{name}: {why}"));
        return Ok(());
    }
    if let Some(unknown) = arguments.iter().find(flag) {
        return Err(format!("`{unknown}` is no argument of leaks; see --help"));
    }
    if !is_installed() {
        println!("skipped: valgrind is not installed, so nothing was checked");
        return Ok(());
    }
    let binary = build()?;
    let listed = shell::capture(Command::new(&binary).arg("--list"), LIMIT)?.stdout;
    if let Some(stale) = stale(&listed) {
        return Err(format!("no test is called `{stale}` any more: take it from the list"));
    }
    control(&binary)?;
    check(&binary, arguments)
}

fn left_out() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    LEFT_OUT.iter().chain(LOSERS)
}

/// Returns a name of our lists that is part of no test's name, if there is one.
fn stale(listed: &str) -> Option<&'static str> {
    let gone = |name: &&str| !listed.lines().any(|line| line.contains(name));
    left_out().map(|(name, _)| *name).find(gone)
}

fn is_installed() -> bool {
    let mut probe = Command::new("valgrind");
    shell::capture(probe.arg("--version"), LIMIT).is_ok_and(|finished| finished.end.success())
}

/// Builds the integration tests; returns the binary.
fn build() -> Result<PathBuf, String> {
    let mut command = shell::cargo();
    command.args(["test", "-p", "blitz-io", "--test", "it", "--no-run"]);
    shell::build(&mut command, "crates/blitz-io", "it")
}

/// Returns the command that runs the test binary under memcheck, one test at a time.
fn memcheck(binary: &Path, report: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=memcheck", "--leak-check=full", "--num-callers=30"])
        .args(["--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"])
        // Without fair scheduling, a thread that busy-waits keeps the others from running.
        .arg("--fair-sched=yes")
        .arg(format!("--error-exitcode={FOUND}"))
        .arg(format!("--log-file={}", report.display()))
        .arg(binary)
        .arg("--test-threads=1")
        .env("BLITZ_IT_PATIENCE", PATIENCE)
        // Under valgrind, reading the symbols of this program takes minutes for each panic.
        .env("RUST_BACKTRACE", "0")
        .current_dir(root().join("crates/blitz-io"));
    command
}

/// Returns the path of a report of this name.
fn report(name: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/leaks");
    fs::create_dir_all(&folder).map_err(|why| format!("cannot make {folder:?}: {why}"))?;
    Ok(folder.join(name))
}

/// Runs the control, because a check that cannot fail shows nothing: a leak on purpose must be
/// found.
fn control(binary: &Path) -> Outcome {
    let (name, _) = LOSERS[0];
    let mut command = memcheck(binary, &report("control.txt")?);
    let finished = shell::capture(command.args(["--exact", name]), LIMIT)?;
    match finished.end {
        End::Exit(status) if found(status) => {
            println!("control: what `{name}` loses is found");
            Ok(())
        }
        End::Exit(status) => {
            Err(format!("`{name}` loses something, and it is not found: {status}"))
        }
        End::TimedOut => Err(format!("`{name}` did not end in {} s", LIMIT.as_secs())),
    }
}

fn check(binary: &Path, filters: &[String]) -> Outcome {
    let start = Instant::now();
    let report = report("memcheck.txt")?;
    let mut command = memcheck(binary, &report);
    command.args(filters);
    for (name, _) in left_out() {
        command.args(["--skip", name]);
    }
    let finished = shell::capture(&mut command, LIMIT)?;
    print!("{}{}", finished.stdout, finished.stderr);
    let text = fs::read_to_string(&report).unwrap_or_default();
    let seconds = start.elapsed().as_secs();
    let passed = passed(&finished.stdout);
    println!("{passed} tests in {seconds} s; {} names are left out", left_out().count());
    summary(&text).for_each(|line| println!("{line}"));
    match finished.end {
        End::TimedOut => Err("a test did not end; the last one named hangs".into()),
        End::Exit(status) if found(status) => {
            Err(format!("memcheck has found something: see {}", report.display()))
        }
        End::Exit(status) if !status.success() => Err(format!("a test failed: {status}")),
        End::Exit(_) if passed == 0 => Err("no test ran: the filter matches none".into()),
        End::Exit(_) if summary(&text).next().is_none() => {
            Err(format!("memcheck left no summary in {}", report.display()))
        }
        End::Exit(_) => Ok(()),
    }
}

fn found(status: ExitStatus) -> bool {
    status.code() == Some(FOUND)
}

/// Returns the lines of a report that state what was lost, and how many errors there were.
fn summary(report: &str) -> impl Iterator<Item = &str> {
    let wanted = ["definitely lost:", "indirectly lost:", "no leaks are possible", "ERROR SUMMARY"];
    report.lines().filter_map(move |line| {
        let text = line.trim_start_matches(|c: char| c == '=' || c.is_ascii_digit()).trim();
        wanted.iter().any(|part| text.contains(part)).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::{LEFT_OUT, LOSERS, main, stale, summary};

    #[test]
    fn a_report_is_understood() {
        let report = "==7== Memcheck, a memory error detector\n==7== LEAK SUMMARY:\n\
                      ==7==    definitely lost: 24 bytes in 1 blocks\n\
                      ==7==    indirectly lost: 44 bytes in 1 blocks\n\
                      ==7==      possibly lost: 304 bytes in 1 blocks\n\
                      ==7== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)\n";
        let lines: Vec<_> = summary(report).collect();
        assert_eq!(lines[0], "definitely lost: 24 bytes in 1 blocks");
        assert_eq!(lines.len(), 3);
        assert_eq!(summary("==7== Process terminating\n").count(), 0);
    }

    #[test]
    fn a_name_that_is_no_tests_any_more_is_found() {
        let names = LEFT_OUT.iter().chain(LOSERS).map(|(name, _)| format!("{name}: test\n"));
        let listed: String = names.clone().collect();
        assert_eq!(stale(&listed), None);
        let without_the_first: String = names.skip(1).collect();
        assert_eq!(stale(&without_the_first), Some(LEFT_OUT[0].0));
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        assert!(main(&["--fast".to_owned()]).is_err());
    }
}
