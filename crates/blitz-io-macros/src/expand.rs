//! Builds the new function.
//!
//! ```text
//! fn main() -> Output {
//!     let body = ::core::pin::pin!(async {
//!         if let Some(output) = None::<Output> {
//!             return output;
//!         }
//!         the user's body
//!     });
//!     blitz_io::runtime::Builder::new_multi_thread().enable_all().build().expect(…).block_on(body)
//! }
//! ```
//!
//! An async block cannot name its type, so without help a wrong tail expression would be reported
//! at the call of `block_on`, which is at the attribute, and a `Box<closure>` would not become a
//! `Box<dyn Fn>`. The return that is never reached names the type first; the compiler removes it.
//! It is left out where the type cannot be written down: `!` and `impl Trait`.
//!
//! The future is created in its final place: `pin!` puts it into the frame of the new function, and
//! `block_on` gets a pointer to it.
//!
//! # Rejected
//! An inner `async fn` would need to repeat generics, parameters and `Self`. An
//! async closure, `async || -> Output { … }`, coerces nothing to its output.

use crate::{
    arguments::{Arguments, Attribute, Fault, Flavor, Kind},
    function::Function,
    token::{Fence, Token, View, error, fill},
};

/// Expands the attribute. A fault becomes an error at its place, followed by a function of the same
/// signature, so that one mistake gives one message.
pub(crate) fn expand<T: Token>(arguments: &[T], item: &[T], attribute: Attribute) -> Vec<T> {
    let function = match Function::read(item) {
        Ok(function) => function,
        Err(fault) => {
            let mut tokens = error(fault.span, &fault.message);
            tokens.extend(item.iter().cloned());
            return tokens;
        }
    };
    let read = Arguments::read(arguments, attribute)
        .and_then(|arguments| acceptable(&function, attribute).map(|()| arguments));
    match read {
        Ok(arguments) => write(&function, &arguments, attribute),
        Err(fault) => {
            let mut tokens = error(fault.span, &fault.message);
            tokens.extend(write(&function, &Arguments::default(attribute), attribute));
            tokens
        }
    }
}

/// Returns an error if the attribute may not stand on this function.
fn acceptable<T: Token>(
    function: &Function<T>,
    attribute: Attribute,
) -> Result<(), Fault<T::Span>> {
    let parameters = || function.parameters.span();
    if attribute.kind == Kind::Main && function.name == "main" && !function.is_plain {
        let message = "`main` takes no parameters: read `std::env::args`".to_owned();
        return Err(Fault { span: parameters(), message });
    }
    if attribute.kind == Kind::Test && !function.is_plain {
        let message = "a test takes no parameters".to_owned();
        return Err(Fault { span: parameters(), message });
    }
    let second = function.attributes.iter().find(|inside| is_test(inside));
    if let (Kind::Test, Some(inside)) = (attribute.kind, second) {
        let message = "a second test attribute: the function would run twice; remove one".into();
        return Err(Fault { span: inside[0].span(), message });
    }
    Ok(())
}

/// Returns true for `test`, or the path of std's attribute.
fn is_test<T: Token>(attribute: &[T]) -> bool {
    let words: Vec<_> = attribute
        .iter()
        .filter_map(|token| match token.view() {
            View::Word(word) => Some(word),
            _ => None,
        })
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    matches!(words[..], ["test"] | ["core" | "std", "prelude", _, "test"])
}

fn write<T: Token>(
    function: &Function<T>,
    arguments: &Arguments<T>,
    attribute: Attribute,
) -> Vec<T> {
    let ours = T::call_site();
    let output = function.output.clone().unwrap_or_else(|| fill("()", ours, &[]));
    let never = output.len() == 1 && output[0].is_mark('!');
    let nameable = !never && !names(&output, "impl");
    let body = if nameable { typed(&function.body, &output) } else { function.body.clone() };
    let mut statements = fill("let body = ::core::pin::pin!(async $0);", ours, &[vec![body]]);
    if attribute.kind == Kind::Test && nameable {
        // One `block_on` for all tests of a type instead of one for each.
        let template =
            "let body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = $0>> = body;";
        statements.extend(fill(template, ours, &[output]));
    }
    // Any remaining type error is reported at the body's end.
    let end = T::located_at(ours, last_span(&function.body));
    let failed = T::text("the runtime cannot be built", ours);
    let parts = [builder(arguments, attribute), vec![failed]];
    statements.extend(fill("$0.expect($1)", ours, &parts));
    statements.extend(fill(".block_on(body)", if nameable { ours } else { end }, &[]));

    let mut tokens = Vec::new();
    if attribute.kind == Kind::Test {
        tokens.extend(fill("#[::core::prelude::v1::test]", ours, &[]));
    }
    tokens.extend(function.signature.iter().cloned());
    tokens.extend(fill("{ $0 }", ours, &[statements]));
    tokens
}

/// The tokens that an item may begin with.
const ITEMS: &[&str] = &[
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "pub",
    "static",
    "struct",
    "trait",
    "type",
    "use",
];

/// Returns the body with a return in front that names its type and is never executed.
fn typed<T: Token>(body: &T, output: &[T]) -> T {
    let View::Group(_, mut inside) = body.view() else { return body.clone() };
    let begins_with_item =
        |first: &T| first.is_mark('#') || ITEMS.iter().any(|word| first.is_word(word));
    if inside.first().is_some_and(begins_with_item) {
        // Inner attributes must stay at the beginning of their braces, and clippy requires items
        // there. Other bodies lose their braces, because rustc warns that they are unused around a
        // single expression.
        inside = vec![body.clone()];
    }
    let template = "
        if let ::core::option::Option::Some(output) = ::core::option::Option::None::<$0> {
            return output;
        }
        $1";
    let inside = fill(template, T::call_site(), &[output.to_vec(), inside]);
    T::group(Fence::Brace, inside, body.span())
}

/// Returns the calls that build the runtime, each value with the span where it was given.
fn builder<T: Token>(arguments: &Arguments<T>, attribute: Attribute) -> Vec<T> {
    let ours = T::call_site();
    let usual = || fill(attribute.krate, ours, &[]);
    let krate = || arguments.krate.clone().unwrap_or_else(usual);
    let new = match arguments.flavor {
        Flavor::MultiThread => "new_multi_thread",
        Flavor::CurrentThread | Flavor::Local => "new_current_thread",
    };
    let template = format!("$0::runtime::Builder::{new}().enable_all()");
    let mut calls = fill(&template, ours, &[krate()]);
    if let Some(given) = &arguments.worker_threads {
        let count = vec![T::number(given.value, given.span)];
        calls.extend(fill(".worker_threads($0)", ours, &[count]));
    }
    if let Some(given) = &arguments.start_paused {
        let value = vec![T::word(if given.value { "true" } else { "false" }, given.span)];
        calls.extend(fill(".start_paused($0)", ours, &[value]));
    }
    if let Some(given) = &arguments.unhandled_panic {
        let parts = [krate(), vec![T::word(given.value, given.span)]];
        let template = ".unhandled_panic($0::runtime::UnhandledPanic::$1)";
        calls.extend(fill(template, ours, &parts));
    }
    if let Some(given) = &arguments.name {
        let name = vec![T::text(&given.value, given.span)];
        calls.extend(fill(".name($0)", ours, &[name]));
    }
    let build = match arguments.flavor {
        Flavor::Local => ".build_local(::core::default::Default::default())",
        _ => ".build()",
    };
    calls.extend(fill(build, ours, &[]));
    calls
}

/// Returns true if a word occurs anywhere in the tokens.
fn names<T: Token>(tokens: &[T], word: &str) -> bool {
    tokens.iter().any(|token| match token.view() {
        View::Word(text) => text == word,
        View::Group(_, inner) => names(&inner, word),
        _ => false,
    })
}

fn last_span<T: Token>(body: &T) -> T::Span {
    match body.view() {
        View::Group(_, inner) => inner.last().map_or_else(|| body.span(), Token::span),
        _ => body.span(),
    }
}

#[cfg(test)]
mod tests {
    use super::expand;
    use crate::{
        arguments::{Attribute, Kind},
        token::{
            Token, View,
            tests::{lex, show},
        },
    };

    const MAIN: Attribute = Attribute { kind: Kind::Main, krate: "blitz_io", threads: true };
    const TEST: Attribute = Attribute { kind: Kind::Test, ..MAIN };

    fn shown(arguments: &str, item: &str, attribute: Attribute) -> String {
        show(&expand(&lex(arguments), &lex(item), attribute))
    }

    /// Compares two texts token by token.
    fn same(found: &str, wanted: &str) {
        assert_eq!(found, show(&lex(wanted)));
    }

    #[test]
    fn main_builds_a_runtime_and_runs_the_body() {
        same(
            &shown("", "/ pub async fn main() -> Result<(), E> { f()?; Ok(()) }", MAIN),
            "/ pub fn main() -> Result<(), E> {
                let body = ::core::pin::pin!(async {
                    if let ::core::option::Option::Some(output) =
                        ::core::option::Option::None::<Result<(), E>>
                    {
                        return output;
                    }
                    f()?; Ok(())
                });
                blitz_io::runtime::Builder::new_multi_thread().enable_all().build()
                    .expect(\"the runtime cannot be built\").block_on(body)
            }",
        );
    }

    #[test]
    fn test_is_a_test_on_the_current_thread() {
        same(
            &shown("", "#[should_panic] async fn a_fact() { f(); }", TEST),
            "#[::core::prelude::v1::test] #[should_panic] fn a_fact() {
                let body = ::core::pin::pin!(async {
                    if let ::core::option::Option::Some(output) =
                        ::core::option::Option::None::<()>
                    {
                        return output;
                    }
                    f();
                });
                let body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = ()>> = body;
                blitz_io::runtime::Builder::new_current_thread().enable_all().build()
                    .expect(\"the runtime cannot be built\").block_on(body)
            }",
        );
    }

    #[test]
    fn every_argument_becomes_a_call() {
        let found = shown(
            "flavor = \"local\", start_paused = true, unhandled_panic = \"ignore\", name = \"n\", crate = \"a::b\"",
            "async fn main() {}",
            MAIN,
        );
        let calls = "a::b::runtime::Builder::new_current_thread().enable_all().start_paused(true)
            .unhandled_panic(a::b::runtime::UnhandledPanic::Ignore).name(\"n\")
            .build_local(::core::default::Default::default())";
        assert!(found.contains(&show(&lex(calls))), "{found}");
        let found = shown("worker_threads = 3", "async fn main() {}", MAIN);
        assert!(found.contains(". worker_threads ( 3 )"), "{found}");
        let tokio = Attribute { krate: "tokio", ..MAIN };
        let found = shown("", "async fn main() {}", tokio);
        assert!(found.contains("tokio : : runtime : : Builder : :"), "{found}");
    }

    #[test]
    fn a_type_that_cannot_be_named_is_not_named() {
        for item in ["async fn f(self) -> ! { 1 }", "async fn f() -> Box<impl Sized> { 1 }"] {
            for attribute in [MAIN, TEST] {
                let found = shown("", item, attribute);
                assert!(found.contains("pin ! ( async { 1 } ) ;"), "{found}");
                assert!(!found.contains("output") && !found.contains("dyn"), "{found}");
            }
        }
    }

    #[test]
    fn a_body_that_begins_with_items_keeps_its_braces() {
        for body in ["{ use a::b; f() }", "{ #![allow(x)] f() }"] {
            let found = shown("", &format!("async fn main() {body}"), MAIN);
            assert!(found.contains(&format!("return output ; }} {}", show(&lex(body)))), "{found}");
        }
    }

    #[test]
    fn the_users_tokens_keep_their_place() {
        let item = "async fn f(x: u8) -> impl Sized { y }";
        let tokens = expand(&lex(""), &lex(item), MAIN);
        let Some(View::Group(_, body)) = tokens.last().map(Token::view) else { panic!("no body") };
        // The first group is what `pin!` pins: `async` and the body.
        let groups = body.iter().filter_map(|token| match token.view() {
            View::Group(_, inner) => Some(inner),
            _ => None,
        });
        let pinned = groups.into_iter().next().unwrap();
        assert_eq!(pinned[1].span(), item.find("{ y").unwrap());
        // The call whose type may be wrong has the span of the body's end.
        assert_eq!(body.last().unwrap().span(), item.find("y }").unwrap());
    }

    #[test]
    fn a_fault_leaves_a_function_behind() {
        for (arguments, item, attribute, words) in [
            ("bogus", "async fn main() {}", MAIN, "unknown argument"),
            ("", "async fn main(x: u8) {}", MAIN, "takes no parameters"),
            ("", "async fn t(x: u8) {}", TEST, "takes no parameters"),
            ("", "#[test] async fn t() {}", TEST, "second test attribute"),
            ("", "#[std::prelude::v1::test] async fn t() {}", TEST, "second test attribute"),
            ("", "fn main() {}", MAIN, "`async` is missing"),
        ] {
            let found = shown(arguments, item, attribute);
            assert!(found.starts_with(": : core : : compile_error ! { \""), "{found}");
            assert!(found.contains(words), "{found}");
            assert!(found.contains("fn main (") || found.contains("fn t ("), "{found}");
        }
        // An attribute of another kind does not count as a second test.
        assert!(!shown("", "#[my::test] async fn t() {}", TEST).contains("compile_error"));
    }
}
