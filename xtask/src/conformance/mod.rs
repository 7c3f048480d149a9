//! Tokio's own integration tests on the drop-in.
//!
//! The tests are taken from the package that cargo fetches, and compiled where
//! they lie; nothing of them is in the repository. Each file of
//! `conformance/files.txt` is a test binary of its own and runs in its own
//! process, because panic hooks, signals and limits belong to a process. A file
//! that names something we do not have fails to compile, alone.
//!
//! `conformance/floor.txt` records how many tests of each file pass. It only
//! rises: a run that falls below it fails.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::{Outcome, model::passed, root, shell};

mod suite;
mod build;
mod dependents;
mod apps;
mod rayon;

pub(crate) use self::suite::write;
use self::{
    build::{Built, build},
    suite::{Suite, Tokio},
};

/// Text of `cargo xtask conformance --help`.
pub const HELP: &str = "\
cargo xtask conformance [--record] [--upstream] [--slice <time>] [file …]
cargo xtask conformance --suites [--upstream] [package …]
cargo xtask conformance --apps [--upstream]
cargo xtask conformance --rayon [--threads <n>]

Compiles Tokio's own tests (fetched by cargo, see conformance/files.txt) against
dropin/tokio and runs them, one process per file; checks that the patch is in
force; prints a line per file: pass, fail, or the first thing that is missing.
Fails if a file passes fewer tests than conformance/floor.txt says.
  --record    raises conformance/floor.txt to what passed; never lowers it
  --upstream  runs the files on the real Tokio instead: what this machine can
              reach at most. Looks at no floor.
  --slice     how long a poll may last before its worker goes on with another thread, as in
              `1ms` (see Builder::preemption), so that it happens everywhere. The tests of
              conformance/cooperative.txt are never preempted, here as in an ordinary run
  --suites    the tests of packages that depend on Tokio, instead of Tokio's own: see
              conformance/suites.txt, whose counts are the real Tokio's and the floor
  --apps      the programs of conformance/apps, each driven by its test, instead
  --rayon     Rayon's own tests on dropin/rayon-core, instead; --threads is for its global pool
  file …      only these";

/// How long one file's tests may take. On the real Tokio 92 of them took less than
/// half of this together, so a file that needs it hangs.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
struct Request {
    record: bool,
    upstream: bool,
    slice: Option<String>,
    files: Vec<String>,
}

impl Request {
    fn read(arguments: &[String], known: &[String]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--record" => request.record = true,
                "--slice" => {
                    let slice = arguments.next().ok_or("--slice wants a time, as in `1ms`")?;
                    request.slice = Some(slice.clone());
                }
                "--upstream" => request.upstream = true,
                unknown if unknown.starts_with('-') => {
                    return Err(format!("`{unknown}` is no argument of conformance; see --help"));
                }
                file if known.iter().any(|name| name == file) => request.files.push(file.into()),
                file => return Err(format!("`{file}` is not in conformance/files.txt")),
            }
        }
        if request.record && request.upstream {
            return Err("the floor is the drop-in's: --record does not go with --upstream".into());
        }
        if request.slice.is_some() && (request.record || request.upstream) {
            return Err("--slice goes with neither --record nor --upstream".into());
        }
        if request.files.is_empty() {
            request.files = known.to_vec();
        }
        Ok(request)
    }
}

/// How often a file must fail. Some tests give threads a millisecond to start, which a busy
/// machine may not keep (`worker_park_count` of rt_metrics); it is said if one fails at first.
const TRIES: usize = 3;

/// How a file's tests went.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    /// Did not compile: what is missing.
    Missing(String),
    /// Ran: how many passed, and what failed.
    Ran { passed: usize, failed: Vec<String> },
}

/// `cargo xtask conformance`.
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
    let known = lines(&root().join("conformance/files.txt"))?;
    let request = Request::read(arguments, &known)?;
    let floor = read_floor(&root().join("conformance/floor.txt"), &known)?;
    let tokio = if request.upstream { Tokio::Upstream } else { Tokio::DropIn };
    let conduct = Conduct::read(&known, request.slice.clone())?;
    let rows = run(&request.files, tokio, &conduct)?;
    print(&rows);
    println!("{} in {:.0} s", summary(&rows), start.elapsed().as_secs_f64());
    if request.upstream {
        return Ok(());
    }
    if request.record {
        let text = write_floor(&raised(&floor, &rows));
        return fs::write(root().join("conformance/floor.txt"), text)
            .map_err(|why| why.to_string());
    }
    let mut below = fallen(&floor, &rows);
    for _ in 1..TRIES {
        if below.is_empty() {
            break;
        }
        println!("below the floor: {}; once more:", below.join(", "));
        let is_below = |file: &&String| below.iter().any(|it| it.split(' ').next() == Some(file));
        let files: Vec<_> = request.files.iter().filter(is_below).cloned().collect();
        let rows = run(&files, tokio, &conduct)?;
        print(&rows);
        below = fallen(&floor, &rows);
    }
    if below.is_empty() { Ok(()) } else { Err(format!("below the floor: {}", below.join(", "))) }
}

/// The lines of a file, without empty ones and comments.
pub(crate) fn lines(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let line = |line: &&str| !line.is_empty() && !line.starts_with("# ");
    Ok(text.lines().filter(line).map(str::to_owned).collect())
}

/// What decides about preemption, for runtimes whose builder was not told.
const VARIABLE: &str = "BLITZ_PREEMPTION";

/// How the tests are preempted.
#[derive(Debug)]
struct Conduct {
    slice: Option<String>,
    /// Tests that assert that a blocked worker stays blocked, with their file.
    cooperative: Vec<(String, String)>,
}

impl Conduct {
    fn read(known: &[String], slice: Option<String>) -> Result<Self, String> {
        let mut cooperative = Vec::new();
        for line in lines(&root().join("conformance/cooperative.txt"))? {
            let entry = line.split_once(' ').filter(|(file, _)| known.iter().any(|it| it == file));
            let (file, test) =
                entry.ok_or_else(|| format!("cooperative.txt: `{line}` is no entry"))?;
            cooperative.push((file.to_owned(), test.to_owned()));
        }
        Ok(Self { slice, cooperative })
    }

    /// The tests of that file that are not to be preempted.
    fn cooperative(&self, file: &str) -> Vec<&str> {
        let of_file = self.cooperative.iter().filter(|(of, _)| of == file);
        of_file.map(|(_, test)| test.as_str()).collect()
    }
}

/// Compiles and runs the files.
fn run(files: &[String], tokio: Tokio, conduct: &Conduct) -> Result<BTreeMap<String, Row>, String> {
    let mut rows = BTreeMap::new();
    for suite in Suite::of(files, tokio)? {
        let built = build(&suite)?;
        suite.verify(&built)?;
        for (file, built) in built.files {
            let row = match built {
                Built::Missing(what) => Row::Missing(what),
                Built::Binary(binary) => {
                    run_file(&binary, &suite.folder, &conduct.cooperative(&file), conduct)?
                }
            };
            rows.insert(file, row);
        }
    }
    Ok(rows)
}

fn run_file(
    binary: &Path,
    folder: &Path,
    cooperative: &[&str],
    conduct: &Conduct,
) -> Result<Row, String> {
    let mut command = Command::new(binary);
    if let Some(slice) = &conduct.slice {
        command.env(VARIABLE, slice);
    }
    command.args(["--exact"]).args(cooperative.iter().flat_map(|test| ["--skip", test]));
    let rest = run_one(&mut command, folder)?;
    if cooperative.is_empty() {
        return Ok(rest);
    }
    let mut command = Command::new(binary);
    command.env(VARIABLE, "off").arg("--exact").args(cooperative);
    Ok(rest.with(run_one(&mut command, folder)?))
}

fn run_one(command: &mut Command, folder: &Path) -> Result<Row, String> {
    command.current_dir(folder).env_remove("RUST_BACKTRACE");
    let finished = shell::capture(command, LIMIT)?;
    let mut failed = failures(&finished.stdout);
    if failed.is_empty() && !finished.end.success() {
        failed.push(match finished.end {
            shell::End::TimedOut => format!("no end in {} s", LIMIT.as_secs()),
            shell::End::Exit(status) => status.to_string(),
        });
    }
    let passed = passed(&finished.stdout).max(ok_lines(&finished.stdout));
    Ok(Row::Ran { passed, failed })
}

impl Row {
    /// Both parts of a file.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ran { passed, mut failed }, Self::Ran { passed: more, failed: others }) => {
                failed.extend(others);
                Self::Ran { passed: passed + more, failed }
            }
            (missing @ Self::Missing(_), _) | (_, missing) => missing,
        }
    }
}

/// Tests that libtest calls failed.
fn failures(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        (result == "FAILED").then(|| name.trim_end_matches(" - should panic").to_owned())
    };
    output.lines().filter_map(name).collect()
}

/// Tests that passed in a run that has no end, and so no sum.
fn ok_lines(output: &str) -> usize {
    output.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ... ok")).count()
}

fn print(rows: &BTreeMap<String, Row>) {
    let width = rows.keys().map(String::len).max().unwrap_or(0);
    for (file, row) in rows {
        match row {
            Row::Missing(what) => println!("{file:width$}  missing  {what}"),
            Row::Ran { passed, failed } if failed.is_empty() => {
                println!("{file:width$}  pass     {passed}");
            }
            Row::Ran { passed, failed } => {
                let of = passed + failed.len();
                println!("{file:width$}  FAIL     {passed} of {of}: {}", failed.join(", "));
            }
        }
    }
}

fn summary(rows: &BTreeMap<String, Row>) -> String {
    let (mut whole, mut broken, mut missing, mut tests) = (0, 0, 0, 0);
    for row in rows.values() {
        match row {
            Row::Missing(_) => missing += 1,
            Row::Ran { passed, failed } => {
                tests += passed;
                *if failed.is_empty() { &mut whole } else { &mut broken } += 1;
            }
        }
    }
    format!("{whole} files pass, {broken} fail, {missing} lack something; {tests} tests pass")
}

/// How many tests of a file pass at least.
type Floor = BTreeMap<String, usize>;

fn read_floor(path: &Path, known: &[String]) -> Result<Floor, String> {
    let mut floor = Floor::new();
    for line in lines(path)? {
        let entry = line.split_once(' ').and_then(|(file, count)| {
            Some((known.iter().find(|name| *name == file)?, count.trim().parse().ok()?))
        });
        let (file, count) = entry.ok_or_else(|| format!("floor.txt: `{line}` is no entry"))?;
        floor.insert(file.clone(), count);
    }
    Ok(floor)
}

fn write_floor(floor: &Floor) -> String {
    floor.iter().map(|(file, count)| format!("{file} {count}\n")).collect()
}

/// The floor after a run: never lower than before.
fn raised(floor: &Floor, rows: &BTreeMap<String, Row>) -> Floor {
    let mut raised = floor.clone();
    for (file, row) in rows {
        if let Row::Ran { passed, .. } = row
            && *passed > 0
        {
            let entry = raised.entry(file.clone()).or_default();
            *entry = (*entry).max(*passed);
        }
    }
    raised
}

/// Files that pass fewer tests than recorded.
fn fallen(floor: &Floor, rows: &BTreeMap<String, Row>) -> Vec<String> {
    let fallen = |(file, row): (&String, &Row)| {
        let found = match row {
            Row::Missing(_) => 0,
            Row::Ran { passed, .. } => *passed,
        };
        let wanted = *floor.get(file)?;
        (found < wanted).then(|| format!("{file} ({found} instead of {wanted})"))
    };
    rows.iter().filter_map(fallen).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Floor, Request, Row, failures, fallen, ok_lines, raised, read_floor};
    use crate::root;

    fn row(passed: usize) -> Row {
        Row::Ran { passed, failed: Vec::new() }
    }

    #[test]
    fn the_floor_only_rises_and_a_fall_is_named() {
        let floor = Floor::from([("a".into(), 3), ("b".into(), 3), ("c".into(), 3)]);
        let rows = BTreeMap::from([
            ("a".into(), row(2)),
            ("b".into(), row(4)),
            ("c".into(), Row::Missing("x".into())),
            ("d".into(), row(1)),
            ("e".into(), row(0)),
        ]);
        assert_eq!(fallen(&floor, &rows), ["a (2 instead of 3)", "c (0 instead of 3)"]);
        let raised = raised(&floor, &rows);
        let wanted = [("a", 3), ("b", 4), ("c", 3), ("d", 1)];
        assert_eq!(raised, Floor::from(wanted.map(|(file, count)| (file.into(), count))));
    }

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
    }

    #[test]
    fn the_recorded_floor_names_listed_files() {
        let known = super::lines(&root().join("conformance/files.txt")).unwrap();
        assert!(known.is_sorted());
        assert_eq!(known.len(), 107);
        read_floor(&root().join("conformance/floor.txt"), &known).unwrap();
    }
}
