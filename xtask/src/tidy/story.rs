//! File headers ("stories"): every file has one, and the checks that it names exist.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    File, Finding,
    layers::{CRATE, VARIANTS},
};

/// Safe modules of the runtime crate. The file of each begins (after its header) with
/// `#![forbid(unsafe_code)]`, which its children inherit.
pub const SAFE: &[&str] = &[];

/// Checks that every Rust file starts with a `//!` header.
pub fn story(files: &[File]) -> Vec<Finding> {
    let has_story = |file: &File| match &file.source {
        Some(source) => source.story().first().is_some_and(|line| !line.is_empty()),
        None => true,
    };
    let what = "a file starts with its story: `//!` and one line on what it is";
    files.iter().filter(|file| !has_story(file)).map(|file| file.finding(0, what)).collect()
}

/// A name in backticks after 'Checked by'.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    line: usize,
    name: String,
    /// True if the text calls it a negative control.
    weakened: bool,
}

/// Characters that end the clause 'weakened as …'.
const ENDS: [char; 3] = [';', '.', ')'];

impl Claim {
    /// Returns true if the text names a check. The name of a fact has several words, a path has a
    /// slash, a control may be one word. All else in backticks is prose: a command, a field, a step
    /// of the protocol.
    fn is_name(&self) -> bool {
        let plain = !self.name.contains([' ', '!', '(', '#']);
        plain && (self.weakened || self.name.contains(['_', '/']) || self.name.ends_with(".rs"))
    }

    fn is_path(&self) -> bool {
        self.name.contains('/') || self.name.ends_with(".rs")
    }
}

/// Returns the names that a file's header gives after 'Checked by'.
fn claims(file: &File) -> Vec<Claim> {
    let Some(source) = &file.source else { return Vec::new() };
    let mut claims = Vec::new();
    let mut inside = false;
    let mut weakened = false;
    for (line, text) in source.story().into_iter().enumerate() {
        if let Some(heading) = text.strip_prefix("# ") {
            inside = heading.trim() == "Checked by";
            weakened = false;
        }
        if !inside {
            continue;
        }
        for (position, part) in text.split('`').enumerate() {
            if position % 2 == 1 {
                claims.push(Claim { line, name: part.to_owned(), weakened });
                continue;
            }
            // 'weakened as `a`, `b`' lasts to the end of its clause; the character that ends one
            // may stand before the word that begins the next.
            match part.to_lowercase().rfind("weakened") {
                Some(at) => weakened = !part[at..].contains(ENDS),
                None => weakened &= !part.contains(ENDS),
            }
        }
    }
    claims.retain(Claim::is_name);
    claims
}

/// Returns every `weakened!("name")` of the runtime crate and of the queues' variants, with the
/// files that have it.
pub fn weakened_names(files: &[File]) -> BTreeMap<String, Vec<(&File, usize)>> {
    let mut names: BTreeMap<String, Vec<(&File, usize)>> = BTreeMap::new();
    let has_controls = |path: &str| path.starts_with(CRATE) || path.starts_with(VARIANTS);
    for file in files.iter().filter(|file| has_controls(&file.path)) {
        for (at, line) in file.source.iter().flat_map(|source| &source.lines).enumerate() {
            for after in line.code.split("weakened!(\"").skip(1) {
                let name = after.split('"').next().unwrap_or_default();
                names.entry(name.to_owned()).or_default().push((file, at));
            }
        }
    }
    names
}

/// Checks that names after 'Checked by' exist.
pub fn checked_by(files: &[File]) -> Vec<Finding> {
    let sources = || files.iter().filter_map(|file| file.source.as_ref());
    let tests: BTreeSet<String> = sources().flat_map(|source| source.test_functions()).collect();
    let weakened = weakened_names(files);
    let mut findings = Vec::new();
    for file in files {
        for claim in claims(file) {
            let name = claim.name.rsplit("::").next().unwrap_or_default();
            let (exists, kind) = if claim.is_path() {
                let path = claim.name.trim_end_matches('/');
                (files.iter().any(|file| file.path.contains(path)), "file or folder")
            } else if claim.weakened {
                (weakened.contains_key(name), "`weakened!` name")
            } else {
                (tests.contains(name), "test function")
            };
            if !exists {
                let what =
                    format!("the story says 'Checked by `{name}`', but no {kind} is called so");
                findings.push(file.finding(claim.line, what));
            }
        }
    }
    findings
}

/// Checks that every negative control belongs to one file and is named in a header.
pub fn weakened(files: &[File]) -> Vec<Finding> {
    let claimed: BTreeSet<String> = files
        .iter()
        .flat_map(claims)
        .filter(|claim| claim.weakened)
        .map(|claim| claim.name)
        .collect();
    let mut findings = Vec::new();
    for (name, places) in weakened_names(files) {
        let (file, line) = places[0];
        if let Some((other, at)) = places.iter().find(|(other, _)| other.path != file.path) {
            let what = format!(
                "`weakened!(\"{name}\")` is also in {}: one name, one story; choose another",
                file.path
            );
            findings.push(other.finding(*at, what));
        }
        if !claimed.contains(&name) {
            let what = format!(
                "no story names the control `{name}`: add 'weakened as `{name}`' after 'Checked by'"
            );
            findings.push(file.finding(line, what));
        }
    }
    findings
}

/// Checks that the modules of [`SAFE`] forbid unsafe code.
pub fn forbid(files: &[File]) -> Vec<Finding> {
    forbid_in(files, SAFE)
}

fn forbid_in(files: &[File], safe: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for module in safe {
        let paths = [format!("{CRATE}{module}.rs"), format!("{CRATE}{module}/mod.rs")];
        let Some(file) = files.iter().find(|file| paths.contains(&file.path)) else {
            let what = format!("SAFE names `{module}`, which does not exist: remove it there");
            findings.push(Finding { path: "xtask/src/tidy/story.rs".into(), line: 1, what });
            continue;
        };
        let lines = file.source.iter().flat_map(|source| &source.lines);
        let first = lines.map(|line| line.bare.trim()).find(|bare| !bare.is_empty());
        if first != Some("#![forbid(unsafe_code)]") {
            let what = "a safe module begins with `#![forbid(unsafe_code)]` after its story";
            findings.push(file.finding(0, what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{checked_by, forbid_in, story, weakened};
    use crate::tidy::File;

    fn one(text: &str) -> Vec<File> {
        vec![File::new("crates/blitz-io/src/engine/prim/a.rs", text)]
    }

    #[test]
    fn a_file_without_a_story_is_found() {
        assert_eq!(story(&one("//! What it is.\n")), []);
        assert_eq!(story(&one("// What it is.\n")).len(), 1);
        assert_eq!(story(&one("\n//! Late.\n")).len(), 1);
        assert_eq!(story(&one("//!\n//! Late.\n")).len(), 1);
        assert_eq!(story(&one("")).len(), 1);
    }

    #[test]
    fn controls_may_stand_in_brackets_between_tests() {
        let text = "//! A.\n//! # Checked by\n//! `one_fact` (weakened as `bug`,\n//! `other`), `two_facts`; the field `real`\n//! and step `B5` are prose, `cargo test x_y` too; `prim/`.\nfn f() { weakened!(\"bug\"); weakened!(\"other\"); }\n#[test]\nfn one_fact() {}\n#[test]\nfn two_facts() {}\n";
        assert_eq!(checked_by(&one(text)), []);
        assert_eq!(weakened(&one(text)), []);
        assert_eq!(checked_by(&one(&text.replace("fn two_facts", "fn gone"))).len(), 1);
        assert_eq!(checked_by(&one(&text.replace("prim/", "prism/"))).len(), 1);
    }

    const GOOD: &str = "//! A.\n//!\n//! # Checked by\n//! `a_fact` in `prim/a.rs`; weakened as `a_bug`\n//! and `other`.\n//!\n//! # Rejected\n//! `gone`\nfn f() { weakened!(\"a_bug\"); weakened!(\"other\"); }\n#[test]\nfn a_fact() {}\n";

    #[test]
    fn names_after_checked_by_must_exist() {
        assert_eq!(checked_by(&one(GOOD)), []);
        for (from, to) in [
            ("fn a_fact", "fn b_fact"),
            ("weakened!(\"a_bug\")", "weakened!(\"a_bag\")"),
            ("prim/a.rs", "prim/b.rs"),
            // The name of a control does not count as that of a test, nor the reverse.
            ("`a_fact`", "`a_bug`"),
            ("and `other`", "and `a_fact`"),
        ] {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD);
            assert_eq!(checked_by(&one(&bad)).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn a_control_has_one_story() {
        assert_eq!(weakened(&one(GOOD)), []);
        let silent = GOOD.replace("weakened as `a_bug`", "no more");
        assert_eq!(weakened(&one(&silent)).len(), 2);
        let mut twice = one(GOOD);
        twice
            .push(File::new("crates/blitz-io/src/b.rs", "//! B.\nfn f() { weakened!(\"a_bug\") }"));
        assert_eq!(weakened(&twice).len(), 1);
    }

    #[test]
    fn a_safe_module_forbids_unsafe_code() {
        let task = |text| vec![File::new("crates/blitz-io/src/task/mod.rs", text)];
        let good = task("//! Tasks.\n\n#![forbid(unsafe_code)]\nuse x::y;\n");
        assert_eq!(forbid_in(&good, &["task"]), []);
        assert_eq!(forbid_in(&task("//! Tasks.\nuse x::y;\n"), &["task"]).len(), 1);
        assert_eq!(forbid_in(&good, &["gone"]).len(), 1);
    }
}
