//! Compares two public surfaces: finds what one promises and the other does not keep.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::types::NO_NAME;
use crate::root;

/// Traits whose absence is no promise, so a type that implements them in addition breaks no user.
/// Send and Sync are not among them: if they were, a difference in them would go unnoticed.
const HARMLESS: &[&str] = &[
    "core::marker::Unpin",
    "core::panic::unwind_safe::UnwindSafe",
    "core::panic::unwind_safe::RefUnwindSafe",
];

/// Returns the path that a line defines; `None` for implementations and other names.
pub(super) fn subject(line: &str) -> Option<&str> {
    const KINDS: &[&str] = &[
        "fn",
        "struct",
        "enum",
        "union",
        "trait",
        "macro",
        "attribute",
        "constant",
        "static",
        "type",
        "mod",
    ];
    let (head, rest) = line.split_once(' ')?;
    if matches!(head, "const" | "unsafe" | "async" | "provided" | "non_exhaustive") {
        return subject(rest);
    }
    if !KINDS.contains(&head) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    Some(rest[..end.unwrap_or(rest.len())].trim_end_matches(':'))
}

/// Returns what two lines have in common if they describe the same item: kind and names, without
/// parameters, signatures and bounds.
fn key(line: &str) -> String {
    let line = line.split(" where ").next().unwrap_or(line);
    let line = line.replace("impl !", "impl ");
    let mut depth = 0usize;
    let mut bare = String::new();
    for c in line.chars() {
        match c {
            '<' => depth += 1,
            // The `>` of an arrow closes nothing.
            '>' if !bare.ends_with('-') => depth = depth.saturating_sub(1),
            _ if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let end = if bare.starts_with("impl ") { bare.find(['{']) } else { bare.find(['(', '{', '=']) };
    let bare = bare[..end.unwrap_or(bare.len())].trim();
    let qualifiers = ["provided ", "const ", "unsafe ", "non_exhaustive "];
    qualifiers.iter().fold(bare.to_owned(), |text, word| text.replace(word, ""))
}

/// Returns true if `ours` promises all that `theirs` does: the same signature, with the same bounds
/// or fewer, and perhaps with a public name for a type that has none in theirs. Implementors of a
/// trait have to repeat its bounds, so the bounds of a trait must be equal.
fn keeps(ours: &str, theirs: &str) -> bool {
    let (our_head, our_bounds) = ours.split_once(" where ").unwrap_or((ours, ""));
    let (their_head, their_bounds) = theirs.split_once(" where ").unwrap_or((theirs, ""));
    let is_trait = ["trait ", "provided "].iter().any(|kind| theirs.starts_with(kind));
    if is_trait || !same_but_named(our_head, their_head) {
        return false;
    }
    let (ours, theirs) = (bounds(our_bounds), bounds(their_bounds));
    let requires = |(subject, bound): &(&str, &str)| {
        bound.starts_with('?') || theirs.contains(&(*subject, *bound))
    };
    let allows = |(subject, bound): &(&str, &str)| {
        !bound.starts_with('?') || ours.contains(&(*subject, *bound))
    };
    ours.iter().all(requires) && theirs.iter().all(allows)
}

/// Returns true if the texts are equal wherever theirs has public names.
fn same_but_named(ours: &str, theirs: &str) -> bool {
    let mut rest = ours;
    let mut parts = theirs.split(NO_NAME);
    let Some(after) = rest.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    rest = after;
    for part in parts {
        // Skips to where their text continues, which must be the end of a name.
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let Some(after) = rest[end.unwrap_or(rest.len())..].strip_prefix(part) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

/// Splits `A: X + Y, B: Z` into pairs.
fn bounds(clause: &str) -> BTreeSet<(&str, &str)> {
    let mut pairs = BTreeSet::new();
    for part in split(clause, ", ") {
        let [subject, list] = split(part, ": ")[..] else { continue };
        pairs.extend(split(list, " + ").into_iter().map(|bound| (subject, bound)));
    }
    pairs
}

/// Splits a text at separators that are not in brackets.
fn split<'a>(text: &'a str, by: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(by) => {
                parts.push(&text[start..at]);
                start = at + by.len();
            }
            _ => {}
        }
        before = c;
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

/// The names that `conformance/api/missing.txt` excuses.
#[derive(Debug, Default)]
pub(super) struct Excuses(Vec<String>);

impl Excuses {
    pub(super) fn read() -> Result<Self, String> {
        Ok(Self(crate::conformance::lines(&root().join("conformance/api/missing.txt"))?))
    }

    /// Returns true if a line describes something below one of the names.
    fn cover(&self, line: &str) -> bool {
        let mentions = |name: &String| {
            line.match_indices(name.as_str()).any(|(at, _)| {
                let next = line[at + name.len()..].chars().next();
                next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            })
        };
        self.0.iter().any(mentions)
    }

    /// Returns the listed names that are no longer missing.
    pub(super) fn stale(&self, ours: &BTreeSet<String>) -> Vec<&str> {
        let there = |name: &&String| ours.iter().any(|line| subject(line) == Some(name));
        self.0.iter().filter(there).map(String::as_str).collect()
    }
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Lines that are not kept, each with the lines that we have instead.
    pub(super) wrong: BTreeMap<String, Vec<String>>,
    pub(super) excused: usize,
    /// Lines that only we have.
    pub(super) more: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, instead) in &self.wrong {
            match &instead[..] {
                [] => writeln!(f, "missing    {line}")?,
                instead => {
                    writeln!(f, "different  {line}")?;
                    for line in instead {
                        writeln!(f, "     here  {line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Looks for each line of `theirs` in `ours`.
pub(super) fn compare(
    theirs: &BTreeSet<String>,
    ours: &BTreeSet<String>,
    excuses: &Excuses,
) -> Report {
    let mut only_ours: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in ours.difference(theirs) {
        only_ours.entry(key(line)).or_default().push(line.clone());
    }
    let mut report = Report { more: ours.difference(theirs).count(), ..Default::default() };
    for line in theirs.difference(ours) {
        let instead = only_ours.get(&key(line)).cloned().unwrap_or_default();
        let harmless = HARMLESS.iter().any(|name| line.starts_with(&format!("impl !{name} for ")));
        if harmless || instead.iter().any(|ours| keeps(ours, line)) {
            continue;
        }
        if instead.is_empty() && excuses.cover(line) {
            report.excused += 1;
            continue;
        }
        report.wrong.insert(line.clone(), instead);
    }
    report
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Excuses, compare, key, subject};

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|line| line.to_string()).collect()
    }

    const LINES: &[&str] = &[
        "mod t::fs",
        "fn t::fs::read(A) -> u8 where A: X",
        "struct t::Lock<A> { .. } where A: ?Sized",
        "const fn t::Lock<A>::new(A) -> t::Lock<A>",
        "impl core::marker::Send for t::Lock<A> where A: core::marker::Send",
        "impl !core::marker::Sync for t::Guard<'0>",
        "impl t::Read for t::fs::File",
        "use t::Other = t::Lock",
    ];

    #[test]
    fn each_line_that_is_not_there_is_reported() {
        let theirs = set(LINES);
        assert!(compare(&theirs, &theirs, &Excuses::default()).wrong.is_empty());
        for line in LINES {
            let mut ours = theirs.clone();
            ours.remove(*line);
            let report = compare(&theirs, &ours, &Excuses::default());
            assert_eq!(report.wrong.keys().collect::<Vec<_>>(), [line]);
            assert!(report.to_string().starts_with("missing"), "{report}");
        }
    }

    #[test]
    fn the_items_that_exist_instead_are_shown() {
        let theirs = set(&["impl core::marker::Send for t::Lock<A> where A: Send"]);
        let ours = set(&["impl !core::marker::Send for t::Lock<A>", "mod t::own"]);
        let report = compare(&theirs, &ours, &Excuses::default());
        assert_eq!(
            report.wrong.values().next().unwrap(),
            &["impl !core::marker::Send for t::Lock<A>"]
        );
        assert!(report.to_string().contains("\n     here  impl !core"), "{report}");
        assert_eq!(report.more, 2);
    }

    #[test]
    fn an_excuse_covers_what_is_below_its_name_until_it_is_there() {
        let excuses = Excuses(vec!["t::fs".into()]);
        let ours = set(&["mod t::fsx"]);
        let theirs = set(&["mod t::fs", "impl t::Read for t::fs::File", "mod t::fsx"]);
        let report = compare(&theirs, &ours, &excuses);
        assert_eq!((report.wrong.len(), report.excused), (0, 2));
        assert!(excuses.stale(&ours).is_empty());
        assert_eq!(excuses.stale(&theirs), ["t::fs"]);
    }

    #[test]
    fn the_absence_of_a_harmless_trait_is_no_promise() {
        let theirs = set(&[
            "impl !core::panic::unwind_safe::UnwindSafe for t::Lock<A>",
            "impl !core::marker::Send for t::Lock<A>",
        ]);
        let report = compare(&theirs, &set(&[]), &Excuses::default());
        assert_eq!(report.wrong.len(), 1);
    }

    #[test]
    fn fewer_bounds_are_kept_and_more_are_not() {
        let theirs = "fn t::f(A) -> B where A: ?Sized + Fn(u8) -> C + Send, B: X<u8, C: D>";
        for ours in [
            theirs,
            "fn t::f(A) -> B where A: ?Sized + Send",
            "fn t::f(A) -> B where A: ?Sized, B: ?Sized",
        ] {
            assert!(super::keeps(ours, theirs), "{ours}");
        }
        for ours in [
            "fn t::f(A) -> B where A: ?Sized + Fn(u8) -> D",
            "fn t::f(A) -> B where A: Send",
            "fn t::f(A) -> B where A: ?Sized + Sync",
            "fn t::f(A) -> B where A: ?Sized, B: X<u8>",
            "fn t::f(B) -> B where A: ?Sized",
        ] {
            assert!(!super::keeps(ours, theirs), "{ours}");
        }
        let provided = "provided fn t::T::f() -> () where A: X";
        assert!(!super::keeps("provided fn t::T::f() -> ()", provided));
    }

    #[test]
    fn a_type_without_a_name_may_have_one() {
        let theirs = "fn t::f() -> R<A, (no public name)>";
        assert!(super::keeps("fn t::f() -> R<A, t::Error>", theirs));
        assert!(!super::keeps("fn t::f() -> R<A, B, t::Error>", theirs));
        assert!(!super::keeps("fn t::f() -> R<A, t::Error> + Send", theirs));
    }

    #[test]
    fn lines_of_the_same_thing_have_the_same_key() {
        for (one, other) in [
            ("const fn t::L<A>::new(A) -> t::L<A>", "fn t::L<B, C>::new() -> u8 where B: X"),
            ("impl !X<A> for t::L<A>", "impl X<A> for t::L<A> where A: Y"),
            ("trait t::T { fn a() -> () }", "trait t::T where Self: X { }"),
        ] {
            assert_eq!(key(one), key(other));
        }
        assert_ne!(key("impl X for t::L<A>"), key("impl X for t::M<A>"));
        assert_eq!(subject("const unsafe fn t::a::b(A) -> ()"), Some("t::a::b"));
        assert_eq!(subject("enum t::E { A }"), Some("t::E"));
        assert_eq!(subject("use t::a = t::b"), None);
    }
}
