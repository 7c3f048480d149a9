//! Small programs that must print the same on the real Tokio and Rayon and on the drop-ins.
//!
//! This source is compiled twice, once with the published packages and once with the drop-ins in
//! their place. `cargo xtask differential` does so, runs each case on both sides and compares.

use std::process::ExitCode;

mod cases;
mod planted;
mod probe;
mod side;

/// A name and the function that prints what it observes.
type Case = (&'static str, fn());

const HELP: &str = "\
differential list              prints the name of every case
differential run <topic/name>  runs one case
differential side              prints the packages that this binary was compiled with";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => list(),
        ["run", name] => match find(name) {
            Some(case) => case(),
            None => return refuse(&format!("there is no case `{name}`; see `list`")),
        },
        ["side"] => println!("{}", side::packages()),
        _ => return refuse(HELP),
    }
    ExitCode::SUCCESS
}

fn list() {
    for (topic, cases) in cases::TOPICS {
        for (name, _) in *cases {
            println!("{topic}/{name}");
        }
    }
}

fn find(name: &str) -> Option<fn()> {
    let (topic, name) = name.split_once('/')?;
    let planted = [("planted", planted::CASES)];
    let mut topics = cases::TOPICS.iter().chain(&planted);
    let (_, cases) = topics.find(|(it, _)| *it == topic)?;
    cases.iter().find(|(it, _)| *it == name).map(|(_, case)| *case)
}

/// Reports a wrong command line. No case exits with this status.
fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}
