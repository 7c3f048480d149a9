//! The arguments of this program, and its output.

use std::{process::ExitCode, time::Duration};

use blitz_io::runtime::machine::Machine;

use crate::{
    flavour::Flavour,
    interrupt,
    outcome::{Outcome, Verdict},
    scenarios::ALL,
    soak,
};

/// The exit code of a scenario that could not run; automake's number, which other tools know too.
const SKIPPED: u8 = 77;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, program @ ..] = &arguments[..]
        && first == "interrupt"
    {
        return interrupt::main(program);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verdict = match arguments[..] {
        ["list"] => return list(),
        ["run", name, flavour] => run(name, flavour),
        ["soak", seconds, flavour] => soak(seconds, flavour),
        _ => Err("say `list`, `run NAME FLAVOUR`, `soak SECONDS FLAVOUR` or `interrupt PROGRAM …`"
            .into()),
    };
    match verdict {
        Ok(Outcome::Passed(what)) => {
            println!("passed: {what}");
            ExitCode::SUCCESS
        }
        Ok(Outcome::Skipped(why)) => {
            println!("skipped: {why}");
            ExitCode::from(SKIPPED)
        }
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints one line for each scenario: name, limit in seconds, `any` or the only backend, what it
/// does.
fn list() -> ExitCode {
    for scenario in ALL {
        let backend = scenario.only.unwrap_or("any");
        println!("{}\t{}\t{backend}\t{}", scenario.name, scenario.limit_s, scenario.what);
    }
    ExitCode::SUCCESS
}

fn run(name: &str, flavour: &str) -> Verdict {
    let Some(scenario) = ALL.iter().find(|scenario| scenario.name == name) else {
        return Err(format!("no scenario is called `{name}`: `list` names them"));
    };
    // A backend that is forced by the environment may be refused here; the scenario `no-uring`
    // tests that.
    match Machine::probe().io_backend {
        Err(why) if scenario.only.is_none() => Ok(Outcome::Skipped(why)),
        _ => (scenario.run)(flavour.parse()?),
    }
}

fn soak(seconds: &str, flavour: &str) -> Verdict {
    let seconds = seconds.parse().map_err(|_| format!("`{seconds}` is no number of seconds"))?;
    soak::soak(Duration::from_secs(seconds), flavour.parse::<Flavour>()?)
}
