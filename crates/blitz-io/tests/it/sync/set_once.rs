//! `SetOnce`: set once, and every waiter sees the value.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use blitz_io::sync::{SetOnce, SetOnceError};

use crate::{
    make::workers,
    polled::{by_hand, now, waiting},
    tally::Tally,
    watch,
};

#[test]
fn a_value_is_set_once_and_the_second_comes_back() {
    let once = SetOnce::new();
    assert!(!once.initialized());
    assert_eq!(once.get(), None);
    once.set(1).unwrap();
    assert_eq!(once.set(2), Err(SetOnceError(2)));
    assert_eq!((once.initialized(), once.get()), (true, Some(&1)));
}

#[test]
fn setting_wakes_every_waiter() {
    let once = SetOnce::new();
    let mut waiters: Vec<_> = (0..50).map(|_| waiting(once.wait())).collect();
    let mut unpolled = by_hand(once.wait());
    once.set(7).unwrap();
    for waiter in &mut waiters {
        assert_eq!(*waiter.woken_and_ready(), 7);
    }
    assert_eq!(*unpolled.ready(), 7);
    assert_eq!(*now(once.wait()), 7);
}

#[test]
fn a_waiter_that_leaves_takes_nothing_along() {
    let once = SetOnce::new();
    let first = waiting(once.wait());
    let mut second = waiting(once.wait());
    drop(first);
    once.set(()).unwrap();
    second.woken_and_ready();
}

#[test]
fn a_refused_set_wakes_no_waiter_and_drops_nothing() {
    let tally = Tally::new();
    let once = SetOnce::new();
    assert!(once.set(tally.token()).is_ok());
    let refused = once.set(tally.token()).unwrap_err();
    assert_eq!(tally.dropped(), 0);
    refused.0.keep();
    drop(refused);
    drop(once);
    tally.assert_all_dropped(2);
    drop(SetOnce::from(tally.token()).into_inner());
    tally.assert_all_dropped(3);
    drop(SetOnce::new_with(Some(tally.token())));
    tally.assert_all_dropped(4);
}

#[test]
fn a_set_once_is_made_cloned_and_compared_by_value() {
    let full = SetOnce::from(1);
    assert_eq!(full.clone(), full);
    assert_ne!(SetOnce::default(), full);
    assert_eq!(SetOnce::<u8>::new_with(None), SetOnce::new());
    assert_eq!(full.into_inner(), Some(1));
    assert_eq!(SetOnce::<u8>::new().into_inner(), None);
}

#[test]
fn constant_ones_work() {
    static EMPTY: SetOnce<u8> = SetOnce::const_new();
    static FULL: SetOnce<u8> = SetOnce::const_new_with(4);
    assert_eq!(*now(FULL.wait()), 4);
    let mut waiter = waiting(EMPTY.wait());
    EMPTY.set(3).unwrap();
    assert_eq!(*waiter.woken_and_ready(), 3);
}

#[test]
fn the_error_says_what_it_is() {
    assert_eq!(SetOnceError(1).to_string(), "SetOnceError");
    let _: &dyn std::error::Error = &SetOnceError(1);
}

#[test]
fn one_of_many_threads_sets_and_all_see_its_value() {
    let _watch = watch::begin();
    let rt = workers(4);
    for _ in 0..50 {
        let (once, winners) = (Arc::new(SetOnce::new()), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..8)
            .map(|me| {
                let (once, winners) = (once.clone(), winners.clone());
                rt.spawn(async move {
                    if me % 2 == 0 && once.set(me).is_ok() {
                        winners.fetch_add(1, Relaxed);
                    }
                    *once.wait().await
                })
            })
            .collect();
        let mut answers = tasks.into_iter().map(|task| rt.block_on(task).unwrap());
        let first = answers.next().unwrap();
        assert!(answers.all(|answer| answer == first));
        assert_eq!(winners.load(Relaxed), 1);
    }
}
