//! Tests `block_in_place`: other tasks go on, and so does the caller, whichever thread it is on
//! then.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, Preemption, Runtime},
    task::{self, block_in_place},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{on_every_worker, one_thread, run_until, workers},
    watchdog,
};

#[test]
fn other_tasks_of_the_worker_go_on() {
    let _watch = watchdog::start();
    for round in 0..50 {
        let rt = workers(1);
        let value = rt.block_on(rt.spawn(async move {
            // One in the LIFO slot, and some in the ring.
            let others: Vec<_> = (0..5).map(|n| blitz_io::spawn(async move { n })).collect();
            let sum = block_in_place(|| {
                let (send, receive) = mpsc::channel();
                let last = blitz_io::spawn(async move { send.send(round).unwrap() });
                let got = receive.recv().unwrap();
                drop(last);
                let sum: i32 = others.into_iter().map(|other| other.blocking_join().unwrap()).sum();
                sum + got
            });
            // The task can still wait, wake and spawn.
            task::yield_now().await;
            sum + blitz_io::spawn(async { 1 }).await.unwrap()
        }));
        assert_eq!(value.unwrap(), 10 + round + 1);
        assert_eq!(rt.metrics().num_workers(), 1);
        assert_eq!(on_every_worker(&rt, || 1).len(), 1);
        // A joiner may run before the end of its task is counted.
        run_until(&rt, || Handle::current().metrics().num_alive_tasks() == 1);
    }
}

#[test]
fn a_short_one_keeps_its_worker_or_loses_it_and_both_work() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            rt.spawn(async {
                for _ in 0..300 {
                    block_in_place(|| ());
                    task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    assert_eq!(on_every_worker(&rt, || 1).len(), 2, "a worker was lost");
    drop(rt);
}

#[test]
fn many_at_once_block_for_each_other() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let meeting = Arc::new(std::sync::Barrier::new(10));
    for _ in 0..5 {
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let meeting = meeting.clone();
                rt.spawn(async move {
                    block_in_place(|| meeting.wait());
                    task::yield_now().await;
                })
            })
            .collect();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
    }
    assert_eq!(on_every_worker(&rt, || 1).len(), 2, "a worker was lost");
}

#[test]
fn the_cap_on_blocking_threads_does_not_stop_it() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
    let gate = Gate::new();
    let wait = gate.clone();
    let busy = rt.spawn_blocking(move || wait.block());
    let task = rt.spawn(async { block_in_place(|| blitz_io::spawn(async { 3 }).blocking_join()) });
    assert_eq!(rt.block_on(task).unwrap().unwrap(), 3);
    gate.open();
    rt.block_on(busy).unwrap();
}

/// Beyond the bound a core stays without a thread until one is free, and no task is forgotten.
#[test]
fn of_thousands_at_once_as_many_block_as_there_may_be_threads() {
    const TASKS: usize = 3_000;
    const WORKERS: usize = 2;
    const CAP: usize = 8;
    let _watch = watchdog::start_for(Duration::from_secs(120));
    for preemption in [Preemption::new(), Preemption::disabled()] {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKERS).max_blocking_threads(CAP).preemption(preemption);
        let rt = builder.build().unwrap();
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (now, peak) = (now.clone(), peak.clone());
                rt.spawn(async move {
                    block_in_place(|| {
                        peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                        thread::sleep(Duration::from_micros(200));
                        now.fetch_sub(1, SeqCst);
                    });
                })
            })
            .collect();
        for task in tasks {
            rt.block_on(task).unwrap();
        }
        // The bound is CAP + WORKERS. In addition to it: the workers that the runtime started with,
        // and a thread for each poll that a busy machine has stalled.
        let stalled = rt.metrics().preemption_handoff_count() as usize;
        let bound = CAP + 2 * WORKERS + stalled;
        assert!(peak.load(SeqCst) <= bound, "{} threads, at most {bound}", peak.load(SeqCst));
        assert_eq!(on_every_worker(&rt, || 1).len(), WORKERS, "a worker was lost");
    }
}

/// A thread that takes over the core of a stalled poll counts towards the bound, too: otherwise each
/// of these hogs would let one more task block, and in the end all of them would at once.
#[test]
fn hogs_in_between_do_not_let_more_tasks_block_in_place() {
    const PAIRS: usize = 12;
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..PAIRS)
        .flat_map(|_| {
            let hog = rt.spawn(async {
                let metrics = Handle::current().metrics();
                let before = metrics.preemption_handoff_count();
                let begun = std::time::Instant::now();
                // The time is long enough for a hand-off, where one is possible.
                watchdog::compute_until(|| {
                    metrics.preemption_handoff_count() > before
                        || begun.elapsed() > Duration::from_millis(50)
                });
            });
            let (now, peak) = (now.clone(), peak.clone());
            let blocks = rt.spawn(async move {
                block_in_place(|| {
                    peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    thread::sleep(Duration::from_millis(300));
                    now.fetch_sub(1, SeqCst);
                });
            });
            [hog, blocks]
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    // The bound of two, the worker's own thread, one for its core, and one for a poll that is
    // stalled at the time.
    assert!(peak.load(SeqCst) <= 5, "{} tasks blocked at once", peak.load(SeqCst));
}

#[test]
fn block_on_is_allowed_inside_and_forbidden_again_afterwards() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let output = rt.block_on(rt.spawn(async {
        let inside = block_in_place(|| {
            let here = Handle::current().block_on(async {
                task::yield_now().await;
                block_in_place(|| 1) + blitz_io::spawn(async { 2 }).await.unwrap()
            });
            let other =
                one_thread().block_on(async { blitz_io::spawn(async { 4 }).await.unwrap() });
            let third = workers(1).block_on(async { block_in_place(|| 8) });
            here + other + third
        });
        panic_of(|| Handle::current().block_on(async {})).says(&["Cannot start a runtime"]);
        panic_of(|| drop(one_thread())).says(&["Cannot drop a runtime"]);
        inside
    }));
    assert_eq!(output.unwrap(), 15);
}

#[test]
fn elsewhere_it_just_calls() {
    let _watch = watchdog::start();
    assert_eq!(block_in_place(|| 1), 1, "outside of any runtime");
    let rt = workers(1);
    let here = thread::current().id();
    rt.block_on(async {
        assert_eq!(block_in_place(|| thread::current().id()), here);
        // And nested.
        assert_eq!(block_in_place(|| block_in_place(|| thread::current().id())), here);
        panic_of(|| Handle::current().block_on(async {})).says(&["Cannot start a runtime"]);
    });
    let blocking = rt.spawn_blocking(|| {
        let there = thread::current().id();
        assert_eq!(block_in_place(|| thread::current().id()), there);
    });
    rt.block_on(blocking).unwrap();
    assert_eq!(rt.metrics().num_blocking_threads(), 1, "no thread was started for these");
}

#[test]
fn on_a_current_thread_runtime_it_panics_and_names_the_caller() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let (caught, line) = rt.block_on(async { (panic_of(|| block_in_place(|| ())), line!()) });
    caught
        .says(&["can call blocking only when running on the multi-threaded runtime"])
        .says(&["spawn_blocking"])
        .at(file!(), line);
    let error = rt.block_on(rt.spawn(async { block_in_place(|| ()) })).unwrap_err();
    assert!(error.is_panic());
}

#[test]
fn no_budget_applies_inside_and_the_old_one_afterwards() {
    let _watch = watchdog::start();
    let rt = workers(1);
    rt.block_on(rt.spawn(async {
        let spawn = || (0..200).map(|n| blitz_io::spawn(async move { n })).collect::<Vec<_>>();
        let (first, second) = (spawn(), spawn());
        block_in_place(|| {
            watchdog::until(|| first.iter().chain(&second).all(task::JoinHandle::is_finished));
            for mut handle in first {
                assert!(poll_once(&mut handle).is_ready(), "a budget was spent");
            }
        });
        let ready = second.into_iter().map(|mut handle| poll_once(&mut handle).is_ready());
        assert_eq!(ready.filter(|ready| *ready).count(), 128, "a poll has its budget");
    }))
    .unwrap();
}

#[test]
fn a_panic_inside_goes_on_outside_and_costs_no_worker() {
    let _watch = watchdog::start();
    let rt = workers(1);
    for _ in 0..20 {
        let task = rt.spawn(async {
            let caught = catch_unwind(AssertUnwindSafe(|| block_in_place(|| panic!("caught"))));
            assert!(caught.is_err());
            blitz_io::spawn(async {}).await.unwrap();
            block_in_place(|| panic!("boom"));
        });
        assert!(rt.block_on(task).unwrap_err().is_panic());
    }
    assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn a_worker_that_lost_its_core_serves_as_a_blocking_thread() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let was = rt
        .block_on(rt.spawn(async {
            block_in_place(|| {
                // Another thread runs this task, so the core is lost for certain.
                blitz_io::spawn(async {}).blocking_join().unwrap();
            });
            assert_eq!(blitz_io::runtime::worker_index(), None, "without a core, no worker");
            thread::current().id()
        }))
        .unwrap();
    watchdog::until(|| rt.metrics().num_idle_blocking_threads() == 1);
    let serves = rt.block_on(rt.spawn_blocking(|| thread::current().id())).unwrap();
    assert_eq!(serves, was);
    assert_eq!(rt.metrics().num_blocking_threads(), 1);
    drop(rt);
}

#[test]
fn a_hook_that_blocks_in_place_keeps_its_core() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_park(|| block_in_place(|| ()))
        .on_thread_unpark(|| block_in_place(|| ()))
        .build()
        .unwrap();
    for _ in 0..50 {
        rt.block_on(rt.spawn(async {})).unwrap();
    }
}

fn blocked(rt: &Runtime, tally: &Tally) -> (Arc<Gate>, task::JoinHandle<()>) {
    let (inside, go_on, token) = (Gate::new(), Gate::new(), tally.token());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let task = rt.spawn(async move {
        block_in_place(|| {
            entered.open();
            wait.block();
        });
        token.keep();
        std::future::pending::<()>().await;
    });
    inside.block();
    (go_on, task)
}

#[test]
fn a_runtime_ends_whichever_thread_holds_its_cores() {
    let _watch = watchdog::start();
    for round in 0..60 {
        let rt = workers(1 + round % 3);
        let tally = Tally::new();
        let (go_on, task) = blocked(&rt, &tally);
        let token = tally.token();
        rt.spawn(async move {
            std::future::pending::<()>().await;
            token.keep();
        });
        if round % 2 == 0 {
            // With the core taken for certain.
            rt.block_on(rt.spawn(async {})).unwrap();
        }
        let dropper = thread::spawn(move || drop(rt));
        go_on.open();
        dropper.join().unwrap();
        tally.assert_all_dropped(2);
        assert!(task.is_finished());
    }
}

#[test]
fn a_shutdown_that_does_not_wait_leaves_the_blocked_task_to_itself() {
    let _watch = watchdog::start();
    for _ in 0..20 {
        let rt = workers(2);
        let tally = Tally::new();
        let (go_on, task) = blocked(&rt, &tally);
        rt.shutdown_timeout(Duration::from_millis(1));
        assert!(!task.is_finished());
        go_on.open();
        watchdog::until(|| task.is_finished());
        assert!(task.blocking_join().unwrap_err().is_cancelled());
        tally.assert_all_dropped(1);
    }
}

#[test]
fn a_runtime_may_be_dropped_inside_of_it() {
    let _watch = watchdog::start();
    let outer = workers(1);
    let task = outer.spawn(async {
        let inner = workers(2);
        let spawned = inner.spawn(async { 5 });
        block_in_place(|| {
            let output = spawned.blocking_join().unwrap();
            drop(inner);
            output
        })
    });
    assert_eq!(outer.block_on(task).unwrap(), 5);
}

#[test]
fn a_task_may_drop_its_own_runtime_inside_of_it() {
    let _watch = watchdog::start();
    for round in 0..20 {
        let rt = workers(1 + round % 2);
        let (handle, tally) = (rt.handle().clone(), Tally::new());
        let token = tally.token();
        let task = handle.spawn(async move {
            // On the worker's first thread, and on a thread that replaces it.
            if round % 4 < 2 {
                block_in_place(|| blitz_io::spawn(async {}).blocking_join().unwrap());
                task::yield_now().await;
            }
            block_in_place(|| drop(rt));
            token.keep();
        });
        // The end of the runtime does not wait for the poll in which it is ended.
        task.blocking_join().unwrap();
        tally.assert_all_dropped(1);
    }
}

/// Threads that hang in their hook count towards the bound, and a core that was left at the bound
/// is run by the first thread that arrives, though another core was meant for it.
#[test]
fn threads_that_hang_in_their_hook_are_bounded_and_come_for_any_core() {
    let _watch = watchdog::start();
    let (gate, started) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let (hook, counted) = (gate.clone(), started.clone());
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(2)
        // Without preemption no other threads are started.
        .preemption(Preemption::disabled())
        .on_thread_start(move || {
            // The first thread is the worker.
            if counted.fetch_add(1, SeqCst) > 0 {
                hook.block();
            }
        })
        .build()
        .unwrap();
    let requested = Gate::new();
    let has_requested = requested.clone();
    let task = rt.spawn(async move {
        // Each call requests a thread for the core, and takes the core back before it arrives.
        for _ in 0..200 {
            block_in_place(|| ());
        }
        // The bound is reached, so no thread is requested, and the core waits.
        block_in_place(|| {
            has_requested.open();
            blitz_io::spawn(async { 7 }).blocking_join().unwrap()
        })
    });
    // The worker, and all threads of the bound, which hang: two for blocking, one for the core.
    watchdog::until(|| started.load(SeqCst) == 4);
    requested.block();
    gate.open();
    assert_eq!(task.blocking_join().unwrap(), 7);
    // The thread that runs the core may leave room for one more.
    let started = started.load(SeqCst);
    assert!((4..=5).contains(&started), "{started} threads for two that may block");
}
