//! Tests preemption in processes of their own: one that is stopped, forked, or out of threads.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::runtime::{Builder, Preemption, Runtime, worker_index};

use crate::support::{
    child::{self, is_alone},
    preemption::preempting,
    thread_limit::allow_no_thread,
    watchdog,
};

#[test]
fn a_core_for_which_the_system_refuses_a_thread_is_not_lost() {
    let _watch = watchdog::start();
    if !is_alone("own_process::a_core_for_which_the_system_refuses_a_thread_is_not_lost") {
        return;
    }
    let rt = preempting(1, Preemption::new());
    // Starts the monitor.
    rt.block_on(rt.spawn(async {})).unwrap();
    allow_no_thread();
    for _ in 0..3 {
        let (go, gone) = mpsc::channel::<()>();
        let refused = rt.metrics().preemption_refused_count();
        let stuck = rt.spawn(async move { gone.recv().unwrap() });
        let waits = rt.spawn(async { 7 });
        watchdog::until(|| rt.metrics().preemption_refused_count() > refused);
        assert!(!waits.is_finished());
        go.send(()).unwrap();
        rt.block_on(stuck).unwrap();
        assert_eq!(rt.block_on(waits).unwrap(), 7);
    }
    // Nor can a thread be started for a task that is known to hog.
    let polls = rt.spawn(async {
        thread::sleep(Duration::from_millis(50));
        for _ in 0..10 {
            blitz_io::task::yield_now().await;
        }
    });
    rt.block_on(polls).unwrap();
}

#[test]
fn without_a_monitor_tasks_run_all_the_same() {
    let _watch = watchdog::start();
    if !is_alone("own_process::without_a_monitor_tasks_run_all_the_same") {
        return;
    }
    let rt = preempting(2, Preemption::new());
    allow_no_thread();
    for n in 0..100 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    assert_eq!(rt.metrics().preemption_scan_count(), 0);
}

/// The process is stopped for a second in all, and goes on: no task must be blamed for that.
#[test]
fn time_in_which_the_process_was_stopped_is_charged_to_no_task() {
    let _watch = watchdog::start();
    const NAME: &str = "own_process::time_in_which_the_process_was_stopped_is_charged_to_no_task";
    if child::role().is_none() {
        let mut stopped =
            child::command(NAME, "is stopped").stdout(Stdio::piped()).spawn().unwrap();
        let process = stopped.id() as libc::pid_t;
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(100));
            // SAFETY: the number belongs to a child that was not waited for.
            unsafe {
                libc::kill(process, libc::SIGSTOP);
                thread::sleep(Duration::from_millis(200));
                libc::kill(process, libc::SIGCONT);
            }
        }
        assert!(stopped.wait().unwrap().success());
        return;
    }
    let long = Arc::new(AtomicUsize::new(0));
    let reports = long.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new().slice(Duration::from_millis(150)))
        .on_task_stall(move |_| {
            reports.fetch_add(1, Relaxed);
        })
        .build()
        .unwrap();
    // Polls of a few milliseconds, one after the other, for as long as the parent stops this
    // process.
    rt.block_on(rt.spawn(async {
        for _ in 0..400 {
            thread::sleep(Duration::from_millis(5));
            blitz_io::task::yield_now().await;
        }
    }))
    .unwrap();
    assert_eq!(long.load(Relaxed), 0, "a task was blamed");
}

/// The child has a copy of a runtime whose threads do not exist there, and creates a runtime of its
/// own.
#[test]
fn a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own() {
    let _watch = watchdog::start();
    if !is_alone("own_process::a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own") {
        return;
    }
    let rt = preempting(1, Preemption::new());
    let status = rt.spawn(async {
        // Caught meanwhile, so this thread has no core when it forks.
        thread::sleep(Duration::from_millis(50));
        // SAFETY: the child starts threads of its own and ends by `_exit`.
        let process = unsafe { libc::fork() };
        if process == 0 {
            // The thread-locals of this thread say that it had a core, so a new thread is used.
            let ok = thread::spawn(stuck_and_not).join().unwrap_or(false);
            // SAFETY: the call ends the process.
            unsafe { libc::_exit(if ok { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the call writes to `status`, which outlives it.
        assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
        status
    });
    let status = rt.block_on(status).unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
}

/// Forks a child that is the first process of a new PID namespace. Returns `true` in that child,
/// `false` in the caller once the child has ended, and `None` if the system does not permit it.
fn begin_namespace() -> Option<bool> {
    // SAFETY: the system calls write only to `status`; the child starts threads of its own and ends
    // by `_exit`.
    unsafe {
        if libc::unshare(libc::CLONE_NEWPID) != 0 {
            return None;
        }
        let child = libc::fork();
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            assert_eq!(libc::getpid(), 1);
            return Some(true);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
        Some(false)
    }
}

/// Parent and child are each the first of their namespace, so both have number 1.
#[test]
fn a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own() {
    let _watch = watchdog::start();
    if !is_alone("own_process::a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own") {
        return;
    }
    match begin_namespace() {
        None => eprintln!("skipped: {}", std::io::Error::last_os_error()),
        Some(false) => {}
        Some(true) => {
            let ok = stuck_and_not()
                && (!begin_namespace().expect("it was allowed before") || stuck_and_not());
            // SAFETY: the call ends the process.
            unsafe { libc::_exit(i32::from(!ok)) };
        }
    }
}

/// Returns how often the monitor has gone to sleep; `None` if it has ended, because no runtime is
/// left to watch.
fn naps() -> Option<u64> {
    let mut threads =
        std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let is_monitor = |thread: &std::path::PathBuf| {
        std::fs::read_to_string(thread.join("comm"))
            .is_ok_and(|name| name.trim() == "blitz-monitor")
    };
    let monitor = threads.find(is_monitor)?;
    // It may end meanwhile.
    let status = std::fs::read_to_string(monitor.join("status")).ok()?;
    let mut words = status.split_whitespace();
    words.find(|word| *word == "voluntary_ctxt_switches:").expect("Linux counts them");
    Some(words.next().unwrap().parse().unwrap())
}

/// The stuck task is reported, and then the monitor has nothing left to do for its runtime.
#[test]
fn the_monitor_does_not_scan_a_runtime_that_never_ends() {
    let _watch = watchdog::start();
    // Each signal would wake the monitor.
    if watchdog::is_interrupted()
        || !is_alone("own_process::the_monitor_does_not_scan_a_runtime_that_never_ends")
    {
        return;
    }
    let quiet = || {
        watchdog::until(|| {
            let before = naps();
            // This sleep waits for no event: it is the period in which nothing may happen.
            thread::sleep(Duration::from_millis(200));
            naps() == before
        });
    };
    let stuck =
        |rt: Runtime, spawn: fn(&Runtime, mpsc::Sender<()>), until: fn(&Runtime) -> bool| {
            let (begin, begun) = mpsc::channel();
            spawn(&rt, begin);
            begun.recv().unwrap();
            watchdog::until(|| until(&rt));
            rt.shutdown_background();
        };
    fn never_ends(begin: mpsc::Sender<()>) {
        begin.send(()).unwrap();
        loop {
            thread::park();
        }
    }
    let reporting = || {
        let (sender, reports) = mpsc::channel();
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .preemption(Preemption::new())
            .on_task_stall(move |stall| sender.send(stall.task()).unwrap())
            .build()
            .unwrap();
        (rt, reports)
    };
    let task = |rt: &Runtime, begin| drop(rt.spawn(async { never_ends(begin) }));
    // Most likely the task has not been caught yet when the runtime starts to shut down.
    let (rt, reports) = reporting();
    stuck(rt, task, |_| true);
    reports.recv().unwrap();
    quiet();
    let (rt, reports) = reporting();
    stuck(rt, task, |rt| rt.metrics().preemption_detached_threads() == 1);
    reports.recv().unwrap();
    quiet();
    #[cfg(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let (rt, reports) = reporting();
        let fiber = |rt: &Runtime, begin| {
            let fiber = blitz_io::fiber::Builder::new();
            // SAFETY: obligations 1 and 2 hold because the closure waits in no initialiser and no
            // scope of a thread-local.
            unsafe { fiber.spawn_on(move || never_ends(begin), rt.handle()) }.unwrap();
        };
        stuck(rt, fiber, |rt| rt.metrics().preemption_stall_count() >= 1);
        reports.recv().unwrap();
        quiet();
    }
    // The monitor wakes up when it is needed.
    assert!(stuck_and_not());
}

/// A stall callback does not return: no worker waits for it, and the reports that are dropped are
/// counted. In a process of its own, because one thread reports for all runtimes.
#[test]
fn a_report_that_blocks_for_ever_costs_reports_and_no_core() {
    let _watch = watchdog::start();
    if !is_alone("own_process::a_report_that_blocks_for_ever_costs_reports_and_no_core") {
        return;
    }
    let open = Arc::new(AtomicBool::new(false));
    let (reports, forgotten) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new().slice(Duration::from_micros(100)).learning(false))
        .on_task_stall({
            let (open, reports, forgotten) = (open.clone(), reports.clone(), forgotten.clone());
            move |stall| {
                while !open.load(Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
                reports.fetch_add(1, Relaxed);
                forgotten.fetch_add(stall.lost_reports(), Relaxed);
            }
        })
        .build()
        .unwrap();
    let metrics = rt.metrics();
    let stalls = || metrics.preemption_stall_count();
    // More reports than the queue holds.
    while stalls() < 1_500 {
        // Hogs until it is caught.
        let sleeps = || {
            rt.spawn(async {
                while worker_index().is_some() {
                    thread::sleep(Duration::from_micros(100));
                }
            })
        };
        let sleepy: Vec<_> = std::iter::repeat_with(sleeps).take(100).collect();
        sleepy.into_iter().for_each(|sleepy| rt.block_on(sleepy).unwrap());
    }
    assert_eq!(reports.load(Relaxed), 0);
    open.store(true, Release);
    watchdog::until(|| reports.load(Relaxed) + forgotten.load(Relaxed) == stalls());
    assert!(forgotten.load(Relaxed) > 0);
    // A core that was lost would make this hang.
    drop(rt);
}

/// True if fibers are supported.
const FIBERS: bool =
    cfg!(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")));

/// Tasks and fibers that wait inside of a poll until all of them are released.
#[derive(Clone, Default)]
struct Waiting {
    begun: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Waiting {
    fn one_more(&self) -> impl FnOnce() + Send + use<> {
        let waiting = self.clone();
        move || {
            waiting.begun.fetch_add(1, Relaxed);
            while !waiting.over.load(Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Waits until this many are in their polls, because a shutdown drops a task that has not begun
    /// and does not wait for it.
    fn until_begun(&self, count: usize) {
        watchdog::until(|| self.begun.load(Relaxed) == count);
    }

    /// Drops the runtime, and releases the waiting polls when the shutdown has reported them.
    fn outlast(self, rt: Runtime) {
        let ends = thread::spawn(move || {
            child::until_confirmed();
            self.over.store(true, Release);
        });
        drop(rt);
        ends.join().unwrap();
    }
}

#[test]
fn a_shutdown_that_waits_for_polls_names_them() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name = "own_process::a_shutdown_that_waits_for_polls_names_them";
        let output = child::confirm_each(&mut child::command(name, "waits"), "has waited");
        let text = child::has_succeeded(&output.unwrap());
        let fibers = usize::from(FIBERS);
        let reports: Vec<&str> = text.lines().filter(|line| line.contains("has waited")).collect();
        assert_eq!(reports.len(), 2, "{text}");
        assert!(reports[0].contains(&format!("for {} polls", 2 + fibers)), "{text}");
        assert!(reports[1].contains("for 1 poll,"), "{text}");
        let polls = text.lines().filter(|line| line.contains("has been in one poll for "));
        let polls: Vec<_> = polls.filter(|line| line.contains("own_process.rs:")).collect();
        assert_eq!(polls.len(), 3 + fibers, "{text}");
        for name in ["taken", "offloaded", "kept", "fiber"]
            .into_iter()
            .filter(|name| *name != "fiber" || fibers == 1)
        {
            let name = format!("{name:?}");
            assert_eq!(polls.iter().filter(|line| line.contains(&name)).count(), 1, "{text}");
        }
        return;
    }
    let named = |name| blitz_io::task::Builder::new().name(name);
    let waiting = Waiting::default();
    let rt = preempting(1, Preemption::new());
    let stuck = waiting.one_more();
    named("taken").spawn_on(async { stuck() }, rt.handle()).unwrap();
    let stuck = waiting.one_more();
    named("offloaded").long_running().spawn_on(async { stuck() }, rt.handle()).unwrap();
    #[cfg(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let fiber = blitz_io::fiber::Builder::new().name("fiber");
        // SAFETY: obligations 1 and 2 hold because the closure waits in no initialiser and no
        // scope of a thread-local.
        unsafe { fiber.spawn_on(waiting.one_more(), rt.handle()) }.unwrap();
    }
    waiting.until_begun(2 + usize::from(FIBERS));
    // The offload is counted when its thread was notified, and the poll may have begun by then.
    watchdog::until(|| rt.metrics().preemption_offload_count() > 0);
    let stalls = 1 + u64::from(FIBERS);
    watchdog::until(|| rt.metrics().preemption_stall_count() >= stalls);
    waiting.outlast(rt);
    let waiting = Waiting::default();
    let rt = Builder::new_multi_thread().worker_threads(1).on_task_stall(|_| ()).build().unwrap();
    let stuck = waiting.one_more();
    named("kept").spawn_on(async { stuck() }, rt.handle()).unwrap();
    watchdog::until(|| rt.metrics().preemption_stall_count() >= 1);
    waiting.outlast(rt);
}

/// A thread of its own reports a shutdown that waits, not the one that calls `on_task_stall`.
#[test]
fn a_shutdown_that_waits_is_reported_though_the_stall_callback_blocks() {
    let _watch = watchdog::start();
    if child::role().is_none() {
        let name =
            "own_process::a_shutdown_that_waits_is_reported_though_the_stall_callback_blocks";
        let output = child::confirm_each(&mut child::command(name, "waits"), "has waited");
        let text = child::has_succeeded(&output.unwrap());
        assert!(text.contains("for 1 poll,") && text.contains("\"stuck\""), "{text}");
        return;
    }
    let waiting = Waiting::default();
    let (begin, begun) = mpsc::channel();
    let blocks = move |_: &_| {
        let _ = begin.send(());
        loop {
            std::thread::park();
        }
    };
    let rt = Builder::new_multi_thread().worker_threads(1).on_task_stall(blocks).build().unwrap();
    let stuck = waiting.one_more();
    let task = blitz_io::task::Builder::new().name("stuck");
    task.spawn_on(async { stuck() }, rt.handle()).unwrap();
    begun.recv().unwrap();
    waiting.outlast(rt);
}

/// The thread that waits in the shutdown is not the one that reports the polls it waits for.
#[test]
fn a_shutdown_with_a_limit_ends_though_a_poll_has_the_lock_of_standard_error() {
    let _watch = watchdog::start();
    const NAME: &str =
        "own_process::a_shutdown_with_a_limit_ends_though_a_poll_has_the_lock_of_standard_error";
    if !is_alone(NAME) {
        return;
    }
    let rt = preempting(1, Preemption::new());
    let (sender, reports) = mpsc::channel();
    rt.spawn(async move {
        let _lock = std::io::stderr().lock();
        sender.send(()).unwrap();
        loop {
            thread::park();
        }
    });
    reports.recv().unwrap();
    // After a second the shutdown would report what it waits for.
    rt.shutdown_timeout(Duration::from_millis(1_500));
}

/// Returns true if a task runs beside one that is stuck on the only worker.
fn stuck_and_not() -> bool {
    let rt = preempting(1, Preemption::new());
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let stuck = rt.spawn(async move {
        while !ends.load(Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let ran = rt.block_on(rt.spawn(async { true })).unwrap_or(false);
    over.store(true, Release);
    rt.block_on(stuck).is_ok() && ran
}
