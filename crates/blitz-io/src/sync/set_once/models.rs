//! Models of awaited cells and their latch, checked under every interleaving.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc as Plain,
    task::{Context, Waker},
};

use super::SetOnce;
use crate::engine::{
    prim::{Arc, model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

type Cell = Arc<SetOnce<u32>>;
type Waiting = Pin<Box<dyn Future<Output = u32> + Send>>;

fn cell() -> Cell {
    Arc::new(SetOnce::new())
}

/// Sets the cell on another thread; the result says whether it was the first to do so.
fn set(cell: &Cell, value: u32) -> thread::JoinHandle<bool> {
    let cell = cell.clone();
    thread::spawn(move || cell.set(value).is_ok())
}

/// Creates a wait in the wait queue, and returns it with the [`CountingWaker`] that counts its
/// wake-ups.
#[track_caller]
fn queued(cell: &Cell) -> (Waiting, Plain<CountingWaker>) {
    let (cell, counter) = (cell.clone(), CountingWaker::new());
    let mut waiting: Waiting = Box::pin(async move { *cell.wait().await });
    let first = waiting.as_mut().poll(&mut Context::from_waker(&counter.waker()));
    assert!(first.is_pending());
    (waiting, counter)
}

#[test]
fn an_opening_is_not_missed() {
    model(|| {
        let cell = cell();
        let setter = set(&cell, 1);
        assert_eq!(*block_on(cell.wait()), 1);
        assert!(setter.join().unwrap());
    });
}

/// In models a wake list holds two wakers.
#[test]
fn all_waiters_are_woken_in_wake_lists() {
    model(|| {
        let cell = cell();
        let waiting = [(); 3].map(|()| queued(&cell));
        let setter = set(&cell, 1);
        waiting[2].1.wait();
        assert_eq!(cell.get(), Some(&1));
        assert!(setter.join().unwrap());
        assert!(waiting.iter().all(|waiting| waiting.1.wake_count() == 1));
    });
}

#[test]
fn a_waiter_dropped_against_an_opening_breaks_nothing() {
    model(|| {
        let cell = cell();
        let (waiting, counter) = queued(&cell);
        let setter = set(&cell, 1);
        drop(waiting);
        assert!(setter.join().unwrap());
        assert_eq!(Plain::strong_count(&counter), 1, "its waker is gone");
    });
}

#[test]
fn a_new_waker_against_an_opening_is_woken() {
    model(|| {
        let cell = cell();
        let (mut waiting, _waker) = queued(&cell);
        let again = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(again.is_pending());
        let setter = set(&cell, 1);
        assert_eq!(block_on(waiting), 1);
        assert!(setter.join().unwrap());
    });
}

#[test]
fn a_late_waiter_sees_what_was_done() {
    model(|| {
        let cell = cell();
        let setter = set(&cell, 1);
        // Reads until the value is there, because the model checker disregards a single read that
        // another one follows.
        let value = loop {
            match cell.get() {
                Some(value) => break *value,
                None => thread::yield_now(),
            }
        };
        assert_eq!(value, 1);
        assert!(setter.join().unwrap());
    });
}

#[test]
fn a_set_against_a_wait_against_a_drop() {
    model(|| {
        let cell = cell();
        let ((first, _), (second, _)) = (queued(&cell), queued(&cell));
        let (setter, dropper) = (set(&cell, 1), thread::spawn(move || drop(first)));
        assert_eq!(block_on(second), 1);
        dropper.join().unwrap();
        assert!(setter.join().unwrap());
    });
}

#[test]
fn a_refused_setter_finds_the_value() {
    model(|| {
        let cell = cell();
        let setter = set(&cell, 1);
        let here = cell.set(2);
        if let Err(refused) = &here {
            assert_eq!((refused.0, cell.get()), (2, Some(&1)));
        }
        assert_ne!(setter.join().unwrap(), here.is_ok());
    });
}

#[test]
fn a_value_is_whole_for_a_waiter() {
    model(|| {
        let cell = cell();
        let (waiting, counter) = queued(&cell);
        let setter = set(&cell, 1);
        counter.wait();
        assert_eq!(block_on(waiting), 1);
        assert!(setter.join().unwrap());
    });
}
