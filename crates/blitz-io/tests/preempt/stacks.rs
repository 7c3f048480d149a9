//! Tests stack traces of stuck tasks, which a signal captures.
//!
//! Signal handlers belong to the whole process, so each test has a process of its own.

use std::{
    hint::black_box,
    io,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime, StallKind, StallReport},
    task,
};

use crate::support::{child::is_alone, preemption::with_reports, watchdog};

fn reporting(preemption: Preemption) -> (Runtime, mpsc::Receiver<StallReport>) {
    let mut builder = Builder::new_multi_thread();
    with_reports(builder.worker_threads(2).preemption(preemption).enable_all())
}

fn capturing() -> Preemption {
    Preemption::new().capture_stacks(true)
}

/// Computes until `over` is set, and calls nothing nearly all of the time: without frame pointers
/// only the innermost function is certain to be reported.
#[inline(never)]
fn crunches_numbers(over: &AtomicBool) -> u64 {
    let mut sum = 1_u64;
    while !over.load(Acquire) {
        let mut step = 0_u64;
        while step < 10_000_000 {
            sum = (sum * 3 + step) % 1_000_003;
            step += 1;
        }
    }
    black_box(sum)
}

/// Spawns hogs, one after the other, until `is_good` accepts the report of one.
fn a_hog(
    rt: &Runtime,
    reports: &mpsc::Receiver<StallReport>,
    is_good: impl Fn(&StallReport) -> bool,
) -> StallReport {
    loop {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let hog = rt.spawn(async move { crunches_numbers(&ends) });
        let id = hog.id();
        let stall = loop {
            let stall = reports.recv().unwrap();
            if stall.task() == id {
                break stall;
            }
        };
        over.store(true, Release);
        rt.block_on(hog).unwrap();
        // On a busy machine the thread's reply to the signal may come too late.
        if is_good(&stall) {
            return stall;
        }
    }
}

fn has_frames(stall: &StallReport) -> bool {
    !stall.frames().is_empty()
}

fn within(function: usize, address: usize) -> bool {
    // More bytes than the function's code has, in any build.
    (function..function + 4096).contains(&address)
}

#[test]
fn a_hog_is_found_in_its_function() {
    let _watch = watchdog::start();
    if !is_alone("stacks::a_hog_is_found_in_its_function") {
        return;
    }
    let (rt, reports) = reporting(capturing());
    let function = crunches_numbers as fn(&AtomicBool) -> u64 as usize;
    let stall = a_hog(&rt, &reports, |stall| {
        // The hog may be inside a function that it calls at that moment.
        stall.frames().first().is_some_and(|frame| within(function, frame.address()))
    });
    if cfg!(feature = "stall-stacks") {
        let first = &stall.frames()[0];
        let name = first.name().expect("tests have symbols");
        assert!(name.ends_with("crunches_numbers"), "{name}");
        if cfg!(debug_assertions) {
            assert!(first.file().expect("and debug information").ends_with("stacks.rs"));
            // Some instructions belong to no line.
            a_hog(&rt, &reports, |stall| stall.frames().iter().any(|frame| frame.line().is_some()));
        }
        let text = stall.to_string();
        assert!(text.contains("(in preempt::stacks::crunches_numbers"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    } else {
        assert!(stall.frames().iter().all(|frame| frame.name().is_none()));
    }
}

/// Returns true if a foreign handler is installed and foreign signals arrive; prints that.
fn is_interrupted() -> bool {
    let is_interrupted = watchdog::is_interrupted();
    if is_interrupted {
        eprintln!("skipped: signals of others come, and have a handler");
    }
    is_interrupted
}

/// Returns true if SIGURG has a handler.
fn is_handled() -> bool {
    // SAFETY: the call only queries, and all zeros are a valid `sigaction` to write to.
    let action = unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        assert_eq!(libc::sigaction(libc::SIGURG, std::ptr::null(), &raw mut action), 0);
        action
    };
    action.sa_sigaction != libc::SIG_DFL
}

#[test]
fn no_thread_is_interrupted_unless_requested() {
    let _watch = watchdog::start();
    if is_interrupted() || !is_alone("stacks::no_thread_is_interrupted_unless_requested") {
        return;
    }
    let (plain, reports) = reporting(Preemption::new());
    assert!(a_hog(&plain, &reports, |_| true).frames().is_empty());
    assert!(!is_handled());
    let (rt, reports) = reporting(capturing().slice(Duration::from_millis(50)));
    assert!(is_handled());
    // A task that waits gets no signal.
    let (go, gone) = mpsc::channel::<()>();
    let waits = rt.spawn(async move { gone.recv().unwrap() });
    let stall = reports.recv().unwrap();
    assert_eq!((stall.kind(), stall.frames().len()), (StallKind::Blocked, 0));
    go.send(()).unwrap();
    rt.block_on(waits).unwrap();
}

#[test]
fn the_stack_of_a_blocked_task_is_captured_on_request_and_it_goes_on() {
    let _watch = watchdog::start();
    if !is_alone("stacks::the_stack_of_a_blocked_task_is_captured_on_request_and_it_goes_on") {
        return;
    }
    let slice = Duration::from_millis(50);
    let (rt, reports) = reporting(Preemption::new().slice(slice).capture_blocked_stacks(true));
    let (go, gone) = mpsc::channel();
    let blocks = rt.spawn(async move { gone.recv().unwrap() });
    let stall = reports.recv().unwrap();
    assert_eq!(stall.kind(), StallKind::Blocked);
    // A thread that waits replies to the signal at once, if it gets a processor.
    go.send(7).unwrap();
    assert_eq!(rt.block_on(blocks).unwrap(), 7);
    let mut stall = stall;
    while stall.frames().is_empty() {
        let (go, gone) = mpsc::channel::<()>();
        let blocks = rt.spawn(async move { gone.recv() });
        stall = reports.recv().unwrap();
        drop(go);
        rt.block_on(blocks).unwrap().unwrap_err();
    }
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn of_a_user(_: libc::c_int) {
    CALLS.fetch_add(1, Release);
}

/// Installs a user's handler, which does not call the previous handler.
fn install() {
    // SAFETY: all zeros are a valid `sigaction`, and the handler is async-signal-safe.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = of_a_user as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()), 0);
    }
}

#[test]
fn a_handler_that_was_there_gets_its_own_signals_and_not_ours() {
    let _watch = watchdog::start();
    if is_interrupted()
        || !is_alone("stacks::a_handler_that_was_there_gets_its_own_signals_and_not_ours")
    {
        return;
    }
    install();
    let (rt, reports) = reporting(capturing());
    a_hog(&rt, &reports, has_frames);
    assert_eq!(CALLS.load(Acquire), 0, "ours are not a user's");
    for count in 1..=100 {
        // Sent to this thread, so the handler has run when the call returns.
        // SAFETY: the call takes an integer.
        assert_eq!(unsafe { libc::raise(libc::SIGURG) }, 0);
        assert_eq!(CALLS.load(Acquire), count);
    }
    // Sent to the process, so any thread may receive it.
    // SAFETY: the calls take integers.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGURG) }, 0);
    watchdog::until(|| CALLS.load(Acquire) == 101);
    a_hog(&rt, &reports, has_frames);
    assert_eq!(CALLS.load(Acquire), 101);
}

#[test]
fn a_handler_that_comes_later_gets_ours_and_reports_go_without() {
    let _watch = watchdog::start();
    if !is_alone("stacks::a_handler_that_comes_later_gets_ours_and_reports_go_without") {
        return;
    }
    let (rt, reports) = reporting(capturing());
    a_hog(&rt, &reports, has_frames);
    install();
    for _ in 0..5 {
        assert!(a_hog(&rt, &reports, |_| true).frames().is_empty());
    }
    watchdog::until(|| {
        a_hog(&rt, &reports, |_| true);
        CALLS.load(Acquire) > 0
    });
    // Nor if the signal is ignored, or has no handler.
    for handler in [libc::SIG_IGN, libc::SIG_DFL] {
        // SAFETY: `SIG_IGN` and `SIG_DFL` are valid dispositions.
        assert_ne!(unsafe { libc::signal(libc::SIGURG, handler) }, libc::SIG_ERR);
        assert!(a_hog(&rt, &reports, |_| true).frames().is_empty());
    }
}

/// The listeners of this crate, like Tokio's, call the handler that was installed before.
#[cfg(feature = "signal")]
#[test]
fn a_listener_and_the_handler_live_together() {
    use blitz_io::signal::unix::{SignalKind, signal};

    let _watch = watchdog::start();
    if !is_alone("stacks::a_listener_and_the_handler_live_together") {
        return;
    }
    let (rt, reports) = reporting(capturing());
    let mut listener = {
        let _entered = rt.enter();
        signal(SignalKind::from_raw(libc::SIGURG)).unwrap()
    };
    a_hog(&rt, &reports, has_frames);
    // SAFETY: the calls take integers.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGURG) }, 0);
    rt.block_on(listener.recv()).unwrap();
}

/// Ten thousand signals from outside arrive at workers, besides those of reports: every task runs
/// once.
#[test]
fn signals_from_outside_do_no_harm() {
    const SIGNALS: usize = 10_000;
    const TASKS: usize = 2_000;
    let _watch = watchdog::start();
    if !is_alone("stacks::signals_from_outside_do_no_harm") {
        return;
    }
    let slice = Duration::from_millis(1);
    let (rt, reports) = reporting(Preemption::new().slice(slice).capture_blocked_stacks(true));
    let listens = thread::spawn(move || reports.iter().filter(has_frames).count());
    let sent = Arc::new(AtomicBool::new(false));
    let sends = {
        let sent = sent.clone();
        thread::spawn(move || {
            for number in 0..SIGNALS {
                send_to_all(number);
            }
            sent.store(true, Release);
        })
    };
    let (done, polls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = 0;
    // At least this many tasks, and until the last signal.
    while tasks < TASKS || !sent.load(Acquire) {
        let some: Vec<_> = (0..100)
            .map(|n: u64| {
                let (done, polls) = (done.clone(), polls.clone());
                rt.spawn(async move {
                    polls.fetch_add(1, Relaxed);
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_micros(n * 10) {}
                    task::yield_now().await;
                    if n.is_multiple_of(10) {
                        thread::sleep(Duration::from_millis(2));
                    }
                    done.fetch_add(1, Relaxed);
                    n
                })
            })
            .collect();
        for (n, task) in some.into_iter().enumerate() {
            assert_eq!(rt.block_on(task).unwrap(), n as u64);
        }
        tasks += 100;
    }
    sends.join().unwrap();
    assert_eq!((done.load(Relaxed), polls.load(Relaxed)), (tasks, tasks));
    drop(rt);
    println!("{} reports had frames", listens.join().unwrap());
}

/// Sends one signal, to each of the threads of this process in turn.
fn send_to_all(number: usize) {
    let threads: Vec<i32> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let thread = threads[number % threads.len()];
    // SAFETY: the calls take integers. A thread that has ended meanwhile causes an error.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) };
    let error = io::Error::last_os_error();
    assert!(sent == 0 || error.raw_os_error() == Some(libc::ESRCH), "{error}");
}
