//! Starts a server and a client for each figure, contenders interleaved: forwards in even
//! rounds, backwards in odd ones.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Load;
use crate::machine::{self, Use};
use crate::measure::Metric;
use crate::report::{Run, Sample};
use crate::{CONTENDERS, Client, Contender, ROWS, Row};

/// The options of the command line.
pub(crate) struct Plan {
    quick: bool,
    rows: Vec<&'static Row>,
    contenders: Vec<&'static Contender>,
    connections: usize,
    rate: usize,
    rounds: Option<usize>,
    /// The folder of the record; `None` to print only.
    out: Option<PathBuf>,
}

impl Plan {
    pub(crate) fn parse(options: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan {
            quick: false,
            rows: ROWS.iter().collect(),
            contenders: CONTENDERS.iter().filter(|it| !it.is_extra).collect(),
            connections: 50,
            // About a tenth of what one core can serve: load, and time for sorts.
            rate: 10_000,
            rounds: None,
            out: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../record")),
        };
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value = || options.next().copied().ok_or(format!("{option} needs a value"));
            match option {
                "--quick" => plan.quick = true,
                "--only" => {
                    plan.rows = each(value()?, |name| ROWS.iter().find(|row| row.name == name))?;
                }
                "--contenders" => {
                    plan.contenders =
                        each(value()?, |name| CONTENDERS.iter().find(|it| it.name == name))?;
                }
                "--connections" => plan.connections = positive(value()?)?,
                "--rate" => plan.rate = positive(value()?)?,
                "--rounds" => plan.rounds = Some(positive(value()?)?),
                "--out" => plan.out = Some(PathBuf::from(value()?)),
                "--no-record" => plan.out = None,
                _ => return Err(format!("no option {option}: `mixed` alone lists them")),
            }
        }
        Ok(plan)
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 2 } else { 11 })
    }

    /// Returns the measured time: enough for dozens of sorts, and at the usual rate for two hundred
    /// requests beyond the 99th percentile.
    fn span(&self) -> Duration {
        Duration::from_millis(if self.quick { 500 } else { 2000 })
    }

    /// Returns the client's part of a row.
    fn load(&self, row: &Row) -> Option<Load> {
        let rate = match row.client {
            Client::None => return None,
            Client::FixedRate => Some(self.rate as u32),
            Client::ClosedLoop => None,
        };
        let heavy = row.server[0] == "computing";
        // Threads start, and the sorter's pages become resident.
        let warm = Duration::from_millis(300);
        Some(Load { connections: self.connections, rate, heavy, warm, span: self.span() })
    }
}

fn positive(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or(format!("{word} is no number from 1 to 1000000"))
}

fn each<T>(list: &str, known: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let one = |word| known(word).ok_or(format!("{word} is not known here: see `mixed list`"));
    list.split(',').map(one).collect()
}

/// Measures, prints the table and writes the record.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let ours = match plan.contenders.iter().any(|it| it.on_ours) {
        true => build_ours()?,
        false => this.clone(),
    };
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing, use --release");
    }
    let (start, before) = (Instant::now(), Use::now());
    let mut run = Run { machine: machine::describe(None), samples: Vec::new(), how: String::new() };
    let mut precedence = String::from("unknown");
    for round in 0..plan.rounds() {
        eprintln!("{:>4} s  round {} of {}", start.elapsed().as_secs(), round + 1, plan.rounds());
        for row in &plan.rows {
            let mut order = plan.contenders.clone();
            if round % 2 == 1 {
                order.reverse();
            }
            for contender in order {
                let server = if contender.on_ours { &ours } else { &this };
                let load = plan.load(row);
                let mut server = Command::new(server);
                server.args(["--server", contender.runtime]).args(row.server);
                let outcome = trial(server, &this, load, plan.span()).map(|trial| {
                    trial.precedence.into_iter().for_each(|it| precedence = it);
                    let per_operation = cpu_per_operation(&trial.metrics);
                    trial.metrics.into_iter().chain(per_operation).collect()
                });
                if let Err(why) = &outcome {
                    eprintln!("        {} failed in {}: {why}", contender.name, row.name);
                }
                let (contender, row) = (contender.name, row.name);
                run.samples.push(Sample { round, contender, row, outcome });
            }
        }
    }
    run.how = format!(
        "{} rounds, spans of {} ms, {} connections of a client with a nice value of {precedence}, \
         {} requests a second where the rate is fixed, {} s in all; others used {:.0} % of the machine",
        plan.rounds(),
        plan.span().as_millis(),
        plan.connections,
        plan.rate,
        start.elapsed().as_secs(),
        Use::now().others_since(&before) * 100.0
    );
    println!("{}\n{}", run.table(), run.how);
    if let Some(out) = &plan.out {
        let name = if plan.quick { "mixed-quick" } else { "mixed" };
        let written = run.record(out, name).map_err(|error| {
            format!("cannot write to {}: {error}; choose a place with --out", out.display())
        })?;
        println!("recorded in {}", written.display());
    }
    match run.samples.iter().filter(|sample| sample.outcome.is_err()).count() {
        0 => Ok(()),
        failures => Err(format!("{failures} of {} trials failed", run.samples.len())),
    }
}

/// Builds the server with our rayon-core, in its own workspace.
fn build_ours() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ours");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet"]).current_dir(&folder);
    cargo.env_remove("CARGO_TARGET_DIR");
    match cargo.status() {
        Ok(status) if status.success() => Ok(folder.join("target/release/mixed-ours")),
        Ok(status) => Err(format!("bench/mixed/ours does not build: {status}")),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

struct Trial {
    metrics: Vec<Metric>,
    /// The priority that the client reported.
    precedence: Option<String>,
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
        command.env_remove("RAYON_NUM_THREADS").env_remove("TOKIO_WORKER_THREADS");
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

    fn tell(&mut self, word: &str) -> Result<(), String> {
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
fn trial(
    server: Command,
    client: &Path,
    load: Option<Load>,
    span: Duration,
) -> Result<Trial, String> {
    let of = |who: &'static str| move |why: String| format!("the {who}: {why}");
    let mut server = Talker::start(server).map_err(of("server"))?;
    let port = server.hear("port").map_err(of("server"))?;
    let Some(load) = load else {
        // Until the threads have started and the pages are resident.
        std::thread::sleep(Duration::from_millis(300));
        server.tell("start").map_err(of("server"))?;
        std::thread::sleep(span);
        server.tell("stop").map_err(of("server"))?;
        let metrics = server.figures().map_err(of("server"))?;
        return Ok(Trial { metrics, precedence: None });
    };
    let mut client = Command::new(client);
    client.args(["--client", &port]).args(load.words());
    let mut client = Talker::start(client).map_err(of("client"))?;
    let precedence = client.hear("go").map_err(of("client"))?;
    server.tell("start").map_err(of("server"))?;
    let mut metrics = client.figures().map_err(of("client"))?;
    server.tell("stop").map_err(of("server"))?;
    metrics.extend(server.figures().map_err(of("server"))?);
    Ok(Trial { metrics, precedence: Some(precedence) })
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
    use super::{Plan, cpu_per_operation};
    use crate::measure::Metric;

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
    fn options_are_read_and_wrong_ones_refused() {
        let plan = Plan::parse(&["--quick", "--only", "mixed", "--rate", "7"]).unwrap();
        assert_eq!(plan.rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["mixed"]);
        assert_eq!((plan.rate, plan.quick), (7, true));
        for wrong in [["--only", "fab"], ["--contenders", "x"], ["--rate", "0"], ["--x", "1"]] {
            assert!(Plan::parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(Plan::parse(&["--out"]).is_err());
    }
}
