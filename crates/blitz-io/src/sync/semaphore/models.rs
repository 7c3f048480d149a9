//! Models of semaphores, checked under every interleaving: permits that move between threads.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
};

use super::{AcquireError, OwnedSemaphorePermit, Semaphore};
use crate::engine::{
    prim::{model, thread},
    wait::test_waker::block_on,
};

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits))
}

/// Creates a request for `count` permits that waits in the wait queue.
#[track_caller]
fn queued(semaphore: &Arc<Semaphore>, count: u32) -> Waiting {
    let mut waiting: Waiting = Box::pin(semaphore.clone().acquire_many_owned(count));
    let first = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "there were enough");
    waiting
}

#[test]
fn permits_that_are_split_come_back_once_each() {
    model(|| {
        let semaphore = semaphore(2);
        let mut permit = semaphore.clone().try_acquire_many_owned(2).unwrap();
        let other = permit.split(1).unwrap();
        let dropper = thread::spawn(move || drop(other));
        drop(permit);
        dropper.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn permits_that_are_merged_come_back_once() {
    model(|| {
        let semaphore = semaphore(2);
        let mut permit = semaphore.clone().try_acquire_owned().unwrap();
        permit.merge(semaphore.clone().try_acquire_owned().unwrap());
        let dropper = thread::spawn(move || drop(permit));
        let both = block_on(semaphore.acquire_many(2)).unwrap();
        assert_eq!((both.num_permits(), semaphore.available_permits()), (2, 0));
        drop(both);
        dropper.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_close_against_an_acquire_ends_it() {
    model(|| {
        let semaphore = semaphore(0);
        let closer = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.close()
        });
        assert!(block_on(semaphore.acquire()).is_err());
        closer.join().unwrap();
        assert!(semaphore.is_closed());
    });
}

#[test]
fn an_owned_permit_that_ends_against_a_waiter_wakes_it() {
    model(|| {
        let semaphore = semaphore(1);
        let permit = semaphore.clone().try_acquire_owned().unwrap();
        let dropper = thread::spawn(move || drop(permit));
        let next = block_on(semaphore.clone().acquire_owned()).unwrap();
        dropper.join().unwrap();
        assert_eq!(semaphore.available_permits(), 0);
        drop(next);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn a_wait_for_many_dropped_against_a_permit_loses_none() {
    model(|| {
        let semaphore = semaphore(2);
        let permit = semaphore.clone().try_acquire_owned().unwrap();
        let many = queued(&semaphore, 2);
        let dropper = thread::spawn(move || drop(permit));
        drop(many);
        dropper.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2);
    });
}
