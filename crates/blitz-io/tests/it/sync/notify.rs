//! `Notify`: a stored permit, one or all waiters woken, `enable`, owned futures.

use std::sync::Arc;

use blitz_io::sync::Notify;

use crate::polled::{by_hand, now, waiting};

#[test]
fn a_notification_without_a_waiter_is_kept() {
    let notify = Notify::new();
    notify.notify_one();
    now(notify.notified());
    waiting(notify.notified());
}

#[test]
fn at_most_one_notification_is_kept() {
    let notify = Notify::new();
    for _ in 0..3 {
        notify.notify_one();
    }
    now(notify.notified());
    waiting(notify.notified());
}

#[test]
fn notify_one_wakes_the_oldest_waiter() {
    let notify = Notify::new();
    let mut first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    notify.notify_one();
    second.still_waits();
    first.woken_and_ready();
    notify.notify_one();
    second.woken_and_ready();
    waiting(notify.notified());
}

#[test]
fn two_notifications_wake_two_waiters() {
    let notify = Notify::new();
    let mut first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    let mut third = waiting(notify.notified());
    notify.notify_one();
    notify.notify_one();
    first.woken_and_ready();
    second.woken_and_ready();
    third.still_waits();
}

#[test]
fn notify_last_wakes_the_newest_waiter() {
    let notify = Notify::new();
    let mut first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    let mut third = waiting(notify.notified());
    notify.notify_last();
    first.still_waits();
    second.still_waits();
    third.woken_and_ready();
    notify.notify_last();
    first.still_waits();
    second.woken_and_ready();
    notify.notify_last();
    first.woken_and_ready();
    notify.notify_last();
    now(notify.notified());
}

#[test]
fn notify_waiters_wakes_all_and_keeps_nothing() {
    let notify = Notify::new();
    let mut all: Vec<_> = (0..100).map(|_| waiting(notify.notified())).collect();
    notify.notify_waiters();
    for waiter in &mut all {
        waiter.woken_and_ready();
    }
    waiting(notify.notified());
    notify.notify_waiters();
    waiting(notify.notified());
}

#[test]
fn notify_waiters_reaches_futures_that_were_created_but_never_polled() {
    let notify = Notify::new();
    let mut created = by_hand(notify.notified());
    notify.notify_waiters();
    let mut late = by_hand(notify.notified());
    created.ready();
    late.pending();
}

#[test]
fn notify_one_does_not_need_a_poll_to_be_kept_for_the_next() {
    let notify = Notify::new();
    let mut created = by_hand(notify.notified());
    notify.notify_one();
    // The permit is not bound to the future that exists.
    now(notify.notified());
    created.pending();
}

#[test]
fn a_kept_notification_survives_notify_waiters() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_waiters();
    now(notify.notified());
    waiting(notify.notified());
}

#[test]
fn a_future_reached_by_notify_waiters_does_not_take_the_kept_notification() {
    let notify = Notify::new();
    let mut created = by_hand(notify.notified());
    notify.notify_waiters();
    notify.notify_one();
    created.ready();
    now(notify.notified());
    waiting(notify.notified());
}

#[test]
fn a_notified_future_that_is_dropped_passes_it_on() {
    let notify = Notify::new();
    let first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    notify.notify_one();
    assert!(first.woken());
    drop(first);
    second.woken_and_ready();
    // Without another waiter to pass it to, the notification is stored.
    let only = waiting(notify.notified());
    notify.notify_one();
    drop(only);
    now(notify.notified());
}

#[test]
fn a_notification_from_behind_is_passed_on_to_the_last_again() {
    let notify = Notify::new();
    let mut first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    let third = waiting(notify.notified());
    notify.notify_last();
    assert!(third.woken());
    drop(third);
    first.still_waits();
    second.woken_and_ready();
}

#[test]
fn a_future_woken_by_notify_waiters_and_dropped_passes_nothing_on() {
    let notify = Notify::new();
    let first = waiting(notify.notified());
    notify.notify_waiters();
    let mut second = waiting(notify.notified());
    drop(first);
    second.still_waits();
    drop(second);
    waiting(notify.notified());
}

#[test]
fn a_dropped_waiter_leaves_the_wait_queue() {
    let notify = Notify::new();
    let first = waiting(notify.notified());
    let mut second = waiting(notify.notified());
    drop(first);
    notify.notify_one();
    second.woken_and_ready();
}

#[test]
fn an_enabled_future_is_in_the_wait_queue_before_its_first_poll() {
    let notify = Notify::new();
    let mut enabled = by_hand(notify.notified());
    assert!(!enabled.pin().enable());
    let mut second = waiting(notify.notified());
    notify.notify_one();
    second.still_waits();
    assert!(enabled.pin().enable(), "it is notified");
    enabled.ready();
}

#[test]
fn enabling_takes_a_kept_notification() {
    let notify = Notify::new();
    notify.notify_one();
    let mut enabled = by_hand(notify.notified());
    assert!(enabled.pin().enable());
    waiting(notify.notified());
    enabled.ready();
}

#[test]
fn an_enabled_future_that_is_dropped_passes_the_notification_on() {
    let notify = Notify::new();
    let mut enabled = by_hand(notify.notified());
    enabled.pin().enable();
    let mut second = waiting(notify.notified());
    notify.notify_one();
    drop(enabled);
    second.woken_and_ready();
}

#[test]
fn owned_futures_use_the_same_wait_queue_and_keep_the_notify_alive() {
    let notify = Arc::new(Notify::new());
    let mut owned = waiting(notify.clone().notified_owned());
    let mut borrowed = waiting(notify.notified());
    notify.notify_one();
    borrowed.still_waits();
    owned.woken_and_ready();
    drop((owned, borrowed));
    let mut owned = by_hand(notify.clone().notified_owned());
    assert!(!owned.pin().enable());
    let weak = Arc::downgrade(&notify);
    notify.notify_waiters();
    drop(notify);
    owned.ready();
    drop(owned);
    assert!(weak.upgrade().is_none());
}

#[test]
fn an_owned_future_passes_its_notification_on_when_dropped() {
    let notify = Arc::new(Notify::new());
    let first = waiting(notify.clone().notified_owned());
    let mut second = waiting(notify.clone().notified_owned());
    notify.notify_one();
    drop(first);
    second.woken_and_ready();
}

#[test]
fn a_finished_future_stays_finished() {
    let notify = Notify::new();
    let mut done = waiting(notify.notified());
    notify.notify_one();
    done.ready();
    done.ready();
}

#[test]
fn a_constant_notify_works() {
    static NOTIFY: Notify = Notify::const_new();
    NOTIFY.notify_one();
    now(NOTIFY.notified());
    waiting(Notify::default().notified());
}

#[test]
fn a_waiter_polled_with_another_waker_wakes_the_last_one() {
    let notify = Notify::new();
    let mut waiter = by_hand(notify.notified());
    assert!(waiter.poll_with(std::task::Waker::noop()).is_pending());
    waiter.pending();
    notify.notify_waiters();
    waiter.woken_and_ready();
}
