//! The item under the attribute: where its parts begin and end.
//!
//! A function is `attributes visibility qualifiers fn name generics (parameters) -> output where …
//! { body }`. Of these only the brackets of the generics need counting; everything else is a token
//! or a group. Parts that the attribute does not need are passed on unchanged.

use crate::{
    arguments::Fault,
    token::{Fence, Token, View},
};

/// An `async fn`, split.
#[derive(Debug)]
pub(crate) struct Function<T> {
    /// Everything before the body except `async`, in order.
    pub(crate) signature: Vec<T>,
    /// The type after `->`; none for a function that returns nothing.
    pub(crate) output: Option<Vec<T>>,
    /// True if the parameter list is empty.
    pub(crate) is_plain: bool,
    pub(crate) body: T,
    /// The attributes' contents: `should_panic`, `core::prelude::v1::test` …
    pub(crate) attributes: Vec<Vec<T>>,
    pub(crate) name: String,
    /// The token of the parameter list.
    pub(crate) parameters: T,
}

impl<T: Token> Function<T> {
    pub(crate) fn read(item: &[T]) -> Result<Self, Fault<T::Span>> {
        let item = flat(item);
        let wrong = |at: Option<&T>| Fault {
            span: at.map_or_else(T::call_site, Token::span),
            message: "this attribute goes on an `async fn` with a body".to_owned(),
        };
        let (body, head) = item.split_last().ok_or_else(|| wrong(None))?;
        let start = head.iter().position(|token| token.is_word("fn"));
        let start = start.ok_or_else(|| wrong(head.first()))?;
        let body = brace_of(body).ok_or_else(|| wrong(Some(&head[start])))?;
        let asynchronous = head[..start].iter().position(|token| token.is_word("async"));
        let asynchronous = asynchronous.ok_or_else(|| Fault {
            span: head[start].span(),
            message: "the `async` is missing: write `async fn`".to_owned(),
        })?;
        let Some(View::Word(name)) = head.get(start + 1).map(Token::view) else {
            return Err(wrong(Some(&head[start])));
        };
        let (at, parameters) = parameters(head, start + 2).ok_or_else(|| wrong(head.last()))?;
        let View::Group(_, list) = parameters.view() else { return Err(wrong(None)) };
        let mut signature = head.to_vec();
        signature.remove(asynchronous);
        Ok(Self {
            signature,
            output: output(&head[at + 1..]),
            is_plain: list.is_empty(),
            body,
            attributes: attributes(head),
            name,
            parameters,
        })
    }
}

/// Returns the item without the invisible groups that `macro_rules` puts around a fragment, as far
/// as its outermost tokens go.
fn flat<T: Token>(item: &[T]) -> Vec<T> {
    let mut tokens = Vec::new();
    for token in item {
        match token.view() {
            // A type or an expression keeps its group, because it binds what is inside.
            View::Group(Fence::Nothing, inner) if is_function(&inner) => {
                tokens.extend(flat(&inner));
            }
            _ => tokens.push(token.clone()),
        }
    }
    tokens
}

fn is_function<T: Token>(tokens: &[T]) -> bool {
    tokens.iter().any(|token| token.is_word("fn"))
        && tokens.last().is_some_and(|last| brace_of(last).is_some())
}

/// Returns the braces of a body, taken out of the invisible group of a `$block`.
fn brace_of<T: Token>(token: &T) -> Option<T> {
    match token.view() {
        View::Group(Fence::Brace, _) => Some(token.clone()),
        View::Group(Fence::Nothing, inner) if inner.len() == 1 => brace_of(&inner[0]),
        _ => None,
    }
}

/// Returns the parameter list, which follows the generics if there are any.
fn parameters<T: Token>(head: &[T], from: usize) -> Option<(usize, T)> {
    let mut depth = 0;
    let mut before = None;
    for (at, token) in head.iter().enumerate().skip(from) {
        match token.view() {
            View::Mark('<') => depth += 1,
            // The arrow in `F: Fn(A) -> B` closes nothing.
            View::Mark('>') if before != Some('-') => depth -= 1,
            View::Group(Fence::Paren, _) if depth == 0 => return Some((at, token.clone())),
            _ => {}
        }
        before = match token.view() {
            View::Mark(mark) => Some(mark),
            _ => None,
        };
    }
    None
}

/// Returns the type between `->` and `where`.
fn output<T: Token>(rest: &[T]) -> Option<Vec<T>> {
    if rest.len() < 3 || !rest[0].is_mark('-') || !rest[1].is_mark('>') {
        return None;
    }
    Some(rest[2..].iter().take_while(|token| !token.is_word("where")).cloned().collect())
}

/// Returns the contents of the attributes at the head of the item.
fn attributes<T: Token>(head: &[T]) -> Vec<Vec<T>> {
    let mut attributes = Vec::new();
    for pair in head.windows(2) {
        if let (View::Mark('#'), View::Group(Fence::Bracket, inner)) =
            (pair[0].view(), pair[1].view())
        {
            attributes.push(inner);
        }
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::Function;
    use crate::token::tests::{Plain, lex, show};

    fn read(text: &str) -> Function<Plain> {
        Function::read(&lex(text)).unwrap_or_else(|fault| panic!("{text}: {}", fault.message))
    }

    #[test]
    fn everything_but_async_is_kept() {
        let function = read(
            "#[doc = \"d\"] pub(crate) async unsafe fn f<T: Fn(u8) -> u8, const N: usize>(x: [T; N]) -> Vec<T> where T: Copy { x; }",
        );
        assert_eq!(
            show(&function.signature),
            "# [ doc = \"d\" ] pub ( crate ) unsafe fn f < T : Fn ( u8 ) - > u8 , const N : usize > ( x : [ T ; N ] ) - > Vec < T > where T : Copy"
        );
        assert_eq!(show(&function.output.unwrap()), "Vec < T >");
        assert!(!function.is_plain);
        assert_eq!(function.name, "f");
        assert_eq!(show(&[function.body]), "{ x ; }");
    }

    #[test]
    fn no_arrow_is_no_output() {
        let function = read("async fn f() where u8: Copy {}");
        assert!(function.output.is_none() && function.is_plain);
    }

    #[test]
    fn fragments_of_macro_rules_are_seen_through() {
        assert_eq!(show(&[read("⟦pub⟧ async fn f() ⟦{ 1 }⟧").body]), "{ 1 }");
        assert_eq!(read("⟦async fn g() { 1 }⟧").name, "g");
        // A type in an invisible group stays in it.
        assert_eq!(read("async fn f() -> ⟦u8⟧ {}").output.unwrap().len(), 1);
    }

    #[test]
    fn items_that_are_not_async_functions_are_refused() {
        for (text, at, words) in [
            ("fn f() {}", "fn", "`async` is missing"),
            ("pub fn f() {}", "fn", "`async` is missing"),
            ("struct S {}", "struct", "goes on an `async fn`"),
            ("async fn f();", "fn", "with a body"),
            ("const F: u8 = 1;", "const", "goes on an `async fn`"),
        ] {
            let fault = Function::read(&lex(text)).unwrap_err();
            assert!(fault.message.contains(words), "{text}: {}", fault.message);
            assert_eq!(fault.span, text.find(at).unwrap(), "{text}: wrong place");
        }
    }
}
