//! Runs the socket fault scenarios of `xtask/faults`, each in a process of its own with a time
//! limit, on each event backend and each flavour of runtime.
//!
//! Two of them are controls. One fails and one hangs, and if that is not noticed, no scenario that
//! passes means anything.

use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    shell::{self, End},
};

/// Text of `cargo xtask faults --help`.
pub const HELP: &str = "\
cargo xtask faults [--list] [--debug] [--backend NAME] [--flavour NAME] [scenario …]

Builds the scenarios of xtask/faults in release and runs each in a process of its own,
with a time limit; prints whether it passed, failed or could not be tried, and why.
  --list      the scenarios, and what each does
  --debug     without optimisation, with debug assertions
  --backend   only on this way to wait for events: epoll, poll or uring
  --flavour   only on this runtime: one-thread or workers
Scenarios are picked by their names. All this is for Linux.";

/// The event backends that are tried.
pub const BACKENDS: &[&str] = &["epoll", "poll", "uring"];
/// The runtimes that are tried.
pub const FLAVOURS: &[&str] = &["one-thread", "workers"];

/// The exit code of a scenario that could not be tried.
const SKIPPED: i32 = 77;
/// Time limit for listing the scenarios, which should take no time at all.
const LISTING: Duration = Duration::from_secs(20);

/// The arguments that this subcommand and the soak have in common.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// `--list`.
    pub list: bool,
    /// `--debug`.
    pub debug: bool,
    /// `--backend`.
    pub backend: Option<String>,
    /// `--flavour`.
    pub flavour: Option<String>,
    /// All other arguments.
    pub names: Vec<String>,
}

impl Choice {
    /// Reads the arguments; an error names the one that is wrong.
    pub fn read(arguments: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut arguments = arguments.iter();
        let one_of = |given: Option<&String>, known: &[&str]| match given {
            Some(name) if known.contains(&name.as_str()) => Ok(Some(name.clone())),
            _ => Err(format!("say one of: {}", known.join(", "))),
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => choice.list = true,
                "--debug" => choice.debug = true,
                "--backend" => choice.backend = one_of(arguments.next(), BACKENDS)?,
                "--flavour" => choice.flavour = one_of(arguments.next(), FLAVOURS)?,
                flag if flag.starts_with('-') => {
                    return Err(format!("`{flag}` is no argument; see --help"));
                }
                name => choice.names.push(name.to_owned()),
            }
        }
        Ok(choice)
    }
}

/// A line of the program's list.
#[derive(Debug, PartialEq, Eq)]
struct Scenario {
    name: String,
    limit: Duration,
    /// The only event backend that the scenario applies to.
    only: Option<String>,
    what: String,
}

impl Scenario {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(str::to_owned);
        let (name, limit) = (fields.next()?, fields.next()?.parse().ok()?);
        let only = Some(fields.next()?).filter(|only| only != "any");
        Some(Self { name, limit: Duration::from_secs(limit), only, what: fields.next()? })
    }

    fn is_control(&self) -> bool {
        self.name.starts_with("control-")
    }
}

/// How a scenario ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Skipped,
    Failed,
    Hung,
}

/// Runs `cargo xtask faults`.
pub fn main(arguments: &[String]) -> Outcome {
    let choice = Choice::read(arguments)?;
    if !cfg!(target_os = "linux") {
        println!("skipped: the faults are made with Linux's means");
        return Ok(());
    }
    let program = build(choice.debug)?;
    let listed = shell::capture(Command::new(&program).arg("list"), LISTING)?.stdout;
    let scenarios: Vec<Scenario> = listed.lines().filter_map(Scenario::read).collect();
    if choice.list {
        scenarios.iter().for_each(|scenario| println!("{}: {}", scenario.name, scenario.what));
        return Ok(());
    }
    let known = |name: &&String| scenarios.iter().any(|scenario| scenario.name == **name);
    if let Some(unknown) = choice.names.iter().find(|name| !known(name)) {
        return Err(format!("no scenario is called `{unknown}`: --list names them"));
    }
    controls(&program, &scenarios)?;
    run_all(&program, &scenarios, &choice)
}

/// Builds the program of the scenarios; returns its path.
pub fn build(debug: bool) -> Result<PathBuf, String> {
    let mut command = shell::cargo();
    command.args(["build", "-p", "faults"]);
    if !debug {
        command.arg("--release");
    }
    shell::build(&mut command, "xtask/faults", "faults")
}

/// Runs one scenario; returns how it ended, and its last line of output.
fn run(
    program: &PathBuf,
    scenario: &Scenario,
    backend: &str,
    flavour: &str,
) -> Result<(Ended, String), String> {
    let mut command = Command::new(program);
    command.args(["run", &scenario.name, flavour]).env("BLITZ_IO_BACKEND", backend);
    let finished = shell::capture(&mut command, scenario.limit)?;
    let words = finished.stdout.lines().last().unwrap_or_default();
    Ok(match finished.end {
        End::TimedOut => (Ended::Hung, format!("did not end in {} s", scenario.limit.as_secs())),
        End::Exit(status) if status.success() => (Ended::Passed, words.to_owned()),
        End::Exit(status) if status.code() == Some(SKIPPED) => (Ended::Skipped, words.to_owned()),
        // The panic's message is on standard error.
        End::Exit(status) => (Ended::Failed, format!("{words} ({status}) {}", finished.stderr)),
    })
}

/// Checks that the scenario that must fail fails, and the one that must hang hangs.
fn controls(program: &PathBuf, scenarios: &[Scenario]) -> Outcome {
    for scenario in scenarios.iter().filter(|scenario| scenario.is_control()) {
        let wanted = if scenario.name == "control-hang" { Ended::Hung } else { Ended::Failed };
        let (ended, words) = run(program, scenario, BACKENDS[0], FLAVOURS[0])?;
        if ended != wanted {
            return Err(format!(
                "{} had to be {wanted:?} and is {ended:?}: {words}",
                scenario.name
            ));
        }
        println!("control: {}", scenario.what);
    }
    Ok(())
}

fn run_all(program: &PathBuf, scenarios: &[Scenario], choice: &Choice) -> Outcome {
    let picked = |scenario: &&Scenario| {
        let named = choice.names.is_empty() || choice.names.contains(&scenario.name);
        named && !scenario.is_control()
    };
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|one| one == name);
    let mut counts = [0; 3];
    for scenario in scenarios.iter().filter(picked) {
        for backend in BACKENDS.iter().filter(|backend| is(&choice.backend, backend)) {
            if !is(&scenario.only, backend) {
                continue;
            }
            for flavour in FLAVOURS.iter().filter(|flavour| is(&choice.flavour, flavour)) {
                let start = Instant::now();
                let (ended, words) = run(program, scenario, backend, flavour)?;
                let seconds = start.elapsed().as_secs_f32();
                println!("{} {backend} {flavour} ({seconds:.1} s): {words}", scenario.name);
                counts[match ended {
                    Ended::Passed => 0,
                    Ended::Skipped => 1,
                    Ended::Failed | Ended::Hung => 2,
                }] += 1;
            }
        }
    }
    let [passed, skipped, failed] = counts;
    println!("{passed} passed, {skipped} skipped, {failed} failed");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} scenarios failed; see above")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Choice, Scenario};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_named() {
        let choice = Choice::read(&words("--debug --backend poll reuse many")).unwrap();
        assert_eq!(choice.names, ["reuse", "many"]);
        assert_eq!((choice.debug, choice.backend.as_deref()), (true, Some("poll")));
        for bad in ["--bakend poll", "--backend", "--backend kqueue", "--flavour both"] {
            assert!(Choice::read(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_of_the_list_is_a_scenario() {
        let scenario = Scenario::read("coarse\t60\tepoll\ta sandbox refuses a call").unwrap();
        assert_eq!((scenario.name.as_str(), scenario.only.as_deref()), ("coarse", Some("epoll")));
        let scenario = Scenario::read("reuse\t60\tany\tnumbers are used again").unwrap();
        assert_eq!(scenario.only, None);
        assert_eq!(scenario.limit, Duration::from_secs(60));
        assert_eq!(Scenario::read("no list"), None);
    }
}
