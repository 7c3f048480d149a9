//! Compares a case's runs on both sides, and formats a difference.

use super::run::{End, Observed};

/// The number of equal lines shown around a difference.
const CONTEXT: usize = 3;

/// The number of lines of standard error shown with a difference.
const LAST_WORDS: usize = 12;

/// Above this many pairs of lines a difference is shown as a whole, not line by line.
const PAIRS: usize = 4_000_000;

/// The result of comparing a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// The sides differ; the text shows where.
    Differs(String),
    /// One side's runs differ among each other.
    Varies {
        side: &'static str,
        text: String,
    },
    /// The case has no result to compare on the real packages.
    Broken(String),
}

impl Verdict {
    /// Returns true if the text of a difference has a line that starts with `start`.
    pub(super) fn shows(&self, start: &str) -> bool {
        matches!(self, Self::Differs(text) if text.lines().any(|line| line.starts_with(start)))
    }
}

/// Compares all runs of a case. Each side has at least one.
pub(super) fn compare(real: &[Observed], dropin: &[Observed]) -> Verdict {
    let first = &real[0];
    if let End::Hang(_) = first.end {
        return Verdict::Broken(format!("the case hangs on the real packages{}", words(first)));
    }
    if first.end.is_panic() && dropin[0].end.is_panic() {
        return Verdict::Broken(format!("the case panics on both sides{}", words(first)));
    }
    for (side, runs) in [("the real packages", real), ("the drop-ins", dropin)] {
        let other = runs.iter().find(|run| run.transcript() != runs[0].transcript());
        if let Some(other) = other {
            let text = unified(&runs[0].transcript(), &other.transcript(), ["one run", "another"]);
            return Verdict::Varies { side, text };
        }
    }
    let (ours, theirs) = (dropin[0].transcript(), first.transcript());
    if ours.lines().count() == theirs.lines().count()
        && theirs.lines().zip(ours.lines()).all(|(theirs, ours)| agree(theirs, ours))
    {
        return Verdict::Same;
    }
    let mut text = unified(&theirs, &ours, ["real", "drop-in"]);
    text += &words(first).replace("standard error", "standard error, real");
    text += &words(&dropin[0]).replace("standard error", "standard error, drop-in");
    Verdict::Differs(text)
}

/// Returns true if a line of the drop-ins matches the real packages' line. The text of an error or
/// a panic, which cases put between `«` and `»`, may continue after theirs, because ours adds what
/// to do instead.
fn agree(theirs: &str, ours: &str) -> bool {
    let pieces = |line| str::split(line, ['«', '»']);
    let agrees = |(number, (theirs, ours)): (usize, (&str, &str))| match number % 2 {
        0 => theirs == ours,
        _ => ours.starts_with(theirs),
    };
    pieces(theirs).count() == pieces(ours).count()
        && pieces(theirs).zip(pieces(ours)).enumerate().all(agrees)
}

/// Returns the end of standard error, or nothing if it is empty.
fn words(run: &Observed) -> String {
    let lines: Vec<&str> = run.stderr.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    format!("\nstandard error:\n  | {}", last.join("\n  | "))
}

/// One line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit<'a> {
    Both(&'a str),
    Left(&'a str),
    Right(&'a str),
}

/// Returns a unified difference of two texts, with a few lines around each change.
fn unified(left: &str, right: &str, names: [&str; 2]) -> String {
    let left: Vec<&str> = left.lines().collect();
    let right: Vec<&str> = right.lines().collect();
    let edits = edits(&left, &right);
    let changed = |edit: &Edit<'_>| !matches!(edit, Edit::Both(_));
    let mut text = format!("--- {}\n+++ {}", names[0], names[1]);
    let (mut at, mut shown) = ((1, 1), false);
    for (index, edit) in edits.iter().enumerate() {
        let around = index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(edits.len());
        let near = edits[around].iter().any(changed);
        if near && !shown {
            text += &format!("\n@@ line {} and line {} @@", at.0, at.1);
        }
        shown = near;
        let (mark, line, steps) = match edit {
            Edit::Both(line) => (' ', line, (1, 1)),
            Edit::Left(line) => ('-', line, (1, 0)),
            Edit::Right(line) => ('+', line, (0, 1)),
        };
        if near {
            text += &format!("\n{mark}{line}");
        }
        at = (at.0 + steps.0, at.1 + steps.1);
    }
    text
}

/// Returns the fewest edits that make one list of lines from the other. Lines that agree are equal.
fn edits<'a>(left: &[&'a str], right: &[&'a str]) -> Vec<Edit<'a>> {
    if left.len().saturating_mul(right.len()) > PAIRS {
        let gone = left.iter().map(|line| Edit::Left(line));
        return gone.chain(right.iter().map(|line| Edit::Right(line))).collect();
    }
    // `longest[i][j]` is the length of the longest common subsequence of `left[i..]`, `right[j..]`.
    let mut longest = vec![vec![0_usize; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            longest[i][j] = match agree(left[i], right[j]) {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && agree(left[i], right[j]) {
            edits.push(Edit::Both(left[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || i < left.len() && longest[i + 1][j] >= longest[i][j + 1] {
            edits.push(Edit::Left(left[i]));
            i += 1;
        } else {
            edits.push(Edit::Right(right[j]));
            j += 1;
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_difference_shows_changed_lines_and_what_is_around_them() {
        let left = "1\n2\n3\n4\n5\n6\nold\n8\n9\n10\n11\n12\n";
        let right = "1\n2\n3\n4\n5\n6\nnew\n8\n9\n10\n11\n12\nmore\n";
        assert_eq!(
            unified(left, right, ["a", "b"]),
            "--- a\n+++ b\n@@ line 4 and line 4 @@\n 4\n 5\n 6\n-old\n+new\n 8\n 9\n 10\n 11\n 12\n+more"
        );
        let far = unified(&format!("x\n0\n{left}"), &format!("y\n0\n{right}"), ["a", "b"]);
        assert_eq!(far.matches("@@ line").count(), 2, "{far}");
    }

    #[cfg(unix)]
    mod runs {
        use std::{
            os::unix::process::ExitStatusExt, process::ExitStatus, slice::from_ref, time::Duration,
        };

        use crate::differential::{
            compare::{Verdict, compare},
            run::{End, Observed},
        };

        fn run(stdout: &str, end: End) -> Observed {
            Observed { end, stdout: stdout.into(), stderr: "last words\n".into() }
        }

        fn exit(code: i32) -> End {
            End::Exit(ExitStatus::from_raw(code << 8))
        }

        #[test]
        fn output_exit_status_signal_and_hang_are_compared() {
            let good = || run("a\n", exit(0));
            assert_eq!(compare(&[good()], &[good()]), Verdict::Same);
            let killed = End::Exit(ExitStatus::from_raw(9));
            for (other, shown) in [
                (run("b\n", exit(0)), "+b"),
                (run("a\n", exit(1)), "+[exit status 1]"),
                (run("a\n", killed), "+[signal 9]"),
                (run("a\n", End::Hang(Duration::from_secs(30))), "+[HANG: no end in 30 s]"),
            ] {
                let verdict = compare(&[good()], &[other]);
                assert!(verdict.shows(shown), "{verdict:?}");
                assert!(verdict.shows("  | last words"), "{verdict:?}");
            }
        }

        #[test]
        fn a_quoted_text_may_be_longer_and_nothing_else() {
            let same = |real: &str, dropin: &str| {
                compare(&[run(real, exit(0))], &[run(dropin, exit(0))]) == Verdict::Same
            };
            assert!(same("a\nErr(«no») 1\nb\n", "a\nErr(«no: do that») 1\nb\n"));
            assert!(same("«» «x»\n", "«y» «x»\n"));
            for other in ["a «no: do that» 2", "b «no» 1", "a «not so», «no» 1", "a no 1"] {
                assert!(!same("a «no» 1\n", &format!("{other}\n")), "{other}");
            }
            assert!(!same("a «no: do that» 1\n", "a «no» 1\n"));
            assert!(!same("a «no» 1\n", "a «no» 1\nb\n"));
        }

        #[test]
        fn a_result_that_varies_or_does_not_exist_is_reported() {
            let (good, other) = (run("a\n", exit(0)), run("b\n", exit(0)));
            let varies = compare(&[good.clone(), other.clone()], &[good.clone(), good.clone()]);
            assert!(matches!(varies, Verdict::Varies { side: "the real packages", .. }));
            let varies = compare(&[good.clone(), good.clone()], &[good.clone(), other]);
            assert!(matches!(varies, Verdict::Varies { side: "the drop-ins", .. }));
            let hang = run("a\n", End::Hang(Duration::from_secs(30)));
            assert!(matches!(compare(from_ref(&hang), from_ref(&hang)), Verdict::Broken(_)));
            let panic = run("a\n", exit(101));
            assert!(matches!(compare(from_ref(&panic), from_ref(&panic)), Verdict::Broken(_)));
            assert!(matches!(compare(&[panic], &[good]), Verdict::Differs(_)));
        }
    }
}
