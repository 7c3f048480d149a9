//! Permits under every interleaving: few of them, and two or three threads that want them.
//!
//! Each model ends by counting: every permit must be somewhere, once.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::{Closed, Permits};
use crate::engine::{
    prim::{Arc, UnsafeCell, model, thread},
    wait::test_waker::block_on,
    work::task::budget::{self, Budget},
};

type AcquireBoxed = Pin<Box<dyn Future<Output = Result<(), Closed>> + Send>>;

fn permits(count: usize) -> Arc<Permits> {
    Arc::new(Permits::new(count))
}

/// Returns a future that wants `count` permits and was not polled yet.
fn want(permits: &Arc<Permits>, count: usize) -> AcquireBoxed {
    let permits = permits.clone();
    Box::pin(async move { permits.acquire(count).await })
}

fn poll(waiting: &mut AcquireBoxed) -> Poll<Result<(), Closed>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns a future that wants `count` permits and is in the queue.
#[track_caller]
fn in_line(permits: &Arc<Permits>, count: usize) -> AcquireBoxed {
    let mut waiting = want(permits, count);
    assert!(poll(&mut waiting).is_pending(), "there were enough");
    waiting
}

fn release(permits: &Arc<Permits>, count: usize) -> thread::JoinHandle<()> {
    let permits = permits.clone();
    thread::spawn(move || permits.release(count))
}

#[test]
fn acquire_against_release_is_never_left_waiting() {
    model(|| {
        let permits = permits(0);
        let releaser = release(&permits, 1);
        assert_eq!(block_on(permits.acquire(1)), Ok(()));
        releaser.join().unwrap();
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn acquire_against_close_ends() {
    model(|| {
        let permits = permits(0);
        let closer = thread::spawn({
            let permits = permits.clone();
            move || permits.close()
        });
        assert_eq!(block_on(permits.acquire(1)), Err(Closed));
        closer.join().unwrap();
        assert_eq!(block_on(permits.acquire(1)), Err(Closed));
    });
}

#[test]
fn a_waiter_dropped_against_a_release_loses_no_permit() {
    model(|| {
        let permits = permits(0);
        let waiting = in_line(&permits, 1);
        let releaser = release(&permits, 1);
        drop(waiting);
        releaser.join().unwrap();
        assert_eq!(permits.available(), 1, "a permit was lost, or made");
    });
}

#[test]
fn a_part_of_many_is_passed_on_when_its_waiter_is_dropped() {
    model(|| {
        let permits = permits(1);
        let many = in_line(&permits, 2);
        assert_eq!(permits.available(), 0, "the first waiter has it");
        let dropper = thread::spawn(move || drop(many));
        assert_eq!(block_on(permits.acquire(1)), Ok(()));
        dropper.join().unwrap();
        permits.release(1);
        assert_eq!(permits.available(), 1);
    });
}

#[test]
fn two_waiters_are_served_in_the_order_they_came() {
    model(|| {
        let permits = permits(0);
        let (mut first, mut second) = (in_line(&permits, 1), in_line(&permits, 1));
        let releaser = release(&permits, 1);
        assert!(poll(&mut second).is_pending(), "the second was served first");
        assert!(permits.try_acquire(1).is_err(), "the wait queue was overtaken");
        releaser.join().unwrap();
        assert!(poll(&mut first).is_ready());
        assert!(poll(&mut second).is_pending());
        permits.release(1);
        assert!(poll(&mut second).is_ready());
    });
}

#[test]
fn many_permits_are_collected_from_two_releases() {
    model(|| {
        let permits = permits(0);
        let releasers = [release(&permits, 1), release(&permits, 1)];
        assert_eq!(block_on(permits.acquire(2)), Ok(()));
        releasers.into_iter().for_each(|releaser| releaser.join().unwrap());
        assert_eq!(permits.available(), 0);
    });
}

/// The data that a permit guards.
struct PermitGuarded(UnsafeCell<usize>);

// SAFETY: the thread that has the one permit has the data alone; the model checks that.
unsafe impl Send for PermitGuarded {}
// SAFETY: the thread that has the one permit has the data alone; the model checks that.
unsafe impl Sync for PermitGuarded {}

impl PermitGuarded {
    fn add(&self) -> usize {
        // SAFETY: this thread has the one permit, so no other thread touches the data.
        self.0.with_mut(|count| unsafe {
            *count += 1;
            *count
        })
    }
}

#[test]
fn a_permit_guards_as_a_lock_does() {
    model(|| {
        let shared = Arc::new((Permits::new(1), PermitGuarded(UnsafeCell::new(0))));
        let enter = |shared: &(Permits, PermitGuarded)| {
            assert_eq!(block_on(shared.0.acquire(1)), Ok(()));
            shared.1.add();
            shared.0.release(1);
        };
        let other = thread::spawn({
            let shared = shared.clone();
            move || enter(&shared)
        });
        enter(&shared);
        other.join().unwrap();
        assert_eq!((shared.1.add(), shared.0.available()), (3, 1));
    });
}

#[test]
fn a_waiter_is_handed_what_the_releaser_wrote() {
    model(|| {
        let shared = Arc::new((permits(0), PermitGuarded(UnsafeCell::new(0))));
        let mut waiting = in_line(&shared.0, 1);
        let releaser = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.add();
                shared.0.release(1);
            }
        });
        // The waiter is polled without a wake-up in between, which would provide the ordering
        // itself.
        if poll(&mut waiting).is_ready() {
            assert_eq!(shared.1.add(), 2);
        }
        releaser.join().unwrap();
    });
}

#[test]
fn the_owner_may_free_a_dismissed_waiter() {
    model(|| {
        let permits = permits(0);
        let mut waiting = in_line(&permits, 1);
        let releaser = release(&permits, 1);
        let polled = poll(&mut waiting);
        drop(waiting);
        releaser.join().unwrap();
        assert_eq!(permits.available(), usize::from(polled.is_pending()));
    });
}

#[test]
fn a_new_waker_against_a_release_is_woken() {
    model(|| {
        let permits = permits(0);
        let waiting = in_line(&permits, 1);
        let releaser = release(&permits, 1);
        assert_eq!(block_on(waiting), Ok(()));
        releaser.join().unwrap();
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn close_against_release_keeps_the_count() {
    model(|| {
        let permits = permits(1);
        let waiting = in_line(&permits, 2);
        let closer = thread::spawn({
            let permits = permits.clone();
            move || permits.close()
        });
        permits.release(1);
        if block_on(waiting).is_ok() {
            permits.release(2);
        }
        closer.join().unwrap();
        assert_eq!(permits.available(), 2, "a permit was lost, or made");
    });
}

/// There are more waiters than fit into a model's wake list.
#[test]
fn a_full_wake_list_against_a_drop_serves_the_rest() {
    model(|| {
        let permits = permits(0);
        let mut waiting: Vec<_> = (0..3).map(|_| in_line(&permits, 1)).collect();
        let second = waiting.remove(1);
        let dropper = thread::spawn(move || drop(second));
        permits.release(3);
        for waiting in &mut waiting {
            assert!(poll(waiting).is_ready(), "it was passed over");
        }
        dropper.join().unwrap();
        assert_eq!(permits.available(), 1);
    });
}

/// Polls as a task does that has no budget left.
fn poll_without_budget(waiting: &mut AcquireBoxed) -> Poll<Result<(), Closed>> {
    budget::with_budget(Budget::Remaining(0), || poll(waiting))
}

#[test]
fn a_task_without_budget_enters_the_wait_queue() {
    model(|| {
        let permits = permits(0);
        let mut first = want(&permits, 1);
        assert!(poll_without_budget(&mut first).is_pending());
        let mut second = in_line(&permits, 1);
        let releaser = release(&permits, 1);
        assert!(poll(&mut second).is_pending(), "the second was served first");
        releaser.join().unwrap();
        assert!(poll_without_budget(&mut first).is_ready(), "it keeps what others wait for");
        assert!(poll(&mut second).is_pending());
    });
}

#[test]
fn a_task_without_budget_against_a_release_is_served() {
    model(|| {
        let permits = permits(0);
        let releaser = release(&permits, 1);
        let (mut waiting, mut left) = (want(&permits, 1), Budget::Remaining(0));
        let served = block_on(std::future::poll_fn(|cx| {
            let budget = std::mem::replace(&mut left, Budget::unlimited());
            budget::with_budget(budget, || waiting.as_mut().poll(cx))
        }));
        assert_eq!(served, Ok(()));
        releaser.join().unwrap();
        assert_eq!(permits.available(), 0);
    });
}

#[test]
fn a_task_without_budget_takes_no_permit_that_is_free() {
    model(|| {
        let permits = permits(1);
        let mut waiting = want(&permits, 1);
        assert!(poll_without_budget(&mut waiting).is_pending());
        assert_eq!(permits.try_acquire(1), Ok(()), "it holds what it cannot use");
        permits.close();
        let mut refused = want(&permits, 1);
        assert!(poll_without_budget(&mut refused).is_pending(), "it may not complete");
        assert_eq!(poll(&mut refused), Poll::Ready(Err(Closed)));
    });
}
