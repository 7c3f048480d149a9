//! The wording of comments: openings of doc comments that say nothing on their own, and words that
//! treat threads and functions as persons.
//!
//! Each folder of the runtime crate has a ceiling for both in `xtask/voice.txt`. A folder above its
//! ceiling breaks the rule, and so does one below it: the ceiling must be lowered in the same
//! commit, so that it only falls. A folder that is not listed has a ceiling of zero.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};

/// The file with the ceilings.
const CEILINGS: &str = "xtask/voice.txt";

/// The sources that are checked.
const SOURCES: &str = "crates/blitz-io/src/";

/// Openings of a doc comment that show nothing in an editor's hover box.
const OPENINGS: &[&str] =
    &["The same", "As ", "It ", "Of ", "Who ", "What ", "Whether ", "See the module"];

/// Words for persons, and for what persons do.
const WORDS: &[&str] = &[
    "who",
    "whom",
    "whose",
    "whoever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "tell",
    "tells",
    "told",
    "answer",
    "answers",
    "answered",
    "ask",
    "asks",
    "asked",
];

/// The counts of a folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    openings: usize,
    words: usize,
}

/// Checks that each folder has exactly as many as its ceiling says.
pub fn voice(files: &[File]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|file| file.path == CEILINGS) else {
        return vec![Finding {
            path: CEILINGS.to_owned(),
            line: 1,
            what: "the list of ceilings is missing".to_owned(),
        }];
    };
    let mut findings = Vec::new();
    let mut ceilings = BTreeMap::new();
    for (line, text) in list.text.lines().enumerate().filter(|(_, text)| !text.starts_with('#')) {
        match read(text) {
            Some((folder, count)) => {
                ceilings.insert(folder, (line, count));
            }
            None => findings.push(list.finding(line, "write `folder openings words`")),
        }
    }
    let counted = count(files);
    let folders: BTreeSet<&str> = counted.keys().chain(ceilings.keys()).copied().collect();
    for folder in folders {
        let now = counted.get(folder).copied().unwrap_or_default();
        let (line, ceiling) = ceilings.get(folder).copied().unwrap_or_default();
        let what = if now.openings > ceiling.openings || now.words > ceiling.words {
            "more than its ceiling: say what the item is or does, in the field's words"
        } else if now == ceiling {
            continue;
        } else {
            "less than its ceiling: lower that"
        };
        let (Count { openings, words }, Count { openings: most, words: most_words }) =
            (now, ceiling);
        findings.push(list.finding(
            line,
            format!("{folder} has {openings} openings and {words} words of {most} and {most_words}: {what}"),
        ));
    }
    findings
}

fn read(text: &str) -> Option<(&str, Count)> {
    let mut parts = text.split_whitespace();
    let folder = parts.next()?;
    let mut number = || parts.next()?.parse().ok();
    Some((folder, Count { openings: number()?, words: number()? }))
}

/// Counts openings and words by folder; each folder of the engine counts separately.
fn count(files: &[File]) -> BTreeMap<&str, Count> {
    let mut counts = BTreeMap::new();
    for file in files {
        let Some(inside) = file.path.strip_prefix(SOURCES) else { continue };
        let Some(source) = &file.source else { continue };
        let depth = if inside.starts_with("engine/") { 2 } else { 1 };
        let end = inside.match_indices('/').nth(depth - 1).map_or(inside.len(), |(at, _)| at);
        let count: &mut Count = counts.entry(&inside[..end]).or_default();
        let mut continues = false;
        for line in &source.lines {
            let comment = line.comment.trim();
            let doc = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
            let text = doc.map(str::trim_start);
            let opens = |text: &str| OPENINGS.iter().any(|opening| text.starts_with(opening));
            count.openings += usize::from(!continues && text.is_some_and(opens));
            count.words += words_in(comment);
            continues = doc.is_some();
        }
    }
    counts.retain(|_, count| *count != Count::default());
    counts
}

fn words_in(comment: &str) -> usize {
    let words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| WORDS.iter().any(|bad| word.eq_ignore_ascii_case(bad))).count()
}

#[cfg(test)]
mod tests {
    use super::{CEILINGS, voice};
    use crate::tidy::File;

    fn found(source: &str, ceilings: &str) -> Vec<String> {
        let files = [
            File::new("crates/blitz-io/src/engine/pool/find.rs", source),
            File::new(CEILINGS, ceilings),
        ];
        voice(&files).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn an_opening_or_a_word_above_the_ceiling_is_a_finding() {
        let source = "/// The same.\nfn f() {}\n/// Returns who waits.\nfn g() {}\n";
        assert!(found(source, "# list\nengine/pool 1 1\n").is_empty());
        let above = found(source, "engine/pool 1 0\n");
        assert!(above[0].contains("more than its ceiling"), "{above:?}");
        let unlisted = found(source, "");
        assert!(unlisted[0].contains("of 0 and 0"), "{unlisted:?}");
    }

    #[test]
    fn a_ceiling_that_is_too_high_is_a_finding() {
        let below = found("/// Returns.\nfn f() {}\n", "engine/pool 0 1\n");
        assert!(below[0].contains("lower that"), "{below:?}");
        let gone = found("", "engine/pool 1 0\n");
        assert!(gone[0].contains("lower that"), "{gone:?}");
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_is_its_opening_and_code_does_not_count() {
        let source = "/// Returns a value.\n/// It is new.\nfn who() { answer(\"told\") }\n";
        assert!(found(source, "").is_empty());
    }

    #[test]
    fn a_line_that_makes_no_sense_is_a_finding() {
        assert_eq!(found("", "engine/pool one\n"), ["write `folder openings words`"]);
    }
}
