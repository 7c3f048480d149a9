//! What can only be tested in a process of its own: stopped, forked, or out of threads.

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

use crate::{child, watch};

fn preempting(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(Preemption::new()).build().expect("a runtime")
}

/// Runs this test again, alone; `true` if this is that run.
pub(crate) fn is_alone(name: &str) -> bool {
    if child::role().is_some() {
        return true;
    }
    child::succeed(&mut child::command(name, "is alone"));
    false
}

/// Lets this process start no further thread.
pub(crate) fn allow_no_thread() {
    // SAFETY: plain system calls; the limit outlives its call.
    unsafe {
        if libc::getuid() == 0 {
            // Root has no limit. 65534 is nobody, by custom.
            assert_eq!(libc::setuid(65534), 0);
        }
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &limit), 0);
    }
}

#[test]
fn a_core_for_which_the_system_refuses_a_thread_is_not_lost() {
    let _watch = watch::begin();
    if !is_alone("alone::a_core_for_which_the_system_refuses_a_thread_is_not_lost") {
        return;
    }
    let rt = preempting(1);
    // The monitor is there.
    rt.block_on(rt.spawn(async {})).unwrap();
    allow_no_thread();
    for _ in 0..3 {
        let (go, gone) = mpsc::channel::<()>();
        let refused = rt.metrics().preemption_refused_count();
        let stuck = rt.spawn(async move { gone.recv().unwrap() });
        let waits = rt.spawn(async { 7 });
        watch::until(|| rt.metrics().preemption_refused_count() > refused);
        assert!(!waits.is_finished());
        go.send(()).unwrap();
        rt.block_on(stuck).unwrap();
        assert_eq!(rt.block_on(waits).unwrap(), 7);
    }
    // Nor is a thread to be had for a task that was caught.
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
    let _watch = watch::begin();
    if !is_alone("alone::without_a_monitor_tasks_run_all_the_same") {
        return;
    }
    let rt = preempting(2);
    allow_no_thread();
    for n in 0..100 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    assert_eq!(rt.metrics().preemption_look_count(), 0);
}

/// The process is stopped for a second and goes on: nobody is to blame.
#[test]
fn time_in_which_the_process_was_stopped_is_nobodys_fault() {
    let _watch = watch::begin();
    const NAME: &str = "alone::time_in_which_the_process_was_stopped_is_nobodys_fault";
    if child::role().is_none() {
        let mut stopped =
            child::command(NAME, "is stopped").stdout(Stdio::piped()).spawn().unwrap();
        let process = stopped.id() as libc::pid_t;
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(100));
            // SAFETY: signals to a child that was not waited for.
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
    let told = long.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new().slice(Duration::from_millis(150)))
        .on_task_stall(move |_| {
            told.fetch_add(1, Relaxed);
        })
        .build()
        .unwrap();
    // Polls of a few milliseconds, one after the other, for as long as somebody stops us.
    rt.block_on(rt.spawn(async {
        for _ in 0..400 {
            thread::sleep(Duration::from_millis(5));
            blitz_io::task::yield_now().await;
        }
    }))
    .unwrap();
    assert_eq!(long.load(Relaxed), 0, "somebody was blamed");
}

/// The child has a copy of a runtime whose threads are not there, and makes one of its own.
#[test]
fn a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own() {
    let _watch = watch::begin();
    if !is_alone("alone::a_process_that_is_forked_by_a_task_has_a_monitor_of_its_own") {
        return;
    }
    let rt = preempting(1);
    let status = rt.spawn(async {
        // Caught meanwhile: this thread has no worker when it forks.
        thread::sleep(Duration::from_millis(50));
        // SAFETY: the child starts threads of its own and ends by `_exit`.
        let process = unsafe { libc::fork() };
        if process == 0 {
            // What runs here has the words of a thread that had a core: not on this one.
            let ok = thread::spawn(stuck_and_not).join().unwrap_or(false);
            // SAFETY: ends the process.
            unsafe { libc::_exit(if ok { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child, and writes where there is room.
        assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
        status
    });
    let status = rt.block_on(status).unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
}

/// Whether this process has become the first of a namespace of numbers of its own: then it is a
/// child of who has called. `None` if the system does not allow it.
fn begin_namespace() -> Option<bool> {
    // SAFETY: plain system calls; the child makes threads of its own and ends by `_exit`.
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

/// Both are the first of their namespace: number 1.
#[test]
fn a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own() {
    let _watch = watch::begin();
    if !is_alone("alone::a_process_with_the_number_of_its_parent_has_a_monitor_of_its_own") {
        return;
    }
    match begin_namespace() {
        None => eprintln!("skipped: {}", std::io::Error::last_os_error()),
        Some(false) => {}
        Some(true) => {
            let ok = stuck_and_not()
                && (!begin_namespace().expect("it was allowed before") || stuck_and_not());
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!ok)) };
        }
    }
}

/// How often the monitor has gone to sleep, if there is one.
fn naps() -> u64 {
    let mut threads =
        std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let is_monitor = |thread: &std::path::PathBuf| {
        std::fs::read_to_string(thread.join("comm"))
            .is_ok_and(|name| name.trim() == "blitz-monitor")
    };
    let monitor = threads.find(is_monitor).expect("there is a monitor");
    let status = std::fs::read_to_string(monitor.join("status")).unwrap();
    let mut words = status.split_whitespace();
    words.find(|word| *word == "voluntary_ctxt_switches:").expect("Linux counts them");
    words.next().unwrap().parse().unwrap()
}

/// It is told of, and then nothing is left to be done about it.
#[test]
fn a_runtime_that_never_ends_is_not_looked_at() {
    let _watch = watch::begin();
    // Each signal would wake the monitor.
    if watch::is_urged() || !is_alone("alone::a_runtime_that_never_ends_is_not_looked_at") {
        return;
    }
    let quiet = || {
        watch::until(|| {
            let before = naps();
            // Not waited for: this is the stretch of time in which nothing is to happen.
            thread::sleep(Duration::from_millis(200));
            naps() == before
        });
    };
    let stuck =
        |rt: Runtime, spawn: fn(&Runtime, mpsc::Sender<()>), until: fn(&Runtime) -> bool| {
            let (begin, begun) = mpsc::channel();
            spawn(&rt, begin);
            begun.recv().unwrap();
            watch::until(|| until(&rt));
            rt.shutdown_background();
        };
    fn never_ends(begin: mpsc::Sender<()>) {
        begin.send(()).unwrap();
        loop {
            thread::park();
        }
    }
    let telling = || {
        let (tell, told) = mpsc::channel();
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .preemption(Preemption::new())
            .on_task_stall(move |stall| tell.send(stall.task()).unwrap())
            .build()
            .unwrap();
        (rt, told)
    };
    let task = |rt: &Runtime, begin| drop(rt.spawn(async { never_ends(begin) }));
    // Most likely it has not been caught when the runtime is told to end.
    let (rt, told) = telling();
    stuck(rt, task, |_| true);
    told.recv().unwrap();
    quiet();
    let (rt, told) = telling();
    stuck(rt, task, |rt| rt.metrics().preemption_detached_threads() == 1);
    told.recv().unwrap();
    quiet();
    #[cfg(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let (rt, told) = telling();
        let fiber = |rt: &Runtime, begin| {
            let fiber = blitz_io::fiber::Builder::new();
            fiber.spawn_on(move || never_ends(begin), rt.handle()).unwrap();
        };
        stuck(rt, fiber, |rt| rt.metrics().preemption_stall_count() >= 1);
        told.recv().unwrap();
        quiet();
    }
    // It is awake when there is need of it.
    assert!(stuck_and_not());
}

/// Whoever is told of stalls does not come back: nothing waits for it, and what it is not told of
/// is counted. In a process of its own: one thread tells all runtimes.
#[test]
fn a_report_that_blocks_for_ever_costs_reports_and_no_core() {
    let _watch = watch::begin();
    if !is_alone("alone::a_report_that_blocks_for_ever_costs_reports_and_no_core") {
        return;
    }
    let open = Arc::new(AtomicBool::new(false));
    let (told, forgotten) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new().slice(Duration::from_micros(100)).learning(false))
        .on_task_stall({
            let (open, told, forgotten) = (open.clone(), told.clone(), forgotten.clone());
            move |stall| {
                while !open.load(Acquire) {
                    thread::sleep(Duration::from_millis(1));
                }
                told.fetch_add(1, Relaxed);
                forgotten.fetch_add(stall.forgotten(), Relaxed);
            }
        })
        .build()
        .unwrap();
    let metrics = rt.metrics();
    let stalls = || metrics.preemption_stall_count();
    // More than may wait.
    while stalls() < 1_500 {
        // Until it is caught.
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
    assert_eq!(told.load(Relaxed), 0);
    open.store(true, Release);
    watch::until(|| told.load(Relaxed) + forgotten.load(Relaxed) == stalls());
    assert!(forgotten.load(Relaxed) > 0);
    // A core that was lost would be waited for.
    drop(rt);
}

/// There are fibers.
const FIBERS: bool =
    cfg!(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")));

/// Those who wait inside of a poll until all of them are let go.
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

    /// Until so many are in their polls: who has not begun is dropped by a shutdown, not waited
    /// for.
    fn until_begun(&self, count: usize) {
        watch::until(|| self.begun.load(Relaxed) == count);
    }

    /// Drops the runtime, and lets them go when it was told that they are waited for.
    fn outlast(self, rt: Runtime) {
        let ends = thread::spawn(move || {
            child::until_answered();
            self.over.store(true, Release);
        });
        drop(rt);
        ends.join().unwrap();
    }
}

#[test]
fn a_shutdown_that_waits_for_polls_names_them() {
    let _watch = watch::begin();
    if child::role().is_none() {
        let name = "alone::a_shutdown_that_waits_for_polls_names_them";
        let output = child::answer_each(&mut child::command(name, "waits"), "has waited");
        let text = child::has_succeeded(&output.unwrap());
        let fibers = usize::from(FIBERS);
        let reports: Vec<&str> = text.lines().filter(|line| line.contains("has waited")).collect();
        assert_eq!(reports.len(), 2, "{text}");
        assert!(reports[0].contains(&format!("for {} polls", 2 + fibers)), "{text}");
        assert!(reports[1].contains("for 1 poll,"), "{text}");
        let polls = text.lines().filter(|line| line.contains("has been in one poll for "));
        let polls: Vec<_> = polls.filter(|line| line.contains("alone.rs:")).collect();
        assert_eq!(polls.len(), 3 + fibers, "{text}");
        for name in ["taken", "lent", "kept", "fiber"]
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
    let rt = preempting(1);
    let stuck = waiting.one_more();
    named("taken").spawn_on(async { stuck() }, rt.handle()).unwrap();
    let stuck = waiting.one_more();
    named("lent").long_running().spawn_on(async { stuck() }, rt.handle()).unwrap();
    #[cfg(all(feature = "fiber", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let fiber = blitz_io::fiber::Builder::new().name("fiber");
        fiber.spawn_on(waiting.one_more(), rt.handle()).unwrap();
    }
    waiting.until_begun(2 + usize::from(FIBERS));
    // Counted when its thread was told of it, which may have begun by then.
    watch::until(|| rt.metrics().preemption_lent_count() > 0);
    let stalls = 1 + u64::from(FIBERS);
    watch::until(|| rt.metrics().preemption_stall_count() >= stalls);
    waiting.outlast(rt);
    let waiting = Waiting::default();
    let rt = Builder::new_multi_thread().worker_threads(1).on_task_stall(|_| ()).build().unwrap();
    let stuck = waiting.one_more();
    named("kept").spawn_on(async { stuck() }, rt.handle()).unwrap();
    watch::until(|| rt.metrics().preemption_stall_count() >= 1);
    waiting.outlast(rt);
}

/// What is said of those who are waited for is not said by who waits.
#[test]
fn a_shutdown_with_a_limit_ends_though_a_poll_has_the_lock_of_standard_error() {
    let _watch = watch::begin();
    const NAME: &str =
        "alone::a_shutdown_with_a_limit_ends_though_a_poll_has_the_lock_of_standard_error";
    if !is_alone(NAME) {
        return;
    }
    let rt = preempting(1);
    let (tell, told) = mpsc::channel();
    rt.spawn(async move {
        let _lock = std::io::stderr().lock();
        tell.send(()).unwrap();
        loop {
            thread::park();
        }
    });
    told.recv().unwrap();
    // After a second it would be said for whom it waits.
    rt.shutdown_timeout(Duration::from_millis(1_500));
}

/// Whether a task runs beside one that is stuck on the only worker.
fn stuck_and_not() -> bool {
    let rt = preempting(1);
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
