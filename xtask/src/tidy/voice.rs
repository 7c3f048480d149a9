//! The wording of prose and of strings: openings of doc comments that say nothing on their own, and
//! words that treat threads and functions as persons.
//!
//! Prose is every comment of a Rust file and every Markdown file, without code: examples and text
//! in backticks do not count. (A block that is marked as `text` is prose: it holds the steps of a
//! protocol.) Each folder has a ceiling for both in `xtask/voice.txt`. A folder above its ceiling
//! breaks the rule, and so does one below it: the ceiling must be lowered in the same commit, so
//! that it only falls. A folder that is not listed has a ceiling of zero.
//!
//! Strings of Rust files (messages of panics and asserts, reasons, help texts) have no ceiling:
//! they have none of the words. `STRINGS_EXEMPT` and `QUOTED` list the exceptions.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};

/// The file with the ceilings.
const CEILINGS: &str = "xtask/voice.txt";

/// Files that are not checked: records of measurements, which are never edited.
const EXEMPT: &[&str] = &["bench/record/20"];

/// Folders whose strings are not checked: the differential cases, whose names and output are the
/// labels of a comparison with Tokio, and the rules of tidy, which have the words as data.
const STRINGS_EXEMPT: &[&str] = &["conformance/differential/", "xtask/src/tidy/"];

/// Texts that a file's strings may have.
const QUOTED: &[(&str, &str)] = &[
    // The name of a figure, by which it is found in the records.
    ("bench/net/src/sockets.rs", "answer"),
    // The name of a user of the operating system.
    ("bench/programs/src/setup.rs", "nobody"),
    // The name of a folder: blanks, brackets, and words that a test may search for.
    ("xtask/src/hardy.rs", "new who told 1.54.1 (copy)"),
];

/// Folders whose subfolders each have a ceiling of their own.
const DIVIDED: &[&str] = &[
    "bench/",
    "conformance/",
    "crates/",
    "crates/blitz-io/",
    "crates/blitz-io/src/",
    "crates/blitz-io/src/engine/",
    "docs/",
    "dropin/",
    "xtask/",
];

/// Openings of a doc comment that show nothing in an editor's hover box.
const OPENINGS: &[&str] =
    &["The same", "As ", "It ", "Of ", "Who ", "Whose ", "What ", "Whether ", "See the module"];

/// Words for persons, and for what persons do. (A thing may have a *whose*, so that is allowed.)
const WORDS: &[&str] = &[
    "who",
    "whom",
    "whoever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
    "tell",
    "tells",
    "telling",
    "told",
    "answer",
    "answers",
    "answering",
    "answered",
    "ask",
    "asks",
    "asking",
    "asked",
];

/// The counts of a folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    openings: usize,
    words: usize,
}

/// The counts of a folder, and the lines that were counted.
#[derive(Debug, Default)]
struct Hits {
    count: Count,
    lines: Vec<String>,
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
        let hits = counted.get(folder);
        let now = hits.map(|hits| hits.count).unwrap_or_default();
        let (line, ceiling) = ceilings.get(folder).copied().unwrap_or_default();
        let what = if now.openings > ceiling.openings || now.words > ceiling.words {
            let lines = hits.map(|hits| hits.lines.join(", ")).unwrap_or_default();
            format!("more than its ceiling: say what it is or does, in the field's words ({lines})")
        } else if now == ceiling {
            continue;
        } else {
            "less than its ceiling: lower that".to_owned()
        };
        let (Count { openings, words }, Count { openings: most, words: most_words }) =
            (now, ceiling);
        findings.push(list.finding(
            line,
            format!("{folder} has {openings} openings and {words} words of {most} and {most_words}: {what}"),
        ));
    }
    findings.extend(in_strings(files));
    findings
}

/// Returns a finding for each line with a string that has one of the words.
fn in_strings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(source) = &file.source else { continue };
        if STRINGS_EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)) {
            continue;
        }
        for (at, line) in source.lines.iter().enumerate() {
            let mut text = line.strings.clone();
            for (_, quoted) in QUOTED.iter().filter(|(path, _)| file.path == *path) {
                text = text.replace(quoted, " ");
            }
            if words_in(&text) > 0 {
                findings.push(file.finding(
                    at,
                    "a string has a word for persons: say what it is or does, in the field's words",
                ));
            }
        }
    }
    findings
}

fn read(text: &str) -> Option<(&str, Count)> {
    let mut parts = text.split_whitespace();
    let folder = parts.next()?;
    let mut number = || parts.next()?.parse().ok();
    Some((folder, Count { openings: number()?, words: number()? }))
}

/// Counts openings and words by folder.
fn count(files: &[File]) -> BTreeMap<&str, Hits> {
    let mut counts = BTreeMap::<&str, Hits>::new();
    for file in files {
        if EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)) {
            continue;
        }
        let hits = counts.entry(folder_of(&file.path)).or_default();
        for (at, line) in prose(file).into_iter().enumerate() {
            let openings = usize::from(line.opens && opens(&line.text));
            let words = words_in(&line.text);
            hits.count.openings += openings;
            hits.count.words += words;
            if openings + words > 0 {
                hits.lines.push(format!("{}:{}", file.path, at + 1));
            }
        }
    }
    counts.retain(|_, hits| hits.count != Count::default());
    counts
}

/// Returns the folder whose ceiling holds for a file, or the file itself if it has one of its own.
fn folder_of(path: &str) -> &str {
    let divided = DIVIDED.iter().filter(|folder| path.starts_with(**folder));
    let from = divided.map(|folder| folder.len()).max().unwrap_or(0);
    path[from..].find('/').map_or(path, |end| &path[..from + end])
}

/// A line's part that is prose.
struct Prose {
    text: String,
    /// True if it may be the first line of a doc comment.
    opens: bool,
}

/// Returns the prose of each line of a file.
fn prose(file: &File) -> Vec<Prose> {
    let mut continues = false;
    // The block that the line is in, if any, and whether it is code.
    let mut block: Option<bool> = None;
    let mut prose_of = |text: &str, is_doc: bool| {
        let opens = is_doc && !continues;
        block = block.filter(|_| is_doc);
        continues = is_doc;
        if let Some(kind) = text.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind != "text") };
            return Prose { text: String::new(), opens };
        }
        let is_code = block == Some(true);
        Prose { text: if is_code { String::new() } else { without_code(text) }, opens }
    };
    match &file.source {
        Some(source) => {
            let lines = source.lines.iter().map(|line| line.comment.trim());
            let split = lines.map(|comment| {
                let doc = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
                prose_of(doc.unwrap_or(comment).trim_start(), doc.is_some())
            });
            split.collect()
        }
        None if file.path.ends_with(".md") => {
            let lines = file.text.lines().map(|line| prose_of(line.trim(), true));
            lines.map(|line| Prose { opens: false, ..line }).collect()
        }
        None => Vec::new(),
    }
}

/// Returns a line without its parts in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn opens(text: &str) -> bool {
    OPENINGS.iter().any(|opening| text.starts_with(opening))
}

fn words_in(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| WORDS.iter().any(|bad| word.eq_ignore_ascii_case(bad))).count()
}

#[cfg(test)]
mod tests {
    use super::{CEILINGS, QUOTED, STRINGS_EXEMPT, folder_of, voice};
    use crate::tidy::File;

    fn found_in(path: &str, text: &str, ceilings: &str) -> Vec<String> {
        let files = [File::new(path, text), File::new(CEILINGS, ceilings)];
        voice(&files).into_iter().map(|finding| finding.what).collect()
    }

    fn found(source: &str, ceilings: &str) -> Vec<String> {
        found_in("crates/blitz-io/src/engine/pool/find.rs", source, ceilings)
    }

    const POOL: &str = "crates/blitz-io/src/engine/pool";

    #[test]
    fn an_opening_or_a_word_above_the_ceiling_is_a_finding() {
        let source = "/// The same.\nfn f() {}\n/// Returns who waits.\nfn g() {}\n";
        assert!(found(source, &format!("# list\n{POOL} 1 1\n")).is_empty());
        let above = found(source, &format!("{POOL} 1 0\n"));
        assert!(above[0].contains("more than its ceiling"), "{above:?}");
        assert!(above[0].contains("find.rs:1, ") && above[0].contains("find.rs:3)"), "{above:?}");
        let unlisted = found(source, "");
        assert!(unlisted[0].contains("of 0 and 0"), "{unlisted:?}");
    }

    #[test]
    fn every_crate_and_every_markdown_file_is_checked() {
        for path in [
            "crates/blitz/src/main.rs",
            "crates/blitz-io/tests/it/a.rs",
            "dropin/tokio/src/lib.rs",
            "xtask/src/ci.rs",
            "xtask/chaos/src/main.rs",
            "examples/src/lib.rs",
            "bench/net/src/main.rs",
            "conformance/differential/src/main.rs",
        ] {
            assert_eq!(found_in(path, "// Nobody waits.\n", "").len(), 1, "{path}");
        }
        for path in ["README.md", "docs/guide.md", "bench/README.md", "crates/blitz/README.md"] {
            assert_eq!(found_in(path, "# A\n\nNobody waits.\n", "").len(), 1, "{path}");
        }
        for path in ["bench/record/2026-11-15-net.md", "a.txt"] {
            assert_eq!(found_in(path, "// Nobody waits.\n", ""), [""; 0], "{path}");
        }
    }

    #[test]
    fn a_folder_or_a_file_has_its_own_ceiling() {
        assert_eq!(folder_of("crates/blitz-io/src/engine/pool/idle/tests.rs"), POOL);
        assert_eq!(folder_of("crates/blitz-io/src/lib.rs"), "crates/blitz-io/src/lib.rs");
        assert_eq!(folder_of("crates/blitz/src/main.rs"), "crates/blitz");
        assert_eq!(folder_of("docs/design/time.md"), "docs/design");
        assert_eq!(folder_of("examples/src/bin/chat.rs"), "examples");
        assert_eq!(folder_of("README.md"), "README.md");
    }

    #[test]
    fn a_ceiling_that_is_too_high_is_a_finding() {
        let below = found("/// Returns.\nfn f() {}\n", &format!("{POOL} 0 1\n"));
        assert!(below[0].contains("lower that"), "{below:?}");
        let gone = found("", &format!("{POOL} 1 0\n"));
        assert!(gone[0].contains("lower that"), "{gone:?}");
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_is_its_opening_and_code_does_not_count() {
        let source = "/// Returns a value.\n/// It is new.\nfn who() { answer(1) }\n";
        assert!(found(source, "").is_empty());
        let example = "/// Returns `who`.\n/// ```\n/// let answer = 42;\n/// ```\nfn f() {}\n";
        assert!(found(example, "").is_empty());
        let markdown = "`who`\n\n```sh\nwho\n```\n";
        assert!(found_in("README.md", markdown, "").is_empty());
        let text = "//! ```text\n//! W1 tells it\n//! ```\n//! who\n";
        assert!(found(text, "")[0].contains("0 openings and 2 words"));
    }

    #[test]
    fn a_word_in_a_string_is_a_finding() {
        let of = |source: &str| found(source, "").len();
        assert_eq!(of("fn f() { panic!(\"\\nnobody waits\") }\n"), 1);
        assert_eq!(of("const HELP: &str = r#\"\nwho\n\ntold\n\"#;\n"), 2);
        assert_eq!(of("#[allow(dead_code, reason = \"a task that is told\")]\nfn f() {}\n"), 1);
        assert_eq!(of("fn f(who: char) { tell(who, 'a', \"a task waits\") }\n"), 0);
        for path in STRINGS_EXEMPT.iter().map(|folder| format!("{folder}src/main.rs")) {
            assert_eq!(found_in(&path, "const A: &str = \"who\";\n", ""), [""; 0], "{path}");
        }
        for (path, quoted) in QUOTED {
            let quotes = |text: &str| found_in(path, &format!("const A: &str = \"{text}\";\n"), "");
            assert_eq!((quotes(quoted).len(), quotes("telling").len()), (0, 1), "{path}");
        }
    }

    #[test]
    fn a_line_that_makes_no_sense_is_a_finding() {
        assert_eq!(found("", "engine/pool one\n"), ["write `folder openings words`"]);
    }
}
