//! A JSON reader that is sufficient for cargo's output.
//!
//! A value is parsed once and then looked up by key. Numbers and the finer points of escapes do not
//! occur in what we read, and are kept as text.

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`, a boolean or a number, as written.
    Word(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, with its keys in order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses one value; `None` if the text is not JSON.
    pub fn read(text: &str) -> Option<Json> {
        let mut reader = Reader { rest: text };
        let value = reader.value()?;
        reader.rest.trim().is_empty().then_some(value)
    }

    /// Returns the value of a key of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Returns the text of a key of an object.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the elements of a key of an object; none if it is not an array.
    pub fn list(&self, key: &str) -> &[Json] {
        match self.get(key) {
            Some(Json::List(list)) => list,
            _ => &[],
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Json> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '"' => self.string().map(Json::Text),
            '[' => self.sequence(']', Self::value).map(Json::List),
            '{' => self.sequence('}', Self::pair).map(Json::Object),
            _ => self.word(),
        }
    }

    fn pair(&mut self) -> Option<(String, Json)> {
        self.rest = self.rest.trim_start();
        let key = self.string()?;
        self.eat(':')?;
        Some((key, self.value()?))
    }

    fn sequence<T>(&mut self, end: char, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        if self.eat(end).is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(end).is_some() {
                return Some(items);
            }
            self.eat(',')?;
        }
    }

    fn eat(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(wanted)?;
        Some(())
    }

    fn word(&mut self) -> Option<Json> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then(|| Json::Word(word.to_owned()))
    }

    fn string(&mut self) -> Option<String> {
        let body = self.rest.strip_prefix('"')?;
        let mut text = String::new();
        let mut chars = body.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &body[at + 1..];
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'u' => {
                        let code = chars.by_ref().take(4).map(|(_, digit)| digit);
                        let code = u32::from_str_radix(&code.collect::<String>(), 16).ok()?;
                        // Half of a surrogate pair is no character; no text that we use has one.
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    other => text.push(other),
                },
                plain => text.push(plain),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn cargos_output_is_read() {
        let line = r#"{"reason":"x","target":{"name":"a\n\u001b[1m\"b\"","kind":["test"]},"n":-1.5,"e":[],"o":{},"f":false}"#;
        let json = Json::read(line).unwrap();
        assert_eq!(json.text("reason"), Some("x"));
        assert_eq!(json.get("target").unwrap().text("name"), Some("a\n\u{1b}[1m\"b\""));
        assert_eq!(json.get("target").unwrap().list("kind"), [Json::Text("test".into())]);
        assert_eq!(json.get("n"), Some(&Json::Word("-1.5".into())));
        assert!(json.list("e").is_empty());
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in ["", "{", "{\"a\"}", "[1,]", "\"a", "{} {}", "test a ... ok"] {
            assert_eq!(Json::read(text), None, "{text}");
        }
    }
}
