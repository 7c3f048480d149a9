//! `Notify`: order, wake lists, re-entrance, and notifications that are passed on.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::sync::{Notify, futures::OwnedNotified};

use crate::{
    caught::panic_of,
    make::workers,
    sync::waker_calls::{Calls, completed_in_one_poll, poll},
    watch,
};

/// More waiters than three wake lists hold.
const MANY: usize = 100;

type Waiting = Pin<Box<OwnedNotified>>;

/// Starts a wait for a notification, with this waker.
#[track_caller]
fn in_line(notify: &Arc<Notify>, calls: &Arc<Calls>) -> Waiting {
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
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let mut waiting = [(); 5].map(|()| in_line(&notify, &calls));
    let mut served = Vec::new();
    for how in [Notify::notify_one, Notify::notify_last, Notify::notify_last, Notify::notify_one] {
        how(&notify);
        let ready = |at: &usize| !served.contains(at) && poll(waiting[*at].as_mut()).is_ready();
        let next: Vec<_> = (0..5).filter(ready).collect();
        assert_eq!(next.len(), 1, "one at a time");
        served.extend(next);
    }
    assert_eq!(served, [0, 4, 3, 1]);
}

#[test]
fn all_of_many_are_woken_once() {
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let mut waiting = [(); MANY].map(|()| in_line(&notify, &calls));
    notify.notify_waiters();
    assert_eq!(calls.count(), MANY);
    assert!(waiting.iter_mut().all(|waiting| poll(waiting.as_mut()).is_ready()));
    assert!(!has_permit(&notify));
}

/// `notify_waiters` wakes the first wake list while the other waiters are still queued. A
/// `notify_one` from one of those wakers takes effect after the notification of all waiters.
#[test]
fn a_waker_may_notify_one_while_all_are_notified() {
    let _watch = watch::begin();
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let calling = Calls::doing({
        let notify = notify.clone();
        move || notify.notify_one()
    });
    let mut waiting = vec![in_line(&notify, &calling)];
    waiting.extend([(); MANY].map(|()| in_line(&notify, &calls)));
    notify.notify_waiters();
    assert_eq!((calling.count(), calls.count()), (1, MANY));
    assert!(waiting.iter_mut().all(|waiting| poll(waiting.as_mut()).is_ready()));
    assert!(has_permit(&notify), "it went to one who was notified anyway");
}

#[test]
fn a_waiter_added_during_notify_waiters_waits_for_the_next_call() {
    let _watch = watch::begin();
    let (notify, late) = (Arc::new(Notify::new()), Arc::new(std::sync::Mutex::new(Vec::new())));
    let late_calls = Calls::new();
    let calls = Calls::doing({
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
    assert!(late.iter_mut().all(|late| poll(late.as_mut()).is_ready()));
}

/// Also a waiter that is polled before its wake list was processed is ready.
#[test]
fn a_waiter_polled_between_two_wake_lists_is_ready() {
    let _watch = watch::begin();
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let last = Arc::new(std::sync::Mutex::new(None::<Waiting>));
    let polling = Calls::doing({
        let last = last.clone();
        move || {
            let mut last = last.lock().unwrap();
            assert!(poll(last.as_mut().unwrap().as_mut()).is_ready());
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
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let [first, mut second, third] = [(); 3].map(|()| in_line(&notify, &calls));
    notify.notify_one();
    drop(first);
    assert!(poll(second.as_mut()).is_ready());
    notify.notify_last();
    drop(third);
    assert!(has_permit(&notify), "nobody else waits");
    assert_eq!(calls.count(), 3);
}

#[test]
fn a_notification_of_the_last_that_was_not_seen_goes_to_the_last() {
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let [mut first, mut second, third] = [(); 3].map(|()| in_line(&notify, &calls));
    notify.notify_last();
    drop(third);
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn a_notification_of_all_is_not_passed_on() {
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let first = in_line(&notify, &calls);
    notify.notify_waiters();
    let mut late = in_line(&notify, &calls);
    drop(first);
    assert!(poll(late.as_mut()).is_pending());
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
    assert!(poll(before.as_mut()).is_ready());
    assert!(poll(before.as_mut()).is_ready(), "it stays ready");
    assert!(has_permit(&notify));
    assert!(!has_permit(&notify));
}

#[test]
fn a_waker_that_panics_leaves_a_notify_usable() {
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
    let bad = Calls::panicking();
    let [mut first, mut second] = [(); 2].map(|()| in_line(&notify, &bad));
    let mut third = in_line(&notify, &calls);
    assert!(panic_of(|| notify.notify_one()).message.contains("told to panic"));
    assert!(poll(first.as_mut()).is_ready());
    // `notify_waiters` swallows the panic of a waker, and wakes all the others.
    notify.notify_waiters();
    assert_eq!((bad.count(), calls.count()), (2, 1));
    assert!(poll(second.as_mut()).is_ready() && poll(third.as_mut()).is_ready());
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
    let (notify, calls) = (Arc::new(Notify::new()), Calls::new());
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
    let _watch = watch::begin();
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
    let _watch = watch::begin();
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
