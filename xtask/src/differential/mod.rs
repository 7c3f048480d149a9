//! Small programs that must print the same on the real Tokio and Rayon and on the drop-ins.
//!
//! The programs are the cases of `conformance/differential`, a package that is built twice: with
//! the published packages and with the drop-ins. Each case runs on both sides, each time in a
//! process and an empty directory of its own. Standard output and the way the process ended are
//! compared. A text between `«` and `»` may continue after the real one's on the drop-ins.
//!
//! `conformance/differential/differences.txt` lists accepted differences. A listed case that no
//! longer differs fails the run, so that the list stays exact.
//!
//! Every run first compares cases whose results differ on purpose, and fails if it misses one.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use self::{
    accepted::Accepted,
    build::{Binaries, Side},
    compare::{Verdict, compare},
    run::{Scratch, observe},
};
use crate::{Outcome, root, shell};

mod build;
mod run;
mod compare;
mod accepted;

/// Text of `cargo xtask differential --help`.
pub const HELP: &str = "\
cargo xtask differential [--sample <k> --of <n>] [--repeat <n>] [filter …]
cargo xtask differential --side <real|drop-in> [filter …]

Builds conformance/differential with the published Tokio and Rayon and with the drop-ins, runs each
case on both and compares standard output, exit status and signal. A case that has not ended after
30 s is a hang. Differences are printed as unified differences, with the end of standard error.
Fails on a difference that conformance/differential/differences.txt does not list, and on one that
it lists and that is gone.
  --sample, --of  splits the cases into <n> parts and runs part <k>, counted from 0
  --repeat        runs each case so often on each side; a result that varies is a failure
  --side          prints what the cases print on one side, and compares nothing
  filter …        only cases whose `topic/name` contains one of these

The last line is `N passed, M failed`, in cases.";

/// The time limit for a case. Cases are written to end within a few seconds.
const LIMIT: Duration = Duration::from_secs(30);

/// The limit of the case that hangs on purpose; long enough for a busy machine to start a process.
const PLANTED_LIMIT: Duration = Duration::from_secs(5);

/// The number of cases that run at once. More would let one case disturb another on a small
/// machine.
const AT_ONCE: usize = 2;

#[derive(Debug, PartialEq, Eq)]
struct Request {
    filters: Vec<String>,
    sample: Option<(usize, usize)>,
    repeat: usize,
    side: Option<Side>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { filters: Vec::new(), sample: None, repeat: 1, side: None };
        let (mut part, mut of) = (None, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let number = arguments.next().and_then(|it| it.parse::<usize>().ok());
                number.ok_or_else(|| format!("{argument} needs a number"))
            };
            match argument.as_str() {
                "--sample" => part = Some(number()?),
                "--of" => of = Some(number()?),
                "--repeat" => request.repeat = number()?,
                "--side" => {
                    let side = arguments.next().and_then(|it| Side::named(it));
                    request.side = Some(side.ok_or("--side needs `real` or `drop-in`")?);
                }
                unknown if unknown.starts_with('-') => {
                    return Err(format!("`{unknown}` is no argument of differential; see --help"));
                }
                filter => request.filters.push(filter.to_owned()),
            }
        }
        request.sample = match (part, of) {
            (None, None) => None,
            (Some(part), Some(of)) if part < of => Some((part, of)),
            _ => return Err("--sample and --of go together, the first below the second".into()),
        };
        if request.repeat == 0 {
            return Err("--repeat needs a number above 0".into());
        }
        Ok(request)
    }

    /// Returns the cases that were requested.
    fn choose(&self, all: &[String]) -> Result<Vec<String>, String> {
        for filter in &self.filters {
            if !all.iter().any(|name| name.contains(filter.as_str())) {
                return Err(format!("no case has `{filter}` in its name"));
            }
        }
        let named = all.iter().filter(|name| {
            self.filters.is_empty() || self.filters.iter().any(|it| name.contains(it.as_str()))
        });
        let (part, of) = self.sample.unwrap_or((0, 1));
        Ok(named.skip(part).step_by(of).cloned().collect())
    }
}

/// Runs `cargo xtask differential`.
pub fn main(arguments: &[String]) -> Outcome {
    let start = Instant::now();
    let request = Request::read(arguments)?;
    let binaries = build::both()?;
    println!("built both sides in {:.0} s", start.elapsed().as_secs_f64());
    let all = list(&binaries)?;
    let cases = request.choose(&all)?;
    if let Some(side) = request.side {
        return show(&binaries, side, &cases);
    }
    find_planted(&binaries)?;
    let path = root().join("conformance/differential/differences.txt");
    let accepted = Accepted::read(&path, &all)?;
    let start = Instant::now();
    let verdicts =
        run_all(&cases, |case, scratch| judge(&binaries, case, request.repeat, LIMIT, scratch))?;
    let failed = report(&cases, &verdicts, &accepted);
    println!("{} cases in {:.0} s", cases.len(), start.elapsed().as_secs_f64());
    println!("{} passed, {failed} failed", cases.len() - failed);
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

/// Returns the names of all cases, which must be the same on both sides.
fn list(binaries: &Binaries) -> Result<Vec<String>, String> {
    let list = |side: Side| {
        let mut command = std::process::Command::new(binaries.of(side));
        shell::capture(command.arg("list"), LIMIT).map(|finished| finished.stdout)
    };
    let (real, dropin) = (list(Side::Real)?, list(Side::DropIn)?);
    if real != dropin || real.is_empty() {
        return Err("the two sides list different cases, or none".into());
    }
    let mut names: Vec<String> = real.lines().map(str::to_owned).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two cases are called `{}`", twice[0]));
    }
    Ok(names)
}

/// Runs a case on both sides and compares the results.
fn judge(
    binaries: &Binaries,
    case: &str,
    repeat: usize,
    limit: Duration,
    scratch: &Scratch,
) -> Result<Verdict, String> {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..repeat {
        for (side, runs) in [Side::Real, Side::DropIn].into_iter().zip(&mut runs) {
            runs.push(observe(binaries.of(side), case, limit, scratch)?);
        }
    }
    let [real, dropin] = runs;
    Ok(compare(&real, &dropin))
}

/// Runs `work` for each case, a few at a time, and returns the results in the cases' order.
fn run_all<T: Send>(
    cases: &[String],
    work: impl Fn(&str, &Scratch) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let one_after_another = |slot: usize| -> Outcome {
        let scratch = Scratch::new(slot)?;
        // Relaxed: the counter only hands out numbers.
        while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
            let result = work(case, &scratch)?;
            done.lock().map_err(|_| "a comparison panicked")?.push((case, result));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let slots: Vec<_> =
            (0..AT_ONCE).map(|slot| scope.spawn(move || one_after_another(slot))).collect();
        let join = |slot: thread::ScopedJoinHandle<'_, Outcome>| {
            slot.join().unwrap_or_else(|_| Err("a comparison panicked".into()))
        };
        slots.into_iter().try_for_each(join)
    })?;
    let mut done = done.into_inner().map_err(|_| "a comparison panicked")?;
    done.sort_by_key(|(case, _)| *case);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Prints what is wrong with each case and returns how many failed.
fn report(cases: &[String], verdicts: &[Verdict], accepted: &Accepted) -> usize {
    let mut failed = 0;
    for (case, verdict) in cases.iter().zip(verdicts) {
        match accepted.judge(case, verdict) {
            Ok(None) => {}
            Ok(Some(note)) => println!("{case}: {note}"),
            Err(why) => {
                failed += 1;
                println!("\nFAILED {case}: {why}");
            }
        }
    }
    failed
}

/// Prints what cases print on one side.
fn show(binaries: &Binaries, side: Side, cases: &[String]) -> Outcome {
    let runs = run_all(cases, |case, scratch| observe(binaries.of(side), case, LIMIT, scratch))?;
    for (case, run) in cases.iter().zip(&runs) {
        println!("=== {case}\n{}", run.transcript());
        if !run.stderr.is_empty() {
            println!("--- standard error\n{}", run.stderr.trim_end());
        }
    }
    Ok(())
}

/// A planted case and the check that its verdict must pass.
type Planted = (&'static str, fn(&Verdict) -> bool);

const PLANTED: &[Planted] = &[
    ("planted/dies", |verdict| verdict.shows("+[signal 6")),
    ("planted/exits", |verdict| verdict.shows("+[exit status 3]")),
    ("planted/hangs", |verdict| verdict.shows("+[HANG")),
    ("planted/panics", |verdict| verdict.shows("+[exit status 101]")),
    ("planted/prints", |verdict| verdict.shows("-expected") && verdict.shows("+planted")),
    ("planted/same", |verdict| *verdict == Verdict::Same),
    ("planted/varies", |verdict| matches!(verdict, Verdict::Varies { .. })),
];

/// Fails unless every planted difference is found: a comparison that misses one proves nothing.
fn find_planted(binaries: &Binaries) -> Outcome {
    let cases: Vec<String> = PLANTED.iter().map(|(case, _)| (*case).to_owned()).collect();
    let verdicts =
        run_all(&cases, |case, scratch| judge(binaries, case, 2, PLANTED_LIMIT, scratch))?;
    for ((case, found), verdict) in PLANTED.iter().zip(&verdicts) {
        if !found(verdict) {
            return Err(format!("the comparison does not see what `{case}` plants: {verdict:?}"));
        }
    }
    println!("found {} planted differences", PLANTED.len() - 1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{PLANTED, Request, Side};
    use crate::root;

    fn read(arguments: &str) -> Result<Request, String> {
        Request::read(&arguments.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in ["--sample 1", "--of 2", "--sample 2 --of 2", "--repeat 0", "--repeat x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("--sied real").is_err() && read("--side both").is_err());
        assert_eq!(read("--side drop-in x").unwrap().side, Some(Side::DropIn));
    }

    #[test]
    fn parts_together_are_all_cases_and_no_case_is_in_two() {
        let all: Vec<String> = (0..10).map(|it| format!("topic/{it}")).collect();
        let part = |part| read(&format!("--sample {part} --of 3")).unwrap().choose(&all).unwrap();
        let mut together = [part(0), part(1), part(2)].concat();
        together.sort();
        assert_eq!(together, all);
        assert_eq!(read("c/3 c/5").unwrap().choose(&all).unwrap(), ["topic/3", "topic/5"]);
        assert!(read("topics/").unwrap().choose(&all).is_err());
    }

    /// A file that no `mod` names would be compiled by nothing.
    #[test]
    fn every_file_of_cases_is_a_topic() {
        let folder = root().join("conformance/differential/src/cases");
        let text = fs::read_to_string(folder.join("mod.rs")).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let topic = name.trim_end_matches(".rs");
            let listed = format!("(\"{topic}\", {topic}::CASES)");
            assert!(topic == "mod" || text.contains(&listed), "mod.rs lacks {listed}");
        }
    }

    #[test]
    fn the_planted_cases_are_in_order() {
        assert!(PLANTED.is_sorted_by_key(|(case, _)| case), "`run_all` returns them sorted");
    }
}
