//! One run of one case: a process of its own in an empty directory.

use std::{
    env, fmt, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The interval between two checks of a process. Most cases end within a few of these.
const POLL_INTERVAL: Duration = Duration::from_millis(3);

/// Directories for one case at a time; removed when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Creates the directories of a slot. They are short, because paths of Unix sockets must be.
    pub(super) fn new(slot: usize) -> Result<Self, String> {
        let name = format!("differential-{}-{slot}", std::process::id());
        let scratch = Self { folder: env::temp_dir().join(name) };
        fs::create_dir_all(&scratch.folder).map_err(|why| scratch.error(&why))?;
        Ok(scratch)
    }

    /// Returns the working directory, which is the same for both sides and empty.
    fn fresh(&self) -> Result<PathBuf, String> {
        let inside = self.folder.join("case");
        if inside.exists() {
            fs::remove_dir_all(&inside).map_err(|why| self.error(&why))?;
        }
        fs::create_dir(&inside).map_err(|why| self.error(&why))?;
        Ok(inside)
    }

    fn output(&self, name: &str) -> Result<(File, PathBuf), String> {
        let path = self.folder.join(name);
        Ok((File::create(&path).map_err(|why| self.error(&why))?, path))
    }

    fn error(&self, why: &std::io::Error) -> String {
        format!("{}: {why}", self.folder.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error only leaves files in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Exit(ExitStatus),
    /// Killed after this time.
    Hang(Duration),
}

impl End {
    /// Returns true if a panic reached `main`, as far as the exit status shows.
    pub(super) fn is_panic(self) -> bool {
        matches!(self, Self::Exit(status) if status.code() == Some(101))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hang(limit) => write!(f, "HANG: no end in {} s", limit.as_secs()),
            Self::Exit(status) => match status.code() {
                Some(code) => write!(f, "exit status {code}"),
                None => write!(f, "{}", signal_of(status)),
            },
        }
    }
}

#[cfg(unix)]
fn signal_of(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    status.signal().map_or_else(|| status.to_string(), |signal| format!("signal {signal}"))
}

#[cfg(not(unix))]
fn signal_of(status: &ExitStatus) -> String {
    status.to_string()
}

/// The observable result of a run.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) end: End,
    pub(super) stdout: String,
    /// For the report; not compared.
    pub(super) stderr: String,
}

impl Observed {
    /// Returns what is compared: standard output, then a line that says how the process ended.
    pub(super) fn transcript(&self) -> String {
        let newline = match self.stdout.ends_with('\n') || self.stdout.is_empty() {
            true => "",
            false => "\n[no newline]\n",
        };
        format!("{}{newline}[{}]\n", self.stdout, self.end)
    }
}

/// Runs a case once.
pub(super) fn observe(
    binary: &Path,
    case: &str,
    limit: Duration,
    scratch: &Scratch,
) -> Result<Observed, String> {
    let mut command = Command::new(binary);
    command.args(["run", case]);
    run(command, limit, scratch)
}

fn run(mut command: Command, limit: Duration, scratch: &Scratch) -> Result<Observed, String> {
    // Files instead of pipes: a process that a case leaves behind would keep a pipe open.
    let (stdout, stdout_path) = scratch.output("stdout")?;
    let (stderr, stderr_path) = scratch.output("stderr")?;
    command.current_dir(scratch.fresh()?).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    // A clean environment, so that a user's settings do not change a result.
    command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("LANG", "C");
    own_group(&mut command);
    let program = Path::new(command.get_program()).display().to_string();
    let child = command.spawn().map_err(|why| format!("cannot start {program}: {why}"))?;
    let end = wait(child, limit)?;
    let text = |path: &Path| {
        let bytes = fs::read(path).map_err(|why| scratch.error(&why))?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Observed { end, stdout: text(&stdout_path)?, stderr: text(&stderr_path)? })
}

/// Puts a process into a group of its own, so that the processes it starts can be killed with it.
fn own_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

fn wait(mut child: Child, limit: Duration) -> Result<End, String> {
    let start = Instant::now();
    let group = child.id();
    let end = loop {
        if let Some(status) = child.try_wait().map_err(|why| why.to_string())? {
            break End::Exit(status);
        }
        if start.elapsed() >= limit {
            break End::Hang(limit);
        }
        thread::sleep(POLL_INTERVAL);
    };
    end_group(group);
    // After a hang; an error means that it has ended already.
    let _ = child.kill();
    let _ = child.wait();
    Ok(end)
}

/// Kills what is left of a group. Usually nothing is, and `kill` fails.
fn end_group(group: u32) {
    if cfg!(unix) {
        let mut kill = Command::new("kill");
        kill.args(["-9", "--", &format!("-{group}")]);
        let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        process::Command,
        thread,
        time::{Duration, Instant},
    };

    use super::{Observed, Scratch, run};

    fn sh(script: &str, limit: Duration, slot: usize) -> Observed {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, &Scratch::new(slot).unwrap()).unwrap()
    }

    #[test]
    fn a_transcript_ends_with_the_way_the_process_ended() {
        let run = |script| sh(script, Duration::from_secs(60), 10).transcript();
        assert_eq!(run("echo a; exit 3"), "a\n[exit status 3]\n");
        assert_eq!(run("printf a"), "a\n[no newline]\n[exit status 0]\n");
        assert_eq!(run("kill -9 $$"), "[signal 9]\n");
        assert_eq!(run("ls -A; echo x >left; echo $HOME"), "\n[exit status 0]\n");
    }

    #[test]
    fn a_hang_is_ended_and_so_is_what_a_case_leaves_behind() {
        let limit = Duration::from_millis(300);
        let hang = sh("echo a; sleep 600", limit, 11);
        assert!(hang.transcript().starts_with("a\n[HANG"), "{hang:?}");
        // The process that is left behind prints nothing and has no parent that waits for it.
        let left = sh("sleep 600 & echo $!", Duration::from_secs(60), 11);
        let path = format!("/proc/{}/stat", left.stdout.trim());
        let start = Instant::now();
        loop {
            // The process ends some time after the signal, and is a zombie until init has reaped
            // it.
            let state = std::fs::read_to_string(&path).unwrap_or_default();
            if state.is_empty() || state.contains(") Z") || state.contains(") X") {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "still there: {state}");
            thread::yield_now();
        }
    }
}
