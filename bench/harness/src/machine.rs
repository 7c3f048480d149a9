//! Describes the machine that a recorded figure was measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Comparison;

/// Returns the description as lines of `what: value`. A value that cannot be determined says so,
/// because a record must not look complete when it is not.
pub fn describe(comparison: &Comparison, go: Option<&str>) -> Vec<(&'static str, String)> {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".into());
    vec![
        ("kernel", output("uname", &["-srm"])),
        ("processor", processor()),
        ("tcp congestion control", setting("net/ipv4/tcp_congestion_control")),
        ("load average at start", load.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        ("rustc", output("rustc", &["-vV"]).replace('\n', "; ")),
        ("build", build(comparison)),
        ("contenders", contenders(comparison, go)),
        ("commit", commit()),
    ]
}

/// Returns a setting of the kernel.
fn setting(name: &str) -> String {
    let value = fs::read_to_string(format!("/proc/sys/{name}"));
    value.map_or_else(|_| "unknown".into(), |value| value.trim().to_owned())
}

/// Returns today's date in UTC, as 2026-01-31.
pub fn today() -> String {
    output("date", &["-u", "+%F"])
}

fn output(program: &str, args: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    match Command::new(program).args(args).current_dir(here).output() {
        Ok(done) if done.status.success() => {
            String::from_utf8_lossy(&done.stdout).trim().to_string()
        }
        _ => "unknown".into(),
    }
}

fn processor() -> String {
    let lscpu = output("lscpu", &[]);
    let field = |name: &str| {
        let line = lscpu.lines().find(|line| line.trim_start().starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("unknown".to_string(), |(_, value)| value.trim().to_string())
    };
    let (model, threads) = (field("Model name:"), field("Thread(s) per core:"));
    let usable = std::thread::available_parallelism().map_or(0, usize::from);
    let cores = field("CPU(s):");
    let under = field("Hypervisor vendor:");
    format!(
        "{model}, {cores} cores ({usable} usable), {threads} threads a core, hypervisor {under}"
    )
}

fn build(comparison: &Comparison) -> String {
    match cfg!(debug_assertions) {
        true => "DEBUG: these figures mean nothing".into(),
        false => format!("release with {}, the system's allocator", comparison.profile),
    }
}

fn contenders(comparison: &Comparison, go: Option<&str>) -> String {
    let lock = Path::new(comparison.folder).join("Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let mut names = comparison.packages.to_vec();
    if comparison.has_blitz {
        names.insert(0, "blitz-io");
    }
    let mut versions: Vec<String> = names
        .iter()
        .map(|name| format!("{name} {}", locked(&lock, name).unwrap_or("unknown")))
        .collect();
    versions.extend(go.map(str::to_string));
    versions.join(", ")
}

/// Returns the version of a package in the text of a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"\nversion = \"");
    lock.split_once(&name)?.1.split('"').next()
}

fn commit() -> String {
    let hash = output("git", &["rev-parse", "--short=12", "HEAD"]);
    match output("git", &["status", "--porcelain", "--untracked-files=no"]).as_str() {
        "" | "unknown" => hash,
        _ => format!("{hash} with uncommitted changes"),
    }
}

/// Processor use of the machine, to determine how much other programs used while we measured. Timed
/// figures from a busy machine are worthless, and a load average reacts too slowly.
#[derive(Clone, Copy, Default)]
pub struct Use {
    total_ticks: f64,
    busy_ticks: f64,
    ours_ticks: f64,
}

impl Use {
    pub fn now() -> Use {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (total_ticks, busy_ticks) = ticks_in(&stat);
        Use { total_ticks, busy_ticks, ours_ticks: ticks_of_us_and_our_children() }
    }

    /// Returns the part of the machine's time since `earlier` that went to other programs, between
    /// 0 and 1; time that a hypervisor took away counts.
    pub fn others_since(&self, earlier: &Use) -> f64 {
        let busy = self.busy_ticks - earlier.busy_ticks;
        let ours = self.ours_ticks - earlier.ours_ticks;
        let total = self.total_ticks - earlier.total_ticks;
        if total > 0.0 { ((busy - ours) / total).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Returns all and busy ticks in the text of /proc/stat: its first line counts user, nice, system,
/// idle, iowait, irq, softirq and steal.
fn ticks_in(stat: &str) -> (f64, f64) {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    let total: f64 = ticks.iter().sum();
    (total, total - idle)
}

fn ticks_of_us_and_our_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name in brackets: user and system time of the process and of the
    // children it has waited for are fields 14 to 17 of the line.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(4).filter_map(|word| word.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_io_are_not_busy() {
        assert_eq!(ticks_in("cpu  1 2 3 40 50 6 7 8 9 9\ncpu0 1"), (117.0, 27.0));
    }

    #[test]
    fn what_others_use_is_what_is_busy_and_not_ours() {
        let start = Use::default();
        let end = Use { total_ticks: 200.0, busy_ticks: 150.0, ours_ticks: 100.0 };
        assert_eq!(end.others_since(&start), 0.25);
        assert_eq!(start.others_since(&start), 0.0);
    }

    #[test]
    fn a_locked_version_is_found_by_its_whole_name() {
        let lock = "[[package]]\nname = \"tokio-macros\"\nversion = \"2.0.0\"\n\n\
                    [[package]]\nname = \"tokio\"\nversion = \"1.2.3\"\n";
        assert_eq!(locked(lock, "tokio"), Some("1.2.3"));
        assert_eq!(locked(lock, "smol"), None);
    }

    #[test]
    fn what_is_not_there_is_called_unknown() {
        assert_eq!(output("no-such-program-here", &[]), "unknown");
    }
}
