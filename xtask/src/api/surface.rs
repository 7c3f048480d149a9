//! The public surface of a crate: one line for each thing that a user can name or rely on.
//!
//! - `mod`, `fn`, `const`, `static`, `macro`, `attribute`, `type`, each with its signature;
//! - `struct`, `enum`, `trait` with parameters, and with what a user would have to name to
//!   make, match or implement one: fields, variants, required items;
//! - `fn` for each method, `const` for each constant of a type, `provided` for those of a
//!   trait that has a body for them;
//! - `impl` for each implementation of a trait, with what it binds; also those that the
//!   compiler adds (Send, Sync, Unpin, UnwindSafe, RefUnwindSafe), and `impl !` where it
//!   does not;
//! - `use` for another name of something, in this crate or elsewhere.
//!
//! A method of an implementation has no line, because the trait has its signature. Items hidden
//! from the documentation have lines too, because they can be named; only hidden fields have none.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    docs::{Docs, is, number, only},
    types::{Bounds, NO_NAME, Scope, Writer, clause, settle},
};
use crate::json::Json;

/// Traits that cannot be named on a stable compiler, and `Drop`, which no bound can usefully
/// require.
const UNNAMED: &[&str] = &["Freeze", "UnsafeUnpin", "StructuralPartialEq", "UseCloned", "Drop"];

/// Where the names of a surface come from.
pub(super) enum Root<'a> {
    /// The crate's own root module.
    Itself,
    /// Names, and the paths in the crate that they stand for.
    Names(&'a [(String, Vec<String>)]),
}

/// Returns the lines of a crate. `name` is the name under which it is used. If an item has several
/// names, the first that `preferred` accepts is the one that the others refer to.
pub(super) fn surface(
    docs: &Docs,
    name: &str,
    root: &Root<'_>,
    preferred: &dyn Fn(&str) -> bool,
) -> Result<BTreeSet<String>, String> {
    let mut walk = Walk { docs, found: BTreeMap::new(), foreign: BTreeSet::new() };
    match root {
        Root::Itself => walk.module(docs.root(), name, 0),
        Root::Names(names) => {
            for (own, path) in *names {
                let path: Vec<_> = path.iter().map(String::as_str).collect();
                let found = docs.find(&path);
                let found = found.ok_or_else(|| format!("`{own}` names nothing: {path:?}"))?;
                walk.visit(own, found, name, 0);
            }
        }
    }
    let mut names = HashMap::new();
    let mut lines = walk.foreign;
    for (id, paths) in &walk.found {
        let order = |path: &&String| (!preferred(path), path.matches("::").count(), path.len());
        let first = paths.iter().min_by_key(order).unwrap_or(&paths[0]);
        names.insert(id.clone(), first.clone());
        let others = paths.iter().filter(|path| *path != first);
        lines.extend(others.map(|path| format!("use {path} = {first}")));
    }
    let writer = Writer { docs, names: &names };
    for (id, path) in &names {
        item(&writer, id, path, &mut lines);
    }
    Ok(lines.into_iter().map(|line| settle(&line)).collect())
}

/// Collects the public paths of all items.
struct Walk<'a> {
    docs: &'a Docs,
    found: BTreeMap<String, Vec<String>>,
    foreign: BTreeSet<String>,
}

impl Walk<'_> {
    fn module(&mut self, id: &str, path: &str, depth: usize) {
        for (name, child) in self.docs.children(id) {
            self.visit(name, child, path, depth);
        }
    }

    fn visit(&mut self, name: &str, id: &str, parent: &str, depth: usize) {
        let path = format!("{parent}::{name}");
        match self.docs.inner(id) {
            // No crate nests that deep; a module that contains itself would.
            Some(("module", _)) if depth < 16 => {
                self.foreign.insert(format!("mod {path}"));
                self.module(id, &path, depth + 1);
            }
            Some(_) => self.found.entry(id.to_owned()).or_default().push(path),
            None => {
                if let Some((defined, kind)) = self.docs.defined(id) {
                    self.foreign.insert(match kind {
                        "proc_attribute" => format!("attribute {path}"),
                        _ => format!("use {path} = {}", defined.join("::")),
                    });
                }
            }
        }
    }
}

/// Adds the lines of one item.
fn item(writer: &Writer<'_>, id: &str, path: &str, lines: &mut BTreeSet<String>) {
    let Some((kind, inner)) = writer.docs.inner(id) else { return };
    match kind {
        "struct" | "enum" | "union" => {
            lines.insert(data(writer, id, kind, inner, path));
            for one in inner.list("impls").iter().filter_map(number) {
                implementation(writer, one, lines);
            }
        }
        "trait" => interface(writer, inner, path, lines),
        "function" => {
            let (mut scope, mut bounds) = Default::default();
            let function = writer.function(inner, &mut scope, &mut bounds);
            lines.insert(format!(
                "{}fn {path}{}{}",
                function.qualifiers,
                function.signature,
                clause(&bounds)
            ));
        }
        "constant" | "static" => {
            let of = inner.get("type").map(|of| writer.kind(of, &mut Scope::default()));
            lines.insert(format!("{kind} {path}: {}", of.unwrap_or_default()));
        }
        "type_alias" => {
            let (mut scope, mut bounds) = Default::default();
            let parameters = parameters(writer, inner, &mut scope, &mut bounds);
            let of = inner.get("type").map(|of| writer.kind(of, &mut scope));
            lines.insert(format!("type {path}{parameters} = {}", of.unwrap_or_default()));
        }
        "macro" => _ = lines.insert(format!("macro {path}")),
        "proc_macro" => _ = lines.insert(format!("attribute {path}")),
        other => _ = lines.insert(format!("{other} {path}")),
    }
}

/// Returns the parameters of a definition as `<A, B = u8>`, with lifetimes.
fn parameters(writer: &Writer<'_>, inner: &Json, scope: &mut Scope, bounds: &mut Bounds) -> String {
    let Some(generics) = inner.get("generics") else { return String::new() };
    writer.generics(generics, scope, bounds);
    let one = |parameter: &Json| {
        let name = parameter.text("name").unwrap_or_default().to_owned();
        let named = Json::Object(vec![("generic".into(), Json::Text(name.clone()))]);
        match parameter.get("kind").and_then(only) {
            Some(("type", of)) if !is(of, "is_synthetic") => {
                let letter = writer.kind(&named, &mut scope.clone());
                let default = of.get("default").filter(|of| matches!(of, Json::Object(_)));
                let default = default.map(|of| writer.kind(of, &mut scope.clone()));
                Some(default.map_or(letter.clone(), |default| format!("{letter} = {default}")))
            }
            Some(("const", of)) => {
                let of = of.get("type").map(|of| writer.kind(of, &mut scope.clone()));
                Some(format!("const {}", of.unwrap_or_default()))
            }
            Some(("lifetime", _)) => Some(name),
            _ => None,
        }
    };
    let all: Vec<_> = generics.list("params").iter().filter_map(one).collect();
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

/// Returns the line of a struct or an enum.
fn data(writer: &Writer<'_>, id: &str, kind: &str, inner: &Json, path: &str) -> String {
    let (mut scope, mut bounds) = Default::default();
    let parameters = parameters(writer, inner, &mut scope, &mut bounds);
    let body = match inner.get("kind") {
        Some(shape) => fields(writer, shape, &scope),
        None => {
            let variants = inner.list("variants").iter().filter_map(number);
            let variant = |id: &str| {
                let item = writer.docs.item(id)?;
                let (_, inner) = writer.docs.inner(id)?;
                let body = fields(writer, inner.get("kind")?, &scope);
                Some(format!("{}{body}", item.text("name")?))
            };
            format!(" {{ {} }}", variants.filter_map(variant).collect::<Vec<_>>().join(", "))
        }
    };
    let attributes = writer.docs.item(id).map(|item| item.list("attrs")).unwrap_or_default();
    let open =
        attributes.iter().any(|one| matches!(one, Json::Text(word) if word == "non_exhaustive"));
    let open = if open { "non_exhaustive " } else { "" };
    format!("{open}{kind} {path}{parameters}{body}{}", clause(&bounds))
}

/// Returns the public fields; `..` stands for the others, which users cannot name.
fn fields(writer: &Writer<'_>, shape: &Json, scope: &Scope) -> String {
    let field = |id: &str| {
        let item = writer.docs.item(id).filter(|_| !writer.docs.is_hidden(id))?;
        let (_, of) = writer.docs.inner(id)?;
        let of = writer.kind(of, &mut scope.clone());
        Some((item.text("name")?.to_owned(), of))
    };
    match only(shape) {
        Some(("plain" | "struct", inner)) => {
            let known = inner.list("fields").iter().filter_map(number).filter_map(field);
            let mut all: Vec<_> = known.map(|(name, of)| format!("{name}: {of}")).collect();
            let stripped = ["has_stripped_fields", "fields_stripped"];
            let hidden = |id| writer.docs.is_hidden(id);
            if stripped.iter().any(|key| is(inner, key))
                || inner.list("fields").iter().filter_map(number).any(hidden)
            {
                all.push("..".into());
            }
            format!(" {{ {} }}", all.join(", "))
        }
        Some(("tuple", Json::List(members))) => {
            let named: Vec<_> = members.iter().map(|id| Some(field(number(id)?)?.1)).collect();
            // A struct without a public field is closed, whatever its form.
            if !named.is_empty() && named.iter().all(Option::is_none) {
                return " { .. }".into();
            }
            let all: Vec<_> = named.into_iter().map(|of| of.unwrap_or("_".into())).collect();
            format!("({})", all.join(", "))
        }
        _ => String::new(),
    }
}

/// Adds the lines of a trait.
fn interface(writer: &Writer<'_>, inner: &Json, path: &str, lines: &mut BTreeSet<String>) {
    let (mut scope, mut bounds) = Default::default();
    let parameters = parameters(writer, inner, &mut scope, &mut bounds);
    let own = Json::Object(vec![
        ("params".into(), Json::List(vec![])),
        (
            "where_predicates".into(),
            Json::List(vec![Json::Object(vec![(
                "bound_predicate".into(),
                Json::Object(vec![
                    (
                        "type".into(),
                        Json::Object(vec![("generic".into(), Json::Text("Self".into()))]),
                    ),
                    ("bounds".into(), Json::List(inner.list("bounds").to_vec())),
                ]),
            )])]),
        ),
    ]);
    writer.generics(&own, &mut scope, &mut bounds);
    let mut required = Vec::new();
    for id in inner.list("items").iter().filter_map(number) {
        let (Some(item), Some((kind, member))) = (writer.docs.item(id), writer.docs.inner(id))
        else {
            continue;
        };
        let name = item.text("name").unwrap_or_default();
        match kind {
            "function" => {
                let (mut scope, mut bounds) = (scope.clone(), Bounds::new());
                let function = writer.function(member, &mut scope, &mut bounds);
                let text = format!("{}{}", function.signature, clause(&bounds));
                if is(member, "has_body") {
                    lines
                        .insert(format!("provided {}fn {path}::{name}{text}", function.qualifiers));
                } else {
                    required.push(format!("{}fn {name}{text}", function.qualifiers));
                }
            }
            _ => required.push(format!("{kind} {name}")),
        }
    }
    required.sort();
    lines.insert(format!(
        "trait {path}{parameters}{} {{ {} }}",
        clause(&bounds),
        required.join("; ")
    ));
    for one in inner.list("implementations").iter().filter_map(number) {
        implementation(writer, one, lines);
    }
}

/// Adds the lines of an `impl` block.
fn implementation(writer: &Writer<'_>, id: &str, lines: &mut BTreeSet<String>) {
    let Some((_, inner)) = writer.docs.inner(id) else { return };
    // A blanket implementation that holds for every type is no promise of this crate.
    if matches!(inner.get("blanket_impl"), Some(Json::Object(_))) {
        return;
    }
    let (mut scope, mut bounds) = Default::default();
    if let Some(generics) = inner.get("generics") {
        writer.generics(generics, &mut scope, &mut bounds);
    }
    let Some(of) = inner.get("for").map(|of| writer.kind(of, &mut scope)) else { return };
    // The type or the trait is not public.
    if of.contains(NO_NAME) {
        return;
    }
    let mut scope = scope.with_self(&of);
    let Some(interface @ Json::Object(_)) = inner.get("trait") else {
        return methods(writer, inner, &of, &scope, &bounds, lines);
    };
    let path = Json::Object(vec![("resolved_path".into(), interface.clone())]);
    let name = writer.kind(&path, &mut scope);
    if name.contains(NO_NAME)
        || UNNAMED.iter().any(|unnamed| name.ends_with(&format!("::{unnamed}")))
    {
        return;
    }
    let bound = inner.list("items").iter().filter_map(number).filter_map(|id| {
        let (kind, member) = writer.docs.inner(id)?;
        let of = member.get("type").filter(|_| kind == "assoc_type")?;
        let name = writer.docs.item(id)?.text("name")?;
        Some(format!("{name} = {}", writer.kind(of, &mut scope.clone())))
    });
    let mut bound: Vec<_> = bound.collect();
    bound.sort();
    let bound =
        if bound.is_empty() { String::new() } else { format!(" {{ {} }}", bound.join(", ")) };
    let not = if is(inner, "is_negative") { "!" } else { "" };
    lines.insert(format!("impl {not}{name} for {of}{bound}{}", clause(&bounds)));
}

/// Adds the lines of a type's inherent items.
fn methods(
    writer: &Writer<'_>,
    inner: &Json,
    of: &str,
    scope: &Scope,
    bounds: &Bounds,
    lines: &mut BTreeSet<String>,
) {
    for id in inner.list("items").iter().filter_map(number) {
        let (Some(item), Some((kind, member))) = (writer.docs.item(id), writer.docs.inner(id))
        else {
            continue;
        };
        let name = item.text("name").unwrap_or_default();
        let (mut scope, mut bounds) = (scope.clone(), bounds.clone());
        match kind {
            "function" => {
                let function = writer.function(member, &mut scope, &mut bounds);
                let (qualifiers, signature) = (function.qualifiers, function.signature);
                lines.insert(format!("{qualifiers}fn {of}::{name}{signature}{}", clause(&bounds)));
            }
            _ => {
                let of_member = member.get("type").map(|of| writer.kind(of, &mut scope));
                lines.insert(format!("const {of}::{name}: {}", of_member.unwrap_or_default()));
            }
        }
    }
}
