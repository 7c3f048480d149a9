//! Runs local sets and local runtimes: what stays on its thread is freed there.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    sync::mpsc,
    task::{Poll, Waker},
    thread,
};

use blitz_io::{
    runtime::{Builder, LocalOptions, LocalRuntime, UnhandledPanic},
    task::{self, LocalSet, yield_now},
};

use crate::{
    ON_PURPOSE, Scenario, panics,
    support::{
        gate::Gate,
        manual_poll::poll_once,
        runtimes::{all_kinds, one_thread, workers},
    },
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a local set that is awaited", set_awaited),
    ("a local set that is dropped with tasks in every state", set_dropped),
    ("a local set whose tasks are woken and aborted elsewhere while it goes", set_raced),
    ("wakers and handles of a local set that is gone", set_gone),
    ("a local set that ends when a task panics", set_strict),
    ("a local set in a thread-local", set_in_thread_local),
    ("a local runtime", runtime),
    ("a local runtime that is dropped with tasks in every state", runtime_dropped),
    ("wakers and handles of a local runtime that is gone", runtime_gone),
    ("a local runtime in a thread-local", runtime_in_thread_local),
];

/// Sends its waker and waits for ever, with a value that is not `Send`.
async fn parks(sender: mpsc::Sender<Waker>) {
    let stays = Rc::new(ON_PURPOSE.to_owned());
    poll_fn(|cx| {
        let _ = sender.send(cx.waker().clone());
        Poll::Ready(())
    })
    .await;
    for_ever().await;
    drop(stays);
}

fn set_awaited() {
    for rt in all_kinds() {
        let set = LocalSet::new();
        for n in 0..10 {
            let stays = Rc::new(n.to_string());
            set.spawn_local(async move {
                yield_now().await;
                let inner = stays.clone();
                task::spawn_local(async move { inner.len() });
                stays
            });
        }
        set.spawn_local(for_ever()).abort();
        set.spawn_local(async { panic!("{ON_PURPOSE}") });
        let output = set.block_on(&rt, async { task::spawn_local(async { Rc::new(1) }).await });
        assert_eq!(*output.unwrap(), 1);
        rt.block_on(set);
        rt.block_on(async {
            LocalSet::new().run_until(async { task::spawn_local(yield_now()).await }).await.unwrap()
        });
    }
}

fn set_dropped() {
    let mut set = LocalSet::new();
    let (sender, wakers) = mpsc::channel();
    for _ in 0..5 {
        drop(set.spawn_local(parks(sender.clone())));
    }
    let done = set.spawn_local(async { Rc::new(1) });
    let aborted = set.spawn_local(for_ever());
    assert!(poll_once(&mut set).is_pending());
    aborted.abort();
    // One task was woken and not polled again, and one was spawned and never polled.
    wakers.recv().unwrap().wake();
    let queued = set.spawn_local(for_ever());
    drop(set);
    drop((done, aborted));
    assert!(poll_once(&mut { queued }).is_ready());
    drop(LocalSet::new().enter());
}

fn set_raced() {
    let (set, (sender, wakers)) = (LocalSet::new(), mpsc::channel());
    let (begin, mut aborts) = (Gate::new(), Vec::new());
    for _ in 0..10 {
        aborts.push(set.spawn_local(parks(sender.clone())).abort_handle());
    }
    drop(sender);
    let rt = one_thread();
    set.block_on(&rt, yield_now());
    let go = begin.clone();
    let other = thread::spawn(move || {
        go.block();
        wakers.try_iter().for_each(Waker::wake);
        aborts.iter().for_each(|abort| abort.abort());
    });
    begin.open();
    drop(set);
    other.join().unwrap();
}

fn set_gone() {
    let (mut set, (sender, wakers)) = (LocalSet::new(), mpsc::channel());
    let handles: Vec<_> = (0..4).map(|_| set.spawn_local(parks(sender.clone()))).collect();
    drop(sender);
    assert!(poll_once(&mut set).is_pending());
    let entered = set.enter();
    drop(set);
    drop(task::spawn_local(for_ever()));
    drop(entered);
    let other = thread::spawn(move || {
        for waker in wakers.iter() {
            waker.wake_by_ref();
            let copy = waker.clone();
            waker.wake();
            copy.wake();
        }
        handles.iter().for_each(|handle| handle.abort());
        for handle in handles {
            assert!(handle.blocking_join().unwrap_err().is_cancelled());
        }
    });
    other.join().unwrap();
}

fn set_strict() {
    for rt in all_kinds() {
        let mut set = LocalSet::new();
        set.unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let others: Vec<_> = (0..4).map(|_| set.spawn_local(for_ever())).collect();
        set.spawn_local(async { panic!("{ON_PURPOSE}") });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            set.block_on(&rt, for_ever());
        }));
        assert!(ended.is_err());
        drop((set, others));
    }
}

thread_local! {
    static SET: RefCell<Option<LocalSet>> = const { RefCell::new(None) };
    static RUNTIME: RefCell<Option<LocalRuntime>> = const { RefCell::new(None) };
}

fn set_in_thread_local() {
    let (sender, wakers) = mpsc::channel();
    let owner = thread::spawn(move || {
        let mut set = LocalSet::new();
        set.spawn_local(parks(sender));
        assert!(poll_once(&mut set).is_pending());
        SET.with(|slot| *slot.borrow_mut() = Some(set));
    });
    let waker = wakers.recv().unwrap();
    owner.join().unwrap();
    waker.wake();
}

fn runtime() {
    let rt = LocalRuntime::new().unwrap();
    let before = rt.spawn_local(async { Rc::new(1) });
    rt.block_on(async {
        before.await.unwrap();
        let stays = Rc::new(ON_PURPOSE.to_owned());
        let inner = stays.clone();
        task::spawn_local(async move {
            yield_now().await;
            inner.len()
        })
        .await
        .unwrap();
        assert!(task::spawn_local(async { panic!("{ON_PURPOSE}") }).await.unwrap_err().is_panic());
        let aborted = task::spawn_local(for_ever());
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        blitz_io::spawn(async { String::from("send") }).await.unwrap();
        task::spawn_blocking(|| String::from("blocking")).await.unwrap();
        drop(task::spawn_local(async move { stays }));
    });
    let handle = rt.handle().clone();
    let spawner = thread::spawn(move || handle.spawn(async { String::from("elsewhere") }));
    let elsewhere = spawner.join().unwrap();
    assert_eq!(rt.block_on(elsewhere).unwrap(), "elsewhere");
}

fn runtime_dropped() {
    let ways: [fn(LocalRuntime); 3] = [drop, LocalRuntime::shutdown_background, |rt| {
        rt.shutdown_timeout(std::time::Duration::from_millis(1))
    }];
    for end in ways {
        let rt = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
        let (sender, wakers) = mpsc::channel();
        for _ in 0..3 {
            drop(rt.spawn_local(parks(sender.clone())));
        }
        let done = rt.spawn_local(async { 1 });
        let aborted = rt.spawn_local(for_ever());
        rt.block_on(yield_now());
        aborted.abort();
        wakers.recv().unwrap().wake();
        let queued = rt.spawn_local(for_ever());
        let (begun, go_on) = (Gate::new(), Gate::new());
        let (entered, wait) = (begun.clone(), go_on.clone());
        let blocks = rt.spawn_blocking(move || {
            entered.open();
            wait.block();
            String::new()
        });
        begun.block();
        let opener = thread::spawn(move || go_on.open());
        end(rt);
        opener.join().unwrap();
        blocks.blocking_join().unwrap();
        drop((done, aborted, queued));
    }
}

fn runtime_gone() {
    let (rt, (sender, wakers)) = (LocalRuntime::new().unwrap(), mpsc::channel());
    let handles: Vec<_> = (0..4).map(|_| rt.spawn_local(parks(sender.clone()))).collect();
    drop(sender);
    rt.block_on(yield_now());
    let handle = rt.handle().clone();
    drop(rt);
    let other = thread::spawn(move || {
        wakers.iter().for_each(Waker::wake);
        handles.iter().for_each(|handle| handle.abort());
        assert!(handle.spawn(for_ever()).is_finished());
    });
    other.join().unwrap();
    let strict = Builder::new_current_thread()
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build_local(LocalOptions::default())
        .unwrap();
    strict.spawn_local(async { panic!("{ON_PURPOSE}") });
    panics(|| strict.block_on(for_ever()));
}

fn runtime_in_thread_local() {
    let owner = thread::spawn(|| {
        let rt = LocalRuntime::new().unwrap();
        rt.spawn_local(for_ever());
        rt.block_on(yield_now());
        RUNTIME.with(|slot| *slot.borrow_mut() = Some(rt));
    });
    owner.join().unwrap();
    // A worker's thread-local may hold a set as well.
    let rt = workers(1);
    let there = rt.spawn(async {
        let set = LocalSet::new();
        set.spawn_local(for_ever());
        SET.with(|slot| *slot.borrow_mut() = Some(set));
    });
    rt.block_on(there).unwrap();
}
