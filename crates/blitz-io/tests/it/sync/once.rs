//! Tests `OnceCell` and `SetOnce`: which task initialises, which tasks wait, and what is dropped.

use std::{
    cell::Cell,
    future::{Future, pending, ready},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::sync::{Notify, OnceCell, SetError, SetOnce, SetOnceError};

use crate::support::{
    budget::completed_in_one_poll,
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    manual_poll::{by_hand, now, poll_once, waiting},
    runtimes::workers,
    wakers::WakeCount,
    watchdog,
};

/// More waiters than three wake lists hold.
const MANY: usize = 100;

type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Polls a `get_or_init` once, with an initialiser that never completes.
fn endless(cell: &Arc<OnceCell<u32>>, calls: &Arc<WakeCount>) -> Waiting<u32> {
    let cell = cell.clone();
    let mut waiting: Waiting<u32> = Box::pin(async move { *cell.get_or_init(pending).await });
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

/// Enters a `get_or_init` into the wait queue; it provides `value` if it becomes the initialiser.
fn in_line(cell: &Arc<OnceCell<u32>>, calls: &Arc<WakeCount>, value: u32) -> Waiting<u32> {
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
            panic!("this drop panics on purpose");
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = OnceCell::from(Bad(drops.clone()));
    assert!(panic_of(|| drop(cell)).message.contains("on purpose"));
    let cell = SetOnce::from(Bad(drops.clone()));
    assert!(panic_of(|| drop(cell)).message.contains("on purpose"));
    assert_eq!(drops.load(Relaxed), 2);
}

#[test]
fn an_initialiser_that_is_dropped_or_panics_or_fails_leaves_the_cell_empty() {
    let tally = Tally::new();
    let cell = OnceCell::<Token>::new();
    {
        let held = tally.token();
        let mut attempt = Box::pin(cell.get_or_init(async || {
            held.keep();
            pending().await
        }));
        assert!(poll_once(&mut attempt).is_pending());
        let refused = cell.set(tally.token());
        assert!(matches!(refused, Err(SetError::InitializingError(_))));
    }
    let panics = || -> std::future::Ready<Token> { panic!("this initialiser panics on purpose") };
    assert!(panic_of(|| now(cell.get_or_init(panics))).message.contains("on purpose"));
    let polled_panics = async || panic!("this future panics on purpose");
    assert!(panic_of(|| now(cell.get_or_init(polled_panics))).message.contains("on purpose"));
    assert_eq!(now(cell.get_or_try_init(async || Err("no"))).err(), Some("no"));
    assert!(cell.set(tally.token()).is_ok());
    drop(cell);
    tally.assert_all_dropped(3);
}

#[test]
fn the_right_to_initialise_passes_along_the_wait_queue() {
    let (cell, calls) = (Arc::new(OnceCell::new()), WakeCount::new());
    let first = endless(&cell, &calls);
    let second = in_line(&cell, &calls, 2);
    let mut third = in_line(&cell, &calls, 3);
    let mut fourth = in_line(&cell, &calls, 4);
    drop(first);
    assert_eq!(calls.count(), 1, "one is enough to try");
    assert!(poll_once(&mut third).is_pending());
    // This waiter has the right to initialise, and was not polled since.
    drop(second);
    assert_eq!(poll_once(&mut third), Poll::Ready(3));
    assert_eq!(poll_once(&mut fourth), Poll::Ready(3));
    assert_eq!(cell.get(), Some(&3));
}

#[test]
fn a_cancelled_waiter_leaves_an_empty_cell_usable() {
    let (cell, calls) = (Arc::new(OnceCell::new()), WakeCount::new());
    let first = endless(&cell, &calls);
    drop(in_line(&cell, &calls, 2));
    drop(first);
    assert_eq!(cell.set(5), Ok(()));
}

#[test]
fn all_of_many_waiters_for_a_cell_are_woken() {
    let (cell, calls) = (Arc::new(OnceCell::new()), WakeCount::new());
    let first = endless(&cell, &calls);
    let mut second = in_line(&cell, &calls, 7);
    let mut waiting: Vec<_> = (0..MANY).map(|_| in_line(&cell, &calls, 0)).collect();
    drop(first);
    assert_eq!(poll_once(&mut second), Poll::Ready(7));
    assert_eq!(calls.count(), MANY + 1);
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting) == Poll::Ready(7)));
}

#[test]
fn all_of_many_waiters_for_a_set_once_are_woken() {
    let _watch = watchdog::start();
    let cell = Arc::new(SetOnce::new());
    // A waker may use the cell again.
    let calls = WakeCount::doing({
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
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting) == Poll::Ready(1)));
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
    let _watch = watchdog::start();
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
                    let mut attempt = pin!(cell.get_or_try_init(make));
                    if number % 4 == 3 {
                        // Polled once, and dropped in whatever state it is.
                        let _ =
                            std::future::poll_fn(|cx| Poll::Ready(attempt.as_mut().poll(cx))).await;
                        return None;
                    }
                    attempt.await.ok().map(|(winner, token)| {
                        token.keep();
                        *winner
                    })
                })
            })
            .collect();
        let mut values = Vec::new();
        for task in tasks {
            values.extend(rt.block_on(task).unwrap());
        }
        let winner = cell.get().expect("some do not give up").0;
        assert!(!values.is_empty() && values.iter().all(|value| *value == winner));
        drop(cell);
        tally.assert_all_dropped(1);
    }
}

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
    let called = Cell::new(false);
    let value = now(cell.get_or_init(|| {
        called.set(true);
        ready(2)
    }));
    assert_eq!((*value, called.get()), (1, false));
}

#[test]
fn waiters_get_the_value_of_the_initialiser() {
    let (cell, notify) = (OnceCell::new(), Notify::new());
    let mut first = waiting(cell.get_or_init(|| after(&notify, 1)));
    let mut second = waiting(cell.get_or_init(|| ready(2)));
    let mut third = waiting(cell.get_or_try_init(|| ready(Err::<u8, _>("not run"))));
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
fn cells_are_equal_if_their_values_are() {
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
    let _watch = watchdog::start();
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
        let mut values = tasks.into_iter().map(|task| rt.block_on(task).unwrap());
        let first = values.next().unwrap();
        assert!(values.all(|value| value == first));
        assert_eq!(runs.load(Relaxed), 1);
    }
}

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
    let _watch = watchdog::start();
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
        let mut values = tasks.into_iter().map(|task| rt.block_on(task).unwrap());
        let first = values.next().unwrap();
        assert!(values.all(|value| value == first));
        assert_eq!(winners.load(Relaxed), 1);
    }
}
