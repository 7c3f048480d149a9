//! Runs the tests of packages that depend on Tokio, on the drop-in.
//!
//! A package is copied from cargo's registry cache to `target/conformance/suites`, where it gets
//! the patch and a test that proves that the patch is in force. The repository has nothing of it
//! but its line in `conformance/suites.txt`: name, version, how many of its tests pass on the real
//! Tokio, and the arguments of `cargo test`. Fewer passing tests than that are a failure. A word
//! `+name=version`, with `/feature` if needed, is a package that its tests use and its manifest
//! does not name, because published manifests sometimes lack packages of the author's own
//! workspace. A word `~tokio::name` is an item without which it does not compile: as long as
//! `conformance/api/missing.txt` has that name, which `cargo xtask api` keeps exact, the package is
//! skipped. The word `@self` means that packages which its tests use depend on it in turn: they get
//! the copy too, because its tests pass values from one to the other.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    failures,
    suite::{MARKER, Tokio, fetched, marker, resolve, write},
};
use crate::{Outcome, model::passed, root, shell};

/// Limit for one package, compiled and run: tower's and hyper's took nine minutes together
/// on two busy cores.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// A line of `conformance/suites.txt`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Dependent {
    name: String,
    version: String,
    /// The number of its tests that pass on the real Tokio.
    floor: usize,
    /// Arguments for `cargo test`.
    arguments: Vec<String>,
    /// Additional packages that its tests use, as tables of a manifest.
    besides: String,
    /// Items without which it does not compile.
    needs: Vec<String>,
    /// True if packages that its tests use depend on it.
    cyclic: bool,
}

impl Dependent {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let (name, version) = (words.next()?, words.next()?);
        let floor = words.next()?.parse().ok()?;
        let mut dependent = Self { name, version, floor, ..Self::default() };
        for word in words {
            match word.strip_prefix('~') {
                Some(part) => dependent.needs.push(part.to_owned()),
                None if word == "@self" => dependent.cyclic = true,
                None if word.starts_with('+') => dependent.besides += &besides_of(&word)?,
                None => dependent.arguments.push(word),
            }
        }
        Some(dependent)
    }

    /// Returns the arguments that select features; dependency resolution accepts no others.
    fn features(&self) -> Vec<String> {
        let mut chosen = Vec::new();
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--all-features" => chosen.push(argument.clone()),
                "--features" => {
                    chosen.extend([Some(argument), arguments.next()].into_iter().flatten().cloned())
                }
                _ => {}
            }
        }
        chosen
    }

    /// Copies the package and adds the patch and the marker's test to it.
    fn prepare(&self, tokio: Tokio) -> Result<PathBuf, String> {
        let source = fetched(&self.name, &self.version)?;
        let kind = if tokio == Tokio::DropIn { "dropin" } else { "upstream" };
        let folder = root().join("target/conformance/suites").join(kind).join(&self.name);
        copy(&source, &folder).map_err(|why| format!("cannot copy {}: {why}", self.name))?;
        let manifest = fs::read_to_string(source.join("Cargo.toml"));
        let manifest = manifest.map_err(|why| format!("{} has no manifest: {why}", self.name))?;
        write(&folder.join("Cargo.toml"), &self.patch(&manifest, tokio))?;
        write(&folder.join(format!("tests/{MARKER}.rs")), &marker(tokio)?)?;
        resolve(&folder, &self.features(), tokio)?;
        Ok(folder)
    }

    /// Returns the manifest as that of a workspace of its own, with the patch and the marker's
    /// test.
    fn patch(&self, manifest: &str, tokio: Tokio) -> String {
        let test = format!("\n[[test]]\nname = {MARKER:?}\npath = \"tests/{MARKER}.rs\"\n");
        let mut text = format!("{manifest}{}{test}", self.besides);
        if !manifest.lines().any(|line| line.trim() == "[workspace]") {
            text += "\n[workspace]\n";
        }
        let mut patches = String::new();
        if tokio == Tokio::DropIn {
            let dropin = root().join("dropin/tokio").display().to_string();
            patches += &format!("tokio.path = {dropin:?}\n");
        }
        if self.cyclic {
            patches += &format!("{}.path = \".\"\n", self.name);
        }
        if !patches.is_empty() {
            text += &format!("\n[patch.crates-io]\n{patches}");
        }
        text
    }

    /// Compiles and runs its tests; returns what is wrong, if anything is.
    fn run(&self, tokio: Tokio) -> Result<Option<String>, String> {
        let folder = self.prepare(tokio)?;
        let mut command = shell::cargo();
        command.args(["test", "--no-fail-fast", "--test", MARKER, "--manifest-path"]);
        command.arg(folder.join("Cargo.toml")).args(&self.arguments);
        command.env("CARGO_TARGET_DIR", root().join("target/conformance/build"));
        // Fetched packages have their lints capped by cargo; a local copy that denies warnings must
        // have them capped too.
        command.env("RUSTFLAGS", "--cap-lints=warn");
        let finished = shell::capture(&mut command, LIMIT)?;
        let found = passed(&finished.stdout);
        if tokio == Tokio::DropIn
            && !finished.stdout.contains("test the_drop_in_is_what_is_built ... ok")
        {
            let why = first_error(&finished.stderr);
            return Ok(Some(format!("the marker's test did not pass: {why}")));
        }
        // The marker's test is ours, so it does not count.
        let found = found - usize::from(tokio == Tokio::DropIn);
        println!("{:12} {:8} {found} of {}", self.name, self.version, self.floor);
        let failed = failures(&finished.stdout);
        if !failed.is_empty() {
            return Ok(Some(format!("these fail: {}", failed.join(", "))));
        }
        if found < self.floor {
            let why = first_error(&finished.stderr);
            return Ok(Some(format!("{found} instead of {} pass: {why}", self.floor)));
        }
        Ok(None)
    }
}

/// Returns `+name=version/feature` as a table of a manifest.
fn besides_of(word: &str) -> Option<String> {
    let (name, rest) = word.strip_prefix('+')?.split_once('=')?;
    let (version, feature) = rest.split_once('/').unwrap_or((rest, ""));
    let features: &[&str] = if feature.is_empty() { &[] } else { &[feature] };
    Some(format!("\n[dev-dependencies.{name}]\nversion = {version:?}\nfeatures = {features:?}\n"))
}

/// Returns the first error that a compiler or a program printed.
fn first_error(stderr: &str) -> &str {
    stderr.lines().find(|line| line.starts_with("error")).unwrap_or("no message")
}

/// Copies a folder, writing only what differs, so that cargo does not rebuild.
pub(super) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // These two are written by us and by cargo.
        if ["Cargo.toml", "Cargo.lock"].iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
            continue;
        }
        let bytes = fs::read(entry.path())?;
        if fs::read(&target).ok().as_deref() != Some(&bytes) {
            fs::write(&target, bytes)?;
        }
    }
    Ok(())
}

/// Reads every line of `conformance/suites.txt`.
fn known() -> Result<Vec<Dependent>, String> {
    let lines = super::lines(&root().join("conformance/suites.txt"))?;
    let read = |line: &String| {
        Dependent::read(line).ok_or_else(|| format!("suites.txt: `{line}` is no entry"))
    };
    lines.iter().map(read).collect()
}

/// Runs `cargo xtask conformance --suites`.
pub(super) fn main(arguments: &[String]) -> Outcome {
    let start = Instant::now();
    let mut tokio = Tokio::DropIn;
    let mut chosen = Vec::new();
    let known = known()?;
    for argument in arguments {
        match known.iter().find(|dependent| dependent.name == *argument) {
            Some(dependent) => chosen.push(dependent.clone()),
            None if argument == "--upstream" => tokio = Tokio::Upstream,
            None => return Err(format!("`{argument}` is not in conformance/suites.txt")),
        }
    }
    let chosen = if chosen.is_empty() { known } else { chosen };
    let mut wrong = Vec::new();
    let missing = super::lines(&root().join("conformance/api/missing.txt"))?;
    for dependent in &chosen {
        let waits: Vec<_> = dependent.needs.iter().filter(|part| missing.contains(part)).collect();
        if tokio == Tokio::DropIn && !waits.is_empty() {
            println!("{:12} {:8} waits for {waits:?}", dependent.name, dependent.version);
            continue;
        }
        if let Some(what) = dependent.run(tokio)? {
            println!("{:12} FAIL     {what}", dependent.name);
            wrong.push(dependent.name.as_str());
        }
    }
    println!("{} packages in {:.0} s", chosen.len(), start.elapsed().as_secs_f64());
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("below the real Tokio: {}", wrong.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::{Dependent, Tokio, known};

    #[test]
    fn a_line_is_understood() {
        let line = "hyper 1.12.0 124 --features full --lib";
        let dependent = Dependent::read(line).unwrap();
        assert_eq!((dependent.name.as_str(), dependent.version.as_str()), ("hyper", "1.12.0"));
        assert_eq!((dependent.floor, dependent.arguments.len()), (124, 3));
        assert_eq!(dependent.features(), ["--features", "full"]);
        assert_eq!(dependent.besides, "");
        assert_eq!(Dependent::read("hyper 1.12.0 many"), None);
        let line = "axum 0.8.9 322 --lib +axum-macros=0.5/__private -- --skip slow";
        let dependent = Dependent::read(line).unwrap();
        assert_eq!(dependent.arguments, ["--lib", "--", "--skip", "slow"]);
        assert_eq!(
            dependent.besides,
            "\n[dev-dependencies.axum-macros]\nversion = \"0.5\"\nfeatures = [\"__private\"]\n"
        );
        assert_eq!(Dependent::read("axum 0.8.9 322 +axum-macros"), None);
        let dependent = Dependent::read("a 1.0.0 1 ~tokio::fs --lib ~tokio::signal").unwrap();
        assert_eq!((dependent.needs.len(), dependent.arguments.len()), (2, 1));
    }

    #[test]
    fn the_list_is_well_formed_and_every_floor_is_above_zero() {
        let known = known().unwrap();
        assert!(known.iter().any(|dependent| dependent.name == "tokio-test"));
        assert!(known.iter().all(|dependent| dependent.floor > 0));
    }

    #[test]
    fn a_manifest_gets_one_workspace_and_only_the_drop_in_a_patch() {
        let dependent = Dependent::read("a 1.0.0 1").unwrap();
        let plain = dependent.patch("[package]\nname = \"a\"\n", Tokio::DropIn);
        assert!(plain.contains("[patch.crates-io]\ntokio.path"));
        assert_eq!(plain.matches("[workspace]").count(), 1);
        let own = dependent.patch("[package]\n[workspace]\n", Tokio::Upstream);
        assert_eq!(own.matches("[workspace]").count(), 1);
        assert!(!own.contains("[patch"));
        let cyclic = Dependent::read("a 1.0.0 1 @self --lib").unwrap();
        assert_eq!(cyclic.arguments, ["--lib"]);
        let own = cyclic.patch("[package]\n", Tokio::Upstream);
        assert!(own.ends_with("[patch.crates-io]\na.path = \".\"\n"), "{own}");
    }
}
