//! Names in the code of the runtime crate: words that were retired, words that have one meaning, and
//! types of the engine that share a name.

use std::collections::BTreeMap;

use super::{File, Finding};
use crate::source::{is_word, split_tokens};

/// The sources that are checked for retired words.
const SOURCES: &str = "crates/blitz-io/src/";
/// The sources in which a type name is used once.
const ENGINE: &str = "crates/blitz-io/src/engine/";

/// Words that are no part of a name any more, and the word for each. ARCHITECTURE.md, 'Words',
/// defines the new ones.
const RETIRED: &[(&str, &str)] = &[
    ("intake", "injector"),
    ("home", "arena"),
    ("door", "lease"),
    ("bead", "test node"),
    ("bolt", "store lock"),
    ("moment", "timestamp"),
    ("crew", "thread set"),
    ("bed", "idle slot"),
    ("beds", "idle threads"),
    ("roster", "registry"),
    ("crowd", "awake workers"),
    ("nap", "short sleep"),
    ("vigil", "preempt"),
    ("tenure", "lease"),
    ("stint", "watch record"),
    ("conduct", "hog history"),
    ("inquiry", "stack request"),
    ("lend", "offload"),
    ("lent", "offloaded"),
    ("guest", "what it is: a watched `block_on`, a temporary worker"),
    ("errand", "spare work"),
    ("relief", "spare threads"),
    ("bell", "notifier"),
    ("bells", "notifiers"),
    ("station", "signal source"),
    ("teller", "reporter"),
    ("nest", "fiber queue"),
    ("strand", "fiber future"),
    ("seat", "what it is: a permit, a handle, a lock"),
];

/// Those of the retired words that other crates and tests may use in their ordinary meaning: joins
/// nest, a user has a home directory, a chat has guests.
const ORDINARY: &[&str] = &["nest", "home", "guest"];

/// Words that have one meaning, the folders of the runtime crate that use it, and what to say
/// elsewhere.
const CONFINED: &[(&str, &[&str], &str)] = &[(
    "ring",
    &["engine/queue/", "engine/pool/", "engine/preempt/"],
    "`uring`, `array` or `buffer`, because a ring is the run queue of a core",
)];

/// Those of the retired words that are no part of a sentence either, because they have no other
/// meaning that we need.
const RETIRED_IN_PROSE: &[&str] = &[
    "intake", "crew", "roster", "vigil", "tenure", "stint", "inquiry", "errand", "bell", "bells",
    "teller",
];

/// Prose that may have them: what was, and this list.
const EXEMPT: &[&str] = &["CHANGELOG.md", "bench/record/", "xtask/src/tidy/"];

/// Type names that several files of the engine may use, each for its own part.
const SHARED: &[&str] = &["State", "Shared", "Builder"];

/// Files that define the same types in alternative builds: the second stands in for the first.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("wait/holders/disabled.rs", "wait/holders/enabled.rs"),
    ("driver/poll/model.rs", "driver/poll/kernel.rs"),
    ("driver/no_uring.rs", "driver/uring.rs"),
    ("uring/no_uring.rs", "uring/system.rs"),
    ("prim/model.rs", "prim/real.rs"),
];

/// Checks that no name contains a retired word.
pub fn retired(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_read = |file: &&File| !file.path.starts_with("xtask/src/tidy/");
    for file in files.iter().filter(is_read) {
        let Some(source) = &file.source else { continue };
        for (at, line) in source.lines.iter().enumerate() {
            let names = split_tokens(&line.bare).into_iter().filter(|token| is_word(token));
            let is_refused = |(_, word, _): &(&str, &str, &str)| {
                file.path.starts_with(SOURCES) || !ORDINARY.contains(word)
            };
            for (name, word, better) in names.filter_map(retired_in).filter(is_refused) {
                let what = format!("`{name}` has the retired word `{word}`: say {better}");
                findings.push(file.finding(at, what));
            }
        }
    }
    findings.extend(files.iter().flat_map(retired_in_prose));
    findings
}

/// Checks that a word with one meaning is part of names only where that meaning is at home.
pub fn confined(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let (Some(path), Some(source)) = (file.path.strip_prefix(SOURCES), &file.source) else {
            continue;
        };
        let foreign =
            |(_, folders, _): &&(_, &[&str], _)| !folders.iter().any(|it| path.starts_with(it));
        for (word, _, better) in CONFINED.iter().filter(foreign) {
            for (at, line) in source.lines.iter().enumerate() {
                let names = split_tokens(&line.bare).into_iter().filter(|token| is_word(token));
                for name in names.filter(|name| parts(name).iter().any(|part| part == word)) {
                    findings.push(
                        file.finding(at, format!("`{name}` has the word `{word}`: say {better}")),
                    );
                }
            }
        }
    }
    findings
}

/// Checks that no line of a text or source file, wherever it is, has a word that is retired in
/// prose.
fn retired_in_prose(file: &File) -> Vec<Finding> {
    let is_text = file.source.is_some() || file.path.ends_with(".md");
    if !is_text || EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let mut words = line.split(|letter: char| !letter.is_ascii_alphabetic());
        let found = words.find_map(|word| {
            RETIRED_IN_PROSE.iter().find(|retired| word.eq_ignore_ascii_case(retired))
        });
        if let Some(word) = found {
            let better = RETIRED.iter().find(|(retired, _)| retired == word).map_or("", |it| it.1);
            findings.push(file.finding(at, format!("`{word}` is retired: say {better}")));
        }
    }
    findings
}

/// Returns a name with the retired word in it and the better one, if it has one.
fn retired_in(name: &str) -> Option<(&str, &'static str, &'static str)> {
    let parts = parts(name);
    let found = RETIRED.iter().find(|(word, _)| parts.iter().any(|part| part == word));
    found.map(|(word, better)| (name, *word, *better))
}

/// Splits a name into its words, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() && was_lower {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter != '_' {
            let last = parts.last_mut().expect("there is always one");
            last.extend(letter.to_lowercase());
        }
    }
    parts
}

/// Checks that a type name is defined once in the engine.
pub fn unique(files: &[File]) -> Vec<Finding> {
    let mut first = BTreeMap::<&str, &str>::new();
    let mut findings = Vec::new();
    for file in files {
        let (Some(path), Some(source)) = (file.path.strip_prefix(ENGINE), &file.source) else {
            continue;
        };
        for (at, line) in source.lines.iter().enumerate() {
            let Some(name) = type_name(&line.bare) else { continue };
            if SHARED.contains(&name) {
                continue;
            }
            match first.get(name) {
                // Alternatives within a file have a `cfg` each.
                Some(other) if *other != path && !are_alternatives(other, path) => {
                    let what = format!("a type in {other} is called `{name}`, too: qualify one");
                    findings.push(file.finding(at, what));
                }
                Some(_) => {}
                None => {
                    first.insert(name, path);
                }
            }
        }
    }
    findings
}

fn are_alternatives(one: &str, other: &str) -> bool {
    ALTERNATIVES.iter().any(|(a, b)| (*a, *b) == (one, other) || (*a, *b) == (other, one))
}

/// Returns the name of the type that a line defines. Associated types and aliases do not count.
fn type_name(bare: &str) -> Option<&str> {
    let mut tokens = split_tokens(bare).into_iter().filter(|token| is_word(token)).peekable();
    while matches!(tokens.peek(), Some(&("pub" | "crate" | "super" | "in" | "unsafe"))) {
        tokens.next();
    }
    let is_type = matches!(tokens.next(), Some("struct" | "enum" | "trait" | "union"));
    tokens.next().filter(|name| is_type && name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::{confined, parts, retired, unique};
    use crate::tidy::File;

    fn engine(path: &str, text: &str) -> File {
        File::new(&format!("crates/blitz-io/src/engine/{path}"), text)
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(parts("HandedOver"), ["handed", "over"]);
        assert_eq!(parts("MAX_IDLE"), ["max", "idle"]);
        assert_eq!(parts("lent_by"), ["lent", "by"]);
    }

    #[test]
    fn a_retired_word_in_a_name_is_a_finding() {
        let bad = "struct CrewSize;\nfn lend() {}\nconst BED: u32 = 1;\n";
        assert_eq!(retired(&[engine("pool/find.rs", bad)]).len(), 3);
        let fine = "// The moment.\nfn blend(embed: &str) -> u32 { f(\"nap\") }\n";
        assert_eq!(retired(&[engine("pool/find.rs", fine)]), []);
        assert_eq!(retired(&[File::new("xtask/src/ci.rs", bad)]).len(), 3);
        assert_eq!(retired(&[File::new("xtask/src/tidy/names.rs", bad)]), []);
        let ordinary = "fn scopes_nest(home: &Path) {}\n";
        assert_eq!(retired(&[engine("pool/find.rs", ordinary)]).len(), 2);
        assert_eq!(retired(&[File::new("crates/blitz-io/tests/it/main.rs", ordinary)]), []);
    }

    #[test]
    fn a_word_outside_of_the_folders_of_its_meaning_is_a_finding() {
        let ring = "let ring = 1;\nstruct RingOwner;\n";
        assert_eq!(confined(&[engine("driver/uring.rs", ring)]).len(), 2);
        assert_eq!(confined(&[engine("queue/ring.rs", ring)]), []);
        let fine = "// A ring.\nlet uring = during(\"ring\");\n";
        assert_eq!(confined(&[engine("driver/uring.rs", fine)]), []);
        assert_eq!(confined(&[File::new("bench/queues/src/rings.rs", ring)]), []);
    }

    #[test]
    fn a_retired_word_in_prose_is_a_finding_where_it_has_no_other_meaning() {
        let prose = "The crew sleeps.\nA Bell, rung.\nThe lenten moment of a crewed nest.\n";
        assert_eq!(retired(&[File::new("docs/design/blocking.md", prose)]).len(), 2);
        assert_eq!(
            retired(&[File::new("bench/net/src/main.rs", "// The crew sleeps.\n")]).len(),
            1
        );
        assert_eq!(retired(&[File::new("CHANGELOG.md", prose)]), []);
    }

    #[test]
    fn a_type_name_that_two_files_define_is_a_finding() {
        let first = || engine("a.rs", "pub(crate) struct Slot<T>(T);\n");
        let second = engine("b.rs", "enum Slot {}\nstruct State;\n");
        let found = unique(&[first(), second, engine("c.rs", "struct State;\n")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("`Slot`"), "{}", found[0].what);
        assert_eq!(unique(&[first(), File::new("crates/x/src/b.rs", "struct Slot;\n")]), []);
        let uring = "pub(super) struct UringSelector;\n";
        let both = [engine("driver/no_uring.rs", uring), engine("driver/uring.rs", uring)];
        assert_eq!(unique(&both), []);
    }
}
