//! A crate as rustdoc's JSON output describes it.
//!
//! Rustdoc prints JSON only if unstable options are allowed, which `RUSTC_BOOTSTRAP` does. Both
//! sides of the comparison are printed by the same compiler, so the format may change from version
//! to version as long as we still understand it; a format that we do not understand is an error,
//! never an empty list.

use std::{collections::HashMap, fs, process::Command, time::Duration};

use crate::{json::Json, root, shell};

/// Limit for one crate, its dependencies included; half a minute on two idle cores.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The items of a crate, by rustdoc's numbers.
#[derive(Debug)]
pub(super) struct Docs {
    root: String,
    /// Items of the crate itself.
    items: HashMap<String, Json>,
    /// Where items of other crates are defined.
    paths: HashMap<String, (Vec<String>, String)>,
}

/// Returns rustdoc's number of an item.
pub(super) fn number(json: &Json) -> Option<&str> {
    match json {
        Json::Word(word) if word != "null" => Some(word),
        _ => None,
    }
}

/// Returns the only key of an object that stands for one of several kinds, and its value.
pub(super) fn only(json: &Json) -> Option<(&str, &Json)> {
    match json {
        Json::Object(pairs) => pairs.first().map(|(key, value)| (key.as_str(), value)),
        _ => None,
    }
}

/// Returns true if a key holds `true`.
pub(super) fn is(json: &Json, key: &str) -> bool {
    matches!(json.get(key), Some(Json::Word(word)) if word == "true")
}

impl Docs {
    /// Parses rustdoc's JSON.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let Some(Json::Object(pairs)) = Json::read(text) else {
            return Err("rustdoc printed no JSON".into());
        };
        let mut pairs: HashMap<String, Json> = pairs.into_iter().collect();
        let root = pairs.get("root").and_then(number).map(str::to_owned);
        let (Some(root), Some(Json::Object(items)), Some(Json::Object(paths))) =
            (root, pairs.remove("index"), pairs.remove("paths"))
        else {
            return Err("rustdoc's JSON has another form: see xtask/src/api/docs.rs".into());
        };
        let path = |(number, json): (String, Json)| {
            let path = json.list("path").iter().filter_map(|part| match part {
                Json::Text(part) => Some(part.clone()),
                _ => None,
            });
            (number, (path.collect(), json.text("kind").unwrap_or_default().to_owned()))
        };
        let docs = Self {
            root,
            items: items.into_iter().collect(),
            paths: paths.into_iter().map(path).collect(),
        };
        if docs.item(&docs.root).is_none() {
            return Err("rustdoc's JSON has no root: see xtask/src/api/docs.rs".into());
        }
        Ok(docs)
    }

    /// Runs rustdoc on a crate and parses its output. `command` is `cargo rustdoc` with the
    /// package, which the compiler calls `library`; `folder` keeps crates of the same name apart;
    /// `cfg` is set if there is one.
    pub(super) fn of(
        mut command: Command,
        folder: &str,
        library: &str,
        cfg: Option<&str>,
    ) -> Result<Self, String> {
        let target = root().join("target/api").join(folder);
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target);
        // Warnings about documentation are checked by another step.
        command.env_remove("RUSTDOCFLAGS");
        command.args(["--", "-Zunstable-options", "--output-format=json", "--cap-lints=allow"]);
        // A hidden item can be named all the same, and an item that is not hidden may be defined in
        // a module that is.
        command.arg("--document-hidden-items");
        if let Some(cfg) = cfg {
            // Also in RUSTFLAGS, because cargo selects dependencies by them.
            command.args(["--cfg", cfg]).env("RUSTFLAGS", format!("--cfg {cfg}"));
        }
        let finished = shell::capture(&mut command, LIMIT)?;
        if !finished.end.success() {
            return Err(format!("rustdoc failed:\n{}", finished.stderr));
        }
        let file = target.join("doc").join(format!("{library}.json"));
        let text = fs::read_to_string(&file);
        Self::read(&text.map_err(|why| format!("cannot read {}: {why}", file.display()))?)
    }

    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Returns an item of the crate itself.
    pub(super) fn item(&self, number: &str) -> Option<&Json> {
        self.items.get(number)
    }

    /// Returns true if an item is marked `#[doc(hidden)]`.
    pub(super) fn is_hidden(&self, number: &str) -> bool {
        let attributes = self.item(number).map(|item| item.list("attrs")).unwrap_or_default();
        attributes.iter().any(|one| one.text("other") == Some("#[doc(hidden)]"))
    }

    /// Returns the kind of an item of the crate itself, and the contents of that kind.
    pub(super) fn inner(&self, number: &str) -> Option<(&str, &Json)> {
        self.item(number)?.get("inner").and_then(only)
    }

    /// Returns where an item is defined, and its kind; for items of other crates too.
    pub(super) fn defined(&self, number: &str) -> Option<(&[String], &str)> {
        self.paths.get(number).map(|(path, kind)| (path.as_slice(), kind.as_str()))
    }

    /// Returns what the root module re-exports: names, and the paths as they are written.
    pub(super) fn imports(&self) -> Vec<(&str, &str)> {
        let members = self.inner(&self.root).map(|(_, root)| root.list("items"));
        let members = members.unwrap_or_default().iter().filter_map(number);
        let import = |member: &str| self.inner(member).filter(|(kind, _)| *kind == "use");
        let pair = |member: &str| {
            let (_, import) = import(member)?;
            Some((import.text("name")?, import.text("source")?))
        };
        members.filter_map(pair).collect()
    }

    /// Returns the number of the item at a path of public names.
    pub(super) fn find(&self, path: &[&str]) -> Option<&str> {
        let mut here = self.root();
        for name in path {
            here = self.children(here).into_iter().find(|(child, _)| child == name)?.1;
        }
        Some(here)
    }

    /// Returns the public names in a module and the numbers of their items, which may belong to
    /// another crate. Globs are expanded.
    pub(super) fn children(&self, module: &str) -> Vec<(&str, &str)> {
        let Some((_, module)) = self.inner(module) else { return Vec::new() };
        let members = ["items", "variants"].iter().flat_map(|key| module.list(key));
        let mut children = Vec::new();
        for member in members.filter_map(number) {
            let Some(item) = self.item(member) else { continue };
            match item.get("inner").and_then(|inner| inner.get("use")) {
                Some(import) => {
                    let Some(target) = import.get("id").and_then(number) else { continue };
                    if is(import, "is_glob") {
                        children.extend(self.children(target));
                    } else {
                        children.push((import.text("name").unwrap_or_default(), target));
                    }
                }
                None => children.push((item.text("name").unwrap_or_default(), member)),
            }
        }
        children
    }
}
