//! The attributes of blitz-io: an `async fn` becomes a plain one that starts a
//! runtime and runs the body on it.
//!
//! Use them as `blitz_io::main` and `blitz_io::test`. The arguments, their defaults and their
//! limits are Tokio's.
//!
//! # Why no syn
//! Every user compiles this crate before the runtime. The attributes need to know where a signature
//! ends and a body begins, which takes a walk over a dozen tokens; parsing the user's whole program
//! into a tree, as syn would, costs seconds of every user's clean build and gives no further
//! information. So this is written on the compiler's own `proc_macro`. That cannot run outside the
//! compiler, so the work is done on a small trait (`token`) which the tests implement a second
//! time, with spans that can be inspected.
//!
//! # Map
//! `arguments` reads the attribute's parentheses, `function` splits the item, `expand` builds the
//! new function.

#![forbid(unsafe_code)]

use proc_macro::{TokenStream, TokenTree};

mod token;
mod arguments;
mod function;
mod expand;

use self::{
    arguments::{Attribute, Kind},
    expand::expand,
};

fn run(arguments: TokenStream, item: TokenStream, attribute: Attribute) -> TokenStream {
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    let item: Vec<TokenTree> = item.into_iter().collect();
    expand(&arguments, &item, attribute).into_iter().collect()
}

/// Runs an `async fn` on a runtime of its own; mostly used on `main`.
///
/// ```
/// #[blitz_io::main]
/// async fn main() {
///     let output = blitz_io::spawn(async { 6 * 7 }).await.unwrap();
///     assert_eq!(output, 42);
/// }
/// ```
///
/// # Arguments
/// - `flavor = "multi_thread"` (the default), `"current_thread"` or `"local"`
/// - `worker_threads = 4`: the number of workers; with `multi_thread` only
/// - `start_paused = true`: the clock starts paused; not with `multi_thread`
/// - `unhandled_panic = "ignore"` or `"shutdown_runtime"`, with every flavor
/// - `name = "text"`: the runtime's name
/// - `crate = "path"`: the path of the runtime crate, if it has another name here
///
/// # Panics
/// The function panics if the runtime cannot be built, which means that the system provides no more
/// threads or descriptors, and if it is called inside a runtime.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Main, krate: "blitz_io", threads: true })
}

/// Runs an `async fn` as [`macro@main`] does, for a runtime crate without the feature
/// `rt-multi-thread`.
#[proc_macro_attribute]
pub fn main_rt(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Main, krate: "blitz_io", threads: false })
}

/// Turns an `async fn` into a test that runs on a runtime of its own.
///
/// ```
/// #[blitz_io::test]
/// async fn a_task_returns_a_value() {
///     assert_eq!(blitz_io::spawn(async { 1 }).await.unwrap(), 1);
/// }
/// ```
///
/// The arguments are those of [`macro@main`], but the default flavour is
/// `current_thread`. Other attributes (`#[should_panic]`, `#[ignore]`) stay.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Test, krate: "blitz_io", threads: true })
}

/// Turns an `async fn` into a test as [`macro@test`] does, for a runtime crate without the feature
/// `rt-multi-thread`.
#[proc_macro_attribute]
pub fn test_rt(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Test, krate: "blitz_io", threads: false })
}

/// Implements `tokio::main` of the drop-in, like [`macro@main`].
#[doc(hidden)]
#[proc_macro_attribute]
pub fn main_tokio(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Main, krate: "tokio", threads: true })
}

/// Implements `tokio::main` of the drop-in, like [`macro@main_rt`].
#[doc(hidden)]
#[proc_macro_attribute]
pub fn main_rt_tokio(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Main, krate: "tokio", threads: false })
}

/// Implements `tokio::test` of the drop-in, like [`macro@test`].
#[doc(hidden)]
#[proc_macro_attribute]
pub fn test_tokio(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Test, krate: "tokio", threads: true })
}

/// Implements `tokio::test` of the drop-in, like [`macro@test_rt`].
#[doc(hidden)]
#[proc_macro_attribute]
pub fn test_rt_tokio(arguments: TokenStream, item: TokenStream) -> TokenStream {
    run(arguments, item, Attribute { kind: Kind::Test, krate: "tokio", threads: false })
}

/// Takes the place of the attributes when the feature `rt` is off.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn no_rt(_: TokenStream, item: TokenStream) -> TokenStream {
    let error = "this attribute starts a runtime: turn on the feature `rt` or `rt-multi-thread`";
    let mut tokens = token::error::<TokenTree>(proc_macro::Span::call_site(), error);
    tokens.extend(item);
    tokens.into_iter().collect()
}
