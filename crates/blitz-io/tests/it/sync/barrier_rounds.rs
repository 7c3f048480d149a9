//! `Barrier`: leaders, rounds, and waits that are dropped.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{Barrier, BarrierWaitResult};

use crate::{
    by_hand::now,
    make::workers,
    sync::waker_calls::{Calls, completed_in_one_poll, poll},
    watch,
};

type Waiting = Pin<Box<dyn Future<Output = BarrierWaitResult> + Send>>;

#[track_caller]
fn arrived(barrier: &Arc<Barrier>, calls: &Arc<Calls>) -> Waiting {
    let barrier = barrier.clone();
    let mut waiting: Waiting = Box::pin(async move { barrier.wait().await });
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

#[test]
fn a_barrier_for_none_is_one_for_one() {
    for size in [0, 1] {
        let barrier = Barrier::new(size);
        assert!((0..3).all(|_| now(barrier.wait()).is_leader()));
    }
}

#[test]
fn the_last_to_come_leads_and_wakes_all_of_many() {
    let (barrier, calls) = (Arc::new(Barrier::new(101)), Calls::new());
    for _round in 0..2 {
        let mut waiting = [(); 100].map(|()| arrived(&barrier, &calls));
        let before = calls.count();
        assert!(now(barrier.wait()).is_leader());
        assert_eq!(calls.count() - before, 100);
        for waiting in &mut waiting {
            let polled = poll(waiting.as_mut());
            assert!(matches!(polled, Poll::Ready(result) if !result.is_leader()));
        }
    }
}

#[test]
fn a_cancelled_waiter_still_counts_as_arrived() {
    let (barrier, calls) = (Arc::new(Barrier::new(3)), Calls::new());
    drop(arrived(&barrier, &calls));
    let mut second = arrived(&barrier, &calls);
    assert!(now(barrier.wait()).is_leader());
    assert!(poll(second.as_mut()).is_ready());
    assert_eq!(calls.count(), 1, "who has gone is not woken");
    // A wait that was never polled has not arrived.
    drop(barrier.wait());
    let [mut first, mut second] = [(); 2].map(|()| arrived(&barrier, &calls));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
}

/// The first wake list is woken while other waiters of the round are still queued.
#[test]
fn a_waker_may_arrive_for_the_next_round() {
    let _watch = watch::begin();
    let (barrier, late) =
        (Arc::new(Barrier::new(101)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let late_calls = Calls::new();
    let calls = Calls::doing({
        let (barrier, late, late_calls) = (barrier.clone(), late.clone(), late_calls.clone());
        move || late.lock().unwrap().push(arrived(&barrier, &late_calls))
    });
    let mut waiting = [(); 100].map(|()| arrived(&barrier, &calls));
    assert!(now(barrier.wait()).is_leader());
    assert!(waiting.iter_mut().all(|waiting| poll(waiting.as_mut()).is_ready()));
    assert_eq!((calls.count(), late_calls.count()), (100, 0));
    assert!(now(barrier.wait()).is_leader(), "a hundred have arrived for it");
    assert_eq!(late_calls.count(), 100);
    drop(late);
}

#[test]
fn waiting_at_a_barrier_takes_budget() {
    let barrier = Barrier::new(1);
    assert_eq!(completed_in_one_poll(|| barrier.wait()), 128);
}

#[test]
fn every_round_has_one_leader_and_all_tasks() {
    const TASKS: usize = 8;
    const ROUNDS: usize = 300;
    let _watch = watch::begin();
    let shared = Arc::new((Barrier::new(TASKS), AtomicUsize::new(0), AtomicUsize::new(0)));
    let rt = workers(4);
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let shared = shared.clone();
            rt.spawn(async move {
                for round in 1..=ROUNDS {
                    shared.1.fetch_add(1, Relaxed);
                    if shared.0.wait().await.is_leader() {
                        shared.2.fetch_add(1, Relaxed);
                    }
                    assert_eq!(shared.1.load(Relaxed), round * TASKS, "somebody was not there");
                    // No task begins the next round before all have checked.
                    shared.0.wait().await;
                }
            })
        })
        .collect();
    rt.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(shared.2.load(Relaxed), ROUNDS);
}

#[test]
fn a_barrier_can_be_printed_in_any_state() {
    let (barrier, calls) = (Arc::new(Barrier::new(2)), Calls::new());
    let waiting = arrived(&barrier, &calls);
    assert_eq!(format!("{barrier:?}"), "Barrier { size: 2, arrived: 1 }");
    assert_eq!(format!("{:?}", now(barrier.wait())), "BarrierWaitResult(true)");
    drop(waiting);
}
