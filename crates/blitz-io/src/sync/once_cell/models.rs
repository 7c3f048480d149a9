//! Models of cells, checked under every interleaving: two writers and one waiter.

use std::{
    future::{Future, pending, ready},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc as Plain,
    task::Context,
};

use super::OnceCell;
use crate::engine::{
    prim::{Arc, model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

type Cell = Arc<OnceCell<u32>>;
type Waiting = Pin<Box<dyn Future<Output = u32> + Send>>;

fn cell() -> Cell {
    Arc::new(OnceCell::new())
}

/// Returns the cell's value, initialising it with `value` if it is empty.
fn init(cell: &Cell, value: u32) -> u32 {
    *block_on(cell.get_or_init(|| ready(value)))
}

fn init_on_thread(cell: &Cell, value: u32) -> thread::JoinHandle<u32> {
    let cell = cell.clone();
    thread::spawn(move || init(&cell, value))
}

/// Returns a call that was polled once, with an initialiser that never completes.
#[track_caller]
fn endless(cell: &Cell) -> (Waiting, Plain<CountingWaker>) {
    let (cell, counter) = (cell.clone(), CountingWaker::new());
    let mut waiting: Waiting = Box::pin(async move { *cell.get_or_init(pending).await });
    let first = waiting.as_mut().poll(&mut Context::from_waker(&counter.waker()));
    assert!(first.is_pending());
    (waiting, counter)
}

#[test]
fn a_task_that_waits_for_an_initialiser_sees_its_value() {
    model(|| {
        let cell = cell();
        let other = init_on_thread(&cell, 1);
        let here = init(&cell, 2);
        assert_eq!(other.join().unwrap(), here);
        assert_eq!(cell.get(), Some(&here));
    });
}

#[test]
fn an_initialiser_that_is_dropped_lets_the_next_one_try() {
    model(|| {
        let cell = cell();
        let (initialiser, _waker) = endless(&cell);
        let other = init_on_thread(&cell, 1);
        drop(initialiser);
        assert_eq!(other.join().unwrap(), 1);
    });
}

#[test]
fn an_initialiser_that_panics_lets_the_next_one_try() {
    model(|| {
        let cell = cell();
        let other = init_on_thread(&cell, 1);
        // Without the panic hook, which would print each time.
        let panics = async || resume_unwind(Box::new(()));
        let here = catch_unwind(AssertUnwindSafe(|| *block_on(cell.get_or_init(panics))));
        assert!(here.is_err() || here.is_ok_and(|value| value == 1));
        assert_eq!(other.join().unwrap(), 1);
    });
}

#[test]
fn of_two_sets_one_wins() {
    model(|| {
        let cell = cell();
        let other = thread::spawn({
            let cell = cell.clone();
            move || cell.set(1).is_ok()
        });
        let here = cell.set(2).is_ok();
        let there = other.join().unwrap();
        assert_ne!(here, there);
        assert_eq!(cell.get(), Some(&if here { 2 } else { 1 }));
    });
}

#[test]
fn a_set_against_an_initialiser_leaves_one_value() {
    model(|| {
        let cell = cell();
        let setter = thread::spawn({
            let cell = cell.clone();
            move || cell.set(1).is_ok()
        });
        let here = init(&cell, 2);
        assert_eq!(here, if setter.join().unwrap() { 1 } else { 2 });
    });
}

#[test]
fn an_init_permit_given_to_a_dropped_waiter_is_passed_on() {
    model(|| {
        let cell = cell();
        let ((initialiser, _), (waiting, _)) = (endless(&cell), endless(&cell));
        let dropper = thread::spawn(move || drop(initialiser));
        // It may have the init permit by now, without having been polled since.
        drop(waiting);
        dropper.join().unwrap();
        assert_eq!(init(&cell, 3), 3);
    });
}

#[test]
fn get_returns_a_whole_value() {
    model(|| {
        let cell = cell();
        let setter = thread::spawn({
            let cell = cell.clone();
            move || cell.set(1).is_ok()
        });
        assert!(cell.get().is_none_or(|value| *value == 1));
        assert!(setter.join().unwrap());
    });
}

#[test]
fn a_waiter_dropped_against_the_end_breaks_nothing() {
    model(|| {
        let cell = cell();
        let permit = cell.init.claim().expect("it is empty");
        let ((first, _), (second, counter)) = (endless(&cell), endless(&cell));
        let dropper = thread::spawn(move || drop(first));
        cell.fill(permit, 1);
        dropper.join().unwrap();
        assert_eq!((counter.wake_count(), block_on(second)), (1, 1));
    });
}

/// In models a wake list holds two wakers.
#[test]
fn all_waiters_are_dismissed_in_wake_lists() {
    model(|| {
        let cell = cell();
        let permit = cell.init.claim().expect("it is empty");
        let [(first, _), (second, _), (third, _)] = [(); 3].map(|()| endless(&cell));
        let other = thread::spawn(move || (block_on(third), block_on(first)));
        cell.fill(permit, 1);
        assert_eq!(block_on(second), 1);
        assert_eq!(other.join().unwrap(), (1, 1));
    });
}
