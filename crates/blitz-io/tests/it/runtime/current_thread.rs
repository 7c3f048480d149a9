//! Tests the current-thread runtime: the order of tasks, and several threads inside it.

use std::sync::{
    Arc, Barrier, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
    mpsc,
};

use blitz_io::task;

use crate::support::{gate::Gate, manual_poll::poll_once, runtimes::one_thread, watchdog};

/// Spawns `count` tasks, inside a task or from outside; returns the first that ran out of order.
fn out_of_turn(count: u32, inside: bool) -> Option<u32> {
    let rt = one_thread();
    let order: Arc<Mutex<Vec<u32>>> = Arc::default();
    let seen = order.clone();
    let handle = rt.handle().clone();
    let spawn_all = move || {
        (0..count)
            .map(|n| {
                let order = order.clone();
                handle.spawn(async move { order.lock().unwrap().push(n) })
            })
            .collect::<Vec<_>>()
    };
    let tasks = if inside {
        rt.block_on(rt.spawn(async move { spawn_all() })).unwrap()
    } else {
        spawn_all()
    };
    rt.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), count as usize);
    seen.iter().zip(0..).find(|(n, turn)| *n != turn).map(|(n, _)| *n)
}

#[test]
fn tasks_run_in_the_order_in_which_they_were_spawned() {
    let _watch = watchdog::start();
    assert_eq!(out_of_turn(50, false), None);
    assert_eq!(out_of_turn(50, true), None);
    assert_eq!(out_of_turn(2_000, true), None);
}

/// Guards against a check of the injector that lets its first task overtake tasks that were taken
/// out of it before.
#[test]
fn many_tasks_run_in_the_order_in_which_they_were_spawned_from_outside() {
    let _watch = watchdog::start();
    assert_eq!(out_of_turn(2_000, false), None);
}

#[test]
fn tasks_run_in_the_order_in_which_they_were_woken() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let gates: Vec<_> = (0..8).map(|_| Gate::new()).collect();
    let wanted = [5, 2, 7, 0, 1, 6, 3, 4];
    let (seen, all) = (order.clone(), gates.clone());
    rt.block_on(rt.spawn(async move {
        let tasks: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(n, gate)| {
                let (order, opened) = (order.clone(), gate.opened());
                blitz_io::spawn(async move {
                    opened.await;
                    order.lock().unwrap().push(n);
                })
            })
            .collect();
        while all.iter().any(|gate| gate.waiting() == 0) {
            task::yield_now().await;
        }
        wanted.iter().for_each(|n| all[*n].open());
        for task in tasks {
            task.await.unwrap();
        }
    }))
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), wanted);
}

#[test]
fn without_block_on_nothing_runs() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let mut task = rt.spawn(async { std::thread::current().id() });
    assert_eq!(rt.handle().block_on(async { 1 }), 1, "a handle's block_on runs no tasks");
    assert!(poll_once(&mut task).is_pending());
    assert_eq!(rt.metrics().worker_poll_count(0), 0);
    assert_eq!(rt.block_on(task).unwrap(), std::thread::current().id());
}

#[test]
fn tasks_wait_between_two_calls_and_go_on_in_the_second() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::new();
    let opened = gate.opened();
    rt.spawn(async move {
        sender.send(1).unwrap();
        opened.await;
        sender.send(2).unwrap();
    });
    rt.block_on(rt.spawn(async {})).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    gate.open();
    assert!(receiver.try_recv().is_err(), "no thread runs it");
    rt.block_on(rt.spawn(async {})).unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn when_the_thread_that_runs_the_tasks_leaves_another_goes_on() {
    let _watch = watchdog::start();
    for _ in 0..50 {
        let rt = one_thread();
        let (first_leaves, go_on) = (Gate::new(), Gate::new());
        let opened = go_on.opened();
        let task = rt.spawn(async move {
            opened.await;
            task::yield_now().await;
            7
        });
        std::thread::scope(|scope| {
            let first = scope.spawn(|| rt.block_on(first_leaves.opened()));
            watchdog::until(|| first_leaves.waiting() == 1 && go_on.waiting() == 1);
            let second = scope.spawn(|| rt.block_on(task));
            first_leaves.open();
            first.join().unwrap();
            go_on.open();
            assert_eq!(second.join().unwrap().unwrap(), 7);
        });
    }
}

#[test]
fn when_the_thread_that_runs_the_tasks_panics_another_goes_on() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let (first_leaves, go_on) = (Gate::new(), Gate::new());
    let opened = go_on.opened();
    let task = rt.spawn(async move {
        opened.await;
        7
    });
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            rt.block_on(async {
                first_leaves.opened().await;
                panic!("the first leaves");
            })
        });
        watchdog::until(|| first_leaves.waiting() == 1 && go_on.waiting() == 1);
        let second = scope.spawn(|| rt.block_on(task));
        first_leaves.open();
        assert!(first.join().is_err());
        go_on.open();
        assert_eq!(second.join().unwrap().unwrap(), 7);
    });
    assert_eq!(rt.block_on(async { 3 }), 3);
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

#[test]
fn a_handle_waits_for_a_task_that_another_thread_runs() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let stop = Gate::new();
    std::thread::scope(|scope| {
        scope.spawn(|| rt.block_on(stop.opened()));
        let handle = rt.handle().clone();
        assert_eq!(handle.block_on(handle.spawn(async { 4 })).unwrap(), 4);
        stop.open();
    });
}

#[test]
fn a_spawn_from_another_thread_wakes_the_sleeping_block_on() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let stop = Gate::new();
    std::thread::scope(|scope| {
        scope.spawn(|| rt.block_on(stop.opened()));
        for _ in 0..100 {
            watchdog::until(|| rt.metrics().worker_park_unpark_count(0) % 2 == 1);
            let (sender, receiver) = mpsc::channel();
            rt.spawn(async move { sender.send(()).unwrap() });
            receiver.recv().unwrap();
        }
        stop.open();
    });
}

#[test]
fn a_root_that_yields_has_its_turn_as_often_as_a_task_that_yields() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    rt.spawn(async move {
        loop {
            counted.fetch_add(1, Relaxed);
            task::yield_now().await;
        }
    });
    rt.block_on(async {
        for _ in 0..1_000 {
            task::yield_now().await;
        }
    });
    let polls = polls.load(Relaxed);
    assert!((990..=1_010).contains(&polls), "1,000 yields of the root cost {polls} polls");
}

#[test]
fn a_root_that_yields_waits_for_all_that_was_queued_before_it() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let polls = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let polls = polls.clone();
        rt.spawn(async move {
            polls.fetch_add(1, Relaxed);
        });
    }
    rt.block_on(async {
        task::yield_now().await;
        assert_eq!(polls.load(Relaxed), 50);
    });
}

/// Tokio's order, on which clients with connection pools rely: all work that tasks start before the
/// root future is polled is complete by then, however long the chain of their wake-ups.
#[test]
fn a_woken_root_waits_for_tasks_that_were_woken_after_it() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let ended = Arc::new(AtomicUsize::new(0));
    let (wake_root, root_woken) = blitz_io::sync::oneshot::channel();
    let (first, mut woken) = blitz_io::sync::oneshot::channel::<()>();
    for _ in 0..10 {
        let (wake, next) = blitz_io::sync::oneshot::channel();
        let (before, ended) = (std::mem::replace(&mut woken, next), ended.clone());
        rt.spawn(async move {
            before.await.unwrap();
            ended.fetch_add(1, Relaxed);
            // The last task has no task to wake.
            let _ = wake.send(());
        });
    }
    rt.spawn(async move {
        task::yield_now().await;
        wake_root.send(()).unwrap();
        first.send(()).unwrap();
    });
    rt.block_on(async {
        root_woken.await.unwrap();
        assert_eq!(ended.load(Relaxed), 10);
    });
}
