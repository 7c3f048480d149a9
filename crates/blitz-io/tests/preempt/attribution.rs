//! Tests which tasks are blamed for a long poll, and which are not.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime},
    task,
};

#[cfg(target_arch = "x86_64")]
use crate::support::child;
use crate::support::{child::is_alone, preemption::thread_cpu_time, watchdog};

fn preempting_named(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).preemption(Preemption::new());
    builder.thread_name("its-name").enable_all().build().expect("a runtime")
}

fn compute(time: Duration) {
    let until = thread_cpu_time() + time;
    while thread_cpu_time() < until {}
}

/// Runs polls of less than half a slice on `tasks` tasks, for a while.
fn short_polls(rt: &Runtime, tasks: usize, each: Duration, during: Duration) {
    let end = Instant::now() + during;
    let polls = move || async move {
        while Instant::now() < end {
            compute(each);
            task::yield_now().await;
        }
    };
    let tasks: Vec<_> = (0..tasks).map(|_| rt.spawn(polls())).collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
}

#[test]
fn a_storm_ends_though_polls_of_some_milliseconds_go_on() {
    let _watch = watchdog::start();
    let rt = preempting_named(2);
    let metrics = rt.metrics();
    let reports = metrics.clone();
    rt.block_on(
        rt.spawn(async move { watchdog::compute_until(|| reports.preemption_stall_count() == 1) }),
    )
    .unwrap();
    let each = Duration::from_millis(3);
    short_polls(&rt, 4, each, Duration::from_millis(500));
    let handoffs = metrics.preemption_handoff_count();
    short_polls(&rt, 4, each, Duration::from_millis(500));
    assert_eq!(metrics.preemption_stall_count(), 1, "they were reported");
    assert_eq!(metrics.preemption_handoff_count(), handoffs, "the storm goes on");
    assert_eq!(metrics.preemption_offload_count(), 0, "they are not trusted");
}

/// Restricts this process to one processor.
fn use_one_processor() {
    // SAFETY: all zeros are a valid `cpu_set_t`, and the calls read and write only `set`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        let allowed = (0..1024).find(|cpu| libc::CPU_ISSET(*cpu, &set)).unwrap();
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(allowed, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
    }
}

#[test]
fn a_thread_without_its_share_of_a_processor_is_not_blamed_and_a_hog_is() {
    let _watch = watchdog::start();
    const NAME: &str =
        "attribution::a_thread_without_its_share_of_a_processor_is_not_blamed_and_a_hog_is";
    if !is_alone(NAME) {
        return;
    }
    use_one_processor();
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..6)
        .map(|_| {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let rt = preempting_named(2);
    let metrics = rt.metrics();
    short_polls(&rt, 4, Duration::from_millis(2), Duration::from_secs(2));
    assert_eq!(metrics.preemption_handoff_count(), 0);
    let hog = rt.spawn({
        let over = over.clone();
        async move {
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        }
    });
    watchdog::until(|| metrics.preemption_stall_count() == 1);
    over.store(true, Relaxed);
    rt.block_on(hog).unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// The task is in the runtime's code most of the time, and is there again before a memory barrier
/// completes.
#[test]
fn a_task_that_calls_the_runtime_all_the_time_is_caught_too() {
    let _watch = watchdog::start();
    let rt = preempting_named(1);
    let (sender, reports) = mpsc::channel::<Waker>();
    let pending = rt.spawn(poll_fn(move |cx| {
        // Only the first waker is received.
        let _ = sender.send(cx.waker().clone());
        Poll::<()>::Pending
    }));
    let waker = reports.recv().unwrap();
    drop(reports);
    let over = Arc::new(AtomicBool::new(false));
    let hog = rt.spawn({
        let over = over.clone();
        async move {
            while !over.load(Relaxed) {
                waker.wake_by_ref();
            }
        }
    });
    for _ in 0..10 {
        rt.block_on(rt.spawn(async {})).unwrap();
    }
    over.store(true, Relaxed);
    rt.block_on(hog).unwrap();
    pending.abort();
}

#[test]
fn tasks_that_wait_for_long_do_not_use_up_the_room_of_those_that_compute() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::new().max_detached(4))
        .enable_all()
        .build()
        .unwrap();
    let (go, gone): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<()>()).unzip();
    let waiting: Vec<_> = gone
        .into_iter()
        .map(|gone| {
            let task = task::Builder::new().long_running();
            task.spawn_on(async move { gone.recv().unwrap_err() }, rt.handle()).unwrap()
        })
        .collect();
    let over = Arc::new(AtomicBool::new(false));
    let hog = rt.spawn({
        let over = over.clone();
        async move {
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        }
    });
    for _ in 0..10 {
        rt.block_on(rt.spawn(async {})).unwrap();
    }
    over.store(true, Relaxed);
    rt.block_on(hog).unwrap();
    drop(go);
    for task in waiting {
        let _disconnected = rt.block_on(task).unwrap();
    }
}

#[test]
fn a_task_that_waits_for_good_does_not_keep_the_monitor_awake() {
    let _watch = watchdog::start();
    let rt = preempting_named(2);
    let (go, gone) = mpsc::channel::<()>();
    let waiting = rt.spawn(async move { gone.recv().unwrap_err() });
    let metrics = rt.metrics();
    watchdog::until(|| metrics.preemption_detached_threads() == 1);
    watchdog::until(|| {
        let before = metrics.preemption_scan_count();
        // This sleep waits for no event: it is the period in which nothing may happen.
        thread::sleep(Duration::from_millis(200));
        metrics.preemption_scan_count() == before
    });
    assert_eq!(metrics.preemption_detached_threads(), 1);
    drop(go);
    let _disconnected = rt.block_on(waiting).unwrap();
}

#[test]
fn a_thread_that_stands_in_has_the_name_of_the_others() {
    let _watch = watchdog::start();
    let rt = preempting_named(1);
    let (go, gone) = mpsc::channel::<()>();
    let waiting = rt.spawn(async move { gone.recv().unwrap_err() });
    let name = rt.spawn(async { thread::current().name().map(str::to_owned) });
    assert_eq!(rt.block_on(name).unwrap().as_deref(), Some("its-name"));
    drop(go);
    let _disconnected = rt.block_on(waiting).unwrap();
}

/// The memory barrier that the protocol needs is granted at first, and refused later.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sandbox_that_is_entered_later_costs_the_preemption_and_nothing_else() {
    let _watch = watchdog::start();
    const NAME: &str =
        "attribution::a_sandbox_that_is_entered_later_costs_the_preemption_and_nothing_else";
    if child::role().is_none() {
        let mut command = child::command(NAME, "is alone");
        command.env("BLITZ_BARRIER", "membarrier");
        let output = child::confirm_each(&mut command, "BLITZ_BARRIER=fences").unwrap();
        child::has_succeeded(&output);
        return;
    }
    let rt = preempting_named(2);
    rt.block_on(rt.spawn(async { compute(Duration::from_millis(20)) })).unwrap();
    crate::support::syscall_filter::forbid(libc::SYS_membarrier, libc::SECCOMP_FILTER_FLAG_TSYNC);
    let metrics = rt.metrics();
    watchdog::until(|| {
        rt.block_on(rt.spawn(async { compute(Duration::from_millis(15)) })).unwrap();
        let before = metrics.preemption_scan_count();
        // This sleep waits for no event: the monitor must not check any more.
        thread::sleep(Duration::from_millis(300));
        metrics.preemption_scan_count() == before
    });
    if cfg!(debug_assertions) {
        // The runtime prints that preemption is off.
        child::until_confirmed();
    }
    let handoffs = metrics.preemption_handoff_count();
    rt.block_on(rt.spawn(async { compute(Duration::from_millis(50)) })).unwrap();
    assert_eq!(metrics.preemption_handoff_count(), handoffs);
}

/// Locks of the runtime's own wait queues rely on the same barrier when a thread must sleep for
/// one. Many threads for few processors make that happen often. Dumps, and shutdowns that wait,
/// read the list of a core's tasks by it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_sandbox_that_is_entered_later_leaves_locks_and_dumps_usable() {
    const NAME: &str = "attribution::a_sandbox_that_is_entered_later_leaves_locks_and_dumps_usable";
    const THREADS: usize = 16;
    const TURNS: usize = 20_000;
    let _watch = watchdog::start();
    if child::role().is_none() {
        let mut command = child::command(NAME, "is alone");
        child::succeed(command.env("BLITZ_BARRIER", "membarrier"));
        return;
    }
    let rt = preempting_named(2);
    rt.block_on(async {});
    crate::support::syscall_filter::forbid(libc::SYS_membarrier, libc::SECCOMP_FILTER_FLAG_TSYNC);
    let semaphore = Arc::new(blitz_io::sync::Semaphore::new(2));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (semaphore, handle) = (semaphore.clone(), rt.handle().clone());
            thread::spawn(move || {
                for _ in 0..TURNS {
                    drop(handle.block_on(semaphore.acquire()).unwrap());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(semaphore.available_permits(), 2);
    // A dump without some of the tasks is better than an abort.
    drop(rt.block_on(rt.handle().dump()));
}
