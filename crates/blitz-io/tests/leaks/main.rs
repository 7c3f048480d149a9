//! Checks that every block that was allocated is freed, in every scenario.
//!
//! A scenario creates its runtimes, brings tasks into some state, and ends everything. It runs a
//! few times so that what is created once and kept (thread-locals of this thread, statics) exists,
//! and then more times; afterwards exactly as many blocks and bytes are live as before. This is a
//! program of its own, without the test harness, because the count is that of the whole process,
//! so no other code may allocate.
//!
//! Threads may end after their runtime (`shutdown_background`). The count is read when the process
//! has as many threads as before: a thread that the system no longer lists has freed its memory.
//!
//! A check that cannot fail proves nothing, so the controls leak on purpose, and the run fails if
//! that is not detected.

#[path = "../support/mod.rs"]
mod support;
use support::watchdog;

#[allow(dead_code, reason = "leaks are counted in the process, not by thread")]
#[path = "../support/counting_allocator.rs"]
mod counting_allocator;

mod tasks;
mod sets;
mod local;
mod blocking;
mod admission;
mod runtime_ends;
mod settings;
mod sync;
mod controls;

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    time::Duration,
};

use crate::counting_allocator::Live;

/// A name that says what is done, and the function that does it.
pub(crate) type Scenario = (&'static str, fn());

/// The number of runs before the count. One would do; more find what is created late.
const WARM: usize = 3;

/// The number of counted runs: enough to detect a block that is kept only sometimes.
const ROUNDS: usize = 12;

/// The time in which the whole run must end. It takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// The message of panics of scenarios, by which their reports are suppressed.
pub(crate) const ON_PURPOSE: &str = "on purpose";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if given("--list") {
        println!("everything_taken_is_given_back: test");
        return ExitCode::SUCCESS;
    }
    if given("--ignored") {
        println!("no scenario is ignored");
        return ExitCode::SUCCESS;
    }
    silence_purposeful_panics();
    // The watch's thread exists from now on, so it is part of the count before.
    let _watch = watchdog::start_without_memory_for(LIMIT);
    let _keeper = keep_monitor();
    let Parts { wanted, skipped } = Parts::read(&arguments);
    let has = |name: &str, parts: &[&str]| parts.iter().any(|part| name.contains(part));
    run(|name| (wanted.is_empty() || has(name, &wanted)) && !has(name, &skipped))
}

/// Keeps a runtime alive all the time, and with it the threads that all runtimes share: the monitor
/// that watches for stuck tasks, and the reporter. They stay for seconds after the last runtime.
fn keep_monitor() -> blitz_io::runtime::Runtime {
    let mut builder = blitz_io::runtime::Builder::new_multi_thread();
    // The thread that replaces its worker stays as well.
    let stays = Duration::from_secs(3600);
    let rt = builder.worker_threads(1).thread_keep_alive(stays).build().expect("a runtime");
    let metrics = rt.metrics();
    let task = rt.spawn(async move {
        while metrics.preemption_stall_count() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    rt.block_on(task).expect("it ends");
    let is_reported = || !cfg!(debug_assertions) || has_thread("blitz-reports");
    watchdog::until(|| !cfg!(target_os = "linux") || is_reported());
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 0);
    rt
}

fn has_thread(name: &str) -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().any(|thread| {
        let text = std::fs::read_to_string(thread.path().join("comm"));
        text.is_ok_and(|text| text.trim_end() == name)
    })
}

/// Parts of test names, with the meaning that libtest gives them.
#[derive(Default)]
struct Parts<'a> {
    wanted: Vec<&'a str>,
    skipped: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn read(arguments: &'a [String]) -> Self {
        let mut parts = Self::default();
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument {
                "--skip" => parts.skipped.extend(arguments.next()),
                flag if flag.starts_with('-') => {}
                part => parts.wanted.push(part),
            }
        }
        parts
    }
}

/// Runs the controls and the `wanted` scenarios; prints what was leaked.
fn run(wanted: impl Fn(&str) -> bool) -> ExitCode {
    let mut bad = Vec::new();
    for (name, keep) in controls::CONTROLS {
        let kept = measure(*keep);
        controls::give_back();
        if kept.blocks < ROUNDS as isize {
            bad.push(format!("the control `{name}` keeps something, which was not seen: {kept:?}"));
        }
    }
    let all = [
        tasks::SCENARIOS,
        sets::SCENARIOS,
        local::SCENARIOS,
        blocking::SCENARIOS,
        admission::SCENARIOS,
        runtime_ends::SCENARIOS,
        settings::SCENARIOS,
        sync::SCENARIOS,
    ];
    let mut count = 0;
    for (name, scenario) in all.into_iter().flatten().filter(|(name, _)| wanted(name)) {
        count += 1;
        let kept = measure_growth(*scenario);
        if kept != Live::NOTHING {
            let Live { blocks, bytes } = kept;
            bad.push(format!("`{name}` kept {blocks} blocks, {bytes} bytes, in {ROUNDS} rounds"));
        }
    }
    bad.iter().for_each(|line| eprintln!("{line}"));
    println!("leaks: {count} scenarios, {ROUNDS} rounds each; {} of them failed", bad.len());
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The number of measurements of a scenario that left bytes and no block.
const AGAIN: usize = 3;

/// Measures a scenario, and again if a block has only grown: a list that the process keeps, such
/// as one of reports about polls that were long because the machine is busy, grows once. A scenario
/// that makes one grow does so each time.
fn measure_growth(scenario: fn()) -> Live {
    let mut kept = measure(scenario);
    for _ in 1..AGAIN {
        if kept.blocks != 0 || kept.bytes == 0 {
            break;
        }
        kept = measure(scenario);
    }
    kept
}

/// Returns what `scenario` leaves after its rounds.
fn measure(scenario: fn()) -> Live {
    let threads = threads();
    (0..WARM).for_each(|_| scenario());
    settle(threads, None);
    let before = Live::now();
    (0..ROUNDS).for_each(|_| scenario());
    settle(threads, Some(before));
    Live::now().since(before)
}

/// Waits until the threads of scenarios have ended. A thread of the process that is about to free
/// something, such as a report of a poll that was long because the machine is busy, gets some time
/// more.
#[cfg(target_os = "linux")]
fn settle(before: usize, live: Option<Live>) {
    watchdog::until(|| threads() == before);
    let begun = std::time::Instant::now();
    let aim = live.unwrap_or_else(Live::now);
    watchdog::until(|| Live::now() == aim || begun.elapsed() > Duration::from_secs(2));
}

/// Waits until as much is live as before, because threads cannot be counted here; for a limited
/// time, chosen to be long against the end of a thread.
#[cfg(not(target_os = "linux"))]
fn settle(_: usize, before: Option<Live>) {
    let begun = std::time::Instant::now();
    let aim = before.unwrap_or(Live::NOTHING);
    watchdog::until(|| Live::now() == aim || begun.elapsed() > Duration::from_millis(500));
}

/// Returns the number of threads of this process, where the system lists them.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Suppresses the panic hook's report of panics that are on purpose.
fn silence_purposeful_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !said(info.payload()).is_some_and(on_purpose) {
            report(info);
        }
    }));
}

fn said(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Returns true for a panic of a scenario, or for the runtime's panic because of one.
fn on_purpose(said: &str) -> bool {
    said.contains(ON_PURPOSE) || said.contains("on unhandled panic")
}

/// Calls `f`, which must panic on purpose.
#[track_caller]
pub(crate) fn panics<R>(f: impl FnOnce() -> R) {
    let payload = panic::catch_unwind(AssertUnwindSafe(f)).err().expect("it panics");
    assert!(said(&*payload).is_some_and(on_purpose), "another panic");
}
