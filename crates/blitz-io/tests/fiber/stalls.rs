//! Tests that a fiber that does not let the other fibers of its thread run is marked, reported and
//! counted.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, Preemption, Runtime, StallKind, StallReport},
    sync::Semaphore,
    task,
};

use crate::{fiber, support::watchdog};

/// Creates runtimes with preemption in different settings, and the channels of their reports.
fn watched() -> Vec<(Runtime, mpsc::Receiver<StallReport>)> {
    let mut local = Builder::new_current_thread();
    local.preemption(Preemption::new());
    let mut moving = Builder::new_multi_thread();
    moving.worker_threads(1).preemption(Preemption::new());
    let mut reporting = Builder::new_multi_thread();
    reporting.worker_threads(2).preemption(Preemption::disabled());
    let reports = |mut builder: Builder| {
        let (sender, reports) = mpsc::channel();
        let sender = Mutex::new(sender);
        let rt = builder
            .fiber_threads(1)
            .on_task_stall(move |stall| drop(sender.lock().unwrap().send(stall.clone())))
            .enable_all()
            .build()
            .unwrap();
        (rt, reports)
    };
    [local, moving, reporting].map(reports).into_iter().collect()
}

fn spawn<R: Send + 'static>(
    rt: &Runtime,
    f: impl FnOnce() -> R + Send + 'static,
) -> task::JoinHandle<R> {
    fiber::Builder::new().name("deaf").spawn_on(f, rt.handle()).unwrap()
}

#[test]
fn a_fiber_that_hogs_its_thread_is_reported_and_counted() {
    let _watch = watchdog::start();
    for (rt, reports) in watched() {
        // This fiber would be reported too if it were blamed for time in which it does not run.
        let waits = spawn(&rt, || fiber::wait(std::future::pending::<()>()));
        let hog = spawn(&rt, move || {
            let stall = reports.recv().unwrap();
            assert!(task::should_yield(), "the mark is there as well");
            // The fiber gets a new slice if its thread yields in time.
            while task::should_yield() {
                fiber::wait(task::yield_now());
            }
            (stall, reports)
        });
        let id = hog.id();
        let (stall, reports) = rt.block_on(hog).unwrap();
        assert_eq!((stall.task(), stall.name(), stall.worker()), (id, Some("deaf"), Some(0)));
        assert!(stall.is_fiber() && !stall.was_handed_off());
        assert_eq!(stall.spawned_at().file(), file!());
        assert!(stall.duration() >= Duration::from_millis(10), "{:?}", stall.duration());
        if cfg!(target_os = "linux") {
            assert_eq!(stall.kind(), StallKind::Blocked);
        }
        let text = stall.to_string();
        assert!(text.contains("the other fibers of that thread wait for it"), "{text}");
        assert!(text.contains("deaf") && text.contains("fiber::checkpoint"), "{text}");
        let metrics = rt.metrics();
        assert_eq!((metrics.preemption_stall_count(), metrics.preemption_handoff_count()), (1, 0));
        assert_eq!(metrics.preemption_refused_count(), 0);
        assert!(reports.try_recv().is_err(), "once a poll");
        waits.abort();
    }
}

#[test]
fn operations_on_a_fiber_yield_when_its_slice_is_over() {
    let _watch = watchdog::start();
    for (rt, _reports) in watched() {
        let count = spawn(&rt, || {
            let metrics = Handle::current().metrics();
            let before = metrics.budget_forced_yield_count();
            watchdog::until(task::should_yield);
            let semaphore = Semaphore::new(1);
            drop(fiber::wait(semaphore.acquire()).unwrap());
            metrics.budget_forced_yield_count() - before
        });
        assert!(rt.block_on(count).unwrap() >= 1);
    }
}

#[test]
fn a_checkpoint_yields_as_soon_as_the_fiber_is_marked() {
    let _watch = watchdog::start();
    // The mark comes after half a slice; a clock would report only after a whole one.
    let rt = Builder::new_current_thread()
        .preemption(Preemption::new().slice(Duration::from_secs(1)))
        .build()
        .unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let checks = spawn(&rt, {
        let turns = turns.clone();
        move || {
            watchdog::until(task::should_yield);
            assert_eq!(turns.load(SeqCst), 0);
            fiber::checkpoint();
            assert_eq!(turns.load(SeqCst), 1, "the other one has not run");
            assert!(!task::should_yield());
        }
    });
    let other = spawn(&rt, move || turns.fetch_add(1, SeqCst));
    rt.block_on(checks).unwrap();
    rt.block_on(other).unwrap();
    assert_eq!(rt.metrics().preemption_stall_count(), 0, "a check in time is no stall");
}

/// A destructor that waits while its thread unwinds blocks the thread. A mark must not make it
/// spin.
#[test]
fn a_fiber_that_waits_while_it_unwinds_gets_on_when_its_slice_is_over() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            watchdog::until(task::should_yield);
            let semaphore = Semaphore::new(1);
            drop(fiber::wait(semaphore.acquire()).unwrap());
        }
    }
    let _watch = watchdog::start();
    for (rt, _reports) in watched() {
        let panics = spawn(&rt, || {
            let _waits = Waits;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(rt.block_on(panics).unwrap_err().is_panic());
    }
}

#[test]
fn the_monitor_does_not_scan_waiting_fibers() {
    let _watch = watchdog::start();
    for (rt, reports) in watched() {
        let (go, gone) = blitz_io::sync::oneshot::channel::<()>();
        let waits = spawn(&rt, move || fiber::wait(gone));
        // A report shows that the monitor is running.
        drop(rt.block_on(spawn(&rt, move || reports.recv().unwrap())).unwrap());
        let metrics = rt.metrics();
        watchdog::until(|| {
            let before = metrics.preemption_scan_count();
            // This sleep waits for no event: it is the period in which nothing may happen.
            thread::sleep(Duration::from_millis(200));
            metrics.preemption_scan_count() == before
        });
        // A fiber that starts to run again is watched.
        go.send(()).unwrap();
        rt.block_on(waits).unwrap().unwrap();
        let looks = metrics.preemption_scan_count();
        rt.block_on(spawn(&rt, || watchdog::until(task::should_yield))).unwrap();
        assert!(metrics.preemption_scan_count() > looks);
    }
}

/// Spins without a call, in a stack frame like that of code with frame pointers. Returns the
/// address that this frame names as its return address.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[inline(never)]
fn spins_until(over: &std::sync::atomic::AtomicBool) -> usize {
    let returns_to: usize;
    // SAFETY: the code reads one valid byte, and restores the stack and all registers.
    unsafe {
        std::arch::asm!(
            "lea {address}, [rip]",
            "push {address}",
            "push rbp",
            "mov rbp, rsp",
            "2:",
            "pause",
            "cmp byte ptr [{over}], 0",
            "je 2b",
            "pop rbp",
            "pop {address}",
            address = out(reg) returns_to,
            over = in(reg) over.as_ptr(),
        );
    }
    returns_to
}

/// The reported stack names the functions that a fiber is in. The test runs in a process of its
/// own, because signal handlers belong to the whole process.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_calls_that_a_fiber_is_in_are_reported() {
    use std::sync::atomic::AtomicBool;

    use crate::support::child;

    let _watch = watchdog::start();
    if child::role().is_none() {
        let name = "stalls::the_calls_that_a_fiber_is_in_are_reported";
        child::succeed(&mut child::command(name, "reports"));
        return;
    }
    let (sender, reports) = mpsc::channel();
    let sender = Mutex::new(sender);
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .fiber_threads(1)
        .preemption(Preemption::new().capture_stacks(true))
        .on_task_stall(move |stall| drop(sender.lock().unwrap().send(stall.clone())))
        .build()
        .unwrap();
    // On a busy machine the thread's reply to the signal may come too late.
    let is_reported = (0..100).any(|_| {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let hog = spawn(&rt, move || spins_until(&ends));
        let stall: StallReport = reports.recv().unwrap();
        over.store(true, SeqCst);
        let returns_to = rt.block_on(hog).unwrap();
        assert!(stall.is_fiber());
        stall.frames().get(1).is_some_and(|frame| frame.address() == returns_to)
    });
    assert!(is_reported, "only the innermost call was reported");
}
