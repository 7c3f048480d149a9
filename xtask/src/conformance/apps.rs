//! Whole programs on the drop-in: those of `conformance/apps`, which are not aware of it.
//!
//! They are copied to `target/conformance/apps`. There the patch lines are written with this
//! checkout's path, or left out for the real Tokio, and a test is added that proves which one is
//! linked. The programs' own tests start them and drive them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    dependents::copy,
    failures,
    suite::{MARKER, Tokio, marker, resolve, write},
};
use crate::{Outcome, model::passed, root, shell};

/// Limit for compiling and running; SQLite alone is a minute of C.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Runs `cargo xtask conformance --apps`.
pub(super) fn main(arguments: &[String]) -> Outcome {
    let start = Instant::now();
    let tokio = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Tokio::DropIn,
        ["--upstream"] => Tokio::Upstream,
        _ => return Err("--apps takes --upstream or nothing; see --help".into()),
    };
    let folder = prepare(tokio)?;
    resolve(&folder, &[], tokio)?;
    let mut command = shell::cargo();
    command.args(["test", "--workspace", "--no-fail-fast", "--manifest-path"]);
    command.arg(folder.join("Cargo.toml"));
    command.env("CARGO_TARGET_DIR", root().join("target/conformance/build"));
    let finished = shell::capture(&mut command, LIMIT)?;
    let failed = failures(&finished.stdout);
    if !finished.end.success() {
        println!("{}{}", finished.stdout, finished.stderr);
        return Err(match &failed[..] {
            [] => "the programs do not compile, or hang".into(),
            failed => format!("these fail: {}", failed.join(", ")),
        });
    }
    if tokio == Tokio::DropIn
        && !finished.stdout.contains("test the_drop_in_is_what_is_built ... ok")
    {
        return Err("another `tokio` is linked: the marker's test did not run".into());
    }
    let count = passed(&finished.stdout) - usize::from(tokio == Tokio::DropIn);
    // A run in which no test ran proves nothing.
    if count == 0 {
        return Err("no test of a program ran".into());
    }
    println!("{count} tests of programs in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Copies the programs, with the patch or without.
fn prepare(tokio: Tokio) -> Result<PathBuf, String> {
    let source = root().join("conformance/apps");
    let kind = if tokio == Tokio::DropIn { "dropin" } else { "upstream" };
    let folder = root().join("target/conformance/apps").join(kind);
    let text = |path: &Path| {
        fs::read_to_string(path).map_err(|why| format!("cannot read {}: {why}", path.display()))
    };
    let manifest = patched(&text(&source.join("Cargo.toml"))?, tokio)?;
    write(&folder.join("Cargo.toml"), &manifest)?;
    for member in members(&manifest) {
        let (from, to) = (source.join(&member), folder.join(&member));
        copy(&from, &to).map_err(|why| format!("cannot copy {member}: {why}"))?;
        write(&to.join("Cargo.toml"), &text(&from.join("Cargo.toml"))?)?;
        write(&to.join(format!("tests/{MARKER}.rs")), &marker(tokio)?)?;
    }
    Ok(folder)
}

/// Returns the root's manifest with this checkout's path, or without a patch. The patch must be the
/// last section of the manifest.
fn patched(manifest: &str, tokio: Tokio) -> Result<String, String> {
    let (rest, patch) = manifest
        .split_once("[patch.crates-io]\n")
        .ok_or("conformance/apps/Cargo.toml has no [patch.crates-io]: that is what it shows")?;
    if patch.lines().count() != 1 || !patch.starts_with("tokio = ") {
        return Err("conformance/apps/Cargo.toml has more below its patch than one line".into());
    }
    Ok(match tokio {
        Tokio::Upstream => rest.to_owned(),
        Tokio::DropIn => {
            let path = root().join("dropin/tokio").display().to_string();
            format!("{rest}[patch.crates-io]\ntokio = {{ path = {path:?} }}\n")
        }
    })
}

/// Returns the folders of a workspace's members, which must be written in one line.
fn members(manifest: &str) -> Vec<String> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("members = "));
    line.unwrap_or_default().split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Tokio, members, patched};
    use crate::root;

    #[test]
    fn the_programs_get_the_patch_or_the_real_tokio() {
        let manifest = std::fs::read_to_string(root().join("conformance/apps/Cargo.toml")).unwrap();
        assert_eq!(members(&manifest), ["service"]);
        let ours = patched(&manifest, Tokio::DropIn).unwrap();
        assert!(ours.ends_with("dropin/tokio\" }\n"), "{ours}");
        assert!(!patched(&manifest, Tokio::Upstream).unwrap().contains("[patch"));
        assert!(patched("[workspace]\n", Tokio::DropIn).is_err());
        assert!(patched("[patch.crates-io]\ntokio = 1\nother = 1\n", Tokio::DropIn).is_err());
    }

    /// The two lines are the ones that the README gives to users.
    #[test]
    fn the_readme_shows_the_same_lines() {
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        assert!(readme.contains("[patch.crates-io]\ntokio = {"), "the README shows other lines");
    }
}
