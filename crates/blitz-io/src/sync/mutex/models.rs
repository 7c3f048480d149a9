//! Models of mutexes, checked under every interleaving: the value is in a cell of the model
//! checker, which detects two concurrent accesses.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{Mutex, MutexGuard, OwnedMutexGuard};
use crate::engine::{
    prim::{ids::Tally, model, thread},
    wait::test_waker::block_on,
};

type Waiting<T> = Pin<Box<dyn Future<Output = OwnedMutexGuard<T>> + Send>>;

fn mutex() -> Arc<Mutex<usize>> {
    Arc::new(Mutex::new(0))
}

fn poll<T>(waiting: &mut Waiting<T>) -> Poll<OwnedMutexGuard<T>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Creates a request for the mutex that waits in the wait queue.
#[track_caller]
fn queued<T: Send + 'static>(mutex: &Arc<Mutex<T>>) -> Waiting<T> {
    let mut waiting: Waiting<T> = Box::pin(mutex.clone().lock_owned());
    assert!(poll(&mut waiting).is_pending(), "it was free");
    waiting
}

#[test]
fn a_mutex_excludes() {
    model(|| {
        let mutex = mutex();
        let other = thread::spawn({
            let mutex = mutex.clone();
            move || *block_on(mutex.lock()) += 1
        });
        *block_on(mutex.lock()) += 1;
        other.join().unwrap();
        assert_eq!((*block_on(mutex.lock()), mutex.permits.available()), (2, 0));
        assert_eq!(mutex.permits.available(), 1);
    });
}

#[test]
fn one_of_two_waiters_is_dropped_against_an_unlock() {
    model(|| {
        let mutex = mutex();
        let guard = mutex.clone().try_lock_owned().unwrap();
        let (first, second) = (queued(&mutex), queued(&mutex));
        let unlocker = thread::spawn(move || drop(guard));
        drop(first);
        *block_on(second) += 1;
        unlocker.join().unwrap();
        assert_eq!(mutex.permits.available(), 1);
    });
}

#[test]
fn a_lock_dropped_against_an_unlock_is_free_afterwards() {
    model(|| {
        let mutex = mutex();
        let guard = mutex.clone().try_lock_owned().unwrap();
        let waiting = queued(&mutex);
        let unlocker = thread::spawn(move || drop(guard));
        drop(waiting);
        unlocker.join().unwrap();
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_mapped_guard_that_ends_lets_the_next_one_in() {
    model(|| {
        let mutex = mutex();
        let other = thread::spawn({
            let mutex = mutex.clone();
            move || *MutexGuard::map(block_on(mutex.lock()), |value| value) += 1
        });
        *block_on(mutex.lock()) += 1;
        other.join().unwrap();
        assert_eq!((*block_on(mutex.lock()), mutex.permits.available()), (2, 0));
        assert_eq!(mutex.permits.available(), 1);
    });
}

/// Counts its drops outside of the model.
struct Ends(Arc<Tally>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[test]
fn an_owned_guard_that_ends_against_a_waiter_frees_once() {
    model(|| {
        let ends = Arc::new(Tally::default());
        let mutex = Arc::new(Mutex::new(Ends(ends.clone())));
        let guard = mutex.clone().try_lock_owned().unwrap();
        let unlocker = thread::spawn(move || drop(guard));
        // From here on only guards and futures keep the mutex alive.
        let last = block_on(mutex.lock_owned());
        assert_eq!(ends.get(), 0);
        drop(last);
        unlocker.join().unwrap();
        assert_eq!(ends.get(), 1);
    });
}
