//! Tests reports about long tasks without a stall callback, about tasks that are caught again, and
//! about bounds that were reached; and that those bounds hold.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, LocalOptions, Preemption, Runtime, StallKind, worker_index},
    task,
};

use crate::support::{
    child,
    preemption::{HogGuard, preempting},
    watchdog,
};

/// Waits until all earlier reports were delivered: one thread reports for all runtimes, in order.
fn until_all_is_reported() {
    let (sender, reports) = mpsc::channel();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).on_task_stall(move |_| _ = sender.send(()));
    let rt = builder.build().unwrap();
    rt.block_on(rt.spawn(async move { reports.recv().unwrap() })).unwrap();
}

/// Stays in its poll until its stall is counted; under load it loses its core before.
fn hogs(rt: &Runtime) -> impl Future<Output = ()> + Send + 'static {
    let metrics = rt.metrics();
    let before = metrics.preemption_stall_count();
    async move { watchdog::compute_until(|| metrics.preemption_stall_count() > before) }
}

#[test]
fn without_a_callback_debug_builds_write_a_line_for_each_location_and_minute() {
    let _watch = watchdog::start();
    const NAME: &str = "reports::\
        without_a_callback_debug_builds_write_a_line_for_each_location_and_minute";
    if child::role().is_none() {
        let text = child::succeed(&mut child::command(NAME, "hogs"));
        let lines: Vec<_> = text.lines().filter(|line| line.contains("spawned at")).collect();
        let expected = if cfg!(debug_assertions) { 2 } else { 0 };
        assert_eq!(lines.len(), expected, "{text}");
        for line in lines {
            assert!(line.starts_with("blitz-io: task ") && line.contains("reports.rs:"), "{line}");
            assert!(line.contains(" in one poll on worker 0 for "), "{line}");
            assert!(line.contains("its worker continues on another thread"), "{line}");
        }
        return;
    }
    let rt = preempting(1, Preemption::new().learning(false));
    // Three stalls of tasks that were spawned at one place.
    for _ in 0..3 {
        rt.block_on(rt.spawn(hogs(&rt))).unwrap();
    }
    // One of a task that was spawned at another place.
    rt.block_on(rt.spawn(hogs(&rt))).unwrap();
    until_all_is_reported();
}

/// The stall callback is called for each long poll, also for those that delay no other task.
#[test]
fn a_task_that_is_caught_again_is_reported_again() {
    let _watch = watchdog::start();
    let (sender, reports) = mpsc::channel();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).preemption(Preemption::new());
    let rt = builder.on_task_stall(move |stall| drop(sender.send(stall.clone()))).build().unwrap();
    let task = task::Builder::new().name("again").spawn_on(
        async move {
            let first = reports.recv().unwrap();
            let mut later = Vec::new();
            for computes in [false, true] {
                task::yield_now().await;
                // Each poll has a slice of its own, if its thread gets to it in time.
                while task::should_yield() {
                    task::yield_now().await;
                }
                assert_eq!(worker_index(), None, "it is not trusted");
                later.push(match computes {
                    false => reports.recv().unwrap(),
                    true => loop {
                        if let Ok(stall) = reports.try_recv() {
                            break stall;
                        }
                    },
                });
                assert!(task::should_yield(), "it was marked as well");
            }
            (first, later)
        },
        rt.handle(),
    );
    let task = task.unwrap();
    let id = task.id();
    let (first, later) = rt.block_on(task).unwrap();
    assert_eq!((first.task(), first.worker()), (id, Some(0)));
    assert_eq!(first.kind(), StallKind::Blocked);
    for (stall, kind) in later.iter().zip([StallKind::Blocked, StallKind::Computing]) {
        assert_eq!((stall.task(), stall.name(), stall.worker()), (id, Some("again"), None));
        assert_eq!(stall.kind(), kind);
        assert!(stall.was_handed_off() && !stall.is_fiber());
        assert!(stall.duration() >= Duration::from_millis(10), "{stall}");
        let text = stall.to_string();
        assert!(text.contains("not for the first time"), "{text}");
        assert!(text.contains("no worker waits for it"), "{text}");
    }
    assert!(later[0].waits_in().is_some(), "{}", later[0]);
    assert_eq!(rt.metrics().preemption_stall_count(), 3);
    assert_eq!(rt.metrics().preemption_handoff_count(), 1);
}

/// The task is reported once, and then the monitor has nothing left to do about it.
#[test]
fn a_task_that_waits_for_good_when_it_is_caught_again_does_not_keep_the_monitor_awake() {
    let _watch = watchdog::start();
    let rt = preempting(1, Preemption::new());
    let (go, gone) = mpsc::channel::<()>();
    let waiting = rt.spawn(async move {
        watchdog::until(|| worker_index().is_none());
        task::yield_now().await;
        gone.recv().unwrap_err()
    });
    let metrics = rt.metrics();
    watchdog::until(|| metrics.preemption_stall_count() >= 2);
    watchdog::until(|| {
        let before = metrics.preemption_scan_count();
        // This sleep waits for no event: it is the period in which nothing may happen.
        thread::sleep(Duration::from_millis(200));
        metrics.preemption_scan_count() == before
    });
    drop(go);
    let _disconnected = rt.block_on(waiting).unwrap();
}

/// The monitor no longer watches the task when its runtime ends, and the task calls `checkpoint`.
#[test]
fn a_caught_task_with_checkpoints_ends_with_its_runtime() {
    let _watch = watchdog::start();
    for how in 0..3 {
        let rt = preempting(1, Preemption::new());
        let metrics = rt.metrics();
        let token = Arc::new(());
        let kept = token.clone();
        rt.spawn(async move {
            let _kept = kept;
            watchdog::until(|| worker_index().is_none());
            loop {
                task::checkpoint().await;
            }
        });
        watchdog::until(|| metrics.preemption_offload_count() > 2);
        match how {
            0 => drop(rt),
            1 => rt.shutdown_background(),
            _ => rt.shutdown_timeout(Duration::from_secs(20)),
        }
        watchdog::until(|| Arc::strong_count(&token) == 1);
    }
}

/// Each step blocks for a moment and then checks whether to yield, which is in time.
#[test]
fn a_task_that_blocks_in_short_steps_and_checks_keeps_its_worker() {
    let _watch = watchdog::start();
    let rt = preempting(1, Preemption::new().slice(Duration::from_millis(200)));
    let metrics = rt.metrics();
    let steps = rt.spawn(async move {
        let mut yields = 0;
        while yields < 2 {
            thread::sleep(Duration::from_millis(1));
            yields += usize::from(task::should_yield());
            task::checkpoint().await;
        }
    });
    rt.block_on(steps).unwrap();
    assert_eq!((metrics.preemption_stall_count(), metrics.preemption_handoff_count()), (0, 0));
}

/// Without the bound, each of these tasks would have a thread.
#[test]
fn long_running_tasks_that_block_are_bounded() {
    let _watch = watchdog::start();
    const NAME: &str = "reports::long_running_tasks_that_block_are_bounded";
    if child::role().is_none() {
        let text = child::succeed(&mut child::command(NAME, "counts"));
        let lines = text.lines().filter(|line| line.contains("`max_blocking_threads` allows"));
        assert_eq!(lines.count(), 1, "in each build, and once: {text}");
        return;
    }
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new().max_detached(4))
        .max_blocking_threads(8)
        .build()
        .unwrap();
    let before = child::threads();
    let guard = HogGuard::new();
    let waits = || {
        let waits = guard.waiter();
        let task = task::Builder::new().long_running();
        task.spawn_on(async { waits() }, rt.handle()).unwrap()
    };
    let tasks: Vec<_> = std::iter::repeat_with(waits).take(100).collect();
    watchdog::until(|| rt.metrics().preemption_refused_count() > 0);
    // Eight tasks that block, and four that are not yet known to block; besides those up to four
    // threads for each worker that is late, the monitor, and the reporter.
    let threads = child::threads() - before;
    assert!(threads <= 8 + 4 + 4 * 2 + 2, "{threads}");
    drop(guard);
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    until_all_is_reported();
}

/// All tasks hog until they are released: as many as may have threads run, and the others wait.
#[test]
fn ten_thousand_hogs_at_once_are_bounded() {
    let _watch = watchdog::start();
    const NAME: &str = "reports::ten_thousand_hogs_at_once_are_bounded";
    let line = |computes| match computes {
        true => "`Preemption::max_detached` allows",
        false => "`max_blocking_threads` allows",
    };
    if child::role().is_none() {
        let text = child::succeed(&mut child::command(NAME, "hogs"));
        for computes in [true, false] {
            let lines = text.lines().filter(|text| text.contains(line(computes)));
            assert_eq!(lines.count(), 1, "in each build, and once: {text}");
        }
        return;
    }
    for computes in [true, false] {
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            // Not 64, because threads that compute share the processors with those that watch them.
            .preemption(Preemption::new().slice(Duration::from_millis(1)).max_detached(16))
            .max_blocking_threads(100)
            .build()
            .unwrap();
        let before = child::threads();
        let guard = HogGuard::new();
        let hogs = || {
            let (hog, waiter) = (guard.hog(), guard.waiter());
            rt.spawn(async move {
                if computes {
                    hog()
                } else {
                    waiter()
                }
                1
            })
        };
        let tasks: Vec<_> = std::iter::repeat_with(hogs).take(10_000).collect();
        let metrics = rt.metrics();
        watchdog::until(|| {
            thread::sleep(Duration::from_millis(1));
            metrics.preemption_refused_count() > 0
        });
        // A blocked thread that was just woken by a signal, as by `xtask interrupt`, is taken for
        // one that computes, so up to 16 more may be detached than may block.
        let bound = if computes { 16 } else { 100 + 16 };
        let peak = metrics.preemption_detached_peak();
        assert!(peak <= bound, "{peak}");
        let threads = child::threads() - before;
        assert!(threads <= bound as usize + 4 * 2 + 2, "{threads}");
        drop(guard);
        let ended: usize = tasks.into_iter().map(|task| rt.block_on(task).unwrap()).sum();
        assert_eq!(ended, 10_000);
    }
    until_all_is_reported();
}

/// The system refuses the thread that would take the core: the monitor does not wait for it, and
/// the report does not claim a hand-off.
#[test]
fn a_core_that_no_thread_takes_was_not_handed_off() {
    let _watch = watchdog::start();
    const NAME: &str = "reports::a_core_that_no_thread_takes_was_not_handed_off";
    if child::role().is_none() {
        let text = child::succeed(&mut child::command(NAME, "refuses"));
        let lines = text.lines().filter(|line| line.contains("the system refuses it"));
        assert_eq!(lines.count(), 1, "{text}");
        return;
    }
    let (sender, reports) = mpsc::channel();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::new().learning(false))
        .on_task_stall(move |stall| drop(sender.send(stall.clone())))
        .build()
        .unwrap();
    let reports = rt.block_on(rt.spawn(async move {
        // After this the monitor, the reporter and a spare thread exist.
        reports.recv().unwrap();
        reports
    }));
    let reports = reports.unwrap();
    let handoffs = rt.metrics().preemption_handoff_count();
    crate::support::thread_limit::allow_no_thread();
    // The spare thread takes the next cores, one after the other.
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let mut stuck = Vec::new();
    let refused = loop {
        let held = held.clone();
        stuck.push(rt.spawn(async move { _ = held.lock().unwrap().recv() }));
        let stall = reports.recv().unwrap();
        if !stall.was_handed_off() {
            break stall;
        }
        assert!(stuck.len() < 100);
    };
    assert!(refused.to_string().contains("other tasks wait for it"), "{refused}");
    // The count may reach this if a thread takes the core after all, after the report.
    assert!(rt.metrics().preemption_handoff_count() <= handoffs + stuck.len() as u64);
    drop(release);
    for task in stuck {
        rt.block_on(task).unwrap();
    }
    watchdog::until(|| rt.metrics().preemption_refused_count() > 0);
    until_reported_once_more(&rt);
}

/// Causes one more stall on `rt`, because no further runtime can be built in that process; the line
/// is written before the next report is delivered.
fn until_reported_once_more(rt: &Runtime) {
    let stalls = rt.metrics().preemption_stall_count();
    let metrics = rt.metrics();
    rt.block_on(rt.spawn(async move {
        watchdog::compute_until(|| metrics.preemption_stall_count() > stalls)
    }))
    .unwrap();
}

#[test]
fn tasks_of_a_local_runtime_are_reported_and_marked_and_not_moved() {
    let _watch = watchdog::start();
    let (sender, reports) = mpsc::channel();
    let mut builder = Builder::new_current_thread();
    builder.on_task_stall(move |stall| drop(sender.send(stall.clone())));
    let rt = builder.build_local(LocalOptions::default()).unwrap();
    let (stall, reports) = rt.block_on(async {
        task::spawn_local(async move {
            let stall = reports.recv().unwrap();
            assert!(task::should_yield());
            (stall, reports)
        })
        .await
        .unwrap()
    });
    assert!(!stall.was_handed_off());
    assert_eq!(rt.metrics().preemption_handoff_count(), 0);
    assert!(reports.try_recv().is_err());
}

/// Opening a FIFO blocks until its other end is opened.
#[test]
fn a_file_that_blocks_holds_up_no_other_task() {
    let _watch = watchdog::start();
    let rt = preempting(1, Preemption::new());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: `name` ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let opened = path.clone();
    let reads = rt.spawn(async move { std::fs::read(opened).unwrap() });
    let writes = rt.spawn(async move { std::fs::write(path, "from the only worker").unwrap() });
    rt.block_on(writes).unwrap();
    assert_eq!(rt.block_on(reads).unwrap(), b"from the only worker");
}
