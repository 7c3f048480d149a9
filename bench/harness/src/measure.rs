//! Clocks, counters and the loop around a workload. Linux only: processor time,
//! context switches and resident memory come from its system calls and /proc.

use std::time::{Duration, Instant};
use std::{fs, thread};

/// One figure of a row. Smaller is better in all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The metric's name: empty for a row with one figure, else the part after the dot.
    pub name: String,
    pub unit: String,
    pub value: f64,
    /// Processor time of the whole process per operation, where it is meaningful.
    pub cpu_ns: Option<f64>,
}

impl Metric {
    pub fn new(name: &str, unit: &str, value: f64, cpu_ns: Option<f64>) -> Metric {
        Metric { name: name.into(), unit: unit.into(), value, cpu_ns }
    }

    /// Converts a figure from nanoseconds to microseconds. Processor time stays in nanoseconds, as
    /// in all rows.
    pub fn in_us(self) -> Metric {
        assert_eq!(self.unit, "ns", "only nanoseconds are turned into microseconds");
        Metric { unit: "us".into(), value: self.value / 1e3, ..self }
    }

    /// Returns the line by which a child passes a figure to the driver; sched/go prints the same.
    pub fn line(&self) -> String {
        let name = if self.name.is_empty() { "-" } else { &self.name };
        let cpu = self.cpu_ns.map_or("-".into(), |cpu| format!("{cpu:.3}"));
        format!("metric {name} {} {:.3} {cpu}", self.unit, self.value)
    }

    pub fn parse(line: &str) -> Option<Metric> {
        let mut words = line.strip_prefix("metric ")?.split(' ');
        let name = words.next().map(|name| if name == "-" { "" } else { name })?;
        let unit = words.next()?;
        let value = words.next()?.parse().ok()?;
        let cpu_ns = match words.next()? {
            "-" => None,
            cpu => Some(cpu.parse().ok()?),
        };
        Some(Metric::new(name, unit, value, cpu_ns))
    }
}

/// Runs `batch`, which does `ops` operations, until `budget` is used up, and returns the median
/// wall time and the mean processor time of an operation.
///
/// Two batches go first, unmeasured: they start threads that are created lazily, fill the
/// allocator's and the contender's pools and touch the code. Three is the least number that has a
/// meaningful median.
pub fn per_op(budget: Duration, ops: usize, mut batch: impl FnMut()) -> Vec<Metric> {
    batch();
    batch();
    let mut walls = Vec::new();
    let (start, cpu) = (Instant::now(), cpu_ns(Of::Process));
    while walls.len() < 3 || start.elapsed() < budget {
        let start = Instant::now();
        batch();
        walls.push(start.elapsed().as_nanos() as f64 / ops as f64);
    }
    let cpu = (cpu_ns(Of::Process) - cpu) as f64 / (walls.len() * ops) as f64;
    vec![Metric::new("", "ns", median(&mut walls), Some(cpu))]
}

/// Returns the median: the middle value, or the mean of the two middle ones.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}

/// Returns the value below which `quarters` quarters of the values lie; always one of the values.
pub fn quartile(values: &mut [f64], quarters: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) * quarters / 4).copied().unwrap_or(f64::NAN)
}

/// Returns the smallest value that `percent` of the values do not exceed.
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[derive(Clone, Copy)]
pub enum Of {
    Process,
    ThisThread,
}

/// Returns user and system time of all threads of the process or of the calling one. This is the
/// same account as getrusage's, in nanoseconds where that one rounds to microseconds.
pub fn cpu_ns(of: Of) -> u64 {
    let clock = match of {
        Of::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
        Of::ThisThread => libc::CLOCK_THREAD_CPUTIME_ID,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local that the call writes and that outlives it.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(failed, 0, "no clock for processor time: run this on linux");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the number of voluntary context switches: how often threads went to sleep by themselves.
pub fn voluntary_switches(of: Of) -> u64 {
    let target = match of {
        Of::Process => libc::RUSAGE_SELF,
        Of::ThisThread => libc::RUSAGE_THREAD,
    };
    // SAFETY: `rusage` consists of integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a local that the call writes and that outlives it.
    let failed = unsafe { libc::getrusage(target, &mut usage) };
    assert_eq!(failed, 0, "getrusage failed: run this on linux");
    usage.ru_nvcsw as u64
}

/// Returns the resident memory of the process.
pub fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("no /proc: run this on linux");
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("statm has two numbers");
    // SAFETY: the call takes no pointers.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

/// Returns the cores that the calling thread may run on.
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: a set of cores is plain bits, for which zero is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a local of the size given; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    assert_eq!(failed, 0, "cannot read the allowed cores: run this on linux");
    // SAFETY: the number is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Keeps the calling thread, and the threads it starts from now on, on one core.
pub fn stay_on(core: usize) {
    // SAFETY: a set of cores is plain bits, for which zero is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` comes from `allowed_cores`, so it is below the size of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    let failed = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    assert_eq!(failed, 0, "cannot stay on core {core}: choose another row");
}

/// Waits until every thread but the calling main thread sleeps in the kernel.
///
/// # Panics
/// Panics after a second: the runtime is not idle, and a row that wakes an idle one would measure
/// something else.
pub fn wait_until_others_sleep() {
    let start = Instant::now();
    while !others_sleep() {
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "the runtime has nothing to do and does not sleep: look for a thread that spins"
        );
        // Picked, not measured: shorter than any row's own pause.
        thread::sleep(Duration::from_micros(200));
    }
}

/// Returns true if every thread but the calling main thread sleeps in the kernel. A call takes some
/// tens of microseconds.
pub fn others_sleep() -> bool {
    let main = std::process::id().to_string();
    fs::read_dir("/proc/self/task").expect("no /proc: run this on linux").flatten().all(|entry| {
        let is_main = entry.file_name().to_str() == Some(&main);
        // A thread that ended between the listing and the reading is not awake.
        is_main
            || fs::read_to_string(entry.path().join("stat"))
                .map_or(true, |stat| state_in(&stat) == Some('S'))
    })
}

/// Returns the state letter, which follows the name, which is in brackets and may contain anything.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn quartiles_are_values_at_a_quarter_of_the_ranks() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!([1, 2, 3].map(|part| quartile(&mut values, part)), [2.0, 3.0, 4.0]);
        assert!(quartile(&mut [], 2).is_nan());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&mut values, 50), 100.0);
        assert_eq!(percentile(&mut values, 99), 198.0);
        assert_eq!(percentile(&mut [7.0], 99), 7.0);
    }

    #[test]
    fn a_metric_survives_the_pipe() {
        for metric in
            [Metric::new("", "ns", 12.5, Some(13.25)), Metric::new("p99", "us", 4.0, None)]
        {
            assert_eq!(Metric::parse(&metric.line()), Some(metric));
        }
        assert_eq!(Metric::parse("metric - ns twelve -"), None);
        assert_eq!(Metric::parse("thread 'main' panicked"), None);
    }

    #[test]
    fn a_metric_in_microseconds_keeps_its_processor_time() {
        let metric = Metric::new("", "ns", 1500.0, Some(900.0)).in_us();
        assert_eq!(metric, Metric::new("", "us", 1.5, Some(900.0)));
    }

    #[test]
    fn the_state_is_found_behind_any_thread_name() {
        assert_eq!(state_in("7 (a) R (b) S 1 2"), Some('S'));
    }

    #[test]
    fn work_shows_on_the_processor_clock() {
        let before = cpu_ns(Of::ThisThread);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {}
        assert!(cpu_ns(Of::ThisThread) > before);
        assert!(cpu_ns(Of::Process) >= cpu_ns(Of::ThisThread));
    }

    #[test]
    fn a_pinned_thread_and_its_children_stay_on_their_processor() {
        let last = *allowed_cores().last().expect("this runs somewhere");
        let seen = thread::spawn(move || {
            stay_on(last);
            thread::spawn(allowed_cores).join().expect("the child only looks")
        });
        assert_eq!(seen.join().expect("the core is an allowed one"), [last]);
    }

    #[test]
    fn touched_memory_is_resident() {
        let before = resident_bytes();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident_bytes() >= before + (48 << 20));
        drop(block);
    }
}
