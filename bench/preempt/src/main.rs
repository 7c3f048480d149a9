//! A clock that ticks every millisecond beside tasks that do not yield.
//!
//! `preempt run [--rounds n] [--only row,row]` starts itself once for each row, contender and
//! round, in the order A B C C B A, and prints the medians over the rounds. `preempt one row
//! contender` is such a child: it prints its figures, one `name value` a line.
//!
//! Every deadline of a fixed schedule counts: a clock that is 50 ms late has missed fifty ticks,
//! and each of them is a figure. The hogs' own work is counted, too, so that a contender which is
//! in time because its hogs stand still shows it there.

mod figures;
mod workload;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use harness::in_turns;

use self::{
    figures::{Figures, median},
    workload::{CONTENDERS, GO, ROWS, Row},
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["one", row, contender] => one(row, contender),
        ["run", rest @ ..] => run(rest),
        _ => {
            eprintln!("preempt run [--rounds n] [--only row,row] | preempt one <row> <contender>");
            for row in ROWS {
                eprintln!("  {:12} {}", row.name, row.what);
            }
            ExitCode::FAILURE
        }
    }
}

fn one(row: &str, contender: &str) -> ExitCode {
    let Some(row) = ROWS.iter().find(|known| known.name == row) else {
        eprintln!("preempt: there is no row `{row}`");
        return ExitCode::FAILURE;
    };
    match workload::measure(row, contender) {
        Ok(figures) => {
            figures.print();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("preempt: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &[&str]) -> ExitCode {
    let mut rounds = 5;
    let mut only: Option<Vec<&str>> = None;
    for pair in options.chunks(2) {
        match pair {
            ["--rounds", count] => match count.parse() {
                Ok(count) => rounds = count,
                Err(_) => return complain(&format!("`{count}` is no number of rounds")),
            },
            ["--only", rows] => only = Some(rows.split(',').collect()),
            _ => return complain(&format!("what is `{}`?", pair.join(" "))),
        }
    }
    let go = build_go();
    match &go {
        Ok((_, version)) => println!("Go: {version}\n"),
        Err(why) => println!("Go: skipped: {why}\n"),
    }
    println!("| row | contender | p50 ms | p90 ms | p99 ms | max ms | hogs' work | threads |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut failed = false;
    for row in ROWS.iter().filter(|row| only.as_ref().is_none_or(|only| only.contains(&row.name))) {
        let mut all: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
        for round in 0..rounds {
            // The contender that comes first in one round comes last in the next.
            let able = CONTENDERS.into_iter().filter(|contender| row.has(contender));
            for contender in in_turns(able, round) {
                let measured = match (contender, &go) {
                    (GO, Ok((program, _))) => on_go(program, row),
                    (GO, Err(_)) => continue,
                    _ => child(row.name, contender),
                };
                match measured {
                    Ok(figures) => all.entry(contender).or_default().push(figures),
                    Err(error) => {
                        eprintln!("preempt: {} on {contender}: {error}", row.name);
                        failed = true;
                    }
                }
            }
        }
        let work = |figures: &Vec<Figures>| median(figures, |figures| figures.work);
        let plain = all.get("threads").map_or(0.0, work);
        for contender in CONTENDERS {
            let Some(figures) = all.get(contender) else { continue };
            let of = |pick: fn(&Figures) -> f64| median(figures, pick);
            println!(
                "| {} | {contender} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {} |",
                row.name,
                of(|figures| figures.p50),
                of(|figures| figures.p90),
                of(|figures| figures.p99),
                of(|figures| figures.max),
                match work(figures) {
                    done if plain > 0.0 && contender != GO => format!("{:.3}", done / plain),
                    _ => "-".to_owned(),
                },
                of(|figures| figures.threads),
            );
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn complain(text: &str) -> ExitCode {
    eprintln!("preempt: {text}");
    ExitCode::FAILURE
}

/// Builds the program in `go/` beside this one; also returns the version of Go.
fn build_go() -> Result<(PathBuf, String), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    harness::program::build_go(&source, "main.go", "preempt-go")
}

fn on_go(program: &Path, row: &Row) -> Result<Figures, String> {
    let words = row.words_for_go().ok_or("there is no such row in Go")?;
    figures_of(Command::new(program).args(words))
}

fn child(row: &str, contender: &str) -> Result<Figures, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    figures_of(Command::new(own).args(["one", row, contender]))
}

/// The time limit of a child: several times what the longest row takes.
const TIME_OUT: Duration = Duration::from_secs(300);

fn figures_of(command: &mut Command) -> Result<Figures, String> {
    let (text, _) = harness::child::output(command, TIME_OUT)?;
    Figures::parse(&text)
}
