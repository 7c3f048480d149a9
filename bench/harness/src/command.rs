//! The command line, which is the same for every comparison.

use std::process::ExitCode;
use std::time::Duration;

use crate::driver;
use crate::measure::Metric;
use crate::plan::{Extra, Plan};
use crate::{Child, Comparison};

/// Runs the program.
pub fn main(comparison: &'static Comparison) -> ExitCode {
    let words = words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    exit(match words.as_slice() {
        ["--child", rest @ ..] => {
            let list = format!("`{} list`", comparison.name);
            measured(comparison.child, rest).map_err(|why| format!("{why}: see {list}"))
        }
        ["run", options @ ..] => {
            Plan::parse(comparison, options).and_then(|plan| driver::run(&plan))
        }
        ["list"] => {
            print!("{}", list(comparison));
            Ok(())
        }
        _ => Err(usage(comparison)),
    })
}

/// Returns the words of the command line behind the program's name.
pub fn words() -> Vec<String> {
    std::env::args().skip(1).collect()
}

/// Returns the exit code for an outcome, after an error was printed.
pub fn exit(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Measures what the words behind `--child` name, and prints the figures.
pub fn measured(child: Child, words: &[&str]) -> Result<(), String> {
    let &[contender, row, workers, budget_ms] = words else {
        return Err("a child is given contender, row, workers and budget".into());
    };
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("not a number: {word}"));
    let workers = number(workers)? as usize;
    let budget = Duration::from_millis(number(budget_ms)?);
    let metrics = child(contender, row, workers, budget)
        .ok_or_else(|| format!("{contender} has no row {row} in this build"))?;
    // Printed after the runtime is dropped: one that cannot shut down has no figure.
    metrics.iter().map(Metric::line).for_each(|line| println!("{line}"));
    Ok(())
}

fn usage(comparison: &Comparison) -> String {
    let name = comparison.name;
    let workers = comparison.counted.map_or(String::new(), |counted| {
        format!("  --workers N[,N]       numbers of {counted} (1,2)\n")
    });
    let contenders = match comparison.contenders {
        [] => String::new(),
        _ => format!("  --contenders A[,B]    these contenders alone (see `{name} list`)\n"),
    };
    let extra = |Extra { option, default, what }: &Extra| {
        format!("  {:<21} {what} ({default})\n", format!("{option} N"))
    };
    let extras: String = comparison.extras.iter().map(extra).collect();
    format!(
        "\
usage: {name} run [options]   measure, print the table, record it
       {name} list            name the rows and the contenders

options of run:
  --quick               few rounds, short batches, for a first look
  --only ROW[,ROW]      these rows alone
{contenders}{workers}{extras}  --rounds N            rounds for each row
  --out DIR             where the record goes (bench/record)
  --name NAME           the record's name behind the date ({name}, or {name}-quick)
  --no-record           print the table only"
    )
}

fn list(comparison: &Comparison) -> String {
    let rows: Vec<_> = comparison.rows.iter().map(|row| (row.name, row.what)).collect();
    let contenders: Vec<_> = comparison.contenders.iter().map(|it| (it.name, it.what)).collect();
    let all = rows.iter().chain(&contenders);
    let width = all.map(|(name, _)| name.len()).max().unwrap_or(0).max(18);
    let mut text = String::new();
    let titled = [("rows", rows), ("contenders", contenders)];
    for (title, lines) in titled.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push_str(&format!("{title}:\n"));
        lines.iter().for_each(|(name, what)| text.push_str(&format!("  {name:<width$} {what}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{list, measured, usage};
    use crate::Metric;
    use crate::check::EXAMPLE;

    fn child(contender: &str, row: &str, workers: usize, _: Duration) -> Option<Vec<Metric>> {
        ((contender, row, workers) == ("tokio", "a", 2))
            .then(|| vec![Metric::new("", "ns", 1.0, None)])
    }

    #[test]
    fn a_child_is_refused_if_it_is_not_known_or_without_numbers() {
        assert_eq!(measured(child, &["tokio", "a", "2", "1"]), Ok(()));
        for wrong in [["tokio", "b", "2", "1"], ["tokio", "a", "two", "1"]] {
            assert!(measured(child, &wrong).is_err(), "{wrong:?}");
        }
        assert!(measured(child, &["tokio", "a"]).is_err());
    }

    #[test]
    fn all_options_are_explained_and_all_names_listed() {
        let usage = usage(&EXAMPLE);
        assert!(usage.contains("--workers N[,N]       numbers of workers (1,2)\n"), "{usage}");
        assert!(usage.contains("  --rate N              requests in a second (10)\n"), "{usage}");
        assert!(list(&EXAMPLE).contains("  tokio              "), "{}", list(&EXAMPLE));
    }
}
