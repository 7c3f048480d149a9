//! Comments that must stand near the code they explain: beside orderings, above unsafe code.

use super::{File, Finding, is_test_file, layers::CRATE};
use crate::source::{Line, Source, is_word, split_tokens};

/// The number of lines above an ordering within which its comment must stand: one comment may serve
/// a group of lines, but not a screenful of code.
const ABOVE: usize = 12;

/// The number of lines below: the comment may stand in the other arm of a choice.
const BELOW: usize = 3;

const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// Checks that every ordering stronger than Relaxed has a comment near it that says why, or what it
/// pairs with.
pub fn orderings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(CRATE)) {
        let Some(source) = &file.source else { continue };
        let imports = source.use_lines();
        let test_file = is_test_file(files, &file.path);
        for (at, line) in source.lines.iter().enumerate().filter(|(at, _)| !imports[*at]) {
            let test = test_file || source.is_test(at);
            let tokens = split_tokens(&line.bare);
            for (position, token) in tokens.iter().enumerate() {
                // A test may count with SeqCst for simplicity; that needs no comment.
                if test && *token == "SeqCst" {
                    continue;
                }
                if is_ordering(&tokens, position) && !explained(source, at, token) {
                    let what = format!(
                        "{token} without a word: write `// {token}: …` and what it pairs with, at most {ABOVE} lines above"
                    );
                    findings.push(file.finding(at, what));
                }
            }
        }
    }
    findings
}

/// Returns true if a token is an ordering, and not another type's variant of that name.
fn is_ordering(tokens: &[&str], position: usize) -> bool {
    let qualified = position > 1 && tokens[position - 1] == "::";
    ORDERINGS.contains(&tokens[position]) && (!qualified || tokens[position - 2] == "Ordering")
}

fn explained(source: &Source, at: usize, ordering: &str) -> bool {
    // A comment on one half of AcqRel counts as a comment on it.
    let halves: &[&str] = if ordering == "AcqRel" { &["Acquire", "Release"] } else { &[] };
    // Where a negative control chooses the ordering, its use and its comment follow.
    let chosen = source.lines[at].bare.contains("weakened!");
    let below = if chosen { ABOVE } else { BELOW };
    let last = (at + below).min(source.lines.len() - 1);
    source.lines[at.saturating_sub(ABOVE)..=last].iter().any(|line| {
        let says = |word: &&str| line.comment.contains(word);
        says(&ordering) || says(&"Pairs") || says(&"pairs") || halves.iter().any(says)
    })
}

/// The number of lines above unsafe code within which its note must begin; notes that number four
/// or five obligations are that long.
const NOTE: usize = 12;

/// Phrases of a note that refer to an argument instead of giving it.
const REFERRING: &[&str] = &[
    "are our own obligations",
    "obligation is that of",
    "obligation 1 is that of",
    "obligations are those of `",
    "obligations 1 and 2 are those of",
    "as above",
    "as said above",
    "as `Send` above",
];

/// Checks that every unsafe block and impl has a SAFETY note that says why, and that every unsafe
/// function documents its caller's obligations. Clippy checks only that there is a note.
pub fn safety(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(source) = &file.source else { continue };
        for (at, line) in source.lines.iter().enumerate() {
            let refers = REFERRING.iter().any(|phrase| line.comment.contains(phrase));
            if refers && line.comment.contains("SAFETY: ") && !line.comment.contains("`: ") {
                findings.push(file.finding(at, "say what holds here, not where that was said"));
            }
            let tokens = split_tokens(&line.bare);
            for (position, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "unsafe")
            {
                let wanted = match (tokens.get(position + 1), tokens.get(position + 2)) {
                    (Some(&"impl" | &"{") | None, _) => "SAFETY",
                    // The obligations of a trait's function are documented in the trait.
                    (Some(&"fn"), _) if implements_trait(source, at) => continue,
                    (Some(&"fn"), Some(name)) if is_word(name) => "Safety",
                    (Some(&"extern"), _) if tokens.contains(&"fn") => "Safety",
                    _ => continue,
                };
                if !noted(source, at, wanted) {
                    let what = match wanted {
                        "SAFETY" => "unsafe code without a note: write `// SAFETY: …` above it",
                        _ => "an unsafe function says under `# Safety` what its caller owes",
                    };
                    findings.push(file.finding(at, what));
                }
            }
        }
    }
    findings
}

/// Folders of the library that are safe code, and the files in them that are not.
const CONFINED: &[(&str, &[&str])] = &[
    ("fs/", &["fs/raw.rs"]),
    ("io/", &["io/raw.rs", "io/read_buf.rs", "io/unix/raw.rs"]),
    ("net/", &["net/raw.rs"]),
    ("process/", &["process/raw.rs"]),
    ("signal/", &[]),
];

/// Checks that unsafe code of the library stands where `CONFINED` says, so that reviewing those
/// files covers all of it.
pub fn confined(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let (Some(path), Some(source)) = (file.path.strip_prefix(CRATE), &file.source) else {
            continue;
        };
        let folder = CONFINED.iter().find(|(folder, _)| path.starts_with(folder));
        let Some((_, allowed)) = folder.filter(|(_, allowed)| !allowed.contains(&path)) else {
            continue;
        };
        for (at, line) in source.lines.iter().enumerate() {
            if split_tokens(&line.bare).contains(&"unsafe") {
                let what = format!("unsafe code of this folder is in {}", allowed.join(" and "));
                findings.push(file.finding(at, what));
            }
        }
    }
    findings
}

/// Returns true if a line lies directly in an `impl Trait for Type`, by indentation.
fn implements_trait(source: &Source, at: usize) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let own = indent(&source.lines[at]);
    let above = source.lines[..at].iter().rev();
    let mut headers = above.filter(|line| !line.bare.trim().is_empty() && indent(line) < own);
    let header = headers.find(|line| {
        let tokens = split_tokens(&line.bare);
        ["impl", "trait", "mod", "fn"].iter().any(|word| tokens.contains(word))
    });
    header.is_some_and(|line| {
        let tokens = split_tokens(&line.bare);
        tokens.contains(&"impl") && tokens.contains(&"for")
    })
}

fn noted(source: &Source, at: usize, wanted: &str) -> bool {
    // A doc comment may be longer than a note, with attributes under it.
    let belongs = |line: &&Line| {
        let bare = line.bare.trim();
        bare.starts_with("#[") || bare.is_empty() && !line.comment.is_empty()
    };
    let block = source.lines[..at].iter().rev().take_while(belongs).count();
    source.lines[at - block.max(NOTE.min(at))..=at]
        .iter()
        .any(|line| line.comment.contains(wanted) || line.comment.contains("SAFETY"))
}

#[cfg(test)]
mod tests {
    use super::{confined, orderings, safety};
    use crate::tidy::File;

    fn one(text: &str) -> Vec<File> {
        vec![File::new("crates/blitz-io/src/engine/queue/ring.rs", text)]
    }

    #[test]
    fn a_safety_note_that_only_refers_is_a_finding() {
        let note = |text: &str| {
            File::new("crates/a/src/b.rs", &format!("// SAFETY: {text}\nunsafe {{ f() }}\n"))
        };
        assert_eq!(super::safety(&[note("1. and 2. are our own obligations.")]).len(), 1);
        assert_eq!(super::safety(&[note("our obligation 1 is that of `poll`.")]).len(), 1);
        assert_eq!(super::safety(&[note("1. our caller runs the task.")]), []);
    }

    #[test]
    fn an_ordering_without_a_comment_is_found() {
        for good in [
            "// Acquire: pairs with the Release in `f`.\nx.load(Acquire);\n",
            "x.load(Acquire); // Pairs with f.\n",
            "use super::{\n    Ordering::{Acquire, Release},\n};\n",
            "// Prose about SeqCst.\nlet s = \"SeqCst\";\n",
            "// Release: publishes the slot.\nx.swap(1, AcqRel);\n",
            "x.load(Relaxed);\n",
            "let duty = Duty::Release;\n",
            "let order = if weakened!(\"x\") { Relaxed } else { Release };\na();\nb();\nc();\n\
             // Release: pairs with the Acquire in `f`.\nx.store(1, order);\n",
            "#[cfg(test)]\nmod tests {\n    fn f() { count.load(SeqCst); }\n}\n",
        ] {
            assert_eq!(orderings(&one(good)), [], "{good}");
        }
        let far = format!("// Acquire: far away.\n{}x.load(Acquire);\n", "f();\n".repeat(13));
        for bad in [
            "x.load(Acquire);\n",
            "// Release: y.\nx.load(Acquire);\n",
            "x.store(1, Ordering::SeqCst)",
            &far,
        ] {
            assert_eq!(orderings(&one(bad)).len(), 1, "{bad}");
        }
        assert_eq!(orderings(&one("x.compare_exchange(1, 2, AcqRel, Acquire)")).len(), 2);
    }

    #[test]
    fn unsafe_code_of_the_library_stands_in_raw_files() {
        let at = |path: &str, text| confined(&[File::new(path, text)]).len();
        let bad = "// SAFETY: x.\nunsafe { f() }\n";
        assert_eq!(at("crates/blitz-io/src/io/copy.rs", bad), 1);
        assert_eq!(at("crates/blitz-io/src/net/tcp/stream.rs", bad), 1);
        assert_eq!(at("crates/blitz-io/src/net/raw.rs", bad), 0);
        assert_eq!(at("crates/blitz-io/src/io/read_buf.rs", bad), 0);
        assert_eq!(at("crates/blitz-io/src/io/copy.rs", "// unsafe is a word\n"), 0);
        assert_eq!(at("crates/blitz-io/src/engine/pool/idle.rs", bad), 0);
    }

    #[test]
    fn unsafe_code_without_a_note_is_found() {
        for good in [
            "// SAFETY: 1. the CAS above.\nunsafe { f() }\n",
            "// SAFETY: no thread sees it.\n#[cfg(x)]\nunsafe impl Send for A {}\n",
            "/// # Safety\n/// 1. The caller owns `slot`.\nunsafe fn read(slot: u8) {}\n",
            &format!("/// # Safety\n{}unsafe fn f(a: u8) {{}}\n", "/// More.\n".repeat(20)),
            "// SAFETY: x.\nunsafe impl T for A {\n    type B = C;\n\n    unsafe fn f(a: u8) {}\n}\n",
            "struct Table { drop: unsafe fn(*const ()) }\n",
            "// The word unsafe.\nlet s = \"unsafe {\";\n#![forbid(unsafe_code)]\n",
        ] {
            assert_eq!(safety(&one(good)), [], "{good}");
        }
        let far = format!("// SAFETY: x.\n{}unsafe {{ f() }}", "f();\n".repeat(13));
        for bad in [
            "unsafe { f() }",
            "unsafe impl Send for A {}",
            "pub unsafe fn read(s: u8) {}",
            "impl A {\n    unsafe fn f() {}\n}",
            &far,
        ] {
            assert_eq!(safety(&one(bad)).len(), 1, "{bad}");
        }
    }
}
