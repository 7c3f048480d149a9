//! `blitz doctor`: prints what this machine offers and what the runtime will choose. Its report
//! about a project is in `project`.
//!
//! Probing is the runtime's ([`blitz_io::runtime::machine`]); this file only formats the results as
//! a page, so that the page can be tested with machines that do not exist.

use std::{io::IsTerminal, process::ExitCode};

use blitz_io::runtime::machine::{Barrier, IoUring, Limit, Machine, WorkerCountSource};

use crate::numbers;

/// The limit of descriptors below which a server of ordinary size may run out; 1,024 is the soft
/// limit of most systems. Picked, not measured.
const FEW_FILES: u64 = 4096;

/// The number of threads that a program has beside its workers: main, blocking calls, others.
/// Picked, not measured.
const OTHER_THREADS: u64 = 16;

pub(crate) fn run() -> ExitCode {
    let machine = Machine::probe();
    let shown = crate::show(&render(&machine, colour()));
    // A runtime cannot be built here, so the exit code must report that to scripts.
    let refused = machine.workers.is_err() || machine.io_backend.is_err();
    if refused { ExitCode::FAILURE } else { shown }
}

/// Returns true if standard output is a terminal that wants colours.
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A page of titles, rows of name and text, and advice.
pub(crate) struct Page {
    text: String,
    colour: bool,
}

impl Page {
    pub(crate) fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn title(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let (on, off) = if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        self.text += &format!("{gap}{on}{title}{off}\n");
    }

    pub(crate) fn row(&mut self, name: &str, text: &str) {
        self.text += &format!("  {name:<15}{text}\n");
    }

    pub(crate) fn advice(&mut self, text: &str) {
        let (on, off) = if self.colour { ("\x1b[33m", "\x1b[0m") } else { ("", "") };
        self.text += &format!("  {on}!{off} {text}\n");
    }
}

fn render(machine: &Machine, colour: bool) -> String {
    let mut page = Page::new(colour);
    page.title("this machine");
    offers(machine, &mut page);
    page.title("the runtime will choose");
    choices(machine, &mut page);
    let advice = advice(machine);
    page.title(if advice.is_empty() { "nothing to warn about" } else { "worth a look" });
    for line in advice {
        page.advice(&line);
    }
    page.text
}

fn offers(machine: &Machine, page: &mut Page) {
    let unknown = || "unknown".to_owned();
    let kernel = machine.kernel.as_ref().map_or(String::new(), |it| format!(", kernel {it}"));
    page.row("system", &format!("{}{kernel}", machine.system));
    page.row("memory", &machine.memory.map_or_else(unknown, numbers::bytes));
    page.row("cores", &machine.cores.map_or_else(unknown, |cores| cores.to_string()));
    page.row("quota", &machine.quota.as_ref().map_or("none".to_owned(), ToString::to_string));
    page.row(
        "membarrier",
        &match machine.barrier {
            Barrier::Membarrier(cost) => format!("works, {} a call just now", numbers::time(cost)),
            Barrier::Fences => "not available".to_owned(),
        },
    );
    page.row("io_uring", &io_uring(machine));
    page.row("open files", &limit(machine.open_files, numbers::count));
    page.row("threads", &limit(machine.threads, numbers::count));
    let pids = machine.pids.map_or("no bound seen".to_owned(), numbers::count);
    page.row("  of the group", &pids);
    page.row("locked memory", &limit(machine.locked_memory, numbers::bytes));
}

fn io_uring(machine: &Machine) -> String {
    let status = match &machine.io_uring {
        IoUring::Works => "works",
        IoUring::Absent => "absent",
        IoUring::Forbidden => "refused to this process",
        IoUring::Failed(error) => &format!("fails: {error}"),
        IoUring::Unknown => "none on this system",
    };
    match machine.io_uring_disabled {
        Some(value) => format!("{status} (kernel.io_uring_disabled = {value})"),
        None => status.to_owned(),
    }
}

fn limit(limit: Option<Limit>, number: fn(u64) -> String) -> String {
    let bound = |bound: Option<u64>| bound.map_or("unlimited".to_owned(), number);
    match limit {
        None => "unknown".to_owned(),
        Some(Limit { soft, hard }) if soft == hard => bound(soft),
        Some(Limit { soft, hard }) => format!("{}, may be raised to {}", bound(soft), bound(hard)),
    }
}

fn choices(machine: &Machine, page: &mut Page) {
    page.row(
        "workers",
        &match &machine.workers {
            Ok(workers) => workers.to_string(),
            Err(_) => "none: the runtime will refuse to start, see below".to_owned(),
        },
    );
    page.row(
        "barriers",
        match machine.barrier {
            Barrier::Membarrier(_) => "membarrier: free for the busy side, the rare side pays",
            Barrier::Fences => "a full fence on both sides",
        },
    );
    page.row(
        "input, output",
        &match &machine.io_backend {
            Ok(backend) => {
                format!("{backend}; BLITZ_IO_BACKEND chooses another (auto, epoll, poll, uring)")
            }
            Err(_) => "none: the runtime will refuse to start, see below".to_owned(),
        },
    );
    page.row(
        "io_uring",
        match (&machine.io_uring, &machine.io_backend) {
            (IoUring::Works, Ok(backend)) if backend == "io_uring" => {
                "to wait for events, and for operations that own their buffers"
            }
            (IoUring::Works, _) => {
                "for operations that own their buffers (`read_owned`), not to wait for events"
            }
            _ => "not used",
        },
    );
}

/// Returns what the user could change, each with the next step.
fn advice(machine: &Machine) -> Vec<String> {
    let mut advice = Vec::new();
    match &machine.workers {
        Err(error) => advice.push(error.to_string()),
        Ok(workers) => {
            let count = workers.count as u64;
            if let (WorkerCountSource::Variable(name), Some(cores)) =
                (&workers.source, machine.cores)
                && workers.count > cores.count
            {
                advice.push(format!(
                    "{name} requests {} workers and there are {cores} cores: the workers will share them; unset it unless that is meant",
                    numbers::count(count)
                ));
            }
            advice.extend(too_few_threads(machine, count));
        }
    }
    advice.extend(machine.io_backend.as_ref().err().cloned());
    if machine.barrier == Barrier::Fences && machine.system.starts_with("linux") {
        advice.push("membarrier is refused, so full fences are paid instead: allow the system call in the container's seccomp profile (Linux 4.14 or newer has it)".to_owned());
    }
    advice.extend(uring_advice(machine));
    if let Some(Limit { soft: Some(soft), hard }) = machine.open_files
        && soft < FEW_FILES
        && hard != Some(soft)
    {
        let hard = hard.map_or("unlimited".to_owned(), |hard| hard.to_string());
        advice.push(format!(
            "{} open files are few for a server: run `ulimit -n {hard}` before it starts",
            numbers::count(soft)
        ));
    }
    advice
}

fn too_few_threads(machine: &Machine, workers: u64) -> Option<String> {
    let user = machine.threads.and_then(|limit| limit.soft);
    let (bound, next) = match (machine.pids, user) {
        (Some(group), user) if user.is_none_or(|user| group <= user) => {
            (group, "raise pids.max of the control group")
        }
        (_, Some(user)) => (user, "raise `ulimit -u`"),
        (_, None) => return None,
    };
    (bound < workers.saturating_add(OTHER_THREADS)).then(|| {
        format!(
            "{} threads are allowed and the runtime wants {} workers beside the program's own threads: {next} or set BLITZ_WORKER_THREADS",
            numbers::count(bound),
            numbers::count(workers)
        )
    })
}

fn uring_advice(machine: &Machine) -> Option<String> {
    let next = match (&machine.io_uring, machine.io_uring_disabled) {
        (IoUring::Forbidden, Some(1 | 2)) => {
            "set kernel.io_uring_disabled to 0 with sysctl".to_owned()
        }
        (IoUring::Forbidden, _) => {
            "allow io_uring_setup in the container's seccomp profile".to_owned()
        }
        (IoUring::Absent, _) => {
            "run Linux 5.17 or newer, or lift the filter that hides it".to_owned()
        }
        (IoUring::Failed(error), _) => {
            format!("look up why an io_uring cannot be set up ({error})")
        }
        (IoUring::Works | IoUring::Unknown, _) => return None,
    };
    Some(format!(
        "io_uring is not available, so operations that own their buffers do without it; if it is wanted: {next}"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use blitz_io::runtime::machine::{
        Barrier, CoreCountSource, Cores, IoUring, Limit, Machine, Quota, WorkerCountSource,
        Workers, parse_count,
    };

    use super::{advice, render};

    /// Returns a machine with nothing to warn about.
    fn healthy() -> Machine {
        let cores = Some(Cores { count: 2, by: CoreCountSource::Affinity });
        Machine {
            system: "linux x86_64".into(),
            kernel: Some("6.18.0".into()),
            memory: Some(16 << 30),
            cores,
            quota: None,
            barrier: Barrier::Membarrier(Duration::from_nanos(320)),
            io_uring: IoUring::Works,
            io_uring_disabled: Some(0),
            io_backend: Ok("epoll".into()),
            open_files: Some(Limit { soft: Some(20_000), hard: Some(20_000) }),
            threads: Some(Limit { soft: Some(96_343), hard: None }),
            locked_memory: Some(Limit { soft: Some(8 << 20), hard: Some(8 << 20) }),
            pids: None,
            workers: Ok(Workers {
                count: 2,
                source: WorkerCountSource::Machine { cores, quota: None },
            }),
        }
    }

    /// Returns a machine of which nothing is known.
    fn unknown() -> Machine {
        Machine {
            system: "plan9 mips".into(),
            kernel: None,
            memory: None,
            cores: None,
            quota: None,
            barrier: Barrier::Fences,
            io_uring: IoUring::Unknown,
            io_uring_disabled: None,
            io_backend: Ok("poll".into()),
            open_files: None,
            threads: None,
            locked_memory: None,
            pids: None,
            workers: Ok(Workers {
                count: 1,
                source: WorkerCountSource::Machine { cores: None, quota: None },
            }),
        }
    }

    #[track_caller]
    fn advises(machine: &Machine, parts: &[&str]) {
        let advice = advice(machine);
        assert_eq!(advice.len(), 1, "{advice:#?}");
        for part in parts {
            assert!(advice[0].contains(part), "{part:?} is not in {:?}", advice[0]);
        }
    }

    #[test]
    fn a_healthy_machine_is_one_page_without_advice() {
        let expected = "\
this machine
  system         linux x86_64, kernel 6.18.0
  memory         16.0 GiB
  cores          2 cores by affinity
  quota          none
  membarrier     works, 320 ns a call just now
  io_uring       works (kernel.io_uring_disabled = 0)
  open files     20,000
  threads        96,343, may be raised to unlimited
    of the group no bound seen
  locked memory  8.00 MiB

the runtime will choose
  workers        2: 2 cores by affinity, no quota
  barriers       membarrier: free for the busy side, the rare side pays
  input, output  epoll; BLITZ_IO_BACKEND chooses another (auto, epoll, poll, uring)
  io_uring       for operations that own their buffers (`read_owned`), not to wait for events

nothing to warn about
";
        assert_eq!(render(&healthy(), false), expected);
    }

    #[test]
    fn an_unknown_machine_is_shown_as_unknown_and_is_no_reason_to_warn() {
        let page = render(&unknown(), false);
        assert!(page.contains("memory         unknown\n"), "{page}");
        assert!(page.contains("open files     unknown\n"), "{page}");
        assert!(page.ends_with("\nnothing to warn about\n"), "{page}");
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        let mut machine = healthy();
        machine.barrier = Barrier::Fences;
        assert!(!render(&machine, false).contains('\x1b'));
        let page = render(&machine, true);
        let plain = ["\x1b[1m", "\x1b[33m", "\x1b[0m"]
            .iter()
            .fold(page, |page, colour| page.replace(colour, ""));
        assert_eq!(plain, render(&machine, false));
    }

    #[test]
    fn a_bad_variable_is_quoted_with_its_next_step() {
        let mut machine = healthy();
        machine.workers = Err(parse_count("BLITZ_WORKER_THREADS", "0").unwrap_err());
        advises(&machine, &["BLITZ_WORKER_THREADS is `0`", "write a number"]);
        assert!(render(&machine, false).contains("will refuse to start"));
    }

    #[test]
    fn a_backend_that_is_not_available_is_reported_with_the_next_step() {
        let mut machine = healthy();
        machine.io_backend = Err("uring is not supported here: unset BLITZ_IO_BACKEND".into());
        advises(&machine, &["uring", "unset BLITZ_IO_BACKEND"]);
        assert!(render(&machine, false).contains("input, output  none"));
    }

    /// The errno is in the runtime's message, which is shown unchanged.
    #[test]
    fn a_refused_epoll_is_reported_with_the_error() {
        let mut machine = healthy();
        let words = "poll, because epoll is refused: Operation not permitted (os error 1)";
        machine.io_backend = Ok(words.into());
        let page = render(&machine, false);
        assert!(page.contains(&format!("  input, output  {words};")), "{page}");
    }

    #[test]
    fn more_workers_than_cores_are_pointed_out_when_a_variable_sets_them() {
        let mut machine = healthy();
        let source = WorkerCountSource::Variable("TOKIO_WORKER_THREADS");
        machine.workers = Ok(Workers { count: 2, source: source.clone() });
        assert!(advice(&machine).is_empty());
        machine.workers = Ok(Workers { count: 3, source });
        advises(&machine, &["TOKIO_WORKER_THREADS", "3 workers", "2 cores", "unset"]);
    }

    #[test]
    fn a_bound_on_threads_is_a_warning_when_the_workers_come_near_it() {
        let mut machine = healthy();
        machine.pids = Some(18);
        assert!(advice(&machine).is_empty());
        machine.pids = Some(17);
        advises(&machine, &["17 threads", "pids.max"]);
        machine.threads = Some(Limit { soft: Some(5), hard: None });
        advises(&machine, &["5 threads", "ulimit -u"]);
    }

    #[test]
    fn a_refused_io_uring_names_what_refuses_it() {
        let mut machine = healthy();
        machine.io_uring = IoUring::Forbidden;
        advises(&machine, &["seccomp"]);
        machine.io_uring_disabled = Some(2);
        advises(&machine, &["sysctl"]);
        machine.io_uring = IoUring::Absent;
        advises(&machine, &["Linux 5.17"]);
        machine.io_uring = IoUring::Failed("out of memory".into());
        advises(&machine, &["out of memory"]);
    }

    #[test]
    fn few_files_are_a_warning_only_if_more_can_be_had() {
        let mut machine = healthy();
        machine.open_files = Some(Limit { soft: Some(1024), hard: Some(524_288) });
        advises(&machine, &["1,024 open files", "ulimit -n 524288"]);
        machine.open_files = Some(Limit { soft: Some(1024), hard: Some(1024) });
        assert!(advice(&machine).is_empty());
    }

    #[test]
    fn a_quota_is_shown_with_its_file() {
        let mut machine = healthy();
        machine.quota =
            Some(Quota { micros: 50_000, period_micros: 100_000, file: "/g/cpu.max".into() });
        let page = render(&machine, false);
        assert!(page.contains("quota          0.50 cores (/g/cpu.max)\n"), "{page}");
    }
}
