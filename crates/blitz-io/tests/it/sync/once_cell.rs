//! `OnceCell`: set once and initialised once, whichever task tries.

use std::{
    cell::Cell,
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{Notify, OnceCell, SetError};

use crate::{
    caught::panic_of,
    make::workers,
    polled::{by_hand, now, waiting},
    tally::Tally,
    watch,
};

/// Waits for a notification, then returns `value`.
async fn after<T>(notify: &Notify, value: T) -> T {
    notify.notified().await;
    value
}

#[test]
fn a_value_is_set_once() {
    let cell = OnceCell::new();
    assert!(!cell.initialized());
    assert_eq!(cell.get(), None::<&u8>);
    cell.set(1).unwrap();
    assert!(cell.initialized());
    assert_eq!(cell.set(2), Err(SetError::AlreadyInitializedError(2)));
    assert_eq!(cell.get(), Some(&1));
}

#[test]
fn get_or_init_runs_the_first_initialiser_only() {
    let cell = OnceCell::new();
    assert_eq!(*now(cell.get_or_init(|| ready(1))), 1);
    let asked = Cell::new(false);
    let value = now(cell.get_or_init(|| {
        asked.set(true);
        ready(2)
    }));
    assert_eq!((*value, asked.get()), (1, false));
}

#[test]
fn waiters_get_the_value_of_the_initialiser() {
    let (cell, notify) = (OnceCell::new(), Notify::new());
    let mut first = waiting(cell.get_or_init(|| after(&notify, 1)));
    let mut second = waiting(cell.get_or_init(|| ready(2)));
    let mut third = waiting(cell.get_or_try_init(|| ready(Err::<u8, _>("not asked"))));
    notify.notify_one();
    second.still_waits();
    assert_eq!(*first.woken_and_ready(), 1);
    assert_eq!(*second.woken_and_ready(), 1);
    assert_eq!(*third.woken_and_ready().unwrap(), 1);
}

#[test]
fn set_during_an_initialisation_gives_the_value_back() {
    let cell = OnceCell::new();
    let first = waiting(cell.get_or_init(pending::<u8>));
    let error = cell.set(7).unwrap_err();
    assert_eq!(error, SetError::InitializingError(7));
    assert!(error.is_initializing_err() && !error.is_already_init_err());
    drop(first);
    cell.set(8).unwrap();
    let error = cell.set(9).unwrap_err();
    assert!(error.is_already_init_err() && !error.is_initializing_err());
}

#[test]
fn an_initialiser_that_fails_lets_the_next_waiter_try() {
    let (cell, notify) = (OnceCell::new(), Notify::new());
    let mut first = waiting(cell.get_or_try_init(|| after(&notify, Err::<u8, _>("failed"))));
    let mut second = waiting(cell.get_or_init(|| ready(2)));
    notify.notify_one();
    assert_eq!(first.woken_and_ready(), Err("failed"));
    assert_eq!(*second.woken_and_ready(), 2);
    assert_eq!(cell.get(), Some(&2));
}

#[test]
fn an_initialiser_that_is_dropped_lets_the_next_waiter_try() {
    let cell = OnceCell::new();
    let first = waiting(cell.get_or_init(pending::<u8>));
    let mut second = waiting(cell.get_or_init(|| ready(2)));
    let mut third = waiting(cell.get_or_init(|| ready(3)));
    drop(first);
    third.still_waits();
    assert_eq!(*second.woken_and_ready(), 2);
    assert_eq!(*third.woken_and_ready(), 2);
}

#[test]
fn an_initialiser_that_panics_lets_the_next_waiter_try() {
    let (cell, notify) = (OnceCell::new(), Notify::new());
    let mut first = waiting(cell.get_or_init(|| async {
        notify.notified().await;
        panic!("it cannot be made");
    }));
    let mut second = waiting(cell.get_or_init(|| ready(2)));
    notify.notify_one();
    panic_of(|| first.poll().is_ready()).says(&["it cannot be made"]);
    drop(first);
    assert_eq!(*second.woken_and_ready(), 2);
}

#[test]
fn a_closure_that_panics_before_its_future_exists_leaves_the_cell_empty() {
    let cell = OnceCell::<u8>::new();
    panic_of(|| {
        now(cell.get_or_init(|| -> std::future::Ready<u8> { panic!("no future") }));
    });
    assert!(!cell.initialized());
    cell.set(1).unwrap();
}

#[test]
fn the_right_to_try_passes_on_when_its_new_holder_is_dropped_unpolled() {
    let cell = OnceCell::new();
    let first = waiting(cell.get_or_init(pending::<u8>));
    let second = waiting(cell.get_or_init(|| ready(2)));
    let mut third = waiting(cell.get_or_init(|| ready(3)));
    drop(first);
    assert!(second.woken());
    drop(second);
    assert_eq!(*third.woken_and_ready(), 3);
}

#[test]
fn set_succeeds_after_a_failed_try() {
    let cell = OnceCell::new();
    now(cell.get_or_try_init(|| ready(Err::<u8, ()>(())))).unwrap_err();
    cell.set(3).unwrap();
    assert_eq!(*now(cell.get_or_init(|| ready(4))), 3);
}

#[test]
fn an_owner_reaches_takes_and_unwraps_the_value() {
    let mut cell = OnceCell::new_with(Some(1));
    *cell.get_mut().unwrap() += 1;
    assert_eq!(cell.take(), Some(2));
    assert_eq!((cell.initialized(), cell.get_mut()), (false, None));
    assert_eq!(cell.take(), None);
    // A cell whose value was taken is like a new one.
    cell.set(5).unwrap();
    assert_eq!(cell.into_inner(), Some(5));
    assert_eq!(OnceCell::<u8>::new_with(None).into_inner(), None);
    assert_eq!(OnceCell::from(3).into_inner(), Some(3));
}

#[test]
fn cells_compare_and_clone_by_value() {
    let full = OnceCell::from(1);
    assert_eq!(full.clone(), full);
    assert_ne!(OnceCell::default(), full);
    assert_eq!(OnceCell::<u8>::new().clone(), OnceCell::new());
    assert_ne!(OnceCell::from(2), full);
}

#[test]
fn constant_cells_work() {
    static EMPTY: OnceCell<u8> = OnceCell::const_new();
    static FULL: OnceCell<u8> = OnceCell::const_new_with(4);
    assert_eq!(FULL.get(), Some(&4));
    assert_eq!(*now(EMPTY.get_or_init(|| ready(3))), 3);
    assert_eq!(EMPTY.get(), Some(&3));
}

#[test]
fn values_are_dropped_once() {
    let tally = Tally::new();
    let mut cell = OnceCell::from(tally.token());
    drop(cell.take());
    assert_eq!(tally.dropped(), 1);
    assert!(cell.set(tally.token()).is_ok());
    drop(cell.set(tally.token()));
    assert_eq!(tally.dropped(), 2, "the refused one is given back");
    drop(cell);
    tally.assert_all_dropped(3);
    drop(OnceCell::from(tally.token()).into_inner());
    tally.assert_all_dropped(4);
    // An initialiser that is dropped half-way drops what it holds.
    let cell = OnceCell::new();
    let token = tally.token();
    let mut half = by_hand(cell.get_or_init(|| async move {
        std::future::poll_fn(|_| Poll::<()>::Pending).await;
        token
    }));
    half.pending();
    drop(half);
    tally.assert_all_dropped(5);
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(SetError::AlreadyInitializedError(1).to_string(), "AlreadyInitializedError");
    assert_eq!(SetError::InitializingError(1).to_string(), "InitializingError");
    let _: &dyn std::error::Error = &SetError::InitializingError(1);
}

#[test]
fn tasks_on_many_threads_initialise_once() {
    let _watch = watch::begin();
    let rt = workers(4);
    for _ in 0..50 {
        let (cell, runs) = (Arc::new(OnceCell::new()), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..8)
            .map(|me| {
                let (cell, runs) = (cell.clone(), runs.clone());
                rt.spawn(async move {
                    let make = || async {
                        runs.fetch_add(1, Relaxed);
                        blitz_io::task::yield_now().await;
                        me
                    };
                    *cell.get_or_init(make).await
                })
            })
            .collect();
        let mut answers = tasks.into_iter().map(|task| rt.block_on(task).unwrap());
        let first = answers.next().unwrap();
        assert!(answers.all(|answer| answer == first));
        assert_eq!(runs.load(Relaxed), 1);
    }
}
