//! Tokens as the attributes see them: the compiler's, or a test's.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenTree};

/// The delimiter of a group. `Nothing` is the invisible group around a `macro_rules` fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    Paren,
    Brace,
    Bracket,
    Nothing,
}

/// The contents of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View<T> {
    Word(String),
    Mark(char),
    /// A literal as written.
    Literal(String),
    Group(Fence, Vec<T>),
}

/// A token of the compiler or of a test.
pub(crate) trait Token: Clone {
    type Span: Copy;

    fn view(&self) -> View<Self>;
    fn span(&self) -> Self::Span;

    fn is_word(&self, wanted: &str) -> bool {
        matches!(self.view(), View::Word(word) if word == wanted)
    }

    fn is_mark(&self, wanted: char) -> bool {
        matches!(self.view(), View::Mark(mark) if mark == wanted)
    }

    /// Returns the span of the attribute. Names resolve there, except locals, which the user's code
    /// cannot see.
    fn call_site() -> Self::Span;
    /// Returns `span` with its place in the file taken from `place`.
    fn located_at(span: Self::Span, place: Self::Span) -> Self::Span;

    fn word(text: &str, span: Self::Span) -> Self;
    /// Creates a punctuation token; `joint` if the next one belongs to the same operator.
    fn mark(mark: char, joint: bool, span: Self::Span) -> Self;
    fn text(text: &str, span: Self::Span) -> Self;
    fn number(number: usize, span: Self::Span) -> Self;
    fn group(fence: Fence, tokens: Vec<Self>, span: Self::Span) -> Self;
}

impl Token for TokenTree {
    type Span = Span;

    fn view(&self) -> View<Self> {
        match self {
            TokenTree::Ident(ident) => View::Word(ident.to_string()),
            TokenTree::Punct(punct) => View::Mark(punct.as_char()),
            TokenTree::Literal(literal) => View::Literal(literal.to_string()),
            TokenTree::Group(group) => {
                let fence = match group.delimiter() {
                    Delimiter::Parenthesis => Fence::Paren,
                    Delimiter::Brace => Fence::Brace,
                    Delimiter::Bracket => Fence::Bracket,
                    Delimiter::None => Fence::Nothing,
                };
                View::Group(fence, group.stream().into_iter().collect())
            }
        }
    }

    fn span(&self) -> Span {
        TokenTree::span(self)
    }

    fn call_site() -> Span {
        Span::mixed_site()
    }

    fn located_at(span: Span, place: Span) -> Span {
        span.located_at(place)
    }

    fn word(text: &str, span: Span) -> Self {
        Ident::new(text, span).into()
    }

    fn mark(mark: char, joint: bool, span: Span) -> Self {
        let mut punct = Punct::new(mark, if joint { Spacing::Joint } else { Spacing::Alone });
        punct.set_span(span);
        punct.into()
    }

    fn text(text: &str, span: Span) -> Self {
        let mut literal = Literal::string(text);
        literal.set_span(span);
        literal.into()
    }

    fn number(number: usize, span: Span) -> Self {
        let mut literal = Literal::usize_unsuffixed(number);
        literal.set_span(span);
        literal.into()
    }

    fn group(fence: Fence, tokens: Vec<Self>, span: Span) -> Self {
        let delimiter = match fence {
            Fence::Paren => Delimiter::Parenthesis,
            Fence::Brace => Delimiter::Brace,
            Fence::Bracket => Delimiter::Bracket,
            Fence::Nothing => Delimiter::None,
        };
        let mut group = Group::new(delimiter, tokens.into_iter().collect());
        group.set_span(span);
        group.into()
    }
}

/// Removes the invisible groups that `macro_rules` fragments leave.
pub(crate) fn unwrapped<T: Token>(token: &T) -> T {
    match token.view() {
        View::Group(Fence::Nothing, inner) if inner.len() == 1 => unwrapped(&inner[0]),
        _ => token.clone(),
    }
}

/// Writes code: `template` with every `$0`, `$1` … replaced by `parts`.
///
/// Templates are ours and hold no literals; everything else goes in as a part.
pub(crate) fn fill<T: Token>(template: &str, span: T::Span, parts: &[Vec<T>]) -> Vec<T> {
    let mut reader = Reader { rest: template, span, parts };
    let tokens = reader.tokens();
    assert!(reader.rest.is_empty(), "a fence too many in a template: {template}");
    tokens
}

struct Reader<'a, T: Token> {
    rest: &'a str,
    span: T::Span,
    parts: &'a [Vec<T>],
}

impl<T: Token> Reader<'_, T> {
    /// Reads up to the end or to a closing delimiter, which is not consumed.
    fn tokens(&mut self) -> Vec<T> {
        let mut tokens = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(first) = self.rest.chars().next() else { return tokens };
            match first {
                '(' => tokens.push(self.group(Fence::Paren)),
                '{' => tokens.push(self.group(Fence::Brace)),
                '[' => tokens.push(self.group(Fence::Bracket)),
                ')' | '}' | ']' => return tokens,
                '$' => {
                    let digit = self.rest.as_bytes()[1] - b'0';
                    self.rest = &self.rest[2..];
                    tokens.extend(self.parts[usize::from(digit)].iter().cloned());
                }
                word if word.is_alphabetic() || word == '_' => tokens.push(self.word()),
                mark => {
                    self.rest = &self.rest[mark.len_utf8()..];
                    let joint = self.rest.starts_with(|c| "!&:>|=".contains(c));
                    tokens.push(T::mark(mark, joint, self.span));
                }
            }
        }
    }

    fn word(&mut self) -> T {
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        T::word(word, self.span)
    }

    fn group(&mut self, fence: Fence) -> T {
        self.rest = &self.rest[1..];
        let inner = self.tokens();
        assert!(!self.rest.is_empty(), "a fence is open in a template");
        self.rest = &self.rest[1..];
        T::group(fence, inner, self.span)
    }
}

/// Returns an error that the compiler prints at `span`.
pub(crate) fn error<T: Token>(span: T::Span, message: &str) -> Vec<T> {
    fill("::core::compile_error! { $0 }", span, &[vec![T::text(message, span)]])
}

#[cfg(test)]
pub(crate) mod tests {
    //! A second kind of token, for tests: its span is its offset in the test's text.

    use super::{Fence, Token, View, fill};

    /// The span of tokens that the attributes wrote themselves.
    pub(crate) const OURS: usize = usize::MAX;

    #[derive(Debug, Clone)]
    pub(crate) struct Plain {
        view: View<Plain>,
        joint: bool,
        span: usize,
    }

    impl PartialEq for Plain {
        fn eq(&self, other: &Self) -> bool {
            self.view == other.view
        }
    }

    impl Plain {
        fn new(view: View<Plain>, span: usize) -> Self {
            Self { view, joint: false, span }
        }
    }

    impl Token for Plain {
        type Span = usize;

        fn view(&self) -> View<Self> {
            self.view.clone()
        }

        fn span(&self) -> usize {
            self.span
        }

        fn call_site() -> usize {
            OURS
        }

        fn located_at(_: usize, place: usize) -> usize {
            place
        }

        fn word(text: &str, span: usize) -> Self {
            Self::new(View::Word(text.into()), span)
        }

        fn mark(mark: char, joint: bool, span: usize) -> Self {
            Self { joint, ..Self::new(View::Mark(mark), span) }
        }

        fn text(text: &str, span: usize) -> Self {
            Self::new(View::Literal(format!("{text:?}")), span)
        }

        fn number(number: usize, span: usize) -> Self {
            Self::new(View::Literal(number.to_string()), span)
        }

        fn group(fence: Fence, tokens: Vec<Self>, span: usize) -> Self {
            Self::new(View::Group(fence, tokens), span)
        }
    }

    /// Reads Rust, as far as the tests need it; `⟦…⟧` is an invisible group.
    pub(crate) fn lex(text: &str) -> Vec<Plain> {
        let mut at = 0;
        let tokens = lex_from(text, &mut at);
        assert_eq!(at, text.len(), "a closing fence too many: {text}");
        tokens
    }

    fn lex_from(text: &str, at: &mut usize) -> Vec<Plain> {
        const FENCES: [(char, char, Fence); 4] = [
            ('(', ')', Fence::Paren),
            ('{', '}', Fence::Brace),
            ('[', ']', Fence::Bracket),
            ('⟦', '⟧', Fence::Nothing),
        ];
        let mut tokens = Vec::new();
        while let Some(first) = text[*at..].chars().next() {
            let start = *at;
            let word = |c: char| c.is_alphanumeric() || c == '_';
            if FENCES.iter().any(|(_, close, _)| *close == first) {
                return tokens;
            }
            *at += first.len_utf8();
            if let Some((_, close, fence)) = FENCES.iter().find(|(open, ..)| *open == first) {
                let inner = lex_from(text, at);
                assert!(text[*at..].starts_with(*close), "no {close} in {text}");
                *at += close.len_utf8();
                tokens.push(Plain::group(*fence, inner, start));
            } else if first == '"' {
                *at += text[*at..].find('"').expect("an open string") + 1;
                tokens.push(Plain::new(View::Literal(text[start..*at].into()), start));
            } else if word(first) {
                *at += text[*at..].find(|c| !word(c)).unwrap_or(text.len() - *at);
                let part = text[start..*at].to_owned();
                let digit = first.is_ascii_digit();
                let view = if digit { View::Literal(part) } else { View::Word(part) };
                tokens.push(Plain::new(view, start));
            } else if !first.is_whitespace() {
                tokens.push(Plain::mark(first, false, start));
            }
        }
        tokens
    }

    /// Returns the tokens as text, separated by blanks.
    pub(crate) fn show(tokens: &[Plain]) -> String {
        let show_one = |token: &Plain| match &token.view {
            View::Word(text) | View::Literal(text) => text.clone(),
            View::Mark(mark) => mark.to_string(),
            View::Group(fence, inner) => {
                let (open, close) = match fence {
                    Fence::Paren => ("(", ")"),
                    Fence::Brace => ("{", "}"),
                    Fence::Bracket => ("[", "]"),
                    Fence::Nothing => ("", ""),
                };
                format!("{open} {} {close}", show(inner))
            }
        };
        tokens.iter().map(show_one).collect::<Vec<_>>().join(" ").replace("  ", " ")
    }

    #[test]
    fn a_template_is_filled() {
        let part = lex("a + 1");
        let tokens = fill("::core::f!($0); [x] -> {}", OURS, &[part]);
        assert_eq!(show(&tokens), ": : core : : f ! ( a + 1 ) ; [ x ] - > { }");
        // Operators of two characters stay together: `::` and `->`.
        assert!(tokens[0].joint && !tokens[1].joint);
        assert_eq!(tokens[2].span, OURS);
    }
}
