//! Runs spawns that report pressure and spawns that wait for a place.

use std::{
    future::{Future, poll_fn},
    task::{Context, Poll, Waker},
    thread,
};

use blitz_io::{
    runtime::{Builder, Runtime},
    task,
};

use crate::{
    ON_PURPOSE, Scenario,
    support::{gate::Gate, manual_poll::poll_once},
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("bounded spawns that end in every way", ends),
    ("bounded spawns that wait and are dropped", dropped_waiters),
    ("bounded spawns that wait when their runtime ends", waiters_at_the_end),
    ("bounded and reporting spawns that are rejected", rejected),
];

fn kinds(places: usize) -> Vec<Runtime> {
    let mut one = Builder::new_current_thread();
    let mut two = Builder::new_multi_thread();
    two.worker_threads(2);
    let build = |builder: &mut Builder| builder.max_bounded_tasks(places).build().unwrap();
    vec![build(&mut one), build(&mut two)]
}

fn ends() {
    for rt in kinds(2) {
        rt.block_on(async {
            for n in 0..10 {
                drop(task::spawn_bounded(async move { n.to_string() }).await.unwrap());
            }
            let joined = task::spawn_bounded(async { String::from("joined") }).await.unwrap();
            joined.await.unwrap();
            let falls = task::spawn_bounded(async { panic!("{ON_PURPOSE}") }).await.unwrap();
            assert!(falls.await.unwrap_err().is_panic());
            let aborted = task::spawn_bounded(for_ever()).await.unwrap();
            aborted.abort();
            assert!(aborted.await.unwrap_err().is_cancelled());
            let large = [1_u8; 64 * 1024];
            let large = task::spawn_bounded(async move { large.len() }).await.unwrap();
            large.await.unwrap();
        });
        // This task is alive when the runtime ends.
        drop(rt.try_spawn_bounded(for_ever()));
    }
}

fn dropped_waiters() {
    for rt in kinds(1) {
        let gate = Gate::new();
        let first = rt.try_spawn_bounded(gate.opened()).unwrap();
        let mut waiters: Vec<_> = (0..5).map(|_| Box::pin(rt.spawn_bounded(for_ever()))).collect();
        for waiter in &mut waiters {
            assert!(poll_once(waiter).is_pending());
        }
        let last = waiters.pop();
        // From the middle of the wait queue, from its end, and one that was never polled.
        drop(waiters.remove(2));
        drop(rt.spawn_bounded(for_ever()));
        gate.open();
        rt.block_on(first).unwrap();
        // The first has been granted a place and was not polled since; the place is passed on.
        drop(waiters);
        let last = rt.block_on(last.unwrap()).unwrap();
        last.abort();
        assert!(rt.block_on(last).unwrap_err().is_cancelled());
        // A task that waits for a place and is aborted.
        let _held = rt.try_spawn_bounded(for_ever());
        let waits = rt.spawn(async { task::spawn_bounded(for_ever()).await.is_ok() });
        rt.block_on(rt.spawn(async {})).unwrap();
        waits.abort();
        let _ = rt.block_on(waits);
    }
}

fn waiters_at_the_end() {
    for rt in kinds(1) {
        let _held = rt.try_spawn_bounded(for_ever()).unwrap();
        let mut outside = Box::pin(rt.spawn_bounded(for_ever()));
        let waits = outside.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(waits.is_pending());
        // In a task of the same runtime.
        rt.spawn(async { task::spawn_bounded(for_ever()).await.is_ok() });
        // On a thread that sleeps.
        let (handle, asleep) = (rt.handle().clone(), Gate::new());
        let polled_once = asleep.clone();
        let sleeper = thread::spawn(move || {
            let mut waiting = Box::pin(handle.spawn_bounded(for_ever()));
            handle.block_on(poll_fn(|cx| {
                let polled = waiting.as_mut().poll(cx);
                polled_once.open();
                polled.map(|spawned| spawned.is_ok())
            }))
        });
        asleep.block();
        rt.block_on(rt.spawn(async {})).unwrap();
        drop(rt);
        assert!(!sleeper.join().unwrap());
        let Poll::Ready(Err(rejected)) = poll_once(&mut outside) else { panic!("it waits on") };
        drop(rejected.into_inner());
    }
}

fn rejected() {
    for rt in kinds(1) {
        let _held = rt.try_spawn_bounded(for_ever()).unwrap();
        drop(rt.try_spawn_bounded(for_ever()).unwrap_err());
        let handle = rt.handle().clone();
        drop(rt);
        drop(handle.try_spawn_bounded(for_ever()).unwrap_err().into_inner());
        drop(handle.block_on(handle.spawn_bounded(for_ever())).unwrap_err());
        drop(handle.spawn_reporting(for_ever()).unwrap_err());
    }
    let rt = Builder::new_current_thread().backpressure_threshold(2).build().unwrap();
    let over = (0..8).filter(|_| rt.spawn_reporting(for_ever()).is_err()).count();
    assert_eq!(over, 4);
}
