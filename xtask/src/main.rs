//! `cargo xtask <subcommand>`: selects the subcommand and reports its error.

use std::process::ExitCode;

use xtask::{
    Outcome, api, backends, bench, chaos, ci, conformance, differential, faults, hardy, interrupt,
    leaks, model, platforms, sanitize, soak, stress, tidy,
};

const HELP: &str = "\
cargo xtask <subcommand> [arguments]

  ci            what decides whether a change lands, step by step
  tidy          the mechanical rules of the code (also a test: xtask/tests/tidy.rs)
  model         the loom models; with --weaken also their negative controls
  conformance   Tokio's own tests on the drop-in, and those of packages that use it
  differential  small programs on the real Tokio and Rayon and on the drop-ins, compared
  api           the drop-ins' public surface against the real ones'
  bench         the comparison of bench/
  stress        the long tests, which are marked #[ignore]
  leaks         the integration tests under valgrind: nothing lost
  sanitize      tests of fork-join under ThreadSanitizer and AddressSanitizer
  faults        what can go wrong with sockets, each in a process of its own
  soak          an echo for minutes, with everything at random
  chaos         everything at once at random, and nothing lost or doubled
  hardy         the tests in awkward folders, as other users, on busy machines
  backends      the tests with each way to wait for events forced
  interrupt     the tests while signals interrupt their threads
  platforms     other systems: type-checked, and tested under Wine and an emulator

Each has --help.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    match dispatch(&name, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // A subcommand that has already printed everything returns an empty error.
        Err(why) if why.is_empty() => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask {name}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(name: &str, arguments: &[String]) -> Outcome {
    type Subcommand = (&'static str, &'static str, fn(&[String]) -> Outcome);
    const SUBCOMMANDS: &[Subcommand] = &[
        ("ci", ci::HELP, ci::main),
        ("tidy", tidy::HELP, tidy::main),
        ("model", model::HELP, model::main),
        ("conformance", conformance::HELP, conformance::main),
        ("differential", differential::HELP, differential::main),
        ("api", api::HELP, api::main),
        ("bench", bench::HELP, bench::main),
        ("stress", stress::HELP, stress::main),
        ("leaks", leaks::HELP, leaks::main),
        ("sanitize", sanitize::HELP, sanitize::main),
        ("faults", faults::HELP, faults::main),
        ("soak", soak::HELP, soak::main),
        ("chaos", chaos::HELP, chaos::main),
        ("hardy", hardy::HELP, hardy::main),
        ("backends", backends::HELP, backends::main),
        ("interrupt", interrupt::HELP, interrupt::main),
        ("platforms", platforms::HELP, platforms::main),
    ];
    if matches!(name, "" | "help" | "--help" | "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let Some((_, help, run)) = SUBCOMMANDS.iter().find(|(known, ..)| *known == name) else {
        return Err(format!("no such subcommand; these exist:\n\n{HELP}"));
    };
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{help}");
        return Ok(());
    }
    run(arguments)
}
