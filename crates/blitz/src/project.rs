//! `blitz doctor --project DIR`: reports whether a project runs on the drop-ins.
//!
//! Cargo falls back to a real package with no more than a warning, so a project may seem to be
//! patched and not be. The lock file shows it. It is only read: nothing here makes cargo resolve,
//! because that would write it.
//!
//! Inputs, in this order: the manifest (does cargo accept it, where is its workspace's root), the
//! patches (of the root, of cargo's configuration, and those of members, which cargo ignores), the
//! lock file. The verdict about a package follows from these alone ([`judge`]), so that it can be
//! tested with projects that do not exist.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use crate::{
    doctor::Page,
    toml::{self, Table, Value},
};

/// A package that a drop-in replaces.
#[derive(Debug, Clone, Copy)]
struct Package {
    name: &'static str,
    /// The version of the drop-in.
    ours: &'static str,
    /// True if that is above all published versions, so that cargo prefers it to any.
    above_all: bool,
}

const PACKAGES: [Package; 2] = [
    Package { name: "tokio", ours: "1.999.0", above_all: true },
    Package { name: "rayon-core", ours: "1.13.0", above_all: false },
];

/// The source that users without a checkout write into the patch.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Prints the page; exits with 0 if each package in use is the drop-in.
pub(crate) fn run(folder: &Path, colour: bool) -> ExitCode {
    let mut page = Page::new(colour);
    let good = match Project::open(folder) {
        Ok(project) => project.report(&mut page),
        Err(why) => {
            page.title("the project");
            page.row("folder", &folder.display().to_string());
            page.advice(&why);
            false
        }
    };
    let shown = crate::show(page.text());
    if good { shown } else { ExitCode::FAILURE }
}

/// A patch that was found.
#[derive(Debug, Clone, PartialEq)]
struct Patch {
    /// The file in which it stands.
    file: PathBuf,
    /// A description of what it points to.
    points_to: String,
    /// The reason why it cannot work, if there is one.
    fault: Option<String>,
}

/// A package of the lock file.
#[derive(Debug, Clone, PartialEq)]
struct Locked {
    version: String,
    /// The registry or repository; `None` for a folder.
    source: Option<String>,
    /// The packages that depend on it.
    users: Vec<String>,
}

impl Locked {
    fn is_published(&self) -> bool {
        self.source
            .as_deref()
            .is_some_and(|source| source.starts_with("registry+") || source.starts_with("sparse+"))
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.source.as_deref() {
            None => "a folder",
            Some(_) if self.is_published() => "the registry",
            Some(source) => source,
        };
        write!(f, "{} from {from}", self.version)
    }
}

/// The findings about one package.
#[derive(Debug, Clone, Default, PartialEq)]
struct Findings {
    /// The package's entries in the lock file; `None` if there is no lock file.
    locked: Option<Vec<Locked>>,
    /// The version of a patch that the lock file calls unused.
    unused: Option<String>,
    /// The patch in the root's manifest or in cargo's configuration.
    patch: Option<Patch>,
    /// Manifests of members with a patch, where cargo ignores it.
    ignored: Vec<PathBuf>,
    /// The root's manifest.
    root: PathBuf,
}

/// The verdict about one package: whether the project runs on its drop-in.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    InForce,
    /// No package depends on it.
    NotUsed,
    /// The real package is used; the texts say what to do.
    No(Vec<String>),
}

/// Returns the verdict that follows from the files.
fn judge(package: Package, found: &Findings) -> Verdict {
    let name = package.name;
    let mut steps: Vec<String> = Vec::new();
    for file in &found.ignored {
        steps.push(format!(
            "cargo ignores the patch in {}: only that of the workspace's root counts; move it to {}",
            file.display(),
            found.root.display()
        ));
    }
    if let Some(fault) = found.patch.as_ref().and_then(|patch| patch.fault.as_ref()) {
        steps.push(fault.clone());
        return Verdict::No(steps);
    }
    let Some(locked) = &found.locked else {
        steps.extend(without_lock(package, found));
        return Verdict::No(steps);
    };
    let (real, ours): (Vec<_>, Vec<_>) = locked.iter().partition(|one| one.is_published());
    match (&real[..], &ours[..]) {
        ([], []) if found.unused.is_none() => Verdict::NotUsed,
        ([], []) => Verdict::No(vec![format!(
            "no package of the project requires {name}, so its patch does nothing: take it out"
        )]),
        ([], [one, ..]) if one.version != package.ours => Verdict::No(vec![format!(
            "the {name} in force is version {}, and blitz-io's is {}: the patch points to another package, or to another version of blitz-io",
            one.version, package.ours
        )]),
        ([], _) if found.patch.is_none() => Verdict::No(vec![format!(
            "the lock file has a {name} that no patch provides: either a dependency names its folder, then write it as a patch in {} so that every package gets it, or the patch was taken out, then run `cargo update -p {name}`",
            found.root.display()
        )]),
        ([], _) => Verdict::InForce,
        (_, [_, ..]) => {
            steps.extend(real.iter().map(|real| beside(package, found, real)));
            Verdict::No(steps)
        }
        (_, []) => {
            steps.extend(not_taken(package, found, &real));
            Verdict::No(steps)
        }
    }
}

/// Returns what to do before there is a lock file.
fn without_lock(package: Package, found: &Findings) -> Option<String> {
    let name = package.name;
    match found.patch {
        Some(_) => Some(format!(
            "there is no lock file yet, and only that shows which {name} is taken: run `cargo generate-lockfile`, then this again"
        )),
        // The ignored patch is reported above.
        None if !found.ignored.is_empty() => None,
        None => Some(add(package, found, "then `cargo generate-lockfile`")),
    }
}

/// Returns the advice to add the patch: the lines to write.
fn add(package: Package, found: &Findings, then: &str) -> String {
    format!(
        "there is no patch for {name}: write `[patch.crates-io]` and below it `{name} = {{ git = \"{REPOSITORY}\" }}` (or `path = \"…/blitz-io/dropin/{name}\"`) into {root}, {then}",
        name = package.name,
        root = found.root.display()
    )
}

/// Returns the advice for a project where some packages use ours and some the real one.
fn beside(package: Package, found: &Findings, real: &Locked) -> String {
    let (name, version) = (package.name, &real.version);
    let users = match &real.users[..] {
        [] => "some packages".to_owned(),
        users => users.join(", "),
    };
    let first = if found.patch.is_none() {
        "write blitz-io's as a patch, not as a dependency; then "
    } else {
        ""
    };
    format!(
        "both are there: {users} use the real {name} {version}, and a socket or a timer of one is nothing to the other; {first}run `cargo update -p {name}@{version}`, and if it stays, `cargo tree -i {name}@{version}` shows which package requires a version other than {}",
        package.ours
    )
}

/// Returns the advice for a project that uses only the real one.
fn not_taken(package: Package, found: &Findings, real: &[&Locked]) -> Vec<String> {
    let name = package.name;
    let versions: Vec<_> = real.iter().map(|one| one.version.as_str()).collect();
    let has = versions.join(" and ");
    if found.patch.is_none() {
        // A misplaced patch is named above; it must be moved, not written.
        let update = update(package, &versions);
        let then = format!("then {update}");
        return match &found.ignored[..] {
            [] => vec![add(package, found, &then)],
            _ => vec![format!("then {update}: the lock file has {name} {has} from the registry")],
        };
    }
    let why = match &found.unused {
        Some(unused) => {
            format!("cargo left the patch (version {unused}) unused, because the lock file has")
        }
        None => "the lock file is older than the patch and has".to_owned(),
    };
    let mut steps = vec![format!("{why} {name} {has}: {}", update(package, &versions))];
    if found.unused.is_some() {
        steps.push(if package.above_all {
            format!(
                "if that fails, cargo names the package that stands in the way: one that the lock file holds at an older version than blitz-io needs (run `cargo update -p` for it first), or one that requires at most some version of {name}; if it changes nothing, some package requires a feature of {name} that blitz-io's lacks (`cargo tree -i {name} -e features`)"
            )
        } else {
            format!(
                "if that fails, some package requires a newer {name} than {}: take a newer blitz-io",
                package.ours
            )
        });
    }
    steps
}

/// Returns the command that makes cargo select ours.
fn update(package: Package, versions: &[&str]) -> String {
    let name = package.name;
    let one = |version: &&str| {
        // A name alone is ambiguous if there are several versions.
        let which = if versions.len() > 1 { format!("{name}@{version}") } else { name.to_owned() };
        // Without a version cargo keeps the published one if anything prevents the change, and does
        // not report what.
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        let fits = major(version) == major(package.ours) && *version != package.ours;
        let to = if fits { format!(" --precise {}", package.ours) } else { String::new() };
        format!("`cargo update -p {which}{to}`")
    };
    format!("run {}", versions.iter().map(one).collect::<Vec<_>>().join(" and "))
}

/// The files of a project.
#[derive(Debug)]
struct Project {
    root: PathBuf,
    lock: PathBuf,
    has_lock: bool,
    findings: Vec<(Package, Findings)>,
    notes: Vec<String>,
}

impl Project {
    fn open(folder: &Path) -> Result<Self, String> {
        let manifest = manifest_in(folder)?;
        let mut notes = Vec::new();
        let root = match root_by_cargo(&manifest) {
            Some(root) => root?,
            None => {
                notes.push("cargo was not found, so the workspace's root is a guess: put cargo on the path".to_owned());
                root_by_hand(&manifest)
            }
        };
        let members = members(&root, &manifest);
        let text = table(&root)?;
        let home = root.parent().unwrap_or(Path::new(".")).to_owned();
        let lock = home.join("Cargo.lock");
        let locked = match fs::read_to_string(&lock) {
            Ok(text) => Some(toml::read(&text).map_err(|why| {
                format!("{} is broken ({why}): run `cargo generate-lockfile`", lock.display())
            })?),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            Err(why) => return Err(format!("cannot read {}: {why}", lock.display())),
        };
        let configurations = configurations(&home);
        let mut findings = Vec::new();
        for package in PACKAGES {
            let mut found = Findings { root: root.clone(), ..Default::default() };
            found.patch = patch_in(&text, &root, &home, package);
            for file in &configurations {
                // Cargo refuses to start with a broken configuration, and its message is better
                // than ours.
                let Ok(text) = table(file) else { continue };
                // Paths in it are relative to the folder that has `.cargo`.
                let from = file.parent().and_then(Path::parent).unwrap_or(&home);
                found.patch = found.patch.or_else(|| patch_in(&text, file, from, package));
            }
            for member in &members {
                let own = table(member)?;
                let folder = member.parent().unwrap_or(&home);
                found.ignored.extend(patch_in(&own, member, folder, package).map(|it| it.file));
            }
            if let Some(lock) = &locked {
                found.locked = Some(in_lock(lock, package.name));
                found.unused = unused_in(lock, package.name);
            }
            findings.push((package, found));
        }
        Ok(Self { root, lock, has_lock: locked.is_some(), findings, notes })
    }

    /// Adds the findings to the page; returns true if nothing is wrong.
    fn report(&self, page: &mut Page) -> bool {
        page.title("the project");
        page.row("manifest", &self.root.display().to_string());
        let lock = self.lock.display().to_string();
        page.row("lock file", if self.has_lock { &lock } else { "none yet" });
        self.notes.iter().for_each(|note| page.advice(note));
        let mut good = true;
        for (package, found) in &self.findings {
            let verdict = judge(*package, found);
            // A project that uses neither Rayon nor its patch needs no report about it.
            if verdict == Verdict::NotUsed && found.patch.is_none() && found.ignored.is_empty() {
                continue;
            }
            page.title(package.name);
            for one in found.locked.iter().flatten() {
                page.row("locked", &one.to_string());
            }
            if let Some(patch) = &found.patch {
                page.row("patch", &format!("{} in {}", patch.points_to, patch.file.display()));
            }
            match verdict {
                Verdict::InForce => page.row("drop-in", "in force"),
                Verdict::NotUsed => page.row("drop-in", "no package requires it"),
                Verdict::No(steps) => {
                    good = false;
                    page.row("drop-in", "not in force");
                    steps.iter().for_each(|step| page.advice(step));
                }
            }
        }
        let used =
            |(_, found): &(_, Findings)| found.locked.as_ref().is_some_and(|it| !it.is_empty());
        if self.has_lock && !self.findings.iter().any(used) {
            page.title("neither tokio nor rayon-core is used here");
        }
        good
    }
}

/// Returns the manifest for a folder, or the path itself if it is that of a manifest.
fn manifest_in(folder: &Path) -> Result<PathBuf, String> {
    let manifest = match folder.file_name() {
        Some(name) if name == "Cargo.toml" => folder.to_owned(),
        _ => folder.join("Cargo.toml"),
    };
    let manifest = std::path::absolute(&manifest).unwrap_or(manifest);
    if manifest.is_file() {
        return Ok(manifest);
    }
    if !folder.exists() {
        return Err("there is no such folder: name that of the project's Cargo.toml".into());
    }
    let above = manifest.ancestors().skip(2).find(|folder| folder.join("Cargo.toml").is_file());
    Err(match above {
        Some(above) => {
            format!("there is no Cargo.toml in it, but in {}: name that", above.display())
        }
        None => "there is no Cargo.toml in it: name the folder of a project".into(),
    })
}

/// Returns the manifest of the workspace's root as cargo reports it; `None` if there is no cargo.
fn root_by_cargo(manifest: &Path) -> Option<Result<PathBuf, String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["locate-project", "--workspace", "--message-format=plain", "--manifest-path"]);
    // Set by `cargo run`, and not about this project.
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    let output = command.arg(manifest).output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Some(Ok(PathBuf::from(text(&output.stdout))));
    }
    Some(Err(format!("cargo does not take the manifest; mend it first:\n{}", text(&output.stderr))))
}

/// Returns the nearest manifest upwards that has a `[workspace]`, else the manifest itself.
fn root_by_hand(manifest: &Path) -> PathBuf {
    let above = manifest.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    let is_root = |file: &PathBuf| table(file).is_ok_and(|it| it.contains_key("workspace"));
    above.into_iter().find(is_root).unwrap_or_else(|| manifest.to_owned())
}

/// Parses a file as a table.
fn table(file: &Path) -> Result<Table, String> {
    let text =
        fs::read_to_string(file).map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    toml::read(&text).map_err(|why| format!("{} is broken, {why}: mend it first", file.display()))
}

/// Returns the manifests of members, without the root's: those that the root lists, and the one
/// that was named on the command line.
fn members(root: &Path, given: &Path) -> Vec<PathBuf> {
    let home = root.parent().unwrap_or(Path::new("."));
    let root_table = table(root).unwrap_or_default();
    let listed = toml::at(&root_table, &["workspace"]).and_then(|it| it.get("members"));
    let listed = listed.map(Value::list).unwrap_or_default().iter().filter_map(Value::text);
    let mut folders: Vec<PathBuf> = Vec::new();
    for pattern in listed {
        folders.extend(matching(home, pattern));
    }
    let manifests = folders.into_iter().map(|folder| folder.join("Cargo.toml"));
    let mut members: Vec<_> =
        manifests.chain([given.to_owned()]).filter(|it| it.is_file()).collect();
    let same =
        |one: &Path, other: &Path| fs::canonicalize(one).ok() == fs::canonicalize(other).ok();
    members.retain(|member| !same(member, root));
    members.sort();
    members.dedup_by(|one, other| same(one, other));
    members
}

/// Returns the folders that a pattern of `members` names; a `*` stands for any part of a name.
fn matching(home: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut folders = vec![home.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let Some((before, after)) = part.split_once('*') else {
            folders.iter_mut().for_each(|folder| folder.push(part));
            continue;
        };
        let fits = |name: &str| {
            name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        };
        let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let entries = folders.into_iter().flat_map(inside);
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
        folders = named.map(|entry| entry.path()).collect();
    }
    folders
}

/// Returns cargo's configuration files, nearest first.
fn configurations(home: &Path) -> Vec<PathBuf> {
    let names =
        |folder: &Path| ["config.toml", "config"].map(|name| folder.join(".cargo").join(name));
    home.ancestors().flat_map(names).filter(|file| file.is_file()).collect()
}

/// Returns the patch for a package in a manifest or a configuration.
fn patch_in(text: &Table, file: &Path, from: &Path, package: Package) -> Option<Patch> {
    let sources = toml::at(text, &["patch"])?;
    let is_this = |(key, value): &(&String, &Value)| {
        let other = value.table().and_then(|table| table.get("package")).and_then(Value::text);
        other.unwrap_or(key) == package.name
    };
    // The index's address is another name of `crates-io`.
    let official = |source: &str| source == "crates-io" || source.ends_with("/crates.io-index");
    let mut found = sources.iter().filter_map(|(source, patches)| {
        let (_, value) = patches.table()?.iter().find(is_this)?;
        Some((source.as_str(), value))
    });
    let all: Vec<_> = found.by_ref().collect();
    let chosen = all.iter().find(|(source, _)| official(source)).or(all.first())?;
    let (points_to, mut fault) = target(chosen.1, from, package);
    if !official(chosen.0) {
        fault = Some(format!(
            "the patch is for `{}`, and {} comes from crates-io: write it below `[patch.crates-io]`",
            chosen.0, package.name
        ));
    }
    Some(Patch { file: file.to_owned(), points_to, fault })
}

/// Returns a description of what a patch points to, and the reason why that cannot work, if any.
fn target(value: &Value, from: &Path, package: Package) -> (String, Option<String>) {
    let key = |key| value.table().and_then(|table| table.get(key)).and_then(Value::text);
    if let Some(git) = key("git") {
        return (format!("git {git}"), None);
    }
    let Some(path) = key("path") else {
        let fault = format!(
            "the patch for {0} names neither `git` nor `path`, and cargo takes nothing else in a patch: write `{0} = {{ git = \"{REPOSITORY}\" }}`",
            package.name
        );
        return ("a version".into(), Some(fault));
    };
    let manifest = from.join(path).join("Cargo.toml");
    let fault = match table(&manifest) {
        Err(_) => Some(format!(
            "the patch points to {path}, where there is no package: write the path of blitz-io's dropin/{}",
            package.name
        )),
        Ok(text) => {
            let is = toml::at(&text, &["package"])
                .and_then(|it| it.get("name")?.text().map(str::to_owned));
            (is.as_deref() != Some(package.name)).then(|| {
                format!(
                    "the patch points to the package `{}` in {path}: write the path of blitz-io's dropin/{}",
                    is.unwrap_or_default(),
                    package.name
                )
            })
        }
    };
    (format!("path {path}"), fault)
}

/// Returns the packages of a name in a lock file, with the packages that depend on them.
fn in_lock(lock: &Table, name: &str) -> Vec<Locked> {
    let packages = lock.get("package").map(Value::list).unwrap_or_default();
    let packages: Vec<&Table> = packages.iter().filter_map(Value::table).collect();
    let text = |table: &Table, key: &str| table.get(key).and_then(Value::text).map(str::to_owned);
    let named: Vec<_> =
        packages.iter().filter(|it| text(it, "name").as_deref() == Some(name)).collect();
    let locked = |one: &&&Table| {
        let version = text(one, "version").unwrap_or_default();
        let source = text(one, "source");
        let depends = |it: &&&Table| {
            let wanted = it.get("dependencies").map(Value::list).unwrap_or_default();
            wanted.iter().filter_map(Value::text).any(|entry| {
                // `tokio`, or `tokio 1.2.3` if there are several, or with the source.
                let mut words = entry.split(' ');
                words.next() == Some(name)
                    && words.next().is_none_or(|it| it == version)
                    && words
                        .next()
                        .is_none_or(|it| Some(it.trim_matches(['(', ')'])) == source.as_deref())
            })
        };
        let users = packages.iter().filter(depends).filter_map(|it| text(it, "name")).collect();
        Locked { version, source, users }
    };
    named.iter().map(locked).collect()
}

/// Returns the version of a patch that a lock file lists as unused.
fn unused_in(lock: &Table, name: &str) -> Option<String> {
    let unused = toml::at(lock, &["patch"])?.get("unused")?.list();
    let unused = unused.iter().filter_map(Value::table);
    let mut versions = unused.filter(|it| it.get("name").and_then(Value::text) == Some(name));
    Some(versions.next()?.get("version")?.text()?.to_owned())
}
