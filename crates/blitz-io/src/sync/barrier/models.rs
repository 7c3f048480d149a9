//! Models of barriers, checked under every interleaving.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc as Plain,
    task::{Context, Poll, Waker},
};

use super::{Barrier, BarrierWaitResult};
use crate::engine::{
    prim::{Arc, UnsafeCell, model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

type Waiting = Pin<Box<dyn Future<Output = BarrierWaitResult> + Send>>;

fn barrier(size: usize) -> Arc<Barrier> {
    Arc::new(Barrier::new(size))
}

fn poll(waiting: &mut Waiting) -> Poll<bool> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).map(|result| result.is_leader())
}

/// Returns a wait that has arrived and is pending, and the [`CountingWaker`] that counts its
/// wake-ups.
#[track_caller]
fn arrived(barrier: &Arc<Barrier>) -> (Waiting, Plain<CountingWaker>) {
    let (barrier, counter) = (barrier.clone(), CountingWaker::new());
    let mut waiting: Waiting = Box::pin(async move { barrier.wait().await });
    let first = waiting.as_mut().poll(&mut Context::from_waker(&counter.waker()));
    assert!(first.is_pending(), "the round was complete");
    (waiting, counter)
}

/// Waits on another thread; its result says whether it was the leader.
fn on_thread(barrier: &Arc<Barrier>) -> thread::JoinHandle<bool> {
    let barrier = barrier.clone();
    thread::spawn(move || block_on(barrier.wait()).is_leader())
}

#[test]
fn two_rounds_of_two_have_one_leader_each() {
    model(|| {
        let barrier = barrier(2);
        let rounds = |barrier: &Barrier| [(); 2].map(|()| block_on(barrier.wait()).is_leader());
        let other = thread::spawn({
            let barrier = barrier.clone();
            move || rounds(&barrier)
        });
        let here = rounds(&barrier);
        let there = other.join().unwrap();
        assert_ne!(here[0], there[0], "the first round");
        assert_ne!(here[1], there[1], "the second round");
    });
}

/// In models a wake list holds two wakers.
#[test]
fn a_later_round_is_not_woken_by_a_wake_list() {
    model(|| {
        let barrier = barrier(4);
        let mut first = [(); 3].map(|()| arrived(&barrier));
        let leader = on_thread(&barrier);
        first[0].1.wait();
        let mut late = arrived(&barrier);
        assert!(leader.join().unwrap());
        assert!(poll(&mut late.0).is_pending());
        assert_eq!(late.1.wake_count(), 0);
        for (waiting, counter) in &mut first {
            assert_eq!((counter.wake_count(), poll(waiting)), (1, Poll::Ready(false)));
        }
    });
}

#[test]
fn a_waiter_that_is_dropped_has_arrived() {
    model(|| {
        let barrier = barrier(2);
        let (waiting, _waker) = arrived(&barrier);
        let leader = on_thread(&barrier);
        drop(waiting);
        assert!(leader.join().unwrap());
    });
}

#[test]
fn a_round_publishes_what_was_done_before_it() {
    struct Shared(Barrier, UnsafeCell<u32>);
    // SAFETY: the barrier orders the accesses to the cell, and the model checks that it does.
    unsafe impl Sync for Shared {}

    model(|| {
        let shared = Arc::new(Shared(Barrier::new(2), UnsafeCell::new(0)));
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: the other thread reads after the round, which waits for this thread.
                shared.1.with_mut(|value| unsafe { *value = 1 });
                block_on(shared.0.wait());
            }
        });
        block_on(shared.0.wait());
        // SAFETY: the other thread wrote before the round, which is over.
        assert_eq!(shared.1.with(|value| unsafe { *value }), 1);
        other.join().unwrap();
    });
}

#[test]
fn a_new_waker_against_the_last_to_arrive_is_woken() {
    model(|| {
        let barrier = barrier(2);
        let (waiting, _waker) = arrived(&barrier);
        let leader = on_thread(&barrier);
        assert!(!block_on(waiting).is_leader());
        assert!(leader.join().unwrap());
    });
}
