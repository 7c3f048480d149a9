//! Counts the words of many files, by Rayon's parallel iterators on our pool.
//!
//! The iterators are those of the published `rayon`. The workspace replaces `rayon-core` by
//! `dropin/rayon-core` (see `[patch.crates-io]` in its Cargo.toml), and that is all that a program
//! has to change.
//!
//! `word_count [PATH]...` counts these files, and all files below these directories; without one,
//! this project's own documents. All texts are in memory at once. Files that cannot be read are
//! reported and left out, and then the exit code is 1, as with `wc`.

#![forbid(unsafe_code)]

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use rayon::prelude::*;

/// The paths that are counted by default, relative to the root of the project.
const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs"];
/// The least number of lines that are counted into one table. Tables have to be merged, word by
/// word, so a piece should have most words several times. Picked.
const PIECE: usize = 500;
/// The number of the most frequent words that are shown. Picked: they fit on a screen.
const SHOWN: usize = 10;

type Counts = HashMap<String, u64>;

fn main() -> ExitCode {
    assert!(
        rayon::scope(|_| blitz_io::parallel::current_thread_index()).is_some(),
        "rayon does not run on our pool: `cargo tree --workspace -i rayon-core` shows on which"
    );
    let mut failures = Vec::new();
    let files = files(named_or_documents(), &mut failures);
    let texts = read(&files, &mut failures);
    for (path, error) in &failures {
        eprintln!("cannot count {}: {error}; the others are counted", path.display());
    }

    let start = Instant::now();
    let counts = count_in_parallel(&texts);
    let parallel = start.elapsed();
    let start = Instant::now();
    let expected = count_in_order(&texts);
    let sequential = start.elapsed();
    assert!(counts == expected, "counted in parallel, the words are others");

    show(&counts, texts.len());
    println!("counted in {parallel:.1?} in parallel, in {sequential:.1?} one after the other");
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn named_or_documents() -> Vec<PathBuf> {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if !named.is_empty() {
        return named;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    DOCUMENTS.map(|name| root.join(name)).into()
}

/// Returns the paths that are files, and the files below those that are directories.
fn files(paths: Vec<PathBuf>, failures: &mut Vec<(PathBuf, io::Error)>) -> Vec<PathBuf> {
    let (mut files, mut left) = (Vec::new(), paths);
    while let Some(path) = left.pop() {
        let found = fs::metadata(&path).and_then(|it| {
            if it.is_dir() {
                left.extend(entries(&path)?);
            } else if it.is_file() {
                files.push(path.clone());
            } else {
                // A pipe or a terminal might never end.
                return Err(io::Error::other("it is neither a file nor a directory"));
            }
            Ok(())
        });
        if let Err(error) = found {
            failures.push((path, error));
        }
    }
    files
}

/// Returns the files and directories in a directory. Links are left out, because they may lead
/// back.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() || kind.is_file() {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// Reads the files, separately from counting, because a read may block, and then a thread of the
/// pool is blocked.
fn read(files: &[PathBuf], failures: &mut Vec<(PathBuf, io::Error)>) -> Vec<String> {
    let (texts, failed): (Vec<String>, Vec<_>) =
        files.par_iter().partition_map(|path| match fs::read_to_string(path) {
            Ok(text) => rayon::iter::Either::Left(text),
            Err(error) => rayon::iter::Either::Right((path.clone(), error)),
        });
    failures.extend(failed);
    texts
}

/// Counts words in parallel. All lines are put into one list, whichever text they are from, so that
/// it is split evenly, also if one text is longer than all others.
fn count_in_parallel(texts: &[String]) -> Counts {
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    let counts = lines.into_par_iter().with_min_len(PIECE).fold(Counts::new, count);
    counts.reduce(Counts::new, merge)
}

fn count_in_order(texts: &[String]) -> Counts {
    texts.iter().flat_map(|text| text.lines()).fold(Counts::new(), count)
}

/// Adds the words of a line. A word consists of letters and digits; upper case counts as lower
/// case.
fn count(mut counts: Counts, line: &str) -> Counts {
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    counts
}

/// Adds the smaller table to the larger one.
fn merge(one: Counts, other: Counts) -> Counts {
    let (mut into, from) = if one.len() < other.len() { (other, one) } else { (one, other) };
    for (word, count) in from {
        *into.entry(word).or_default() += count;
    }
    into
}

fn show(counts: &Counts, files: usize) {
    let words: u64 = counts.values().sum();
    println!("{words} words in {files} files, {} of them different", counts.len());
    let mut frequent: Vec<(&String, &u64)> = counts.iter().collect();
    // Equal counts are sorted alphabetically, so that each run shows the same.
    frequent.par_sort_unstable_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (word, count) in frequent.into_iter().take(SHOWN) {
        println!("{count:>9} {word}");
    }
}
