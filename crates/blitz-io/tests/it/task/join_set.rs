//! Tests `JoinSet`: each member that is spawned is joined once, in the order in which they end.

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use blitz_io::{
    runtime::{Builder, Runtime},
    task::{self, JoinSet},
};

use crate::support::{
    caught_panic,
    drop_tally::Tally,
    gate::Gate,
    runtimes::{all_kinds, one_thread, run_until, workers},
    wakers::WakeCount,
    watchdog,
};

fn poll<T: 'static>(set: &mut JoinSet<T>) -> Poll<Option<Result<T, task::JoinError>>> {
    set.poll_join_next(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn every_output_comes_out_once_on_every_kind() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        rt.block_on(async {
            let mut set: JoinSet<usize> = (0..500).map(|n| async move { n }).collect();
            set.extend((500..1000).map(|n| async move { n }));
            assert_eq!(set.len(), 1000);
            let mut seen = vec![0; 1000];
            while let Some(output) = set.join_next().await {
                seen[output.unwrap()] += 1;
            }
            assert!(set.is_empty() && seen.iter().all(|&times| times == 1));
        });
    }
}

#[test]
fn outputs_come_in_the_order_of_ending() {
    let _watch = watchdog::start();
    let rt = one_thread();
    rt.block_on(async {
        let mut set = JoinSet::new();
        let gates: Vec<_> = (0..4).map(|_| Gate::new()).collect();
        for (n, gate) in gates.iter().enumerate() {
            let opened = gate.opened();
            set.spawn(async move {
                opened.await;
                n
            });
        }
        let mut order = Vec::new();
        for n in [2, 0, 3, 1] {
            gates[n].open();
            order.push(set.join_next().await.unwrap().unwrap());
        }
        assert_eq!(order, [2, 0, 3, 1]);
    });
}

#[test]
fn an_empty_set_has_nothing_to_wait_for() {
    let mut set = JoinSet::<u8>::default();
    assert!(matches!(poll(&mut set), Poll::Ready(None)));
    assert!(set.try_join_next().is_none() && set.try_join_next_with_id().is_none());
    set.abort_all();
    set.detach_all();
    assert_eq!(format!("{set:?}"), "JoinSet { len: 0 }");
}

#[test]
fn dropping_a_set_aborts_its_tasks() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let mut set = JoinSet::new();
        for n in 0..20 {
            let token = tally.token();
            let work = async move {
                token.keep();
                if n % 2 == 0 {
                    pending::<()>().await;
                }
                token
            };
            set.spawn_on(work, rt.handle());
        }
        drop(set);
        let dropped = tally.clone();
        run_until(&rt, move || dropped.dropped() == 20);
        tally.assert_all_dropped(20);
    }
}

#[test]
fn aborting_all_spares_the_outputs_that_are_there() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let mut set = JoinSet::new();
    let done = set.spawn_on(async { 1 }, rt.handle());
    watchdog::until(|| done.is_finished());
    set.spawn_on(pending(), rt.handle());
    set.abort_all();
    assert_eq!(set.len(), 2, "aborted tasks stay until they are joined");
    rt.block_on(async {
        assert_eq!(set.join_next().await.unwrap().unwrap(), 1);
        assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        assert!(set.join_next().await.is_none());
    });
}

#[test]
fn shutdown_returns_when_every_future_has_been_dropped() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let mut set = JoinSet::new();
        for _ in 0..20 {
            let token = tally.token();
            let work = async move {
                pending::<()>().await;
                token.keep();
            };
            set.spawn_on(work, rt.handle());
        }
        rt.block_on(set.shutdown());
        assert!(set.is_empty());
        tally.assert_all_dropped(20);
    }
}

#[test]
fn tasks_that_are_detached_go_on_and_the_set_goes_on_too() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let (gate, ended) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let mut set = JoinSet::new();
    for _ in 0..10 {
        let (opened, ended) = (gate.opened(), ended.clone());
        let work = async move {
            opened.await;
            ended.fetch_add(1, Relaxed);
        };
        set.spawn_on(work, rt.handle());
    }
    set.detach_all();
    assert!(set.is_empty() && matches!(poll(&mut set), Poll::Ready(None)));
    set.spawn_on(async {}, rt.handle());
    assert!(rt.block_on(set.join_next()).unwrap().is_ok());
    drop(set);
    gate.open();
    watchdog::until(|| ended.load(Relaxed) == 10);
}

#[test]
fn a_waiter_learns_that_all_tasks_were_detached() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (mut set, count) = (JoinSet::new(), WakeCount::new());
    set.spawn_on(pending::<()>(), rt.handle());
    let waker = count.waker();
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    set.detach_all();
    assert_eq!(count.count(), 1);
}

#[test]
fn a_panic_is_one_tasks_error_and_the_others_go_on() {
    let _watch = watchdog::start();
    let rt = workers(2);
    rt.block_on(async {
        let mut set = JoinSet::new();
        set.spawn(async { panic!("one of them") });
        set.spawn(async { 5 });
        let (mut sum, mut panics) = (0, 0);
        while let Some(joined) = set.join_next().await {
            match joined {
                Ok(output) => sum += output,
                Err(error) => {
                    assert_eq!(caught_panic::message(&*error.into_panic()), "one of them");
                    panics += 1;
                }
            }
        }
        assert_eq!((sum, panics), (5, 1));
    });
}

#[test]
fn joining_all_passes_a_panic_on_and_aborts_the_rest() {
    let _watch = watchdog::start();
    let (rt, tally) = (workers(2), Tally::new());
    let mut set = JoinSet::new();
    let token = tally.token();
    set.spawn_on(
        async move {
            pending::<()>().await;
            token.keep();
        },
        rt.handle(),
    );
    set.spawn_on(async { panic!("one of them") }, rt.handle());
    caught_panic::panic_of(|| rt.block_on(set.join_all()));
    let dropped = tally.clone();
    run_until(&rt, move || dropped.dropped() == 1);
}

#[test]
fn joining_all_panics_for_a_task_that_was_cancelled() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let mut set = JoinSet::new();
    set.spawn_on(pending::<()>(), rt.handle()).abort();
    caught_panic::panic_of(|| rt.block_on(set.join_all())).says(&["task", "was cancelled"]);
}

#[test]
fn an_id_comes_with_its_output() {
    let _watch = watchdog::start();
    let rt = workers(2);
    rt.block_on(async {
        let mut set = JoinSet::new();
        let ids: Vec<_> = (0..10).map(|n| set.spawn(async move { n }).id()).collect();
        let failed = set.spawn(async { panic!("no output") });
        while let Some(joined) = set.join_next_with_id().await {
            match joined {
                Ok((id, output)) => assert_eq!(ids[output], id),
                Err(error) => assert_eq!(error.id(), failed.id()),
            }
        }
        assert!(failed.is_finished());
    });
}

#[test]
fn an_abort_handle_ends_one_task_of_the_set() {
    let _watch = watchdog::start();
    let rt = workers(2);
    rt.block_on(async {
        let (mut set, gate) = (JoinSet::new(), Gate::new());
        let aborts: Vec<_> = (0..5).map(|_| set.spawn(gate.opened())).collect();
        aborts[3].abort();
        let error = set.join_next().await.unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.id() == aborts[3].id());
        gate.open();
        set.join_all().await;
    });
}

#[test]
fn a_try_join_does_not_replace_the_registered_waker() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (mut set, gate, count) = (JoinSet::new(), Gate::new(), WakeCount::new());
    let task = set.spawn_on(gate.opened(), rt.handle());
    let waker = count.waker();
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    assert!(set.try_join_next().is_none());
    gate.open();
    watchdog::until(|| count.count() == 1);
    assert!(task.is_finished());
    assert!(set.try_join_next_with_id().unwrap().is_ok());
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (mut set, gate) = (JoinSet::new(), Gate::new());
    set.spawn_on(gate.opened(), rt.handle());
    let counts = [WakeCount::new(), WakeCount::new()];
    for count in &counts {
        let waker = count.waker();
        assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&counts[0]), 1, "a waker that was replaced is kept");
    gate.open();
    watchdog::until(|| counts[1].count() == 1);
    assert_eq!(counts[0].count(), 0);
}

/// A waker whose drop runs the tasks that are left.
struct RunsOnDrop(Runtime);

impl Wake for RunsOnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for RunsOnDrop {
    fn drop(&mut self) {
        self.0.block_on(task::yield_now());
    }
}

#[test]
fn a_waker_that_is_replaced_may_run_the_task_that_is_waited_for() {
    let _watch = watchdog::start();
    let (rt, mut set) = (one_thread(), JoinSet::new());
    set.spawn_on(async { 42 }, rt.handle());
    let waker = Waker::from(Arc::new(RunsOnDrop(rt)));
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    let count = WakeCount::new();
    let waker = count.waker();
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(count.count(), 1, "it ended during the poll, and woke the new waker");
    assert_eq!(set.try_join_next().unwrap().unwrap(), 42);
}

#[test]
fn a_waker_may_be_dropped_with_its_set_and_run_its_tasks() {
    let _watch = watchdog::start();
    let (rt, mut set, tally) = (one_thread(), JoinSet::new(), Tally::new());
    let token = tally.token();
    set.spawn_on(async move { token }, rt.handle());
    let waker = Waker::from(Arc::new(RunsOnDrop(rt)));
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    drop(set);
    tally.assert_all_dropped(1);
}

#[test]
fn a_wait_that_is_dropped_takes_no_task_with_it() {
    let _watch = watchdog::start();
    let rt = one_thread();
    rt.block_on(async {
        let (mut set, gate) = (JoinSet::new(), Gate::new());
        set.spawn(gate.opened());
        {
            let mut wait = pin!(set.join_next());
            let polled = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
        }
        gate.open();
        assert_eq!(set.len(), 1);
        assert!(set.join_next().await.unwrap().is_ok());
    });
}

#[test]
fn joining_takes_from_the_budget_and_trying_does_not() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let counts = rt.block_on(rt.spawn(async {
        let mut set: JoinSet<()> = (0..600).map(|_| async {}).collect();
        let last = set.spawn(async {});
        while !last.is_finished() {
            task::yield_now().await;
        }
        let mut joined = 0;
        poll_fn(|cx| {
            while set.poll_join_next(cx).is_ready() {
                joined += 1;
            }
            Poll::Ready(())
        })
        .await;
        let tried = std::iter::from_fn(|| set.try_join_next()).count();
        (joined, tried)
    }));
    let (joined, tried) = counts.unwrap();
    assert!(joined <= 128, "{joined} operations in one poll");
    assert_eq!(joined + tried, 601);
}

#[test]
fn a_set_outlives_the_runtime_of_its_tasks() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (mut set, handle) = (JoinSet::new(), rt.handle().clone());
        for _ in 0..10 {
            set.spawn_on(pending::<()>(), &handle);
        }
        drop(rt);
        set.spawn_on(pending::<()>(), &handle);
        for _ in 0..11 {
            let Some(joined) = set.try_join_next() else { panic!("a task has not ended") };
            assert!(joined.unwrap_err().is_cancelled());
        }
        set.spawn_on(pending::<()>(), &handle);
        set.abort_all();
    }
}

#[test]
fn a_task_of_a_set_has_its_name_and_its_place() {
    let _watch = watchdog::start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let rt = Builder::new_current_thread()
        .on_task_spawn(move |meta| {
            let name = meta.name().map(str::to_owned);
            assert!(meta.spawned_at().file().ends_with("join_set.rs"));
            log.lock().unwrap().push((name, meta.spawned_at().line()));
        })
        .build()
        .unwrap();
    let mut set = JoinSet::new();
    let first = line!() + 1;
    set.build_task().name("with").spawn_on(async { 1 }, rt.handle()).unwrap();
    set.spawn_on(async { 2 }, rt.handle());
    set.build_task().spawn_on(async { 3 }, rt.handle()).unwrap();
    assert_eq!(rt.block_on(set.join_all()), [1, 2, 3]);
    let expected = [(Some("with".to_owned()), first), (None, first + 1), (None, first + 2)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn spawning_without_a_runtime_panics_and_leaves_the_set_as_it_was() {
    let mut set = JoinSet::new();
    let line = line!() + 1;
    let panic = caught_panic::panic_of(|| drop(set.spawn(async {})));
    panic.says(&["no runtime on this thread"]).at(file!(), line);
    assert!(set.is_empty());
    let rt = one_thread();
    set.spawn_on(async {}, rt.handle());
    assert_eq!(rt.block_on(set.join_all()).len(), 1);
}

#[test]
fn a_large_future_is_spawned_as_any_other() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let mut set = JoinSet::new();
    let large = [7u8; 40_000];
    let work = async move {
        task::yield_now().await;
        large.iter().map(|&byte| usize::from(byte)).sum::<usize>()
    };
    set.spawn_on(work, rt.handle());
    assert_eq!(rt.block_on(set.join_next()).unwrap().unwrap(), 280_000);
}

/// Panics when it is dropped, unless the thread is panicking already.
struct Sore;

impl Drop for Sore {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropping an output");
        }
    }
}

#[test]
fn a_panic_in_the_drop_of_an_output_does_not_leave_the_set() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (mut set, tally) = (JoinSet::new(), Tally::new());
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let token = tally.token();
            set.spawn_on(async move { (Sore, token) }, rt.handle())
        })
        .collect();
    watchdog::until(|| tasks.iter().all(|task| task.is_finished()));
    drop(set);
    tally.assert_all_dropped(3);
}

#[test]
fn a_task_may_drop_the_set_that_it_is_in() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let slot: Arc<Mutex<Option<JoinSet<()>>>> = Arc::default();
        let (tally, gate, inside) = (Tally::new(), Gate::new(), slot.clone());
        let (token, opened) = (tally.token(), gate.opened());
        let mut set = JoinSet::new();
        let task = set.spawn_on(
            async move {
                opened.await;
                drop(inside.lock().unwrap().take());
                pending::<()>().await;
                token.keep();
            },
            rt.handle(),
        );
        *slot.lock().unwrap() = Some(set);
        gate.open();
        run_until(&rt, move || task.is_finished());
        tally.assert_all_dropped(1);
    }
}

/// Spawns, joins, aborts, detaches and drops; every future and output must be dropped once.
fn exactly_once(rounds: u64, members: u64) {
    let rt = workers(4);
    let (futures, outputs) = (Tally::new(), Tally::new());
    let driver = |seed: u64| {
        let (futures, outputs) = (futures.clone(), outputs.clone());
        async move {
            let mut made = 0u64;
            for round in 0..rounds {
                let mut set = JoinSet::new();
                for n in 0..members {
                    let (token, output) = (futures.token(), outputs.token());
                    set.spawn(async move {
                        for _ in 0..n % 3 {
                            task::yield_now().await;
                        }
                        token.keep();
                        output
                    });
                    made += 1;
                }
                match (round ^ seed) % 5 {
                    0 => drop(set),
                    1 => set.detach_all(),
                    2 => set.shutdown().await,
                    3 => {
                        for _ in 0..members / 2 {
                            set.join_next().await.unwrap().unwrap().keep();
                        }
                    }
                    _ => assert_eq!(set.join_all().await.len() as u64, members),
                }
            }
            made
        }
    };
    let drivers: Vec<_> = (0..4).map(|seed| rt.spawn(driver(seed))).collect();
    let made: u64 = drivers.into_iter().map(|driver| rt.block_on(driver).unwrap()).sum();
    let (futures_left, outputs_left) = (futures.clone(), outputs.clone());
    let made = made as usize;
    run_until(&rt, move || (futures_left.dropped(), outputs_left.dropped()) == (made, made));
    drop(rt);
    futures.assert_all_dropped(made);
    outputs.assert_all_dropped(made);
}

#[test]
fn sets_lose_and_double_nothing() {
    let _watch = watchdog::start();
    exactly_once(50, 20);
}

#[test]
#[ignore = "long: cargo xtask stress"]
fn sets_stress_exactly_once() {
    let _watch = watchdog::start_for(std::time::Duration::from_secs(600));
    exactly_once(20_000, 40);
}
