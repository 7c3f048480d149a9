//! Tests that the hooks of threads are called as often, and on the threads, as documented, and
//! that no task is lost that a hook wakes or spawns.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, ThreadId},
};

use blitz_io::runtime::{Builder, Handle, Preemption, Runtime};

use crate::support::{gate::Gate, manual_poll::poll_once, runtimes::on_every_worker, watchdog};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Call {
    Start,
    Stop,
    Park,
    Unpark,
}

type Calls = Arc<Mutex<Vec<(ThreadId, Call)>>>;

/// Creates a runtime that records every call of a hook.
fn logged(mut builder: Builder) -> (Runtime, Calls) {
    let calls = Calls::default();
    let log = |call| {
        let calls = calls.clone();
        move || calls.lock().unwrap().push((thread::current().id(), call))
    };
    builder
        .on_thread_start(log(Call::Start))
        .on_thread_stop(log(Call::Stop))
        .on_thread_park(log(Call::Park))
        .on_thread_unpark(log(Call::Unpark));
    (builder.build().unwrap(), calls)
}

#[test]
fn each_worker_starts_then_parks_and_unparks_in_turn_then_stops() {
    let _watch = watchdog::start();
    let mut builder = Builder::new_multi_thread();
    // Threads that replace a worker in a long poll would call the hooks, too.
    builder.worker_threads(3).preemption(Preemption::disabled());
    let (rt, calls) = logged(builder);
    let threads = on_every_worker(&rt, || thread::current().id());
    for _ in 0..100 {
        rt.block_on(rt.spawn(async {})).unwrap();
    }
    drop(rt);
    let calls = calls.lock().unwrap();
    for (thread, call) in &*calls {
        assert!(threads.contains(thread), "{call:?} on a thread that is no worker");
    }
    for thread in threads {
        let mine: Vec<Call> =
            calls.iter().filter(|(id, _)| *id == thread).map(|(_, call)| *call).collect();
        let [Call::Start, between @ .., Call::Stop] = &mine[..] else {
            panic!("not from start to stop: {mine:?}");
        };
        let (pairs, rest) = between.as_chunks::<2>();
        assert!(rest.is_empty(), "a park without an unpark: {mine:?}");
        assert!(pairs.iter().all(|pair| *pair == [Call::Park, Call::Unpark]), "{mine:?}");
    }
}

#[test]
fn a_worker_that_was_asleep_has_parked_and_unparked() {
    let _watch = watchdog::start();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    let (rt, calls) = logged(builder);
    let count = |call| calls.lock().unwrap().iter().filter(|(_, each)| *each == call).count();
    for round in 1..=20 {
        watchdog::until(|| rt.metrics().worker_park_unpark_count(0) % 2 == 1);
        watchdog::until(|| count(Call::Park) >= round);
        rt.block_on(rt.spawn(async {})).unwrap();
        assert!(count(Call::Unpark) >= round, "it ran a task without waking up");
    }
}

#[test]
fn a_start_hook_runs_before_any_work_of_its_thread() {
    let _watch = watchdog::start();
    thread_local!(static STARTED: AtomicBool = const { AtomicBool::new(false) });
    for _ in 0..50 {
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(|| STARTED.with(|started| started.store(true, Relaxed)))
            .build()
            .unwrap();
        let tasks: Vec<_> = (0..10)
            .map(|_| rt.spawn(async { STARTED.with(|started| started.load(Relaxed)) }))
            .collect();
        for task in tasks {
            assert!(rt.block_on(task).unwrap(), "a task ran before the hook");
        }
    }
}

#[test]
fn hooks_find_their_runtime() {
    let _watch = watchdog::start();
    let found = Arc::new(Mutex::new(Vec::new()));
    let look = || {
        let found = found.clone();
        move || found.lock().unwrap().push(Handle::try_current().map(|handle| handle.id()).ok())
    };
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(look())
        .on_thread_stop(look())
        .on_thread_park(look())
        .on_thread_unpark(look())
        .build()
        .unwrap();
    let id = rt.handle().id();
    rt.block_on(rt.spawn(async {})).unwrap();
    drop(rt);
    let found = found.lock().unwrap();
    assert!(found.len() >= 2 && found.iter().all(|each| *each == Some(id)), "{found:?}");
}

#[test]
fn a_current_thread_runtime_parks_on_the_thread_inside_block_on_and_starts_none() {
    let _watch = watchdog::start();
    let (rt, calls) = logged(Builder::new_current_thread());
    let gate = Gate::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            watchdog::until(|| {
                calls.lock().unwrap().last().is_some_and(|last| last.1 == Call::Park)
            });
            gate.open();
        });
        rt.block_on(gate.opened());
    });
    drop(rt);
    let here = thread::current().id();
    let calls = calls.lock().unwrap();
    assert_eq!(calls[..], [(here, Call::Park), (here, Call::Unpark)].repeat(calls.len() / 2));
}

#[test]
fn a_panic_in_any_hook_ends_there_and_the_thread_works_on() {
    let _watch = watchdog::start();
    for bad in [Call::Start, Call::Stop, Call::Park, Call::Unpark] {
        let called = Arc::new(AtomicUsize::new(0));
        let asleep = Arc::new(AtomicIsize::new(0));
        let hook = |call| {
            let (called, asleep) = (called.clone(), asleep.clone());
            move || {
                asleep.fetch_add((call == Call::Park).into(), Relaxed);
                asleep.fetch_sub((call == Call::Unpark).into(), Relaxed);
                if bad == call {
                    called.fetch_add(1, Relaxed);
                    panic!("the hook for {call:?} panics");
                }
            }
        };
        let rt = Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(hook(Call::Start))
            .on_thread_stop(hook(Call::Stop))
            .on_thread_park(hook(Call::Park))
            .on_thread_unpark(hook(Call::Unpark))
            .build()
            .unwrap();
        assert_eq!(on_every_worker(&rt, || 1), [1, 1], "both workers work");
        for _ in 0..20 {
            rt.block_on(rt.spawn(async {})).unwrap();
        }
        let mut left = rt.spawn(std::future::pending::<()>());
        // Waits until each worker has parked, so that the end of the runtime unparks it.
        watchdog::until(|| asleep.load(Relaxed) == 2);
        drop(rt);
        assert!(called.load(Relaxed) >= 2, "{bad:?}");
        assert!(poll_once(&mut left).is_ready(), "a task was lost");
    }
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
