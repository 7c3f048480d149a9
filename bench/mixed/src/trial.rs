//! Starts a server and a client for each figure.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use harness::child::{self, Figures};
use harness::{Metric, Plan, Row, Trial};

use crate::client::Load;
use crate::{Client, setting};

/// Measures a contender once.
pub(crate) fn trial(trial: &Trial) -> Result<Figures, String> {
    let runtime = if trial.contender.name.starts_with("blitz") { "blitz" } else { "tokio" };
    let mut server = child::command(trial.program);
    server.args(["--server", runtime]).args(setting(trial.row).0);
    let load = load(trial.plan, trial.row);
    let mut figures = talk(server, trial.this, load, trial.plan.budget())?;
    figures.metrics.extend(cpu_per_operation(&figures.metrics));
    Ok(figures)
}

/// Describes the method; `precedence` is the client's nice value.
pub(crate) fn how(plan: &Plan, precedence: Option<&str>) -> String {
    format!(
        "{} rounds, spans of {} ms, {} connections of a client with a nice value of {}, \
         {} requests a second where the rate is fixed",
        plan.rounds(false),
        plan.budget().as_millis(),
        plan.extra("--connections"),
        precedence.unwrap_or("unknown"),
        plan.extra("--rate")
    )
}

/// Returns the client's part of a row.
fn load(plan: &Plan, row: &Row) -> Option<Load> {
    let (server, client) = setting(row);
    let rate = match client {
        Client::None => return None,
        Client::FixedRate => Some(plan.extra("--rate") as u32),
        Client::ClosedLoop => None,
    };
    let (connections, heavy) = (plan.extra("--connections"), server[0] == "computing");
    // Threads start, and the sorter's pages become resident.
    let warm = Duration::from_millis(300);
    Some(Load { connections, rate, heavy, warm, span: plan.budget() })
}

/// A child whose output is read line by line. It is killed when dropped, and ends by itself if it
/// hangs.
struct Talker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talker {
    fn start(mut command: Command) -> Result<Talker, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("it has no output")?;
        Ok(Talker { child, lines: BufReader::new(output).lines() })
    }

    /// Reads the next line, which must begin with `word`, and returns the rest.
    fn hear(&mut self, word: &str) -> Result<String, String> {
        let line = self.lines.next().ok_or("it ended early")?.map_err(|error| error.to_string())?;
        let rest = line.strip_prefix(word).map(|rest| rest.trim().to_owned());
        rest.ok_or(format!("it said {line:?} instead of {word}"))
    }

    fn send(&mut self, word: &str) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("it has no input")?;
        writeln!(input, "{word}").map_err(|error| error.to_string())
    }

    /// Reads the figures that it prints before it ends.
    fn figures(mut self) -> Result<Vec<Metric>, String> {
        let lines: Result<Vec<String>, _> = self.lines.by_ref().collect();
        let lines = lines.map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(status.to_string());
        }
        let metrics: Option<Vec<Metric>> = lines.iter().map(|line| Metric::parse(line)).collect();
        metrics.ok_or(format!("it said {lines:?}"))
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Fails if the child has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one server, and its client if it has one.
fn talk(
    server: Command,
    client: &Path,
    load: Option<Load>,
    span: Duration,
) -> Result<Figures, String> {
    let of = |role: &'static str| move |why: String| format!("the {role}: {why}");
    let mut server = Talker::start(server).map_err(of("server"))?;
    let port = server.hear("port").map_err(of("server"))?;
    let Some(load) = load else {
        // Until the threads have started and the pages are resident.
        std::thread::sleep(Duration::from_millis(300));
        server.send("start").map_err(of("server"))?;
        std::thread::sleep(span);
        server.send("stop").map_err(of("server"))?;
        let metrics = server.figures().map_err(of("server"))?;
        return Ok(Figures { metrics, remark: None });
    };
    let mut client = child::command(client);
    client.args(["--client", &port]).args(load.words());
    let mut client = Talker::start(client).map_err(of("client"))?;
    let precedence = client.hear("go").map_err(of("client"))?;
    server.send("start").map_err(of("server"))?;
    let mut metrics = client.figures().map_err(of("client"))?;
    server.send("stop").map_err(of("server"))?;
    metrics.extend(server.figures().map_err(of("server"))?);
    Ok(Figures { metrics, remark: Some(precedence) })
}

/// Returns the server's processor time for each sort, or for each echo if it makes no sorts. The
/// cost of echoes beside sorts is included in the sorts': at a fixed rate it is the same for all.
fn cpu_per_operation(metrics: &[Metric]) -> Option<Metric> {
    let value = |name: &str| metrics.iter().find(|it| it.name == name).map(|it| it.value);
    let cpu_ms = value("cpu")?;
    match value("sorts") {
        // No sort ended in the span.
        Some(0.0) => None,
        Some(sorts) => Some(Metric::new("cpu_per_sort", "ms", cpu_ms / sorts, None)),
        None => Some(Metric::new("cpu_per_echo", "us", cpu_ms * 1e3 / value("echoes")?, None)),
    }
}

#[cfg(test)]
mod tests {
    use harness::{Metric, Plan};

    use super::{cpu_per_operation, load};

    #[test]
    fn processor_time_is_that_of_a_sort_if_there_are_sorts() {
        let metric = |name, value| Metric::new(name, "", value, None);
        let mut metrics = vec![metric("echoes", 500.0), metric("cpu", 100.0)];
        let of = |metrics: &[Metric]| cpu_per_operation(metrics).map(|it| (it.name, it.value));
        assert_eq!(of(&metrics), Some(("cpu_per_echo".into(), 200.0)));
        metrics.push(metric("sorts", 4.0));
        assert_eq!(of(&metrics), Some(("cpu_per_sort".into(), 25.0)));
        assert_eq!(of(&metrics[2..]), None);
    }

    #[test]
    fn the_rate_is_that_of_the_command_line_where_it_is_fixed() {
        let plan = Plan::parse(&crate::COMPARISON, &["--rate", "7", "--connections", "3"]);
        let plan = plan.expect("these are right");
        let loads: Vec<_> = plan.rows.iter().map(|row| load(&plan, row)).collect();
        let rates: Vec<_> = loads.iter().flatten().map(|it| (it.connections, it.rate)).collect();
        let (fixed, closed) = ((3, Some(7)), (3, None));
        assert_eq!(rates, [fixed, fixed, closed, closed, fixed]);
    }
}
