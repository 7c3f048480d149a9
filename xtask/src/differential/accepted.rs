//! The list of accepted differences, and what follows from it for a case.

use std::{collections::BTreeMap, path::Path};

use super::compare::Verdict;
use crate::conformance::lines;

/// The mark of a case that differs in some runs only.
const FLAKY: &str = "flaky:";

/// Accepted differences by case.
#[derive(Debug, Default)]
pub(super) struct Accepted(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    reason: String,
    /// Need not differ in every run.
    flaky: bool,
}

impl Accepted {
    pub(super) fn read(path: &Path, cases: &[String]) -> Result<Self, String> {
        Self::parse(&lines(path)?, cases)
    }

    /// Reads lines `topic/name — reason` and `topic/name — flaky: reason`.
    fn parse(lines: &[String], cases: &[String]) -> Result<Self, String> {
        let mut accepted = Self::default();
        for line in lines {
            let wrong = |why: &str| format!("differences.txt: `{line}` {why}");
            let entry = line.split_once(" — ").map(|(case, reason)| (case.trim(), reason.trim()));
            let (case, reason) = entry.ok_or_else(|| wrong("has no ` — `"))?;
            if !cases.iter().any(|it| it == case) {
                return Err(wrong("names no case"));
            }
            let unmarked = reason.strip_prefix(FLAKY);
            let (reason, flaky) = (unmarked.unwrap_or(reason).trim(), unmarked.is_some());
            if reason.is_empty() {
                return Err(wrong("gives no reason"));
            }
            if accepted
                .0
                .insert(case.to_owned(), Entry { reason: reason.to_owned(), flaky })
                .is_some()
            {
                return Err(wrong("is a second entry of its case"));
            }
        }
        Ok(accepted)
    }

    /// Returns a note about a case that passes, if there is one, or an error that says why it
    /// fails.
    pub(super) fn judge(&self, case: &str, verdict: &Verdict) -> Result<Option<String>, String> {
        match (verdict, self.0.get(case)) {
            (Verdict::Broken(why), _) => Err(why.clone()),
            (Verdict::Same, None) => Ok(None),
            (Verdict::Same, Some(entry)) if entry.flaky => Ok(None),
            (Verdict::Same, Some(_)) => {
                Err("no longer differs: take it out of differences.txt".into())
            }
            (Verdict::Varies { .. }, Some(entry)) if entry.flaky => {
                Ok(Some(format!("varies, as listed: {}", entry.reason)))
            }
            (Verdict::Varies { side, text }, _) => Err(format!("varies on {side}\n{text}")),
            (Verdict::Differs(_), Some(entry)) => {
                Ok(Some(format!("differs, as listed: {}", entry.reason)))
            }
            (Verdict::Differs(text), None) => Err(format!("differs\n{text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Accepted, Verdict};

    fn parse(text: &str) -> Result<Accepted, String> {
        let cases = ["a/b", "a/c", "a/d"].map(str::to_owned);
        Accepted::parse(&text.lines().map(str::to_owned).collect::<Vec<_>>(), &cases)
    }

    #[test]
    fn a_listed_difference_passes_and_a_listed_case_that_is_the_same_fails() {
        let accepted = parse("a/b — unspecified\na/c — flaky: timing").unwrap();
        let differs = Verdict::Differs("text".into());
        let varies = Verdict::Varies { side: "x", text: String::new() };
        let passes = |case, verdict: &Verdict| accepted.judge(case, verdict).is_ok();
        assert!(passes("a/b", &differs) && passes("a/c", &differs) && !passes("a/d", &differs));
        assert!(!passes("a/b", &Verdict::Same));
        assert!(passes("a/c", &Verdict::Same) && passes("a/d", &Verdict::Same));
        assert!(passes("a/c", &varies) && !passes("a/b", &varies) && !passes("a/d", &varies));
        assert!(!passes("a/b", &Verdict::Broken(String::new())));
    }

    #[test]
    fn entries_without_a_case_or_a_reason_are_refused() {
        for wrong in ["a/b", "a/x — gone", "a/b — ", "a/b — flaky: ", "a/b — one\na/b — two"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
