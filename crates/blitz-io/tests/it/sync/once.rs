//! `OnceCell` and `SetOnce`: which task initialises, which tasks wait, and what is dropped.

use std::{
    future::{Future, pending, ready},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{OnceCell, SetError, SetOnce, SetOnceError};

use crate::{
    by_hand::now,
    caught::panic_of,
    make::workers,
    sync::waker_calls::{Calls, completed_in_one_poll, poll},
    tally::{Tally, Token},
    watch,
};

/// More waiters than three wake lists hold.
const MANY: usize = 100;

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls a `get_or_init` once, with an initialiser that never completes.
fn endless(cell: &Arc<OnceCell<u32>>, calls: &Arc<Calls>) -> Waiting<u32> {
    let cell = cell.clone();
    let mut waiting: Waiting<u32> = Box::pin(async move { *cell.get_or_init(pending).await });
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

/// Enters a `get_or_init` into the wait queue; it provides `value` if it becomes the initialiser.
fn in_line(cell: &Arc<OnceCell<u32>>, calls: &Arc<Calls>, value: u32) -> Waiting<u32> {
    let cell = cell.clone();
    let mut waiting: Waiting<u32> =
        Box::pin(async move { *cell.get_or_init(|| ready(value)).await });
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

#[test]
fn a_cell_is_small() {
    assert!(size_of::<OnceCell<u64>>() <= 40, "{}", size_of::<OnceCell<u64>>());
    assert!(size_of::<SetOnce<u64>>() <= 40, "{}", size_of::<SetOnce<u64>>());
}

#[test]
fn every_value_of_a_cell_is_dropped_once() {
    let tally = Tally::new();
    let cell = OnceCell::new();
    assert!(cell.set(tally.token()).is_ok());
    let refused = cell.set(tally.token());
    assert!(matches!(refused, Err(SetError::AlreadyInitializedError(_))));
    assert_eq!(tally.dropped(), 0);
    drop(refused);
    assert_eq!(tally.dropped(), 1);
    drop(cell);
    let mut cell = OnceCell::from(tally.token());
    cell.take().expect("it was full").keep();
    assert!(cell.take().is_none());
    assert!(cell.set(tally.token()).is_ok(), "it is empty again");
    cell.into_inner().expect("it was full").keep();
    drop(OnceCell::<Token>::new());
    tally.assert_all_dropped(4);
}

#[test]
fn every_value_of_a_set_once_is_dropped_once() {
    let tally = Tally::new();
    let cell = SetOnce::new();
    assert!(cell.set(tally.token()).is_ok());
    let SetOnceError(refused) = cell.set(tally.token()).expect_err("it is full");
    refused.keep();
    drop(refused);
    now(cell.wait()).keep();
    drop(cell);
    assert_eq!(tally.dropped(), 2);
    SetOnce::from(tally.token()).into_inner().expect("it was full").keep();
    drop(SetOnce::<Token>::new());
    tally.assert_all_dropped(3);
}

/// A value whose drop panics is dropped once, and the panic reaches the owner of the cell.
#[test]
fn a_drop_that_panics_happens_once() {
    struct Bad(Arc<AtomicUsize>);
    impl Drop for Bad {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
            panic!("this drop was told to panic");
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = OnceCell::from(Bad(drops.clone()));
    assert!(panic_of(|| drop(cell)).message.contains("told to panic"));
    let cell = SetOnce::from(Bad(drops.clone()));
    assert!(panic_of(|| drop(cell)).message.contains("told to panic"));
    assert_eq!(drops.load(Relaxed), 2);
}

#[test]
fn an_initialiser_that_is_dropped_or_panics_or_fails_leaves_the_cell_empty() {
    let tally = Tally::new();
    let cell = OnceCell::<Token>::new();
    {
        let held = tally.token();
        let mut asked = Box::pin(cell.get_or_init(async || {
            held.keep();
            pending().await
        }));
        assert!(poll(asked.as_mut()).is_pending());
        let refused = cell.set(tally.token());
        assert!(matches!(refused, Err(SetError::InitializingError(_))));
    }
    let panics = || -> std::future::Ready<Token> { panic!("this initialiser was told to panic") };
    assert!(panic_of(|| now(cell.get_or_init(panics))).message.contains("told to panic"));
    let polled_panics = async || panic!("this future was told to panic");
    assert!(panic_of(|| now(cell.get_or_init(polled_panics))).message.contains("told to panic"));
    assert_eq!(now(cell.get_or_try_init(async || Err("no"))).err(), Some("no"));
    assert!(cell.set(tally.token()).is_ok());
    drop(cell);
    tally.assert_all_dropped(3);
}

#[test]
fn the_right_to_initialise_passes_along_the_wait_queue() {
    let (cell, calls) = (Arc::new(OnceCell::new()), Calls::new());
    let first = endless(&cell, &calls);
    let second = in_line(&cell, &calls, 2);
    let mut third = in_line(&cell, &calls, 3);
    let mut fourth = in_line(&cell, &calls, 4);
    drop(first);
    assert_eq!(calls.count(), 1, "one is enough to try");
    assert!(poll(third.as_mut()).is_pending());
    // This waiter has the right to initialise, and was not polled since.
    drop(second);
    assert_eq!(poll(third.as_mut()), Poll::Ready(3));
    assert_eq!(poll(fourth.as_mut()), Poll::Ready(3));
    assert_eq!(cell.get(), Some(&3));
}

#[test]
fn a_cancelled_waiter_leaves_an_empty_cell_usable() {
    let (cell, calls) = (Arc::new(OnceCell::new()), Calls::new());
    let first = endless(&cell, &calls);
    drop(in_line(&cell, &calls, 2));
    drop(first);
    assert_eq!(cell.set(5), Ok(()));
}

#[test]
fn all_of_many_waiters_for_a_cell_are_woken() {
    let (cell, calls) = (Arc::new(OnceCell::new()), Calls::new());
    let first = endless(&cell, &calls);
    let mut second = in_line(&cell, &calls, 7);
    let mut waiting: Vec<_> = (0..MANY).map(|_| in_line(&cell, &calls, 0)).collect();
    drop(first);
    assert_eq!(poll(second.as_mut()), Poll::Ready(7));
    assert_eq!(calls.count(), MANY + 1);
    assert!(waiting.iter_mut().all(|waiting| poll(waiting.as_mut()) == Poll::Ready(7)));
}

#[test]
fn all_of_many_waiters_for_a_set_once_are_woken() {
    let _watch = watch::begin();
    let cell = Arc::new(SetOnce::new());
    // A waker may use the cell again.
    let calls = Calls::doing({
        let cell = cell.clone();
        move || assert_eq!((cell.get(), cell.set(2)), (Some(&1), Err(SetOnceError(2))))
    });
    let mut waiting = Vec::new();
    for _ in 0..MANY {
        let cell = cell.clone();
        let mut one: Waiting<u32> = Box::pin(async move { *cell.wait().await });
        assert!(calls.poll(one.as_mut()).is_pending());
        waiting.push(one);
    }
    drop(waiting.pop());
    assert_eq!(cell.set(1), Ok(()));
    assert_eq!(calls.count(), MANY - 1);
    assert!(waiting.iter_mut().all(|waiting| poll(waiting.as_mut()) == Poll::Ready(1)));
}

#[test]
fn cells_compare_and_clone_by_value() {
    let full = OnceCell::from(1);
    assert_eq!(full, full.clone());
    assert_ne!(full, OnceCell::new());
    assert_eq!(format!("{full:?}"), "OnceCell { value: Some(1) }");
    let full = SetOnce::from(1);
    assert_eq!(full, full.clone());
    assert_ne!(full, SetOnce::default());
    assert_eq!(format!("{full:?}"), "SetOnce { value: Some(1) }");
    assert_eq!(SetError::InitializingError(1).to_string(), "InitializingError");
    assert_eq!(SetError::AlreadyInitializedError(1).to_string(), "AlreadyInitializedError");
    assert_eq!(SetOnceError(1).to_string(), "SetOnceError");
}

#[test]
fn awaiting_a_full_cell_takes_budget() {
    let (cell, set) = (OnceCell::from(1), SetOnce::from(1));
    assert_eq!(completed_in_one_poll(|| cell.get_or_init(|| ready(2))), 128);
    assert_eq!(completed_in_one_poll(|| cell.get_or_try_init(|| ready(Err(())))), 128);
    assert_eq!(completed_in_one_poll(|| set.wait()), 128);
}

/// Tasks fail, give up and succeed: one value is created once, and all tasks see it.
#[test]
fn one_initialiser_of_many_wins() {
    const TASKS: usize = 16;
    let _watch = watch::begin();
    let rt = workers(4);
    for _round in 0..100 {
        let tally = Tally::new();
        let cell = Arc::new(OnceCell::new());
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let (cell, tally) = (cell.clone(), tally.clone());
                rt.spawn(async move {
                    let make = async || {
                        blitz_io::task::yield_now().await;
                        if number % 2 == 0 { Err(number) } else { Ok((number, tally.token())) }
                    };
                    let mut asked = pin!(cell.get_or_try_init(make));
                    if number % 4 == 3 {
                        // Polled once, and dropped in whatever state it is.
                        let _ =
                            std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
                        return None;
                    }
                    asked.await.ok().map(|(winner, token)| {
                        token.keep();
                        *winner
                    })
                })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.extend(rt.block_on(task).unwrap());
        }
        let winner = cell.get().expect("some do not give up").0;
        assert!(!answers.is_empty() && answers.iter().all(|answer| *answer == winner));
        drop(cell);
        tally.assert_all_dropped(1);
    }
}
