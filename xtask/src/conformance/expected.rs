//! The outcome that a run must have: how many tests a file has, and which of them fail.
//!
//! `conformance/counts.txt` has a line for each test file of the package: how many of its tests
//! run on the real Tokio, and how many with `--cfg tokio_unstable`. A file that runs fewer on
//! the drop-in has lost tests to a `cfg`, so that is a failure.
//!
//! `conformance/exceptions.txt` and `conformance/exceptions-unstable.txt` name each test that
//! does not pass, with its reason. A failure that is not listed fails the run, and so does a
//! listed test that passes, so that the lists only shrink.

use std::{collections::BTreeMap, fs, path::Path};

use super::{
    lines,
    run::{Row, Verdict},
};
use crate::{Outcome, root};

/// Separates a test from the reason why it fails.
const DASH: &str = " — ";

/// Stands for all tests of a file that does not compile.
const WHOLE: &str = "*";

/// The number of tests of each file that run on the real Tokio: `[stable, unstable]`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<String, [usize; 2]>);

impl Counts {
    pub(super) fn read() -> Result<Self, String> {
        Self::parse(&lines(&path("counts.txt"))?)
    }

    fn parse(lines: &[String]) -> Result<Self, String> {
        let entry = |line: &String| {
            let mut words = line.split(' ');
            let file = words.next()?.to_owned();
            let counts = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
            words.next().is_none().then_some((file, counts))
        };
        let read = |line| entry(line).ok_or_else(|| format!("counts.txt: `{line}` is no entry"));
        Ok(Self(lines.iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Returns an error unless the lines are those of the package's files.
    pub(super) fn cover(&self, files: &[String]) -> Outcome {
        if self.0.keys().eq(files) {
            return Ok(());
        }
        Err("conformance/counts.txt does not list the files of the package: \
             run `conformance --upstream --record`, and again with --unstable"
            .into())
    }

    /// Replaces the numbers of one build by those of a run on the real Tokio.
    pub(super) fn record(
        &self,
        files: &[String],
        rows: &BTreeMap<String, Row>,
        unstable: bool,
    ) -> Outcome {
        let mut text = String::new();
        for file in files {
            let mut counts = self.0.get(file).copied().unwrap_or_default();
            if let Some(row) = rows.get(file) {
                counts[usize::from(unstable)] = row.count();
            }
            text += &format!("{file} {} {}\n", counts[0], counts[1]);
        }
        fs::write(path("counts.txt"), text).map_err(|why| why.to_string())
    }
}

/// The conditions under which a listed test fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// Only if the tests run as root.
    AsRoot,
    /// The outcome depends on time, or on the machine.
    Sometimes,
    /// Always, because it does not end.
    Hangs,
}

/// Tests that do not pass, by file.
#[derive(Debug, Default)]
pub(super) struct Exceptions(BTreeMap<String, BTreeMap<String, When>>);

impl Exceptions {
    pub(super) fn read(unstable: bool, known: &[String]) -> Result<Self, String> {
        let name = if unstable { "exceptions-unstable.txt" } else { "exceptions.txt" };
        let exceptions = Self::parse(name, &lines(&path(name))?)?;
        match exceptions.0.keys().find(|file| !known.contains(file)) {
            None => Ok(exceptions),
            Some(file) => Err(format!("{name}: the package has no file `{file}`")),
        }
    }

    fn parse(name: &str, lines: &[String]) -> Result<Self, String> {
        let mut exceptions = Self::default();
        for line in lines {
            let entry = line.split_once(DASH).and_then(|(test, reason)| {
                let (file, test) = test.split_once("::")?;
                (!test.is_empty() && !reason.is_empty()).then_some((file, test, reason))
            });
            let (file, test, reason) =
                entry.ok_or_else(|| format!("{name}: `{line}` is not `file::test{DASH}reason`"))?;
            let when = match reason.split_once(": ") {
                Some(("as root", _)) => When::AsRoot,
                Some(("sometimes", _)) => When::Sometimes,
                Some(("hangs", _)) => When::Hangs,
                _ => When::Always,
            };
            let of_file = exceptions.0.entry(file.to_owned()).or_default();
            if of_file.insert(test.to_owned(), when).is_some() {
                return Err(format!("{name}: {file}::{test} is listed twice"));
            }
        }
        Ok(exceptions)
    }

    /// Returns the tests that do not end, with their files.
    pub(super) fn hanging(&self) -> Vec<(String, String)> {
        let of_file = |(file, tests): (&String, &BTreeMap<String, When>)| {
            let hanging = tests.iter().filter(|(_, when)| **when == When::Hangs);
            hanging.map(|(test, _)| (file.clone(), test.clone())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of_file).collect()
    }

    fn of(&self, file: &str, test: &str) -> Option<When> {
        self.0.get(file)?.get(test).copied()
    }
}

/// The expected outcome of a run on the drop-in.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) counts: Counts,
    pub(super) exceptions: Exceptions,
    pub(super) unstable: bool,
    /// True if listed tests may pass, as they do with other settings than those of the lists.
    pub(super) lenient: bool,
    pub(super) root: bool,
}

/// A deviation from the expected outcome of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A failure that may not repeat: the test depends on time.
    Failed(String),
    /// A deviation that repeats however often it is tried.
    Listed(String),
}

impl Expected {
    /// Returns the deviations of these outcomes from the expected ones.
    pub(super) fn wrong(&self, rows: &BTreeMap<String, Row>) -> Vec<(String, Wrong)> {
        let of_file = |(file, row): (&String, &Row)| {
            self.wrong_in(file, row).into_iter().map(|wrong| (file.clone(), wrong)).collect()
        };
        rows.iter().flat_map::<Vec<_>, _>(of_file).collect()
    }

    fn wrong_in(&self, file: &str, row: &Row) -> Vec<Wrong> {
        let whole = self.exceptions.of(file, WHOLE);
        let tests = match (row, whole) {
            (Row::Missing(_), Some(_)) => return Vec::new(),
            (Row::Missing(what), None) => {
                return vec![Wrong::Listed(format!("{file} lacks {what}"))];
            }
            (Row::Ran(_), Some(_)) if !self.lenient => {
                return vec![Wrong::Listed(format!("{file}::{WHOLE} is listed, but compiles"))];
            }
            (Row::Ran(tests), _) => tests,
        };
        let mut wrong: Vec<_> =
            tests.iter().filter_map(|(test, verdict)| self.verdict(file, test, verdict)).collect();
        let of_file = self.exceptions.0.get(file);
        let listed = of_file.into_iter().flatten().map(|(test, _)| test);
        wrong.extend(listed.filter(|test| *test != WHOLE && !tests.contains_key(*test)).map(
            |test| Wrong::Listed(format!("{file}::{test} is listed, but there is no such test")),
        ));
        let wanted = self.counts.0.get(file).map_or(0, |counts| counts[usize::from(self.unstable)]);
        if row.count() < wanted {
            let found = row.count();
            wrong.push(Wrong::Listed(format!("{file} has {found} tests instead of {wanted}")));
        }
        wrong
    }

    fn verdict(&self, file: &str, test: &str, verdict: &Verdict) -> Option<Wrong> {
        let passed = *verdict == Verdict::Passed;
        match self.exceptions.of(file, test) {
            Some(When::Sometimes) => None,
            Some(When::AsRoot) if self.root != passed || self.lenient => None,
            Some(When::Always | When::Hangs) if !passed || self.lenient => None,
            Some(_) if passed => {
                Some(Wrong::Listed(format!("{file}::{test} passes: take it off the list")))
            }
            _ if passed => None,
            _ => Some(Wrong::Failed(format!("{file}::{test} fails"))),
        }
    }
}

fn path(name: &str) -> std::path::PathBuf {
    root().join("conformance").join(name)
}

/// Returns true if this process runs as root: its files in `/proc` then belong to user 0.
pub(super) fn is_root() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(Path::new("/proc/self")).is_ok_and(|data| data.uid() == 0)
    }
    #[cfg(not(unix))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        super::run::{Row, Verdict},
        Counts, Exceptions, Expected, Wrong,
    };

    fn expected(counts: &[&str], exceptions: &[&str]) -> Expected {
        let lines = |lines: &[&str]| lines.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Expected {
            counts: Counts::parse(&lines(counts)).unwrap(),
            exceptions: Exceptions::parse("list", &lines(exceptions)).unwrap(),
            unstable: false,
            lenient: false,
            root: true,
        }
    }

    fn ran(tests: &[(&str, bool)]) -> BTreeMap<String, Row> {
        let verdict = |passed| if passed { Verdict::Passed } else { Verdict::Failed };
        let tests = tests.iter().map(|(test, passed)| ((*test).to_owned(), verdict(*passed)));
        BTreeMap::from([("a".to_owned(), Row::Ran(tests.collect()))])
    }

    fn said(expected: &Expected, rows: &BTreeMap<String, Row>) -> Vec<String> {
        let text = |(_, wrong)| match wrong {
            Wrong::Failed(text) | Wrong::Listed(text) => text,
        };
        expected.wrong(rows).into_iter().map(text).collect()
    }

    #[test]
    fn a_failure_that_is_not_listed_is_wrong_and_a_listed_one_is_not() {
        let expected = expected(&["a 3 4"], &["a::m::x — no reason"]);
        let rows = ran(&[("m::x", false), ("y", true), ("z", true)]);
        assert_eq!(said(&expected, &rows), Vec::<String>::new());
        let rows = ran(&[("m::x", false), ("y", false), ("z", true)]);
        assert_eq!(said(&expected, &rows), ["a::y fails"]);
        assert!(matches!(expected.wrong(&rows)[0].1, Wrong::Failed(_)));
    }

    #[test]
    fn a_listed_test_that_passes_or_is_gone_is_wrong() {
        let mut expected = expected(&["a 1 1"], &["a::x — why", "a::gone — why"]);
        let rows = ran(&[("x", true)]);
        let gone = "a::gone is listed, but there is no such test";
        assert_eq!(said(&expected, &rows), ["a::x passes: take it off the list", gone]);
        expected.lenient = true;
        assert_eq!(said(&expected, &rows), [gone]);
    }

    #[test]
    fn conditions_decide_when_a_listed_test_may_pass() {
        let mut expected =
            expected(&["a 2 2"], &["a::x — sometimes: a race", "a::y — as root: it"]);
        assert!(said(&expected, &ran(&[("x", true), ("y", false)])).is_empty());
        assert!(said(&expected, &ran(&[("x", false), ("y", false)])).is_empty());
        assert_eq!(said(&expected, &ran(&[("x", true), ("y", true)])).len(), 1);
        expected.root = false;
        assert!(said(&expected, &ran(&[("x", true), ("y", true)])).is_empty());
        assert_eq!(said(&expected, &ran(&[("x", true), ("y", false)])), ["a::y fails"]);
    }

    #[test]
    fn lost_tests_and_files_that_do_not_compile_are_wrong() {
        let known = expected(&["a 2 2"], &[]);
        assert_eq!(said(&known, &ran(&[("x", true)])), ["a has 1 tests instead of 2"]);
        let missing = BTreeMap::from([("a".to_owned(), Row::Missing("tokio::x".into()))]);
        assert_eq!(said(&known, &missing), ["a lacks tokio::x"]);
        let listed = expected(&["a 2 2"], &["a::* — tokio::x is missing"]);
        assert!(said(&listed, &missing).is_empty());
        assert_eq!(said(&listed, &ran(&[("x", true)])), ["a::* is listed, but compiles"]);
    }

    #[test]
    fn an_entry_needs_a_test_and_a_reason() {
        for line in ["a::x", "a — why", "a:: — why", "a::x — "] {
            assert!(Exceptions::parse("list", &[line.to_owned()]).is_err(), "{line}");
        }
        let twice = ["a::x — why", "a::x — why not"].map(str::to_owned);
        assert!(Exceptions::parse("list", &twice).is_err());
    }

    #[test]
    fn the_lists_of_the_repository_are_well_formed() {
        let files: Vec<String> = Counts::read().unwrap().0.into_keys().collect();
        assert!(files.len() > 180, "{} files", files.len());
        for unstable in [false, true] {
            Exceptions::read(unstable, &files).unwrap();
        }
    }
}
