//! A TOML reader that is sufficient for manifests, lock files and cargo's configuration.
//!
//! It reads tables, arrays of tables, dotted keys, inline tables, arrays and all four kinds of
//! strings. Numbers, dates and booleans are kept as they are written. Some errors that a stricter
//! reader refuses (a key that is defined twice) are accepted, and the last definition wins, because
//! cargo reports them itself.

use std::collections::BTreeMap;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// A number, a date or a boolean, as written.
    Word(String),
    List(Vec<Value>),
    Table(Table),
}

/// Keys and their values.
pub(crate) type Table = BTreeMap<String, Value>;

impl Value {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            _ => &[],
        }
    }
}

/// Returns the table below a path of keys; `None` if there is none.
pub(crate) fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter().try_fold(table, |table, key| table.get(*key)?.table())
}

/// Parses a file's text. An error names the line.
pub(crate) fn read(text: &str) -> Result<Table, String> {
    let mut reader = Reader { text, at: 0 };
    reader.file().map_err(|what| {
        let line = text[..reader.at.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {what}")
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, what: &str) -> bool {
        let there = self.rest().starts_with(what);
        self.at += if there { what.len() } else { 0 };
        there
    }

    fn expect(&mut self, what: &str) -> Result<(), String> {
        if self.eat(what) { Ok(()) } else { Err(format!("`{what}` is missing")) }
    }

    fn skip(&mut self, among: &[char]) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(among).len();
    }

    fn spaces(&mut self) {
        self.skip(&[' ', '\t']);
    }

    /// Skips spaces, line ends and comments.
    fn gap(&mut self) {
        loop {
            self.skip(&[' ', '\t', '\r', '\n']);
            if self.peek() != Some('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn file(&mut self) -> Result<Table, String> {
        let mut root = Table::new();
        let mut here: Vec<String> = Vec::new();
        loop {
            self.gap();
            if self.rest().is_empty() {
                return Ok(root);
            }
            if self.eat("[[") {
                here = self.keys()?;
                self.expect("]]")?;
                append(&mut root, &here)?;
            } else if self.eat("[") {
                here = self.keys()?;
                self.expect("]")?;
                enter(&mut root, &here)?;
            } else {
                let table = enter(&mut root, &here)?;
                self.pair(table)?;
            }
            self.spaces();
            if !matches!(self.peek(), None | Some('\n' | '\r' | '#')) {
                return Err("the line does not end where it should".into());
            }
        }
    }

    /// Parses `a.b = value`.
    fn pair(&mut self, table: &mut Table) -> Result<(), String> {
        let mut keys = self.keys()?;
        self.expect("=")?;
        self.spaces();
        let value = self.value()?;
        let last = keys.pop().unwrap_or_default();
        enter(table, &keys)?.insert(last, value);
        Ok(())
    }

    fn keys(&mut self) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        loop {
            self.spaces();
            keys.push(self.key()?);
            self.spaces();
            if !self.eat(".") {
                return Ok(keys);
            }
        }
    }

    fn key(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.string();
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let key = &rest[..end.unwrap_or(rest.len())];
        self.at += key.len();
        if key.is_empty() { Err("a key is missing".into()) } else { Ok(key.to_owned()) }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some('"' | '\'') => self.string().map(Value::Text),
            Some('[') => self.array(),
            Some('{') => self.inline(),
            _ => {
                let rest = self.rest();
                let end = rest.find([',', ']', '}', '\n', '\r', '#']).unwrap_or(rest.len());
                let word = rest[..end].trim_end();
                self.at += word.len();
                if word.is_empty() {
                    return Err("a value is missing".into());
                }
                Ok(Value::Word(word.to_owned()))
            }
        }
    }

    fn array(&mut self) -> Result<Value, String> {
        self.expect("[")?;
        let mut list = Vec::new();
        loop {
            self.gap();
            if self.eat("]") {
                return Ok(Value::List(list));
            }
            list.push(self.value()?);
            self.gap();
            if !self.eat(",") && self.peek() != Some(']') {
                return Err("an array does not end".into());
            }
        }
    }

    fn inline(&mut self) -> Result<Value, String> {
        self.expect("{")?;
        let mut table = Table::new();
        loop {
            self.gap();
            if self.eat("}") {
                return Ok(Value::Table(table));
            }
            self.pair(&mut table)?;
            self.gap();
            if !self.eat(",") && self.peek() != Some('}') {
                return Err("a table in braces does not end".into());
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let (quote, literal) = match self.peek() {
            Some('\'') if self.rest().starts_with("'''") => ("'''", true),
            Some('\'') => ("'", true),
            _ if self.rest().starts_with("\"\"\"") => ("\"\"\"", false),
            _ => ("\"", false),
        };
        self.expect(quote)?;
        let long = quote.len() == 3;
        if long {
            let _ = self.eat("\r\n") || self.eat("\n");
        }
        let mut text = String::new();
        loop {
            if self.eat(quote) {
                return Ok(text);
            }
            match self.peek() {
                None => return Err("a string does not end".into()),
                Some('\n') if !long => return Err("a string does not end".into()),
                Some('\\') if !literal => {
                    self.at += 1;
                    self.escape(&mut text)?;
                }
                Some(c) => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let Some(c) = self.peek() else { return Err("a string does not end".into()) };
        self.at += c.len_utf8();
        match c {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '"' | '\\' => text.push(c),
            // The string continues on the next line.
            '\n' | '\r' | ' ' => self.skip(&[' ', '\t', '\r', '\n']),
            'u' | 'U' => {
                let length = if c == 'u' { 4 } else { 8 };
                let digits = self.rest().get(..length).unwrap_or_default();
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                text.push(code.ok_or("an escape names no character")?);
                self.at += length;
            }
            _ => return Err(format!("`\\{c}` is no escape")),
        }
        Ok(())
    }
}

/// Returns the table below these keys, created if need be; in an array of tables, its last one.
fn enter<'a>(table: &'a mut Table, keys: &[String]) -> Result<&'a mut Table, String> {
    let mut here = table;
    for key in keys {
        let value = here.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
        here = match value {
            Value::Table(table) => table,
            Value::List(list) => match list.last_mut() {
                Some(Value::Table(table)) => table,
                _ => return Err(format!("`{key}` is no table")),
            },
            _ => return Err(format!("`{key}` is no table")),
        };
    }
    Ok(here)
}

/// Appends a new table to the array below these keys.
fn append(root: &mut Table, keys: &[String]) -> Result<(), String> {
    let Some((last, path)) = keys.split_last() else { return Ok(()) };
    let table = enter(root, path)?;
    match table.entry(last.clone()).or_insert_with(|| Value::List(Vec::new())) {
        Value::List(list) => list.push(Value::Table(Table::new())),
        _ => return Err(format!("`{last}` is no array of tables")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Value, at, read};

    #[test]
    fn manifests_are_read() {
        let text = "# A comment.\n[package] # another\nname = 'a'\nversion = \"1.0\\u0041\"\n\
                    [dependencies]\ntokio = { version = \"1\", features = [\n  \"rt\", # why\n \"net\",\n] }\n\
                    [patch.crates-io]\ntokio.path = \"x # y\"\n[patch.\"https://a.b/c\"]\n\
                    [[package2.unused]]\nn = 1\n[[package2.unused]]\nn = 2\nlong = \"\"\"\na\\\n   b\"\"\"\n";
        let root = read(text).unwrap();
        let text = |path: &[&str], key: &str| at(&root, path).unwrap()[key].text().unwrap();
        assert_eq!(text(&["package"], "version"), "1.0A");
        assert_eq!(text(&["patch", "crates-io", "tokio"], "path"), "x # y");
        assert!(at(&root, &["patch", "https://a.b/c"]).unwrap().is_empty());
        let features = &at(&root, &["dependencies", "tokio"]).unwrap()["features"];
        assert_eq!(features.list().len(), 2);
        let unused = at(&root, &["package2"]).unwrap()["unused"].list();
        assert_eq!(unused[1].table().unwrap()["n"], Value::Word("2".into()));
        assert_eq!(unused[1].table().unwrap()["long"].text(), Some("ab"));
    }

    #[test]
    fn broken_input_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a = 1\nb = \"x\n", 2, "does not end"),
            ("[a\n", 1, "`]` is missing"),
            ("a = 1\n\n= 2\n", 3, "a key is missing"),
            ("a =\n", 1, "a value is missing"),
            ("a = [1\nb = 2", 2, "does not end"),
            ("a = 1 b = 2\n[x] y", 2, "does not end where"),
            ("a = 1\na.b = 2\n", 2, "no table"),
            ("a = \"\\q\"\n", 1, "no escape"),
            ("a = {b = 1\n", 2, "does not end"),
        ] {
            let why = read(text).unwrap_err();
            assert!(
                why.starts_with(&format!("line {line}: ")) && why.contains(what),
                "{text}: {why}"
            );
        }
    }
}
