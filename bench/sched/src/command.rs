//! The command line, which is the same for every comparison.

use std::process::ExitCode;
use std::time::Duration;

use crate::driver::{self, Plan};
use crate::measure::Metric;
use crate::workloads::ROWS;
use crate::{CONTENDERS, NAME};

/// A function that measures one row on one contender in this process: contender, row, workers,
/// budget. Returns `None` if it has no such row.
pub(crate) type Child = fn(&str, &str, usize, Duration) -> Result<Option<Vec<Metric>>, String>;

fn usage() -> String {
    format!(
        "\
usage: {NAME} run [options]   measure, print the table, record it
       {NAME} list            name the rows and the contenders

options of run:
  --quick               few rounds, short batches: under two minutes, for a first look
  --only ROW[,ROW]      these rows alone
  --contenders A[,B]    these contenders alone (see `{NAME} list`)
  --workers N[,N]       worker counts (1,2)
  --rounds N            rounds for each row
  --out DIR             where the record goes (bench/record)
  --name NAME           the record's name behind the date ({NAME}, or {NAME}-quick)
  --no-record           print the table only"
    )
}

/// Runs the program; `child` does what is specific to a child process.
pub(crate) fn main(child: Child) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", contender, row, workers, budget_ms] => {
            measured(child, contender, row, workers, budget_ms)
        }
        ["run", options @ ..] => Plan::parse(options).and_then(|plan| driver::run(&plan)),
        ["list"] => {
            list();
            Ok(())
        }
        _ => Err(usage()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn measured(
    child: Child,
    contender: &str,
    row: &str,
    workers: &str,
    budget_ms: &str,
) -> Result<(), String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("not a number: {word}"));
    let workers = number(workers)? as usize;
    let budget = Duration::from_millis(number(budget_ms)?);
    let metrics = child(contender, row, workers, budget)?
        .ok_or_else(|| format!("{contender} has no row {row}: see `{NAME} list`"))?;
    // Printed after the runtime is dropped: one that cannot shut down has no figure.
    metrics.iter().map(Metric::line).for_each(|line| println!("{line}"));
    Ok(())
}

fn list() {
    println!("rows:");
    for row in &ROWS {
        println!("  {:<18} {}", row.name, row.what);
    }
    println!("contenders:");
    for (name, what) in CONTENDERS {
        println!("  {name:<18} {what}");
    }
}
