//! Runs a test again, alone, in a child process, so that environment variables, limits and threads
//! are not shared with other tests.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Output, Stdio},
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

const ROLE: &str = "BLITZ_IT_ROLE";

/// The variable that names an emulator and its arguments, where the system cannot run this program.
const RUNNER: &str = "BLITZ_IT_RUNNER";

/// Returns the role of this process, if it is a child.
pub(crate) fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// Returns a command that runs the test `name` (with its module) in the given `role`.
pub(crate) fn command(name: &str, role: &str) -> Command {
    let mut command = program();
    prepare(&mut command, role);
    command.args(arguments(name));
    command
}

/// Returns a command that runs this program.
pub(crate) fn program() -> Command {
    let this = env::current_exe().expect("a test has a program");
    let runner = env::var(RUNNER).unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(this) };
    let mut command = Command::new(first);
    command.args(words).arg(this);
    command
}

/// Sets the environment of a child.
pub(crate) fn prepare(command: &mut Command, role: &str) {
    command.env(ROLE, role).env("RUST_BACKTRACE", "0");
    command.env_remove("BLITZ_WORKER_THREADS").env_remove("TOKIO_WORKER_THREADS");
}

/// Returns the arguments that make the test program run one test and nothing else.
pub(crate) fn arguments(name: &str) -> [String; 5] {
    [name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"].map(str::to_owned)
}

/// Held for writing while a child starts. A child has copies of all descriptors until it executes
/// its program, so a descriptor that is closed meanwhile is not yet closed for its peers.
static STARTING: RwLock<()> = RwLock::new(());

/// Prevents children from starting while the guard lives, for tests whose peers must see a close at
/// once.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix use it"))]
pub(crate) fn none_starts() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child while no guard of [`none_starts`] is held.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    // The child has executed its program when this returns.
    command.spawn()
}

/// Runs a command and returns everything that it printed.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    start(command)?.wait_with_output()
}

/// Runs a command and returns everything that it printed. Whenever the child writes a line with
/// `mark` to standard error, one of its calls of [`until_confirmed`] returns.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix use it"))]
pub(crate) fn confirm_each(command: &mut Command, mark: &str) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command)?;
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let mut stderr = Vec::new();
    let mut lines = BufReader::new(child.stderr.take().expect("it is a pipe"));
    loop {
        let before = stderr.len();
        if lines.read_until(b'\n', &mut stderr)? == 0 {
            break;
        }
        if String::from_utf8_lossy(&stderr[before..]).contains(mark) {
            // The child may have ended, which its exit status shows.
            let _ = stdin.write_all(b"!");
        }
    }
    let output = child.wait_with_output()?;
    Ok(Output { stderr, ..output })
}

/// Waits, in the child, until the parent has read the next line with the mark.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix use it"))]
pub(crate) fn until_confirmed() {
    io::stdin().read_exact(&mut [0]).expect("the parent is there");
}

/// Runs a command that must succeed and must have run its test; returns everything it printed.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> String {
    has_succeeded(&output(command).expect("the test program starts"))
}

/// Returns everything a child printed, which must have succeeded and must have run its test.
#[track_caller]
pub(crate) fn has_succeeded(output: &Output) -> String {
    let text = text(output);
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
    text
}

/// Returns everything that a child printed.
pub(crate) fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Returns the number of descriptors of this process, without those of files in `/proc`: the watch
/// reads some of those now and then, on a thread of its own. For Linux.
#[allow(dead_code, reason = "other test programs use it")]
pub(crate) fn descriptors() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("Linux lists descriptors");
    let links = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| !link.starts_with("/proc")).count()
}

/// Returns the number of threads of this process.
#[cfg(target_os = "linux")]
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux lists threads").count()
}

/// Runs this test again in a process of its own; returns `true` in that process.
pub(crate) fn is_alone(name: &str) -> bool {
    if role().is_some() {
        return true;
    }
    succeed(&mut command(name, "is alone"));
    false
}
