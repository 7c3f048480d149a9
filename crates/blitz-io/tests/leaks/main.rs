//! What was taken is given back: every block, in every scenario.
//!
//! A scenario makes its runtimes, brings tasks into some state, and ends everything. It
//! runs a few times so that what is made once and kept (thread-locals of this thread,
//! statics) is made, and then more times; afterwards exactly as many blocks and bytes
//! live as before. A program of its own, without the test harness: the count is the
//! whole process's, so nobody else may allocate.
//!
//! Threads may end after their runtime (`shutdown_background`). The count is read when
//! the process has as many threads as before: a thread that the system no longer lists
//! has freed what it had.
//!
//! A check that cannot fail shows nothing: the controls keep something on purpose, and
//! the run fails if that is not noticed.

#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../it/gate.rs"]
mod gate;
#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../it/make.rs"]
mod make;
#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../it/watch.rs"]
mod watch;

mod count;

mod tasks;
mod sets;
mod local;
mod blocking;
mod bounded;
mod ends;
mod settings;
mod sync;
mod control;

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    time::Duration,
};

use crate::count::Live;

/// A name that says what is done, and what does it.
pub(crate) type Scenario = (&'static str, fn());

/// So often before it counts. Once would do; more finds what is made late.
const WARM: usize = 3;

/// So often while it counts: a block that is kept only sometimes should show.
const ROUNDS: usize = 12;

/// The whole run is to end in this time. It takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// What panics of scenarios say; nobody wants to read them.
pub(crate) const ON_PURPOSE: &str = "on purpose";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if asked("--list") {
        println!("everything_taken_is_given_back: test");
        return ExitCode::SUCCESS;
    }
    if asked("--ignored") {
        println!("no scenario is ignored");
        return ExitCode::SUCCESS;
    }
    silence_purposeful_panics();
    // The watchman's thread is there from now on, and counted as there before.
    let _watch = watch::begin_for(LIMIT);
    let _keeper = keep_monitor();
    let Parts { wanted, skipped } = Parts::read(&arguments);
    let has = |name: &str, parts: &[&str]| parts.iter().any(|part| name.contains(part));
    run(|name| (wanted.is_empty() || has(name, &wanted)) && !has(name, &skipped))
}

/// A runtime that lives all the time, and with it the threads that all runtimes share: who
/// watches for stuck tasks, and who tells of them. They stay for seconds after the last one.
fn keep_monitor() -> blitz_io::runtime::Runtime {
    let mut builder = blitz_io::runtime::Builder::new_multi_thread();
    // Nor does the thread that is to stand in for its worker go.
    let stays = Duration::from_secs(3600);
    let rt = builder.worker_threads(1).thread_keep_alive(stays).build().expect("a runtime");
    let metrics = rt.metrics();
    let task = rt.spawn(async move {
        while metrics.preemption_stall_count() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    rt.block_on(task).expect("it ends");
    let is_told = || !cfg!(debug_assertions) || has_thread("blitz-reports");
    watch::until(|| !cfg!(target_os = "linux") || is_told());
    watch::until(|| rt.metrics().preemption_detached_threads() == 0);
    rt
}

fn has_thread(name: &str) -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().any(|thread| {
        let text = std::fs::read_to_string(thread.path().join("comm"));
        text.is_ok_and(|text| text.trim_end() == name)
    })
}

/// Parts of names, as libtest understands them.
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

/// Runs the controls and what is `wanted`; says what was kept.
fn run(wanted: impl Fn(&str) -> bool) -> ExitCode {
    let mut bad = Vec::new();
    for (name, keep) in control::CONTROLS {
        let kept = measure(*keep);
        control::give_back();
        if kept.blocks < ROUNDS as isize {
            bad.push(format!("the control `{name}` keeps something, which was not seen: {kept:?}"));
        }
    }
    let all = [
        tasks::SCENARIOS,
        sets::SCENARIOS,
        local::SCENARIOS,
        blocking::SCENARIOS,
        bounded::SCENARIOS,
        ends::SCENARIOS,
        settings::SCENARIOS,
        sync::SCENARIOS,
    ];
    let mut count = 0;
    for (name, scenario) in all.into_iter().flatten().filter(|(name, _)| wanted(name)) {
        count += 1;
        let kept = measure(*scenario);
        if kept != Live::NOTHING {
            let Live { blocks, bytes } = kept;
            bad.push(format!("`{name}` kept {blocks} blocks, {bytes} bytes, in {ROUNDS} rounds"));
        }
    }
    bad.iter().for_each(|line| eprintln!("{line}"));
    println!("leaks: {count} scenarios, {ROUNDS} rounds each; {} of them failed", bad.len());
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What `scenario` leaves after its rounds.
fn measure(scenario: fn()) -> Live {
    let threads = threads();
    (0..WARM).for_each(|_| scenario());
    settle(threads, None);
    let before = Live::now();
    (0..ROUNDS).for_each(|_| scenario());
    settle(threads, Some(before));
    Live::now().since(before)
}

/// Waits until the threads of scenarios are over.
#[cfg(target_os = "linux")]
fn settle(before: usize, _: Option<Live>) {
    watch::until(|| threads() == before);
}

/// Waits until as much lives as before, since threads cannot be counted here; for a
/// while, picked to be long against the end of a thread.
#[cfg(not(target_os = "linux"))]
fn settle(_: usize, before: Option<Live>) {
    let begun = std::time::Instant::now();
    let aim = before.unwrap_or(Live::NOTHING);
    watch::until(|| Live::now() == aim || begun.elapsed() > Duration::from_millis(500));
}

/// The threads of this process, where the system lists them.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// The hook that reports panics is left to those that nobody asked for.
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

/// Ours, or the runtime's answer to one of ours.
fn on_purpose(said: &str) -> bool {
    said.contains(ON_PURPOSE) || said.contains("on unhandled panic")
}

/// Calls `f`, which must panic on purpose.
#[track_caller]
pub(crate) fn panics<R>(f: impl FnOnce() -> R) {
    let payload = panic::catch_unwind(AssertUnwindSafe(f)).err().expect("it panics");
    assert!(said(&*payload).is_some_and(on_purpose), "another panic");
}
