//! Models of read-write locks, checked under every interleaving: with at most two readers,
//! so that a writer has more than one permit to collect.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{OwnedRwLockWriteGuard, RwLock};
use crate::engine::{
    prim::{UnsafeCell, model, thread},
    wait::test_waker::block_on,
};

type Waiting = Pin<Box<dyn Future<Output = OwnedRwLockWriteGuard<usize>> + Send>>;

fn lock() -> Arc<RwLock<usize>> {
    Arc::new(RwLock::with_max_readers(0, 2))
}

fn poll(waiting: &mut Waiting) -> Poll<OwnedRwLockWriteGuard<usize>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Creates a request to write that waits in the wait queue.
#[track_caller]
fn queued_writer(lock: &Arc<RwLock<usize>>) -> Waiting {
    let mut waiting: Waiting = Box::pin(lock.clone().write_owned());
    assert!(poll(&mut waiting).is_pending(), "it was free");
    waiting
}

#[test]
fn a_writer_excludes_readers_and_writers() {
    model(|| {
        let lock = lock();
        let other = thread::spawn({
            let lock = lock.clone();
            move || *block_on(lock.write()) += 1
        });
        let seen = *block_on(lock.read());
        assert!(seen < 2);
        *block_on(lock.write()) += 1;
        other.join().unwrap();
        assert_eq!(*block_on(lock.read()), 2);
        assert_eq!(lock.permits.available(), 2);
    });
}

#[test]
fn a_downgrade_lets_readers_in_and_keeps_a_writer_out() {
    model(|| {
        let lock = lock();
        let mut writer = block_on(lock.write());
        let other = thread::spawn({
            let lock = lock.clone();
            move || *block_on(lock.write()) += 1
        });
        *writer += 1;
        let reader = writer.downgrade();
        assert!(lock.try_write().is_err());
        assert_eq!(*reader, 1, "a writer came in between");
        drop(reader);
        other.join().unwrap();
        assert_eq!(*block_on(lock.read()), 2);

        let reader = block_on(lock.write()).downgrade();
        assert_eq!((*block_on(lock.read()), *reader), (2, 2), "readers are let in");
        drop(reader);
        assert_eq!(lock.permits.available(), 2);
    });
}

#[test]
fn a_downgrade_against_a_reader_lets_it_in() {
    model(|| {
        let lock = lock();
        let writer = block_on(lock.clone().write_owned());
        let other = thread::spawn({
            let lock = lock.clone();
            move || *block_on(lock.read())
        });
        // Held until the other thread has read.
        let reader = writer.downgrade();
        assert_eq!((other.join().unwrap(), *reader), (0, 0));
        drop(reader);
        assert_eq!(lock.permits.available(), 2);
    });
}

#[test]
fn a_writer_that_waits_is_not_overtaken_by_a_reader() {
    model(|| {
        let lock = lock();
        let reader = lock.clone().try_read_owned().unwrap();
        let mut writer = queued_writer(&lock);
        let ends = thread::spawn(move || drop(reader));
        assert!(lock.try_read().is_err(), "the writer was overtaken");
        ends.join().unwrap();
        let Poll::Ready(mut writer) = poll(&mut writer) else { panic!("it has all permits") };
        *writer += 1;
        drop(writer);
        assert_eq!(*lock.try_read().unwrap(), 1);
    });
}

#[test]
fn a_writer_dropped_against_a_reader_passes_its_permits_on() {
    model(|| {
        let lock = lock();
        let reader = lock.try_read().unwrap();
        let writer = queued_writer(&lock);
        let dropper = thread::spawn(move || drop(writer));
        // Two readers are allowed, but the writer has collected the other permit.
        assert_eq!(*block_on(lock.read()), 0);
        dropper.join().unwrap();
        drop(reader);
        assert_eq!(lock.permits.available(), 2);
    });
}

/// A value that may be changed by the only reader of a lock for one.
struct Alone(UnsafeCell<usize>);

// SAFETY: the lock admits one reader at a time, which has exclusive access; the model checks
// that.
unsafe impl Send for Alone {}
// SAFETY: the lock admits one reader at a time, which has exclusive access; the model checks
// that.
unsafe impl Sync for Alone {}

impl Alone {
    fn add(&self) -> usize {
        // SAFETY: the caller is the only reader of the lock; the model checks that.
        self.0.with_mut(|count| unsafe {
            *count += 1;
            *count
        })
    }
}

#[test]
fn no_more_readers_than_allowed_are_inside() {
    model(|| {
        let lock = Arc::new(RwLock::with_max_readers(Alone(UnsafeCell::new(0)), 1));
        let other = thread::spawn({
            let lock = lock.clone();
            move || block_on(lock.read()).add()
        });
        block_on(lock.read()).add();
        other.join().unwrap();
        assert_eq!(block_on(lock.read()).add(), 3);
        assert_eq!(lock.permits.available(), 1);
    });
}
