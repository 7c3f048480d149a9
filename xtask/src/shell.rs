//! Starts other programs: with a time limit, and with no process left behind.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{json::Json, root};

/// The interval between two checks of a child. Short against every limit we set, long enough to
/// cost nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns a command for the cargo that runs us, or the one on the path, started in the root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Set by `cargo run` for this package; a nested cargo must not inherit them.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME"] {
        command.env_remove(name);
    }
    command
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The child exited by itself.
    Exit(ExitStatus),
    /// We killed it, because its time was over.
    TimedOut,
}

impl End {
    /// Returns true if the child exited by itself with success.
    pub fn success(self) -> bool {
        matches!(self, End::Exit(status) if status.success())
    }
}

/// How a child ended, and its output.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs `command` with our own input and output, for at most `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<End, String> {
    run_with(command, limit, |_| ())
}

/// Runs `command` for at most `limit`, and calls `started` with the child first.
pub fn run_with(
    command: &mut Command,
    limit: Duration,
    started: impl FnOnce(&mut Child),
) -> Result<End, String> {
    command.stdin(Stdio::null());
    let mut child = command.spawn().map_err(|why| cannot_start(command, &why))?;
    started(&mut child);
    Ok(wait(child, limit))
}

/// Runs `command` and captures its output, for at most `limit`.
pub fn capture(command: &mut Command, limit: Duration) -> Result<Finished, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| cannot_start(command, &why))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let end = wait(child, limit);
    let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
    Ok(Finished { end, stdout: text(stdout), stderr: text(stderr) })
}

/// Runs `command`, a build by cargo, and returns the program of the target `name` of the package in
/// `folder`.
///
/// The folder is needed because two packages may have targets of one name, and the order in which
/// cargo names them differs from run to run.
pub fn build(command: &mut Command, folder: &str, name: &str) -> Result<PathBuf, String> {
    command.arg("--message-format=json-render-diagnostics");
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|why| cannot_start(command, &why))?;
    if !output.status.success() {
        return Err(format!("`{name}` of {folder} does not compile"));
    }
    program(&String::from_utf8_lossy(&output.stdout), &root().join(folder), name)
        .ok_or_else(|| format!("cargo named no program `{name}` of {folder}"))
}

/// Returns the program in cargo's messages that is the target `name` of the package in `folder`.
fn program(messages: &str, folder: &Path, name: &str) -> Option<PathBuf> {
    // The root may have been reached through a link.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    let chosen = |message: Json| {
        let manifest = Path::new(message.text("manifest_path")?);
        let named = message.get("target")?.text("name")? == name;
        let chosen = named && real(manifest.parent()?) == folder;
        chosen.then_some(PathBuf::from(message.text("executable")?))
    };
    messages.lines().filter_map(Json::read).filter_map(chosen).next_back()
}

fn cannot_start(command: &Command, why: &std::io::Error) -> String {
    let program = Path::new(command.get_program()).display();
    format!("cannot start `{program}`: {why}; install it or put it on the path")
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth printing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(mut child: Child, limit: Duration) -> End {
    let start = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return End::Exit(status);
        }
        if start.elapsed() >= limit {
            end_with_descendants(&mut child);
            return End::TimedOut;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Kills a child and its descendants, because killing cargo alone would leave its tests running.
///
/// A process group would do the same but would also take the child away from the terminal's
/// interrupt key.
fn end_with_descendants(child: &mut Child) {
    let mut victims = vec![child.id()];
    let mut next = 0;
    while let Some(&pid) = victims.get(next) {
        victims.extend(children_of(pid));
        next += 1;
    }
    for pid in &victims[1..] {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the children of a process, where the system lists them (Linux).
fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let text: String = lists.map(Result::unwrap_or_default).collect();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::{process::Command, time::Duration};

    use super::{End, capture};

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_exit_are_kept() {
        let finished =
            capture(&mut sh("echo out; echo err >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert!(!finished.end.success());
        assert_ne!(finished.end, End::TimedOut);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_time_out_ends_grandchildren_too() {
        // The pipe stays open as long as the grandchild lives, so that `capture` returns at all
        // proves that it was killed.
        let finished = capture(&mut sh("sleep 600 & wait"), Duration::from_millis(200)).unwrap();
        assert_eq!(finished.end, End::TimedOut);
    }

    #[test]
    fn a_program_is_chosen_by_its_package_whatever_the_order() {
        let message = |package: &str| {
            format!(
                r#"{{"manifest_path":"/a b/{package}/Cargo.toml","target":{{"name":"it"}},"executable":"/t/it-{package}"}}"#
            )
        };
        let (one, other) = (message("io"), message("io-compat"));
        for messages in [format!("{one}\n{other}"), format!("{other}\n{one}")] {
            let found = super::program(&messages, "/a b/io".as_ref(), "it");
            assert_eq!(found, Some("/t/it-io".into()));
        }
        assert_eq!(super::program(&one, "/a b/io".as_ref(), "os"), None);
    }

    #[test]
    fn a_missing_program_is_named() {
        let why = capture(&mut Command::new("no-such-program"), Duration::ZERO).unwrap_err();
        assert!(why.contains("no-such-program"), "{why}");
    }
}
