//! Ends a test that hangs, and waits for conditions that must come true.
//!
//! A limit counts time in which this process could run. Time in which one of its threads was
//! ready and had no processor, or waited for a disk, because the machine is overloaded, is not
//! counted (on Linux, which reports this for each thread): a test that hangs is one whose threads
//! wait for each other. [`MOST`] bounds the time that is not counted, so that a test that computes
//! for ever is found on a busy machine, too.

use std::{
    collections::HashMap,
    ffi::OsString,
    io::Write,
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The time after which a test counts as hanging. Chosen: a hundred times what the slowest ordinary
/// test takes in a debug build on two busy cores.
const LIMIT: Duration = Duration::from_secs(30);

/// The largest factor by which a limit is stretched while the machine is busy with other processes.
const MOST: u32 = 20;

/// The interval at which the watch checks whether threads had to wait for a processor. Chosen:
/// short against every limit, long against the cost of reading.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The variable with a whole number that multiplies every limit, for machines and tools that are
/// slow: a memory checker runs a test tens of times slower.
const PATIENCE: &str = "BLITZ_IT_PATIENCE";

/// The variable that installs an empty handler for SIGURG, of which the test's runner then sends
/// many. Without a handler the system would not deliver the signal.
#[cfg(unix)]
const INTERRUPT: &str = "BLITZ_IT_INTERRUPT";

struct Watched {
    key: u64,
    name: String,
    /// The rest of the test's time, of which only counted time is subtracted.
    left: Duration,
    /// The latest end of the test's time, whatever is counted.
    until: Instant,
}

struct Watchdog {
    watched: Mutex<(u64, Vec<Watched>)>,
    changed: Condvar,
}

static WATCHDOG: Watchdog =
    Watchdog { watched: Mutex::new((0, Vec::new())), changed: Condvar::new() };

/// A guard; the test is watched until it is dropped.
#[must_use]
pub(crate) struct Guard(u64);

/// Watches the calling test: after the limit, its name is printed and the process aborted.
pub(crate) fn start() -> Guard {
    start_for(LIMIT)
}

/// Watches the calling test like [`start`], with another limit.
pub(crate) fn start_for(limit: Duration) -> Guard {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        #[cfg(unix)]
        if is_interrupted() {
            let_signals_interrupt();
        }
        static RUNS: AtomicBool = AtomicBool::new(false);
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(|| {
                RUNS.store(true, Relaxed);
                WATCHDOG.run();
            })
            .expect("the watchdog needs a thread");
        // Memory that a thread allocates and frees while it starts must not count as the test's.
        until(|| RUNS.load(Relaxed));
    });
    let limit = limit * patience();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut watched = WATCHDOG.lock();
    watched.0 += 1;
    let key = watched.0;
    watched.1.push(Watched { key, name, left: limit, until: Instant::now() + limit * MOST });
    WATCHDOG.changed.notify_one();
    Guard(key)
}

/// True if all time counts, because the watch must not inspect this process, which allocates.
static ALL_COUNTS: AtomicBool = AtomicBool::new(false);

/// Watches like [`start_for`], but all time counts: for a program that counts the process's memory.
#[allow(dead_code, reason = "it serves one program of tests")]
pub(crate) fn start_without_memory_for(limit: Duration) -> Guard {
    // Relaxed: the flag publishes nothing, and the watch starts after the store.
    ALL_COUNTS.store(true, Relaxed);
    start_for(limit)
}

/// Returns true if signals from outside arrive all the time, and have a handler of this file.
#[cfg(unix)]
pub(crate) fn is_interrupted() -> bool {
    std::env::var_os(INTERRUPT).is_some()
}

#[cfg(unix)]
fn let_signals_interrupt() {
    extern "C" fn forget(_: libc::c_int) {}
    // SAFETY: all zeros are a valid `sigaction`, and the handler does nothing, so it may run at
    // any point.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = forget as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// Returns the factor that [`PATIENCE`] sets; 1 without it.
fn patience() -> u32 {
    let Some(value) = std::env::var_os(PATIENCE) else { return 1 };
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.unwrap_or_else(|| panic!("{PATIENCE} is {value:?}: make it a whole number above 0"))
}

impl Drop for Guard {
    fn drop(&mut self) {
        WATCHDOG.lock().1.retain(|watched| watched.key != self.0);
    }
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Watched>)> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut watched = self.lock();
        let (mut looked, mut waits) = (Instant::now(), Waits::now());
        loop {
            let now = Instant::now();
            let now_waits = Waits::now();
            let counts = now_waits.counts_of(now - looked, &waits);
            (looked, waits) = (now, now_waits);
            watched.1.iter_mut().for_each(|test| test.left = test.left.saturating_sub(counts));
            let is_late = |test: &&Watched| test.left.is_zero() || test.until <= now;
            if let Some(late) = watched.1.iter().find(is_late) {
                // Not `eprintln`, because this thread inherits the output capture of the first
                // test.
                let text = format!("\n`{}` hangs: it did not end in its time\n", late.name);
                let _ = std::io::stderr().write_all(text.as_bytes());
                std::process::abort();
            }
            // With no test to watch there is no reason to wake up; an hour stands for that.
            let idle = watched.1.is_empty();
            let next = watched.1.iter().map(|test| test.left.min(CHECK_INTERVAL)).min();
            let rest = next.unwrap_or(Duration::from_secs(3600));
            let waited = self.changed.wait_timeout(watched, rest);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
            if idle {
                // The time of a test begins when it does.
                (looked, waits) = (Instant::now(), Waits::now());
            }
        }
    }
}

/// The waits of the threads of this process, as far as the system reports them.
#[derive(Default)]
struct Waits {
    /// The time for which each thread has waited for a processor since it started.
    processor: HashMap<OsString, Duration>,
    /// True if a thread waits for a disk at this moment.
    disk: bool,
}

impl Waits {
    fn now() -> Self {
        let mut waits = Self::default();
        // Relaxed: the flag publishes nothing, and it was stored before the watch started.
        if ALL_COUNTS.load(Relaxed) {
            return waits;
        }
        for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            // Time on a processor, time of waiting for one, number of time slices.
            let times = read("schedstat");
            if let Some(waited) = times.split(' ').nth(1).and_then(|nanos| nanos.parse().ok()) {
                waits.processor.insert(thread.file_name(), Duration::from_nanos(waited));
            }
            // The state comes behind the thread's name, which may contain any character.
            waits.disk |= read("stat").rsplit(") ").next().is_some_and(|it| it.starts_with('D'));
        }
        waits
    }

    /// Returns the part of the `passed` time since `before` in which this process could run.
    fn counts_of(&self, passed: Duration, before: &Self) -> Duration {
        if self.disk {
            return Duration::ZERO;
        }
        let more = self.processor.iter().map(|(thread, waited)| {
            waited.saturating_sub(before.processor.get(thread).copied().unwrap_or_default())
        });
        passed.saturating_sub(more.max().unwrap_or_default())
    }
}

/// Computes until `fact` holds, without giving the processor up: on a busy machine a poll that yields
/// its thread all the time neither blocks nor computes for long enough to be preempted.
pub(crate) fn compute_until(mut fact: impl FnMut() -> bool) {
    while !fact() {
        std::hint::spin_loop();
    }
}

/// Waits until `fact` holds. It must become true by itself; if it never does, the watch ends the
/// test.
pub(crate) fn until(mut fact: impl FnMut() -> bool) {
    while !fact() {
        std::thread::yield_now();
    }
}
