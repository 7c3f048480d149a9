//! Tests the end of a runtime: every task is dropped once, no thread is left, and nothing hangs.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, mpsc},
    task::Waker,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Handle, Runtime},
    task::{self, JoinHandle},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    gate::Gate,
    manual_poll::poll_once,
    on_drop::OnDrop,
    runtimes::{all_kinds, one_thread, run_until, workers, workers_and_threads},
    watchdog,
};

async fn hold(token: Token) {
    pending::<()>().await;
    token.keep();
}

#[test]
fn a_drop_drops_every_task_once_and_cancels_it() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, gate) = (Tally::new(), Gate::new());
        // Some tasks wait, some have never been polled, some yield for ever.
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for _ in 0..100 {
            let (token, opened) = (tally.token(), gate.opened());
            tasks.push(rt.spawn(async move {
                opened.await;
                token.keep();
            }));
        }
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 100);
        for _ in 0..100 {
            let token = tally.token();
            tasks.push(rt.spawn(async move {
                loop {
                    token.keep();
                    task::yield_now().await;
                }
            }));
            tasks.push(rt.spawn(hold(tally.token())));
        }
        drop(rt);
        tally.assert_all_dropped(300);
        for mut task in tasks {
            assert!(task.is_finished());
            let std::task::Poll::Ready(Err(error)) = poll_once(&mut task) else {
                panic!("a task survived its runtime");
            };
            assert!(error.is_cancelled());
        }
        gate.open(); // wakers of tasks and a runtime that are gone
    }
}

#[test]
fn a_drop_waits_for_the_poll_that_a_worker_is_in() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (inside, go_on, tally) = (Gate::new(), Gate::new(), Tally::new());
    let (entered, wait, token) = (inside.clone(), go_on.clone(), tally.token());
    rt.spawn(async move {
        entered.open();
        wait.block();
        hold(token).await;
    });
    inside.block();
    let dropper = std::thread::spawn(move || drop(rt));
    assert_eq!(tally.dropped(), 0);
    go_on.open();
    dropper.join().unwrap();
    tally.assert_all_dropped(1);
}

#[test]
fn no_thread_is_left_when_a_drop_returns() {
    let _watch = watchdog::start();
    let alive = Arc::new(());
    struct Life(#[expect(dead_code, reason = "held by a thread")] Arc<()>);
    thread_local!(static LIFE: std::cell::RefCell<Option<Life>> = const { std::cell::RefCell::new(None) });
    for _ in 0..20 {
        let life = alive.clone();
        let rt = blitz_io::runtime::Builder::new_multi_thread()
            .worker_threads(3)
            .on_thread_start(move || {
                LIFE.with(|cell| *cell.borrow_mut() = Some(Life(life.clone())));
            })
            .build()
            .unwrap();
        drop(rt);
        assert_eq!(Arc::strong_count(&alive), 1, "a thread, or the hook, is still there");
    }
}

#[test]
fn tasks_that_spawn_in_their_drop_end_all_the_same() {
    let _watch = watchdog::start();
    fn chain(depth: u32, tally: Tally) -> impl Future<Output = ()> + Send {
        let token = tally.token();
        let spawns = OnDrop::new(move || {
            if depth > 0 {
                // During the drop, the runtime is still the current one.
                drop(blitz_io::spawn(boxed(depth - 1, tally.clone())));
            }
        });
        async move {
            let _spawns = spawns;
            hold(token).await;
        }
    }
    fn boxed(depth: u32, tally: Tally) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(chain(depth, tally))
    }
    for rt in all_kinds() {
        let tally = Tally::new();
        for _ in 0..10 {
            rt.spawn(boxed(5, tally.clone()));
        }
        rt.block_on(rt.spawn(async {})).unwrap();
        drop(rt);
        assert_eq!(tally.made(), 60, "each of ten spawned five more, one after the other");
        assert_eq!(tally.dropped(), 60);
    }
}

#[test]
fn tasks_that_wake_and_abort_others_in_their_drop_end_all_the_same() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, gate) = (Tally::new(), Gate::new());
        let aborts: Arc<Mutex<Vec<task::AbortHandle>>> = Arc::default();
        for _ in 0..30 {
            let (token, opened) = (tally.token(), gate.opened());
            let (knocks, others) = (gate.clone(), aborts.clone());
            let task = rt.spawn(async move {
                let _in_drop = OnDrop::new(move || {
                    knocks.knock();
                    others.lock().unwrap().iter().for_each(task::AbortHandle::abort);
                });
                opened.await;
                token.keep();
            });
            aborts.lock().unwrap().push(task.abort_handle());
        }
        let waits = gate.clone();
        run_until(&rt, move || waits.waiting() == 30);
        drop(rt);
        tally.assert_all_dropped(30);
    }
}

#[test]
fn tasks_that_hold_each_others_handles_and_wakers_end_all_the_same() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        // A cycle: each task holds and awaits the handle of the next.
        let slots: Arc<Mutex<Vec<Option<JoinHandle<()>>>>> = Arc::default();
        let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
        for index in 0..20 {
            let (slots_in, wakers, token) = (slots.clone(), wakers.clone(), tally.token());
            let task = rt.spawn(async move {
                let waker = std::future::poll_fn(|cx| std::task::Poll::Ready(cx.waker().clone()));
                let own = waker.await;
                wakers.lock().unwrap().push(own);
                let next = loop {
                    let next =
                        slots_in.lock().unwrap().get_mut((index + 1) % 20).and_then(Option::take);
                    match next {
                        Some(next) => break next,
                        None => task::yield_now().await,
                    }
                };
                let _own_wakers = wakers;
                drop(next.await);
                token.keep();
            });
            slots.lock().unwrap().push(Some(task));
        }
        let (taken, seen) = (slots.clone(), wakers.clone());
        run_until(&rt, move || {
            seen.lock().unwrap().len() == 20 && taken.lock().unwrap().iter().all(Option::is_none)
        });
        drop(rt);
        tally.assert_all_dropped(20);
        assert_eq!(Arc::strong_count(&wakers), 1, "a future is still there");
        for waker in wakers.lock().unwrap().drain(..) {
            waker.wake_by_ref();
            waker.clone().wake();
        }
    }
}

#[test]
fn a_future_that_owns_a_handle_of_its_runtime_keeps_nothing_alive() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let (handle, token) = (rt.handle().clone(), tally.token());
        rt.spawn(async move {
            hold(token).await;
            drop(handle);
        });
        drop(rt);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn futures_whose_drop_panics_do_not_keep_others_from_theirs() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let mut bad = Vec::new();
        for _ in 0..10 {
            let (token, panics) =
                (tally.token(), OnDrop::new(|| panic!("in the drop of a future")));
            bad.push(rt.spawn(async move {
                let _panics = panics;
                hold(token).await;
            }));
            rt.spawn(hold(tally.token()));
        }
        rt.block_on(rt.spawn(async {})).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(rt))).is_ok(), "the drop panicked");
        tally.assert_all_dropped(20);
        for mut task in bad {
            let std::task::Poll::Ready(Err(error)) = poll_once(&mut task) else {
                panic!("a task survived its runtime");
            };
            assert!(error.is_panic(), "the panic is carried: {error}");
        }
    }
}

#[test]
fn shutdown_timeout_returns_in_time_and_the_stuck_worker_ends_later() {
    let _watch = watchdog::start();
    let (rt, threads) = workers_and_threads(2);
    let (inside, go_on, tally) = (Gate::new(), Gate::new(), Tally::new());
    let (entered, wait, token) = (inside.clone(), go_on.clone(), tally.token());
    let task = rt.spawn(async move {
        entered.open();
        wait.block();
        hold(token).await;
    });
    inside.block();
    let begun = Instant::now();
    rt.shutdown_timeout(Duration::from_millis(50));
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(50), "it did not wait: {took:?}");
    assert!(took < Duration::from_secs(10), "it waited for the worker: {took:?}");
    assert!(!task.is_finished());
    go_on.open();
    watchdog::until(|| task.is_finished());
    tally.assert_all_dropped(1);
    assert!(threads.contains(&tally.dropped_on()[0]));
}

#[test]
fn shutdown_timeout_does_not_wait_longer_than_it_must() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        rt.spawn(hold(tally.token()));
        let begun = Instant::now();
        rt.shutdown_timeout(Duration::from_secs(3600));
        assert!(begun.elapsed() < Duration::from_secs(20));
        tally.assert_all_dropped(1);
    }
    workers(1).shutdown_timeout(Duration::MAX);
}

#[test]
fn shutdown_background_drops_every_task_too() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let tasks: Vec<_> = (0..50).map(|_| rt.spawn(hold(tally.token()))).collect();
        rt.shutdown_background();
        watchdog::until(|| tally.dropped() == 50 && tasks.iter().all(JoinHandle::is_finished));
        tally.assert_all_dropped(50);
    }
}

#[test]
fn a_runtime_dropped_in_an_asynchronous_context_panics_and_says_what_to_do() {
    let _watch = watchdog::start();
    for outer in all_kinds() {
        for in_task in [false, true] {
            let (inner, tally) = (workers(1), Tally::new());
            inner.spawn(hold(tally.token()));
            let drops = async move {
                panic_of(|| drop(inner)).says(&["Cannot drop a runtime", "shutdown_background"]);
            };
            if in_task {
                outer.block_on(outer.spawn(drops)).unwrap();
            } else {
                outer.block_on(drops);
            }
            watchdog::until(|| tally.dropped() == 1); // it ends even so
        }
    }
}

#[test]
fn a_runtime_dropped_by_a_panic_in_an_asynchronous_context_does_not_abort() {
    let _watch = watchdog::start();
    let outer = workers(1);
    let inner = workers(1);
    let task = outer.spawn(async move {
        let _inner = inner;
        panic!("the first");
    });
    let error: task::JoinError = outer.block_on(task).unwrap_err();
    assert_eq!(crate::support::caught_panic::message(&*error.into_panic()), "the first");
}

#[test]
fn shutdown_background_is_allowed_in_an_asynchronous_context() {
    let _watch = watchdog::start();
    for outer in all_kinds() {
        let (one, two, tally) = (workers(1), one_thread(), Tally::new());
        one.spawn(hold(tally.token()));
        two.spawn(hold(tally.token()));
        outer.block_on(async move { one.shutdown_background() });
        outer.block_on(outer.spawn(async move { two.shutdown_background() })).unwrap();
        watchdog::until(|| tally.dropped() == 2);
    }
}

#[test]
fn a_task_may_shut_down_the_runtime_it_runs_on() {
    let _watch = watchdog::start();
    for count in [1, 2] {
        let (rt, tally) = (workers(count), Tally::new());
        let (sender, receiver) = mpsc::channel::<Runtime>();
        let token = tally.token();
        let task = rt.spawn(async move {
            receiver.recv().unwrap().shutdown_background();
            task::yield_now().await;
            hold(token).await;
        });
        for _ in 0..10 {
            rt.spawn(hold(tally.token()));
        }
        sender.send(rt).unwrap();
        watchdog::until(|| task.is_finished() && tally.dropped() == 11);
    }
}

#[test]
fn a_task_that_owns_its_own_runtime_ends_with_a_panic_and_not_with_a_hang() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (sender, receiver) = mpsc::channel::<Runtime>();
    let task = rt.spawn(async move { drop(receiver.recv().unwrap()) });
    sender.send(rt).unwrap();
    watchdog::until(|| task.is_finished());
    let mut task = task;
    let std::task::Poll::Ready(Err(error)) = poll_once(&mut task) else {
        panic!("a runtime cannot wait for the thread that drops it");
    };
    assert!(error.is_panic());
}

#[test]
fn a_runtime_dropped_while_others_are_inside_block_on_lets_them_finish() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (handle, gate) = (rt.handle().clone(), Gate::new());
    let waits = gate.clone();
    let inside = std::thread::spawn(move || {
        handle.block_on(async move {
            waits.opened().await;
            let error = Handle::current().spawn(async {}).await.unwrap_err();
            assert!(error.is_cancelled());
            5
        })
    });
    watchdog::until(|| gate.waiting() == 1);
    drop(rt);
    gate.open();
    assert_eq!(inside.join().unwrap(), 5);
}

#[test]
fn drops_of_tasks_find_their_runtime() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (sender, receiver) = mpsc::channel();
        let id = rt.handle().id();
        let (begin, begun) = blitz_io::sync::oneshot::channel();
        rt.spawn(async move {
            let _queries = OnDrop::new(move || {
                sender.send(Handle::try_current().map(|handle| handle.id()).ok()).unwrap();
            });
            begin.send(()).unwrap();
            pending::<()>().await;
        });
        // The end of another task does not prove that this one has begun: they may run on different
        // workers.
        rt.block_on(begun).unwrap();
        drop(rt);
        assert_eq!(receiver.recv().unwrap(), Some(id));
    }
}
