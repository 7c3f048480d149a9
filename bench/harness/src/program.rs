//! Builds the programs of contenders that cannot be in one program with the others.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that measures a contender.
#[derive(Clone, Copy)]
pub enum Program {
    /// The program that also drives the comparison.
    This,
    /// The program that also drives the comparison, if blitz-io is compiled into it.
    Blitz,
    /// A module of Go in a folder, given as seen from the comparison's own, if `go` is on PATH.
    Go { folder: &'static str },
    /// A workspace below the comparison's own: its folder, and the name of its program. It has a
    /// lock file of its own, and so can have another version of a package.
    Beside { folder: &'static str, binary: &'static str },
}

/// Builds the module of Go in `folder` under the name `name`, beside this program. Also returns the
/// version of Go.
pub fn build_go(folder: &Path, name: &str) -> Result<(PathBuf, String), String> {
    let version = Command::new("go").arg("version").output();
    let version = version.map_err(|_| "there is no `go` on PATH".to_string())?;
    let version = String::from_utf8_lossy(&version.stdout).trim().replace("go version ", "");
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = this.with_file_name(name);
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(folder);
    match build.output() {
        Ok(built) if built.status.success() => Ok((program, version)),
        Ok(built) => Err(format!("go build: {}", String::from_utf8_lossy(&built.stderr).trim())),
        Err(error) => Err(format!("go build: {error}")),
    }
}

/// Builds the workspace in `folder` in release, and returns the path of its program.
pub fn build_beside(folder: &Path, binary: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet"]).current_dir(folder);
    cargo.env_remove("CARGO_TARGET_DIR");
    match cargo.status() {
        Ok(status) if status.success() => Ok(folder.join("target/release").join(binary)),
        Ok(status) => Err(format!("{} does not build: {status}", folder.display())),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}
