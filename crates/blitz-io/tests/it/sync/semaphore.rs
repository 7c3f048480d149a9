//! Tests `Semaphore`: permits, first come first served, closing, many permits, owned and forgotten
//! ones.

use std::sync::Arc;

use blitz_io::sync::{AcquireError, Semaphore, TryAcquireError};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn a_permit_is_taken_and_comes_back_when_dropped() {
    let semaphore = Semaphore::new(2);
    let first = now(semaphore.acquire()).unwrap();
    assert_eq!(semaphore.available_permits(), 1);
    let second = semaphore.try_acquire().unwrap();
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(first);
    assert_eq!(semaphore.available_permits(), 1);
    drop(second);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn the_oldest_waiter_is_served_first() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire().unwrap();
    let mut first = waiting(semaphore.acquire());
    let mut second = waiting(semaphore.acquire());
    let mut third = waiting(semaphore.acquire());
    drop(held);
    second.still_waits();
    third.still_waits();
    let held = first.woken_and_ready().unwrap();
    second.still_waits();
    drop(held);
    third.still_waits();
    let held = second.woken_and_ready().unwrap();
    drop(held);
    drop(third.woken_and_ready().unwrap());
    drop((first, second, third));
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn no_request_overtakes_a_waiter_for_many_permits() {
    let semaphore = Semaphore::new(3);
    let held = semaphore.try_acquire_many(2).unwrap();
    let mut many = waiting(semaphore.acquire_many(3));
    // The one free permit is reserved for the waiter.
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    let mut one = waiting(semaphore.acquire());
    drop(held);
    one.still_waits();
    let all = many.woken_and_ready().unwrap();
    assert_eq!(all.num_permits(), 3);
    drop(all);
    drop(one.woken_and_ready().unwrap());
}

#[test]
fn permits_released_one_by_one_serve_a_waiter_for_many() {
    let semaphore = Semaphore::new(0);
    let mut many = waiting(semaphore.acquire_many(3));
    for _ in 0..2 {
        semaphore.add_permits(1);
        many.still_waits();
    }
    semaphore.add_permits(1);
    assert_eq!(many.woken_and_ready().unwrap().num_permits(), 3);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn added_permits_serve_as_many_waiters_as_they_can() {
    let semaphore = Semaphore::new(0);
    let mut waiters: Vec<_> = (0..5).map(|_| waiting(semaphore.acquire())).collect();
    semaphore.add_permits(3);
    for waiter in &mut waiters[..3] {
        waiter.woken_and_ready().unwrap().forget();
    }
    for waiter in &mut waiters[3..] {
        waiter.still_waits();
    }
    drop(waiters);
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn a_hundred_waiters_are_served_by_one_call() {
    let semaphore = Semaphore::new(0);
    let mut waiters: Vec<_> = (0..100).map(|_| waiting(semaphore.acquire())).collect();
    semaphore.add_permits(100);
    for waiter in &mut waiters {
        waiter.woken_and_ready().unwrap().forget();
    }
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn no_permits_at_all_can_be_acquired_from_an_empty_semaphore() {
    let semaphore = Semaphore::new(0);
    let none = now(semaphore.acquire_many(0)).unwrap();
    assert_eq!(none.num_permits(), 0);
    let none = semaphore.try_acquire_many(0).unwrap();
    assert_eq!(none.num_permits(), 0);
    drop(none);
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn a_forgotten_permit_does_not_come_back() {
    let semaphore = Arc::new(Semaphore::new(5));
    semaphore.try_acquire().unwrap().forget();
    assert_eq!(semaphore.available_permits(), 4);
    semaphore.clone().try_acquire_many_owned(2).unwrap().forget();
    assert_eq!(semaphore.available_permits(), 2);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn forget_permits_takes_the_available_ones_and_returns_their_number() {
    let semaphore = Semaphore::new(10);
    assert_eq!(semaphore.forget_permits(3), 3);
    assert_eq!(semaphore.available_permits(), 7);
    assert_eq!(semaphore.forget_permits(0), 0);
    assert_eq!(semaphore.forget_permits(100), 7);
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(semaphore.forget_permits(1), 0);
}

#[test]
fn closing_refuses_waiters_and_newcomers_but_keeps_permits() {
    let semaphore = Arc::new(Semaphore::new(1));
    let held = semaphore.try_acquire().unwrap();
    let mut first = waiting(semaphore.acquire());
    let mut second = waiting(semaphore.clone().acquire_many_owned(3));
    let mut unpolled = by_hand(semaphore.acquire());
    assert!(!semaphore.is_closed());
    semaphore.close();
    assert!(semaphore.is_closed());
    first.woken_and_ready().unwrap_err();
    second.woken_and_ready().unwrap_err();
    unpolled.ready().unwrap_err();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert_eq!(semaphore.try_acquire_many(9).unwrap_err(), TryAcquireError::Closed);
    now(semaphore.acquire()).unwrap_err();
    drop(held);
    assert_eq!(semaphore.available_permits(), 1, "a permit outlives the close");
    // Closing twice changes nothing.
    semaphore.close();
    assert!(semaphore.is_closed());
}

#[test]
fn a_waiter_served_just_before_the_close_loses_no_permit() {
    let semaphore = Semaphore::new(0);
    let mut served = waiting(semaphore.acquire());
    semaphore.add_permits(1);
    semaphore.close();
    // Whether the waiter still gets the permit or is refused is not promised.
    drop(served.woken_and_ready());
    drop(served);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn merged_and_split_permits_count_as_their_sum() {
    let semaphore = Semaphore::new(10);
    let mut permit = semaphore.try_acquire_many(5).unwrap();
    permit.merge(semaphore.try_acquire_many(3).unwrap());
    assert_eq!(permit.num_permits(), 8);
    let mut part = permit.split(6).unwrap();
    assert_eq!((permit.num_permits(), part.num_permits()), (2, 6));
    assert!(permit.split(3).is_none(), "it holds only two");
    assert!(part.split(0).is_some_and(|none| none.num_permits() == 0));
    drop(part);
    assert_eq!(semaphore.available_permits(), 8);
    drop(permit);
    assert_eq!(semaphore.available_permits(), 10);
}

#[test]
fn owned_permits_merge_split_and_know_their_semaphore() {
    let semaphore = Arc::new(Semaphore::new(4));
    let mut permit = now(semaphore.clone().acquire_owned()).unwrap();
    permit.merge(now(semaphore.clone().acquire_many_owned(2)).unwrap());
    let part = permit.split(1).unwrap();
    assert_eq!((permit.num_permits(), part.num_permits()), (2, 1));
    assert!(Arc::ptr_eq(part.semaphore(), &semaphore));
    drop(permit);
    assert_eq!(semaphore.available_permits(), 3);
    let weak = Arc::downgrade(&semaphore);
    drop(semaphore);
    assert!(weak.upgrade().is_some(), "the owned permit keeps it alive");
    drop(part);
    assert!(weak.upgrade().is_none());
}

#[test]
fn permits_of_two_semaphores_do_not_merge() {
    let (one, other) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let caught = panic_of(|| one.try_acquire().unwrap().merge(other.try_acquire().unwrap()));
    caught.says(&["merging permits from different semaphore instances"]);
    assert_eq!(caught.file, file!(), "the caller is named");
    let caught = panic_of(|| {
        let second = other.clone().try_acquire_owned().unwrap();
        one.clone().try_acquire_owned().unwrap().merge(second);
    });
    caught.says(&["merging permits from different semaphore instances"]);
    assert_eq!(caught.file, file!(), "the caller is named");
    assert_eq!((one.available_permits(), other.available_permits()), (1, 1));
}

#[test]
fn more_permits_than_the_maximum_panic() {
    let over = Semaphore::MAX_PERMITS + 1;
    panic_of(|| Semaphore::new(over))
        .says(&["a semaphore may not have more than MAX_PERMITS permits"]);
    panic_of(|| Semaphore::const_new(over)).says(&["MAX_PERMITS"]);
    assert_eq!(Semaphore::new(over - 1).available_permits(), over - 1);
}

#[test]
fn adding_past_the_maximum_panics() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    panic_of(|| semaphore.add_permits(1)).says(&["MAX_PERMITS"]);
    let semaphore = Semaphore::new(1);
    panic_of(|| semaphore.add_permits(usize::MAX)).says(&["MAX_PERMITS"]);
    drop(semaphore.try_acquire().expect("the semaphore still works"));
}

#[test]
fn a_full_semaphore_gives_up_to_the_largest_number_of_a_request() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
    let many = semaphore.try_acquire_many(most).unwrap();
    assert_eq!(many.num_permits(), most as usize);
    drop(many);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

#[test]
fn a_waiter_polled_with_another_waker_wakes_the_last_one() {
    let semaphore = Semaphore::new(0);
    let mut waiter = waiting(semaphore.acquire());
    assert!(waiter.poll_with(std::task::Waker::noop()).is_pending());
    waiter.pending();
    assert!(waiter.poll_with(std::task::Waker::noop()).is_pending());
    semaphore.add_permits(1);
    assert!(!waiter.woken(), "its first waker is out of date");
    drop(waiter.ready().unwrap());
}

#[test]
fn a_waiter_that_leaves_passes_its_part_to_the_next() {
    let semaphore = Semaphore::new(1);
    let greedy = waiting(semaphore.acquire_many(2));
    let mut modest = waiting(semaphore.acquire());
    modest.still_waits();
    drop(greedy);
    modest.woken_and_ready().unwrap().forget();
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn a_constant_semaphore_works() {
    static SEMAPHORE: Semaphore = Semaphore::const_new(1);
    let held = SEMAPHORE.try_acquire().unwrap();
    let mut waiter = waiting(SEMAPHORE.acquire());
    drop(held);
    drop(waiter.woken_and_ready().unwrap());
    assert_eq!(SEMAPHORE.available_permits(), 1);
}

#[test]
fn errors_say_what_happened() {
    let semaphore = Semaphore::new(0);
    let none = semaphore.try_acquire().unwrap_err();
    assert_eq!(none.to_string(), "no permits available");
    semaphore.close();
    let closed: AcquireError = now(semaphore.acquire()).unwrap_err();
    assert_eq!(closed.to_string(), "semaphore closed");
    let closed = semaphore.try_acquire().unwrap_err();
    assert_eq!(closed.to_string(), "semaphore closed");
    let _: &dyn std::error::Error = &closed;
}
