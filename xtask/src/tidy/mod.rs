//! The mechanical rules of the code, as an ordinary test.
//!
//! A check reads the whole tree and returns findings; each has a test that feeds it a bad snippet.
//! The rules are simple on purpose, because a rule with false alarms gets switched off. What a
//! check cannot see is left to reviewers.

use std::{fmt, fs, path::Path};

use crate::{Outcome, root, source::Source};

pub mod layers;
pub mod story;
pub mod near;
pub mod text;
pub mod records;
pub mod references;
pub mod length;
pub mod voice;
pub mod names;

/// Text of `cargo xtask tidy --help`.
pub const HELP: &str = "\
cargo xtask tidy

Looks at every file of the repository: the layer rule of the engine, stories,
comments beside orderings and unsafe code, names after 'Checked by', words that
must not be committed, lints of the manifests, the index of bench/record, the
wording of comments and strings, names.
Prints what breaks a rule and fails; long functions and files are printed too but break nothing.";

/// Files and folders that hold nothing of ours. In a work tree `.git` is a file.
const SKIPPED: &[&str] = &["target", ".git", "Cargo.lock"];

/// One file of the repository.
#[derive(Debug)]
pub struct File {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its lines, if it is Rust.
    pub source: Option<Source>,
}

impl File {
    /// Creates a file, which in a test need not exist on disk.
    pub fn new(path: &str, text: &str) -> Self {
        let source = path.ends_with(".rs").then(|| Source::new(text));
        Self { path: path.to_owned(), text: text.to_owned(), source }
    }

    /// Returns a finding in this file; `line` counts from 0.
    pub fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line: line + 1, what: what.into() }
    }
}

/// Returns true if only tests compile a file, by its parent module or by its name.
pub fn is_test_file(files: &[File], path: &str) -> bool {
    if path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/models.rs") {
        return true;
    }
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let parents = [format!("{folder}/mod.rs"), format!("{folder}.rs"), format!("{folder}/lib.rs")];
    let parents = files.iter().filter(|file| parents.contains(&file.path));
    let mut modules = parents.flat_map(|file| file.source.iter().flat_map(Source::test_modules));
    modules.any(|module| name.strip_suffix(".rs") == Some(module))
}

/// A broken rule, or something worth reporting.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The description of the problem, and the next step.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A rule that must hold.
pub type Check = fn(&[File]) -> Vec<Finding>;

/// Every rule, by name.
pub const CHECKS: &[(&str, Check)] = &[
    ("layers", layers::layers),
    ("ground", layers::ground),
    ("story", story::story),
    ("checked by", story::checked_by),
    ("weakened", story::weakened),
    ("forbid", story::forbid),
    ("orderings", near::orderings),
    ("safety", near::safety),
    ("confined", near::confined),
    ("words", text::words),
    ("whitespace", text::whitespace),
    ("mentions", text::mentions),
    ("lints", text::lints),
    ("records", records::records),
    ("references", references::references),
    ("voice", voice::voice),
    ("retired", names::retired),
    ("meaning", names::confined),
    ("unique", names::unique),
];

/// Returns every text file of the repository.
pub fn tree() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), &root(), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(root, &path, files);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let relative = relative.to_string_lossy().replace('\\', "/");
            files.push(File::new(&relative, &text));
        }
    }
}

/// Returns what breaks a rule in `files`, each with the rule's name.
pub fn check(files: &[File]) -> Vec<String> {
    let findings = |(name, check): &(&str, Check)| {
        check(files).into_iter().map(|finding| format!("{finding} [{name}]")).collect::<Vec<_>>()
    };
    CHECKS.iter().flat_map(findings).collect()
}

/// Runs `cargo xtask tidy`.
pub fn main(arguments: &[String]) -> Outcome {
    if let Some(unknown) = arguments.first() {
        return Err(format!("`{unknown}` is no argument of tidy"));
    }
    let files = tree();
    for finding in length::long(&files) {
        println!("{finding}");
    }
    let broken = check(&files);
    for line in &broken {
        println!("{line}");
    }
    println!("{} files, {} rules, {} findings", files.len(), CHECKS.len(), broken.len());
    if broken.is_empty() { Ok(()) } else { Err("fix the findings above".into()) }
}
