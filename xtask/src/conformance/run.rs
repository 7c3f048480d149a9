//! Runs the compiled tests of a file: one process for all of them, and a process for each test for
//! which the first one printed no result.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use super::lines;
use crate::{root, shell};

/// The time limit for one file's tests. On the real Tokio 92 files took less than half of this
/// together, so a file that needs it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// The time limit for one test in a process of its own. The longest takes eleven seconds.
const LIMIT_OF_ONE: Duration = Duration::from_secs(40);

/// The time limit for a test that is known to hang: long enough for it to end if it no longer
/// hangs.
const LIMIT_OF_HANGING: Duration = Duration::from_secs(10);

/// The variable that enables or disables preemption in runtimes whose builder does not.
const VARIABLE: &str = "BLITZ_PREEMPTION";

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// Without a result: its process was killed, or died.
    Lost(String),
}

/// The results of a file's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    /// Did not compile: the first item that is missing.
    Missing(String),
    /// Ran; tests marked as ignored are left out.
    Ran(BTreeMap<String, Verdict>),
}

impl Row {
    /// Returns the number of tests that ran.
    pub(super) fn count(&self) -> usize {
        match self {
            Row::Missing(_) => 0,
            Row::Ran(tests) => tests.len(),
        }
    }

    /// Returns the tests that did not pass.
    pub(super) fn failed(&self) -> Vec<String> {
        let Row::Ran(tests) = self else { return Vec::new() };
        let failed = |(test, verdict): (&String, &Verdict)| match verdict {
            Verdict::Passed => None,
            Verdict::Failed => Some(test.clone()),
            Verdict::Lost(why) => Some(format!("{test} ({why})")),
        };
        tests.iter().filter_map(failed).collect()
    }
}

/// How the tests are run: preemption, and which tests need special treatment.
#[derive(Debug)]
pub(super) struct RunPlan {
    slice: Option<String>,
    /// Tests that assert that a blocked worker stays blocked, with their files.
    cooperative: Vec<(String, String)>,
    /// Tests that hang, and would take down the others of their file, which run in the same
    /// process.
    hanging: Vec<(String, String)>,
}

impl RunPlan {
    pub(super) fn read(
        known: &[String],
        slice: Option<String>,
        hanging: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let mut cooperative = Vec::new();
        for line in lines(&root().join("conformance/cooperative.txt"))? {
            let entry = line.split_once("::").filter(|(file, _)| known.iter().any(|it| it == file));
            let (file, test) =
                entry.ok_or_else(|| format!("cooperative.txt: `{line}` is no entry"))?;
            cooperative.push((file.to_owned(), test.to_owned()));
        }
        Ok(Self { slice, cooperative, hanging })
    }
}

/// Runs all tests of a file.
pub(super) fn run_file(
    file: &str,
    binary: &Path,
    folder: &Path,
    plan: &RunPlan,
) -> Result<Row, String> {
    let is_in = |list: &[(String, String)], test: &str| {
        list.iter().any(|(of, name)| of == file && name == test)
    };
    let process = |preemption: Option<&str>| {
        let mut command = Command::new(binary);
        command.current_dir(folder).env_remove("RUST_BACKTRACE").env_remove(VARIABLE);
        command.envs(preemption.map(|value| (VARIABLE, value)));
        command.arg("--exact");
        command
    };
    let slice = plan.slice.as_deref();
    let tests = list(binary, folder)?;
    let (hanging, tests): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| is_in(&plan.hanging, test));
    let (cooperative, rest): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| is_in(&plan.cooperative, test));
    let mut found = BTreeMap::new();
    for (tests, preemption) in [(rest, slice), (cooperative, Some("off"))] {
        if tests.is_empty() {
            continue;
        }
        let finished = shell::capture(process(preemption).args(&tests), LIMIT)?;
        for test in sort(&finished.stdout, tests, &mut found) {
            let verdict = run_one(process(preemption).arg(&test), LIMIT_OF_ONE)?;
            found.extend(verdict.map(|verdict| (test, verdict)));
        }
    }
    for test in hanging {
        let verdict = run_one(process(slice).arg(&test), LIMIT_OF_HANGING)?;
        found.extend(verdict.map(|verdict| (test, verdict)));
    }
    Ok(Row::Ran(found))
}

/// Runs a test in a process of its own; `None` if it is marked as ignored.
fn run_one(command: &mut Command, limit: Duration) -> Result<Option<Verdict>, String> {
    let finished = shell::capture(command, limit)?;
    Ok(Some(match finished.end {
        end if end.success() && !finished.stdout.contains(" 1 passed") => return Ok(None),
        end if end.success() => Verdict::Passed,
        shell::End::TimedOut => Verdict::Lost(format!("no end in {} s", limit.as_secs())),
        shell::End::Exit(_) if finished.stdout.contains("... FAILED") => Verdict::Failed,
        shell::End::Exit(status) => Verdict::Lost(status.to_string()),
    }))
}

/// Returns the tests in a binary.
fn list(binary: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(binary);
    command.current_dir(folder).args(["--list", "--format", "terse"]);
    let finished = shell::capture(&mut command, LIMIT)?;
    if !finished.end.success() {
        return Err(format!("{} does not list its tests", binary.display()));
    }
    let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
    Ok(finished.stdout.lines().filter_map(name).collect())
}

/// Extracts the verdicts from libtest's output; returns the tests without one.
///
/// A test may write to the standard output past libtest, so a result need not stand at the
/// beginning of its line.
fn sort(output: &str, tests: Vec<String>, found: &mut BTreeMap<String, Verdict>) -> Vec<String> {
    let mut results = BTreeMap::new();
    for line in output.lines() {
        let Some((before, result)) = line.rsplit_once(" ... ") else { continue };
        let before = before.trim_end_matches(" - should panic");
        let name = before.rsplit_once("test ").map_or(before, |(_, name)| name);
        results.insert(name, result);
    }
    let mut lost = Vec::new();
    for test in tests {
        match results.get(test.as_str()).copied() {
            Some("ok") => drop(found.insert(test, Verdict::Passed)),
            Some("FAILED") => drop(found.insert(test, Verdict::Failed)),
            Some(ignored) if ignored.starts_with("ignored") => {}
            _ => lost.push(test),
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Row, Verdict, sort};

    #[test]
    fn libtest_output_is_understood() {
        let output = "running 5 tests\ntest a ... ok\ntest m::b - should panic ... FAILED\n\
                      test c ... ignored, slow\nwritten by dtest d ... ok\n";
        let tests = ["a", "m::b", "c", "d", "e"].map(str::to_owned).to_vec();
        let mut found = BTreeMap::new();
        assert_eq!(sort(output, tests, &mut found), ["e"]);
        let verdicts = [("a", Verdict::Passed), ("d", Verdict::Passed), ("m::b", Verdict::Failed)];
        let verdicts = BTreeMap::from(verdicts.map(|(test, verdict)| (test.to_owned(), verdict)));
        assert_eq!(found, verdicts);
        assert_eq!(Row::Ran(found).failed(), ["m::b"]);
    }
}
