//! Tests that a runtime without work does nothing at all, and that its workers come for the tasks of
//! one that does not run.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use blitz_io::runtime::{Builder, Preemption, Runtime};

#[cfg(unix)]
use crate::support::child;
use crate::support::{
    runtimes::{on_every_worker, workers},
    watchdog,
};

/// Runs some work, and returns when all workers sleep again.
fn tired(count: usize) -> Runtime {
    let rt = workers(count);
    rt.block_on(rt.spawn(async {
        let tasks: Vec<_> =
            (0..1_000).map(|_| blitz_io::spawn(blitz_io::task::yield_now())).collect();
        for task in tasks {
            task.await.unwrap();
        }
    }))
    .unwrap();
    on_every_worker(&rt, || ());
    until_asleep(&rt);
    rt
}

/// Waits until all workers sleep, and none that was notified has yet to wake up.
fn until_asleep(rt: &Runtime) {
    let metrics = rt.metrics();
    let mut before = figures(rt);
    watchdog::until(|| {
        std::thread::sleep(Duration::from_millis(20));
        let is_same = before == figures(rt);
        before = figures(rt);
        let parked = |worker| metrics.worker_park_unpark_count(worker) % 2 == 1;
        is_same && (0..metrics.num_workers()).all(parked)
    });
}

fn figures(rt: &Runtime) -> Vec<u64> {
    let metrics = rt.metrics();
    (0..metrics.num_workers())
        .flat_map(|worker| {
            [
                metrics.worker_park_count(worker),
                metrics.worker_park_unpark_count(worker),
                metrics.worker_poll_count(worker),
                metrics.worker_noop_count(worker),
                metrics.worker_steal_operations(worker),
            ]
        })
        .collect()
}

/// Returns the processor time of this process.
#[cfg(unix)]
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `time`, which outlives it.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(unix)]
#[test]
fn an_idle_runtime_uses_no_processor_time() {
    let _watch = watchdog::start();
    // Alone in a process, so that all processor time is the runtime's.
    if child::role().is_none() {
        let name = "runtime::idle::an_idle_runtime_uses_no_processor_time";
        child::succeed(&mut child::command(name, "idles"));
        return;
    }
    let rt = tired(8);
    // Repeated, because a worker that was notified may have got no processor yet.
    watchdog::until(|| {
        let (before, time) = (figures(&rt), processor_time());
        // This sleep waits for no event: it is the period that is measured.
        std::thread::sleep(Duration::from_millis(300));
        figures(&rt) == before && processor_time() - time < Duration::from_millis(5)
    });
}

#[test]
fn an_idle_runtime_makes_no_progress() {
    let _watch = watchdog::start();
    for count in [1, 2, 8] {
        let rt = tired(count);
        // Repeated, because a worker that was notified may have got no processor yet.
        watchdog::until(|| {
            let before = figures(&rt);
            std::thread::sleep(Duration::from_millis(300));
            figures(&rt) == before
        });
    }
}

/// The lines that the child writes when its idle period begins and ends.
#[cfg(target_os = "linux")]
const MARKS: [&str; 2] = ["idleness begins", "idleness ends"];

/// Runs in the child under strace: prints the thread ids of its workers and the marks.
#[cfg(target_os = "linux")]
fn idle_between_marks() {
    use std::io::Write;

    let rt = tired(4);
    // SAFETY: the system call has no arguments.
    let ids = on_every_worker(&rt, || unsafe { libc::syscall(libc::SYS_gettid) });
    until_asleep(&rt);
    // A worker counts as asleep a moment before the system call that sleeps. The sleep lets all
    // of them reach it, which strace slows down. The test cannot pass because of it: a period
    // that begins too early only shows more calls.
    std::thread::sleep(Duration::from_secs(1));
    let mut out = std::io::stdout();
    writeln!(out, "workers {ids:?}").unwrap();
    writeln!(out, "{}", MARKS[0]).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    writeln!(out, "{}", MARKS[1]).unwrap();
}

/// Skips, and prints why, where there is no strace or where it may not trace.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "long: run by `cargo xtask stress`"]
fn idle_workers_make_no_system_call_in_ten_seconds() {
    use std::process::Command;

    let _watch = watchdog::start_for(Duration::from_secs(120));
    if child::role().is_some() {
        return idle_between_marks();
    }
    let trace = std::env::temp_dir().join(format!("blitz-idle-{}.strace", std::process::id()));
    let mut command = Command::new("strace");
    child::prepare(&mut command, "idles under strace");
    command.arg("-f").arg("-o").arg(&trace).arg(std::env::current_exe().unwrap());
    command
        .args(child::arguments("runtime::idle::idle_workers_make_no_system_call_in_ten_seconds"));
    let output = match child::output(&mut command) {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            let text = child::text(&output);
            assert!(text.contains("ptrace") || text.contains("PTRACE"), "{text}");
            return println!("skipped: strace may not trace here: {text}");
        }
        Err(error) => return println!("skipped: no strace here: {error}"),
    };
    let text = child::text(&output);
    let lines = std::fs::read_to_string(&trace).unwrap();
    std::fs::remove_file(&trace).unwrap();
    let (_, ids) = text.split_once("workers [").expect("the workers' ids");
    let (ids, _) = ids.split_once(']').unwrap();
    let ids: Vec<&str> = ids.split(", ").collect();
    assert_eq!(ids.len(), 4);
    let of_workers = |lines: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        lines
            .filter(|line| ids.contains(&line.split_whitespace().next().unwrap_or_default()))
            .map(str::to_owned)
            .collect()
    };
    let at = |mark| lines.lines().position(|line| line.contains(mark)).expect("a mark");
    let (begin, end) = (at(MARKS[0]), at(MARKS[1]));
    assert!(!of_workers(&mut lines.lines().take(begin)).is_empty(), "strace saw no worker");
    let calls = of_workers(&mut lines.lines().take(end).skip(begin));
    assert!(calls.is_empty(), "{} calls while idle: {calls:?}", calls.len());
}

/// While tasks are tiny, the second worker leaves them to the first. It must come as soon as one of
/// them blocks its thread on a task that is queued behind it.
#[test]
fn an_idle_worker_takes_tiny_tasks_queued_behind_a_blocked_one() {
    let _watch = watchdog::start();
    workers(2).block_on(async {
        for _ in 0..100 {
            let tiny = (0..6).map(|_| {
                blitz_io::spawn(async {
                    for _ in 0..200 {
                        blitz_io::task::yield_now().await;
                    }
                })
            });
            let tiny: Vec<_> = tiny.collect();
            let blocked = blitz_io::spawn(async {
                for _ in 0..100 {
                    blitz_io::task::yield_now().await;
                }
                let (sender, receiver) = std::sync::mpsc::channel();
                let behind = sender.clone();
                blitz_io::spawn(async move { behind.send(1).unwrap() });
                // Takes the LIFO slot of the task before, which moves to the ring, if it has not
                // been stolen out of its slot. No worker is woken for the task that is now in the
                // slot, so the test does not wait for it.
                blitz_io::spawn(async move { _ = sender.send(2) });
                receiver.recv().unwrap();
            });
            blocked.await.unwrap();
            for task in tiny {
                task.await.unwrap();
            }
        }
    });
}

/// A worker that always has a task to run must not leave those that are queued behind a worker which
/// does not run: the operating system may have taken that worker's thread off its processor. Here
/// the worker is blocked, without preemption, until all tasks behind it have run.
#[test]
fn a_busy_worker_takes_tasks_queued_behind_a_blocked_one() {
    const BEHIND: usize = 9;
    let _watch = watchdog::start();
    for has_drivers in [true, false] {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).preemption(Preemption::disabled());
        if has_drivers {
            builder.enable_all();
        }
        let rt = builder.build().unwrap();
        let (polls, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for _ in 0..4 {
            let (polls, over) = (polls.clone(), over.clone());
            rt.spawn(async move {
                while !over.load(Relaxed) {
                    polls.fetch_add(1, Relaxed);
                    blitz_io::task::yield_now().await;
                }
            });
        }
        for _ in 0..20 {
            let polls = polls.clone();
            let blocked = rt.spawn(async move {
                // What runs now runs on the other worker, and stays in its queue.
                let before = polls.load(Relaxed);
                watchdog::until(|| polls.load(Relaxed) > before + 1_000);
                let (sender, receiver) = std::sync::mpsc::channel();
                for _ in 0..BEHIND {
                    let sender = sender.clone();
                    blitz_io::spawn(async move { sender.send(()).unwrap() });
                }
                // The last of them is in the LIFO slot.
                assert_eq!(receiver.iter().take(BEHIND).count(), BEHIND);
            });
            rt.block_on(blocked).unwrap();
        }
        over.store(true, Relaxed);
    }
}

/// Brings as many tasks as there are workers into a poll at the same time; nothing else is spawned
/// that would wake a worker.
fn meet(rt: &Runtime) {
    let count = rt.metrics().num_workers();
    let meeting = Arc::new(Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let meeting = meeting.clone();
            rt.spawn(async move { meeting.wait().is_leader() })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
}

/// Guards against a task that stays in the queue of a worker that is inside a long poll, while
/// another worker sleeps.
#[test]
fn as_many_blocking_polls_as_workers_run_at_the_same_time_on_new_runtimes() {
    let _watch = watchdog::start();
    for round in 0..2_000 {
        let rt = workers(2 + round % 3);
        meet(&rt);
    }
}

/// Guards against the same on workers that have worked and slept before.
#[test]
fn as_many_blocking_polls_as_workers_run_at_the_same_time() {
    let _watch = watchdog::start();
    let (two, four) = (workers(2), workers(4));
    for _ in 0..5_000 {
        meet(&two);
        meet(&four);
    }
}
