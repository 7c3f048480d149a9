//! Repeats the reason of a failure at the end of a long output.
//!
//! A run of CI prints tens of thousands of lines, and what is kept of it is often only the end. So
//! the output of a command passes through [`Transcript`], which notes which tests failed and with
//! which message, and the last lines, for commands that fail in another way.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use crate::shell::{self, End};

/// The number of failures that are noted; the others are counted.
const FAILURES: usize = 8;

/// The number of last lines that are noted.
const LAST: usize = 6;

/// The time that a process which outlives the command may keep its output open.
const GRACE: Duration = Duration::from_secs(5);

/// The part of a command's output that says why it failed.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Failed tests, each with its message once that was printed.
    failures: Vec<Failure>,
    /// The number of failures beyond [`FAILURES`].
    more: usize,
    last: VecDeque<String>,
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
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        if !line.trim().is_empty() {
            self.last.push_back(line.to_owned());
        }
        if let Some(test) = failed_test(line) {
            self.add(test);
        } else if let Some(test) = section(line) {
            position.section = Some(test.to_owned());
            position.message_follows = false;
            self.add(test);
        } else if let Some(test) = &position.section {
            let failure = self.failures.iter_mut().find(|failure| failure.test == *test);
            if line.starts_with("test result:") {
                position.section = None;
            } else if let Some(failure) = failure {
                match &mut failure.message {
                    None => failure.message = location(line).map(str::to_owned),
                    Some(message) if position.message_follows => {
                        message.push(' ');
                        message.push_str(line);
                    }
                    Some(_) => {}
                }
                position.message_follows = location(line).is_some();
            }
        }
    }

    fn add(&mut self, test: &str) {
        if self.failures.iter().any(|failure| failure.test == test) {
        } else if self.failures.len() == FAILURES {
            self.more += 1;
        } else {
            self.failures.push(Failure { test: test.to_owned(), message: None });
        }
    }

    /// Returns the reason of the failure: one line for each failed test, or the last lines.
    pub fn reason(&self) -> Vec<String> {
        if self.failures.is_empty() {
            return self.last.iter().cloned().collect();
        }
        let one = |failure: &Failure| {
            let message = failure.message.as_deref().unwrap_or("no message");
            format!("test {} failed: {message}", failure.test)
        };
        let mut lines: Vec<_> = self.failures.iter().map(one).collect();
        if self.more > 0 {
            lines.push(format!("and {} more", self.more));
        }
        lines
    }
}

/// Returns the name in `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Returns the name in `---- NAME stdout ----`.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Returns the location in `thread 'NAME' panicked at LOCATION:`, or the whole of an `Error:` line.
fn location(line: &str) -> Option<&str> {
    match line.split_once("panicked at ") {
        Some((_, location)) => Some(location),
        None => line.starts_with("Error: ").then_some(line),
    }
}

/// Runs `command` as [`shell::run`] does, its output passed on; returns what was noted of it, too.
pub fn run(command: &mut Command, limit: Duration) -> Result<(End, Transcript), String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let noted = Arc::new(Mutex::new(Transcript::default()));
    let (ended, ends) = mpsc::channel();
    let (stdout, stderr) = (noted.clone(), noted.clone());
    let other = ended.clone();
    let end = shell::run_with(command, limit, |child| {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        thread::spawn(move || pass_on(out, std::io::stdout(), &stdout, &ended));
        thread::spawn(move || pass_on(err, std::io::stderr(), &stderr, &other));
    })?;
    for _ in 0..2 {
        // An error means that a process the command left behind still holds its output: what was
        // printed until now is enough.
        let _ = ends.recv_timeout(GRACE);
    }
    let noted = std::mem::take(&mut *noted.lock().unwrap_or_else(|poison| poison.into_inner()));
    Ok((end, noted))
}

fn pass_on(
    from: Option<impl Read>,
    mut to: impl Write,
    noted: &Mutex<Transcript>,
    ended: &mpsc::Sender<()>,
) {
    let mut position = Position::default();
    let mut line = Vec::new();
    let mut from = from.map(BufReader::new);
    while let Some(from) = &mut from {
        line.clear();
        if !matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
            break;
        }
        // The command goes on even if our own output is closed.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        let text = String::from_utf8_lossy(&line);
        let mut noted = noted.lock().unwrap_or_else(|poison| poison.into_inner());
        noted.note(text.trim_end(), &mut position);
    }
    let _ = ended.send(());
}

#[cfg(test)]
mod tests {
    use super::{LAST, Position, Transcript};

    fn reason(output: &str) -> Vec<String> {
        let (mut transcript, mut position) = (Transcript::default(), Position::default());
        output.lines().for_each(|line| transcript.note(line, &mut position));
        transcript.reason()
    }

    #[test]
    fn a_failed_test_is_repeated_with_its_message() {
        let output = "\
running 2 tests
test a::good ... ok
test a::bad ... FAILED

failures:

---- a::bad stdout ----

thread 'a::bad' panicked at src/a.rs:7:9:
assertion `left == right` failed
  left: 1
note: run with RUST_BACKTRACE=1

failures:
    a::bad

test result: FAILED. 1 passed; 1 failed
test os::good ... ok
";
        assert_eq!(
            reason(output),
            ["test a::bad failed: src/a.rs:7:9: assertion `left == right` failed"]
        );
    }

    #[test]
    fn without_a_failed_test_the_last_lines_are_repeated() {
        let lines: Vec<_> = (0..20).map(|number| format!("line {number}")).collect();
        assert_eq!(reason(&lines.join("\n\n")), lines[20 - LAST..]);
    }

    #[test]
    fn many_failures_are_counted() {
        let lines: Vec<_> = (0..20).map(|number| format!("test t{number} ... FAILED")).collect();
        let reason = reason(&lines.join("\n"));
        assert_eq!(reason.len(), super::FAILURES + 1);
        assert_eq!(reason.last().unwrap(), "and 12 more");
    }

    #[test]
    #[cfg(unix)]
    fn output_of_a_command_is_noted() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let (end, transcript) =
            super::run(&mut command, std::time::Duration::from_secs(60)).unwrap();
        assert!(!end.success());
        let mut lines = transcript.reason();
        lines.sort();
        assert_eq!(lines, ["one", "two"]);
    }
}
