//! `Barrier`: generations, with one leader each.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use blitz_io::sync::Barrier;

use crate::{
    make::workers,
    polled::{by_hand, now, waiting},
    watch,
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
    assert!(now(barrier.wait()).is_leader(), "the one who left is counted");
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
    let _watch = watch::begin();
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
                    assert!(inside.load(Relaxed) >= (round + 1) * TASKS, "somebody is not here");
                }
            })
        })
        .collect();
    for task in tasks {
        rt.block_on(task).unwrap();
    }
    assert_eq!(leaders.load(Relaxed), ROUNDS);
}
