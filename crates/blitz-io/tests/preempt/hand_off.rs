//! Tests that no task can stall the others, and that the runtime names the task that tried.
//!
//! A hog ends when the test releases it, not after a time: if the runtime waited for it, the test
//! would hang, and the watchdog would end it.

use std::{
    collections::HashSet,
    panic::Location,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime, StallKind, worker_index},
    sync::oneshot,
    task, time,
};

use crate::support::{
    preemption::{HogGuard, preempting_with_drivers, with_reports},
    watchdog,
};

/// The slice of most runtimes here. Chosen: short against the limit of a test.
const SLICE: Duration = Duration::from_millis(10);

#[test]
fn a_task_runs_beside_one_that_computes_for_ever_on_the_only_worker() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let guard = HogGuard::new();
    let hog = guard.hog();
    let hog = rt.spawn(async move { hog() });
    for n in 0..100 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    assert!(!hog.is_finished());
    drop(guard);
    rt.block_on(hog).unwrap();
}

#[test]
fn timers_go_off_beside_eight_hogs_on_two_workers() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, SLICE);
    let guard = HogGuard::new();
    let hogs: Vec<_> = (0..8).map(|_| guard.hog()).map(|hog| rt.spawn(async { hog() })).collect();
    rt.block_on(rt.spawn(async {
        for _ in 0..20 {
            time::sleep(Duration::from_millis(1)).await;
        }
    }))
    .unwrap();
    drop(guard);
    for hog in hogs {
        rt.block_on(hog).unwrap();
    }
}

#[test]
fn tasks_that_block_their_thread_hold_up_no_other_task() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, SLICE);
    let guard = HogGuard::new();
    let sleepers: Vec<_> =
        (0..16).map(|_| guard.sleeper()).map(|sleeper| rt.spawn(async { sleeper() })).collect();
    rt.block_on(rt.spawn(async { time::sleep(Duration::from_millis(1)).await })).unwrap();
    drop(guard);
    for sleeper in sleepers {
        rt.block_on(sleeper).unwrap();
    }
}

/// Tokio is stuck here for ever, with any number of workers.
#[test]
fn a_task_may_block_on_what_lies_in_the_lifo_slot_of_its_only_worker() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let blocked = rt.spawn(async {
        let (sender, reports) = mpsc::channel();
        blitz_io::spawn(async move { sender.send(7).unwrap() });
        reports.recv().unwrap()
    });
    assert_eq!(rt.block_on(blocked).unwrap(), 7);
}

#[test]
fn a_lock_of_std_is_held_across_blocking_code_by_many_tasks() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, SLICE);
    let lock = Arc::new(Mutex::new(0));
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let lock = lock.clone();
            rt.spawn(async move {
                let mut count = lock.lock().unwrap();
                let before = *count;
                thread::sleep(Duration::from_millis(15));
                *count = before + 1;
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    assert_eq!(*lock.lock().unwrap(), 10);
}

#[test]
fn a_deadlock_of_two_tasks_leaves_the_others_alone() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let (one, two) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    // Each waits for the other's message; a third task ends them, late.
    let (first, second) = (one.0.clone(), two.0.clone());
    let waits = |own: mpsc::Receiver<()>, other: mpsc::Sender<()>| {
        rt.spawn(async move {
            own.recv().unwrap();
            other.send(()).ok();
        })
    };
    let deadlocked = [waits(one.1, two.0), waits(two.1, one.0)];
    for n in 0..20 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    assert!(deadlocked.iter().all(|task| !task.is_finished()));
    drop((first, second.send(())));
    for task in deadlocked {
        rt.block_on(task).unwrap();
    }
}

#[test]
fn a_thread_that_has_lost_its_worker_is_none() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let (sender, reports) = oneshot::channel();
    let (go, gone) = mpsc::channel::<()>();
    let task = rt.spawn(async move {
        let before = worker_index();
        gone.recv().unwrap();
        // The tasks that it spawns and wakes now are queued in another way, and run even so.
        let child = blitz_io::spawn(async { 7 });
        sender.send(()).unwrap();
        let after = worker_index();
        (before, after, child.await.unwrap(), worker_index())
    });
    rt.block_on(rt.spawn(async { 1 })).unwrap();
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 1);
    go.send(()).unwrap();
    rt.block_on(reports).unwrap();
    let (before, after, child, later) = rt.block_on(task).unwrap();
    assert_eq!((before, after, child), (Some(0), None, 7));
    // The task was caught, so threads that are not workers poll it for a while.
    assert!(later.is_none());
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 0);
    // The monitor counts these, and may have been interrupted in between.
    watchdog::until(|| rt.metrics().preemption_handoff_count() >= 1);
    watchdog::until(|| rt.metrics().preemption_stall_count() >= 1);
}

#[test]
fn a_hog_with_short_polls_is_trusted_again() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    rt.block_on(rt.spawn(async {
        watchdog::until(|| worker_index().is_none());
        task::yield_now().await;
        let mut polls = 0;
        while worker_index().is_none() {
            task::yield_now().await;
            polls += 1;
            assert!(polls < 1_000_000, "it is never trusted again");
        }
    }))
    .unwrap();
    assert!(rt.metrics().preemption_offload_count() >= 4);
}

#[test]
fn a_long_running_task_is_polled_by_no_worker() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let task = async {
        for _ in 0..20 {
            assert_eq!(worker_index(), None);
            task::yield_now().await;
        }
    };
    let task = task::Builder::new().long_running().spawn_on(task, rt.handle()).unwrap();
    rt.block_on(task).unwrap();
    let task = async { worker_index() };
    let named = task::Builder::new().name("long").long_running();
    assert_eq!(rt.block_on(named.spawn_on(task, rt.handle()).unwrap()).unwrap(), None);
    assert_eq!(rt.metrics().preemption_stall_count(), 0);
}

#[test]
fn without_preemption_a_worker_waits_for_its_task() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::disabled())
        .build()
        .unwrap();
    let guard = HogGuard::new();
    let hog = guard.hog();
    let hog = rt.spawn(async move { hog() });
    let waits = rt.spawn(async {});
    thread::sleep(Duration::from_millis(50));
    assert!(!waits.is_finished());
    drop(guard);
    rt.block_on(hog).unwrap();
    rt.block_on(waits).unwrap();
    assert_eq!(rt.metrics().preemption_scan_count(), 0);
}

#[test]
fn a_report_names_the_task_that_blocked() {
    let _watch = watchdog::start();
    let (rt, reports) = with_reports(
        Builder::new_multi_thread().worker_threads(1).preemption(Preemption::new()).enable_all(),
    );
    let (go, gone) = mpsc::channel::<()>();
    let blocks = async move { gone.recv().unwrap() };
    let named = task::Builder::new().name("deaf");
    let (line, task) = (Location::caller().line(), named.spawn_on(blocks, rt.handle()).unwrap());
    let stall = reports.recv().unwrap();
    assert_eq!((stall.task(), stall.name(), stall.worker()), (task.id(), Some("deaf"), Some(0)));
    assert_eq!(stall.spawned_at().file(), file!());
    assert!(stall.spawned_at().line().abs_diff(line) < 100);
    assert!(stall.duration() >= Duration::from_millis(10), "{:?}", stall.duration());
    assert!(stall.was_handed_off());
    if cfg!(target_os = "linux") {
        assert_eq!(stall.kind(), StallKind::Blocked);
    }
    let text = stall.to_string();
    assert!(text.contains("deaf") && text.contains("hand_off.rs"), "{text}");
    go.send(()).unwrap();
    rt.block_on(task).unwrap();
}

#[test]
fn computing_is_distinguished_from_blocking() {
    let _watch = watchdog::start();
    let (rt, reports) = with_reports(
        Builder::new_multi_thread()
            .worker_threads(1)
            .preemption(Preemption::disabled())
            .enable_all(),
    );
    let guard = HogGuard::new();
    let hog = guard.hog();
    let hog = rt.spawn(async move { hog() });
    let stall = reports.recv().unwrap();
    assert!(!stall.was_handed_off(), "preemption is off");
    if cfg!(target_os = "linux") {
        assert_eq!(stall.kind(), StallKind::Computing);
    }
    drop(guard);
    rt.block_on(hog).unwrap();
}

#[test]
fn a_task_of_a_current_thread_runtime_is_reported_and_never_moved() {
    let _watch = watchdog::start();
    let (rt, reports) =
        with_reports(Builder::new_current_thread().preemption(Preemption::new()).enable_all());
    rt.block_on(async {
        blitz_io::spawn(async move {
            let here = thread::current().id();
            let stall = reports.recv().unwrap();
            assert!(!stall.was_handed_off());
            assert!(task::should_yield(), "the mark is there as well");
            // The task gets a new slice if its thread yields in time.
            while task::should_yield() {
                task::checkpoint().await;
            }
            assert_eq!(thread::current().id(), here);
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_loop_with_checkpoints_yields_when_its_slice_is_over() {
    let _watch = watchdog::start();
    // The task keeps its core: the other task runs only because this one checks and yields.
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::disabled())
        .on_task_stall(|_| ())
        .build()
        .unwrap();
    let others = Arc::new(AtomicUsize::new(0));
    let looper = rt.spawn({
        let others = others.clone();
        async move {
            while others.load(Relaxed) == 0 {
                task::checkpoint().await;
            }
        }
    });
    let other = rt.spawn(async move {
        others.fetch_add(1, Relaxed);
    });
    rt.block_on(looper).unwrap();
    rt.block_on(other).unwrap();
}

#[test]
fn a_task_that_checks_in_time_keeps_its_core_and_is_not_reported() {
    let _watch = watchdog::start();
    let reports = Arc::new(AtomicUsize::new(0));
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::new().slice(Duration::from_millis(400)))
        .on_task_stall({
            let reports = reports.clone();
            move |_| {
                reports.fetch_add(1, Relaxed);
            }
        })
        .build()
        .unwrap();
    let looper = rt.spawn(async {
        for _ in 0..3 {
            while !task::should_yield() {
                std::hint::spin_loop();
            }
            task::checkpoint().await;
        }
    });
    rt.block_on(looper).unwrap();
    assert_eq!(rt.metrics().preemption_handoff_count(), 0);
    assert_eq!(reports.load(Relaxed), 0);
}

#[test]
fn a_long_running_task_with_checkpoints_can_be_aborted() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let (begun, has_begun) = oneshot::channel();
    let looper = {
        let _entered = rt.enter();
        let endless = async move {
            begun.send(()).unwrap();
            loop {
                std::hint::spin_loop();
                task::checkpoint().await;
            }
        };
        task::Builder::new().long_running().spawn(endless).unwrap()
    };
    rt.block_on(has_begun).unwrap();
    looper.abort();
    assert!(rt.block_on(looper).unwrap_err().is_cancelled());
}

/// The largest possible value is a way to say that there is no bound.
#[test]
fn a_bound_may_be_as_large_as_one_likes() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::new().max_detached(usize::MAX))
        .build()
        .unwrap();
    let long = task::Builder::new().long_running();
    let index = long.spawn_on(async { worker_index() }, rt.handle()).unwrap();
    assert_eq!(rt.block_on(index).unwrap(), None);
    assert_eq!(rt.block_on(rt.spawn(async { 7 })).unwrap(), 7);
}

#[test]
fn a_task_that_is_dropped_in_the_middle_of_something_else_leaves_the_core() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let guard = HogGuard::new();
    // The destructor of a task of the inner runtime hogs; it runs when that runtime is shut down
    // inside of a poll of the outer one.
    struct Hogs<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Hogs<F> {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|hog| hog());
        }
    }
    let inner = Builder::new_current_thread().build().unwrap();
    let hog = Hogs(Some(guard.hog()));
    inner.spawn(async move {
        let _hog = hog;
        std::future::pending::<()>().await;
    });
    let dropper = rt.spawn(async move { inner.shutdown_background() });
    // The destructor is a part of the poll, so that poll loses its core.
    rt.block_on(rt.spawn(async {})).unwrap();
    drop(guard);
    rt.block_on(dropper).unwrap();
}

#[test]
fn operations_of_the_runtime_yield_when_the_slice_is_over() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::disabled())
        .on_task_stall(|_| ())
        .build()
        .unwrap();
    let count = rt.spawn(async {
        let yields = blitz_io::runtime::Handle::current();
        let before = yields.metrics().budget_forced_yield_count();
        while !task::should_yield() {
            std::hint::spin_loop();
        }
        let semaphore = blitz_io::sync::Semaphore::new(1);
        drop(semaphore.acquire().await.unwrap());
        yields.metrics().budget_forced_yield_count() - before
    });
    assert!(rt.block_on(count).unwrap() >= 1);
}

/// If a `block_on` inside of the poll took the poll's mark for its own, the mark would never go
/// away, and the operations of the `block_on` would yield for ever.
#[test]
fn a_task_that_blocks_inside_of_an_overdue_poll_gets_on() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let waits = || {
        watchdog::until(task::should_yield);
        task::block_in_place(|| {
            let semaphore = blitz_io::sync::Semaphore::new(1);
            let handle = blitz_io::runtime::Handle::current();
            handle.block_on(async { drop(semaphore.acquire().await.unwrap()) });
            let inner = Builder::new_current_thread().build().unwrap();
            inner.block_on(async move {
                blitz_io::spawn(async move { drop(semaphore.acquire().await.unwrap()) }).await
            })
        })
        .unwrap();
        assert!(task::should_yield(), "its own mark is left");
    };
    let caught = async move {
        watchdog::until(|| worker_index().is_none());
        waits();
    };
    rt.block_on(rt.spawn(caught)).unwrap();
    let offloaded =
        task::Builder::new().long_running().spawn_on(async move { waits() }, rt.handle());
    rt.block_on(offloaded.unwrap()).unwrap();
}

#[test]
fn at_the_bound_tasks_wait_and_go_on_afterwards() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .preemption(Preemption::new().max_detached(2))
        .build()
        .unwrap();
    let guard = HogGuard::new();
    let hogs: Vec<_> = (0..4).map(|_| guard.hog()).map(|hog| rt.spawn(async { hog() })).collect();
    watchdog::until(|| rt.metrics().preemption_refused_count() > 0);
    assert!(rt.metrics().preemption_detached_threads() <= 2);
    let last = rt.spawn(async {});
    drop(guard);
    for task in hogs.into_iter().chain([last]) {
        rt.block_on(task).unwrap();
    }
    assert!(rt.metrics().preemption_detached_peak() <= 2);
}

#[test]
fn two_hundred_tasks_that_sleep_are_not_one_after_the_other() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, SLICE);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let (asleep, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let (threads, asleep, most) = (threads.clone(), asleep.clone(), most.clone());
            rt.spawn(async move {
                threads.lock().unwrap().insert(thread::current().id());
                most.fetch_max(asleep.fetch_add(1, Relaxed) + 1, Relaxed);
                thread::sleep(Duration::from_millis(500));
                asleep.fetch_sub(1, Relaxed);
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    // One after the other on two workers they would take fifty seconds. `bench/preempt` measures
    // how much less it is; here other processes may need the processors.
    assert!(most.load(Relaxed) > 10, "at once slept {most:?}");
    assert!(threads.lock().unwrap().len() <= 202);
    assert!(rt.metrics().preemption_detached_peak() <= 200);
}

#[test]
fn a_task_that_never_ends_does_not_keep_a_bounded_shutdown() {
    let _watch = watchdog::start();
    for caught in [false, true] {
        let rt = preempting_with_drivers(1, SLICE);
        let guard = HogGuard::new();
        let hog = guard.hog();
        let dropped = Arc::new(());
        let kept = dropped.clone();
        rt.spawn(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        let (began, begun) = mpsc::channel();
        rt.spawn(async move {
            began.send(()).unwrap();
            hog();
        });
        begun.recv().unwrap();
        if caught {
            watchdog::until(|| rt.metrics().preemption_detached_threads() == 1);
        }
        rt.shutdown_timeout(Duration::from_millis(50));
        drop(guard);
        // The thread that has the core drops its tasks.
        watchdog::until(|| Arc::strong_count(&dropped) == 1);
    }
}

#[test]
fn a_runtime_is_dropped_while_threads_have_no_worker() {
    let _watch = watchdog::start();
    for _ in 0..10 {
        let rt = preempting_with_drivers(2, Duration::from_millis(1));
        for n in 0..20 {
            rt.spawn(async move {
                thread::sleep(Duration::from_millis(n % 7));
                task::yield_now().await;
                thread::sleep(Duration::from_millis(n % 5));
            });
        }
        thread::sleep(Duration::from_millis(5));
        drop(rt);
    }
}

#[test]
fn blocking_in_place_and_being_stuck_agree() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(2, Duration::from_millis(1));
    let tasks: Vec<_> = (0..60)
        .map(|n: u64| {
            rt.spawn(async move {
                for round in 0..5 {
                    thread::sleep(Duration::from_micros(n * 100));
                    task::block_in_place(|| thread::sleep(Duration::from_micros(round * 300)));
                    thread::sleep(Duration::from_micros(n * 50));
                    task::yield_now().await;
                }
                n
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += rt.block_on(task).unwrap();
    }
    assert_eq!(sum, (0..60).sum());
}

#[test]
fn hooks_that_block_hold_up_no_other_task() {
    let _watch = watchdog::start();
    for hook in ["before", "after", "end"] {
        let guard = HogGuard::new();
        let over = guard.state();
        // Only the hook of the first task blocks.
        let first = AtomicBool::new(true);
        let slow = move || {
            if first.swap(false, Relaxed) {
                watchdog::until(|| over.is_over());
            }
        };
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).preemption(Preemption::new());
        match hook {
            "before" => builder.on_before_task_poll(move |_| slow()),
            "after" => builder.on_after_task_poll(move |_| slow()),
            _ => builder.on_task_terminate(move |_| slow()),
        };
        let rt = builder.build().unwrap();
        let stuck = rt.spawn(async {});
        for n in 0..10 {
            assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
        }
        assert!(!stuck.is_finished(), "{hook}");
        drop(guard);
        rt.block_on(stuck).unwrap();
    }
}

/// Creates a runtime with one worker, in whose start hook the first `hang` spare threads hang until
/// the guard is dropped; returns it with the number of spare threads that have started.
fn hanging(hang: usize, guard: &HogGuard) -> (Runtime, Arc<AtomicUsize>) {
    let (over, came) = (guard.state(), Arc::new(AtomicUsize::new(0)));
    let counted = came.clone();
    let hook = move || {
        if thread::current().name() == Some("blitz-spare") && counted.fetch_add(1, Relaxed) < hang {
            while !over.is_over() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    };
    let mut builder = Builder::new_multi_thread();
    // The function that names threads is not called for spare threads.
    builder.worker_threads(1).thread_name_fn(|| "worker".to_owned());
    builder.preemption(Preemption::new()).on_thread_start(hook);
    (builder.build().unwrap(), came)
}

#[test]
fn a_thread_that_hangs_in_its_hook_keeps_no_core() {
    let _watch = watchdog::start();
    let guard = HogGuard::new();
    let (rt, came) = hanging(2, &guard);
    let stuck = guard.sleeper();
    let stuck = rt.spawn(async { stuck() });
    for n in 0..10 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    assert!(!stuck.is_finished());
    assert!(came.load(Relaxed) > 2);
    drop(guard);
    rt.block_on(stuck).unwrap();
}

#[test]
fn a_thread_that_hangs_in_its_hook_keeps_no_task() {
    let _watch = watchdog::start();
    let guard = HogGuard::new();
    let (rt, _came) = hanging(2, &guard);
    let long = task::Builder::new().long_running().spawn_on(async { 7 }, rt.handle()).unwrap();
    assert_eq!(rt.block_on(long).unwrap(), 7);
    drop(guard);
}

#[test]
fn if_all_threads_hang_in_their_hook_few_are_started() {
    let _watch = watchdog::start();
    let guard = HogGuard::new();
    let (rt, came) = hanging(usize::MAX, &guard);
    let (go, gone) = mpsc::channel::<()>();
    let stuck = rt.spawn(async move { gone.recv().unwrap() });
    watchdog::until(|| came.load(Relaxed) == 4);
    // This sleep waits for no event: it is the period in which no thread may be started.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(came.load(Relaxed), 4);
    go.send(()).unwrap();
    rt.block_on(stuck).unwrap();
    // The worker's own thread has the core again.
    assert_eq!(rt.block_on(rt.spawn(async { worker_index() })).unwrap(), Some(0));
    drop(guard);
}

/// The monitor finds no worker in a poll, and sleeps, while the only worker blocks in place and no
/// other thread takes its core. Then that poll goes on, and must be watched and reported.
#[test]
fn a_poll_that_goes_on_after_it_has_blocked_in_place_is_watched() {
    let _watch = watchdog::start();
    let guard = HogGuard::new();
    let (sender, reports) = mpsc::channel();
    let over = guard.state();
    let first = Arc::new(AtomicBool::new(true));
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(move || {
            // All threads but the worker.
            while !first.swap(false, Relaxed) && !over.is_over() {
                thread::sleep(Duration::from_millis(1));
            }
        })
        .on_task_stall(move |stall| drop(sender.send(stall.clone())))
        .build()
        .unwrap();
    let metrics = rt.metrics();
    let task = rt.spawn(async move {
        task::block_in_place(|| {
            // Waits until the monitor has checked for the last time.
            let mut looks = metrics.preemption_scan_count();
            loop {
                thread::sleep(Duration::from_millis(100));
                let before = std::mem::replace(&mut looks, metrics.preemption_scan_count());
                if before == looks {
                    break;
                }
            }
        });
        reports.recv().unwrap()
    });
    let stall = rt.block_on(task).unwrap();
    assert_eq!(stall.worker(), Some(0));
    drop(guard);
}

/// The bound holds however often cores are taken.
#[test]
fn threads_that_hang_in_their_hook_are_bounded_in_all() {
    const MOST: usize = 64;
    let _watch = watchdog::start();
    let guard = HogGuard::new();
    let (rt, came) = hanging(usize::MAX, &guard);
    let metrics = rt.metrics();
    let stuck_until = |is_enough: &dyn Fn() -> bool| {
        let (go, gone) = mpsc::channel::<()>();
        let stuck = rt.spawn(async move { gone.recv().unwrap() });
        watchdog::until(is_enough);
        go.send(()).unwrap();
        rt.block_on(stuck).unwrap();
    };
    while came.load(Relaxed) < MOST {
        let before = came.load(Relaxed);
        stuck_until(&|| came.load(Relaxed) > before);
    }
    for _ in 0..3 {
        let refused = metrics.preemption_refused_count();
        stuck_until(&|| metrics.preemption_refused_count() > refused);
    }
    assert_eq!(came.load(Relaxed), MOST);
    drop(guard);
}

#[test]
fn a_panic_after_the_worker_is_gone_is_the_joiners() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(1, SLICE);
    let (go, gone) = mpsc::channel::<()>();
    let task = rt.spawn(async move {
        gone.recv().unwrap();
        panic!("on purpose");
    });
    watchdog::until(|| rt.metrics().preemption_detached_threads() == 1);
    go.send(()).unwrap();
    assert!(rt.block_on(task).unwrap_err().is_panic());
}

#[test]
fn a_future_that_blocks_when_it_is_dropped_holds_up_no_other_task() {
    let _watch = watchdog::start();
    struct Slow(Option<mpsc::Receiver<()>>);
    impl Drop for Slow {
        fn drop(&mut self) {
            self.0.take().unwrap().recv().unwrap();
        }
    }
    let rt = preempting_with_drivers(1, SLICE);
    let (go, gone) = mpsc::channel();
    let slow = Slow(Some(gone));
    let task = rt.spawn(async move {
        let _slow = slow;
        std::future::pending::<()>().await;
    });
    rt.block_on(rt.spawn(async {})).unwrap();
    task.abort();
    for n in 0..10 {
        assert_eq!(rt.block_on(rt.spawn(async move { n })).unwrap(), n);
    }
    go.send(()).unwrap();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn the_monitor_does_not_scan_an_idle_runtime() {
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(4, SLICE);
    rt.block_on(rt.spawn(async { thread::sleep(Duration::from_millis(30)) })).unwrap();
    let metrics = rt.metrics();
    watchdog::until(|| {
        let before = metrics.preemption_scan_count();
        // This sleep waits for no event: it is the period in which nothing may happen.
        thread::sleep(Duration::from_millis(200));
        metrics.preemption_scan_count() == before
    });
}

#[test]
fn a_slice_that_makes_no_sense_is_refused() {
    for slice in [Duration::ZERO, Duration::from_micros(99), Duration::from_secs(61)] {
        let preemption = Preemption::new().slice(slice);
        let error = Builder::new_multi_thread().preemption(preemption).build().unwrap_err();
        assert!(error.to_string().contains("slice"), "{error}");
    }
}

/// Polls of about a tenth of a millisecond, which is the slice, with wakes, spawns and timers, so
/// that cores are handed off everywhere; every task runs to its end, once.
#[test]
fn under_a_storm_of_handoffs_nothing_is_lost_or_done_twice() {
    const TASKS: usize = 400;
    let _watch = watchdog::start();
    let rt = preempting_with_drivers(3, Duration::from_micros(100));
    let (done, children) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| {
            let (done, children) = (done.clone(), children.clone());
            rt.spawn(async move {
                let (mut sends, mut receives) = (None, None);
                for round in 0..6 {
                    let began = Instant::now();
                    let long = Duration::from_micros(((n * 7 + round * 13) % 600) as u64);
                    let (sender, reports) = oneshot::channel();
                    (sends, receives) = (Some(sender), Some(reports));
                    while began.elapsed() < long {}
                    // Some tasks go on until they have lost their core, because on a busy machine
                    // the monitor comes too late for most of the others.
                    if (n + round) % 11 == 0 {
                        while worker_index().is_some() {}
                    }
                    let children = children.clone();
                    let child = blitz_io::spawn(async move {
                        children.fetch_add(1, Relaxed);
                        let began = Instant::now();
                        while began.elapsed() < long / 2 {}
                        if n % 3 == 0 {
                            time::sleep(Duration::from_micros(200)).await;
                        }
                        sends.take().unwrap().send(round).unwrap();
                    });
                    assert_eq!(receives.take().unwrap().await.unwrap(), round);
                    child.await.unwrap();
                    sends = None;
                }
                drop((sends, receives));
                done.fetch_add(1, Relaxed);
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    assert_eq!((done.load(Relaxed), children.load(Relaxed)), (TASKS, 6 * TASKS));
    let metrics = rt.metrics();
    assert!(metrics.preemption_handoff_count() > 20, "{}", metrics.preemption_handoff_count());
    assert!(metrics.preemption_offload_count() > 20, "{}", metrics.preemption_offload_count());
    watchdog::until(|| metrics.num_alive_tasks() == 0);
}
