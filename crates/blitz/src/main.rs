//! The `blitz` command: a tour of the runtime, a report on this machine, the benchmarks.
//!
//! This file parses the arguments and calls the command. Exit codes: 0 for success, 1 when a check
//! or a child failed, 2 when the arguments are invalid.

#![forbid(unsafe_code)]

mod numbers;
mod doctor;
mod toml;
mod project;
mod bench;
mod load;
mod hogs;
mod joins;
mod record;
mod tour;

use std::{ffi::OsString, process::ExitCode};

/// The commands, in the order in which `help` lists them.
const COMMANDS: [(&str, &str); 4] = [
    ("tour", "run real work on the runtime and show what it did (the default)"),
    (
        "doctor",
        "show what this machine offers and what the runtime will choose;\n             with --project DIR, whether a project runs on the drop-ins",
    ),
    ("bench", "compare with other runtimes; takes the benchmark's own arguments"),
    ("help", "show this"),
];

/// The command that the arguments request.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Tour,
    Doctor,
    Project(OsString),
    Bench(Vec<OsString>),
    BenchHelp,
    Help,
    Version,
}

fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1).collect()) {
        Ok(Command::Tour) => tour::run(),
        Ok(Command::Doctor) => doctor::run(),
        Ok(Command::Project(folder)) => project::run(folder.as_ref(), doctor::colour()),
        Ok(Command::Bench(arguments)) => bench::run(&arguments),
        Ok(Command::BenchHelp) => show(bench::HELP),
        Ok(Command::Help) => show(&help()),
        Ok(Command::Version) => show(&format!("blitz {}\n", env!("CARGO_PKG_VERSION"))),
        Err(complaint) => {
            eprintln!("blitz: {complaint}");
            ExitCode::from(2)
        }
    }
}

/// Writes to the standard output; a closed pipe is not a failure.
pub(crate) fn show(text: &str) -> ExitCode {
    use std::io::{ErrorKind::BrokenPipe, Write};
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != BrokenPipe => {
            eprintln!("blitz: cannot write to the standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Command, String> {
    let mut arguments = arguments.into_iter();
    let Some(first) = arguments.next() else { return Ok(Command::Tour) };
    let rest: Vec<OsString> = arguments.collect();
    let first = first.to_string_lossy();
    let command = match &*first {
        // Handled here, because the benchmark would have to be built first, with all that it
        // compares.
        "bench" if rest.iter().any(|word| word == "--help" || word == "-h") => {
            return Ok(Command::BenchHelp);
        }
        "bench" => return Ok(Command::Bench(rest)),
        "tour" => Command::Tour,
        "doctor" => match doctor_of(&rest)? {
            Some(project) => return Ok(project),
            None => Command::Doctor,
        },
        "help" | "--help" | "-h" => return Ok(Command::Help),
        "--version" | "-V" => Command::Version,
        unknown => return Err(unknown_command(unknown)),
    };
    match rest.first() {
        None => Ok(command),
        Some(flag) if flag == "--help" || flag == "-h" => Ok(Command::Help),
        Some(extra) => Err(format!(
            "`{first}` takes no argument, and `{}` is one: leave it out",
            extra.to_string_lossy()
        )),
    }
}

/// Parses `--project DIR` or `--project=DIR`, if present.
fn doctor_of(rest: &[OsString]) -> Result<Option<Command>, String> {
    let Some(first) = rest.first() else { return Ok(None) };
    let joined = first.to_str().and_then(|word| word.strip_prefix("--project="));
    let (folder, more) = match joined {
        Some(folder) => (Some(OsString::from(folder)), rest.get(1)),
        None if first == "--project" => (rest.get(1).cloned(), rest.get(2)),
        None => return Ok(None),
    };
    match (folder, more) {
        (Some(folder), None) if !folder.is_empty() => Ok(Some(Command::Project(folder))),
        (Some(_), Some(more)) => Err(format!(
            "`doctor --project` takes one folder, and `{}` is too many: leave it out",
            more.to_string_lossy()
        )),
        _ => Err("`--project` wants the folder of a project behind it".into()),
    }
}

fn unknown_command(word: &str) -> String {
    let nearest = COMMANDS
        .map(|(name, _)| name)
        .into_iter()
        .chain(["--version", "--help"])
        .min_by_key(|name| distance(word, name))
        .unwrap_or("help");
    format!("there is no command `{word}`; did you mean `{nearest}`? `blitz help` lists them all")
}

/// Returns the edit distance: the number of letters to change, add or drop to get from one word to
/// the other.
fn distance(from: &str, to: &str) -> usize {
    // `row[j]` is the distance from what was read of `from` to the first `j` letters of `to`.
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &other) in to.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

fn help() -> String {
    let mut text = String::from("usage: blitz [command]\n\n");
    for (name, what) in COMMANDS {
        text += &format!("  {name:<11}{what}\n");
    }
    text += "  --version  show the version\n\n";
    text += "BLITZ_WORKER_THREADS sets the number of workers (else TOKIO_WORKER_THREADS does),\n";
    text += "BLITZ_IO_BACKEND (auto, epoll, poll, uring) how it waits for sockets.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, Command, distance, help, parse};

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(Into::into).collect())
    }

    #[test]
    fn no_argument_is_the_tour() {
        assert_eq!(parsed(""), Ok(Command::Tour));
        assert_eq!(parsed("tour"), Ok(Command::Tour));
    }

    #[test]
    fn every_listed_command_is_understood() {
        for (name, _) in COMMANDS {
            assert!(parsed(name).is_ok(), "{name}");
            assert!(help().contains(&format!("  {name} ")), "{name}");
        }
        assert_eq!(parsed("--version"), Ok(Command::Version));
        assert_eq!(parsed("-V"), Ok(Command::Version));
        for line in ["-h", "--help", "help", "help doctor", "doctor --help", "tour -h"] {
            assert_eq!(parsed(line), Ok(Command::Help), "{line}");
        }
    }

    #[test]
    fn bench_hands_its_arguments_on_as_they_are() {
        let expected = ["--quick", "--only", "spawn"].map(Into::into).to_vec();
        assert_eq!(parsed("bench --quick --only spawn"), Ok(Command::Bench(expected)));
        assert_eq!(parsed("bench --quick --help"), Ok(Command::BenchHelp));
        assert_eq!(parsed("bench -h"), Ok(Command::BenchHelp));
    }

    #[test]
    fn doctor_takes_the_folder_of_a_project() {
        let project = |folder: &str| Ok(Command::Project(folder.into()));
        assert_eq!(parsed("doctor --project ../x"), project("../x"));
        assert_eq!(parsed("doctor --project=../x"), project("../x"));
        for (line, part) in [
            ("doctor --project", "wants the folder"),
            ("doctor --project=", "wants the folder"),
            ("doctor --project a b", "`b` is too many"),
            ("doctor --projet a", "`--projet`"),
        ] {
            let complaint = parsed(line).unwrap_err();
            assert!(complaint.contains(part), "{line}: {complaint}");
        }
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_nearest_one() {
        for (word, nearest) in [
            ("docter", "doctor"),
            ("tuor", "tour"),
            ("benchmark", "bench"),
            ("halp", "help"),
            ("--versoin", "--version"),
        ] {
            let complaint = parsed(word).unwrap_err();
            assert!(complaint.contains(&format!("`{word}`")), "{complaint}");
            assert!(complaint.contains(&format!("did you mean `{nearest}`")), "{complaint}");
        }
    }

    #[test]
    fn an_argument_too_many_is_refused_by_name() {
        let complaint = parsed("doctor now").unwrap_err();
        assert!(complaint.contains("`doctor`") && complaint.contains("`now`"), "{complaint}");
    }

    #[test]
    fn the_distance_counts_letters_changed_added_and_dropped() {
        for (from, to, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("tour", "tuor", 2), ("docter", "doctor", 1)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
