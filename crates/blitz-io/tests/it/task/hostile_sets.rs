//! Tests sets, scopes, trackers, local sets and task-locals against user code in the worst places:
//! hooks, wakers, destructors, and spawns that fail half-way.

use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    thread,
};

use blitz_io::{
    runtime::{Builder, LocalOptions, Preemption, UnhandledPanic},
    task::{self, JoinSet, LocalSet, TaskTracker},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::{once, poll_once, poll_with},
    on_drop::OnDrop,
    runtimes::{one_thread, workers},
    wakers::{self, counted, on_wake},
    watchdog,
};

// Spawns that fail half-way.

#[test]
fn a_blocking_spawn_that_panics_leaves_a_set_that_can_be_used() {
    let _watch = watchdog::start();
    let named = Arc::new(AtomicBool::new(false));
    let rt = {
        let named = named.clone();
        Builder::new_current_thread()
            .thread_name_fn(move || match named.load(SeqCst) {
                true => "named".to_owned(),
                false => panic!("no name is available"),
            })
            .build()
            .unwrap()
    };
    let tally = Tally::new();
    let mut set = JoinSet::new();
    let gate = Gate::new();
    let opened = gate.opened();
    set.spawn_on(opened, rt.handle());
    for _ in 0..3 {
        let token = tally.token();
        panic_of(|| set.spawn_blocking_on(move || token.keep(), rt.handle()))
            .says(&["no name is available"]);
    }
    tally.assert_all_dropped(3);
    named.store(true, SeqCst);
    set.spawn_blocking_on(|| (), rt.handle());
    gate.open();
    let (mut good, mut cancelled) = (0, 0);
    rt.block_on(async {
        while let Some(joined) = set.join_next().await {
            match joined {
                Ok(()) => good += 1,
                Err(error) if error.is_cancelled() => cancelled += 1,
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert_eq!((good, set.len()), (2, 0), "of those that were spawned");
    assert!(cancelled <= 3, "those whose spawn panicked are cancelled, or forgotten");
}

#[test]
fn a_set_may_be_dropped_after_a_blocking_spawn_that_panicked() {
    let _watch = watchdog::start();
    let alive = Arc::new(());
    let hook = alive.clone();
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_park(move || drop(hook.clone()))
        .thread_name_fn({
            let first = AtomicBool::new(true);
            move || match first.swap(false, SeqCst) {
                true => "worker".to_owned(),
                false => panic!("no name is available"),
            }
        })
        .build()
        .unwrap();
    for _ in 0..10 {
        let mut set = JoinSet::new();
        for _ in 0..5 {
            set.spawn_on(task::yield_now(), rt.handle());
        }
        panic_of(|| set.spawn_blocking_on(|| (), rt.handle())).says(&["no name"]);
        drop(set);
    }
    drop(rt);
    assert_eq!(Arc::strong_count(&alive), 1, "a task without a handle keeps its runtime");
}

// Hooks.

#[test]
fn a_hook_may_drop_the_set_of_the_task_that_ends() {
    let _watch = watchdog::start();
    for workers in [0, 1, 2] {
        static SET: Mutex<Option<JoinSet<task::Id>>> = Mutex::new(None);
        let mut builder = match workers {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        if workers > 0 {
            builder.worker_threads(workers);
        }
        let rt = builder
            .on_task_terminate(|_| {
                let set = SET.lock().unwrap().take();
                drop(set);
            })
            .build()
            .unwrap();
        let tally = Tally::new();
        let mut set = JoinSet::new();
        let gate = Gate::new();
        let (count, waker) = counted();
        for _ in 0..8 {
            let (token, opened) = (tally.token(), gate.opened());
            let work = async move {
                opened.await;
                token.keep();
                task::id()
            };
            set.spawn_on(work, rt.handle());
        }
        assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        *SET.lock().unwrap() = Some(set);
        gate.open();
        rt.block_on(async {
            while SET.lock().unwrap().is_some() {
                task::yield_now().await;
            }
        });
        drop(rt);
        tally.assert_all_dropped(8);
        assert_eq!(Arc::strong_count(&count), 1, "the set's waker is left");
    }
}

#[test]
fn a_spawn_hook_may_end_the_runtime_of_the_task_of_a_set() {
    let _watch = watchdog::start();
    static RUNTIME: Mutex<Option<blitz_io::runtime::Runtime>> = Mutex::new(None);
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_task_spawn(|_| {
            let rt = RUNTIME.lock().unwrap().take();
            if let Some(rt) = rt {
                rt.shutdown_background();
            }
        })
        .build()
        .unwrap();
    let handle = rt.handle().clone();
    *RUNTIME.lock().unwrap() = Some(rt);
    let mut set = JoinSet::new();
    set.spawn_on(pending::<()>(), &handle);
    set.spawn_on(pending::<()>(), &handle);
    let other = one_thread();
    other.block_on(async {
        for _ in 0..2 {
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        }
        assert!(set.join_next().await.is_none());
    });
}

// Wakers.

#[test]
fn the_waker_of_a_set_may_drop_it() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(2)] {
        let set: Arc<Mutex<Option<JoinSet<()>>>> = Arc::default();
        let (tally, gate, dropped) = (Tally::new(), Gate::new(), Gate::new());
        let mut members = JoinSet::new();
        for _ in 0..4 {
            let (token, opened) = (tally.token(), gate.opened());
            let work = async move {
                opened.await;
                token.keep();
            };
            members.spawn_on(work, rt.handle());
        }
        let waker = on_wake({
            let (set, dropped) = (set.clone(), dropped.clone());
            move || {
                let members = set.lock().unwrap().take();
                drop(members);
                dropped.open();
            }
        });
        assert!(members.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        *set.lock().unwrap() = Some(members);
        gate.open();
        rt.block_on(dropped.opened());
        drop(rt);
        tally.assert_all_dropped(4);
    }
}

#[test]
fn a_waker_of_a_scope_that_panics_spoils_no_output() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let gate = Gate::new();
    let children = Rc::new(RefCell::new(Vec::new()));
    let (kept, opened, handle) = (children.clone(), gate.opened(), rt.handle().clone());
    let scope = task::scope(|scope| async move {
        kept.borrow_mut().push(scope.spawn_on(
            async move {
                opened.await;
                5
            },
            &handle,
        ));
    });
    let mut scope = pin!(scope);
    assert!(poll_with(&mut scope, &wakers::panics()).is_pending());
    gate.open();
    let child = children.borrow_mut().pop().expect("it was spawned");
    let output = rt.block_on(child);
    assert_eq!(output.expect("a foreign waker is no trouble of the child's"), 5);
    assert!(poll_once(&mut scope).is_ready());
}

#[test]
fn a_waker_of_a_scope_that_panics_keeps_no_panic_of_a_child_back() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let gate = Gate::new();
    let (opened, handle) = (gate.opened(), rt.handle().clone());
    let scope = task::scope(|scope| async move {
        drop(scope.spawn_on(
            async move {
                opened.await;
                panic!("the child's own")
            },
            &handle,
        ));
        pending::<()>().await;
    });
    let mut scope = pin!(scope);
    assert!(poll_with(&mut scope, &wakers::panics()).is_pending());
    gate.open();
    panic_of(|| rt.block_on(scope.as_mut())).says(&["the child's own"]);
}

// Local sets.

#[test]
fn every_driver_is_called_when_a_panic_ends_the_set() {
    let _watch = watchdog::start();
    let mut set = LocalSet::new();
    set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
    let (count, waker) = counted();
    let mut waits = pin!(set.run_until(pending::<()>()));
    assert!(poll_with(&mut waits, &waker).is_pending());
    let mut spawns = Box::pin(set.run_until(async {
        drop(task::spawn_local(async { panic!("the task's own") }));
        pending::<()>().await;
    }));
    // The spawn wakes no driver, because the driver that is being polled runs the task.
    panic_of(|| poll_once(&mut spawns)).says(&["LocalSet"]);
    drop(spawns);
    assert!(count.count() > 0, "it waits for ever for a set that has ended");
    panic_of(|| poll_with(&mut waits, &waker)).says(&["LocalSet"]);
}

#[test]
fn a_local_set_drops_members_of_a_join_set_on_another_thread() {
    let _watch = watchdog::start();
    let local = LocalSet::new();
    let here = thread::current().id();
    let mut set = JoinSet::new();
    let dropped = Rc::new(Cell::new(0));
    for _ in 0..50 {
        let dropped = dropped.clone();
        set.spawn_local_on(
            async move {
                let _guard = OnDrop::new(move || {
                    assert_eq!(thread::current().id(), here);
                    dropped.set(dropped.get() + 1);
                });
                pending::<()>().await
            },
            &local,
        );
    }
    assert!(once(local.run_until(task::yield_now())).is_pending());
    // The set may move to another thread because its outputs are `Send`; the futures stay.
    let other = thread::spawn(move || {
        set.abort_all();
        let rt = one_thread();
        rt.block_on(async {
            let mut cancelled = 0;
            while let Some(joined) = set.join_next().await {
                cancelled += usize::from(joined.unwrap_err().is_cancelled());
            }
            cancelled
        })
    });
    drop(local);
    assert_eq!(dropped.get(), 50);
    assert_eq!(other.join().unwrap(), 50);
}

#[test]
fn a_join_set_of_local_tasks_may_be_dropped_elsewhere_while_they_end_here() {
    let _watch = watchdog::start();
    for round in 0..200 {
        let local = LocalSet::new();
        let here = thread::current().id();
        let mut set = JoinSet::new();
        for index in 0..4 {
            let stays = Rc::new(());
            set.spawn_local_on(
                async move {
                    let _guard = OnDrop::new(move || assert_eq!(thread::current().id(), here));
                    let _stays = stays;
                    for _ in 0..index * (round % 3) {
                        task::yield_now().await;
                    }
                    Box::new(index)
                },
                &local,
            );
        }
        let other = thread::spawn(move || drop(set));
        for _ in 0..3 {
            let _ = once(local.run_until(task::yield_now()));
        }
        drop(local);
        other.join().unwrap();
    }
}

#[test]
fn a_destructor_may_drive_the_set_that_a_panic_ends() {
    let _watch = watchdog::start();
    let set = {
        let mut set = LocalSet::new();
        set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
        Rc::new(set)
    };
    let (driven, polled) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for _ in 0..3 {
        let (set_too, driven, polled) = (set.clone(), driven.clone(), polled.clone());
        drop(set.spawn_local(async move {
            polled.set(polled.get() + 1);
            let _guard = OnDrop::new(move || {
                let mut drive = Box::pin(set_too.run_until(pending::<()>()));
                let driving = AssertUnwindSafe(|| poll_once(&mut drive));
                assert!(catch_unwind(driving).is_err(), "it has ended");
                driven.set(driven.get() + 1);
            });
            pending::<()>().await;
        }));
    }
    drop(set.spawn_local(async { panic!("the task's own") }));
    let mut drive = Box::pin(set.run_until(pending::<()>()));
    panic_of(|| poll_once(&mut drive)).says(&["LocalSet"]);
    drop(drive);
    assert_eq!((driven.get(), polled.get()), (3, 3));
    assert_eq!(Rc::strong_count(&set), 1, "a future of the set is left");
}

// Task-locals.

blitz_io::task_local! {
    static KEY: Arc<str>;
}

/// Returns the value of the task-local here.
fn key() -> Option<String> {
    KEY.try_with(|value| value.to_string()).ok()
}

#[test]
fn a_scope_that_is_leaked_after_a_poll_leaves_nothing_behind() {
    let mut leaked = Box::pin(KEY.scope("leaked".into(), async {
        assert_eq!(key().as_deref(), Some("leaked"));
        pending::<()>().await;
    }));
    assert!(poll_once(&mut leaked).is_pending());
    assert_eq!(key(), None);
    // Never dropped, but reachable, so a leak checker does not report it.
    static LEAKED: Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>> = Mutex::new(Vec::new());
    LEAKED.lock().unwrap().push(leaked);
    assert_eq!(key(), None);
    assert_eq!(KEY.sync_scope("next".into(), key).as_deref(), Some("next"));
    assert_eq!(key(), None);
}

#[test]
fn a_scope_may_be_polled_here_and_dropped_there_inside_of_another_scope() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let mut inner = Box::pin(KEY.scope("inner".into(), async move {
        let _guard = OnDrop::new(move || note.lock().unwrap().push(key()));
        pending::<()>().await;
    }));
    assert!(poll_once(&mut inner).is_pending());
    thread::spawn(move || {
        KEY.sync_scope("outer".into(), || {
            drop(inner);
            assert_eq!(key().as_deref(), Some("outer"));
        });
        assert_eq!(key(), None);
    })
    .join()
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), [Some("inner".to_owned())]);
}

#[test]
fn nested_scopes_that_panic_each_give_the_outer_value_back() {
    KEY.sync_scope("first".into(), || {
        let mut scopes = Box::pin(KEY.scope("second".into(), async {
            let third = KEY.scope("third".into(), async {
                let _guard = OnDrop::new(|| assert_eq!(key().as_deref(), Some("third")));
                panic!("inside of three");
            });
            let caught = poll_fn({
                let mut third = Box::pin(third);
                move |cx| {
                    let polling = AssertUnwindSafe(|| third.as_mut().poll(cx));
                    let panicked = catch_unwind(polling).is_err();
                    assert_eq!(key().as_deref(), Some("second"));
                    Poll::Ready(panicked)
                }
            });
            assert!(caught.await);
            assert_eq!(key().as_deref(), Some("second"));
        }));
        assert!(poll_once(&mut scopes).is_ready());
        assert_eq!(key().as_deref(), Some("first"));
    });
    assert_eq!(key(), None);
}

#[test]
fn a_value_that_reads_its_own_key_when_it_is_dropped_finds_what_is_around_it() {
    struct Reads(&'static str);
    blitz_io::task_local! {
        static READS: Reads;
    }
    thread_local! {
        static SEEN: RefCell<Vec<Option<&'static str>>> = const { RefCell::new(Vec::new()) };
    }
    impl Drop for Reads {
        fn drop(&mut self) {
            let seen = READS.try_with(|value| value.0).ok();
            SEEN.with_borrow_mut(|all| all.push(seen));
        }
    }
    READS.sync_scope(Reads("outer"), || {
        drop(READS.scope(Reads("never polled"), async {}));
        let mut done = Box::pin(READS.scope(Reads("done"), async {}));
        assert!(poll_once(&mut done).is_ready());
        drop(done);
        READS.sync_scope(Reads("called"), || ());
    });
    assert_eq!(SEEN.take(), [Some("outer"), Some("outer"), Some("outer"), None]);
}

// Trackers.

#[test]
fn a_blocking_closure_that_never_runs_is_tracked_until_it_is_dropped() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (tracker, gate) = (TaskTracker::new(), Gate::new());
    let blocks = {
        let gate = gate.clone();
        rt.handle().spawn_blocking(move || gate.block())
    };
    let seen = Arc::new(OnceLock::new());
    let witness = {
        let (tracker, seen) = (tracker.clone(), seen.clone());
        OnDrop::new(move || seen.set(tracker.len()).expect("it is dropped once"))
    };
    let never = tracker.spawn_blocking_on(move || drop(witness), rt.handle());
    never.abort();
    gate.open();
    rt.block_on(async {
        blocks.await.unwrap();
        assert!(never.await.unwrap_err().is_cancelled());
    });
    assert_eq!(seen.get(), Some(&1), "a wait would have ended before the closure was dropped");
    assert!(tracker.is_empty());
}

// Bounds.

#[test]
fn spawns_that_give_up_while_they_wait_lose_no_place() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread().worker_threads(2).max_bounded_tasks(2).build().unwrap();
    let (tally, ended) = (Tally::new(), Arc::new(AtomicUsize::new(0)));
    let mut set = JoinSet::new();
    for _ in 0..8 {
        let (tally, ended) = (tally.clone(), ended.clone());
        set.spawn_on(
            async move {
                let mut spawned = 0;
                for round in 0..200 {
                    let (token, ended) = (tally.token(), ended.clone());
                    let work = async move {
                        task::yield_now().await;
                        token.keep();
                        ended.fetch_add(1, SeqCst);
                    };
                    blitz_io::select! {
                        biased;
                        handle = task::spawn_bounded(work) => {
                            if let Ok(handle) = handle {
                                spawned += 1;
                                if round % 3 == 0 {
                                    handle.abort();
                                }
                            }
                        }
                        _ = task::yield_now() => {}
                    }
                }
                spawned
            },
            rt.handle(),
        );
    }
    let spawned: usize = rt.block_on(set.join_all()).into_iter().sum();
    assert!(spawned > 0);
    // All places are free again, so all of them can be taken at once.
    let gate = Gate::new();
    rt.block_on(async {
        let one = task::spawn_bounded(gate.opened()).await.unwrap();
        let two = task::spawn_bounded(gate.opened()).await.unwrap();
        assert!(task::try_spawn_bounded(async {}).is_err());
        gate.open();
        one.await.unwrap();
        two.await.unwrap();
    });
}

// What shutdown does to sets.

#[test]
fn members_in_every_state_end_with_their_runtime_and_are_joined_once() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(1), workers(2)] {
        let tally = Tally::new();
        let mut set = JoinSet::new();
        let mut aborts = Vec::new();
        for index in 0..60 {
            let token = tally.token();
            aborts.push(set.spawn_on(
                async move {
                    match index % 6 {
                        0 => pending::<()>().await,
                        1 => loop {
                            task::yield_now().await;
                        },
                        2 => task::shield(pending::<()>()).await,
                        3 => {}
                        4 => {
                            // Wakes itself for ever, without `yield_now`.
                            poll_fn::<(), _>(|cx| {
                                cx.waker().wake_by_ref();
                                Poll::Pending
                            })
                            .await;
                        }
                        _ => panic!("a member that panics"),
                    }
                    token.keep();
                },
                rt.handle(),
            ));
        }
        rt.block_on(async {
            for _ in 0..10 {
                task::yield_now().await;
            }
        });
        aborts.iter().step_by(7).for_each(task::AbortHandle::abort);
        let joiner = thread::spawn(move || {
            one_thread().block_on(async move {
                let mut ids = Vec::new();
                while let Some(joined) = set.join_next_with_id().await {
                    ids.push(joined.map_or_else(|error| error.id(), |(id, ())| id));
                }
                ids.sort();
                ids.dedup();
                ids.len()
            })
        });
        drop(rt);
        assert_eq!(joiner.join().unwrap(), 60);
        assert!(aborts.iter().all(task::AbortHandle::is_finished));
        tally.assert_all_dropped(60);
    }
}

#[test]
fn an_output_may_own_a_set_whose_outputs_own_sets() {
    let _watch = watchdog::start();
    #[allow(dead_code, reason = "it is only dropped")]
    enum Output {
        Set(JoinSet<Output>),
        Last(OnDrop<Box<dyn FnMut() + Send>>),
    }
    let rt = workers(2);
    let dropped = Gate::new();
    let mut chain = Output::Last(OnDrop::new(Box::new({
        let dropped = dropped.clone();
        move || dropped.open()
    })));
    for _ in 0..50 {
        let mut set = JoinSet::new();
        set.spawn_on(async move { chain }, rt.handle());
        chain = Output::Set(set);
    }
    drop(chain);
    rt.block_on(dropped.opened());
}

#[test]
fn a_local_runtime_ends_the_local_members_of_a_set_on_its_thread() {
    let _watch = watchdog::start();
    let rt = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
    let here = thread::current().id();
    let dropped = Rc::new(Cell::new(0));
    let mut set = rt.block_on(async {
        let mut set = JoinSet::new();
        for _ in 0..20 {
            let dropped = dropped.clone();
            set.spawn_local(async move {
                let _guard = OnDrop::new(move || {
                    assert_eq!(thread::current().id(), here);
                    dropped.set(dropped.get() + 1);
                });
                pending::<()>().await;
            });
        }
        task::yield_now().await;
        set
    });
    let other = thread::spawn(move || {
        set.abort_all();
        one_thread().block_on(async {
            let mut count = 0;
            while set.join_next().await.is_some() {
                count += 1;
            }
            count
        })
    });
    drop(rt);
    assert_eq!((dropped.get(), other.join().unwrap()), (20, 20));
}

// Blocking in place where a task ends.

#[test]
fn whatever_runs_at_the_end_of_a_task_may_block_in_place() {
    let _watch = watchdog::start();
    /// Blocks in place until another task of the one worker has run.
    struct Blocks(blitz_io::runtime::Handle, Arc<AtomicUsize>);
    impl Drop for Blocks {
        fn drop(&mut self) {
            let (handle, count) = (self.0.clone(), self.1.clone());
            task::block_in_place(move || {
                let gate = Gate::new();
                let opener = gate.clone();
                drop(handle.spawn(async move { opener.open() }));
                gate.block();
                count.fetch_add(1, SeqCst);
            });
        }
    }
    let hooked = Arc::new(AtomicUsize::new(0));
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_task_terminate({
            let hooked = hooked.clone();
            move |_| {
                task::block_in_place(|| hooked.fetch_add(1, SeqCst));
            }
        })
        .build()
        .unwrap();
    let (handle, count) = (rt.handle().clone(), Arc::new(AtomicUsize::new(0)));
    rt.block_on(async {
        for round in 0..20 {
            let blocks = || Blocks(handle.clone(), count.clone());
            // The output of a task whose handle was dropped.
            let output = blocks();
            let gate = Gate::new();
            let opener = gate.clone();
            drop(task::spawn(async move {
                let _opens = OnDrop::new(move || opener.open());
                output
            }));
            gate.opened().await;
            // A future that is aborted, alone and in a set that a member drops.
            let future = blocks();
            let aborted = task::spawn(async move {
                let _future = future;
                pending::<()>().await;
            });
            task::yield_now().await;
            aborted.abort();
            assert!(aborted.await.unwrap_err().is_cancelled());
            let mut set = JoinSet::new();
            for _ in 0..3 {
                let (future, output) = (blocks(), blocks());
                set.spawn(async move {
                    let _future = future;
                    if round % 2 == 0 {
                        pending::<()>().await;
                    }
                    Some(output)
                });
            }
            task::spawn(async move { drop(set) }).await.unwrap();
        }
    });
    watchdog::until(|| count.load(SeqCst) == 20 * (1 + 1 + 6));
    drop(rt);
    assert!(hooked.load(SeqCst) >= 20 * 6);
}

// Macros.

#[test]
fn a_branch_that_panics_takes_the_others_with_it_once() {
    let tally = Tally::new();
    let guarded = |token: crate::support::drop_tally::Token| async move {
        let _token = token;
        pending::<()>().await;
    };
    for which in 0..3 {
        let (left, right) = (guarded(tally.token()), guarded(tally.token()));
        let panics = async { panic!("a branch's own") };
        let mut future: Pin<Box<dyn Future<Output = ()>>> = match which {
            0 => Box::pin(async {
                blitz_io::select! {
                    biased;
                    _ = left => {}
                    _ = panics => {}
                    _ = right => {}
                }
            }),
            1 => Box::pin(async {
                blitz_io::join!(left, panics, right);
            }),
            _ => Box::pin(async {
                let fine = |future| async move {
                    let future: Pin<Box<dyn Future<Output = ()>>> = future;
                    future.await;
                    Ok::<(), ()>(())
                };
                let _ = blitz_io::try_join!(
                    fine(Box::pin(left)),
                    fine(Box::pin(panics)),
                    fine(Box::pin(right))
                );
            }),
        };
        panic_of(|| poll_once(&mut future)).says(&["a branch's own"]);
        tally.assert_all_dropped(2 * (which + 1));
        drop(future);
        tally.assert_all_dropped(2 * (which + 1));
    }
}

#[test]
fn a_local_set_that_is_dropped_by_a_panic_survives_destructors_that_panic() {
    let dropped = Rc::new(Cell::new(0));
    let caught = panic_of(|| {
        let set = LocalSet::new();
        for _ in 0..3 {
            let dropped = dropped.clone();
            drop(set.spawn_local(async move {
                let _guard = OnDrop::new(move || {
                    dropped.set(dropped.get() + 1);
                    panic!("a destructor's own");
                });
                pending::<()>().await;
            }));
        }
        assert!(once(set.run_until(task::yield_now())).is_pending());
        panic!("the owner's own");
    });
    caught.says(&["the owner's own"]);
    assert_eq!(dropped.get(), 3);
}

// Metrics.

#[test]
fn blocking_work_at_a_shutdown_is_not_counted_as_a_task_that_ended() {
    let _watch = watchdog::start();
    let stopped = Arc::new(AtomicUsize::new(0));
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        // Without preemption, the stuck worker keeps its core.
        .preemption(Preemption::disabled())
        .max_blocking_threads(1)
        .on_thread_stop({
            let stopped = stopped.clone();
            move || {
                stopped.fetch_add(1, SeqCst);
            }
        })
        .build()
        .unwrap();
    let (metrics, gate, stuck) = (rt.metrics(), Gate::new(), Gate::new());
    // The only blocking thread and one worker are stuck.
    let begun = Gate::new();
    rt.spawn_blocking({
        let (gate, begun) = (gate.clone(), begun.clone());
        move || {
            begun.open();
            gate.block();
        }
    });
    begun.block();
    let task = rt.spawn({
        let (gate, stuck) = (gate.clone(), stuck.clone());
        async move {
            stuck.open();
            gate.block();
        }
    });
    stuck.block();
    // Queued jobs, spawned by the other worker, from outside, and in a set.
    let mut set = JoinSet::new();
    set.spawn_blocking_on(|| (), rt.handle());
    rt.block_on(rt.spawn(async { drop(task::spawn_blocking(|| ())) })).unwrap();
    watchdog::until(|| metrics.num_alive_tasks() == 1);
    rt.shutdown_background();
    watchdog::until(|| stopped.load(SeqCst) >= 1);
    assert_eq!(metrics.num_alive_tasks(), 1, "the one that is stuck");
    gate.open();
    assert!(one_thread().block_on(task).is_ok());
    assert!(one_thread().block_on(set.join_next()).unwrap().is_ok(), "it was queued before");
}
