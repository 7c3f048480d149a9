//! Children: processes that measure one figure each.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::driver::Trial;
use crate::measure::Metric;

/// The outcome of a trial.
pub struct Figures {
    pub metrics: Vec<Metric>,
    /// A remark for the record's description of the method.
    pub remark: Option<String>,
}

/// Variables that would set a number of threads behind a row's back.
const OVERRIDES: [&str; 2] = ["RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS"];

/// Returns a command that starts a program of a comparison.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in OVERRIDES {
        command.env_remove(variable);
    }
    command
}

/// Starts a child and reads its figures, or returns why there are none.
pub fn figures(trial: &Trial) -> Result<Figures, String> {
    let mut command = command(trial.program);
    command.envs(trial.contender.environment.iter().copied());
    command.args(["--child", trial.contender.name, trial.row.name, &trial.workers.to_string()]);
    command.arg(trial.plan.budget().as_millis().to_string());
    let (out, err) = output(&mut command, trial.plan.comparison.time_out)?;
    let metrics: Vec<Metric> = out.lines().filter_map(Metric::parse).collect();
    match metrics.is_empty() {
        true => Err(format!("no figures: {}", err.lines().last().unwrap_or("no message"))),
        false => Ok(Figures { metrics, remark: None }),
    }
}

/// Runs a child. Returns its output and its errors, or why it failed.
pub fn output(command: &mut Command, time_out: Duration) -> Result<(String, String), String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| {
        format!("cannot start {}: {error}", command.get_program().to_string_lossy())
    })?;
    ended_in_time(child, time_out)
}

/// Waits for a child without polling, because the driver must not run beside it. Returns its output
/// and its errors, or why it failed.
fn ended_in_time(mut child: Child, time_out: Duration) -> Result<(String, String), String> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (ended, end) = mpsc::channel();
    let reader = thread::spawn(move || {
        let (mut out_text, mut err_text) = (String::new(), String::new());
        // A child writes a few lines at most, so neither pipe fills while the other is read to its
        // end. What cannot be read is missing from the figures.
        let _ = out.as_mut().map(|pipe| pipe.read_to_string(&mut out_text));
        let _ = err.as_mut().map(|pipe| pipe.read_to_string(&mut err_text));
        // There is no receiver after a time-out.
        let _ = ended.send((out_text, err_text));
    });
    let texts = end.recv_timeout(time_out);
    if texts.is_err() {
        // Fails if the child has ended already, which is fine.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("cannot wait for the child: {error}"))?;
    // The pipes are closed, so the reader has ended or is about to.
    let _ = reader.join();
    let (out, err) = texts.map_err(|_| format!("did not end within {} s", time_out.as_secs()))?;
    match status.success() {
        true => Ok((out, err)),
        false => Err(format!("{status}: {}", err.trim().replace('\n', " | "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_OUT: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("there is a shell")
    }

    #[test]
    fn a_child_that_hangs_is_ended_and_reported() {
        // `exec` makes the shell itself the sleeping process, so that none is left over.
        let ended = ended_in_time(shell("exec sleep 60"), Duration::from_millis(50));
        assert!(ended.expect_err("it hangs").contains("did not end"));
    }

    #[test]
    fn a_child_that_fails_is_reported_with_its_words() {
        let ended = ended_in_time(shell("echo no luck >&2; exit 3"), TIME_OUT);
        let why = ended.expect_err("it fails");
        assert!(why.contains('3') && why.contains("no luck"), "{why}");
    }

    #[test]
    fn a_child_that_ends_hands_over_its_output() {
        let ended = ended_in_time(shell("echo metric - ns 1 2"), TIME_OUT);
        assert_eq!(ended.expect("it ends well").0, "metric - ns 1 2\n");
    }
}
