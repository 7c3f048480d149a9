//! Words and marks that must not be committed, and what a manifest must have.

use super::{File, Finding};

/// Macros of unfinished code.
const UNFINISHED: &[&str] = &["dbg!", "todo!", "unimplemented!"];

// Concatenated here so that this file passes its own check.
const NOTE_TO_SELF: &str = concat!("FIX", "ME");

/// Absolute folders of one particular machine, when a path begins with them.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Texts that are never allowed, wherever they stand.
const NEVER: &[&str] = &[
    concat!("../sh", "ared"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("crates.io/", "api"),
    concat!("registry.", "npmjs.org"),
    concat!("pypi.", "org"),
];

/// Checks that there is no unfinished code.
pub fn words(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (at, line) in file.source.iter().flat_map(|source| &source.lines).enumerate() {
            let unfinished = UNFINISHED.iter().find(|word| has_macro(&line.bare, word));
            let note = Some(&NOTE_TO_SELF)
                .filter(|word| line.comment.contains(**word) || line.bare.contains(**word));
            if let Some(word) = unfinished.or(note) {
                findings.push(file.finding(at, format!("`{word}` is not committed: finish it")));
            }
        }
    }
    findings
}

fn has_macro(bare: &str, name: &str) -> bool {
    bare.match_indices(name).any(|(at, _)| {
        !bare[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && bare[at + name.len()..].starts_with(['(', '[', '{'])
    })
}

/// Checks that no line ends with blanks. Markdown is exempt, because there two blanks mean a break.
pub fn whitespace(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with(".md")) {
        for (at, line) in file.text.lines().enumerate() {
            if line.trim_end() != line {
                findings.push(file.finding(at, "blanks at the end of the line: take them away"));
            }
        }
    }
    findings
}

/// Checks that there is no path of one machine, and no host of a package registry.
pub fn mentions(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            let never = NEVER.iter().find(|word| line.contains(**word));
            let folder = FOLDERS.iter().find(|folder| begins_path(line, folder));
            if let Some(word) = never.or(folder) {
                let what = format!("`{word}` means nothing on another machine: say it without");
                findings.push(file.finding(at, what));
            }
        }
    }
    findings
}

/// Returns true if `folder` stands where a path begins, not inside a longer one.
fn begins_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-./~>*}".contains(c))
    })
}

/// Workspaces of their own, which cannot inherit the root's lints.
const OWN_WORKSPACES: &[&str] = &["bench/", "conformance/"];

/// Checks that every package of the workspace inherits the workspace's lints.
pub fn lints(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let own = OWN_WORKSPACES.iter().any(|folder| file.path.starts_with(folder));
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        let inherits = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
        if !own && lines.contains(&"[package]") && !inherits {
            findings.push(file.finding(0, "add `[lints]` with `workspace = true`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, NEVER, NOTE_TO_SELF, lints, mentions, whitespace, words};
    use crate::tidy::File;

    fn rust(text: &str) -> Vec<File> {
        vec![File::new("a.rs", text)]
    }

    #[test]
    fn unfinished_code_is_found() {
        let note = format!("// {NOTE_TO_SELF}: later");
        for bad in ["todo!()", "let x = dbg!(y);", "unimplemented![]", &note] {
            assert_eq!(words(&rust(bad)).len(), 1, "{bad}");
        }
        assert_eq!(words(&rust("// No todo!() here.\nmy_todo!();\nlet s = \"dbg!(x)\";\n")), []);
    }

    #[test]
    fn blanks_at_the_end_are_found() {
        assert_eq!(whitespace(&rust("a \nb\n\tc\t\n")).len(), 2);
        assert_eq!(whitespace(&[File::new("a.md", "break  \nhere\n")]), []);
    }

    #[test]
    fn a_machines_paths_and_registry_hosts_are_found() {
        for word in NEVER {
            let text = format!("see {word}/x");
            assert_eq!(mentions(&[File::new("a.md", &text)]).len(), 1, "{word}");
        }
        for folder in FOLDERS {
            for bad in [format!("{folder}a"), format!("at `{folder}a`"), format!("(\"{folder}\")")]
            {
                assert_eq!(mentions(&[File::new("a.toml", &bad)]).len(), 1, "{bad}");
            }
            let good = format!("engine{folder}task.rs and [patch.crates-io]");
            assert_eq!(mentions(&[File::new("a.md", &good)]), []);
        }
    }

    #[test]
    fn a_manifest_without_the_lints_is_found() {
        let package = "[package]\nname = \"a\"\n";
        assert_eq!(lints(&[File::new("crates/a/Cargo.toml", package)]).len(), 1);
        assert_eq!(lints(&[File::new("bench/a/Cargo.toml", package)]), []);
        let good = format!("{package}\n[lints]\nworkspace = true\n");
        assert_eq!(lints(&[File::new("crates/a/Cargo.toml", &good)]), []);
    }
}
