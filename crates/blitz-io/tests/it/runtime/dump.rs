//! Tests that dumps list every task that is alive and what it does, whatever the workers do.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use blitz_io::{
    runtime::{
        Handle,
        dump::{Dump, State},
    },
    task::{self, yield_now},
};

use crate::support::{
    gate::Gate,
    runtimes::{self, workers},
    watchdog,
};

/// Takes dumps until one is complete. A dump does not wait for a worker that the system has
/// suspended in the middle of a change of its task list, so a list may be missing.
pub(crate) fn whole(handle: &Handle) -> Dump {
    loop {
        let dump = handle.dump_now();
        if dump.missed_lists() == 0 {
            return dump;
        }
    }
}

#[test]
fn a_dump_has_each_task_once_with_name_place_and_state() {
    let _watch = watchdog::start();
    for rt in runtimes::all_kinds() {
        let gate = Gate::new();
        let named = task::Builder::new().name("waiter").spawn_on(gate.opened(), rt.handle());
        let named = named.unwrap();
        let line = line!() - 2;
        let plain: Vec<_> = (0..1_000).map(|_| rt.spawn(gate.opened())).collect();
        let from_inside = rt.block_on(rt.spawn({
            let gate = gate.clone();
            async move { task::spawn(gate.opened()) }
        }));
        let from_inside = from_inside.unwrap();
        let waits = gate.clone();
        runtimes::run_until(&rt, move || waits.waiting() == 1_002);
        let dump = whole(rt.handle());
        let mut ids: Vec<_> = plain.iter().map(task::JoinHandle::id).collect();
        ids.extend([named.id(), from_inside.id()]);
        ids.sort();
        assert_eq!(dump.tasks().iter().map(|task| task.id()).collect::<Vec<_>>(), ids);
        let found = dump.tasks().iter().find(|found| found.id() == named.id()).unwrap();
        assert_eq!((found.name(), found.spawned_at().line()), (Some("waiter"), line));
        assert!(found.spawned_at().file().ends_with("dump.rs"));
        assert_eq!(found.state(), State::Idle);
        assert!(found.trace().future().contains("Opened"), "{}", found.trace());
        gate.open();
        for task in plain {
            rt.block_on(task).unwrap();
        }
        rt.block_on(named).unwrap();
        rt.block_on(from_inside).unwrap();
        assert_eq!(rt.handle().dump_now().tasks().iter().count(), 0);
    }
}

#[test]
fn a_dump_works_while_every_worker_is_stuck() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let (gate, inside) = (Gate::new(), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let stuck: Vec<_> = (0..2)
        .map(|_| {
            let (gate, inside) = (gate.clone(), inside.clone());
            rt.spawn(async move {
                inside.fetch_add(1, Relaxed);
                gate.block();
            })
        })
        .collect();
    watchdog::until(|| {
        // A worker has to be woken for the second task.
        drop(rt.spawn(async {}));
        inside.load(Relaxed) == 2
    });
    let queued = rt.spawn(async {});
    let dump = rt.handle().dump_now();
    let state = |id| dump.tasks().iter().find(|task| task.id() == id).map(|task| task.state());
    for task in &stuck {
        assert_eq!(state(task.id()), Some(State::Running));
    }
    assert_eq!(state(queued.id()), Some(State::Queued));
    gate.open();
    rt.block_on(queued).unwrap();
}

#[test]
fn a_dump_shows_what_a_task_waits_for() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let inner = rt.spawn(gate.opened());
    let outer = rt.spawn(inner);
    let looks = {
        let (handle, id) = (rt.handle().clone(), outer.id());
        move || {
            let dump = whole(&handle);
            let found = dump.tasks().iter().find(|task| task.id() == id).expect("it lives");
            found.state() == State::Idle
                && found.trace().waits_for().is_some_and(|what| what.contains("JoinHandle"))
        }
    };
    watchdog::until(looks);
    gate.open();
    rt.block_on(outer).unwrap().unwrap();
}

#[test]
fn a_dump_names_blocking_work_and_what_sets_wait_for() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let blocks = {
        let gate = gate.clone();
        task::Builder::new().name("reader").spawn_blocking_on(move || gate.block(), rt.handle())
    };
    let blocks = blocks.unwrap();
    let waits = {
        let gate = gate.clone();
        rt.spawn(async move {
            let mut set = task::JoinSet::new();
            set.build_task().name("member").spawn(gate.opened()).unwrap();
            set.join_next().await.unwrap().unwrap();
        })
    };
    watchdog::until(|| {
        let dump = whole(rt.handle());
        let find = |id| dump.tasks().iter().find(|task| task.id() == id).expect("it lives");
        find(blocks.id()).state() == State::Running
            && find(blocks.id()).name() == Some("reader")
            && find(waits.id()).trace().waits_for().is_some_and(|what| what.contains("set"))
            && dump.tasks().iter().any(|task| task.name() == Some("member"))
    });
    gate.open();
    rt.block_on(waits).unwrap();
    rt.block_on(blocks).unwrap();
}

#[test]
fn time_in_a_state_goes_on() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = rt.spawn(gate.opened());
    let age = || {
        let dump = whole(rt.handle());
        dump.tasks().iter().find(|found| found.id() == task.id()).unwrap().time_in_state()
    };
    watchdog::until(|| gate.waiting() == 1);
    watchdog::until(|| age().as_millis() >= 5);
    gate.open();
    rt.block_on(task).unwrap();
}

#[test]
fn dumps_against_spawns_and_ends_lose_nothing() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let gate = Gate::new();
    let kept: Vec<_> = (0..10).map(|_| rt.spawn(gate.opened())).collect();
    let over = Arc::new(AtomicBool::new(false));
    let churn: Vec<_> = (0..2)
        .map(|_| {
            let over = over.clone();
            rt.spawn(async move {
                let mut spawned = 0u32;
                // At least once, because the dumps may be complete before this thread starts.
                loop {
                    let tasks: Vec<_> = (0..20)
                        .map(|_| task::Builder::new().name("fly").spawn(yield_now()))
                        .collect();
                    for task in tasks {
                        task.unwrap().await.unwrap();
                        spawned += 1;
                    }
                    if over.load(Relaxed) {
                        return spawned;
                    }
                }
            })
        })
        .collect();
    let mut whole = 0;
    for _ in 0..200 {
        let dump = rt.handle().dump_now();
        let ids: Vec<_> = dump.tasks().iter().map(|task| task.id()).collect();
        // A list is left out, and counted, if the system suspended the thread that was changing it,
        // which happens on a loaded machine.
        let is_whole = dump.missed_lists() == 0;
        whole += usize::from(is_whole);
        let found = kept.iter().all(|task| ids.contains(&task.id()));
        assert!(found || !is_whole, "a task is missing");
        assert!(dump.tasks().iter().all(|task| task.name().is_none_or(|name| name == "fly")));
        drop(rt.spawn(async {}));
    }
    assert!(whole > 0, "every dump was short of a list");
    over.store(true, Relaxed);
    for task in churn {
        assert!(rt.block_on(task).unwrap() > 0);
    }
    gate.open();
}

#[test]
fn a_dump_of_a_runtime_that_is_gone_is_empty() {
    let rt = workers(2);
    drop(rt.spawn(std::future::pending::<()>()));
    let handle = rt.handle().clone();
    drop(rt);
    assert_eq!(handle.dump_now().tasks().iter().count(), 0);
}

#[test]
fn a_loop_over_dumps_lets_its_select_go_on() {
    let _watch = watchdog::start();
    for rt in runtimes::all_kinds() {
        let handle = rt.handle().clone();
        rt.block_on(async {
            blitz_io::select! {
                biased;
                () = async { loop { drop(handle.dump().await) } } => unreachable!("it has no end"),
                () = yield_now() => {}
            }
        });
    }
}
