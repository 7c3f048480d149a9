//! Scheduler workloads on every contender, interleaved in child processes.
//!
//! `sched run` is the driver; it starts itself as `sched --child` for each figure.
//! ../README.md says how to run it, how to read it, and why it is done this way.

mod bell;
mod contender;
mod measure;
mod workloads;
mod driver;
mod machine;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use driver::Plan;
use measure::Metric;

const USAGE: &str = "\
usage: sched run [options]   measure, print the table, record it
       sched list            name the rows and the contenders

options of run:
  --quick               few rounds, short batches: under two minutes, for a first look
  --only ROW[,ROW]      these rows alone
  --contenders A[,B]    these contenders alone (see `sched list`)
  --workers N[,N]       worker counts (1,2)
  --rounds N            rounds for each row
  --out DIR             where the record goes (bench/record)
  --name NAME           the record's name behind the date (sched, or sched-quick)
  --no-record           print the table only";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", contender, row, workers, budget_ms] => {
            child(contender, row, workers, budget_ms)
        }
        ["run", options @ ..] => Plan::parse(options).and_then(|plan| driver::run(&plan)),
        ["list"] => {
            list();
            Ok(())
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Measures one row on one contender in this process.
fn child(contender: &str, row: &str, workers: &str, budget_ms: &str) -> Result<(), String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("not a number: {word}"));
    let workers = number(workers)? as usize;
    let budget = Duration::from_millis(number(budget_ms)?);
    let metrics = match contender {
        "tokio" | "tokio-again" => workloads::run::<contender::Tokio>(row, workers, budget),
        "tokio-bare" => workloads::run::<contender::TokioBare>(row, workers, budget),
        "futex" => workloads::run_bare_thread(row, budget),
        "smol" => workloads::run::<contender::Smol>(row, workers, budget),
        #[cfg(feature = "blitz")]
        "blitz" => workloads::run::<contender::Blitz>(row, workers, budget),
        _ => return Err(format!("no contender {contender} in this build: see `sched list`")),
    };
    let metrics =
        metrics.ok_or_else(|| format!("{contender} has no row {row}: see `sched list`"))?;
    // Printed after the runtime is gone: one that cannot shut down has no figure.
    metrics.iter().map(Metric::line).for_each(|line| println!("{line}"));
    Ok(())
}

fn list() {
    println!("rows:");
    for row in &workloads::ROWS {
        println!("  {:<18} {}", row.name, row.what);
    }
    println!("contenders:");
    for (name, what) in driver::CONTENDERS {
        println!("  {name:<18} {what}");
    }
}
