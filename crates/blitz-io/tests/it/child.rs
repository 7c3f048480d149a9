//! A test that runs again, alone, in a process of its own: with variables, limits
//! and threads that are nobody else's.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Output, Stdio},
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

const ROLE: &str = "BLITZ_IT_ROLE";

/// A command that runs this program where the system cannot: an emulator and its arguments.
const RUNNER: &str = "BLITZ_IT_RUNNER";

/// The part that this process plays, if it is a child.
pub(crate) fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// A command that runs the test `name` (with its module) in the part of `role`.
pub(crate) fn command(name: &str, role: &str) -> Command {
    let mut command = program();
    prepare(&mut command, role);
    command.args(arguments(name));
    command
}

/// This program, once more.
pub(crate) fn program() -> Command {
    let this = env::current_exe().expect("a test has a program");
    let runner = env::var(RUNNER).unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(this) };
    let mut command = Command::new(first);
    command.args(words).arg(this);
    command
}

/// The environment of a child.
pub(crate) fn prepare(command: &mut Command, role: &str) {
    command.env(ROLE, role).env("RUST_BACKTRACE", "0");
    command.env_remove("BLITZ_WORKER_THREADS").env_remove("TOKIO_WORKER_THREADS");
}

/// What the test program needs to run one test and nothing else.
pub(crate) fn arguments(name: &str) -> [String; 5] {
    [name, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"].map(str::to_owned)
}

/// A child that starts has copies of all descriptors until it is executed: what is closed
/// meanwhile is not closed for others.
static STARTING: RwLock<()> = RwLock::new(());

/// While it lives, no child starts: for tests to whose peers a close must be known at once.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix ask for it"))]
pub(crate) fn none_starts() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Starts it, while nobody minds.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    // It is executed when this returns.
    command.spawn()
}

/// Runs it; the answer is all that it printed.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    start(command)?.wait_with_output()
}

/// The same; and whenever it has written a line to standard error that has `mark` in it, its
/// [`until_answered`] returns.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix ask for it"))]
pub(crate) fn answer_each(command: &mut Command, mark: &str) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command)?;
    let mut answers = child.stdin.take().expect("it is a pipe");
    let mut stderr = Vec::new();
    let mut lines = BufReader::new(child.stderr.take().expect("it is a pipe"));
    loop {
        let before = stderr.len();
        if lines.read_until(b'\n', &mut stderr)? == 0 {
            break;
        }
        if String::from_utf8_lossy(&stderr[before..]).contains(mark) {
            // It may have ended, which its own end tells.
            let _ = answers.write_all(b"!");
        }
    }
    let output = child.wait_with_output()?;
    Ok(Output { stderr, ..output })
}

/// In the child: returns when the parent has read the next line that it waits for.
#[cfg_attr(not(unix), allow(dead_code, reason = "only tests of Unix ask for it"))]
pub(crate) fn until_answered() {
    io::stdin().read_exact(&mut [0]).expect("the parent is there");
}

/// What it printed, if it ended well and ran its test.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> String {
    has_succeeded(&output(command).expect("the test program starts"))
}

/// What it printed, if it ended well and ran its test.
#[track_caller]
pub(crate) fn has_succeeded(output: &Output) -> String {
    let text = text(output);
    assert!(output.status.success(), "{}: {text}", output.status);
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
    text
}

/// Everything that a child printed.
pub(crate) fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// The threads of this process.
#[cfg(target_os = "linux")]
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux lists threads").count()
}
