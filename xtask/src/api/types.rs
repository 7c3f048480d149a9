//! Types, bounds and signatures as text that does not depend on how they were written.
//!
//! Two crates that promise the same may write it differently. So names of type parameters become
//! letters in order of declaration, and lifetimes, elided or not, become numbers in order of
//! appearance; bounds are put into one sorted list wherever they were written; `io::Result<T>` is
//! expanded to what it abbreviates; `Self` is the type; an `async fn` returns `impl Future`, as
//! does a function whose return type has no public name and is a future.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::docs::{Docs, is, number, only};
use crate::json::Json;

/// Stands for a type or a trait that has no public name.
pub(super) const NO_NAME: &str = "(no public name)";

const FUTURE: &str = "core::future::future::Future";

/// The meaning of names while a type is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// Type parameters, and `Self`.
    names: HashMap<String, String>,
    /// The number of parameters that have a letter.
    letters: u8,
    /// The number of elided lifetimes that have a name.
    fresh: usize,
    /// The lifetime that an elided one stands for, if not a fresh one.
    elided: Option<String>,
}

impl Scope {
    pub(super) fn with_self(mut self, text: &str) -> Self {
        self.names.insert("Self".into(), text.to_owned());
        self
    }

    fn left_out(&mut self) -> String {
        if let Some(elided) = &self.elided {
            return elided.clone();
        }
        self.fresh += 1;
        format!("'left-out-{}", self.fresh)
    }

    fn lifetime(&mut self, name: Option<&str>) -> String {
        match name {
            None | Some("'_") => self.left_out(),
            Some(name) => name.to_owned(),
        }
    }
}

/// Bounds by the type that they constrain.
pub(super) type Bounds = BTreeMap<String, BTreeSet<String>>;

/// Returns ` where A: X + Y, …`, or nothing.
pub(super) fn clause(bounds: &Bounds) -> String {
    const SIZED: [&str; 2] = ["core::marker::Sized", "?core::marker::Sized"];
    let one = |(subject, bounds): (&String, &BTreeSet<String>)| {
        // By default every parameter is `Sized`, and one `Sized` undoes a `?Sized`.
        let sized = bounds.contains(SIZED[0]);
        let said = |bound: &&str| !(sized && SIZED.contains(bound));
        let bounds: Vec<_> = bounds.iter().map(String::as_str).filter(said).collect();
        (!bounds.is_empty()).then(|| format!("{subject}: {}", bounds.join(" + ")))
    };
    let all: Vec<_> = bounds.iter().filter_map(one).collect();
    if all.is_empty() { String::new() } else { format!(" where {}", all.join(", ")) }
}

/// Numbers lifetimes in order of appearance.
pub(super) fn settle(text: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut settled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\'') {
        settled += &rest[..at];
        let tail = &rest[at + 1..];
        let end = tail.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let (name, after) = tail.split_at(end.unwrap_or(tail.len()));
        if name == "static" {
            settled += "'static";
        } else {
            let known = seen.iter().position(|known| *known == name).unwrap_or_else(|| {
                seen.push(name);
                seen.len() - 1
            });
            settled += &format!("'{known}");
        }
        rest = after;
    }
    settled + rest
}

/// Writes the types of one crate as text.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) docs: &'a Docs,
    /// The public path of each item of the crate that has one.
    pub(super) names: &'a HashMap<String, String>,
}

impl Writer<'_> {
    /// Returns the name of an item: its public path, or where it is defined if it belongs to
    /// another crate, or `None` if it has no public name.
    pub(super) fn name(&self, id: &str) -> Option<String> {
        if let Some(name) = self.names.get(id) {
            return Some(name.clone());
        }
        if self.docs.item(id).is_some() {
            return None;
        }
        let (path, _) = self.docs.defined(id)?;
        // An item that is not public is missing from the list of items; only its path is listed.
        let foreign = self.docs.defined(self.docs.root()).is_none_or(|(own, _)| own[0] != path[0]);
        foreign.then(|| path.join("::"))
    }

    pub(super) fn kind(&self, json: &Json, scope: &mut Scope) -> String {
        let Some((kind, inner)) = only(json) else {
            return match json {
                Json::Text(word) | Json::Word(word) => word.clone(),
                _ => "?".into(),
            };
        };
        let text = |key| inner.get(key).map(|json| self.kind(json, &mut scope.clone()));
        match (kind, inner) {
            ("resolved_path", path) => self.path(path, scope),
            ("generic", Json::Text(name)) => {
                scope.names.get(name).cloned().unwrap_or_else(|| name.clone())
            }
            ("primitive", Json::Text(name)) if name == "never" => "!".into(),
            ("primitive", Json::Text(name)) => name.clone(),
            ("tuple", Json::List(parts)) => {
                let parts: Vec<_> = parts.iter().map(|part| self.kind(part, scope)).collect();
                format!("({})", parts.join(", "))
            }
            ("slice", of) => format!("[{}]", self.kind(of, scope)),
            ("array", _) => format!(
                "[{}; {}]",
                text("type").unwrap_or_default(),
                inner.text("len").unwrap_or_default()
            ),
            ("borrowed_ref", _) => {
                let lifetime = scope.lifetime(inner.text("lifetime"));
                let mutable = if is(inner, "is_mutable") { "mut " } else { "" };
                let of = inner.get("type").map(|of| self.kind(of, scope)).unwrap_or_default();
                format!("&{lifetime} {mutable}{of}")
            }
            ("raw_pointer", _) => {
                let mutable = if is(inner, "is_mutable") { "mut" } else { "const" };
                format!("*{mutable} {}", text("type").unwrap_or_default())
            }
            ("impl_trait", Json::List(bounds)) => {
                let mut bounds: Vec<_> =
                    bounds.iter().filter_map(|bound| self.bound(bound, scope)).collect();
                bounds.sort();
                format!("impl {}", bounds.join(" + "))
            }
            ("dyn_trait", _) => {
                let traits = inner.list("traits").iter();
                let mut parts: Vec<_> = traits
                    .filter_map(|one| one.get("trait"))
                    .map(|path| self.path(path, scope))
                    .collect();
                parts.sort();
                parts.extend(inner.text("lifetime").map(str::to_owned));
                format!("dyn {}", parts.join(" + "))
            }
            ("function_pointer", _) => {
                let signature = inner.get("sig").map(|sig| self.signature(sig, scope));
                let (inputs, output) = signature.unwrap_or_default();
                format!("fn({inputs}) -> {output}")
            }
            ("qualified_path", _) => {
                let owner = text("self_type").unwrap_or_default();
                let name = inner.text("name").unwrap_or_default();
                match inner.get("trait") {
                    Some(path @ Json::Object(_)) if path.text("path") != Some("") => {
                        format!("<{owner} as {}>::{name}", self.path(path, scope))
                    }
                    _ => format!("{owner}::{name}"),
                }
            }
            _ => format!("?{kind}"),
        }
    }

    /// Returns a path with its arguments.
    fn path(&self, path: &Json, scope: &mut Scope) -> String {
        let id = path.get("id").and_then(number).unwrap_or_default();
        let arguments = path.get("args").map(|args| self.arguments(args, scope));
        let (plain, bound) = arguments.unwrap_or_default();
        let Some(name) = self.name(id) else {
            return self.unnamed(id, &plain);
        };
        match (name.as_str(), &plain[..]) {
            ("std::io::error::Result", [ok]) => {
                format!("core::result::Result<{ok}, std::io::error::Error>")
            }
            ("core::fmt::Result", []) => "core::result::Result<(), core::fmt::Error>".into(),
            _ if plain.is_empty() && bound.is_empty() => name,
            _ if bound.starts_with('(') => format!("{name}{bound}"),
            _ => {
                let bound = if bound.is_empty() { vec![] } else { vec![bound] };
                format!("{name}<{}>", [plain, bound].concat().join(", "))
            }
        }
    }

    /// Returns what is known of a type without a public name: its output, if it is a future.
    fn unnamed(&self, id: &str, arguments: &[String]) -> String {
        let impls = self.docs.inner(id).map(|(_, item)| item.list("impls")).unwrap_or_default();
        for one in impls.iter().filter_map(number) {
            let Some((_, one)) = self.docs.inner(one) else { continue };
            let of = one.get("trait").and_then(|of| of.get("id")).and_then(number);
            if of.and_then(|of| self.name(of)).as_deref() != Some(FUTURE) {
                continue;
            }
            // The names that the implementation uses for the arguments.
            let own = one.get("for").and_then(|of| of.get("resolved_path"));
            let own = own.and_then(|path| path.get("args")).map(plain_names);
            let names = own.unwrap_or_default().into_iter().zip(arguments.to_vec()).collect();
            let mut scope = Scope { names, ..Scope::default() };
            let output = one.list("items").iter().filter_map(number);
            let output = output.filter_map(|item| self.docs.inner(item)?.1.get("type")).next();
            let output = output.map(|json| self.kind(json, &mut scope)).unwrap_or_default();
            return format!("impl {FUTURE}<Output = {output}>");
        }
        NO_NAME.into()
    }

    /// Returns the arguments of a path: plain ones, and those bound by name or in parentheses.
    fn arguments(&self, json: &Json, scope: &mut Scope) -> (Vec<String>, String) {
        match only(json) {
            Some(("angle_bracketed", inner)) => {
                let one = |argument: &Json, scope: &mut Scope| match only(argument) {
                    Some(("lifetime", Json::Text(name))) => scope.lifetime(Some(name)),
                    Some(("type", of)) => self.kind(of, scope),
                    Some(("const", of)) => {
                        let value = of.text("expr").unwrap_or_default();
                        scope.names.get(value).cloned().unwrap_or_else(|| value.to_owned())
                    }
                    _ => "_".into(),
                };
                let plain: Vec<_> =
                    inner.list("args").iter().map(|argument| one(argument, scope)).collect();
                let constraints: Vec<_> = inner
                    .list("constraints")
                    .iter()
                    .map(|constraint| self.constraint(constraint, scope))
                    .collect();
                (plain, constraints.join(", "))
            }
            Some(("parenthesized", inner)) => {
                // An elided lifetime here belongs to the call, not to the enclosing function.
                let mut inside = Scope { elided: Some("'_".into()), ..scope.clone() };
                let inputs: Vec<_> = inner
                    .list("inputs")
                    .iter()
                    .map(|input| self.kind(input, &mut inside))
                    .collect();
                let output = match inner.get("output") {
                    Some(output @ Json::Object(_)) => {
                        format!(" -> {}", self.kind(output, &mut inside))
                    }
                    _ => String::new(),
                };
                (Vec::new(), format!("({}){output}", inputs.join(", ")))
            }
            _ => Default::default(),
        }
    }

    fn constraint(&self, json: &Json, scope: &mut Scope) -> String {
        let name = json.text("name").unwrap_or_default();
        match json.get("binding").and_then(only) {
            Some(("equality", term)) => {
                let term = only(term).map(|(_, of)| self.kind(of, scope)).unwrap_or_default();
                format!("{name} = {term}")
            }
            Some((_, Json::List(bounds))) => {
                let mut bounds: Vec<_> =
                    bounds.iter().filter_map(|bound| self.bound(bound, scope)).collect();
                bounds.sort();
                format!("{name}: {}", bounds.join(" + "))
            }
            _ => name.to_owned(),
        }
    }

    /// Returns a bound; `None` for a list of captures (`use<…>`), which only restricts.
    fn bound(&self, json: &Json, scope: &mut Scope) -> Option<String> {
        match only(json)? {
            ("trait_bound", bound) => {
                let path = self.path(bound.get("trait")?, scope);
                let maybe = if bound.text("modifier") == Some("maybe") { "?" } else { "" };
                Some(format!("{maybe}{path}"))
            }
            ("outlives", Json::Text(lifetime)) => Some(scope.lifetime(Some(lifetime))),
            _ => None,
        }
    }

    /// Adds the parameters of an item to the scope and collects their bounds.
    pub(super) fn generics(&self, json: &Json, scope: &mut Scope, bounds: &mut Bounds) {
        let parameters = json.list("params");
        for parameter in parameters {
            let (Some(name), Some((kind, inner))) =
                (parameter.text("name"), parameter.get("kind").and_then(only))
            else {
                continue;
            };
            if kind != "lifetime" && !is(inner, "is_synthetic") {
                let letter = char::from(b'A' + scope.letters).to_string();
                scope.letters += 1;
                scope.names.insert(name.to_owned(), letter);
            }
        }
        for parameter in parameters {
            let (Some(name), Some((kind, inner))) =
                (parameter.text("name"), parameter.get("kind").and_then(only))
            else {
                continue;
            };
            let (subject, list) = match kind {
                "lifetime" => (name.to_owned(), inner.list("outlives")),
                "type" if !is(inner, "is_synthetic") => {
                    (scope.names[name].clone(), inner.list("bounds"))
                }
                _ => continue,
            };
            self.collect(subject, list, scope, bounds);
        }
        for predicate in json.list("where_predicates") {
            match only(predicate) {
                Some(("bound_predicate", inner)) => {
                    let Some(of) = inner.get("type") else { continue };
                    let subject = self.kind(of, scope);
                    self.collect(subject, inner.list("bounds"), scope, bounds);
                }
                Some(("lifetime_predicate", inner)) => {
                    let subject = inner.text("lifetime").unwrap_or_default().to_owned();
                    self.collect(subject, inner.list("outlives"), scope, bounds);
                }
                _ => {}
            }
        }
    }

    fn collect(&self, subject: String, list: &[Json], scope: &mut Scope, bounds: &mut Bounds) {
        let bound = |json: &Json| match json {
            Json::Text(lifetime) => Some(lifetime.clone()),
            _ => self.bound(json, &mut scope.clone()),
        };
        bounds.entry(subject).or_default().extend(list.iter().filter_map(bound));
    }

    /// Returns inputs and output.
    fn signature(&self, json: &Json, scope: &mut Scope) -> (String, String) {
        let mut inputs = Vec::new();
        let mut receiver = None;
        for input in json.list("inputs") {
            let Json::List(pair) = input else { continue };
            let [Json::Text(name), of] = &pair[..] else { continue };
            let of = self.kind(of, scope);
            if name == "self" {
                // An elided lifetime in the output is the receiver's, also for `Pin<&mut Self>`.
                receiver = lifetimes(&of).into_iter().next().filter(|_| of.contains('&'));
                inputs.push(format!("self: {of}"));
            } else {
                inputs.push(of);
            }
        }
        let inputs = inputs.join(", ");
        let named = lifetimes(&inputs);
        let single = if let [one] = &named[..] { Some(one.clone()) } else { None };
        let elided = receiver.or(single);
        let mut inside = Scope { elided, ..scope.clone() };
        let output = match json.get("output") {
            Some(output @ Json::Object(_)) => self.kind(output, &mut inside),
            _ => "()".into(),
        };
        (inputs, output)
    }

    /// Returns a function without its name: qualifiers and signature; adds its bounds to `bounds`.
    pub(super) fn function(&self, json: &Json, scope: &mut Scope, bounds: &mut Bounds) -> Function {
        if let Some(generics) = json.get("generics") {
            self.generics(generics, scope, bounds);
        }
        let header = json.get("header");
        let has = |key| header.is_some_and(|header| is(header, key));
        let mut qualifiers = String::new();
        for (key, word) in [("is_const", "const "), ("is_unsafe", "unsafe ")] {
            qualifiers += if has(key) { word } else { "" };
        }
        let signature = json.get("sig").map(|sig| self.signature(sig, scope));
        let (inputs, mut output) = signature.unwrap_or_default();
        if has("is_async") {
            output = format!("impl {FUTURE}<Output = {output}>");
        }
        Function { qualifiers, signature: format!("({inputs}) -> {output}") }
    }
}

/// A function without its name.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) qualifiers: String,
    pub(super) signature: String,
}

/// Returns the names of the type parameters among the arguments of a path.
fn plain_names(arguments: &Json) -> Vec<String> {
    let Some(("angle_bracketed", inner)) = only(arguments) else { return Vec::new() };
    let name = |argument: &Json| match only(argument) {
        Some(("type", of)) => of.text("generic").unwrap_or("_").to_owned(),
        _ => "_".to_owned(),
    };
    inner.list("args").iter().map(name).collect()
}

/// Returns the lifetimes in a text, each once.
fn lifetimes(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in text.split('\'').skip(1) {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let name = format!("'{}", &part[..end.unwrap_or(part.len())]);
        if !found.contains(&name) && name != "'static" && name != "'_" {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Bounds, clause, lifetimes, settle};

    #[test]
    fn lifetimes_are_numbered_as_they_appear() {
        let text = "fn f(&'left-out-2 str, &'a [&'static u8]) -> X<'a, 'left-out-2>";
        assert_eq!(settle(text), "fn f(&'0 str, &'1 [&'static u8]) -> X<'1, '0>");
        assert_eq!(settle("no lifetime"), "no lifetime");
        assert_eq!(lifetimes("&'a X<'b, 'static, '_> &'a Y"), ["'a", "'b"]);
    }

    #[test]
    fn bounds_are_one_sorted_list_without_redundant_ones() {
        let set = |all: &[&str]| all.iter().map(|one| one.to_string()).collect::<BTreeSet<_>>();
        let sized = "core::marker::Sized";
        let mut bounds = Bounds::new();
        bounds.insert("B".into(), set(&["Y", "X"]));
        bounds.insert("A".into(), set(&[sized, "?core::marker::Sized"]));
        bounds.insert("C".into(), set(&["?core::marker::Sized"]));
        bounds.insert("D".into(), set(&[]));
        assert_eq!(clause(&bounds), " where B: X + Y, C: ?core::marker::Sized");
        assert_eq!(clause(&Bounds::new()), "");
    }
}
