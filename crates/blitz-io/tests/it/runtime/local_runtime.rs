//! Tests `LocalRuntime`, which belongs to its thread.

use std::{
    cell::{Cell, RefCell},
    future::pending,
    panic::{RefUnwindSafe, UnwindSafe},
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, LocalOptions, LocalRuntime, RuntimeFlavor, UnhandledPanic},
    task::{self, AbortHandle, JoinHandle, LocalSet},
};

use crate::support::{
    auto_traits::has,
    caught_panic::panic_of,
    drop_tally::Tally,
    gate::Gate,
    local_values::{Stays, assert_all_dropped_here, parks},
    manual_poll::poll_once,
    on_drop::OnDrop,
    runtimes::{one_thread, workers},
    watchdog,
};

fn local() -> LocalRuntime {
    LocalRuntime::new().expect("a runtime")
}

/// The wakers of tasks that have left a clone there.
type Left = Arc<Mutex<Vec<Waker>>>;

#[test]
fn a_local_task_may_hold_what_is_not_send() {
    let _watch = watchdog::start();
    let (rt, count) = (local(), Rc::new(Cell::new(0)));
    rt.block_on(async {
        let handles: Vec<_> = (0..200)
            .map(|n| {
                let count = count.clone();
                task::spawn_local(async move {
                    task::yield_now().await;
                    count.set(count.get() + 1);
                    Rc::new(n)
                })
            })
            .collect();
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(*handle.await.unwrap(), n);
        }
    });
    assert_eq!((count.get(), Rc::strong_count(&count)), (200, 1));
}

#[test]
fn a_task_may_be_spawned_before_the_runtime_runs() {
    let _watch = watchdog::start();
    let (rt, value) = (local(), Rc::new(5));
    let by_method = rt.spawn_local({
        let value = value.clone();
        async move { *value }
    });
    let guard = rt.enter();
    let by_guard = task::spawn_local(async move { *value });
    drop(guard);
    assert_eq!(rt.metrics().num_alive_tasks(), 2);
    let sum = rt.block_on(async { by_method.await.unwrap() + by_guard.await.unwrap() });
    assert_eq!((sum, rt.metrics().num_alive_tasks()), (10, 0));
}

#[test]
fn tasks_of_both_kinds_run_in_the_order_of_their_spawn() {
    let _watch = watchdog::start();
    let (rt, order) = (local(), Arc::new(Mutex::new(Vec::new())));
    rt.block_on(async {
        let mut handles = Vec::new();
        for n in 0..10 {
            let order = order.clone();
            let future = async move { order.lock().unwrap().push(n) };
            let local = n % 2 == 0;
            handles.push(if local { task::spawn_local(future) } else { blitz_io::spawn(future) });
        }
        for handle in handles {
            handle.await.unwrap();
        }
    });
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn others_may_spawn_what_is_send() {
    let _watch = watchdog::start();
    let (rt, here) = (local(), thread::current().id());
    let handle = rt.handle().clone();
    assert_eq!(handle.runtime_flavor(), RuntimeFlavor::CurrentThread);
    let (sender, receiver) = mpsc::channel();
    let spawner = thread::spawn(move || {
        sender.send(handle.spawn(async { thread::current().id() })).unwrap();
        let _guard = handle.enter();
        sender.send(blitz_io::spawn(async { thread::current().id() })).unwrap();
    });
    for _ in 0..2 {
        assert_eq!(rt.block_on(receiver.recv().unwrap()).unwrap(), here);
    }
    spawner.join().unwrap();
}

#[test]
fn a_local_task_cannot_be_spawned_from_another_thread() {
    let _watch = watchdog::start();
    let rt = local();
    let handle = rt.handle().clone();
    let said = "Local tasks can only be spawned on a LocalRuntime from the thread the runtime was \
                created on";
    thread::spawn(move || {
        let _guard = handle.enter();
        let line = line!() + 1;
        panic_of(|| task::spawn_local(async {})).says(&[said]).at(file!(), line);
        // Nor through a set, because the runtime takes precedence.
        let set = LocalSet::new();
        let _inside = set.enter();
        panic_of(|| task::spawn_local(async {})).says(&[said]);
    })
    .join()
    .unwrap();
    // Also after the runtime has been dropped.
    let handle = rt.handle().clone();
    drop(rt);
    thread::spawn(move || {
        let _guard = handle.enter();
        panic_of(|| task::spawn_local(async {})).says(&[said]);
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_beside_the_runtime_has_no_local_context() {
    let _watch = watchdog::start();
    let (rt, set) = (local(), LocalSet::new());
    rt.block_on(set.run_until(async {
        thread::spawn(|| {
            panic_of(|| task::spawn_local(async {})).says(&[
                "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`",
            ]);
        })
        .join()
        .unwrap();
    }));
}

#[test]
fn inside_of_a_local_runtime_a_set_does_not_take_what_is_spawned() {
    let _watch = watchdog::start();
    let (rt, set) = (local(), LocalSet::new());
    let handle = rt.block_on(set.run_until(async { task::spawn_local(async { 6 }) }));
    drop(set);
    assert_eq!(rt.block_on(handle).unwrap(), 6, "it was the runtime's");
}

#[test]
fn local_tasks_run_here_whichever_thread_wakes_them() {
    let _watch = watchdog::start();
    let (rt, here) = (local(), thread::current().id());
    let gates: Vec<_> = (0..50).map(|_| Gate::new()).collect();
    let handles: Vec<_> = gates
        .iter()
        .map(|gate| {
            let (gate, stays) = (gate.clone(), Rc::new(()));
            rt.spawn_local(async move {
                gate.opened().await;
                drop(stays);
                thread::current().id()
            })
        })
        .collect();
    let opener = thread::spawn(move || gates.iter().for_each(|gate| gate.open()));
    for handle in handles {
        assert_eq!(rt.block_on(handle).unwrap(), here);
    }
    opener.join().unwrap();
}

#[test]
fn block_on_of_its_handle_elsewhere_only_waits() {
    let _watch = watchdog::start();
    let (rt, here) = (local(), thread::current().id());
    let stays = Rc::new(());
    let task = rt.spawn_local(async move {
        task::yield_now().await;
        drop(stays);
        thread::current().id()
    });
    let (waits, handle) = (Gate::new(), rt.handle().clone());
    let waiter = thread::spawn({
        let waits = waits.clone();
        move || {
            handle.block_on(async move {
                waits.open();
                task.await.unwrap()
            })
        }
    });
    waits.block();
    // The other thread does not queue for the core, so no thread runs the task until this one
    // does.
    watchdog::until(|| {
        rt.block_on(task::yield_now());
        waiter.is_finished()
    });
    assert_eq!(waiter.join().unwrap(), here);
}

#[test]
fn aborts_from_another_thread_drop_the_futures_here() {
    let _watch = watchdog::start();
    let (rt, tally, left) = (local(), Tally::new(), Left::default());
    let handles: Vec<_> =
        (0..20).map(|_| rt.spawn_local(parks(Stays::new(&tally), &left))).collect();
    rt.block_on(async {
        task::yield_now().await;
        let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
        thread::spawn(move || aborts.iter().for_each(AbortHandle::abort)).join().unwrap();
        for handle in handles {
            assert!(handle.await.unwrap_err().is_cancelled());
        }
    });
    assert_all_dropped_here(&tally, 20);
}

#[test]
fn with_the_runtime_its_tasks_are_dropped_here_and_late_wakes_do_nothing() {
    let _watch = watchdog::start();
    let ends: [fn(LocalRuntime); 3] = [drop, LocalRuntime::shutdown_background, |rt| {
        rt.shutdown_timeout(Duration::from_secs(20))
    }];
    for end in ends {
        let (rt, tally, left) = (local(), Tally::new(), Left::default());
        let mut handles: Vec<_> =
            (0..20).map(|_| rt.spawn_local(parks(Stays::new(&tally), &left))).collect();
        rt.block_on(task::yield_now());
        // One task is queued in the injector, and one never ran.
        left.lock().unwrap()[2].wake_by_ref();
        handles.push(rt.spawn_local(parks(Stays::new(&tally), &left)));
        let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
        end(rt);
        assert_all_dropped_here(&tally, 21);
        thread::spawn(move || {
            left.lock().unwrap().drain(..).for_each(Waker::wake);
            aborts.iter().for_each(AbortHandle::abort);
        })
        .join()
        .unwrap();
        for mut handle in handles {
            let Poll::Ready(Err(error)) = poll_once(&mut handle) else { panic!("not ended") };
            assert!(error.is_cancelled());
        }
    }
}

#[test]
fn a_local_runtime_may_be_dropped_while_other_threads_wake_its_tasks() {
    let _watch = watchdog::start();
    for round in 0..60 {
        let (rt, tally, left) = (local(), Tally::new(), Left::default());
        let handles: Vec<_> =
            (0..12).map(|_| rt.spawn_local(parks(Stays::new(&tally), &left))).collect();
        rt.block_on(task::yield_now());
        let stop = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
                let (left, stop, handle) = (left.clone(), stop.clone(), rt.handle().clone());
                let started = Gate::new();
                let begun = started.clone();
                let thread = thread::spawn(move || {
                    started.open();
                    while !stop.load(Relaxed) {
                        let wakers: Vec<Waker> = left.lock().unwrap().clone();
                        wakers.iter().for_each(Waker::wake_by_ref);
                        aborts.iter().step_by(3).for_each(AbortHandle::abort);
                        drop(handle.spawn(async {}));
                    }
                });
                begun.block();
                thread
            })
            .collect();
        for _ in 0..round % 4 {
            rt.block_on(task::yield_now());
        }
        drop(rt);
        assert_all_dropped_here(&tally, 12);
        stop.store(true, Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(handles.iter().all(JoinHandle::is_finished));
    }
}

#[test]
fn in_a_thread_local_it_ends_with_its_thread_and_on_it() {
    let _watch = watchdog::start();
    thread_local! {
        static KEPT: RefCell<Option<LocalRuntime>> = const { RefCell::new(None) };
    }
    let (tally, left) = (Tally::new(), Left::default());
    let outcome = Arc::new(Mutex::new(None));
    let keeper = thread::spawn({
        let (tally, left, outcome) = (tally.clone(), left.clone(), outcome.clone());
        move || {
            let rt = local();
            let handle = rt.spawn_local(parks(Stays::new(&tally), &left));
            let at_the_end = OnDrop::new(move || {
                // The runtime still exists, and refuses spawns.
                let stays = Stays::new(&tally);
                let spawned = task::spawn_local(async move { stays.keep() });
                *outcome.lock().unwrap() = Some(spawned.is_finished());
            });
            rt.spawn_local(async move {
                pending::<()>().await;
                drop(at_the_end);
            });
            rt.block_on(task::yield_now());
            KEPT.with(|kept| *kept.borrow_mut() = Some(rt));
            (thread::current().id(), handle)
        }
    });
    let (id, mut handle) = keeper.join().unwrap();
    tally.assert_all_dropped(2);
    assert!(tally.dropped_on().iter().all(|on| *on == id), "dropped elsewhere");
    assert_eq!(*outcome.lock().unwrap(), Some(true));
    assert!(matches!(poll_once(&mut handle), Poll::Ready(Err(error)) if error.is_cancelled()));
    left.lock().unwrap().drain(..).for_each(Waker::wake);
}

#[test]
fn tasks_spawned_after_its_end_are_cancelled_here() {
    let _watch = watchdog::start();
    let (rt, tally) = (local(), Tally::new());
    let handle = rt.handle().clone();
    drop(rt);
    let _guard = handle.enter();
    let stays = Stays::new(&tally);
    let local = task::spawn_local(async move { stays.keep() });
    assert!(local.is_finished());
    assert!(handle.block_on(local).unwrap_err().is_cancelled());
    assert!(handle.block_on(handle.spawn(async {})).unwrap_err().is_cancelled());
    assert_all_dropped_here(&tally, 1);
}

#[test]
fn destructors_may_spawn_panic_and_wake_while_it_ends() {
    let _watch = watchdog::start();
    let (rt, tally, left) = (local(), Tally::new(), Left::default());
    let spawned: Rc<RefCell<Vec<JoinHandle<()>>>> = Rc::default();
    for n in 0..6 {
        let (tally, left, spawned) = (tally.clone(), left.clone(), spawned.clone());
        let parked = parks(Stays::new(&tally), &left);
        rt.spawn_local(async move {
            let _at_the_end = OnDrop::new(move || {
                let stays = Stays::new(&tally);
                spawned.borrow_mut().push(task::spawn_local(async move { stays.keep() }));
                left.lock().unwrap().iter().for_each(Waker::wake_by_ref);
                assert!(n % 2 == 0, "on purpose");
            });
            parked.await;
        });
    }
    rt.block_on(task::yield_now());
    drop(rt);
    assert_all_dropped_here(&tally, 12);
    for mut handle in spawned.take() {
        assert!(matches!(poll_once(&mut handle), Poll::Ready(Err(error)) if error.is_cancelled()));
    }
}

#[test]
fn a_panic_goes_to_the_handle_and_the_runtime_goes_on() {
    let _watch = watchdog::start();
    let rt = local();
    let panics = rt.spawn_local(async { panic!("on purpose") });
    let error: task::JoinError = rt.block_on(panics).map(|(): ()| ()).unwrap_err();
    assert!(error.is_panic());
    panic_of(|| rt.block_on(async { panic!("in the root") })).says(&["in the root"]);
    assert_eq!(rt.block_on(rt.spawn_local(async { 1 })).unwrap(), 1);
}

#[test]
fn tasks_may_be_spawned_on_it_while_another_runtime_runs_on_the_thread() {
    let _watch = watchdog::start();
    let (rt, value) = (local(), Rc::new(2));
    for outer in [one_thread(), workers(1)] {
        let value = value.clone();
        let handle = outer.block_on(async {
            let method = rt.spawn_local({
                let value = value.clone();
                async move { *value }
            });
            let _guard = rt.enter();
            (method, task::spawn_local(async move { *value }))
        });
        drop(outer);
        assert_eq!(rt.block_on(async { handle.0.await.unwrap() + handle.1.await.unwrap() }), 4);
    }
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn two_on_one_thread_do_not_mix() {
    let _watch = watchdog::start();
    let (one, two) = (local(), local());
    let of_one = one.spawn_local(async { Handle::current().id() });
    let of_two = one.block_on(async { two.spawn_local(async { Handle::current().id() }) });
    assert!(!of_two.is_finished());
    assert_eq!(one.block_on(of_one).unwrap(), one.handle().id());
    assert_eq!(two.block_on(of_two).unwrap(), two.handle().id());
}

#[test]
fn many_threads_may_own_one_each() {
    let _watch = watchdog::start();
    let threads: Vec<_> = (0..4u64)
        .map(|n| {
            thread::spawn(move || {
                let rt = local();
                let shared = Rc::new(n);
                let handles: Vec<_> = (0..100)
                    .map(|_| {
                        let shared = shared.clone();
                        rt.spawn_local(async move {
                            task::yield_now().await;
                            *shared
                        })
                    })
                    .collect();
                rt.block_on(async {
                    let mut sum = 0;
                    for handle in handles {
                        sum += handle.await.unwrap();
                    }
                    sum
                })
            })
        })
        .collect();
    for (n, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), n as u64 * 100);
    }
}

#[test]
fn a_builder_for_many_threads_builds_no_local_runtime() {
    let line = line!() + 1;
    panic_of(|| Builder::new_multi_thread().build_local(LocalOptions::default()))
        .says(&["multi_thread is not supported for LocalRuntime"])
        .at(file!(), line);
}

#[test]
fn a_builder_may_build_both_kinds_one_after_the_other() {
    let _watch = watchdog::start();
    let mut builder = Builder::new_current_thread();
    builder.name("both");
    let local = builder.build_local(LocalOptions::default()).unwrap();
    let plain = builder.build().unwrap();
    assert_eq!(local.handle().name(), plain.handle().name());
    // Any thread may still use the plain runtime.
    assert_eq!(
        thread::spawn(move || plain.block_on(plain.spawn(async { 1 }))).join().unwrap().unwrap(),
        1
    );
    assert_eq!(local.block_on(async { task::spawn_local(async { 2 }).await.unwrap() }), 2);
}

#[test]
fn dropping_it_inside_async_code_panics_and_shutdown_background_does_not() {
    let _watch = watchdog::start();
    let rt = local();
    let tally = Tally::new();
    rt.block_on(async {
        let inner = local();
        inner.spawn_local(pends(Stays::new(&tally)));
        panic_of(|| drop(inner))
            .says(&["Cannot drop a runtime in a context where blocking is not allowed"]);
        let inner = local();
        inner.spawn_local(pends(Stays::new(&tally)));
        inner.shutdown_background();
    });
    assert_all_dropped_here(&tally, 2);
    panic_of(|| rt.block_on(async { rt.block_on(async {}) }))
        .says(&["Cannot start a runtime from within a runtime"]);
}

async fn pends(stays: Stays) {
    pending::<()>().await;
    stays.keep();
}

#[test]
fn a_panic_that_ends_it_drops_its_tasks_here() {
    let _watch = watchdog::start();
    let (tally, left) = (Tally::new(), Left::default());
    let rt = Builder::new_current_thread()
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build_local(LocalOptions::default())
        .unwrap();
    let mut other = rt.spawn_local(parks(Stays::new(&tally), &left));
    rt.spawn_local(async { panic!("on purpose") });
    panic_of(|| rt.block_on(pending::<()>())).says(&["a spawned task panicked"]);
    assert_all_dropped_here(&tally, 1);
    assert!(matches!(poll_once(&mut other), Poll::Ready(Err(error)) if error.is_cancelled()));
    let stays = Stays::new(&tally);
    assert!(rt.spawn_local(async move { stays.keep() }).is_finished());
    assert_all_dropped_here(&tally, 2);
}

#[test]
fn blocking_work_runs_elsewhere_and_wakes_local_tasks() {
    let _watch = watchdog::start();
    let (rt, here) = (local(), thread::current().id());
    let first = rt.spawn_blocking(|| thread::current().id());
    let (one, two, three) = rt.block_on(async {
        let stays = Rc::new(());
        let task = task::spawn_local(async move {
            let there = task::spawn_blocking(|| thread::current().id()).await.unwrap();
            drop(stays);
            (there, thread::current().id())
        });
        let (two, three) = task.await.unwrap();
        (first.await.unwrap(), two, three)
    });
    assert!(one != here && two != here);
    assert_eq!(three, here);
}

#[test]
fn blocking_in_place_is_not_for_local_runtimes() {
    let _watch = watchdog::start();
    let rt = local();
    let said = ["can call blocking only when running on the multi-threaded runtime"];
    rt.block_on(async { panic_of(|| task::block_in_place(|| ())) }).says(&said);
    rt.block_on(rt.spawn_local(async { panic_of(|| task::block_in_place(|| ())) }))
        .unwrap()
        .says(&said);
}

#[test]
fn large_futures_are_local_tasks_too() {
    let _watch = watchdog::start();
    let (rt, large) = (local(), [1u8; 20_000]);
    let sum = move || async move {
        task::yield_now().await;
        large.iter().map(|byte| usize::from(*byte)).sum::<usize>()
    };
    assert_eq!(rt.block_on(rt.spawn_local(sum())).unwrap(), 20_000);
    assert_eq!(rt.block_on(async { task::spawn_local(sum()).await.unwrap() }), 20_000);
}

#[test]
fn local_runtimes_have_tokios_marker_traits() {
    assert!(!has!(LocalRuntime: Send) && !has!(LocalRuntime: Sync) && has!(LocalRuntime: Unpin));
    assert!(has!(LocalRuntime: UnwindSafe) && has!(LocalRuntime: RefUnwindSafe));
    assert!(!has!(LocalOptions: Send) && !has!(LocalOptions: Sync) && has!(LocalOptions: Unpin));
    assert!(has!(LocalOptions: UnwindSafe) && has!(LocalOptions: RefUnwindSafe));
    assert!(format!("{:?} {:?}", local(), LocalOptions::default()).starts_with("LocalRuntime"));
}
