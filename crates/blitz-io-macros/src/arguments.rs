//! The arguments in the parentheses of the attribute.

use crate::token::{Fence, Token, View, unwrapped};

/// The kind of attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// The attribute itself, before its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    pub(crate) kind: Kind,
    /// The runtime crate's usual name.
    pub(crate) krate: &'static str,
    /// True if the runtime crate has its feature `rt-multi-thread`.
    pub(crate) threads: bool,
}

impl Attribute {
    /// Returns the attribute's name as the user writes it.
    pub(crate) fn name(self) -> String {
        let kind = if self.kind == Kind::Main { "main" } else { "test" };
        format!("{}::{kind}", self.krate)
    }
}

/// An error that the user must fix, and its place.
#[derive(Debug)]
pub(crate) struct Fault<S> {
    pub(crate) span: S,
    pub(crate) message: String,
}

fn fault<T, S>(span: S, message: impl Into<String>) -> Result<T, Fault<S>> {
    Err(Fault { span, message: message.into() })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    MultiThread,
    CurrentThread,
    Local,
}

/// A value and its place in the user's code.
#[derive(Debug, Clone)]
pub(crate) struct Given<V, S> {
    pub(crate) value: V,
    pub(crate) span: S,
}

/// The arguments, checked one by one and against each other.
#[derive(Debug)]
pub(crate) struct Arguments<T: Token> {
    pub(crate) flavor: Flavor,
    pub(crate) worker_threads: Option<Given<usize, T::Span>>,
    pub(crate) start_paused: Option<Given<bool, T::Span>>,
    pub(crate) unhandled_panic: Option<Given<&'static str, T::Span>>,
    pub(crate) name: Option<Given<String, T::Span>>,
    pub(crate) krate: Option<Vec<T>>,
}

const KNOWN: &str =
    "`flavor`, `worker_threads`, `start_paused`, `crate`, `unhandled_panic` and `name`";

impl<T: Token> Arguments<T> {
    /// Returns the meaning of an attribute without arguments.
    pub(crate) fn default(attribute: Attribute) -> Self {
        let flavor = match attribute.kind {
            Kind::Main if attribute.threads => Flavor::MultiThread,
            _ => Flavor::CurrentThread,
        };
        Self {
            flavor,
            worker_threads: None,
            start_paused: None,
            unhandled_panic: None,
            name: None,
            krate: None,
        }
    }

    pub(crate) fn read(tokens: &[T], attribute: Attribute) -> Result<Self, Fault<T::Span>> {
        let mut arguments = Self::default(attribute);
        let mut flavor = None;
        let mut seen = Vec::new();
        let mut parts: Vec<&[T]> = tokens.split(|token| token.is_mark(',')).collect();
        // A comma after the last argument is allowed; so is an empty list.
        parts.pop_if(|last| last.is_empty());
        for part in parts {
            let Argument { name, span, value } = split(part, attribute)?;
            if seen.contains(&name) {
                return fault(span, format!("`{name}` is given twice: remove one"));
            }
            match name.as_str() {
                "flavor" => flavor = Some(read_flavor(value, span, attribute)?),
                "worker_threads" => arguments.worker_threads = Some(read_count(value, span)?),
                "start_paused" => arguments.start_paused = Some(read_bool(value, span)?),
                "unhandled_panic" => arguments.unhandled_panic = Some(read_policy(value, span)?),
                "name" => arguments.name = Some(read_text(value, span, "name")?),
                "crate" => arguments.krate = Some(read_path(value, span)?),
                _ => return fault(span, format!("unknown argument `{name}`: there are {KNOWN}")),
            }
            seen.push(name);
        }
        if let Some(given) = &flavor {
            arguments.flavor = given.value;
        }
        arguments.agree(flavor.map(|given| given.span), attribute)?;
        Ok(arguments)
    }

    /// Returns an error if the arguments contradict each other.
    fn agree(&self, flavor: Option<T::Span>, attribute: Attribute) -> Result<(), Fault<T::Span>> {
        let macro_name = attribute.name();
        if self.flavor == Flavor::MultiThread {
            if !attribute.threads {
                let span = flavor.unwrap_or_else(T::call_site);
                return fault(
                    span,
                    "the flavor `multi_thread` needs the feature `rt-multi-thread`",
                );
            }
            let paused = self.start_paused.as_ref().map(|given| (given.span, "start_paused"));
            if let Some((span, name)) = paused {
                return fault(
                    span,
                    format!(
                        "`{name}` does not go with several threads: write `#[{macro_name}(flavor = \"current_thread\", {name} = …)]`"
                    ),
                );
            }
        } else if let Some(given) = &self.worker_threads {
            return fault(
                given.span,
                format!(
                    "`worker_threads` needs several threads: write `#[{macro_name}(flavor = \"multi_thread\", worker_threads = {})]`",
                    given.value
                ),
            );
        }
        Ok(())
    }
}

/// `name = value`; the value is not empty.
struct Argument<'a, T: Token> {
    name: String,
    span: T::Span,
    value: &'a [T],
}

fn split<T: Token>(part: &[T], attribute: Attribute) -> Result<Argument<'_, T>, Fault<T::Span>> {
    let Some(first) = part.first() else {
        return fault(T::call_site(), "a comma too many in the arguments");
    };
    let span = first.span();
    let View::Word(name) = first.view() else {
        return fault(span, format!("expected an argument: there are {KNOWN}"));
    };
    match part.get(1).map(Token::view) {
        Some(View::Mark('=')) if part.len() > 2 => Ok(Argument { name, span, value: &part[2..] }),
        _ => {
            let macro_name = attribute.name();
            let message = match name.as_str() {
                "multi_thread" | "current_thread" | "local" => {
                    format!("write `#[{macro_name}(flavor = \"{name}\")]`")
                }
                "flavor" | "worker_threads" | "start_paused" | "unhandled_panic" | "name"
                | "crate" => format!("`{name}` needs a value: write `{name} = …`"),
                _ => format!("unknown argument `{name}`: there are {KNOWN}"),
            };
            fault(span, message)
        }
    }
}

/// Returns the only token of a value, without the invisible groups of `macro_rules`.
fn single<T: Token>(value: &[T]) -> Option<View<T>> {
    match value {
        [token] => Some(unwrapped(token).view()),
        _ => None,
    }
}

/// Returns the text between the quotes of a string literal.
fn string_of(literal: &str) -> Option<&str> {
    let plain = literal.strip_prefix('r').unwrap_or(literal).trim_matches('#');
    let inside = plain.strip_prefix('"')?.strip_suffix('"')?;
    // No valid value needs an escape, so a literal with one is refused.
    (literal.starts_with('r') || !inside.contains('\\')).then_some(inside)
}

fn read_text<T: Token>(
    value: &[T],
    span: T::Span,
    name: &str,
) -> Result<Given<String, T::Span>, Fault<T::Span>> {
    let span = value.first().map_or(span, Token::span);
    match single(value) {
        Some(View::Literal(literal)) if string_of(&literal).is_some() => {
            let value = string_of(&literal).unwrap_or_default().to_owned();
            Ok(Given { value, span })
        }
        _ => fault(span, format!("`{name}` is a string without escapes: write `{name} = \"…\"`")),
    }
}

fn read_flavor<T: Token>(
    value: &[T],
    span: T::Span,
    attribute: Attribute,
) -> Result<Given<Flavor, T::Span>, Fault<T::Span>> {
    let Given { value, span } = read_text(value, span, "flavor")?;
    let flavor = match value.as_str() {
        "multi_thread" => Flavor::MultiThread,
        "current_thread" => Flavor::CurrentThread,
        "local" => Flavor::Local,
        "single_thread" | "basic_scheduler" => {
            let name = attribute.name();
            let message = format!(
                "this flavor is called `current_thread`: write `#[{name}(flavor = \"current_thread\")]`"
            );
            return fault(span, message);
        }
        "threaded_scheduler" => return fault(span, "this flavor is called `multi_thread`"),
        other => {
            let message = format!(
                "no flavor is called `{other}`: there are `multi_thread`, `current_thread` and `local`"
            );
            return fault(span, message);
        }
    };
    Ok(Given { value: flavor, span })
}

fn read_count<T: Token>(
    value: &[T],
    span: T::Span,
) -> Result<Given<usize, T::Span>, Fault<T::Span>> {
    let span = value.first().map_or(span, Token::span);
    let count = match single(value) {
        Some(View::Literal(literal)) => {
            let digits = literal.trim_end_matches("usize").replace('_', "");
            digits.parse::<usize>().ok()
        }
        _ => None,
    };
    match count {
        Some(0) => fault(span, "`worker_threads` may not be 0: leave it out for one per core"),
        Some(value) => Ok(Given { value, span }),
        None => fault(span, "`worker_threads` is a number: write `worker_threads = 4`"),
    }
}

fn read_bool<T: Token>(value: &[T], span: T::Span) -> Result<Given<bool, T::Span>, Fault<T::Span>> {
    let span = value.first().map_or(span, Token::span);
    match single(value) {
        Some(View::Word(word)) if word == "true" => Ok(Given { value: true, span }),
        Some(View::Word(word)) if word == "false" => Ok(Given { value: false, span }),
        _ => fault(span, "`start_paused` is `true` or `false`"),
    }
}

/// Returns the variant of `UnhandledPanic`.
fn read_policy<T: Token>(
    value: &[T],
    span: T::Span,
) -> Result<Given<&'static str, T::Span>, Fault<T::Span>> {
    let Given { value, span } = read_text(value, span, "unhandled_panic")?;
    let variant = match value.as_str() {
        "ignore" => "Ignore",
        "shutdown_runtime" => "ShutdownRuntime",
        other => {
            let message =
                format!("no policy is called `{other}`: there are `ignore` and `shutdown_runtime`");
            return fault(span, message);
        }
    };
    Ok(Given { value: variant, span })
}

/// Reads a path, in quotes (as with Tokio) or without.
fn read_path<T: Token>(value: &[T], span: T::Span) -> Result<Vec<T>, Fault<T::Span>> {
    let span = value.first().map_or(span, Token::span);
    let wrong = "`crate` is a path: write `crate = \"my::runtime\"`";
    let Some(View::Literal(literal)) = single(value) else {
        let is_path = |token: &T| match token.view() {
            View::Word(_) => true,
            View::Mark(mark) => mark == ':',
            View::Group(fence, _) => fence == Fence::Nothing,
            View::Literal(_) => false,
        };
        return if value.iter().all(is_path) { Ok(value.to_vec()) } else { fault(span, wrong) };
    };
    let Some(text) = string_of(&literal) else { return fault(span, wrong) };
    let mut tokens = Vec::new();
    for (number, segment) in text.split("::").enumerate() {
        if number > 0 {
            tokens.extend([T::mark(':', true, span), T::mark(':', false, span)]);
        }
        // A path may begin with `::`.
        if segment.is_empty() && number == 0 {
            continue;
        }
        let starts = segment.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !starts || !segment.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return fault(span, wrong);
        }
        tokens.push(T::word(segment, span));
    }
    if tokens.is_empty() { fault(span, wrong) } else { Ok(tokens) }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Attribute, Flavor, Kind};
    use crate::token::tests::{Plain, lex, show};

    const MAIN: Attribute = Attribute { kind: Kind::Main, krate: "blitz_io", threads: true };
    const TEST: Attribute = Attribute { kind: Kind::Test, ..MAIN };
    const ALONE: Attribute = Attribute { threads: false, ..MAIN };

    fn read(text: &str, attribute: Attribute) -> Arguments<Plain> {
        let fault = |fault: super::Fault<usize>| panic!("{text}: {}", fault.message);
        Arguments::read(&lex(text), attribute).unwrap_or_else(fault)
    }

    #[test]
    fn the_default_flavor_is_tokios() {
        assert_eq!(read("", MAIN).flavor, Flavor::MultiThread);
        assert_eq!(read("", TEST).flavor, Flavor::CurrentThread);
        assert_eq!(read("", ALONE).flavor, Flavor::CurrentThread);
    }

    #[test]
    fn every_argument_is_read() {
        let all = read("flavor = \"multi_thread\", worker_threads = 1_0, name = \"n\",", TEST);
        assert_eq!(all.flavor, Flavor::MultiThread);
        assert_eq!(all.worker_threads.unwrap().value, 10);
        assert_eq!(all.name.unwrap().value, "n");
        let paused = read("start_paused = true, unhandled_panic = \"shutdown_runtime\"", TEST);
        assert!(paused.start_paused.unwrap().value);
        assert_eq!(paused.unhandled_panic.unwrap().value, "ShutdownRuntime");
        assert_eq!(read("flavor = \"local\"", MAIN).flavor, Flavor::Local);
        // A literal that came through a `macro_rules` fragment.
        assert_eq!(read("worker_threads = ⟦4⟧", MAIN).worker_threads.unwrap().value, 4);
    }

    #[test]
    fn the_crate_is_a_path_with_or_without_quotes() {
        for (text, path) in [
            ("crate = \"a::b\"", "a : : b"),
            ("crate = a::b", "a : : b"),
            ("crate = \"::a\"", ": : a"),
            ("crate = crate::x", "crate : : x"),
        ] {
            assert_eq!(show(&read(text, MAIN).krate.unwrap()), path);
        }
    }

    #[test]
    fn faults_say_what_to_do_and_point_at_the_place() {
        for (text, at, words) in [
            ("flavour = \"local\"", "flavour", "unknown argument `flavour`"),
            ("bogus", "bogus", "unknown argument `bogus`"),
            ("flavor", "flavor", "needs a value"),
            ("flavor =", "flavor", "needs a value"),
            ("multi_thread", "multi_thread", "flavor = \"multi_thread\""),
            ("flavor = \"fast\"", "\"fast\"", "no flavor is called `fast`"),
            ("flavor = fast", "fast", "is a string"),
            ("flavor = \"single_thread\"", "\"single", "called `current_thread`"),
            ("worker_threads = 0", "0", "may not be 0"),
            ("worker_threads = \"4\"", "\"4\"", "is a number"),
            ("worker_threads = 1 + 2", "1", "is a number"),
            ("flavor = \"local\", worker_threads = 2", "2", "needs several threads"),
            ("start_paused = 1, flavor = \"local\"", "1", "`true` or `false`"),
            ("start_paused = true", "true", "does not go with several threads"),
            ("unhandled_panic = \"x\"", "\"x\"", "no policy is called `x`"),
            ("name = 4", "4", "is a string"),
            ("crate = 4", "4", "is a path"),
            ("crate = \"a-b\"", "\"a-b", "is a path"),
            ("crate = \"\"", "\"\"", "is a path"),
            ("name = \"a\", name = \"b\"", "name = \"b", "given twice"),
            ("\"multi_thread\"", "\"multi", "expected an argument"),
        ] {
            let fault = Arguments::<Plain>::read(&lex(text), MAIN).unwrap_err();
            assert!(fault.message.contains(words), "{text}: {}", fault.message);
            assert_eq!(fault.span, text.rfind(at).unwrap(), "{text}: wrong place");
        }
        let fault = Arguments::<Plain>::read(&lex("flavor = \"multi_thread\""), ALONE).unwrap_err();
        assert!(fault.message.contains("rt-multi-thread"), "{}", fault.message);
    }
}
