//! Tests facts that did not hold when they were first tested.

use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::{
    runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor, RuntimeMetrics, worker_index},
    task::{self, yield_now},
};

#[cfg(target_os = "linux")]
use crate::support::caught_panic::panic_of;
use crate::support::{
    auto_traits::has,
    gate::Gate,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

/// Guards against a build that waits for threads that it never started.
#[test]
fn a_name_function_that_panics_is_reported_and_leaves_nothing_behind() {
    let _watch = watchdog::start();
    let started = Arc::new(AtomicUsize::new(0));
    let stopped = Arc::new(AtomicUsize::new(0));
    let (starts, stops, named) = (started.clone(), stopped.clone(), AtomicUsize::new(0));
    let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Builder::new_multi_thread()
            .worker_threads(3)
            .thread_name_fn(move || {
                assert_eq!(named.fetch_add(1, Relaxed), 0, "no second name");
                "only".to_owned()
            })
            .on_thread_start(move || {
                starts.fetch_add(1, Relaxed);
            })
            .on_thread_stop(move || {
                stops.fetch_add(1, Relaxed);
            })
            .build()
            .map(drop)
    }));
    assert!(!matches!(built, Ok(Ok(()))), "two threads without a name");
    watchdog::until(|| started.load(Relaxed) == stopped.load(Relaxed));
}

/// Guards against a worker that goes to sleep although a task came into its queue meanwhile: the
/// hook's own thread put it there, so no other worker is notified.
#[test]
fn a_wake_inside_the_park_hook_is_not_lost() {
    let _watch = watchdog::start();
    for builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
        let gate = Gate::new();
        let (mut builder, opener) = (builder, gate.clone());
        let rt = builder.worker_threads(1).on_thread_park(move || opener.open()).build();
        let rt = rt.unwrap();
        rt.block_on(rt.spawn(gate.opened())).unwrap();
    }
}

/// Guards against a worker that goes to sleep although its park hook has spawned a task.
#[test]
fn a_spawn_inside_the_park_hook_runs() {
    let _watch = watchdog::start();
    for builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
        let (gate, first) = (Gate::new(), AtomicBool::new(true));
        let (mut builder, opener) = (builder, gate.clone());
        let rt = builder
            .worker_threads(1)
            .on_thread_park(move || {
                if first.swap(false, Relaxed) {
                    let opener = opener.clone();
                    blitz_io::spawn(async move { opener.open() });
                }
            })
            .build()
            .unwrap();
        rt.block_on(gate.opened());
    }
}

/// Guards against a `block_on` that polls its own future again and again and nothing else.
#[test]
fn a_yielding_block_on_lets_tasks_run() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        for inside in [false, true] {
            let handle = rt.handle().clone();
            let outside = (!inside).then(|| rt.spawn(async {}));
            let polls = rt.block_on(async move {
                let task = outside.unwrap_or_else(|| handle.spawn(async {}));
                let mut polls = 0_u64;
                // The bound makes the test fail on one thread instead of hanging; other threads get
                // processor time only by the system's scheduling.
                while !task.is_finished() && (polls < 100_000 || worker_index().is_none()) {
                    polls += 1;
                    yield_now().await;
                }
                polls
            });
            let threaded = rt.handle().runtime_flavor() == RuntimeFlavor::MultiThread;
            assert!(polls < 100_000 || threaded, "{polls} polls");
        }
    }
}

/// Guards against a build that waits for threads that it never started.
#[test]
fn a_name_that_no_thread_can_have_ends_the_build() {
    let _watch = watchdog::start();
    let build =
        || Builder::new_multi_thread().worker_threads(2).thread_name("a\0b").build().map(drop);
    let built = std::panic::catch_unwind(build);
    assert!(!matches!(built, Ok(Ok(()))), "no thread has such a name");
}

/// Guards against a thread that leaves `block_on` and consumes the wake-up by which another thread
/// would have taken over the tasks.
#[test]
fn many_threads_inside_block_on_all_finish() {
    let _watch = watchdog::start();
    for _ in 0..20 {
        let rt = one_thread();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    rt.block_on(async {
                        for n in 0..50 {
                            let task = blitz_io::spawn(async move {
                                task::yield_now().await;
                                n
                            });
                            assert_eq!(task.await.unwrap(), n);
                        }
                    });
                });
            }
        });
    }
}

/// Guards against a check of the injector that lets its first task overtake tasks that were taken
/// out of it before.
#[test]
fn many_tasks_run_in_the_order_in_which_they_were_spawned_from_outside() {
    let _watch = watchdog::start();
    assert_eq!(crate::runtime::current_thread::out_of_turn(2_000, false), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_refused_thread_of_a_lazy_start_panics_at_the_line_of_the_spawn() {
    let _watch = watchdog::start();
    let rt = crate::runtime::thread_limit::lazy_without_threads();
    panic_of(|| rt.spawn(async {})).at(file!(), line!());
    let _entered = rt.enter();
    panic_of(|| blitz_io::spawn(async {})).at(file!(), line!());
}

#[test]
fn runtimes_and_handles_are_unwind_safe_as_tokios_are() {
    assert!(has!(Runtime: UnwindSafe) && has!(Runtime: RefUnwindSafe), "Runtime");
    assert!(has!(Handle: UnwindSafe) && has!(Handle: RefUnwindSafe), "Handle");
    let metrics = has!(RuntimeMetrics: UnwindSafe) && has!(RuntimeMetrics: RefUnwindSafe);
    assert!(metrics, "RuntimeMetrics");
}

#[test]
fn a_guard_can_be_shared_with_other_threads_as_tokios_can() {
    assert!(has!(EnterGuard<'static>: Sync));
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

/// Guards against a count that is lost when a task ends during the shutdown.
#[test]
fn no_task_is_alive_after_the_end() {
    let _watch = watchdog::start();
    for round in 0..300 {
        let rt = workers(8);
        let metrics = rt.metrics();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..200 {
                        let task = rt.spawn(async move {
                            blitz_io::spawn(async move {
                                for _ in 0..n % 4 {
                                    yield_now().await;
                                }
                            })
                        });
                        if n % 8 == 0 {
                            task.abort();
                        }
                        if n % 3 == 0 {
                            drop(rt.block_on(task));
                        }
                    }
                });
            }
        });
        drop(rt);
        assert_eq!(metrics.num_alive_tasks(), 0, "round {round}");
    }
}
