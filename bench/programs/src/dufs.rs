//! The published file server dufs, installed twice: as it is, and with the drop-in patched in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pinned, because a recorded ratio is of one version.
const VERSION: &str = "=0.47.0";

/// A path within the published Tokio that the bench is pinned to. A program contains the paths of
/// the sources that can panic.
const IN_STOCK: &str = "/tokio-1.54.1/src/";

/// A path within blitz-io.
const IN_OURS: &str = "/crates/blitz-io/src/";

/// The served files, and their sizes.
const FILES: [(&str, usize); 2] = [("small", 1024), ("large", 10_000_000)];

/// The two programs, and the folder that they serve.
#[derive(Debug)]
pub(crate) struct Dufs {
    stock: PathBuf,
    dropin: PathBuf,
    folder: PathBuf,
}

impl Dufs {
    /// Installs both below this program's target folder, and makes the files that they serve.
    pub(crate) fn install(temporary: &Path) -> Result<Dufs, String> {
        let folder = temporary.join("served");
        let made = fs::create_dir(&folder).and_then(|()| {
            FILES.iter().try_for_each(|(name, size)| fs::write(folder.join(name), vec![7; *size]))
        });
        made.map_err(|why| format!("{}: {why}", folder.display()))?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dropin = root.join("../../dropin/tokio");
        let dropin = dropin.canonicalize().map_err(|why| format!("{}: {why}", dropin.display()))?;
        let patch = format!("patch.crates-io.tokio.path={:?}", dropin.display().to_string());
        let stock = installed(&root.join("target/dufs/stock"), &[])?;
        let dropin = installed(&root.join("target/dufs/dropin"), &["--config", &patch])?;
        linked(&stock, IN_STOCK, IN_OURS)?;
        linked(&dropin, IN_OURS, IN_STOCK)?;
        Ok(Dufs { stock, dropin, folder })
    }

    /// Returns the command that serves at a port. It prints where it listens, and no requests.
    pub(crate) fn serve(&self, dropin: bool, port: u16) -> Command {
        let program = if dropin { &self.dropin } else { &self.stock };
        let mut command = harness::child::command(program);
        command.arg(&self.folder).args(["--bind", "127.0.0.1", "--log-format", ""]);
        command.arg("--port").arg(port.to_string());
        command
    }
}

/// Installs dufs to a folder, and returns the program. The build is kept beside the folder, so that
/// the other installation shares what is without Tokio, and the next one compiles only what has
/// changed.
fn installed(root: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", "dufs", "--version", VERSION, "--no-default-features", "--force"]);
    cargo
        .args(["--quiet", "--root"])
        .arg(root)
        .arg("--target-dir")
        .arg(root.with_file_name("build"));
    // The lock file that dufs brings along would keep the patch from being used.
    cargo.args(arguments).stdout(Stdio::null());
    match cargo.status() {
        Ok(status) if status.success() => Ok(root.join("bin/dufs")),
        Ok(status) => Err(format!("cargo install dufs: {status}")),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// Returns an error unless a program contains one path and not the other.
fn linked(program: &Path, with: &str, without: &str) -> Result<(), String> {
    let bytes = fs::read(program).map_err(|why| format!("{}: {why}", program.display()))?;
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    match (has(with), has(without)) {
        (true, false) => Ok(()),
        _ => Err(format!("{} is linked with another Tokio than {with}", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[test]
    fn a_program_is_linked_with_what_it_has_the_paths_of() {
        let program = std::env::temp_dir().join(format!("bench-linked-{}", std::process::id()));
        std::fs::write(&program, b"\0/x/tokio-1.2/src/a.rs\0").expect("it can be written");
        assert_eq!(linked(&program, "/tokio-1.2/src/", "/blitz-io/src/"), Ok(()));
        assert!(linked(&program, "/blitz-io/src/", "/tokio-1.2/src/").is_err());
        std::fs::remove_file(program).expect("it was made above");
    }
}
