//! Tokio's own integration tests on the drop-in.
//!
//! The tests are taken from the package that cargo fetches, all of them, and compiled in place; the
//! repository has none of them. Each file is a test binary of its own and runs in its own process,
//! because panic hooks, signals and limits belong to a process. A file that names an item we do not
//! have fails to compile, and only that file.
//!
//! The tests that do not pass are listed with their reasons; see `expected.rs`.

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use crate::Outcome;

mod suite;
mod build;
mod run;
mod expected;
mod dependents;
mod apps;
mod rayon;

pub(crate) use self::suite::write;
use self::{
    build::{Built, build},
    expected::{Counts, Exceptions, Expected, Wrong, is_root},
    run::{Row, RunPlan, run_file},
    suite::{Kind, Suite, Tokio, VERSION},
};

/// Text of `cargo xtask conformance --help`.
pub const HELP: &str = "\
cargo xtask conformance [--unstable] [--slice <time>] [--share <n>/<of>] [file …]
cargo xtask conformance --upstream [--unstable] [--record] [file …]
cargo xtask conformance --suites [--upstream] [package …]
cargo xtask conformance --apps [--upstream]
cargo xtask conformance --rayon [--threads <n>]

Compiles all of Tokio's own integration tests (fetched by cargo) against dropin/tokio and
runs them, one process per file; checks that the patch is in force; prints a line per file:
pass, fail, or the first thing that is missing. Fails if a test fails that is not in
conformance/exceptions.txt, if one passes that is, or if a file has fewer tests than
conformance/counts.txt says.
  --unstable  the same with `--cfg tokio_unstable` and the features that need it; its list
              is conformance/exceptions-unstable.txt
  --slice     how long a poll may last before its worker goes on with another thread, as in
              `1ms` (see Builder::preemption), so that it happens everywhere. Listed tests may
              pass. The tests of conformance/cooperative.txt are never preempted, here as in
              an ordinary run
  --share     every <of>-th file, from the <n>-th on, counted from 0
  --upstream  runs the files on the real Tokio instead: what this machine can
              reach at most. Looks at no list.
  --record    writes how many tests ran to conformance/counts.txt
  --suites    the tests of packages that depend on Tokio, instead of Tokio's own: see
              conformance/suites.txt, whose counts are the real Tokio's and the floor
  --apps      the programs of conformance/apps, each driven by its test, instead
  --rayon     Rayon's own tests on dropin/rayon-core, instead; --threads is for its global pool
  file …      only these";

#[derive(Debug, Default)]
struct Request {
    record: bool,
    unstable: bool,
    upstream: bool,
    slice: Option<String>,
    files: Vec<String>,
}

impl Request {
    /// Returns which kind of packages is generated for the run.
    fn kind(&self) -> Kind {
        let tokio = if self.upstream { Tokio::Upstream } else { Tokio::DropIn };
        Kind { tokio, unstable: self.unstable }
    }

    fn read(arguments: &[String], known: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--record" => request.record = true,
                "--unstable" => request.unstable = true,
                "--slice" => {
                    let slice = arguments.next().ok_or("--slice wants a time, as in `1ms`")?;
                    request.slice = Some(slice.clone());
                }
                "--share" => {
                    let share = arguments.next().and_then(|share| share_of(share, known));
                    request.files =
                        share.ok_or("--share wants a part of all files, as in `0/3`")?;
                }
                "--upstream" => request.upstream = true,
                unknown if unknown.starts_with('-') => {
                    return Err(format!("`{unknown}` is no argument of conformance; see --help"));
                }
                file if known.iter().any(|name| name == file) => request.files.push(file.into()),
                file => return Err(format!("tokio {VERSION} has no file of tests `{file}`")),
            }
        }
        if request.record && !request.upstream {
            return Err("the counts are the real Tokio's: --record goes with --upstream".into());
        }
        if request.slice.is_some() && request.upstream {
            return Err("--slice does not go with --upstream".into());
        }
        if request.files.is_empty() {
            request.files = known.to_vec();
        }
        Ok(request)
    }
}

/// Returns the files of a share such as `0/3`: every third one, starting with the first.
fn share_of(share: &str, files: &[String]) -> Option<Vec<String>> {
    let (number, of) = share.split_once('/')?;
    let (number, of): (usize, usize) = (number.parse().ok()?, of.parse().ok()?);
    (number < of).then(|| files.iter().skip(number).step_by(of).cloned().collect())
}

/// The number of attempts that must fail before a test counts as failed. Some tests give threads a
/// millisecond to start, which is too little on a busy machine (`worker_park_count` of rt_metrics);
/// a retry is printed.
const TRIES: usize = 3;

/// Runs `cargo xtask conformance`.
pub fn main(arguments: &[String]) -> Outcome {
    if let Some(("--suites", rest)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return dependents::main(rest);
    }
    if let Some(("--apps", rest)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return apps::main(rest);
    }
    if let Some(("--rayon", rest)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return rayon::main(rest);
    }
    let start = Instant::now();
    let known = suite::test_files()?;
    let request = Request::read(arguments, &known)?;
    let kind = request.kind();
    let exceptions = Exceptions::read(request.unstable, &known)?;
    let hanging = if request.upstream { Vec::new() } else { exceptions.hanging() };
    let plan = RunPlan::read(&known, request.slice.clone(), hanging)?;
    let rows = run(&request.files, kind, &plan)?;
    print(&rows);
    println!("{} in {:.0} s", summary(&rows), start.elapsed().as_secs_f64());
    let counts = Counts::read()?;
    if request.record {
        return counts.record(&known, &rows, request.unstable);
    }
    if request.upstream {
        return Ok(());
    }
    counts.cover(&known)?;
    let expected = Expected {
        counts,
        exceptions,
        unstable: request.unstable,
        lenient: request.slice.is_some(),
        root: is_root(),
    };
    let wrong = settle(expected.wrong(&rows), |files| {
        let rows = run(files, kind, &plan)?;
        print(&rows);
        Ok(expected.wrong(&rows))
    })?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Retries files with failures; returns what stays wrong.
fn settle(
    mut wrong: Vec<(String, Wrong)>,
    mut again: impl FnMut(&[String]) -> Result<Vec<(String, Wrong)>, String>,
) -> Result<Vec<String>, String> {
    let mut settled = Vec::new();
    for attempt in 1..=TRIES {
        let (failed, listed): (Vec<_>, Vec<_>) =
            wrong.into_iter().partition(|(_, wrong)| matches!(wrong, Wrong::Failed(_)));
        // Only once: a file that is retried would be reported again.
        if attempt == 1 {
            settled.extend(listed);
        }
        wrong = failed;
        if wrong.is_empty() || attempt == TRIES {
            break;
        }
        let mut files: Vec<String> = wrong.iter().map(|(file, _)| file.clone()).collect();
        files.dedup();
        println!("not as expected: {}; once more:", files.join(", "));
        wrong = again(&files)?;
    }
    let text = |(_, wrong)| match wrong {
        Wrong::Failed(text) | Wrong::Listed(text) => text,
    };
    Ok(settled.into_iter().chain(wrong).map(text).collect())
}

/// Reads the lines of a file, without empty ones and comments.
pub(crate) fn lines(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let line = |line: &&str| !line.is_empty() && !line.starts_with("# ");
    Ok(text.lines().filter(line).map(str::to_owned).collect())
}

/// Compiles and runs the files.
fn run(files: &[String], kind: Kind, plan: &RunPlan) -> Result<BTreeMap<String, Row>, String> {
    let mut rows = BTreeMap::new();
    for suite in Suite::of(files, kind)? {
        let built = build(&suite)?;
        suite.verify(&built)?;
        for (file, built) in built.files {
            let row = match built {
                Built::Missing(what) => Row::Missing(what),
                Built::Binary(binary) => run_file(&file, &binary, &suite.folder, plan)?,
            };
            rows.insert(file, row);
        }
    }
    Ok(rows)
}

/// Returns the tests that libtest reports as failed.
fn failures(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        (result == "FAILED").then(|| name.trim_end_matches(" - should panic").to_owned())
    };
    output.lines().filter_map(name).collect()
}

/// Counts the tests that passed in a run that was cut off, and so printed no total.
fn ok_lines(output: &str) -> usize {
    output.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ... ok")).count()
}

fn print(rows: &BTreeMap<String, Row>) {
    let width = rows.keys().map(String::len).max().unwrap_or(0);
    for (file, row) in rows {
        let failed = row.failed();
        match row {
            Row::Missing(what) => println!("{file:width$}  missing  {what}"),
            Row::Ran(tests) if failed.is_empty() => {
                println!("{file:width$}  pass     {}", tests.len());
            }
            Row::Ran(tests) => {
                let (passed, of) = (tests.len() - failed.len(), tests.len());
                println!("{file:width$}  FAIL     {passed} of {of}: {}", failed.join(", "));
            }
        }
    }
}

fn summary(rows: &BTreeMap<String, Row>) -> String {
    let (mut whole, mut broken, mut missing, mut tests, mut failures) = (0, 0, 0, 0, 0);
    for row in rows.values() {
        let failed = row.failed().len();
        match row {
            Row::Missing(_) => missing += 1,
            Row::Ran(_) if failed == 0 => whole += 1,
            Row::Ran(_) => broken += 1,
        }
        tests += row.count() - failed;
        failures += failed;
    }
    format!(
        "{whole} files pass, {broken} fail, {missing} lack something; \
         {tests} tests pass, {failures} fail"
    )
}

#[cfg(test)]
mod tests {
    use super::{Request, TRIES, Wrong, failures, ok_lines, settle, share_of};

    #[test]
    fn libtest_output_is_understood() {
        let output = "test a ... ok\ntest b - should panic ... FAILED\ntest c ... ignored\n";
        assert_eq!(failures(output), ["b"]);
        assert_eq!(ok_lines(output), 1);
    }

    #[test]
    fn unknown_files_and_arguments_are_refused() {
        let known = ["rt_panic".to_owned()];
        let read = |argument: &str| Request::read(&[argument.to_owned()], &known);
        assert_eq!(read("rt_panic").unwrap().files, known);
        assert!(read("rt_pancake").is_err());
        assert!(read("--recrod").is_err());
        assert!(read("--record").is_err(), "the counts are the real Tokio's");
    }

    #[test]
    fn the_shares_together_are_all_files() {
        let files = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let mut all: Vec<String> =
            ["0/3", "1/3", "2/3"].iter().flat_map(|it| share_of(it, &files).unwrap()).collect();
        assert_eq!(share_of("1/3", &files).unwrap(), ["b", "e"]);
        all.sort();
        assert_eq!(all, files);
        for wrong in ["3/3", "1", "x/3", "0/0"] {
            assert_eq!(share_of(wrong, &files), None, "{wrong}");
        }
    }

    #[test]
    fn a_failure_is_tried_again_and_a_listed_test_that_passes_is_not() {
        let failed = |test: &str| ("a".to_owned(), Wrong::Failed(test.to_owned()));
        let listed = ("b".to_owned(), Wrong::Listed("y passes".to_owned()));
        let mut attempts = 1;
        let wrong = settle(vec![failed("x"), failed("z"), listed], |files| {
            attempts += 1;
            assert_eq!(files, ["a"]);
            Ok(vec![failed("x")])
        });
        assert_eq!((wrong.unwrap(), attempts), (vec!["y passes".into(), "x".into()], TRIES));
        let wrong = settle(vec![failed("x")], |_| Ok(Vec::new()));
        assert_eq!(wrong.unwrap(), Vec::<String>::new());
    }
}
