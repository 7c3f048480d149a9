//! Names of code in Markdown, which go stale when the code is renamed.
//!
//! Checked are file names that end in `.rs`, and `Type::name` of types that the repository defines,
//! between backticks. What a record of a measurement names is history.

use std::collections::BTreeSet;

use super::{File, Finding};
use crate::source::{is_word, split_tokens};

/// Markdown that names what was.
const EXEMPT: &[&str] = &["CHANGELOG.md", "bench/record/"];

/// Checks that files and items that Markdown names exist.
pub fn references(files: &[File]) -> Vec<Finding> {
    let sources: Vec<&File> = files.iter().filter(|file| file.source.is_some()).collect();
    let mut words = BTreeSet::new();
    let mut types = BTreeSet::new();
    for file in &sources {
        for line in file.source.iter().flat_map(|source| &source.lines) {
            let tokens: Vec<_> =
                split_tokens(&line.bare).into_iter().filter(|token| is_word(token)).collect();
            let defines = |pair: &&[&str]| matches!(pair[0], "struct" | "enum" | "trait");
            types.extend(tokens.windows(2).filter(defines).map(|pair| pair[1]));
            words.extend(tokens);
        }
    }
    let is_file = |name: &str| {
        let name = name.trim_start_matches("../");
        let ending = format!("/{name}");
        sources.iter().any(|file| file.path == name || file.path.ends_with(&ending))
    };
    let is_stale = |name: &str| match name.split_once("::") {
        None => name.ends_with(".rs") && is_plain(name) && !is_file(name),
        Some((of, item)) => {
            let first = split_tokens(item).first().copied();
            types.contains(of) && first.is_some_and(|it| is_word(it) && !words.contains(it))
        }
    };
    let mut findings = Vec::new();
    let is_prose = |file: &&File| {
        file.path.ends_with(".md") && !EXEMPT.iter().any(|it| file.path.starts_with(it))
    };
    for file in files.iter().filter(is_prose) {
        for (at, line) in file.text.lines().enumerate() {
            for name in line.split('`').skip(1).step_by(2).filter(|name| is_stale(name)) {
                findings.push(file.finding(at, format!("`{name}` does not exist: rename it here")));
            }
        }
    }
    findings
}

/// Returns true for a path without patterns and blanks.
fn is_plain(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::references;
    use crate::tidy::File;

    fn found(text: &str) -> Vec<String> {
        let code =
            File::new("crates/a/src/pool/find.rs", "struct Pool;\nimpl Pool { fn stop() {} }\n");
        let found = references(&[code, File::new("docs/a.md", text)]);
        found.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn files_and_items_that_exist_pass_and_so_do_those_of_others() {
        let text = "`pool/find.rs`, `find.rs`, `Pool::stop`, `Vec::push`, `tests/*.rs`, `{a,b}.rs`";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn a_file_or_an_item_that_is_gone_is_a_finding() {
        assert_eq!(found("`pool/place.rs` and `Pool::place_here`").len(), 2);
        assert_eq!(found("See `place.rs`.").len(), 1);
    }

    #[test]
    fn history_may_name_what_is_gone() {
        assert_eq!(references(&[File::new("CHANGELOG.md", "`pool/place.rs`")]), []);
    }
}
