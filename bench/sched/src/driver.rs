//! Runs every figure in a process of its own, contenders interleaved.
//!
//! Order: A B C, C B A, A B C, … for each row and worker count. A machine that gets
//! slower for a minute, or warmer, then hits all contenders of a row alike; and none
//! of them inherits another's heap, threads or page tables.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::{self, Use};
use crate::measure::Metric;
use crate::report::{Run, Sample};
use crate::row::Row;
use crate::workloads::ROWS;
use crate::{CONTENDERS, NAME, ONLY_WHEN_NAMED};

/// The time limit of a child; one that has not ended by then hangs. The longest seen was Go's
/// `idle_1m`, ten seconds on a busy machine.
const TIME_OUT: Duration = Duration::from_secs(30);

/// The share of the machine from which on other programs' use shows in the figures: on two cores a
/// tenth is a fifth of one worker's. Picked, not measured.
const BUSY: f64 = 0.1;

/// The options of the command line.
pub(crate) struct Plan {
    quick: bool,
    rows: Vec<&'static Row>,
    /// The contenders; `None` for all that are available.
    contenders: Option<Vec<String>>,
    workers: Vec<usize>,
    rounds: Option<usize>,
    /// The folder of the record; `None` to print only.
    out: Option<PathBuf>,
    name: Option<String>,
}

impl Plan {
    pub(crate) fn parse(options: &[&str]) -> Result<Plan, String> {
        let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record");
        let mut plan = Plan {
            quick: false,
            rows: ROWS.iter().collect(),
            contenders: None,
            workers: vec![1, 2],
            rounds: None,
            out: Some(record),
            name: None,
        };
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value =
                || options.next().copied().ok_or(format!("{option} needs a value: see `{NAME}`"));
            match option {
                "--quick" => plan.quick = true,
                "--only" => plan.rows = rows_named(value()?)?,
                "--contenders" => plan.contenders = Some(contenders_named(value()?)?),
                "--workers" => {
                    plan.workers = value()?.split(',').map(positive).collect::<Result<_, _>>()?
                }
                "--rounds" => plan.rounds = Some(positive(value()?)?),
                "--out" => plan.out = Some(PathBuf::from(value()?)),
                "--name" => plan.name = Some(value()?.into()),
                "--no-record" => plan.out = None,
                _ => return Err(format!("no option {option}: `{NAME}` alone lists them")),
            }
        }
        Ok(plan)
    }

    /// Returns the number of rounds. Three are the least with a median that can drop an outlier.
    /// Ten are picked, not measured: as many as twenty minutes allow.
    fn rounds(&self, slow: bool) -> usize {
        self.rounds.unwrap_or(match (self.quick, slow) {
            (true, true) => 1,
            (true, false) => 3,
            (false, true) => 5,
            (false, false) => 10,
        })
    }

    /// Returns how long a child measures. Picked so that `--quick` ends within two minutes (it took
    /// one) and the whole table in about twenty (calculated).
    fn budget(&self) -> Duration {
        Duration::from_millis(if self.quick { 100 } else { 400 })
    }
}

fn positive(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|&number| number > 0);
    number.ok_or(format!("{word} is not a number above zero"))
}

fn rows_named(list: &str) -> Result<Vec<&'static Row>, String> {
    let named = |name: &str| {
        let row = ROWS.iter().find(|row| row.name == name);
        row.ok_or(format!("no row {name}: see `{NAME} list`"))
    };
    list.split(',').map(named).collect()
}

fn contenders_named(list: &str) -> Result<Vec<String>, String> {
    let named = |name: &str| {
        let known = CONTENDERS.iter().any(|(known, _)| *known == name);
        known.then(|| name.to_string()).ok_or(format!("no contender {name}: see `{NAME} list`"))
    };
    list.split(',').map(named).collect()
}

/// The contenders of this run and the program of each.
struct Field {
    contenders: Vec<(String, PathBuf)>,
    go_version: Option<String>,
}

impl Field {
    /// Determines the contenders. One that was named must be available; one that was not is left
    /// out with a message if it is not.
    fn gather(named: Option<&[String]>) -> Result<Field, String> {
        let this =
            std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
        let asked = |name: &str| named.is_some_and(|named| named.iter().any(|n| n == name));
        let mut field = Field { contenders: Vec::new(), go_version: None };
        for (name, _) in CONTENDERS {
            let wanted = match named {
                // The noise floor is measured together with Tokio.
                Some(_) => asked(name) || (name == "tokio-again" && asked("tokio")),
                None => !ONLY_WHEN_NAMED.contains(&name),
            };
            if !wanted {
                continue;
            }
            let program = match name {
                "blitz" | "blitz-off" if !cfg!(feature = "blitz") => {
                    Err("build with the feature `blitz` to add it".to_string())
                }
                "go" => build_go().map(|(program, version)| {
                    field.go_version = Some(version);
                    program
                }),
                _ => Ok(this.clone()),
            };
            match program {
                Ok(program) => field.contenders.push((name.to_string(), program)),
                Err(why) if asked(name) => return Err(format!("{name} cannot run: {why}")),
                Err(why) => eprintln!("{name} is left out: {why}"),
            }
        }
        Ok(field)
    }
}

/// Builds the Go program beside this one. All comparisons share it.
fn build_go() -> Result<(PathBuf, String), String> {
    let version = Command::new("go").arg("version").output();
    let version = version.map_err(|_| "there is no `go` on PATH".to_string())?;
    let version = String::from_utf8_lossy(&version.stdout).trim().replace("go version ", "");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sched/go");
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = this.with_file_name(format!("{NAME}-go"));
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .output();
    match built {
        Ok(built) if built.status.success() => Ok((program, version)),
        Ok(built) => Err(format!("go build: {}", String::from_utf8_lossy(&built.stderr).trim())),
        Err(error) => Err(format!("go build: {error}")),
    }
}

/// Measures, prints the table and writes the record.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let field = Field::gather(plan.contenders.as_deref())?;
    let start = Instant::now();
    let mut run = Run {
        machine: machine::describe(field.go_version.as_deref()),
        contenders: field.contenders.iter().map(|(name, _)| name.clone()).collect(),
        samples: Vec::new(),
        how: String::new(),
    };
    let use_at_start = Use::now();
    let mut busiest = (0.0, String::from("no row"));
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing, use --release");
    }
    for row in &plan.rows {
        for &workers in plan.workers.iter().filter(|&&workers| row.runs_with(workers)) {
            eprintln!("{:>4} s  {} w{workers}", start.elapsed().as_secs(), row.name);
            let use_before = Use::now();
            for round in 0..plan.rounds(row.slow) {
                run.samples.extend(one_round(&field, row, workers, round, plan.budget()));
            }
            let others = Use::now().others_since(&use_before);
            if others > busiest.0 {
                busiest = (others, format!("{} w{workers}", row.name));
            }
        }
    }
    let others = Use::now().others_since(&use_at_start);
    let others = format!(
        "others used {:.0} % of the machine, at most {:.0} % (during {})",
        others * 100.0,
        busiest.0 * 100.0,
        busiest.1
    );
    run.how = format!(
        "{} rounds ({} for slow rows), {} ms a child, {} s in all; {others}",
        plan.rounds(false),
        plan.rounds(true),
        plan.budget().as_millis(),
        start.elapsed().as_secs()
    );
    println!("{}\n{}", run.table(), run.how);
    if busiest.0 > BUSY {
        println!("the machine was busy: measure again when it is not");
    }
    if let Some(out) = &plan.out {
        let quick = if plan.quick { "-quick" } else { "" };
        let name = plan.name.clone().unwrap_or_else(|| format!("{NAME}{quick}"));
        let written = run.record(out, &name).map_err(|error| {
            format!(
                "cannot write the record to {}: {error}; choose a place with --out",
                out.display()
            )
        })?;
        println!("recorded in {}", written.display());
    }
    match run.failures() {
        0 => Ok(()),
        failures => Err(format!("{failures} of {} children failed", run.samples.len())),
    }
}

/// Runs each contender once: forwards in even rounds, backwards in odd ones.
fn one_round(
    field: &Field,
    row: &Row,
    workers: usize,
    round: usize,
    budget: Duration,
) -> Vec<Sample> {
    let has_row = |contender: &str| !row.lacks.contains(&contender);
    let mut order: Vec<_> = field.contenders.iter().filter(|(name, _)| has_row(name)).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    let measure = |(contender, program): &(String, PathBuf)| {
        let outcome = figures_of(program, contender, row.name, workers, budget);
        if let Err(why) = &outcome {
            eprintln!("        {contender} failed: {why}");
        }
        Sample { round, contender: contender.clone(), row: row.name, workers, outcome }
    };
    order.into_iter().map(measure).collect()
}

/// Starts a child and reads its figures, or returns why there are none.
fn figures_of(
    program: &Path,
    contender: &str,
    row: &str,
    workers: usize,
    budget: Duration,
) -> Result<Vec<Metric>, String> {
    let mut command = Command::new(program);
    if contender == "blitz-off" {
        command.env("BLITZ_PREEMPTION", "off");
    }
    let child = command
        .args(["--child", contender, row, &workers.to_string()])
        .arg(budget.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let (out, err) = ended_in_time(child, TIME_OUT)?;
    let metrics: Vec<Metric> = out.lines().filter_map(Metric::parse).collect();
    match metrics.is_empty() {
        true => Err(format!("no figures: {}", err.lines().last().unwrap_or("no message"))),
        false => Ok(metrics),
    }
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

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let two = [ROWS[1].name, ROWS[0].name];
        let plan = Plan::parse(&["--quick", "--only", &two.join(","), "--workers", "2"]);
        let plan = plan.expect("these are right");
        assert_eq!(plan.rows.iter().map(|row| row.name).collect::<Vec<_>>(), two);
        assert_eq!((plan.workers.as_slice(), plan.rounds(false)), ([2].as_slice(), 3));
        for wrong in [
            ["--only", "no_such_row"],
            ["--contenders", "rayon"],
            ["--workers", "0"],
            ["--rounds", "-1"],
            ["--fast", "1"],
        ] {
            assert!(Plan::parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(Plan::parse(&["--out"]).is_err());
    }

    #[test]
    fn tokio_brings_its_noise_floor() {
        let field = Field::gather(Some(&["tokio".into()])).expect("it is built in");
        let names: Vec<_> = field.contenders.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["tokio", "tokio-again"]);
    }
}
