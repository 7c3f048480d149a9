//! The comparison of bench/, which lives in workspaces of its own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Outcome, root, shell};

/// Text of `cargo xtask bench --help`.
pub const HELP: &str = "\
cargo xtask bench [sched | sync | net | fs | os | fork | mixed | queues] [--quick] [--only <row>] …

Builds and runs the comparisons of bench/ in release: `sched` (runtimes), `sync`
(locks and channels), `net` (sockets and timers), `fs` (files), `os` (children and signals), `fork` (fork-join), `mixed` (a server beside
sorts) and `queues` (run queues and their variants), or the one that is named. The other arguments are passed on; all know
--quick and --only. A comparison that is missing is skipped, with a message.";

const WORKSPACES: &[&str] = &["sched", "sync", "net", "fs", "os", "fork", "mixed", "queues"];

/// A full comparison takes tens of minutes; half a day means that it hangs.
const LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs `cargo xtask bench`.
pub fn main(arguments: &[String]) -> Outcome {
    let named = arguments.first().filter(|name| WORKSPACES.contains(&name.as_str()));
    let passed = &arguments[usize::from(named.is_some())..];
    for workspace in WORKSPACES.iter().filter(|it| named.is_none_or(|name| name == *it)) {
        let folder = root().join("bench").join(workspace);
        if !folder.join("Cargo.toml").exists() {
            println!("skipped: bench/{workspace} is not there");
            continue;
        }
        let mut command = shell::cargo();
        command.current_dir(folder).args(["run", "--release", "--"]);
        if *workspace != "queues" {
            // These programs write their records themselves.
            command.arg("run");
        } else if !passed.iter().any(|argument| argument == "--out") {
            let record = format!("bench/record/{}-{workspace}.md", today());
            println!("recorded in {record}");
            command.arg("--out").arg(root().join(record));
        }
        if !shell::run(command.args(passed), LIMIT)?.success() {
            return Err(format!("bench/{workspace} failed"));
        }
    }
    Ok(())
}

/// Returns the date in UTC, as year-month-day.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_of(since.as_secs() / 86_400)
}

/// Returns the date of a day counted from 1970-01-01, by eras of 400 years that begin in March, so
/// that the leap day is the last of a year.
fn date_of(day: u64) -> String {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date_of;

    #[test]
    fn days_become_dates_across_leap_years() {
        let known = [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_772, "2026-11-15"),
        ];
        for (day, date) in known {
            assert_eq!(date_of(day), date);
        }
    }
}
