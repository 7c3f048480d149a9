//! Detection of the machine's resources, and the default number of workers that follows from them.
//!
//! The builder calls [`workers`] to find out how many threads to start, and `blitz doctor` shows
//! everything else. No function here panics, and every source is optional: a missing file, a
//! refused system call and a text that cannot be parsed all count as 'unknown', and the decision
//! is made from the rest.
//!
//! # The decision
//! `BLITZ_WORKER_THREADS` comes first, then `TOKIO_WORKER_THREADS`. A bad value is an error, and
//! the caller decides whether to panic, as Tokio does. Without the variables, the number is that of
//! the cores on which the calling thread may run, but no more than the tightest CPU quota of the
//! control groups around the process, rounded up. It is rounded up because a quota of 1.5 cores
//! keeps two workers busy for three quarters of each period, while one worker would leave a third
//! of the quota unused.
//!
//! The affinity and the variables are read at every decision, because the affinity belongs to a
//! thread and both can change. The quota takes a dozen file reads and belongs to the process, so it
//! is read once, and a later change of the quota has no effect.
//!
//! # Where the quota is
//! `/proc/self/cgroup` names our group in each hierarchy, and `/proc/self/mountinfo` says where a
//! hierarchy is mounted and which of its groups is visible as the mount's root:
//!
//! ```text
//! our group   /docker/abc/app       from /proc/self/cgroup
//! root        /docker/abc           from mountinfo
//! mounted at  /sys/fs/cgroup        from mountinfo
//! read        /sys/fs/cgroup/app, then /sys/fs/cgroup
//! ```
//!
//! A quota limits a group and all groups below it, so the tightest one from our group up to the
//! root counts. A mount that does not show our group is skipped.
//!
//! # Rejected
//! - `std::thread::available_parallelism` alone: it takes affinity and quota into account on
//!   Linux, but rounds the quota down and does not report which of the two was decisive. It is the
//!   fallback.
//! - `getrlimit`: `/proc/self/limits` contains the same numbers, without a foreign type for each
//!   operating system.

use std::{
    cmp::Ordering,
    ffi::OsString,
    fmt, fs,
    path::{Component, Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use crate::engine::prim::barrier;

/// The maximum number of workers of a runtime.
///
/// Tokio has no maximum and fails when the operating system refuses to start a thread. 32,768 is
/// the default of `kernel.pid_max` on Linux, so a machine with default settings cannot have more
/// threads, and a mistyped number is rejected before the first thread starts.
pub const MAX_WORKERS: usize = 1 << 15;

/// The environment variables that set the number of workers; the first one that is set decides.
pub const VARIABLES: [&str; 2] = ["BLITZ_WORKER_THREADS", "TOKIO_WORKER_THREADS"];

/// The number of workers of a runtime whose builder does not set it, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workers {
    /// The number of workers: at least 1, at most [`MAX_WORKERS`].
    pub count: usize,
    /// The reason for the number.
    pub source: WorkerCountSource,
}

/// The reason for a number of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerCountSource {
    /// The environment variable with this name is set.
    Variable(&'static str),
    /// The number is the smaller of the two, or 1 if neither is known.
    Machine {
        /// The cores on which the thread may run.
        cores: Option<Cores>,
        /// The tightest CPU quota of the control groups around the process.
        quota: Option<Quota>,
    },
}

/// A number of logical cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// The number of cores: at least 1.
    pub count: usize,
    /// The source of the number.
    pub by: CoreCountSource,
}

/// The source of a number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreCountSource {
    /// The thread's affinity mask.
    Affinity,
    /// The standard library.
    System,
}

/// A CPU quota: `micros` of processor time in every `period_micros`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Processor time granted per period, in microseconds.
    pub micros: u64,
    /// Length of a period in microseconds; never 0.
    pub period_micros: u64,
    /// The file from which the quota was read.
    pub file: PathBuf,
}

impl Quota {
    /// Returns the number of cores that the quota can keep busy, rounded up: at least 1.
    pub fn cores(&self) -> usize {
        usize::try_from(self.micros.div_ceil(self.period_micros)).unwrap_or(usize::MAX).max(1)
    }

    /// Compares two quotas as fractions of a core, without rounding.
    fn compare(&self, other: &Self) -> Ordering {
        let left = u128::from(self.micros) * u128::from(other.period_micros);
        let right = u128::from(other.micros) * u128::from(self.period_micros);
        left.cmp(&right)
    }
}

/// The error for an environment variable whose value is not a valid number of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidWorkerCount {
    variable: &'static str,
    value: String,
    fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Zero,
    NotANumber,
    TooMany,
}

impl std::error::Error for InvalidWorkerCount {}

impl fmt::Display for InvalidWorkerCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Zero => "a runtime without workers runs nothing",
            Fault::NotANumber => "that is not a whole number",
            Fault::TooMany => "that is more threads than this runtime starts",
        };
        write!(
            f,
            "{} is `{}`: {fault}; write a number from 1 to {MAX_WORKERS}, or unset it to get one worker per core",
            self.variable, self.value
        )
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.count, self.source)
    }
}

impl fmt::Display for WorkerCountSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "{name} says so"),
            Self::Machine { cores: None, quota: None } => {
                write!(f, "neither the cores nor a quota could be read")
            }
            Self::Machine { cores: Some(cores), quota: None } => write!(f, "{cores}, no quota"),
            Self::Machine { cores: None, quota: Some(quota) } => {
                write!(f, "a quota of {quota}, number of cores unknown")
            }
            Self::Machine { cores: Some(cores), quota: Some(quota) } => {
                if quota.cores() < cores.count {
                    write!(f, "a quota of {quota}, though {cores}")
                } else {
                    write!(f, "{cores}, a quota of {quota} is no tighter")
                }
            }
        }
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.count == 1 { "core" } else { "cores" };
        let by = match self.by {
            CoreCountSource::Affinity => "by affinity",
            CoreCountSource::System => "by the system's count",
        };
        write!(f, "{} {noun} {by}", self.count)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = u128::from(self.micros) * 100 / u128::from(self.period_micros);
        let (whole, part) = (hundredths / 100, hundredths % 100);
        write!(f, "{whole}.{part:02} cores ({})", self.file.display())
    }
}

/// Returns the number of workers for a runtime whose builder does not set it.
///
/// # Errors
/// If one of the [`VARIABLES`] is set and its value is not a number from 1 to [`MAX_WORKERS`].
pub fn workers() -> Result<Workers, InvalidWorkerCount> {
    decide(&|name| std::env::var_os(name), cores(), quota())
}

fn decide(
    variable: &dyn Fn(&str) -> Option<OsString>,
    cores: Option<Cores>,
    quota: Option<Quota>,
) -> Result<Workers, InvalidWorkerCount> {
    for name in VARIABLES {
        if let Some(value) = variable(name) {
            let count = parse_count(name, &value.to_string_lossy())?;
            return Ok(Workers { count, source: WorkerCountSource::Variable(name) });
        }
    }
    let by_cores = cores.map(|cores| cores.count);
    let by_quota = quota.as_ref().map(Quota::cores);
    let count = by_cores.into_iter().chain(by_quota).min().unwrap_or(1);
    Ok(Workers {
        count: count.clamp(1, MAX_WORKERS),
        source: WorkerCountSource::Machine { cores, quota },
    })
}

/// Parses a number of workers; `variable` is the name for the error message.
///
/// # Errors
/// If `value` is not a number from 1 to [`MAX_WORKERS`].
pub fn parse_count(variable: &'static str, value: &str) -> Result<usize, InvalidWorkerCount> {
    use std::num::IntErrorKind::PosOverflow;
    let fault = match value.trim().parse::<usize>() {
        Ok(count @ 1..=MAX_WORKERS) => return Ok(count),
        Ok(0) => Fault::Zero,
        Ok(_) => Fault::TooMany,
        Err(error) if *error.kind() == PosOverflow => Fault::TooMany,
        Err(_) => Fault::NotANumber,
    };
    // The message should fit into a line of a terminal, so a longer value is cut off.
    let value = value.chars().take(60).collect();
    Err(InvalidWorkerCount { variable, value, fault })
}

/// Returns the number of cores on which the calling thread may run.
pub fn cores() -> Option<Cores> {
    #[cfg(target_os = "linux")]
    if let Some(count) = linux::affinity() {
        return Some(Cores { count, by: CoreCountSource::Affinity });
    }
    #[cfg(not(blitz_loom))]
    if let Ok(count) = crate::engine::prim::thread::available_parallelism() {
        return Some(Cores { count: count.get(), by: CoreCountSource::System });
    }
    None
}

/// Returns the tightest CPU quota around this process, as it was at the first call.
pub fn quota() -> Option<Quota> {
    static QUOTA: OnceLock<Option<Quota>> = OnceLock::new();
    QUOTA.get_or_init(|| tightest_quota(&read_file)).clone()
}

/// The properties of the machine that `blitz doctor` shows. `None` always means 'unknown'.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The operating system and the architecture, as Rust names them.
    pub system: String,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// Physical memory in bytes.
    pub memory: Option<u64>,
    /// The cores on which this thread may run.
    pub cores: Option<Cores>,
    /// The tightest CPU quota around this process.
    pub quota: Option<Quota>,
    /// The mechanism for asymmetric barriers.
    pub barrier: Barrier,
    /// The result of setting up an io_uring instance.
    pub io_uring: IoUring,
    /// The value of `kernel.io_uring_disabled`: 0 allows all processes, 1 one group, 2 none.
    pub io_uring_disabled: Option<u32>,
    /// The I/O backend that a runtime would use, or the error with which it would not start.
    pub io_backend: Result<String, String>,
    /// The limit on open files.
    pub open_files: Option<Limit>,
    /// The limit on threads and processes of this user.
    pub threads: Option<Limit>,
    /// The limit on bytes that may be locked into memory.
    pub locked_memory: Option<Limit>,
    /// The tightest limit on threads and processes of the control groups around this process.
    pub pids: Option<u64>,
    /// The result of [`workers`].
    pub workers: Result<Workers, InvalidWorkerCount>,
}

/// The mechanism for asymmetric barriers in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// The system call `membarrier`: the frequent side is free, and the rare side takes this long,
    /// measured now, with no other thread of ours running.
    Membarrier(Duration),
    /// Full fences on both sides.
    Fences,
}

/// The result of setting up an io_uring instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IoUring {
    /// An io_uring instance was set up and closed again.
    Works,
    /// The kernel has no io_uring, or a system call filter pretends so.
    Absent,
    /// The kernel has io_uring and refuses it to this process.
    Forbidden,
    /// Another error, with the system's message.
    Failed(String),
    /// Nothing was tried, because this is not Linux.
    Unknown,
}

/// A limit of the process; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The limit that applies now.
    pub soft: Option<u64>,
    /// The highest value to which the process may raise the soft limit.
    pub hard: Option<u64>,
}

impl Machine {
    /// Reads every source once. Takes about a millisecond.
    pub fn probe() -> Self {
        let limits = read_file(Path::new("/proc/self/limits")).unwrap_or_default();
        Self {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            memory: read_file(Path::new("/proc/meminfo")).and_then(|text| parse_memory(&text)),
            cores: cores(),
            quota: quota(),
            barrier: match barrier::mechanism() {
                barrier::Mechanism::Membarrier => Barrier::Membarrier(barrier::heavy_cost()),
                barrier::Mechanism::Fences => Barrier::Fences,
            },
            io_uring: io_uring(),
            io_backend: io_backend(),
            io_uring_disabled: first_line("/proc/sys/kernel/io_uring_disabled")
                .and_then(|line| line.parse().ok()),
            open_files: parse_limit(&limits, "Max open files"),
            threads: parse_limit(&limits, "Max processes"),
            locked_memory: parse_limit(&limits, "Max locked memory"),
            pids: tightest_pids(&read_file),
            workers: workers(),
        }
    }
}

/// Returns the processor time that all threads of this process have used so far.
pub fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut time = std::mem::MaybeUninit::<libc::timespec>::zeroed();
        // SAFETY: the pointer is to our own `timespec`, which lives across the call.
        let result =
            unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr()) };
        if result != 0 {
            return None;
        }
        // SAFETY: a `timespec` consists of integers, so the zeroes that it was initialized with
        // were already a valid value; the call only wrote other integers.
        let time = unsafe { time.assume_init() };
        Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
    }
    #[cfg(not(unix))]
    None
}

fn io_backend() -> Result<String, String> {
    #[cfg(feature = "net")]
    return super::IoBackend::in_force().map_err(|error| error.to_string());
    #[cfg(not(feature = "net"))]
    Err("this build has no sockets: switch on the feature `net`".to_owned())
}

fn io_uring() -> IoUring {
    #[cfg(target_os = "linux")]
    return match linux::set_up_uring() {
        Ok(()) => IoUring::Works,
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOSYS) => IoUring::Absent,
            Some(libc::EPERM | libc::EACCES) => IoUring::Forbidden,
            _ => IoUring::Failed(error.to_string()),
        },
    };
    #[cfg(not(target_os = "linux"))]
    IoUring::Unknown
}

// Control groups.

/// A function that reads a file. Tests pass one with a file system of their own.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

fn read_file(path: &Path) -> Option<String> {
    // Paths in these files need not be UTF-8. A path that is not will not be found later.
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

fn first_line(path: &str) -> Option<String> {
    let text = read_file(Path::new(path))?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The path at which a hierarchy of control groups is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The group that appears as the root of the mount.
    root: String,
    point: PathBuf,
}

fn tightest_quota(read: Read<'_>) -> Option<Quota> {
    groups(read, "cpu")
        .into_iter()
        .filter_map(|(version, folder)| group_quota(read, version, &folder))
        .min_by(Quota::compare)
}

fn tightest_pids(read: Read<'_>) -> Option<u64> {
    groups(read, "pids")
        .into_iter()
        .filter_map(|(_, folder)| read(&folder.join("pids.max"))?.trim().parse().ok())
        .min()
}

fn group_quota(read: Read<'_>, version: Version, folder: &Path) -> Option<Quota> {
    match version {
        Version::V1 => {
            let file = folder.join("cpu.cfs_quota_us");
            let period = read(&folder.join("cpu.cfs_period_us"))?;
            let (micros, period_micros) = parse_quota_v1(&read(&file)?, &period)?;
            Some(Quota { micros, period_micros, file })
        }
        Version::V2 => {
            let file = folder.join("cpu.max");
            let (micros, period_micros) = parse_quota_v2(&read(&file)?)?;
            Some(Quota { micros, period_micros, file })
        }
    }
}

/// Returns the folders of our groups that have this controller, innermost first.
///
/// Both versions can be mounted at once although only one of them has the controller. Both are
/// listed, because the files of the other one are missing and are skipped.
fn groups(read: Read<'_>, controller: &str) -> Vec<(Version, PathBuf)> {
    let Some(memberships) = read(Path::new("/proc/self/cgroup")) else { return Vec::new() };
    let Some(mounts) = read(Path::new("/proc/self/mountinfo")) else { return Vec::new() };
    let mut folders = Vec::new();
    for version in [Version::V1, Version::V2] {
        let Some(group) = parse_membership(&memberships, version, controller) else { continue };
        // If several mounts show our group, use the one that shows most of its parent groups.
        let longest = mounts
            .lines()
            .filter_map(|line| parse_mount(line, controller))
            .filter(|mount| mount.version == version)
            .filter_map(|mount| Some((below_root(group, &mount.root)?, mount.point)))
            .max_by_key(|(below, _)| below.components().count());
        let Some((below, point)) = longest else { continue };
        for way in below.ancestors() {
            folders.push((version, point.join(way)));
        }
    }
    folders
}

/// Returns the path from the root of a mount down to our group, if the mount shows it.
fn below_root(group: &str, root: &str) -> Option<PathBuf> {
    let root = Path::new(root);
    // A root above our own namespace reads `/..`. All that is known then is that it is above our
    // group.
    let up = root.components().skip(1);
    if root != Path::new("/") && up.clone().all(|step| step == Component::ParentDir) {
        return Some(PathBuf::new());
    }
    let below = Path::new(group).strip_prefix(root).ok()?;
    // A group outside of our namespace reads `/../sibling` and is not under this mount.
    let plain = below.components().all(|step| matches!(step, Component::Normal(_)));
    plain.then(|| below.to_owned())
}

/// Finds the path of our group in `/proc/self/cgroup`, which has lines of `id:controllers:path`.
fn parse_membership<'t>(text: &'t str, version: Version, controller: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match version {
            Version::V1 => controllers.split(',').any(|name| name == controller),
            Version::V2 => id == "0" && controllers.is_empty(),
        };
        (ours && path.starts_with('/')).then_some(path)
    })
}

/// Parses a line of `/proc/self/mountinfo`, if it mounts a hierarchy with this controller:
/// `id parent device root point options [tags…] - type source options`.
fn parse_mount(line: &str, controller: &str) -> Option<Mount> {
    // Spaces inside paths are escaped, so the first separator is the real one.
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, point) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    let (kind, _source, options) = (right.next()?, right.next()?, right.next()?);
    let version = match kind {
        "cgroup" if options.split(',').any(|name| name == controller) => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    Some(Mount { version, root: unescape(root), point: unescape(point).into() })
}

/// Decodes the kernel's escapes: a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let byte = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                rest = &after[3..];
                (a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')
            }
            _ => {
                rest = after;
                first
            }
        };
        plain.push(byte);
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Parses `cpu.cfs_quota_us` (-1 for no quota) and `cpu.cfs_period_us`.
fn parse_quota_v1(quota: &str, period: &str) -> Option<(u64, u64)> {
    positive(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

/// Parses `cpu.max`: `max 100000` or `150000 100000`.
fn parse_quota_v2(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace();
    positive(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn positive(micros: i64, period_micros: i64) -> Option<(u64, u64)> {
    let (micros, period_micros) = (micros.try_into().ok()?, period_micros.try_into().ok()?);
    (micros > 0 && period_micros > 0).then_some((micros, period_micros))
}

/// Parses a row of `/proc/self/limits`: name, soft limit, hard limit, unit.
fn parse_limit(text: &str, name: &str) -> Option<Limit> {
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = row.split_whitespace();
    let mut bound = || match words.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    Some(Limit { soft: bound()?, hard: bound()? })
}

/// Parses `MemTotal` of `/proc/meminfo`, and returns it in bytes.
fn parse_memory(text: &str) -> Option<u64> {
    let row = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = row.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io,
        os::fd::{FromRawFd, OwnedFd},
    };

    /// Returns the number of cores in the calling thread's affinity mask.
    pub(super) fn affinity() -> Option<usize> {
        // The kernel refuses a mask that is shorter than its own, and does not report the length of
        // its own. So try 1,024 cores first, as glibc does, and stop at two million.
        let mut words = 1024 / libc::c_ulong::BITS as usize;
        while words <= 1 << 15 {
            let mut mask: Vec<libc::c_ulong> = vec![0; words];
            // SAFETY: 1. the mask has the length that is passed to the call, is zeroed, and lives
            // across the call. 2. a `cpu_set_t` is an array of `c_ulong`, so the alignment fits,
            // and the call writes no more than that length.
            let result = unsafe {
                libc::sched_getaffinity(0, size_of_val(mask.as_slice()), mask.as_mut_ptr().cast())
            };
            if result == 0 {
                let count = mask.iter().map(|word| word.count_ones() as usize).sum();
                return (count > 0).then_some(count);
            }
            if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
                return None;
            }
            words *= 2;
        }
        None
    }

    /// Sets up an io_uring instance of one entry and closes it.
    pub(super) fn set_up_uring() -> io::Result<()> {
        const ENTRIES: libc::c_uint = 1;
        // `struct io_uring_params` is 120 bytes of 4- and 8-byte integers.
        let mut params = [0_u64; 15];
        // SAFETY: the parameters have the size and the alignment of the kernel's struct, are zeroed
        // as the kernel requires, and live across the call.
        let result = unsafe {
            libc::syscall(libc::SYS_io_uring_setup, ENTRIES, params.as_mut_ptr().cast::<u8>())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = i32::try_from(result).map_err(io::Error::other)?;
        // SAFETY: the kernel has just opened this descriptor for us, and no other code knows it, so
        // we own it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{collections::HashMap, ffi::OsString, path::Path};

    use super::{
        CoreCountSource, Cores, IoUring, Limit, MAX_WORKERS, Machine, Quota, Version,
        WorkerCountSource, Workers, decide, parse_limit, parse_membership, parse_memory,
        parse_mount, parse_quota_v1, parse_quota_v2, processor_time, tightest_pids, tightest_quota,
        unescape,
    };

    const V1_CGROUP: &str =
        "9:name=systemd:/\n4:cpu,cpuacct:/docker/abc\n2:pids:/docker/abc\n0::/\n";
    const V1_MOUNTS: &str = "\
        31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup rw,cpu,cpuacct\n\
        33 31 0:30 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    const V2_CGROUP: &str = "0::/user.slice/app.scope/inner\n";
    const V2_MOUNTS: &str = "\
        24 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
        31 24 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    /// Runs `query` on a simulated file system that consists of `files`.
    fn on<R>(files: &[(&str, &str)], query: impl Fn(&dyn Fn(&Path) -> Option<String>) -> R) -> R {
        let files: HashMap<&Path, &str> =
            files.iter().map(|&(path, text)| (Path::new(path), text)).collect();
        query(&|path| files.get(path).map(|&text| text.to_owned()))
    }

    fn quota_of(files: &[(&str, &str)]) -> Option<Quota> {
        on(files, tightest_quota)
    }

    fn decided(
        variables: &[(&str, &str)],
        cores: Option<usize>,
        quota: Option<(u64, u64)>,
    ) -> Result<Workers, String> {
        let cores = cores.map(|count| Cores { count, by: CoreCountSource::Affinity });
        let quota = quota.map(|(micros, period_micros)| Quota {
            micros,
            period_micros,
            file: "/sys/fs/cgroup/cpu.max".into(),
        });
        let lookup = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(value))
        };
        decide(&lookup, cores, quota).map_err(|error| error.to_string())
    }

    #[test]
    fn the_smaller_of_cores_and_quota_decides_and_the_text_names_it() {
        for (cores, quota, text) in [
            (Some(2), None, "2: 2 cores by affinity, no quota"),
            (Some(1), None, "1: 1 core by affinity, no quota"),
            (
                Some(8),
                Some((150_000, 100_000)),
                "2: a quota of 1.50 cores (/sys/fs/cgroup/cpu.max), though 8 cores by affinity",
            ),
            (
                Some(2),
                Some((150_000, 100_000)),
                "2: 2 cores by affinity, a quota of 1.50 cores (/sys/fs/cgroup/cpu.max) is no tighter",
            ),
            (
                None,
                Some((5_000, 100_000)),
                "1: a quota of 0.05 cores (/sys/fs/cgroup/cpu.max), number of cores unknown",
            ),
            (None, None, "1: neither the cores nor a quota could be read"),
        ] {
            assert_eq!(decided(&[], cores, quota).unwrap().to_string(), text);
        }
    }

    #[test]
    fn more_cores_than_workers_are_cut_to_the_bound() {
        assert_eq!(decided(&[], Some(MAX_WORKERS + 1), None).unwrap().count, MAX_WORKERS);
    }

    #[test]
    fn our_variable_comes_before_tokios_and_both_before_the_machine() {
        let both = [("TOKIO_WORKER_THREADS", "7"), ("BLITZ_WORKER_THREADS", "3")];
        let ours = decided(&both, Some(2), None).unwrap();
        assert_eq!(
            (ours.count, ours.source),
            (3, WorkerCountSource::Variable("BLITZ_WORKER_THREADS"))
        );
        let tokios = decided(&both[..1], Some(2), None).unwrap();
        assert_eq!(
            (tokios.count, tokios.source),
            (7, WorkerCountSource::Variable("TOKIO_WORKER_THREADS"))
        );
        assert_eq!(decided(&[("BLITZ_WORKER_THREADS", " 4\n")], None, None).unwrap().count, 4);
    }

    #[test]
    fn a_bad_variable_is_an_error_that_names_it_its_value_and_the_next_step() {
        let huge = "9".repeat(400);
        for (value, fault) in [
            ("0", "without workers"),
            ("", "not a whole number"),
            ("two", "not a whole number"),
            ("-1", "not a whole number"),
            ("1.5", "not a whole number"),
            ("32769", "more threads"),
            (&*huge, "more threads"),
        ] {
            for name in super::VARIABLES {
                let text = decided(&[(name, value)], Some(2), None).unwrap_err();
                let shown: String = value.chars().take(60).collect();
                assert!(text.starts_with(&format!("{name} is `{shown}`: ")), "{text}");
                assert!(text.contains(fault), "{text}");
                assert!(text.ends_with("or unset it to get one worker per core"), "{text}");
                assert!(text.contains("from 1 to 32768"), "{text}");
            }
        }
        let bound = decided(&[("BLITZ_WORKER_THREADS", "32768")], Some(2), None).unwrap();
        assert_eq!(bound.count, MAX_WORKERS);
    }

    #[test]
    fn a_bad_variable_of_ours_is_not_passed_over_for_tokios() {
        let both = [("TOKIO_WORKER_THREADS", "7"), ("BLITZ_WORKER_THREADS", "x")];
        assert!(decided(&both, Some(2), None).unwrap_err().starts_with("BLITZ_WORKER_THREADS"));
    }

    #[test]
    fn a_v1_quota_is_found_under_a_mount_that_shows_only_our_group() {
        let quota = quota_of(&[
            ("/proc/self/cgroup", V1_CGROUP),
            ("/proc/self/mountinfo", V1_MOUNTS),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ])
        .unwrap();
        assert_eq!((quota.micros, quota.period_micros, quota.cores()), (250_000, 100_000, 3));
        assert_eq!(quota.file, Path::new("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"));
    }

    #[test]
    fn a_v1_group_without_a_quota_has_none() {
        let none = quota_of(&[
            ("/proc/self/cgroup", V1_CGROUP),
            ("/proc/self/mountinfo", V1_MOUNTS),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(none, None);
    }

    #[test]
    fn the_tightest_quota_on_the_way_up_counts() {
        let mut files = vec![
            ("/proc/self/cgroup", V2_CGROUP),
            ("/proc/self/mountinfo", V2_MOUNTS),
            ("/sys/fs/cgroup/user.slice/app.scope/inner/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "400000 100000\n"),
            // Less time than above, but in a period that is a fifth as long: 10 cores.
            ("/sys/fs/cgroup/user.slice/cpu.max", "200000 20000\n"),
        ];
        let quota = quota_of(&files).unwrap();
        assert_eq!(quota.cores(), 4);
        assert_eq!(quota.file, Path::new("/sys/fs/cgroup/user.slice/app.scope/cpu.max"));
        files[2].1 = "1000 100000\n";
        assert_eq!(quota_of(&files).unwrap().cores(), 1, "a hundredth of a core is one worker");
        files[2].1 = "max 100000\n";
        files[3].1 = "max 100000\n";
        assert_eq!(quota_of(&files).unwrap().cores(), 10);
        files[4].1 = "max 100000\n";
        assert_eq!(quota_of(&files), None);
    }

    #[test]
    fn with_both_versions_mounted_either_may_hold_the_quota() {
        let cgroup = "1:cpu:/a\n0::/b\n";
        let mounts = "32 31 0:29 / /c/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw\n";
        let base = [("/proc/self/cgroup", cgroup), ("/proc/self/mountinfo", mounts)];
        let v1 = [("/c/cpu/a/cpu.cfs_quota_us", "500"), ("/c/cpu/a/cpu.cfs_period_us", "100")];
        let v2 = [("/c/unified/b/cpu.max", "300 100")];
        assert_eq!(quota_of(&[&base[..], &v1].concat()).unwrap().cores(), 5);
        assert_eq!(quota_of(&[&base[..], &v2].concat()).unwrap().cores(), 3);
        assert_eq!(quota_of(&[&base[..], &v1, &v2].concat()).unwrap().cores(), 3);
    }

    #[test]
    fn a_mount_that_does_not_show_our_group_is_skipped() {
        let files = |cgroup, mounts| {
            quota_of(&[
                ("/proc/self/cgroup", cgroup),
                ("/proc/self/mountinfo", mounts),
                ("/theirs/cpu.max", "100000 100000"),
                ("/ours/app/cpu.max", "200000 100000"),
                ("/ours/cpu.max", "900000 100000"),
            ])
            .map(|quota| quota.cores())
        };
        let theirs = "1 1 0:1 /other /theirs rw - cgroup2 none rw\n";
        let both = "1 1 0:1 /other /theirs rw - cgroup2 none rw\n\
                    2 1 0:1 / /ours rw - cgroup2 none rw\n";
        assert_eq!(files("0::/app\n", theirs), None);
        assert_eq!(files("0::/app\n", both), Some(2));
        assert_eq!(files("0::/../sibling\n", both), None, "a group outside our name space");
        let above = "1 1 0:1 /../.. /ours rw - cgroup2 none rw\n";
        assert_eq!(files("0::/app\n", above), Some(9), "a root above us binds us");
    }

    #[test]
    fn of_two_mounts_the_one_with_the_longer_way_up_is_walked() {
        let mounts = "1 1 0:1 /a/b /narrow rw - cgroup2 none rw\n\
                      2 1 0:1 / /wide rw - cgroup2 none rw\n";
        let quota = quota_of(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", mounts),
            ("/narrow/cpu.max", "max 100000"),
            ("/wide/a/cpu.max", "200000 100000"),
        ]);
        assert_eq!(quota.unwrap().file, Path::new("/wide/a/cpu.max"));
    }

    #[test]
    fn missing_and_senseless_files_read_as_no_quota() {
        assert_eq!(quota_of(&[]), None);
        assert_eq!(quota_of(&[("/proc/self/cgroup", V2_CGROUP)]), None);
        assert_eq!(quota_of(&[("/proc/self/mountinfo", V2_MOUNTS)]), None);
        let base = [("/proc/self/cgroup", V2_CGROUP), ("/proc/self/mountinfo", V2_MOUNTS)];
        assert_eq!(quota_of(&base), None);
        for text in ["", "\n", "max", "1", "0 100000", "1 0", "-1 5", "a b", "1e5 100000"] {
            assert_eq!(parse_quota_v2(text), None, "{text:?}");
            let file = [("/sys/fs/cgroup/user.slice/cpu.max", text)];
            assert_eq!(quota_of(&[&base[..], &file].concat()), None, "{text:?}");
        }
        for (quota, period) in [("", ""), ("-1", "100000"), ("5", ""), ("5", "0"), ("x", "1")] {
            assert_eq!(parse_quota_v1(quota, period), None, "{quota:?} {period:?}");
        }
        for line in ["", " - ", "a - b", "1 2 3 4 5 6 7", "1 2 3 / /c rw - cgroup2", "\0\u{fffd}"] {
            assert_eq!(parse_mount(line, "cpu"), None, "{line:?}");
        }
        for text in ["", ":", "0:", "0::", "0::relative", "x:cpu", "1:cpuset:/a"] {
            assert_eq!(parse_membership(text, Version::V1, "cpu"), None, "{text:?}");
            assert_eq!(parse_membership(text, Version::V2, "cpu"), None, "{text:?}");
        }
    }

    #[test]
    fn a_group_path_may_hold_colons_and_a_mount_point_spaces() {
        assert_eq!(parse_membership("3:cpu:/a:b\n", Version::V1, "cpu"), Some("/a:b"));
        let mount = parse_mount(r"1 1 0:1 / /my\040groups rw - cgroup2 none rw", "cpu").unwrap();
        assert_eq!(mount.point, Path::new("/my groups"));
        for (escaped, plain) in [
            (r"\134", r"\"),
            (r"\04", r"\04"),
            (r"\", r"\"),
            (r"\999", r"\999"),
            (r"a\011b", "a\tb"),
        ] {
            assert_eq!(unescape(escaped), plain);
        }
    }

    #[test]
    fn the_tightest_bound_on_threads_counts() {
        let mut files = vec![
            ("/proc/self/cgroup", V2_CGROUP),
            ("/proc/self/mountinfo", V2_MOUNTS),
            ("/sys/fs/cgroup/user.slice/app.scope/pids.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/pids.max", "512\n"),
        ];
        assert_eq!(on(&files, tightest_pids), Some(512));
        files[2].1 = "20\n";
        assert_eq!(on(&files, tightest_pids), Some(20));
        assert_eq!(on(&files[..2], tightest_pids), None);
    }

    #[test]
    fn limits_are_read_by_their_row() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             96343                unlimited            processes \n\
                    Max open files            1024                 20000                files     \n\
                    Max locked memory         unlimited            unlimited            bytes     \n\
                    Max pending signals       ?                    1                    signals   \n";
        let limit = |name| parse_limit(text, name);
        assert_eq!(limit("Max open files"), Some(Limit { soft: Some(1024), hard: Some(20_000) }));
        assert_eq!(limit("Max processes"), Some(Limit { soft: Some(96_343), hard: None }));
        assert_eq!(limit("Max locked memory"), Some(Limit { soft: None, hard: None }));
        assert_eq!(limit("Max pending signals"), None);
        assert_eq!(limit("Max file locks"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(parse_memory("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2048 * 1024));
        for text in
            ["", "MemTotal:", "MemTotal: 5", "MemTotal: x kB", "MemTotal: 99999999999999999999 kB"]
        {
            assert_eq!(parse_memory(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_worker_count_follows_from_this_machine() {
        let machine = Machine::probe();
        let quota = machine.quota.as_ref().map_or(usize::MAX, Quota::cores);
        if super::VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
            let cores = machine.cores.map_or(usize::MAX, |cores| cores.count);
            assert_eq!(machine.workers.unwrap().count, cores.min(quota).clamp(1, MAX_WORKERS));
        }
        if cfg!(target_os = "linux") {
            assert_ne!(machine.io_uring, IoUring::Unknown);
            assert!(machine.cores.is_some());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn probing_leaves_no_descriptor_open() {
        // Another test may have an io_uring instance open at the moment of the count, so only a
        // difference of at least one instance per probe is a leak.
        for _ in 0..64 {
            Machine::probe();
        }
        let urings = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| target.to_string_lossy().contains("io_uring"))
            .count();
        assert!(urings < 64, "{urings} urings are still open");
    }

    #[test]
    fn processor_time_grows_with_work() {
        let Some(before) = processor_time() else { return };
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(20) {
            std::hint::black_box(start);
        }
        assert!(processor_time().unwrap() > before);
    }
}
