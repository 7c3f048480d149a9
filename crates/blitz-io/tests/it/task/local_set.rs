//! Tests `LocalSet`, whose tasks stay on their thread.

use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn, ready},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use blitz_io::{
    runtime::{self, Handle, UnhandledPanic},
    task::{self, JoinHandle, LocalEnterGuard, LocalSet},
};

use crate::support::{
    auto_traits::has,
    caught_panic::panic_of,
    drop_tally::Tally,
    gate::Gate,
    local_values::{Stays, assert_all_dropped_here, parks},
    manual_poll::{poll_once, poll_with},
    on_drop::OnDrop,
    runtimes::{all_kinds, one_thread, workers},
    wakers::{self, counted},
    watchdog,
};

/// Keeps a value for ever without dropping it, where a leak checker still finds it.
fn keep_for_ever<T: 'static>(value: T) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(Box::into_raw(Box::new(value)).expose_provenance());
}

#[test]
fn a_task_may_hold_what_is_not_send() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let count = Rc::new(Cell::new(0));
        let set = LocalSet::new();
        let handles: Vec<_> = (0..200)
            .map(|n| {
                let count = count.clone();
                set.spawn_local(async move {
                    task::yield_now().await;
                    count.set(count.get() + 1);
                    Rc::new(n)
                })
            })
            .collect();
        let sum = set.block_on(&rt, async {
            let mut sum = 0;
            for handle in handles {
                sum += *handle.await.unwrap();
            }
            sum
        });
        assert_eq!((sum, count.get()), (199 * 100, 200));
        assert_eq!(Rc::strong_count(&count), 1, "a future was left");
    }
}

#[test]
fn awaiting_a_set_waits_for_all_that_its_tasks_spawn() {
    let _watch = watchdog::start();
    fn nest(depth: u32, count: Rc<Cell<u32>>) {
        task::spawn_local(async move {
            task::yield_now().await;
            count.set(count.get() + 1);
            if depth > 0 {
                nest(depth - 1, count.clone());
                nest(depth - 1, count);
            }
        });
    }
    for rt in all_kinds() {
        let (set, count) = (LocalSet::new(), Rc::new(Cell::new(0)));
        let entered = set.enter();
        nest(5, count.clone());
        drop(entered);
        rt.block_on(set);
        assert_eq!(count.get(), 63);
    }
}

#[test]
fn a_set_without_tasks_is_done_and_can_be_polled_again() {
    let mut set = LocalSet::default();
    assert!(poll_once(&mut set).is_ready());
    let mut handle = set.spawn_local(async { 1 });
    assert!(poll_once(&mut set).is_ready());
    assert!(matches!(poll_once(&mut handle), Poll::Ready(Ok(1))));
    assert!(poll_once(&mut set).is_ready());
}

#[test]
fn a_set_needs_no_runtime() {
    let mut set = LocalSet::new();
    let gate = Gate::new();
    let mut handle = set.spawn_local({
        let (gate, shared) = (gate.clone(), Rc::new(3));
        async move {
            gate.opened().await;
            *shared
        }
    });
    let (calls, waker) = counted();
    assert!(poll_with(&mut set, &waker).is_pending());
    gate.open();
    assert_eq!(calls.count(), 1, "the driver is called");
    assert!(poll_with(&mut set, &waker).is_ready());
    assert!(matches!(poll_once(&mut handle), Poll::Ready(Ok(3))));
}

#[test]
fn run_until_leaves_tasks_for_the_next_time() {
    let _watch = watchdog::start();
    let (rt, set, gate) = (one_thread(), LocalSet::new(), Gate::new());
    let handle = set.spawn_local({
        let gate = gate.clone();
        async move { gate.opened().await }
    });
    assert_eq!(set.block_on(&rt, async { 5 }), 5);
    assert!(!handle.is_finished());
    gate.open();
    set.block_on(&rt, handle).unwrap();
}

#[test]
fn a_task_runs_on_its_thread_whichever_thread_wakes_it() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (set, here) = (LocalSet::new(), thread::current().id());
        let gates: Vec<_> = (0..50).map(|_| Gate::new()).collect();
        for gate in &gates {
            let (gate, stays) = (gate.clone(), Rc::new(()));
            set.spawn_local(async move {
                gate.opened().await;
                assert_eq!(thread::current().id(), here);
                drop(stays);
            });
        }
        let opener = thread::spawn(move || gates.iter().for_each(|gate| gate.open()));
        rt.block_on(set);
        opener.join().unwrap();
    }
}

#[test]
fn a_handle_may_be_awaited_by_a_task_on_another_thread() {
    let _watch = watchdog::start();
    let (rt, set, gate) = (workers(2), LocalSet::new(), Gate::new());
    let here = thread::current().id();
    let there = set.block_on(&rt, async {
        let handle = task::spawn_local({
            let (gate, stays) = (gate.clone(), Rc::new(()));
            async move {
                gate.opened().await;
                drop(stays);
                thread::current().id()
            }
        });
        blitz_io::spawn(async move {
            gate.open();
            assert_ne!(thread::current().id(), here);
            handle.await.unwrap()
        })
        .await
        .unwrap()
    });
    assert_eq!(there, here);
}

#[test]
fn an_abort_from_another_thread_drops_the_future_here() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (set, tally, left) = (LocalSet::new(), Tally::new(), Arc::default());
        let handles: Vec<_> =
            (0..20).map(|_| set.spawn_local(parks(Stays::new(&tally), &left))).collect();
        set.block_on(&rt, async {
            task::yield_now().await;
            let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
            thread::spawn(move || aborts.iter().for_each(task::AbortHandle::abort)).join().unwrap();
            for handle in handles {
                assert!(handle.await.unwrap_err().is_cancelled());
            }
        });
        assert_all_dropped_here(&tally, 20);
    }
}

#[test]
fn without_a_poll_an_abort_takes_effect_at_the_end_of_the_set() {
    let (mut set, tally, left) = (LocalSet::new(), Tally::new(), Arc::default());
    let handle = set.spawn_local(parks(Stays::new(&tally), &left));
    assert!(poll_once(&mut set).is_pending());
    let abort = handle.abort_handle();
    thread::spawn(move || abort.abort()).join().unwrap();
    assert!(!handle.is_finished());
    assert_eq!(tally.dropped(), 0);
    drop(set);
    assert!(handle.is_finished());
    assert_all_dropped_here(&tally, 1);
}

#[test]
fn with_the_set_its_tasks_are_dropped_here_and_late_wakes_do_nothing() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (set, tally, left) =
            (LocalSet::new(), Tally::new(), Arc::<Mutex<Vec<Waker>>>::default());
        let mut handles: Vec<_> =
            (0..20).map(|_| set.spawn_local(parks(Stays::new(&tally), &left))).collect();
        // One task never ran, and one is queued.
        handles.push(set.spawn_local(parks(Stays::new(&tally), &Arc::default())));
        set.block_on(&rt, task::yield_now());
        left.lock().unwrap()[3].wake_by_ref();
        let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
        drop(set);
        assert_all_dropped_here(&tally, 21);
        thread::spawn(move || {
            left.lock().unwrap().drain(..).for_each(Waker::wake);
            aborts.iter().for_each(task::AbortHandle::abort);
        })
        .join()
        .unwrap();
        for mut handle in handles {
            let Poll::Ready(Err(error)) = poll_once(&mut handle) else { panic!("not ended") };
            assert!(error.is_cancelled());
        }
    }
}

/// Wakes and aborts the tasks of one set until `stop` is set.
fn wake_and_abort(left: &Mutex<Vec<Waker>>, aborts: &[task::AbortHandle], stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let wakers: Vec<Waker> = left.lock().unwrap().clone();
        wakers.iter().for_each(Waker::wake_by_ref);
        wakers.into_iter().for_each(Waker::wake);
        aborts.iter().step_by(3).for_each(task::AbortHandle::abort);
    }
}

#[test]
fn a_set_may_be_dropped_while_other_threads_wake_its_tasks() {
    let _watch = watchdog::start();
    for round in 0..100 {
        let (mut set, tally, left) =
            (LocalSet::new(), Tally::new(), Arc::<Mutex<Vec<Waker>>>::default());
        let handles: Vec<_> =
            (0..12).map(|_| set.spawn_local(parks(Stays::new(&tally), &left))).collect();
        assert!(poll_once(&mut set).is_pending());
        let stop = Arc::new(AtomicBool::new(false));
        let started = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
                let (left, stop, started) = (left.clone(), stop.clone(), started.clone());
                thread::spawn(move || {
                    started.fetch_add(1, Relaxed);
                    wake_and_abort(&left, &aborts, &stop);
                })
            })
            .collect();
        watchdog::until(|| started.load(Relaxed) == 2);
        for _ in 0..round % 4 {
            let _ = poll_once(&mut set);
        }
        drop(set);
        assert_all_dropped_here(&tally, 12);
        stop.store(true, Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(handles.iter().all(JoinHandle::is_finished));
    }
}

thread_local! {
    static KEPT: RefCell<Option<LocalSet>> = const { RefCell::new(None) };
}

#[test]
fn a_set_in_a_thread_local_ends_with_its_thread_and_on_it() {
    let _watch = watchdog::start();
    let (tally, left) = (Tally::new(), Arc::<Mutex<Vec<Waker>>>::default());
    let outcome = Arc::new(Mutex::new(None));
    let keeper = thread::spawn({
        let (tally, left, outcome) = (tally.clone(), left.clone(), outcome.clone());
        move || {
            let rt = one_thread();
            let set = LocalSet::new();
            let handle = set.spawn_local(parks(Stays::new(&tally), &left));
            let at_the_end = OnDrop::new(move || {
                // No runtime is left on this thread; the set exists, and refuses spawns.
                let alone = Handle::try_current().is_err();
                let stays = Stays::new(&tally);
                let spawned = task::spawn_local(async move { stays.keep() });
                *outcome.lock().unwrap() = Some((alone, spawned.is_finished()));
            });
            set.spawn_local(async move {
                pending::<()>().await;
                drop(at_the_end);
            });
            set.block_on(&rt, task::yield_now());
            KEPT.with(|kept| *kept.borrow_mut() = Some(set));
            (thread::current().id(), handle)
        }
    });
    let (id, mut handle) = keeper.join().unwrap();
    tally.assert_all_dropped(2);
    assert!(tally.dropped_on().iter().all(|on| *on == id), "dropped elsewhere");
    assert_eq!(*outcome.lock().unwrap(), Some((true, true)));
    assert!(matches!(poll_once(&mut handle), Poll::Ready(Err(error)) if error.is_cancelled()));
    left.lock().unwrap().drain(..).for_each(Waker::wake);
}

#[test]
fn a_set_may_be_polled_by_its_threads_destructors() {
    let _watch = watchdog::start();
    struct AtTheEnd(RefCell<Option<(LocalSet, mpsc::Sender<u32>)>>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let (set, sender) = self.0.take().expect("it was filled");
            let value = Rc::new(9);
            let mut run =
                pin!(set.run_until(async move { task::spawn_local(async move { *value }).await }));
            let mut cx = Context::from_waker(Waker::noop());
            let polled = std::iter::from_fn(|| Some(run.as_mut().poll(&mut cx)));
            let Some(Poll::Ready(Ok(value))) = polled.take(3).find(Poll::is_ready) else { return };
            sender.send(value).unwrap();
        }
    }
    thread_local! {
        static END: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
    }
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || END.with(|end| *end.0.borrow_mut() = Some((LocalSet::new(), sender))))
        .join()
        .unwrap();
    assert_eq!(receiver.recv(), Ok(9));
}

#[test]
fn sets_nest_and_a_spawn_goes_to_the_innermost() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let outer = LocalSet::new();
    outer.block_on(&rt, async {
        let tally = Tally::new();
        let before = task::spawn_local(async { "outer" });
        task::spawn_local(async move {
            let inner = LocalSet::new();
            let stays = Stays::new(&tally);
            let inside = inner
                .run_until(async move {
                    task::spawn_local(async move {
                        pending::<()>().await;
                        stays.keep();
                    })
                })
                .await;
            let after = task::spawn_local(async { "outer again" });
            drop(inner);
            assert!(inside.await.unwrap_err().is_cancelled());
            assert_all_dropped_here(&tally, 1);
            assert_eq!(after.await.unwrap(), "outer again");
        })
        .await
        .unwrap();
        assert_eq!(before.await.unwrap(), "outer");
    });
}

#[test]
fn a_task_may_drive_its_own_set() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (set, gate, inside) = (Rc::new(LocalSet::new()), Gate::new(), Gate::new());
        let far = set.spawn_local({
            let gate = gate.clone();
            async move { gate.opened().await }
        });
        let near = set.spawn_local({
            let (set, inside) = (set.clone(), inside.clone());
            async move {
                inside.open();
                set.run_until(far).await.unwrap();
            }
        });
        let opener = thread::spawn(move || {
            inside.block();
            gate.open();
        });
        set.block_on(&rt, near).unwrap();
        opener.join().unwrap();
    }
}

/// Polls each of two futures only when that future was woken.
async fn apart(one: impl Future<Output = ()>, two: impl Future<Output = ()>) {
    struct Half(AtomicBool, Mutex<Option<Waker>>);
    impl Wake for Half {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
            if let Some(waker) = self.1.lock().unwrap().take() {
                waker.wake();
            }
        }
    }
    let (mut one, mut two) = (pin!(one), pin!(two));
    let halves = [(); 2].map(|()| Arc::new(Half(AtomicBool::new(true), Mutex::new(None))));
    let mut done = [false; 2];
    poll_fn(|cx| {
        for (index, half) in halves.iter().enumerate() {
            *half.1.lock().unwrap() = Some(cx.waker().clone());
            if done[index] || !half.0.swap(false, Relaxed) {
                continue;
            }
            let waker = Waker::from(half.clone());
            let mut cx = Context::from_waker(&waker);
            let half: [Pin<&mut dyn Future<Output = ()>>; 2] = [one.as_mut(), two.as_mut()];
            done[index] = half.into_iter().nth(index).unwrap().poll(&mut cx).is_ready();
        }
        if done == [true; 2] { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn two_drivers_of_a_set_are_both_called() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    // The second driver is polled last and completes first; the first is still woken for the
    // task that it waits for.
    let gates = [Gate::new(), Gate::new()];
    let [slow, quick] = gates.each_ref().map(|gate| {
        let gate = gate.clone();
        set.spawn_local(async move { gate.opened().await })
    });
    let [slow_gate, quick_gate] = gates;
    rt.block_on(apart(
        set.run_until(async { slow.await.unwrap() }),
        set.run_until(async {
            thread::spawn(move || quick_gate.open()).join().unwrap();
            quick.await.unwrap();
            // In the last poll of this driver, which is not polled again.
            thread::spawn(move || slow_gate.open()).join().unwrap();
        }),
    ));
}

#[test]
fn tasks_that_one_driver_leaves_are_run_by_the_other() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let gate = Gate::new();
    rt.block_on(apart(
        set.run_until(gate.opened()),
        set.run_until(async {
            let gate = gate.clone();
            // The task completes in the poll that spawns it.
            task::spawn_local(async move { gate.open() });
        }),
    ));
}

#[test]
fn a_driver_that_is_dropped_is_called_no_more() {
    let (set, (calls, waker)) = (LocalSet::new(), counted());
    {
        let mut run = pin!(set.run_until(pending::<()>()));
        assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&calls), 3, "ours, its waker, and the set's");
    }
    assert_eq!(Arc::strong_count(&calls), 2);
    set.spawn_local(async {});
    assert_eq!(calls.count(), 0);
}

#[test]
fn a_spawn_from_outside_calls_the_driver() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    rt.block_on(async {
        let mut run = pin!(set.run_until(pending::<()>()));
        let mut handle = None;
        poll_fn(|cx| {
            assert!(run.as_mut().poll(cx).is_pending());
            let handle = handle.get_or_insert_with(|| set.spawn_local(ready(())));
            Pin::new(handle).poll(cx)
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_poll_of_a_set_polls_61_tasks_and_comes_again() {
    let (mut set, count) = (LocalSet::new(), Rc::new(Cell::new(0)));
    for _ in 0..100 {
        let count = count.clone();
        set.spawn_local(async move { count.set(count.get() + 1) });
    }
    let (calls, waker) = counted();
    assert!(poll_with(&mut set, &waker).is_pending());
    assert_eq!((count.get(), calls.count()), (61, 1));
    assert!(poll_with(&mut set, &waker).is_ready());
    assert_eq!((count.get(), calls.count()), (100, 1));
}

#[test]
fn neither_the_future_nor_the_tasks_can_keep_the_others_waiting() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let turns = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let turns = turns.clone();
        set.spawn_local(async move {
            loop {
                turns.set(turns.get() + 1);
                task::yield_now().await;
            }
        });
    }
    // Another task on the same thread.
    let beside = rt.spawn(async {
        for _ in 0..100 {
            task::yield_now().await;
        }
    });
    set.block_on(&rt, async {
        beside.await.unwrap();
        let before = turns.get();
        for _ in 0..10 {
            task::yield_now().await;
        }
        assert!(turns.get() > before);
    });
}

#[test]
fn tasks_woken_by_another_thread_run_although_the_set_is_busy() {
    let _watch = watchdog::start();
    let (rt, set, gate) = (one_thread(), LocalSet::new(), Gate::new());
    let stop = Rc::new(Cell::new(false));
    set.spawn_local({
        let stop = stop.clone();
        async move {
            while !stop.get() {
                task::yield_now().await;
            }
        }
    });
    set.spawn_local({
        let gate = gate.clone();
        async move {
            gate.opened().await;
            stop.set(true);
        }
    });
    let opener = thread::spawn(move || gate.open());
    rt.block_on(set);
    opener.join().unwrap();
}

#[test]
fn each_task_has_a_budget_of_its_own() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let turns = Rc::new(Cell::new(0));
    let ready: Vec<_> = (0..300).map(|_| set.spawn_local(async {})).collect();
    let _other = set.spawn_local({
        let turns = turns.clone();
        async move {
            loop {
                turns.set(turns.get() + 1);
                task::yield_now().await;
            }
        }
    });
    set.block_on(&rt, async {
        task::spawn_local(async move {
            while ready.iter().any(|handle| !handle.is_finished()) {
                task::yield_now().await;
            }
            let before = turns.get();
            for handle in ready {
                handle.await.unwrap();
            }
            assert_eq!(turns.get() - before, 2, "300 operations are three polls");
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_panic_goes_to_the_handle_and_the_set_goes_on() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let panics = set.spawn_local(async { panic!("on purpose") });
    let works = set.spawn_local(async { 1 });
    set.block_on(&rt, async {
        let error: task::JoinError = panics.await.map(|(): ()| ()).unwrap_err();
        assert!(error.is_panic());
        assert_eq!(works.await.unwrap(), 1);
    });
}

#[test]
fn a_destructor_that_panics_ends_its_own_task_only() {
    let (mut set, tally) = (LocalSet::new(), Tally::new());
    let handles: Vec<_> = (0..3)
        .map(|n| {
            let stays = Stays::new(&tally);
            set.spawn_local(async move {
                let _stays = stays;
                let _panics = OnDrop::new(move || assert!(n != 1, "on purpose"));
                pending::<()>().await;
            })
        })
        .collect();
    assert!(poll_once(&mut set).is_pending());
    drop(set);
    assert_all_dropped_here(&tally, 3);
    let ends: Vec<_> = handles
        .into_iter()
        .map(|mut handle| match poll_once(&mut handle) {
            Poll::Ready(Err(error)) => error.is_panic(),
            _ => panic!("not ended"),
        })
        .collect();
    assert_eq!(ends, [false, true, false]);
}

#[test]
fn tasks_spawned_by_a_destructor_while_its_set_ends_are_cancelled() {
    let (mut set, tally) = (LocalSet::new(), Tally::new());
    let spawned = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..3 {
        let (tally, spawned) = (tally.clone(), spawned.clone());
        set.spawn_local(async move {
            let _at_the_end = OnDrop::new(move || {
                let stays = Stays::new(&tally);
                spawned.borrow_mut().push(task::spawn_local(async move { stays.keep() }));
            });
            pending::<()>().await;
        });
    }
    assert!(poll_once(&mut set).is_pending());
    drop(set);
    assert_all_dropped_here(&tally, 3);
    for mut handle in spawned.take() {
        assert!(matches!(poll_once(&mut handle), Poll::Ready(Err(error)) if error.is_cancelled()));
    }
}

#[test]
fn a_destructor_may_wake_and_abort_others_of_its_set() {
    let (mut set, tally, left) =
        (LocalSet::new(), Tally::new(), Arc::<Mutex<Vec<Waker>>>::default());
    let handles: Vec<_> =
        (0..4).map(|_| set.spawn_local(parks(Stays::new(&tally), &left))).collect();
    let aborts: Vec<_> = handles.iter().map(JoinHandle::abort_handle).collect();
    let before = set.spawn_local(parks(Stays::new(&tally), &left));
    set.spawn_local({
        let left = left.clone();
        async move {
            let _at_the_end = OnDrop::new(move || {
                left.lock().unwrap().iter().for_each(Waker::wake_by_ref);
                aborts.iter().for_each(task::AbortHandle::abort);
            });
            pending::<()>().await;
        }
    });
    assert!(poll_once(&mut set).is_pending());
    drop(set);
    assert_all_dropped_here(&tally, 5);
    assert!(before.is_finished());
}

#[test]
fn an_output_that_is_not_send_is_dropped_here() {
    let (mut set, tally) = (LocalSet::new(), Tally::new());
    let stays = || Stays::new(&tally);
    let (kept, detached) = (stays(), stays());
    let handle = set.spawn_local(async move { kept });
    drop(set.spawn_local(async move { detached }));
    assert!(poll_once(&mut set).is_ready());
    assert_eq!(tally.dropped(), 1);
    drop(set);
    assert_eq!(tally.dropped(), 1, "the output belongs to the handle");
    drop(handle);
    assert_all_dropped_here(&tally, 2);
}

#[test]
fn an_entered_set_takes_what_is_spawned_and_calls_its_driver() {
    let (mut set, (calls, waker)) = (LocalSet::new(), counted());
    let keep = set.spawn_local(pending::<()>());
    assert!(poll_with(&mut set, &waker).is_pending());
    let guard = set.enter();
    let mut handle = task::spawn_local(async { 4 });
    drop(guard);
    assert_eq!(calls.count(), 1);
    assert!(poll_with(&mut set, &waker).is_pending());
    assert!(matches!(poll_once(&mut handle), Poll::Ready(Ok(4))));
    keep.abort();
    assert!(poll_with(&mut set, &waker).is_ready());
    panic_of(|| task::spawn_local(async {})).says(&["outside of a `task::LocalSet`"]);
}

#[test]
fn guards_may_go_in_any_order_and_outlive_their_sets() {
    let (mut one, mut two) = (LocalSet::new(), LocalSet::new());
    let (first, second) = (one.enter(), two.enter());
    drop(first);
    task::spawn_local(async {});
    assert!(poll_once(&mut one).is_ready());
    assert!(poll_once(&mut two).is_ready(), "the one entered last counts");
    let third = one.enter();
    drop(second);
    drop(one);
    let mut late = task::spawn_local(async {});
    assert!(matches!(poll_once(&mut late), Poll::Ready(Err(error)) if error.is_cancelled()));
    drop(third);
    panic_of(|| task::spawn_local(async {})).says(&["outside of a `task::LocalSet`"]);
}

#[test]
fn a_guard_from_inside_a_poll_may_outlive_it() {
    let (mut one, mut two) = (LocalSet::new(), LocalSet::new());
    let kept: Rc<RefCell<Option<LocalEnterGuard>>> = Rc::default();
    let (count, two_ref) = (Rc::new(Cell::new(0)), &two);
    {
        let mut run = pin!(one.run_until(async {
            *kept.borrow_mut() = Some(two_ref.enter());
        }));
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    let counts = count.clone();
    task::spawn_local(async move { counts.set(1) });
    assert!(poll_once(&mut one).is_ready());
    drop(one);
    assert_eq!(count.get(), 0);
    assert!(poll_once(&mut two).is_ready());
    assert_eq!(count.get(), 1);
    kept.take();
    panic_of(|| task::spawn_local(async {})).says(&["outside of a `task::LocalSet`"]);
}

#[test]
fn a_leaked_guard_harms_no_other_set() {
    let _watch = watchdog::start();
    // On a thread of its own, because the set stays entered there.
    thread::spawn(|| {
        let rt = one_thread();
        let (set, other) = (LocalSet::new(), LocalSet::new());
        keep_for_ever(set.enter());
        assert_eq!(other.block_on(&rt, async { task::spawn_local(async { 1 }).await.unwrap() }), 1);
        drop(set);
        assert!(rt.block_on(task::spawn_local(async {})).unwrap_err().is_cancelled());
    })
    .join()
    .unwrap();
}

#[test]
fn a_set_that_is_leaked_takes_wakes_and_gives_nothing() {
    let left = Arc::<Mutex<Vec<Waker>>>::default();
    let tally = Tally::new();
    thread::spawn({
        let (left, tally) = (left.clone(), tally.clone());
        move || {
            let mut set = LocalSet::new();
            set.spawn_local(parks(Stays::new(&tally), &left));
            assert!(poll_once(&mut set).is_pending());
            keep_for_ever(set);
        }
    })
    .join()
    .unwrap();
    // This thread may have the memory, and the number, of the thread that is gone.
    thread::spawn(move || left.lock().unwrap().drain(..).for_each(Waker::wake)).join().unwrap();
    assert_eq!(tally.dropped(), 0, "there is no thread left that may drop it");
}

#[test]
fn spawn_local_outside_of_a_set_names_the_line_that_called_it() {
    let _watch = watchdog::start();
    let said =
        ["`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`"];
    let line = line!() + 1;
    panic_of(|| task::spawn_local(async {})).says(&said).at(file!(), line);
    for rt in all_kinds() {
        rt.block_on(async { panic_of(|| task::spawn_local(async {})) }).says(&said);
    }
}

#[test]
fn a_task_on_a_worker_is_outside_of_the_set_that_spawned_it() {
    let _watch = watchdog::start();
    let (rt, set) = (workers(1), LocalSet::new());
    let error = set.block_on(&rt, async {
        blitz_io::spawn(async { drop(task::spawn_local(async {})) }).await.unwrap_err()
    });
    assert!(error.is_panic());
}

#[test]
fn block_on_inside_async_code_panics_at_the_caller() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let line = line!() + 2;
    rt.block_on(async {
        panic_of(|| LocalSet::new().block_on(&rt, async {}))
            .says(&["Cannot start a runtime from within a runtime"])
            .at(file!(), line);
    });
}

#[test]
fn a_driver_whose_waker_panics_stays_in_use() {
    let (mut set, gate) = (LocalSet::new(), Gate::new());
    set.spawn_local({
        let gate = gate.clone();
        async move { gate.opened().await }
    });
    assert!(poll_with(&mut set, &wakers::panics()).is_pending());
    gate.open();
    assert!(poll_once(&mut set).is_ready());
}

#[test]
fn a_panic_of_the_future_leaves_the_set_as_it_was() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let handle = set.spawn_local(async { 8 });
    panic_of(|| set.block_on(&rt, async { panic!("on purpose") })).says(&["on purpose"]);
    panic_of(|| task::spawn_local(async {})).says(&["outside of a `task::LocalSet`"]);
    assert_eq!(set.block_on(&rt, handle).unwrap(), 8);
}

#[test]
fn large_futures_and_their_tasks_have_ids() {
    let _watch = watchdog::start();
    let (rt, set) = (one_thread(), LocalSet::new());
    let large = [7u8; 20_000];
    let handle = set.spawn_local(async move {
        task::yield_now().await;
        (task::id(), large.iter().map(|byte| usize::from(*byte)).sum::<usize>())
    });
    let id = handle.id();
    assert_eq!(set.block_on(&rt, handle).unwrap(), (id, 140_000));
}

#[test]
fn ten_thousand_tasks_come_and_go_twice() {
    let _watch = watchdog::start();
    let (rt, set, tally) = (one_thread(), LocalSet::new(), Tally::new());
    for _ in 0..2 {
        let handles: Vec<_> = (0..10_000)
            .map(|n| {
                let stays = Stays::new(&tally);
                set.spawn_local(async move {
                    task::yield_now().await;
                    stays.keep();
                    n
                })
            })
            .collect();
        set.block_on(&rt, async {
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.await.unwrap(), n);
            }
        });
    }
    tally.assert_all_dropped(20_000);
}

#[test]
fn sets_have_ids_and_tokios_marker_traits() {
    let (one, two) = (LocalSet::new(), LocalSet::new());
    assert_ne!(one.id(), two.id());
    assert_eq!(one.id(), one.id());
    let _: runtime::Id = one.id();
    assert!(format!("{one:?} {:?}", one.enter()).starts_with("LocalSet"));
    assert!(!has!(LocalSet: Send) && !has!(LocalSet: Sync) && has!(LocalSet: Unpin));
    assert!(!has!(LocalSet: std::panic::UnwindSafe));
    assert!(!has!(LocalEnterGuard: Send) && !has!(LocalEnterGuard: Sync));
    assert!(has!(LocalEnterGuard: Unpin) && !has!(LocalEnterGuard: std::panic::UnwindSafe));
}

/// The message of a set that ended because of a panic.
const ENDED: &str =
    "a spawned task panicked and the LocalSet is configured to shutdown on unhandled panic";

#[test]
fn a_set_that_ends_on_panic_drops_its_tasks_and_fails_from_then_on() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (mut set, tally, left) = (LocalSet::new(), Tally::new(), Arc::default());
        set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let before = set.spawn_local(parks(Stays::new(&tally), &left));
        let panics = set.spawn_local(async { panic!("on purpose") });
        let after = set.spawn_local(parks(Stays::new(&tally), &left));
        panic_of(|| set.block_on(&rt, pending::<()>())).says(&[ENDED]);
        assert_all_dropped_here(&tally, 2);
        rt.block_on(async {
            assert!(before.await.unwrap_err().is_cancelled());
            assert!(panics.await.map(|(): ()| ()).unwrap_err().is_panic());
            assert!(after.await.unwrap_err().is_cancelled());
            assert!(set.spawn_local(async {}).await.unwrap_err().is_cancelled());
        });
        panic_of(|| set.block_on(&rt, pending::<()>())).says(&[ENDED]);
        panic_of(|| rt.block_on(&mut set)).says(&[ENDED]);
        panic_of(|| task::spawn_local(async {})).says(&["outside of a `task::LocalSet`"]);
    }
}

#[test]
fn a_panic_in_a_destructor_ends_such_a_set_too() {
    let mut set = LocalSet::new();
    set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
    let handle = set.spawn_local(async {
        let _panics = OnDrop::new(|| panic!("on purpose"));
        pending::<()>().await;
    });
    assert!(poll_once(&mut set).is_pending());
    handle.abort();
    panic_of(|| poll_once(&mut set)).says(&[ENDED]);
    set.unhandled_panic(UnhandledPanic::Ignore);
    panic_of(|| poll_once(&mut set)).says(&[ENDED]);
}

/// A task that drives its own set is running when the set ends. It is ended, whatever it does with
/// the panic.
#[test]
fn a_set_that_ends_inside_of_its_own_task_ends_that_task() {
    for yields in [false, true] {
        let tally = Tally::new();
        let mut set = LocalSet::new();
        set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let set = Rc::new(set);
        let stays = Stays::new(&tally);
        let handle = set.spawn_local({
            let set = Rc::downgrade(&set);
            async move {
                let set = set.upgrade().unwrap();
                task::spawn_local(async { panic!("on purpose") });
                let mut run = Box::pin(set.run_until(pending::<()>()));
                poll_fn(|cx| {
                    panic_of(|| run.as_mut().poll(cx)).says(&[ENDED]);
                    Poll::Ready(())
                })
                .await;
                if yields {
                    task::yield_now().await;
                } else {
                    pending::<()>().await;
                }
                stays.keep();
                unreachable!("it went on");
            }
        });
        let mut run = Box::pin(set.run_until(pending::<()>()));
        panic_of(|| run.as_mut().poll(&mut Context::from_waker(Waker::noop()))).says(&[ENDED]);
        assert!(handle.is_finished());
        assert_all_dropped_here(&tally, 1);
        drop(run);
        assert_eq!(Rc::strong_count(&set), 1);
    }
}

#[test]
fn blocking_in_place_is_not_for_sets() {
    let _watch = watchdog::start();
    let said = ["can call blocking only when running on the multi-threaded runtime"];
    let block = || panic_of(|| task::block_in_place(|| ()));
    for rt in all_kinds() {
        let set = LocalSet::new();
        set.block_on(&rt, async { block() }).says(&said);
        set.block_on(&rt, async { task::spawn_local(async move { block() }).await.unwrap() })
            .says(&said);
        // Nor for the destructors of its tasks.
        let (sender, receiver) = mpsc::channel();
        let at_the_end = OnDrop::new(move || sender.send(block()).unwrap());
        set.spawn_local(async move {
            let _at_the_end = at_the_end;
            pending::<()>().await;
        });
        rt.block_on(async { drop(set) });
        receiver.recv().unwrap().says(&said);
    }
    // Around a set, blocking in place works as usual.
    let rt = workers(1);
    rt.block_on(async { LocalSet::new().run_until(async {}).await });
    assert_eq!(rt.block_on(async { task::block_in_place(|| 1) }), 1);
    let inside = rt.spawn(async {
        task::block_in_place(|| {
            let set = LocalSet::new();
            Handle::current()
                .block_on(set.run_until(async { task::spawn_local(async { 2 }).await.unwrap() }))
        })
    });
    assert_eq!(rt.block_on(inside).unwrap(), 2);
}
