//! Rust source as tidy sees it: each line split into code and comment.
//!
//! This is a scanner, not a parser. It knows strings, raw strings, characters, lifetimes and nested
//! comments, which is all that is needed to distinguish code from prose; on top of that it expands
//! `use` trees into paths and finds the lines of test modules by their braces.

use std::ops::Range;

/// One line of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Line {
    /// The code, strings included.
    pub code: String,
    /// The code without the contents of strings and characters.
    pub bare: String,
    /// The contents of strings, with a space for each escape and at the end of each string.
    pub strings: String,
    /// The comments, with their slashes.
    pub comment: String,
}

/// A scanned file.
#[derive(Debug)]
pub struct Source {
    /// Its lines, from the first.
    pub lines: Vec<Line>,
    tests: Vec<Range<usize>>,
}

/// A path that the code names, and the line (from 0) where it starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The line of the statement that names it.
    pub line: usize,
    /// The full path, `a::b::c`.
    pub path: String,
}

impl Source {
    /// Scans a file.
    pub fn new(text: &str) -> Self {
        let lines = scan(text);
        let tests = test_modules(&lines);
        Self { lines, tests }
    }

    /// Returns true if a line (from 0) lies in a module that only tests compile.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }

    /// Returns the modules in other files that only tests compile.
    pub fn test_modules(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for pair in self.lines.windows(2) {
            let tokens = split_tokens(&pair[1].bare);
            let module = tokens.iter().position(|token| *token == "mod");
            if is_test_cfg(&pair[0]) && tokens.last() == Some(&";") {
                names.extend(module.and_then(|at| tokens.get(at + 1)));
            }
        }
        names
    }

    /// Returns the `//!` lines at the top, without their slashes.
    pub fn story(&self) -> Vec<&str> {
        let comments = self.lines.iter().map(|line| line.comment.trim());
        comments.map_while(|comment| comment.strip_prefix("//!")).map(str::trim).collect()
    }

    /// Returns every path with `::` that the code names, `use` trees expanded.
    pub fn paths(&self) -> Vec<Named> {
        let mut tokens = Vec::new();
        for (line, text) in self.lines.iter().enumerate() {
            tokens.extend(split_tokens(&text.bare).into_iter().map(|token| (line, token)));
        }
        let mut paths = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (line, _) = tokens[at];
            let end = tree(&tokens, at, "", &mut |path| paths.push(Named { line, path }));
            at = end.max(at + 1);
        }
        paths.retain(|named| named.path.contains("::"));
        paths
    }

    /// Returns for each line whether it belongs to a `use` statement.
    pub fn use_lines(&self) -> Vec<bool> {
        let mut inside = false;
        let is_use = |code: &str| {
            let code = code.trim_start();
            let code = code.strip_prefix("pub").map_or(code, |rest| {
                let rest = rest.trim_start();
                rest.strip_prefix('(').and_then(|r| r.split_once(')')).map_or(rest, |(_, r)| r)
            });
            code.trim_start().starts_with("use ")
        };
        let mark = |line: &Line| {
            let here = inside || is_use(&line.bare);
            inside = here && !line.bare.contains(';');
            here
        };
        self.lines.iter().map(mark).collect()
    }

    /// Returns the names of the test functions.
    pub fn test_functions(&self) -> Vec<String> {
        let mut pending = false;
        let mut names = Vec::new();
        for line in &self.lines {
            let bare = line.bare.trim();
            if bare.starts_with("#[test]")
                || bare.starts_with("#[") && (bare.contains("::test]") || bare.contains("::test("))
            {
                pending = true;
            }
            if let Some(name) = function_name(bare)
                && std::mem::take(&mut pending)
            {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Returns the name of the function that a line of code declares.
pub fn function_name(bare: &str) -> Option<&str> {
    let tokens = split_tokens(bare);
    let at = tokens.iter().position(|token| *token == "fn")?;
    let name = *tokens.get(at + 1)?;
    is_word(name).then_some(name)
}

/// Returns true if a token is a name or a keyword.
pub fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits code into words, `::` and single punctuation marks.
pub fn split_tokens(bare: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = bare.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Reads a path or a `use` tree from `at`; returns the index of the token after it.
fn tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    prefix: &str,
    found: &mut dyn FnMut(String),
) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", |(_, token)| *token);
    let mut path = prefix.to_owned();
    while is_word(token(at)) || token(at) == "*" && path.ends_with("::") {
        path.push_str(token(at));
        at += 1;
        if token(at) != "::" {
            found(path);
            return at;
        }
        path.push_str("::");
        at += 1;
        if token(at) != "{" {
            continue;
        }
        at += 1;
        while !matches!(token(at), "}" | "") {
            // An alias (`as x`) and the commas are skipped.
            at = tree(tokens, at, &path, found).max(at + 1);
            while token(at) != "," && !matches!(token(at), "}" | "") {
                at += 1;
            }
            if token(at) == "," {
                at += 1;
            }
        }
        return at + 1;
    }
    at
}

/// Returns the line ranges of inline modules under a `#[cfg]` that names `test`.
fn test_modules(lines: &[Line]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if !is_test_cfg(line) {
            continue;
        }
        let module = lines[start..].iter().take(6).position(|line| {
            let tokens = split_tokens(&line.bare);
            tokens.contains(&"mod") && tokens.contains(&"{")
        });
        if let Some(offset) = module {
            ranges.push(start..block_end(lines, start + offset));
        }
    }
    ranges
}

fn is_test_cfg(line: &Line) -> bool {
    let tokens = split_tokens(&line.bare);
    tokens.first() == Some(&"#") && tokens.contains(&"cfg") && tokens.contains(&"test")
}

/// Returns the line after the block that opens on line `start`.
pub fn block_end(lines: &[Line], start: usize) -> usize {
    let mut depth = 0usize;
    for (at, line) in lines.iter().enumerate().skip(start) {
        for c in line.bare.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
    }
    lines.len()
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Code,
    LineComment,
    BlockComment(usize),
    /// A string; for a raw one the number of hashes that close it.
    Text(Option<usize>),
}

fn scan(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut inside = Inside::Code;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        if c == '\n' {
            lines.push(std::mem::take(&mut line));
            if inside == Inside::LineComment {
                inside = Inside::Code;
            }
            rest = &rest[length..];
            continue;
        }
        match inside {
            Inside::Code => {
                (inside, length) = step_in_code(rest, &mut line);
            }
            Inside::LineComment => line.comment.push(c),
            Inside::BlockComment(depth) => {
                if rest.starts_with("/*") {
                    length = 2;
                    inside = Inside::BlockComment(depth + 1);
                } else if rest.starts_with("*/") {
                    length = 2;
                    inside =
                        if depth == 1 { Inside::Code } else { Inside::BlockComment(depth - 1) };
                }
                line.comment.push_str(&rest[..length]);
            }
            Inside::Text(hashes) => {
                let closes = c == '"'
                    && rest[1..].chars().take_while(|c| *c == '#').count() >= hashes.unwrap_or(0);
                if closes {
                    length = 1 + hashes.unwrap_or(0);
                    inside = Inside::Code;
                    line.bare.push_str(&rest[..length]);
                    line.strings.push(' ');
                } else if hashes.is_none() && c == '\\' && !rest[1..].starts_with('\n') {
                    length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    line.strings.push(' ');
                } else {
                    line.strings.push(c);
                }
                line.code.push_str(&rest[..length]);
            }
        }
        rest = &rest[length..];
    }
    if line != Line::default() {
        lines.push(line);
    }
    lines
}

/// Consumes one character, literal start or comment start of code; returns the state after it and
/// its length in bytes.
fn step_in_code(rest: &str, line: &mut Line) -> (Inside, usize) {
    if rest.starts_with("//") {
        line.comment.push_str("//");
        return (Inside::LineComment, 2);
    }
    if rest.starts_with("/*") {
        line.comment.push_str("/*");
        return (Inside::BlockComment(1), 2);
    }
    let in_word = line.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut take = |length: usize, bare: &str| {
        line.code.push_str(&rest[..length]);
        line.bare.push_str(bare);
        length
    };
    if rest.starts_with('"') {
        return (Inside::Text(None), take(1, "\""));
    }
    if !in_word && let Some(raw) = rest.strip_prefix("br").or(rest.strip_prefix('r')) {
        let hashes = raw.chars().take_while(|c| *c == '#').count();
        if raw[hashes..].starts_with('"') {
            let length = rest.len() - raw.len() + hashes + 1;
            return (Inside::Text(Some(hashes)), take(length, &rest[..length]));
        }
    }
    if let Some(length) = character(rest) {
        return (Inside::Code, take(length, "''"));
    }
    let length = rest.chars().next().map_or(0, char::len_utf8);
    (Inside::Code, take(length, &rest[..length]))
}

/// Returns the length of a character literal; `None` for a lifetime and all else.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    if let Some(escape) = body.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        return Some(2 + first + escape[first..].find('\'')? + 1);
    }
    let length = body.chars().next()?.len_utf8();
    body[length..].starts_with('\'').then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::{Named, Source};

    #[test]
    fn code_strings_and_comments_are_distinguished() {
        let source = Source::new(
            "let a = \"x // no\"; // yes \"q\"\nlet b = r#\"a\" /* \"#; /* in /* out\n*/ still */ let c = '\"'; let d: &'a str = '\\'';\n",
        );
        assert_eq!(source.lines[0].bare, "let a = \"\"; ");
        assert_eq!(source.lines[0].strings, "x // no ");
        assert_eq!(source.lines[0].comment, "// yes \"q\"");
        assert_eq!(source.lines[1].bare, "let b = r#\"\"#; ");
        assert_eq!(source.lines[2].comment, "*/ still */");
        assert_eq!(source.lines[2].bare, " let c = ''; let d: &'a str = '';");
    }

    #[test]
    fn use_trees_are_expanded() {
        let source = Source::new(
            "use std::{\n    cell::UnsafeCell as C,\n    sync::{Arc, atomic::*},\n};\nfn f() { crate::a::b(); }\n",
        );
        let paths: Vec<_> = source.paths();
        let named = |line, path: &str| Named { line, path: path.into() };
        assert_eq!(
            paths,
            [
                named(0, "std::cell::UnsafeCell"),
                named(0, "std::sync::Arc"),
                named(0, "std::sync::atomic::*"),
                named(4, "crate::a::b"),
            ]
        );
    }

    #[test]
    fn test_modules_and_test_functions_are_found() {
        let source = Source::new(
            "fn f() {}\n#[cfg(all(test, not(x)))]\nmod tests {\n    #[test]\n    #[ignore]\n    fn a_fact() {}\n    fn not_one() {}\n    #[tokio::test(x)]\n    async fn b() {}\n}\nfn g() {}\n",
        );
        assert_eq!(source.test_functions(), ["a_fact", "b"]);
        let other = Source::new("#[cfg(test)]\npub(crate) mod node;\nmod ring;\n");
        assert_eq!(other.test_modules(), ["node"]);
        assert!(!source.is_test(0) && source.is_test(5) && !source.is_test(10));
    }

    #[test]
    fn a_use_statement_covers_its_lines() {
        let source = Source::new("pub(crate) use a::{\n    b,\n};\nlet x = 1;\n");
        assert_eq!(source.use_lines(), [true, true, true, false]);
    }
}
