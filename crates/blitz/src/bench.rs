//! `blitz bench`: runs the comparison in `bench/` of a checkout.
//!
//! The comparison is a workspace of its own, because it links the other
//! runtimes; so it is built and run through Cargo, as `cargo xtask bench` does.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The comparison's manifest, relative to the root of a checkout.
const MANIFEST: &str = "bench/sched/Cargo.toml";

/// Text of `blitz bench --help`: the arguments of `bench/sched`.
pub(crate) const HELP: &str = "\
usage: blitz bench [option]...

Builds the comparison in bench/sched of a checkout of blitz-io, which takes minutes the first
time, and runs it: the same work on blitz-io, Tokio, smol and Go.

  --quick             fewer rounds, for a first look
  --only ROW,...      these rows alone (bench/README.md lists them)
  --contenders A,...  these contenders alone
  --workers N         the number of workers
  --rounds N          the number of rounds
  --out DIR           where the record goes
  --name NAME         the record's name
  --no-record         shows the figures and writes no record
";

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let Ok(here) = std::env::current_dir() else {
        eprintln!("blitz: the current directory cannot be read; change to a checkout of blitz-io");
        return ExitCode::FAILURE;
    };
    let Some(manifest) = find(&here) else {
        eprintln!(
            "blitz: no `{MANIFEST}` in {} or above: run `blitz bench` inside a checkout of blitz-io",
            here.display()
        );
        return ExitCode::FAILURE;
    };
    // Cargo sets this for the programs that it runs; otherwise the one on the path is used.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = command(&cargo, &manifest, arguments);
    match child.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        // Cargo and the benchmark have already printed what went wrong.
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            eprintln!(
                "blitz: cannot start `{}`: {error}; install Rust or put cargo on the path",
                cargo.to_string_lossy()
            );
            ExitCode::FAILURE
        }
    }
}

/// Returns the manifest in this directory or the nearest one above that has it.
fn find(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(MANIFEST)).find(|manifest| manifest.is_file())
}

fn command(cargo: &OsStr, manifest: &Path, arguments: &[OsString]) -> Command {
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--manifest-path"]).arg(manifest).args(["--", "run"]);
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs, path::Path};

    use super::{HELP, MANIFEST, command, find};

    /// The comparison is another workspace, so its source is read instead of called.
    #[test]
    fn every_option_of_the_comparison_is_explained() {
        let plan = include_str!("../../../bench/harness/src/plan.rs");
        let options = plan.lines().filter_map(|line| {
            let (option, _) = line.trim().strip_prefix("\"--")?.split_once("\" => ")?;
            Some(format!("  --{option} "))
        });
        let options: Vec<_> = options.collect();
        assert!(options.len() >= 8, "the options are written another way: {options:?}");
        for option in options {
            assert!(HELP.contains(&option), "{option} is not explained");
        }
    }

    #[test]
    fn the_manifest_is_found_from_below_and_not_from_outside() {
        let root = std::env::temp_dir().join(format!("blitz-bench-{}", std::process::id()));
        let below = root.join("checkout/crates/deep");
        fs::create_dir_all(&below).unwrap();
        fs::create_dir_all(root.join("checkout/bench/sched")).unwrap();
        let manifest = root.join("checkout").join(MANIFEST);
        assert_eq!(find(&below), None, "a folder alone is not a manifest");
        fs::write(&manifest, "").unwrap();
        assert_eq!(find(&below), Some(manifest));
        assert_eq!(find(&root), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn arguments_come_after_run() {
        let command = command(
            OsStr::new("cargo"),
            Path::new("b/Cargo.toml"),
            &["--only".into(), "x y".into()],
        );
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let expected =
            ["run", "--release", "--manifest-path", "b/Cargo.toml", "--", "run", "--only", "x y"];
        assert_eq!(words, expected);
    }
}
