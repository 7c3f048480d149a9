//! Tests `Barrier`: rounds with one leader each, waits that are dropped, and wakers that use the
//! barrier.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{Barrier, BarrierWaitResult};

use crate::support::{
    budget::completed_in_one_poll,
    manual_poll::{by_hand, now, poll_once, waiting},
    runtimes::workers,
    wakers::WakeCount,
    watchdog,
};

#[test]
fn a_barrier_of_zero_or_one_makes_every_task_a_leader() {
    for count in [0, 1] {
        let barrier = Barrier::new(count);
        for _ in 0..5 {
            assert!(now(barrier.wait()).is_leader(), "barrier of {count}");
        }
    }
}

#[test]
fn no_task_passes_before_the_last_arrives() {
    let barrier = Barrier::new(3);
    let mut one = waiting(barrier.wait());
    let mut two = waiting(barrier.wait());
    one.still_waits();
    two.still_waits();
    let three = now(barrier.wait());
    let leaders = [three, one.woken_and_ready(), two.woken_and_ready()];
    assert_eq!(leaders.iter().filter(|result| result.is_leader()).count(), 1);
}

#[test]
fn the_last_to_come_is_the_leader() {
    let barrier = Barrier::new(2);
    let mut first = waiting(barrier.wait());
    assert!(now(barrier.wait()).is_leader());
    assert!(!first.woken_and_ready().is_leader());
}

#[test]
fn a_barrier_is_reused_generation_after_generation() {
    let barrier = Barrier::new(2);
    for _ in 0..10 {
        let mut first = waiting(barrier.wait());
        now(barrier.wait());
        first.woken_and_ready();
    }
}

#[test]
fn a_waiter_of_the_past_generation_passes_however_late_it_is_polled() {
    let barrier = Barrier::new(2);
    let mut slow = waiting(barrier.wait());
    now(barrier.wait());
    // The next generation begins, and even ends, before the slow waiter is polled.
    let mut next = waiting(barrier.wait());
    next.still_waits();
    assert!(!slow.woken_and_ready().is_leader());
    next.still_waits();
    now(barrier.wait());
    next.woken_and_ready();
}

#[test]
fn a_future_that_was_never_polled_has_not_come() {
    let barrier = Barrier::new(2);
    let unpolled = by_hand(barrier.wait());
    let mut first = waiting(barrier.wait());
    drop(unpolled);
    first.still_waits();
    now(barrier.wait());
    first.woken_and_ready();
}

#[test]
fn a_waiter_that_left_still_counts() {
    let barrier = Barrier::new(3);
    let left = waiting(barrier.wait());
    let mut stays = waiting(barrier.wait());
    drop(left);
    stays.still_waits();
    assert!(now(barrier.wait()).is_leader(), "the waiter that left is counted");
    assert!(!stays.woken_and_ready().is_leader());
    // The next generation starts from zero.
    drop(waiting(barrier.wait()));
    drop(waiting(barrier.wait()));
    assert!(now(barrier.wait()).is_leader());
}

#[test]
fn a_cloned_result_is_still_the_leaders() {
    let result = now(Barrier::new(1).wait());
    assert!(result.clone().is_leader());
}

#[test]
fn tasks_on_many_threads_pass_together_with_one_leader_a_round() {
    let _watch = watchdog::start();
    const TASKS: usize = 6;
    const ROUNDS: usize = 200;
    let rt = workers(4);
    let barrier = Arc::new(Barrier::new(TASKS));
    let leaders = Arc::new(AtomicUsize::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (barrier, leaders, inside) = (barrier.clone(), leaders.clone(), inside.clone());
            rt.spawn(async move {
                for round in 0..ROUNDS {
                    inside.fetch_add(1, Relaxed);
                    if barrier.wait().await.is_leader() {
                        leaders.fetch_add(1, Relaxed);
                    }
                    assert!(inside.load(Relaxed) >= (round + 1) * TASKS, "a task has not arrived");
                }
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    assert_eq!(leaders.load(Relaxed), ROUNDS);
}

type Waiting = Pin<Box<dyn Future<Output = BarrierWaitResult> + Send>>;

#[track_caller]
fn arrived(barrier: &Arc<Barrier>, calls: &Arc<WakeCount>) -> Waiting {
    let barrier = barrier.clone();
    let mut waiting: Waiting = Box::pin(async move { barrier.wait().await });
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

#[test]
fn the_last_to_come_leads_and_wakes_all_of_many() {
    let (barrier, calls) = (Arc::new(Barrier::new(101)), WakeCount::new());
    for _round in 0..2 {
        let mut waiting = [(); 100].map(|()| arrived(&barrier, &calls));
        let before = calls.count();
        assert!(now(barrier.wait()).is_leader());
        assert_eq!(calls.count() - before, 100);
        for waiting in &mut waiting {
            let polled = poll_once(waiting);
            assert!(matches!(polled, Poll::Ready(result) if !result.is_leader()));
        }
    }
}

#[test]
fn a_cancelled_waiter_still_counts_as_arrived() {
    let (barrier, calls) = (Arc::new(Barrier::new(3)), WakeCount::new());
    drop(arrived(&barrier, &calls));
    let mut second = arrived(&barrier, &calls);
    assert!(now(barrier.wait()).is_leader());
    assert!(poll_once(&mut second).is_ready());
    assert_eq!(calls.count(), 1, "a waiter that has gone is not woken");
    // A wait that was never polled has not arrived.
    drop(barrier.wait());
    let [mut first, mut second] = [(); 2].map(|()| arrived(&barrier, &calls));
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
}

/// The first wake list is woken while other waiters of the round are still queued.
#[test]
fn a_waker_may_arrive_for_the_next_round() {
    let _watch = watchdog::start();
    let (barrier, late) =
        (Arc::new(Barrier::new(101)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let late_calls = WakeCount::new();
    let calls = WakeCount::doing({
        let (barrier, late, late_calls) = (barrier.clone(), late.clone(), late_calls.clone());
        move || late.lock().unwrap().push(arrived(&barrier, &late_calls))
    });
    let mut waiting = [(); 100].map(|()| arrived(&barrier, &calls));
    assert!(now(barrier.wait()).is_leader());
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
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
    let _watch = watchdog::start();
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
                    assert_eq!(shared.1.load(Relaxed), round * TASKS, "a task had not arrived");
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
    let (barrier, calls) = (Arc::new(Barrier::new(2)), WakeCount::new());
    let waiting = arrived(&barrier, &calls);
    assert_eq!(format!("{barrier:?}"), "Barrier { size: 2, arrived: 1 }");
    assert_eq!(format!("{:?}", now(barrier.wait())), "BarrierWaitResult(true)");
    drop(waiting);
}
