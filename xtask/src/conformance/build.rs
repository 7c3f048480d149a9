//! Compiles a suite: which files compile, and what the others miss.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::suite::{MARKER, Suite};
use crate::{json::Json, root, shell};

/// Limit for compiling a suite; two minutes on two idle cores.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Built {
    Binary(PathBuf),
    /// Did not compile: the first thing it misses.
    Missing(String),
}

/// The result for a suite.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) files: BTreeMap<String, Built>,
    pub(super) marker: Built,
}

impl Build {
    /// Returns true if no file compiled.
    pub(super) fn is_empty(&self) -> bool {
        self.files.values().all(|built| matches!(built, Built::Missing(_)))
    }
}

/// Returns true if the dependencies of all files compile: the marker's test needs nothing else.
pub(super) fn marker_compiles(suite: &Suite) -> Result<bool, String> {
    let finished = compile(suite, &[MARKER])?;
    Ok(finished.end.success())
}

/// Compiles these files; a failure of one does not stop the others.
fn compile(suite: &Suite, files: &[&str]) -> Result<shell::Finished, String> {
    let mut command = shell::cargo();
    command.args(["build", "--quiet", "--keep-going", "--message-format=json"]);
    command.arg("--manifest-path").arg(suite.folder.join("Cargo.toml"));
    if suite.kind.unstable {
        command.env("RUSTFLAGS", "--cfg tokio_unstable");
    }
    command.env("CARGO_TARGET_DIR", root().join("target/conformance/build"));
    for file in files {
        command.args(["--test", file]);
    }
    shell::capture(&mut command, LIMIT)
}

/// Compiles every file; a failure of one does not stop the others.
pub(super) fn build(suite: &Suite) -> Result<Build, String> {
    let files: Vec<&str> = suite.files.iter().map(String::as_str).chain([MARKER]).collect();
    let finished = compile(suite, &files)?;
    if finished.end == shell::End::TimedOut {
        return Err(format!("the suite did not compile in {} s", LIMIT.as_secs()));
    }
    let messages: Vec<Json> = finished.stdout.lines().filter_map(Json::read).collect();
    if messages.is_empty() {
        return Err(format!("cargo failed before it compiled anything:\n{}", finished.stderr));
    }
    Ok(sort(&messages, &suite.files))
}

fn sort(messages: &[Json], files: &[String]) -> Build {
    let mut found: BTreeMap<String, Built> = BTreeMap::new();
    let mut dependency = None;
    for message in messages {
        let Some(target) = message.get("target") else { continue };
        let name = target.text("name").unwrap_or_default().to_owned();
        let is_test = target.list("kind").contains(&Json::Text("test".into()));
        if let Some(binary) = message.text("executable")
            && is_test
        {
            found.insert(name, Built::Binary(binary.into()));
        } else if let Some(what) = message.get("message").and_then(first_missing) {
            if is_test {
                found.entry(name).or_insert(Built::Missing(what));
            } else if dependency.is_none() {
                dependency = Some(format!("{name} does not compile: {what}"));
            }
        }
    }
    let nothing = dependency.unwrap_or_else(|| "cargo did not build it".into());
    let mut take =
        |name: &str| found.remove(name).unwrap_or_else(|| Built::Missing(nothing.clone()));
    let marker = take(MARKER);
    Build { files: files.iter().map(|file| (file.clone(), take(file))).collect(), marker }
}

/// Returns what a compiler error reports as missing; `None` for warnings.
fn first_missing(message: &Json) -> Option<String> {
    let text = message.text("message")?;
    if message.text("level") != Some("error") {
        return None;
    }
    let mut quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    quoted.dedup();
    let what = match quoted[..] {
        [..] if text.starts_with("unresolved import") => quoted.join(", "),
        // "cannot find `sync` in `tokio`", and its older forms.
        [item, place] if text.contains("` in ") => format!("{place}::{item}"),
        // "no method named `x` found for struct `Y` in the current scope".
        [item, place, ..] if text.starts_with("no ") && text.contains(" found for ") => {
            format!("{place}::{item}")
        }
        _ => text.lines().next().unwrap_or_default().to_owned(),
    };
    Some(what)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Built, first_missing, sort};
    use crate::json::Json;

    fn error(text: &str) -> Json {
        Json::Object(vec![
            ("message".into(), Json::Text(text.into())),
            ("level".into(), Json::Text("error".into())),
        ])
    }

    #[test]
    fn the_missing_item_is_named() {
        for (text, what) in [
            ("unresolved import `tokio::sync`", "tokio::sync"),
            ("unresolved imports `tokio::fs`, `tokio::io::split`", "tokio::fs, tokio::io::split"),
            ("cannot find `time` in `tokio`", "tokio::time"),
            ("failed to resolve: could not find `time` in `tokio`", "tokio::time"),
            ("cannot find function `block_in_place` in module `task`", "task::block_in_place"),
            ("cannot find macro `select` in crate `tokio`", "tokio::select"),
            (
                "no method named `name` found for struct `Handle` in the current scope",
                "Handle::name",
            ),
            ("mismatched types", "mismatched types"),
        ] {
            assert_eq!(first_missing(&error(text)).as_deref(), Some(what), "{text}");
        }
        let warning = Json::read(r#"{"message":"unused","level":"warning"}"#).unwrap();
        assert_eq!(first_missing(&warning), None);
    }

    #[test]
    fn the_first_error_of_a_file_counts_and_a_broken_dependency_stops_all() {
        let lines = [
            r#"{"target":{"name":"a","kind":["test"]},"message":{"level":"error","message":"unresolved import `tokio::x`"}}"#,
            r#"{"target":{"name":"a","kind":["test"]},"message":{"level":"error","message":"mismatched types"}}"#,
            r#"{"target":{"name":"b","kind":["test"]},"executable":"/b"}"#,
            r#"{"target":{"name":"tokio_stream","kind":["lib"]},"message":{"level":"error","message":"mismatched types"}}"#,
            r#"{"reason":"build-finished","success":false}"#,
        ];
        let messages: Vec<_> = lines.iter().map(|line| Json::read(line).unwrap()).collect();
        let files = ["a", "b", "c"].map(str::to_owned);
        let build = sort(&messages, &files);
        let stopped = Built::Missing("tokio_stream does not compile: mismatched types".into());
        let wanted = BTreeMap::from([
            ("a".to_owned(), Built::Missing("tokio::x".into())),
            ("b".to_owned(), Built::Binary("/b".into())),
            ("c".to_owned(), stopped.clone()),
        ]);
        assert_eq!(build.files, wanted);
        assert_eq!(build.marker, stopped);
    }
}
