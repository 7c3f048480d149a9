//! Tests task trackers: a wait ends when everything that is tracked is gone, and not before.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::task::{self, TaskTracker};

use crate::support::{
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, workers},
    watchdog,
};

#[test]
fn a_wait_ends_after_the_last_future_has_been_dropped() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tracker, tally, gate) = (TaskTracker::new(), Tally::new(), Gate::new());
        for _ in 0..100 {
            let (token, opened) = (tally.token(), gate.opened());
            let work = async move {
                opened.await;
                task::yield_now().await;
                token.keep();
            };
            tracker.spawn_on(work, rt.handle());
        }
        tracker.close();
        assert_eq!(poll_once(&mut tracker.wait()), Poll::Pending);
        gate.open();
        rt.block_on(tracker.wait());
        tally.assert_all_dropped(100);
        assert!(tracker.is_empty() && tracker.is_closed());
    }
}

#[test]
fn an_open_tracker_is_waited_for_though_it_is_empty() {
    let tracker = TaskTracker::new();
    let mut wait = tracker.wait();
    assert_eq!(poll_once(&mut wait), Poll::Pending);
    assert!(tracker.close());
    assert_eq!(poll_once(&mut wait), Poll::Ready(()));
    assert!(!tracker.close(), "it was closed already");
}

#[test]
fn a_wait_ends_though_the_tracker_was_over_only_in_between() {
    let tracker = TaskTracker::new();
    let (mut before, token) = (tracker.wait(), tracker.token());
    tracker.close();
    assert_eq!(poll_once(&mut before), Poll::Pending);
    drop(token);
    assert!(tracker.reopen() && !tracker.reopen());
    let _token = tracker.token();
    assert_eq!(poll_once(&mut before), Poll::Ready(()));
    assert_eq!(poll_once(&mut tracker.wait()), Poll::Pending, "a wait that began later goes on");
}

#[test]
fn every_waiter_is_woken() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let (tracker, woken) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)));
    let token = tracker.token();
    let waiters: Vec<_> = (0..10)
        .map(|_| {
            let (tracker, woken) = (tracker.clone(), woken.clone());
            rt.spawn(async move {
                tracker.wait().await;
                woken.fetch_add(1, Relaxed);
            })
        })
        .collect();
    tracker.close();
    assert_eq!(woken.load(Relaxed), 0);
    drop(token);
    waiters.into_iter().for_each(|waiter| rt.block_on(waiter).unwrap());
    assert_eq!(woken.load(Relaxed), 10);
}

#[test]
fn tasks_that_are_aborted_or_panic_are_tracked_no_longer() {
    let _watch = watchdog::start();
    let rt = workers(2);
    rt.block_on(async {
        let tracker = TaskTracker::new();
        tracker.spawn(pending::<()>()).abort();
        tracker.spawn(async { panic!("a tracked panic") });
        tracker.close();
        tracker.wait().await;
        assert_eq!(tracker.len(), 0);
    });
}

#[test]
fn a_future_that_completed_is_tracked_until_it_is_dropped() {
    let tracker = TaskTracker::new();
    let mut tracked = Box::pin(tracker.track_future(async { 1 }));
    assert_eq!(poll_once(&mut tracked), Poll::Ready(1));
    assert_eq!(tracker.len(), 1);
    drop(tracked);
    assert!(tracker.is_empty());
}

#[test]
fn a_token_counts_for_each_of_its_clones() {
    let tracker = TaskTracker::default();
    let token = tracker.token();
    let another = token.clone();
    assert_eq!(tracker.len(), 2);
    assert!(TaskTracker::ptr_eq(another.task_tracker(), &tracker));
    drop((token, another));
    assert_eq!(format!("{tracker:?}"), "TaskTracker { len: 0, is_closed: false, .. }");
}
