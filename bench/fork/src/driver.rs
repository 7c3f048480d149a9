//! Runs every figure in a process of its own, contenders interleaved: forwards in even
//! rounds, backwards in odd ones.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{self, Use};
use crate::measure::Metric;
use crate::report::{Run, Sample};
use crate::{CONTENDERS, ROWS, Row};

/// The time limit of a child; one that has not ended by then hangs.
const TIME_OUT: Duration = Duration::from_secs(60);

/// The options of the command line.
pub(crate) struct Plan {
    quick: bool,
    rows: Vec<&'static Row>,
    contenders: Vec<&'static str>,
    threads: Vec<usize>,
    rounds: Option<usize>,
    /// The folder of the record; `None` to print only.
    out: Option<PathBuf>,
}

impl Plan {
    pub(crate) fn parse(options: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan {
            quick: false,
            rows: ROWS.iter().collect(),
            contenders: CONTENDERS.iter().map(|(name, _)| *name).collect(),
            threads: vec![1, 2],
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
                    plan.contenders = each(value()?, |name| {
                        CONTENDERS.iter().map(|it| it.0).find(|it| *it == name)
                    })?;
                }
                "--workers" => plan.threads = each(value()?, positive)?,
                "--rounds" => plan.rounds = Some(each(value()?, positive)?[0]),
                "--out" => plan.out = Some(PathBuf::from(value()?)),
                "--no-record" => plan.out = None,
                _ => return Err(format!("no option {option}: `fork` alone lists them")),
            }
        }
        Ok(plan)
    }

    /// Returns the number of rounds, as in bench/sched.
    fn rounds(&self, slow: bool) -> usize {
        self.rounds.unwrap_or(match (self.quick, slow) {
            (true, true) => 1,
            (true, false) => 3,
            (false, true) => 5,
            (false, false) => 10,
        })
    }

    fn budget(&self) -> Duration {
        Duration::from_millis(if self.quick { 100 } else { 400 })
    }
}

fn positive(word: &str) -> Option<usize> {
    word.parse().ok().filter(|number| *number > 0)
}

fn each<T>(list: &str, known: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let one = |word| known(word).ok_or(format!("{word} is not known here: see `fork list`"));
    list.split(',').map(one).collect()
}

/// Measures, prints the table and writes the record.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let dropin = match plan.contenders.contains(&"on-blitz") {
        true => build_dropin()?,
        false => this.clone(),
    };
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing, use --release");
    }
    let (start, before) = (Instant::now(), Use::now());
    let mut run = Run { machine: machine::describe(None), samples: Vec::new(), how: String::new() };
    for row in &plan.rows {
        for &threads in plan.threads.iter().filter(|count| !row.wants_two || **count > 1) {
            eprintln!("{:>4} s  {} w{threads}", start.elapsed().as_secs(), row.name);
            for round in 0..plan.rounds(row.slow) {
                let mut order: Vec<&str> = plan.contenders.clone();
                order.retain(|name| !row.lacks.contains(name));
                if round % 2 == 1 {
                    order.reverse();
                }
                for contender in order {
                    let program = if contender == "on-blitz" { &dropin } else { &this };
                    let outcome = figures(program, contender, row.name, threads, plan.budget());
                    if let Err(why) = &outcome {
                        eprintln!("        {contender} failed: {why}");
                    }
                    let (contender, row) = (contender.to_owned(), row.name);
                    run.samples.push(Sample { round, contender, row, threads, outcome });
                }
            }
        }
    }
    run.how = format!(
        "{} rounds ({} for slow rows), {} ms a child, {} s in all; others used {:.0} % of the machine",
        plan.rounds(false),
        plan.rounds(true),
        plan.budget().as_millis(),
        start.elapsed().as_secs(),
        Use::now().others_since(&before) * 100.0
    );
    println!("{}\n{}", run.table(), run.how);
    if let Some(out) = &plan.out {
        let name = if plan.quick { "fork-quick" } else { "fork" };
        let written = run.record(out, name).map_err(|error| {
            format!("cannot write to {}: {error}; choose a place with --out", out.display())
        })?;
        println!("recorded in {}", written.display());
    }
    match run.samples.iter().filter(|sample| sample.outcome.is_err()).count() {
        0 => Ok(()),
        failures => Err(format!("{failures} of {} children failed", run.samples.len())),
    }
}

/// Builds the program with our rayon-core, in its own workspace.
fn build_dropin() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dropin");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet"]).current_dir(&folder);
    cargo.env_remove("CARGO_TARGET_DIR");
    match cargo.status() {
        Ok(status) if status.success() => Ok(folder.join("target/release/fork-dropin")),
        Ok(status) => Err(format!("bench/fork/dropin does not build: {status}")),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}

/// Starts a child and reads its figures, or returns why there are none.
fn figures(
    program: &Path,
    contender: &str,
    row: &str,
    threads: usize,
    budget: Duration,
) -> Result<Vec<Metric>, String> {
    let mut command = Command::new(program);
    command.args(["--child", contender, row, &threads.to_string()]);
    command.arg(budget.as_millis().to_string());
    command.env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + TIME_OUT;
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end in {} s", TIME_OUT.as_secs()));
            }
            // Short against a child's second, long enough to cost nothing.
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // A few lines, which fit into the pipe.
    let mut text = String::new();
    let pipe = child.stdout.as_mut().ok_or("it has no output")?;
    pipe.read_to_string(&mut text).map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(status.to_string());
    }
    let metrics: Option<Vec<Metric>> = text.lines().map(Metric::parse).collect();
    metrics.filter(|metrics| !metrics.is_empty()).ok_or(format!("it said {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let plan = Plan::parse(&["--quick", "--only", "fib,tree_1k", "--workers", "2"]).unwrap();
        assert_eq!(plan.rows.iter().map(|row| row.name).collect::<Vec<_>>(), ["fib", "tree_1k"]);
        assert_eq!((plan.threads, plan.quick), (vec![2], true));
        for wrong in [["--only", "fab"], ["--contenders", "x"], ["--workers", "0"], ["--x", "1"]] {
            assert!(Plan::parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(Plan::parse(&["--out"]).is_err());
    }
}
