//! Repeats the reason of a failure at the end of a long output.
//!
//! A run of CI prints tens of thousands of lines, and what is kept of it is often only the end. So
//! the output of a command passes through [`Transcript`], which notes which tests failed and with
//! which message, and the last lines, for commands that fail in another way.

use std::{
    collections::{BTreeSet, VecDeque},
    io::{IsTerminal, Read, Write},
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::shell::{self, End};

/// The number of failures that are noted; the others are counted.
const FAILURES: usize = 8;

/// The number of last lines that are noted.
const LAST: usize = 6;

/// The number of bytes of a line that are noted.
const LONGEST: usize = 4096;

/// The time that a process which outlives the command may keep its output open.
const GRACE: Duration = Duration::from_secs(5);

/// The part of a command's output that says why it failed.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The first failed tests, each with its message once that was printed.
    failures: Vec<Failure>,
    /// The names of all failed tests.
    names: BTreeSet<String>,
    last: VecDeque<String>,
    /// True once the command has ended: what comes later, from a process that it left behind, is
    /// not passed on.
    is_over: bool,
}

#[derive(Debug)]
struct Failure {
    test: String,
    message: Option<String>,
}

/// One stream of lines, and where in libtest's output it is.
#[derive(Debug, Default)]
struct Position {
    /// The test whose output is being printed, after `---- NAME stdout ----`.
    section: Option<String>,
    /// The line above was the location of a panic, and the message follows.
    message_follows: bool,
}

impl Transcript {
    /// Notes a line of output.
    fn note(&mut self, line: &str, position: &mut Position) {
        if !line.trim().is_empty() {
            if self.last.len() == LAST {
                self.last.pop_front();
            }
            self.last.push_back(line.to_owned());
        }
        if let Some(test) = failed_test(line) {
            self.add(test);
        } else if let Some(test) = section(line) {
            *position = Position { section: Some(test.to_owned()), message_follows: false };
            self.add(test);
        } else if line.starts_with("test result:") {
            position.section = None;
        } else if let Some(test) = &position.section
            && let Some(failure) = self.failures.iter_mut().find(|failure| failure.test == *test)
        {
            position.message_follows = failure.note(line, position.message_follows);
        }
    }

    fn add(&mut self, test: &str) {
        if self.names.insert(test.to_owned()) && self.failures.len() < FAILURES {
            self.failures.push(Failure { test: test.to_owned(), message: None });
        }
    }

    /// Returns the reason of the failure: one line for each failed test, and the last lines, because
    /// the command may have ended for another reason.
    pub fn reason(&self) -> Vec<String> {
        let one = |failure: &Failure| {
            let message = failure.message.as_deref().unwrap_or("no message");
            format!("test {} failed: {message}", failure.test)
        };
        let mut lines: Vec<_> = self.failures.iter().map(one).collect();
        if self.names.len() > self.failures.len() {
            lines.push(format!("and {} more", self.names.len() - self.failures.len()));
        }
        if !lines.is_empty() {
            lines.push("the last lines:".to_owned());
        }
        lines.extend(self.last.iter().cloned());
        lines
    }
}

impl Failure {
    /// Notes a line of the test's own output. Returns true if the message of a panic follows.
    fn note(&mut self, line: &str, message_follows: bool) -> bool {
        if message_follows && let Some(message) = &mut self.message {
            message.push(' ');
            message.push_str(line);
            return false;
        }
        let Some((thread, location)) = panicked(line) else {
            if line.starts_with("Error: ") && self.message.is_none() {
                self.message = Some(line.to_owned());
            }
            return false;
        };
        // Other threads may panic on purpose.
        let is_ours = thread == self.test || self.message.is_none();
        if is_ours {
            self.message = Some(location.to_owned());
        }
        is_ours
    }
}

/// Returns the name in `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let test = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(test.strip_suffix(" - should panic").unwrap_or(test))
}

/// Returns the name in `---- NAME stdout ----`.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Returns the thread and the location in `thread 'NAME' (7) panicked at LOCATION:`.
fn panicked(line: &str) -> Option<(&str, &str)> {
    let (before, location) = line.split_once(" panicked at ")?;
    let thread = before.strip_prefix("thread '")?;
    Some((thread.rsplit_once('\'').map_or(thread, |(name, _)| name), location))
}

/// Runs `command` as [`shell::run`] does, its output passed on; returns what was noted of it, too.
pub fn run(command: &mut Command, limit: Duration) -> Result<(End, Transcript), String> {
    // Cargo sees a pipe where we may have a terminal.
    if std::io::stderr().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let noted = Arc::new(Mutex::new(Transcript::default()));
    let (ended, ends) = mpsc::channel();
    let end = shell::run_with(command, limit, |child| {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (one, other) = (noted.clone(), noted.clone());
        let other_ended = ended.clone();
        thread::spawn(move || pass_on(stdout, std::io::stdout(), &one, &ended));
        thread::spawn(move || pass_on(stderr, std::io::stderr(), &other, &other_ended));
    })?;
    let deadline = Instant::now() + GRACE;
    for _ in 0..2 {
        // An error means that a process the command left behind still holds its output: what was
        // printed until now is enough.
        let _ = ends.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
    let mut noted = lock(&noted);
    let noted = std::mem::replace(&mut *noted, Transcript { is_over: true, ..Default::default() });
    Ok((end, noted))
}

fn lock(noted: &Mutex<Transcript>) -> MutexGuard<'_, Transcript> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes output on as it comes, and notes its lines, until it ends.
fn pass_on(
    from: Option<impl Read>,
    mut to: impl Write,
    noted: &Mutex<Transcript>,
    ended: &mpsc::Sender<()>,
) {
    let mut position = Position::default();
    let (mut chunk, mut line) = (vec![0; 1 << 16], Vec::new());
    let mut from = from;
    while let Some(from) = &mut from {
        let count = match from.read(&mut chunk) {
            Ok(count @ 1..) => count,
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => continue,
            _ => break,
        };
        let mut noted = lock(noted);
        if noted.is_over {
            break;
        }
        // The command goes on even if our own output is closed.
        let _ = to.write_all(&chunk[..count]).and_then(|()| to.flush());
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(line.len());
            line.extend(part.iter().filter(|byte| **byte != b'\n').take(room));
            if part.ends_with(b"\n") {
                noted.note(String::from_utf8_lossy(&line).trim_end(), &mut position);
                line.clear();
            }
        }
    }
    let unfinished = String::from_utf8_lossy(&line);
    if !unfinished.is_empty() {
        lock(noted).note(&unfinished, &mut position);
    }
    // The receiver is gone if the grace was over.
    let _ = ended.send(());
}

#[cfg(test)]
mod tests {
    use super::{FAILURES, LAST, Position, Transcript};

    fn reason(output: &str) -> Vec<String> {
        let (mut transcript, mut position) = (Transcript::default(), Position::default());
        output.lines().for_each(|line| transcript.note(line, &mut position));
        transcript.reason()
    }

    #[test]
    fn a_failed_test_is_repeated_with_its_own_message() {
        let output = "\
running 2 tests
test a::good ... ok
test a::bad ... FAILED

failures:

---- a::bad stdout ----

thread 'worker' (7) panicked at src/b.rs:1:1:
on purpose

thread 'a::bad' (8) panicked at src/a.rs:7:9:
assertion `left == right` failed
  left: 1
thread 'worker' (9) panicked at src/b.rs:1:1:
on purpose
note: run with RUST_BACKTRACE=1

failures:
    a::bad

test result: FAILED. 1 passed; 1 failed
test os::good ... ok
";
        assert_eq!(
            reason(output)[..2],
            [
                "test a::bad failed: src/a.rs:7:9: assertion `left == right` failed",
                "the last lines:"
            ]
        );
    }

    #[test]
    fn without_a_failed_test_the_last_lines_are_repeated_and_blank_ones_are_not() {
        let lines: Vec<_> = (0..20).map(|number| format!("line {number}")).collect();
        let output = lines.join("\n\n") + "\n\n\n\n\n\n\n\n\n";
        assert_eq!(reason(&output), lines[20 - LAST..]);
    }

    #[test]
    fn a_test_that_hangs_after_one_that_failed_is_among_the_last_lines() {
        let reason = reason("test a ... FAILED\ntest b has been running for over 60 seconds\n");
        assert_eq!(reason.last().unwrap(), "test b has been running for over 60 seconds");
    }

    #[test]
    fn many_failures_are_counted_once_each() {
        let failed = |number| format!("test t{number} ... FAILED\n");
        let sections = |number| format!("---- t{number} stdout ----\n");
        let output: String = (0..20).map(failed).chain((0..20).map(sections)).collect();
        assert_eq!(reason(&output)[FAILURES], "and 12 more");
    }

    #[test]
    fn a_failed_should_panic_is_one_test() {
        let output = "test a - should panic ... FAILED\n---- a stdout ----\n";
        assert_eq!(reason(output)[..2], ["test a failed: no message", "the last lines:"]);
    }

    #[test]
    #[cfg(unix)]
    fn output_of_a_command_is_noted_also_without_a_line_end() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo one; printf two >&2; exit 3"]);
        let (end, transcript) =
            super::run(&mut command, std::time::Duration::from_secs(60)).unwrap();
        assert!(!end.success());
        let mut lines = transcript.reason();
        lines.sort();
        assert_eq!(lines, ["one", "two"]);
    }
}
