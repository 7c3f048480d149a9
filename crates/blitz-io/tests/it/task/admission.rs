//! Tests spawns that report pressure, and spawns that are bounded.

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime},
    task::{self, Pressure, Rejected, Rejection},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{on_every_worker, run_until},
    watchdog,
};

fn bounded(builder: &mut Builder, tasks: usize) -> Runtime {
    builder.max_bounded_tasks(tasks).build().expect("a runtime")
}

/// Creates one runtime of each kind, with room for this many bounded tasks.
fn all_kinds(tasks: usize) -> Vec<Runtime> {
    let mut kinds = vec![bounded(&mut Builder::new_current_thread(), tasks)];
    for workers in [1, 2, 4] {
        kinds.push(bounded(Builder::new_multi_thread().worker_threads(workers), tasks));
    }
    kinds
}

/// Holds `token` and never completes.
async fn hold(token: Token) {
    pending::<()>().await;
    token.keep();
}

/// Returns the number of free places, by taking all of them.
fn free_places(rt: &Runtime) -> usize {
    let taken: Vec<_> = std::iter::from_fn(|| rt.try_spawn_bounded(pending::<()>()).ok()).collect();
    for task in &taken {
        task.abort();
    }
    let count = taken.len();
    for task in taken {
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
    }
    count
}

#[test]
fn the_report_is_exact_while_no_task_runs() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().backpressure_threshold(3).build().unwrap();
    let tally = Tally::new();
    let mut reports = Vec::new();
    for _ in 0..8 {
        let token = tally.token();
        match rt.spawn_reporting(async move { token.keep() }) {
            Ok((_detached, pressure)) => reports.push(Ok(pressure)),
            Err(rejected) => {
                reports.push(Err(rejected.rejection()));
                assert!(rejected.to_string().contains("later"), "{rejected}");
            }
        }
    }
    let (low, high) = (Ok(Pressure::Low), Ok(Pressure::High));
    let over = Err(Rejection::Overloaded);
    assert_eq!(reports, [low, low, low, high, high, high, over, over]);
    assert_eq!(tally.dropped(), 2, "what was rejected was dropped here");
    assert_eq!(rt.metrics().spawned_tasks_count(), 6, "rejected is not spawned");
    run_until(&rt, {
        let tally = tally.clone();
        move || tally.dropped() == 8
    });
    let (_detached, pressure) = rt.spawn_reporting(async {}).unwrap();
    assert_eq!(pressure, Pressure::Low, "the queue is empty again");
}

#[test]
fn the_report_is_exact_inside_a_current_thread_runtime() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().backpressure_threshold(2).build().unwrap();
    rt.block_on(async {
        let reports: Vec<_> =
            (0..5).map(|_| task::spawn_reporting(async {}).map(|spawned| spawned.1).ok()).collect();
        let (low, high) = (Some(Pressure::Low), Some(Pressure::High));
        assert_eq!(reports, [low, low, high, high, None]);
    });
}

#[test]
fn the_threshold_counts_for_each_worker_and_what_waits_behind_busy_ones() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::disabled())
        .backpressure_threshold(2)
        .build()
        .unwrap();
    let (inside, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
    for _ in 0..2 {
        let (inside, gate) = (inside.clone(), gate.clone());
        rt.spawn(async move {
            inside.fetch_add(1, Relaxed);
            gate.block();
        });
    }
    watchdog::until(|| inside.load(Relaxed) == 2);
    let spawned: Vec<_> = (0..10).map(|_| rt.spawn_reporting(async {})).collect();
    let reports: Vec<_> =
        spawned.iter().map(|spawned| spawned.as_ref().map(|it| it.1).ok()).collect();
    gate.open();
    let (low, high) = (Some(Pressure::Low), Some(Pressure::High));
    assert_eq!(reports, [[low; 4].as_slice(), &[high; 4], &[None; 2]].concat());
    for (handle, _) in spawned.into_iter().flatten() {
        rt.block_on(handle).unwrap();
    }
}

#[test]
fn without_a_threshold_the_pressure_is_low() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().build().unwrap();
    for _ in 0..10_000 {
        assert_eq!(rt.spawn_reporting(async {}).unwrap().1, Pressure::Low);
    }
}

#[test]
fn a_runtime_that_is_gone_rejects_and_gives_the_future_back() {
    let _watch = watchdog::start();
    for rt in all_kinds(1) {
        let handle = rt.handle().clone();
        drop(rt);
        let tally = Tally::new();
        let rejected: Vec<Rejected<_>> = vec![
            handle.spawn_reporting(hold(tally.token())).unwrap_err(),
            handle.try_spawn_bounded(hold(tally.token())).unwrap_err(),
            handle.block_on(handle.spawn_bounded(hold(tally.token()))).unwrap_err(),
        ];
        for rejected in rejected {
            assert_eq!(rejected.rejection(), Rejection::ShuttingDown);
            let before = tally.dropped();
            let future = rejected.into_inner();
            assert_eq!(tally.dropped(), before, "it was given back whole");
            drop(future);
        }
        tally.assert_all_dropped(3);
    }
}

#[test]
fn never_more_bounded_tasks_live_than_allowed() {
    let _watch = watchdog::start();
    for rt in all_kinds(3) {
        let (alive, most, done) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Tally::new());
        rt.block_on(async {
            let spawners: Vec<_> = (0..4)
                .map(|_| {
                    let (alive, most, done) = (alive.clone(), most.clone(), done.clone());
                    task::spawn(async move {
                        for _ in 0..100 {
                            let (alive, most, token) = (alive.clone(), most.clone(), done.token());
                            let work = async move {
                                most.fetch_max(alive.fetch_add(1, Relaxed) + 1, Relaxed);
                                task::yield_now().await;
                                alive.fetch_sub(1, Relaxed);
                                token.keep();
                            };
                            drop(task::spawn_bounded(work).await.unwrap());
                        }
                    })
                })
                .collect();
            for spawner in spawners {
                spawner.await.unwrap();
            }
        });
        let most = most.load(Relaxed);
        assert!((1..=3).contains(&most), "{most} lived at the same time");
        run_until(&rt, {
            let done = done.clone();
            move || done.dropped() == 400
        });
        watchdog::until(|| {
            run_until(&rt, || true);
            free_places(&rt) == 3
        });
    }
}

#[test]
fn every_end_of_a_task_gives_its_place_back() {
    let _watch = watchdog::start();
    for rt in all_kinds(2) {
        let done = rt.try_spawn_bounded(async { 7 }).unwrap();
        assert_eq!(rt.block_on(done).unwrap(), 7);
        assert_eq!(free_places(&rt), 2, "after it completed");

        let panicked = rt.try_spawn_bounded(async { panic!("on purpose") }).unwrap();
        assert!(rt.block_on(panicked).unwrap_err().is_panic());
        assert_eq!(free_places(&rt), 2, "after it panicked");

        let aborted = rt.try_spawn_bounded(pending::<()>()).unwrap();
        assert!(rt.try_spawn_bounded(async {}).is_ok());
        aborted.abort();
        assert!(rt.block_on(aborted).unwrap_err().is_cancelled());
        watchdog::until(|| free_places(&rt) == 2);

        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }
        let bomb = Bomb;
        let exploded = rt
            .try_spawn_bounded(async move {
                let _bomb = bomb;
                pending::<()>().await
            })
            .unwrap();
        exploded.abort();
        assert!(rt.block_on(exploded).unwrap_err().is_panic());
        assert_eq!(free_places(&rt), 2, "after its drop panicked");
    }
}

#[test]
fn a_place_is_free_only_after_the_future_was_dropped() {
    let _watch = watchdog::start();
    let rt = bounded(&mut Builder::new_current_thread(), 1);
    struct Last(Arc<AtomicUsize>, blitz_io::runtime::Handle);
    impl Drop for Last {
        fn drop(&mut self) {
            let full = self.1.try_spawn_bounded(async {}).is_err();
            self.0.fetch_add(if full { 1 } else { 100 }, Relaxed);
        }
    }
    let seen = Arc::<AtomicUsize>::default();
    let last = Last(seen.clone(), rt.handle().clone());
    let task = rt.try_spawn_bounded(async move { drop(last) }).unwrap();
    rt.block_on(task).unwrap();
    assert_eq!(seen.load(Relaxed), 1, "dropped by its own code");
    let last = Last(seen.clone(), rt.handle().clone());
    let task = rt
        .try_spawn_bounded(async move {
            let _last = last;
            pending::<()>().await
        })
        .unwrap();
    task.abort();
    assert!(rt.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(seen.load(Relaxed), 2, "dropped by an abort");
}

#[test]
fn waiting_spawns_are_admitted_in_order_and_a_try_does_not_overtake() {
    let _watch = watchdog::start();
    let rt = bounded(&mut Builder::new_current_thread(), 1);
    let gate = Gate::new();
    let first = rt.try_spawn_bounded(gate.opened()).unwrap();
    let mut second = pin!(rt.spawn_bounded(async { 2 }));
    let mut third = pin!(rt.spawn_bounded(async { 3 }));
    assert!(poll_once(&mut second).is_pending());
    assert!(poll_once(&mut third).is_pending());
    gate.open();
    rt.block_on(first).unwrap();
    assert_eq!(
        rt.try_spawn_bounded(async {}).unwrap_err().rejection(),
        Rejection::Full,
        "the place is the second one's"
    );
    assert!(poll_once(&mut third).is_pending());
    let second = rt.block_on(second).unwrap();
    assert_eq!(rt.block_on(second).unwrap(), 2);
    let third = rt.block_on(third).unwrap();
    assert_eq!(rt.block_on(third).unwrap(), 3);
}

#[test]
fn a_waiting_spawn_that_is_dropped_passes_its_place_on() {
    let _watch = watchdog::start();
    let rt = bounded(&mut Builder::new_current_thread(), 1);
    let (gate, tally) = (Gate::new(), Tally::new());
    let first = rt.try_spawn_bounded(gate.opened()).unwrap();
    let mut dropped_in_line = Box::pin(rt.spawn_bounded(hold(tally.token())));
    let mut dropped_when_served = Box::pin(rt.spawn_bounded(hold(tally.token())));
    let mut last = Box::pin(rt.spawn_bounded(async { 5 }));
    assert!(poll_once(&mut dropped_in_line).is_pending());
    assert!(poll_once(&mut dropped_when_served).is_pending());
    assert!(poll_once(&mut last).is_pending());
    drop(dropped_in_line);
    gate.open();
    rt.block_on(first).unwrap();
    assert!(poll_once(&mut last).is_pending(), "it is not its turn");
    drop(dropped_when_served);
    tally.assert_all_dropped(2);
    let last = rt.block_on(last).unwrap();
    assert_eq!(rt.block_on(last).unwrap(), 5);
    assert_eq!(free_places(&rt), 1);
}

#[test]
fn a_spawn_that_was_never_polled_waits_for_nothing() {
    let _watch = watchdog::start();
    let rt = bounded(&mut Builder::new_current_thread(), 1);
    let tally = Tally::new();
    drop(rt.spawn_bounded(hold(tally.token())));
    tally.assert_all_dropped(1);
    assert_eq!((free_places(&rt), rt.metrics().num_alive_tasks()), (1, 0));
}

#[test]
fn shutdown_fails_waiting_spawns_and_drops_live_tasks() {
    let _watch = watchdog::start();
    for rt in all_kinds(1) {
        let tally = Tally::new();
        let alive = rt.try_spawn_bounded(hold(tally.token())).unwrap();
        let outside = Builder::new_current_thread().build().unwrap();
        let mut waiting = Box::pin(rt.spawn_bounded(hold(tally.token())));
        assert!(poll_once(&mut waiting).is_pending());
        // A thread that sleeps in the wait is woken too, not only a future that is polled again.
        let handle = rt.handle().clone();
        let (asleep, token) = (Gate::new(), tally.token());
        let sleeper = std::thread::spawn({
            let asleep = asleep.clone();
            move || {
                let mut waiting = Box::pin(handle.spawn_bounded(hold(token)));
                handle.block_on(poll_fn(|cx| {
                    let polled = waiting.as_mut().poll(cx);
                    asleep.open();
                    polled.map(|spawned| spawned.map(drop).map_err(|it| it.rejection()))
                }))
            }
        });
        asleep.block();
        drop(rt);
        let rejected = outside.block_on(waiting).unwrap_err();
        assert_eq!(rejected.rejection(), Rejection::ShuttingDown);
        assert_eq!(sleeper.join().unwrap(), Err(Rejection::ShuttingDown));
        assert!(outside.block_on(alive).unwrap_err().is_cancelled());
        drop(rejected);
        tally.assert_all_dropped(3);
    }
}

#[test]
fn plain_spawns_are_outside_of_the_bound() {
    let _watch = watchdog::start();
    let rt = bounded(Builder::new_multi_thread().worker_threads(2), 1);
    let _held = rt.try_spawn_bounded(pending::<()>()).unwrap();
    assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
    assert_eq!(on_every_worker(&rt, || 1).len(), 2);
    assert!(rt.try_spawn_bounded(async {}).is_err());
}

#[test]
fn without_a_limit_no_spawn_waits() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().build().unwrap();
    let tasks: Vec<_> =
        (0..10_000).map(|n| rt.try_spawn_bounded(async move { n }).expect("no limit")).collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(rt.block_on(task).unwrap(), n);
    }
}

#[test]
fn a_large_future_is_bounded_as_a_small_one() {
    let _watch = watchdog::start();
    let rt = bounded(&mut Builder::new_current_thread(), 1);
    let large = [7u8; 64 * 1024];
    let task = rt.try_spawn_bounded(async move { large.iter().map(|&it| u64::from(it)).sum() });
    let sum: u64 = rt.block_on(task.unwrap()).unwrap();
    assert_eq!((sum, free_places(&rt)), (7 * 64 * 1024, 1));
}

#[test]
fn numbers_that_make_no_sense_are_refused_where_they_are_given() {
    let line = line!() + 2;
    panic_of(|| {
        Builder::new_current_thread().max_bounded_tasks(0);
    })
    .says(&["max_bounded_tasks", "greater than 0"])
    .at(file!(), line);
    panic_of(|| {
        Builder::new_current_thread().max_bounded_tasks(usize::MAX);
    })
    .says(&["unset"]);
    panic_of(|| {
        Builder::new_current_thread().backpressure_threshold(0);
    })
    .says(&["backpressure_threshold", "greater than 0"]);
    panic_of(|| drop(task::spawn_bounded(async {}))).says(&["no runtime on this thread"]);
    panic_of(|| task::try_spawn_bounded(async {})).says(&["no runtime on this thread"]);
    panic_of(|| task::spawn_reporting(async {})).says(&["no runtime on this thread"]);
    let rt = Builder::new_current_thread().backpressure_threshold(usize::MAX).build().unwrap();
    assert!(rt.spawn_reporting(async {}).is_ok(), "a limit that nothing reaches");
}
