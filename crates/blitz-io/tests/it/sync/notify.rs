//! Tests `Notify`: a stored permit, the order of waiters, `enable`, owned futures, and
//! notifications that are passed on.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::sync::{Notify, futures::OwnedNotified};

use crate::support::{
    budget::completed_in_one_poll,
    caught_panic::panic_of,
    manual_poll::{by_hand, now, poll_once, waiting},
    runtimes::workers,
    wakers::{WAKER_PANIC, WakeCount},
    watchdog,
};

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

/// More waiters than three wake lists hold.
const MANY: usize = 100;

type Waiting = Pin<Box<OwnedNotified>>;

/// Starts a wait for a notification, with this waker.
#[track_caller]
fn in_line(notify: &Arc<Notify>, calls: &Arc<WakeCount>) -> Waiting {
    let mut waiting = Box::pin(notify.clone().notified_owned());
    assert!(calls.poll(waiting.as_mut()).is_pending());
    waiting
}

/// Takes the permit; returns true if there was one.
fn has_permit(notify: &Notify) -> bool {
    pin!(notify.notified()).enable()
}

#[test]
fn a_notify_is_one_cache_line() {
    assert_eq!((size_of::<Notify>(), align_of::<Notify>()), (64, 64));
}

#[test]
fn notify_one_takes_the_oldest_waiter_and_notify_last_the_newest() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let mut waiting = [(); 5].map(|()| in_line(&notify, &calls));
    let mut served = Vec::new();
    for how in [Notify::notify_one, Notify::notify_last, Notify::notify_last, Notify::notify_one] {
        how(&notify);
        let ready = |at: &usize| !served.contains(at) && poll_once(&mut waiting[*at]).is_ready();
        let next: Vec<_> = (0..5).filter(ready).collect();
        assert_eq!(next.len(), 1, "one at a time");
        served.extend(next);
    }
    assert_eq!(served, [0, 4, 3, 1]);
}

#[test]
fn all_of_many_are_woken_once() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let mut waiting = [(); MANY].map(|()| in_line(&notify, &calls));
    notify.notify_waiters();
    assert_eq!(calls.count(), MANY);
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
    assert!(!has_permit(&notify));
}

/// `notify_waiters` wakes the first wake list while the other waiters are still queued. A
/// `notify_one` from one of those wakers takes effect after the notification of all waiters.
#[test]
fn a_waker_may_notify_one_while_all_are_notified() {
    let _watch = watchdog::start();
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let calling = WakeCount::doing({
        let notify = notify.clone();
        move || notify.notify_one()
    });
    let mut waiting = vec![in_line(&notify, &calling)];
    waiting.extend([(); MANY].map(|()| in_line(&notify, &calls)));
    notify.notify_waiters();
    assert_eq!((calling.count(), calls.count()), (1, MANY));
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting).is_ready()));
    assert!(has_permit(&notify), "it went to a waiter that was notified anyway");
}

#[test]
fn a_waiter_added_during_notify_waiters_waits_for_the_next_call() {
    let _watch = watchdog::start();
    let (notify, late) = (Arc::new(Notify::new()), Arc::new(std::sync::Mutex::new(Vec::new())));
    let late_calls = WakeCount::new();
    let calls = WakeCount::doing({
        let (notify, late, late_calls) = (notify.clone(), late.clone(), late_calls.clone());
        move || late.lock().unwrap().push(in_line(&notify, &late_calls))
    });
    let waiting = [(); MANY].map(|()| in_line(&notify, &calls));
    notify.notify_waiters();
    assert_eq!((calls.count(), late_calls.count()), (MANY, 0));
    drop(waiting);
    let mut late = std::mem::take(&mut *late.lock().unwrap());
    assert!(late.iter_mut().all(|late| late_calls.poll(late.as_mut()).is_pending()));
    notify.notify_waiters();
    assert_eq!(late_calls.count(), MANY);
    assert!(late.iter_mut().all(|late| poll_once(late).is_ready()));
}

/// Also a waiter that is polled before its wake list was processed is ready.
#[test]
fn a_waiter_polled_between_two_wake_lists_is_ready() {
    let _watch = watchdog::start();
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let last = Arc::new(std::sync::Mutex::new(None::<Waiting>));
    let polling = WakeCount::doing({
        let last = last.clone();
        move || {
            let mut last = last.lock().unwrap();
            assert!(poll_once(last.as_mut().unwrap()).is_ready());
        }
    });
    let mut waiting = vec![in_line(&notify, &polling)];
    waiting.extend([(); MANY].map(|()| in_line(&notify, &calls)));
    *last.lock().unwrap() = waiting.pop();
    notify.notify_waiters();
    assert_eq!((polling.count(), calls.count()), (1, MANY - 1), "the last one has left itself");
}

#[test]
fn a_notification_that_was_not_seen_goes_to_the_next() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let [first, mut second, third] = [(); 3].map(|()| in_line(&notify, &calls));
    notify.notify_one();
    drop(first);
    assert!(poll_once(&mut second).is_ready());
    notify.notify_last();
    drop(third);
    assert!(has_permit(&notify), "no other task waits");
    assert_eq!(calls.count(), 3);
}

#[test]
fn a_notification_of_the_last_that_was_not_seen_goes_to_the_last() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let [mut first, mut second, third] = [(); 3].map(|()| in_line(&notify, &calls));
    notify.notify_last();
    drop(third);
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut second).is_ready());
}

#[test]
fn a_notification_of_all_is_not_passed_on() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let first = in_line(&notify, &calls);
    notify.notify_waiters();
    let mut late = in_line(&notify, &calls);
    drop(first);
    assert!(poll_once(&mut late).is_pending());
    drop(late);
    assert!(!has_permit(&notify));
}

/// A future that was created before `notify_waiters` is notified by it, and leaves the permit.
#[test]
fn one_notified_with_all_leaves_the_permit() {
    let notify = Notify::new();
    let mut before = pin!(notify.notified());
    notify.notify_waiters();
    notify.notify_one();
    assert!(poll_once(&mut before).is_ready());
    assert!(poll_once(&mut before).is_ready(), "it stays ready");
    assert!(has_permit(&notify));
    assert!(!has_permit(&notify));
}

#[test]
fn a_waker_that_panics_leaves_a_notify_usable() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let bad = WakeCount::panicking();
    let [mut first, mut second] = [(); 2].map(|()| in_line(&notify, &bad));
    let mut third = in_line(&notify, &calls);
    assert!(panic_of(|| notify.notify_one()).message.contains(WAKER_PANIC));
    assert!(poll_once(&mut first).is_ready());
    // `notify_waiters` swallows the panic of a waker, and wakes all the others.
    notify.notify_waiters();
    assert_eq!((bad.count(), calls.count()), (2, 1));
    assert!(poll_once(&mut second).is_ready() && poll_once(&mut third).is_ready());
}

#[test]
fn being_notified_takes_budget() {
    let notify = Notify::new();
    let count = completed_in_one_poll(|| {
        notify.notify_one();
        notify.notified()
    });
    assert_eq!(count, 128);
}

/// `Debug` must work in any state.
#[test]
fn a_notify_can_be_printed_in_any_state() {
    let (notify, calls) = (Arc::new(Notify::new()), WakeCount::new());
    let waiting = in_line(&notify, &calls);
    assert_eq!(format!("{notify:?}"), "Notify { permit: false, waiting: true }");
    assert!(format!("{waiting:?} {:?}", notify.notified()).contains("Notified"));
    drop(waiting);
    notify.notify_one();
    assert_eq!(format!("{notify:?}"), "Notify { permit: true, waiting: false }");
}

#[test]
fn no_notification_is_lost_between_threads() {
    const ROUNDS: usize = 2_000;
    let _watch = watchdog::start();
    let pair = Arc::new((Notify::new(), Notify::new(), AtomicUsize::new(0)));
    let rt = workers(2);
    let ping = rt.spawn({
        let pair = pair.clone();
        async move {
            for _ in 0..ROUNDS {
                pair.2.fetch_add(1, Relaxed);
                pair.0.notify_one();
                pair.1.notified().await;
            }
        }
    });
    rt.block_on(async {
        for round in 1..=ROUNDS {
            pair.0.notified().await;
            assert_eq!(pair.2.load(Relaxed), round, "notified without a reason");
            pair.1.notify_one();
        }
        ping.await.unwrap();
    });
}

/// Waiters come and go, and are notified one by one and all at once: every turn must end.
#[test]
fn waiters_that_give_up_lose_nothing_for_others() {
    const ROUNDS: usize = 500;
    let _watch = watchdog::start();
    let notify = Arc::new(Notify::new());
    let rt = workers(4);
    let fickle: Vec<_> = (0..3)
        .map(|_| {
            let notify = notify.clone();
            rt.spawn(async move {
                for _ in 0..ROUNDS {
                    let mut notified = pin!(notify.notified());
                    // Polled at most twice, and dropped in whatever state it is.
                    for _ in 0..2 {
                        std::future::poll_fn(|cx| {
                            let _ = notified.as_mut().poll(cx);
                            std::task::Poll::Ready(())
                        })
                        .await;
                        blitz_io::task::yield_now().await;
                    }
                    // If the future took the permit, the permit is put back.
                    if notified.as_mut().enable() {
                        notify.notify_one();
                    }
                }
            })
        })
        .collect();
    rt.block_on(async {
        for _ in 0..ROUNDS {
            notify.notify_one();
            notify.notified().await;
        }
        for fickle in fickle {
            fickle.await.unwrap();
        }
    });
}
