//! The two builds of `conformance/differential`, and the proof of what each contains.
//!
//! The manifests are generated under `target/differential`, one for each side; both compile the
//! same sources. The drop-ins' side starts from the other's lock file without the packages that
//! are replaced, so that all other packages have the same version on both sides.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{Outcome, conformance::write, root, shell};

/// The packages that the drop-ins replace, with the folders of those.
const REPLACED: [(&str, &str); 2] =
    [("tokio", "dropin/tokio"), ("rayon-core", "dropin/rayon-core")];

/// Limit for one side's build; two minutes on two idle cores.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Which packages a build contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The published ones.
    Real,
    /// The drop-ins.
    DropIn,
}

impl Side {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Real, Self::DropIn].into_iter().find(|side| side.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::DropIn => "drop-in",
        }
    }

    fn folder(self) -> PathBuf {
        root().join("target/differential").join(self.name())
    }

    fn package(self) -> String {
        format!("differential-{}", self.name())
    }

    /// Returns the line that a binary of this side prints about itself.
    fn packages(self) -> Result<String, String> {
        let mut line = Vec::new();
        for (name, folder) in REPLACED {
            let version = match self {
                Self::Real => "published".to_owned(),
                Self::DropIn => version(&root().join(folder).join("Cargo.toml"))?,
            };
            line.push(format!("{name} {version}"));
        }
        Ok(line.join(" "))
    }
}

/// Returns the version that a manifest names.
fn version(manifest: &Path) -> Result<String, String> {
    let text = fs::read_to_string(manifest);
    let text = text.map_err(|why| format!("{}: {why}", manifest.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.ok_or_else(|| format!("{} has no version", manifest.display()))?;
    Ok(version.trim_matches('"').to_owned())
}

/// The two binaries.
#[derive(Debug)]
pub(super) struct Binaries {
    real: PathBuf,
    dropin: PathBuf,
}

impl Binaries {
    pub(super) fn of(&self, side: Side) -> &Path {
        match side {
            Side::Real => &self.real,
            Side::DropIn => &self.dropin,
        }
    }
}

/// Builds both sides and checks what they contain.
pub(super) fn both() -> Result<Binaries, String> {
    let real = Side::Real.folder().join("Cargo.lock");
    let dropin = Side::DropIn.folder().join("Cargo.lock");
    let read =
        |lock: &Path| fs::read_to_string(lock).map_err(|why| format!("{}: {why}", lock.display()));
    write_manifest(Side::Real)?;
    resolve(Side::Real)?;
    write_manifest(Side::DropIn)?;
    write(&dropin, &without_replaced(&read(&real)?))?;
    resolve(Side::DropIn)?;
    same_versions(&read(&real)?, &read(&dropin)?)?;
    Ok(Binaries { real: build(Side::Real)?, dropin: build(Side::DropIn)? })
}

fn write_manifest(side: Side) -> Outcome {
    let source = root().join("conformance/differential");
    let manifest = fs::read_to_string(source.join("Cargo.toml"));
    let manifest = manifest.map_err(|why| format!("conformance/differential: {why}"))?;
    write(&side.folder().join("Cargo.toml"), &manifest_of(side, &manifest, &root())?)
}

/// Returns the manifest of one side, made from that in `conformance/differential`.
fn manifest_of(side: Side, manifest: &str, root: &Path) -> Result<String, String> {
    let main = root.join("conformance/differential/src/main.rs").display().to_string();
    let mut text = manifest
        .replace("\nname = \"differential\"\n", &format!("\nname = {:?}\n", side.package()))
        .replace("path = \"src/main.rs\"", &format!("path = {main:?}"));
    match side {
        // The exact version that the drop-in's surface and the recorded floors belong to.
        Side::Real => {
            let pinned = text.replace("tokio = { version = \"", "tokio = { version = \"=");
            if pinned == text {
                return Err("conformance/differential/Cargo.toml names no version of tokio".into());
            }
            text = pinned;
        }
        Side::DropIn => {
            text = text.replace("dropin = []", "dropin = []\ndefault = [\"dropin\"]");
            text += "\n[patch.crates-io]\n";
            for (name, folder) in REPLACED {
                text += &format!("{name}.path = {:?}\n", root.join(folder).display().to_string());
            }
        }
    }
    Ok(text)
}

/// Brings a side's lock file up to date.
fn resolve(side: Side) -> Outcome {
    let mut command = shell::cargo();
    command.args(["metadata", "--quiet", "--format-version=1", "--manifest-path"]);
    let finished = shell::capture(command.arg(side.folder().join("Cargo.toml")), LIMIT)?;
    if finished.end.success() {
        return Ok(());
    }
    Err(format!("cargo cannot resolve {}:\n{}", side.package(), finished.stderr))
}

/// Returns a lock file without the packages that the drop-ins replace. With them, cargo would keep
/// the locked versions and leave the patch unused.
fn without_replaced(lock: &str) -> String {
    let replaced = |block: &&str| {
        let name = field(block, "name").unwrap_or_default();
        // The package itself has another name on the other side.
        REPLACED.iter().any(|(it, _)| *it == name) || name == Side::Real.package()
    };
    lock.split("\n\n").filter(|block| !replaced(block)).collect::<Vec<_>>().join("\n\n")
}

/// Returns the value of a line `name = "value"`.
fn field<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"');
    block.lines().find_map(value)
}

/// Returns the versions of each package in a lock file; a drop-in's is `None`.
fn versions(lock: &str) -> BTreeMap<&str, BTreeSet<Option<&str>>> {
    let mut versions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for block in lock.split("\n\n") {
        let Some(name) = field(block, "name") else { continue };
        let version = field(block, "source").and_then(|_| field(block, "version"));
        versions.entry(name).or_default().insert(version);
    }
    versions
}

/// Fails unless the lock files differ in nothing but what the drop-ins replace and bring along.
fn same_versions(real: &str, dropin: &str) -> Outcome {
    if dropin.contains("[[patch.unused]]") {
        return Err("cargo has not used the patch: a drop-in lacks a feature, or its version is \
                    below what is required"
            .into());
    }
    let (real, dropin) = (versions(real), versions(dropin));
    for (name, _) in REPLACED {
        let (real, dropin) = (real.get(name), dropin.get(name));
        if !real.is_some_and(|it| it.len() == 1 && !it.contains(&None))
            || dropin != Some(&BTreeSet::from([None]))
        {
            return Err(format!("`{name}` is not replaced: {real:?} became {dropin:?}"));
        }
    }
    for (name, version) in &real {
        let other = dropin.get(name).unwrap_or(version);
        if other != version && REPLACED.iter().all(|(it, _)| it != name) {
            return Err(format!("`{name}` has other versions: {version:?} became {other:?}"));
        }
    }
    Ok(())
}

/// Compiles a side and returns its binary, after the binary has said which side it is.
fn build(side: Side) -> Result<PathBuf, String> {
    let target = root().join("target/differential/build");
    let mut command = shell::cargo();
    command.args(["build", "--quiet", "--locked", "--manifest-path"]);
    command.arg(side.folder().join("Cargo.toml")).env("CARGO_TARGET_DIR", &target);
    let finished = shell::capture(&mut command, LIMIT)?;
    if !finished.end.success() {
        return Err(format!("{} does not compile:\n{}", side.package(), finished.stderr));
    }
    let name = format!("{}{}", side.package(), std::env::consts::EXE_SUFFIX);
    let binary = target.join("debug").join(name);
    let printed = shell::capture(Command::new(&binary).arg("side"), LIMIT)?.stdout;
    let wanted = side.packages()?;
    if printed.trim_end() == wanted {
        return Ok(binary);
    }
    Err(format!("{} contains `{}` instead of `{wanted}`", side.package(), printed.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{Side, manifest_of, same_versions, without_replaced};
    use crate::root;

    const REAL: &str = "version = 4\n\n[[package]]\nname = \"bytes\"\nversion = \"1.2.3\"\nsource = \"r\"\n\n\
        [[package]]\nname = \"rayon-core\"\nversion = \"1.13.0\"\nsource = \"r\"\n\n\
        [[package]]\nname = \"tokio\"\nversion = \"1.54.1\"\nsource = \"r\"\n";

    #[test]
    fn each_side_gets_its_packages() {
        let path = root().join("conformance/differential/Cargo.toml");
        let manifest = fs::read_to_string(path).unwrap();
        let of = |side| manifest_of(side, &manifest, Path::new("/here")).unwrap();
        let (real, dropin) = (of(Side::Real), of(Side::DropIn));
        assert!(real.contains("name = \"differential-real\"") && real.contains("version = \"=1."));
        assert!(!real.contains("[patch") && !real.contains("default = "));
        assert!(dropin.contains("tokio.path = \"/here/dropin/tokio\""), "{dropin}");
        assert!(dropin.contains("default = [\"dropin\"]"), "{dropin}");
        for text in [real, dropin] {
            assert!(text.contains("path = \"/here/conformance/differential/src/main.rs\""));
        }
    }

    #[test]
    fn other_versions_and_a_patch_that_is_not_used_are_noticed() {
        let dropin = REAL
            .replace("1.13.0\"\nsource = \"r\"", "1.13.0\"")
            .replace("1.54.1\"\nsource = \"r\"", "1.999.0\"");
        assert_eq!(same_versions(REAL, &dropin), Ok(()));
        assert!(same_versions(REAL, REAL).is_err());
        assert!(same_versions(&dropin, &dropin).is_err());
        assert!(same_versions(REAL, &dropin.replace("1.2.3", "1.2.4")).is_err());
        assert!(same_versions(REAL, &format!("{dropin}\n[[patch.unused]]\n")).is_err());
        let more = format!("{dropin}\n[[package]]\nname = \"loom\"\nversion = \"1\"\n");
        assert_eq!(same_versions(REAL, &more), Ok(()));
    }

    #[test]
    fn replaced_packages_are_taken_out_of_a_lock_file() {
        let rest = without_replaced(REAL);
        assert!(rest.contains("bytes") && !rest.contains("tokio") && !rest.contains("rayon"));
    }
}
