//! Chaos: random programs that use everything the runtime can do at once, under variants of the
//! runtime's configuration, each in a process of its own.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{
    Outcome, model,
    shell::{self, End},
};

/// Text of `cargo xtask chaos --help`.
pub const HELP: &str = "\
cargo xtask chaos [--minutes N] [--seed N] [--sample] [--debug] [-- arguments of the program]

Runs the program of xtask/chaos, with fibers, for an hour, or for N minutes: the time is shared
by variants of the slice of preemption (0.1 ms, the default, off), of the barrier (membarrier,
fences), of the way to wait for events (epoll, poll, io_uring), and of the build (with debug
assertions, and optimised). Every future, value, message, job, child, thread and descriptor must
be gone at the end of each round, once. A variant that fails prints how to repeat it.
  --seed N    each variant begins with it; a number of the commit unless given
  --sample    four of the variants, others for each commit
  --debug     without the optimised build
All this is for Linux.";

/// Barrier, slice, event backend.
type Variant = (&'static str, Option<&'static str>, &'static str);

const GUARDS: [&str; 2] = ["membarrier", "fences"];
const SLICES: [Option<&str>; 3] = [Some("0.1ms"), None, Some("off")];
const BACKENDS: [&str; 3] = ["epoll", "poll", "uring"];

/// The number of variants in a sample.
const SAMPLE: usize = 4;
/// Extra time that a run needs: the last round, or the deadline of a round that hangs and the
/// stacks of its threads.
const SPARE: Duration = Duration::from_secs(300);

#[derive(Debug, PartialEq)]
struct Choice {
    minutes: f64,
    seed: Option<u64>,
    sample: bool,
    debug: bool,
    passed_on: Vec<String>,
}

impl Choice {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut choice =
            Self { minutes: 60.0, seed: None, sample: false, debug: false, passed_on: vec![] };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` wants a number"));
            match argument.as_str() {
                "--minutes" => {
                    let text = value()?;
                    let minutes = text.parse().ok().filter(|minutes| (0.1..1e6).contains(minutes));
                    choice.minutes = minutes.ok_or(format!("`{text}` is no number of minutes"))?;
                }
                "--seed" => {
                    let text = value()?;
                    let seed = text.parse().map_err(|_| format!("`{text}` is no seed"))?;
                    choice.seed = Some(seed);
                }
                "--sample" => choice.sample = true,
                "--debug" => choice.debug = true,
                "--" => choice.passed_on.extend(arguments.by_ref().cloned()),
                unknown => return Err(format!("`{unknown}` is no argument; see --help")),
            }
        }
        Ok(choice)
    }
}

/// Runs `cargo xtask chaos`.
pub fn main(arguments: &[String]) -> Outcome {
    let choice = Choice::read(arguments)?;
    if !cfg!(target_os = "linux") {
        println!("skipped: chaos looks at its process by Linux's means");
        return Ok(());
    }
    let number = model::commit_number();
    let seed = choice.seed.unwrap_or(number as u64);
    let variants = variants(choice.sample.then_some(number));
    let mut programs = vec![build(true)?];
    if !choice.debug {
        programs.push(build(false)?);
    }
    let runs = (variants.len() * programs.len()) as f64;
    let seconds = (choice.minutes * 60.0 / runs).ceil().max(1.0) as u64;
    println!("seed {seed}: {runs} variants, {seconds} s each");
    let mut failed = Vec::new();
    for program in &programs {
        for variant in &variants {
            let mut command = Command::new(program);
            let arguments = arguments_of(variant, seed, seconds);
            command.args(&arguments).args(&choice.passed_on);
            println!("$ chaos {} {}", arguments.join(" "), choice.passed_on.join(" "));
            match shell::run(&mut command, Duration::from_secs(seconds) + SPARE)? {
                end if end.success() => {}
                End::TimedOut => failed.push(format!("{} (did not end)", arguments.join(" "))),
                End::Exit(_) => failed.push(arguments.join(" ")),
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    failed.iter().for_each(|arguments| println!("failed: chaos {arguments}"));
    Err(format!("{} of {runs} variants failed; --round N repeats a round", failed.len()))
}

fn arguments_of((guard, slice, backend): &Variant, seed: u64, seconds: u64) -> Vec<String> {
    let mut words =
        format!("--seed {seed} --seconds {seconds} --guard {guard} --backend {backend}");
    if let Some(slice) = slice {
        words.push_str(" --slice ");
        words.push_str(slice);
    }
    words.split(' ').map(str::to_owned).collect()
}

/// Returns all variants, or a sample that follows from a number.
fn variants(sample: Option<usize>) -> Vec<Variant> {
    let mut all = Vec::new();
    for backend in BACKENDS {
        for slice in SLICES {
            for guard in GUARDS {
                all.push((guard, slice, backend));
            }
        }
    }
    if let Some(number) = sample {
        // Neighbours differ in the barrier, then in the slice.
        let start = number % all.len();
        all.rotate_left(start);
        all.truncate(SAMPLE);
    }
    all
}

/// Builds the program with fibers; returns its path.
fn build(debug: bool) -> Result<PathBuf, String> {
    let mut command = shell::cargo();
    command.args(["build", "-p", "chaos", "--features", "fiber", "--bin", "chaos"]);
    if !debug {
        command.arg("--release");
    }
    shell::build(&mut command, "xtask/chaos", "chaos")
}

#[cfg(test)]
mod tests {
    use super::{Choice, SAMPLE, variants};

    fn read(text: &str) -> Result<Choice, String> {
        Choice::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_named() {
        let choice = read("--minutes 0.5 --seed 7 --sample -- --without tcp").unwrap();
        assert_eq!((choice.minutes, choice.seed, choice.sample), (0.5, Some(7), true));
        assert_eq!(choice.passed_on, ["--without", "tcp"]);
        for bad in ["--minutes", "--minutes ten", "--minutes 0", "--seed x", "--without tcp"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_sample_has_both_guards_and_every_number_gives_one() {
        assert_eq!(variants(None).len(), 18);
        for number in 0..100 {
            let sample = variants(Some(number));
            assert_eq!(sample.len(), SAMPLE);
            assert!(sample.iter().any(|(guard, ..)| *guard == "fences"));
            assert!(sample.iter().any(|(guard, ..)| *guard == "membarrier"));
        }
    }
}
