//! Tests `Mutex`: mutual exclusion, first come first served, owned and mapped guards.

use std::sync::Arc;

use blitz_io::sync::{MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn only_one_holds_the_lock() {
    let mutex = Mutex::new(1);
    let mut guard = now(mutex.lock());
    assert!(mutex.try_lock().is_err());
    *guard += 1;
    let mut other = waiting(mutex.lock());
    drop(guard);
    assert_eq!(*other.woken_and_ready(), 2);
}

#[test]
fn waiters_get_the_lock_in_the_order_they_came() {
    let mutex = Mutex::new(Vec::new());
    let guard = now(mutex.lock());
    let mut waiters: Vec<_> = (0..5).map(|_| waiting(mutex.lock())).collect();
    drop(guard);
    for turn in 0..5 {
        for later in &mut waiters[turn + 1..] {
            later.still_waits();
        }
        waiters[turn].woken_and_ready().push(turn);
    }
    drop(waiters);
    assert_eq!(mutex.into_inner(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_released_lock_belongs_to_the_first_waiter_and_not_to_a_newcomer() {
    let mutex = Mutex::new(());
    let guard = now(mutex.lock());
    let mut waiter = waiting(mutex.lock());
    drop(guard);
    assert!(mutex.try_lock().is_err(), "it is handed over already");
    let mut newcomer = waiting(mutex.lock());
    drop(waiter.woken_and_ready());
    drop(newcomer.woken_and_ready());
}

#[test]
fn a_dropped_waiter_does_not_block_the_wait_queue() {
    let mutex = Mutex::new(());
    let guard = now(mutex.lock());
    let first = waiting(mutex.lock());
    let mut second = waiting(mutex.lock());
    drop(first);
    drop(guard);
    drop(second.woken_and_ready());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_waiter_that_leaves_after_the_lock_was_handed_to_it_hands_it_on() {
    let mutex = Mutex::new(());
    let guard = now(mutex.lock());
    let first = waiting(mutex.lock());
    let mut second = waiting(mutex.lock());
    drop(guard);
    assert!(first.woken());
    second.still_waits();
    drop(first);
    drop(second.woken_and_ready());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn an_owned_guard_keeps_the_mutex_alive() {
    let tally = Tally::new();
    let mutex = Arc::new(Mutex::new(tally.token()));
    let guard = now(mutex.clone().lock_owned());
    assert!(mutex.clone().try_lock_owned().is_err());
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    drop(mutex);
    guard.keep();
    assert_eq!(tally.dropped(), 0);
    drop(guard);
    tally.assert_all_dropped(1);
}

#[test]
fn an_owned_waiter_gets_the_lock_when_a_borrowed_guard_goes() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = now(mutex.lock());
    let mut owned = waiting(mutex.clone().lock_owned());
    drop(guard);
    *owned.woken_and_ready() = 5;
    assert_eq!(*mutex.try_lock().unwrap(), 5);
}

#[test]
fn a_mapped_guard_shows_a_part_and_holds_the_lock() {
    let mutex = Mutex::new((1, String::from("a")));
    let guard = MutexGuard::map(now(mutex.lock()), |pair| &mut pair.1);
    assert!(mutex.try_lock().is_err());
    let mut first = MappedMutexGuard::map(guard, |text| text);
    first.make_ascii_uppercase();
    assert!(mutex.try_lock().is_err());
    drop(first);
    assert_eq!(*mutex.try_lock().unwrap(), (1, String::from("A")));
}

#[test]
fn an_owned_mapped_guard_shows_a_part_and_holds_the_lock() {
    let mutex = Arc::new(Mutex::new((1, 2)));
    let guard = OwnedMutexGuard::map(now(mutex.clone().lock_owned()), |pair| &mut pair.1);
    assert!(mutex.try_lock().is_err());
    let mut same = blitz_io::sync::OwnedMappedMutexGuard::map(guard, |part| part);
    *same = 7;
    drop(same);
    assert_eq!(*mutex.try_lock().unwrap(), (1, 7));
}

#[test]
fn a_map_that_fails_gives_the_guard_back() {
    let mutex = Arc::new(Mutex::new(Some(3)));
    let guard = MutexGuard::try_map(now(mutex.lock()), |value| value.as_mut()).unwrap();
    assert_eq!(*guard, 3);
    drop(guard);
    *mutex.try_lock().unwrap() = None;
    let guard = MutexGuard::try_map(now(mutex.lock()), |value| value.as_mut()).unwrap_err();
    assert!(guard.is_none() && mutex.try_lock().is_err(), "the lock is still held");
    drop(guard);
    let guard = OwnedMutexGuard::try_map(now(mutex.clone().lock_owned()), Option::as_mut);
    let guard = guard.map(drop).unwrap_err();
    assert!(mutex.try_lock().is_err(), "the lock is still held");
    drop(guard);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_map_that_panics_releases_the_lock() {
    let mutex = Arc::new(Mutex::new(1));
    panic_of(|| MutexGuard::map(now(mutex.lock()), |_| -> &mut u8 { panic!("no part") }));
    assert!(mutex.try_lock().is_ok());
    panic_of(|| {
        let guard = now(mutex.clone().lock_owned());
        OwnedMutexGuard::try_map(guard, |_| -> Option<&mut u8> { panic!("no part") })
    });
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_panic_with_the_guard_releases_the_lock_without_poison() {
    let mutex = Mutex::new(0);
    panic_of(|| {
        let mut guard = now(mutex.lock());
        *guard = 9;
        panic!("while it is held");
    });
    assert_eq!(*now(mutex.lock()), 9);
}

#[test]
fn a_guard_knows_its_mutex() {
    let mutex = Mutex::new(0);
    let guard = now(mutex.lock());
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &raw const mutex));
}

#[test]
fn the_owner_reaches_the_value_without_locking() {
    let mut mutex = Mutex::new(1);
    *mutex.get_mut() += 1;
    assert_eq!(mutex.into_inner(), 2);
    assert_eq!(Mutex::from(4).into_inner(), 4);
    assert_eq!(Mutex::<u8>::default().into_inner(), 0);
}

#[test]
fn a_mutex_of_an_unsized_value_works() {
    let mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2, 3]));
    now(mutex.lock())[1] = 9;
    assert_eq!(*now(mutex.clone().lock_owned()), [1, 9, 3]);
}

#[test]
fn a_constant_mutex_works() {
    static MUTEX: Mutex<u32> = Mutex::const_new(0);
    *now(MUTEX.lock()) += 1;
    assert_eq!(*MUTEX.try_lock().unwrap(), 1);
}

#[test]
fn a_lock_that_was_never_polled_takes_nothing() {
    let mutex = Mutex::new(());
    let unpolled = by_hand(mutex.lock());
    assert!(mutex.try_lock().is_ok());
    drop(unpolled);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_failed_try_says_that_it_would_block() {
    let mutex = Mutex::new(());
    let _guard = now(mutex.lock());
    let error = mutex.try_lock().unwrap_err();
    assert_eq!(error.to_string(), "operation would block");
    let _: &dyn std::error::Error = &error;
}

#[test]
fn the_value_is_dropped_once() {
    let tally = Tally::new();
    drop(Mutex::new(tally.token()));
    tally.assert_all_dropped(1);
    let token = Mutex::new(tally.token()).into_inner();
    assert_eq!(tally.dropped(), 1);
    drop(token);
    tally.assert_all_dropped(2);
}
