//! One measurement of a row: starts what is measured and its load, and gathers the figures.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use harness::child::{self, Figures};
use harness::measure::allowed_cores;
use harness::{Metric, Plan, Trial};

use crate::process::{Place, Process, Talker, Used, Watch, bound};
use crate::rows::{Tool, Work, work};
use crate::setup::{Database, free_port, made};
use crate::tally::Tally;

/// The time that a load runs before it is counted: the shortest that wrk can.
const WARM: Duration = Duration::from_secs(1);

/// Describes the method.
pub(crate) fn how(plan: &Plan, _: Option<&str>) -> String {
    let limits = [("--quota", "a quota of {} % of a core"), ("--busy", "{} busy loops beside")];
    let set = limits.into_iter().filter(|(option, _)| plan.extra(option) > 0);
    let text = |(option, text): (&str, &str)| {
        format!(", {}", text.replace("{}", &plan.extra(option).to_string()))
    };
    format!(
        "{} rounds, spans of {} s{}{}",
        plan.rounds(false),
        plan.budget().as_secs(),
        set.map(text).collect::<String>(),
        made().tools
    )
}

/// Measures a contender once.
pub(crate) fn trial(trial: &Trial) -> Result<Figures, String> {
    let _busy = busy(trial.this, trial.plan.extra("--busy"))?;
    let span = trial.plan.budget();
    let (tally, used) = match work(trial.row) {
        Work::Http { server, path, connections } => {
            let server = serve(trial, &["serve", server], None)?;
            under_load(trial, server, |port, span| wrk(port, path, connections, span))
        }
        Work::Proxy { connections } => {
            let mut backend = Talker::start(&mut stock(&["serve", "hyper"]))?;
            let port = started(&mut backend, "port", false)?;
            let server = serve(trial, &["serve", "proxy", &port], None)?;
            under_load(trial, server, |port, span| wrk(port, "/", connections, span))
        }
        Work::Files { path, connections } => {
            let server = serve_files(trial)?;
            under_load(trial, server, |port, span| wrk(port, path, connections, span))
        }
        Work::Echo { connections, one_core } => {
            let cores = allowed_cores();
            let (first, last) = (cores.first().copied(), cores.last().copied());
            let core = |core: Option<usize>| if one_core { core } else { None };
            let server = serve(trial, &["serve", "echo"], core(last))?;
            under_load(trial, server, |port, span| {
                let mut client = child::command(trial.this);
                client.args(["--echo", port, &connections.to_string()]);
                client.arg(span.as_millis().to_string());
                bound(&mut client, Place { core: core(first), group: None });
                Ok(client)
            })
        }
        Work::Rpc { connections, tasks } => {
            let server = serve(trial, &["serve", "tonic"], None)?;
            under_load(trial, server, |port, span| {
                let (connections, tasks) = (connections.to_string(), tasks.to_string());
                let span = span.as_millis().to_string();
                Ok(stock(&["load", port, &connections, &tasks, &span]))
            })
        }
        Work::Client { name, database } => {
            let database = Database::start(database)?;
            let (port, warm) = (database.port.to_string(), WARM.as_millis().to_string());
            let words = ["client", name, &port, &warm, &span.as_millis().to_string()];
            let mut client = Talker::start(&mut measured(trial, &words, None))?;
            started(&mut client, "go", is_dropin(trial))?;
            let watch = Watch::start(client.id())?;
            let tally = parse(&client.line()?)?;
            Ok((tally, watch.stop()?))
        }
    }?;
    Ok(Figures { metrics: metrics(&tally, &used)?, remark: None })
}

/// Starts a server of the contender's program; returns it with its port.
fn serve(trial: &Trial, words: &[&str], core: Option<usize>) -> Result<(Talker, String), String> {
    let mut server = Talker::start(&mut measured(trial, words, core))?;
    let port = started(&mut server, "port", is_dropin(trial))?;
    Ok((server, port))
}

/// Starts the contender's dufs; returns it with its port.
fn serve_files(trial: &Trial) -> Result<(Talker, String), String> {
    let dufs = made().dufs.as_ref().ok_or("dufs is not installed")?;
    let port = free_port()?;
    let mut command = dufs.serve(is_dropin(trial), port);
    command.envs(trial.contender.environment.iter().copied());
    bound(&mut command, Place { core: None, group: made().group });
    let mut server = Talker::start(&mut command)?;
    let port = port.to_string();
    while !server.line()?.contains(&port) {}
    Ok((server, port))
}

/// Warms a server up, and measures it under the load whose command `load` returns for a port and a
/// time.
fn under_load(
    trial: &Trial,
    (server, port): (Talker, String),
    load: impl Fn(&str, Duration) -> Result<Command, String>,
) -> Result<(Tally, Used), String> {
    let put = |span: Duration| {
        let time_out = trial.plan.comparison.time_out + span;
        let (out, errors) = child::output(&mut load(&port, span)?, time_out)?;
        let line = out.lines().find(|line| line.starts_with("tally "));
        parse(line.ok_or(format!("the load has no tally: {}", errors.trim()))?)
    };
    put(WARM)?;
    let watch = Watch::start(server.id())?;
    let tally = put(trial.plan.budget())?;
    Ok((tally, watch.stop()?))
}

/// Returns the command that starts what is measured.
fn measured(trial: &Trial, words: &[&str], core: Option<usize>) -> Command {
    let mut command = child::command(trial.program);
    command.args(words).envs(trial.contender.environment.iter().copied());
    bound(&mut command, Place { core, group: made().group });
    command
}

/// Returns the command that starts a program on stock Tokio beside what is measured.
fn stock(words: &[&str]) -> Command {
    let mut command = child::command(&made().stock);
    command.args(words);
    bound(&mut command, Place::default());
    command
}

fn wrk(port: &str, path: &str, connections: usize, span: Duration) -> Result<Command, String> {
    let mut command = Command::new(Tool::Wrk.find().ok_or("wrk is gone")?);
    // One thread keeps up with a server of two cores.
    let threads = (allowed_cores().len() / 2).max(1);
    command.arg(format!("-t{threads}")).arg(format!("-c{connections}"));
    command.arg(format!("-d{}s", span.as_secs()));
    command.arg("-s").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tally.lua"));
    command.arg(format!("http://127.0.0.1:{port}{path}"));
    bound(&mut command, Place::default());
    Ok(command)
}

/// Starts processes that never sleep.
fn busy(this: &Path, count: usize) -> Result<Vec<Process>, String> {
    let start = |_| {
        let mut command = Command::new(this);
        bound(command.arg("--spin"), Place::default());
        Process::start(&mut command, libc::SIGKILL)
    };
    (0..count).map(start).collect()
}

fn is_dropin(trial: &Trial) -> bool {
    trial.contender.name.starts_with("blitz")
}

/// Reads the line by which a program reports that it has started, and checks that the runtime it is
/// linked with is the contender's. Returns the word in between: a server's port.
fn started(program: &mut Talker, word: &str, dropin: bool) -> Result<String, String> {
    let line = program.line()?;
    let words: Vec<&str> = line.split(' ').collect();
    let runtime = words.last().copied().unwrap_or_default();
    if words.first() != Some(&word) {
        return Err(format!("the program printed {line:?} instead of {word}"));
    }
    if (runtime == "stock") == dropin {
        return Err(format!("the program is linked with another Tokio: {runtime}"));
    }
    Ok(words[1].to_owned())
}

/// Reads the line of a tally.
fn parse(line: &str) -> Result<Tally, String> {
    let numbers = line.strip_prefix("tally ").map(|rest| rest.split(' ').map(str::parse));
    let numbers: Option<Result<Vec<f64>, _>> = numbers.map(Iterator::collect);
    match numbers.and_then(Result::ok).as_deref() {
        Some(&[requests, span_us, p50, p99, p999, errors]) => {
            Ok(Tally { requests, span_us, percentiles_us: [p50, p99, p999], errors })
        }
        _ => Err(format!("not a tally: {line:?}")),
    }
}

/// Returns the figures of a trial.
fn metrics(tally: &Tally, used: &Used) -> Result<Vec<Metric>, String> {
    let Tally { requests, span_us, percentiles_us: [p50, p99, p999], errors } = *tally;
    if errors > 0.0 || requests == 0.0 {
        return Err(format!("{errors} of {requests} requests failed"));
    }
    let figures = [
        ("request", "us", span_us / requests),
        ("p50", "us", p50),
        ("p99", "us", p99),
        ("p999", "us", p999),
        ("cpu", "us", used.cpu_ns as f64 / 1e3 / requests),
        ("threads", "threads", used.threads as f64),
        ("rss", "MiB", used.resident_kib as f64 / 1024.0),
    ];
    Ok(figures.map(|(name, unit, value)| Metric::new(name, unit, value, None)).into())
}

#[cfg(test)]
mod tests {
    use super::{metrics, parse};
    use crate::process::Used;
    use crate::tally::Tally;

    const USED: Used = Used { cpu_ns: 3_000_000, threads: 3, resident_kib: 2048 };

    #[test]
    fn a_tally_survives_its_line() {
        let tally = Tally::of(vec![1000, 2000], 1, 5e6);
        assert_eq!(parse(&tally.line()), Ok(tally));
        assert!(parse("tally 1 2").is_err() && parse("port 1").is_err());
    }

    #[test]
    fn figures_are_for_one_request() {
        let tally = Tally::of(vec![1000; 1000], 1, 5000.0);
        let metrics = metrics(&tally, &USED).expect("nothing failed");
        let of = |name: &str| metrics.iter().find(|it| it.name == name).map(|it| it.value);
        assert_eq!((of("request"), of("cpu"), of("rss")), (Some(5.0), Some(3.0), Some(2.0)));
    }

    #[test]
    fn a_load_with_failures_has_no_figures() {
        let tally = Tally { errors: 1.0, ..Tally::of(vec![1000], 1, 5000.0) };
        assert!(metrics(&tally, &USED).is_err());
        assert!(metrics(&Tally::of(vec![], 1, 5000.0), &USED).is_err());
    }
}
