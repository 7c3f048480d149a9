//! Models of notifications, checked under every interleaving: two or three waiters and
//! notifiers.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{Notify, WAITING};
use crate::{
    engine::{
        prim::{AtomicUsize, Ordering::Relaxed, model, thread},
        wait::test_waker::{CountingWaker, block_on},
    },
    sync::futures::OwnedNotified,
};

type Waiting = Pin<Box<OwnedNotified>>;

fn notify() -> Arc<Notify> {
    Arc::new(Notify::new())
}

/// Creates a wait that is not polled yet.
fn created(notify: &Arc<Notify>) -> Waiting {
    Box::pin(notify.clone().notified_owned())
}

fn poll(waiting: &mut Waiting) -> Poll<()> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Creates a wait in the wait queue, and returns it with the [`CountingWaker`] that counts its
/// wake-ups.
#[track_caller]
fn queued(notify: &Arc<Notify>) -> (Waiting, Arc<CountingWaker>) {
    let (mut waiting, counter) = (created(notify), CountingWaker::new());
    let first = waiting.as_mut().poll(&mut Context::from_waker(&counter.waker()));
    assert!(first.is_pending(), "there was a permit");
    (waiting, counter)
}

/// Notifies on another thread.
fn on_thread(notify: &Arc<Notify>, how: fn(&Notify)) -> thread::JoinHandle<()> {
    let notify = notify.clone();
    thread::spawn(move || how(&notify))
}

/// Takes the permit, and returns `true` if there was one.
fn has_permit(notify: &Arc<Notify>) -> bool {
    created(notify).as_mut().enable()
}

#[track_caller]
fn assert_no_waiters(notify: &Notify) {
    assert!(notify.waiters.lock().is_empty());
    assert_eq!(notify.word.load(Relaxed) & WAITING, 0);
}

#[test]
fn a_notification_against_a_waiter_is_not_lost() {
    model(|| {
        let notify = notify();
        let notifier = on_thread(&notify, Notify::notify_one);
        block_on(notify.notified());
        notifier.join().unwrap();
        assert!(!has_permit(&notify), "it was used twice");
    });
}

#[test]
fn a_notification_against_a_drop_is_passed_on() {
    model(|| {
        let notify = notify();
        let (waiting, _waker) = queued(&notify);
        let notifier = on_thread(&notify, Notify::notify_last);
        drop(waiting);
        notifier.join().unwrap();
        assert_no_waiters(&notify);
        assert!(has_permit(&notify), "it was lost");
    });
}

/// Setting a permit that is set already also publishes what was done before.
#[test]
fn a_second_notification_publishes_too() {
    model(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        shared.0.notify_one();
        let notifier = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                shared.0.notify_one();
            }
        });
        loop {
            block_on(shared.0.notified());
            if shared.1.load(Relaxed) == 1 {
                break;
            }
        }
        notifier.join().unwrap();
    });
}

#[test]
fn two_notifications_wake_two() {
    model(|| {
        let notify = notify();
        let ((first, _), (second, _)) = (queued(&notify), queued(&notify));
        let notifiers =
            [on_thread(&notify, Notify::notify_one), on_thread(&notify, Notify::notify_last)];
        block_on(second);
        block_on(first);
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
        assert_no_waiters(&notify);
        assert!(!has_permit(&notify));
    });
}

#[test]
fn all_waiters_created_before_are_notified() {
    model(|| {
        let notify = notify();
        let (first, second) = (created(&notify), created(&notify));
        let notifier = on_thread(&notify, Notify::notify_waiters);
        block_on(first);
        notifier.join().unwrap();
        block_on(second);
        assert!(!has_permit(&notify), "a late one was notified");
        assert_no_waiters(&notify);
    });
}

#[test]
fn a_check_after_creation_is_notified_or_sees() {
    model(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let notifier = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                shared.0.notify_waiters();
            }
        });
        let notified = shared.0.notified();
        if shared.1.load(Relaxed) == 0 {
            block_on(notified);
        }
        notifier.join().unwrap();
    });
}

#[test]
fn one_against_all_against_a_drop_loses_nothing() {
    model(|| {
        let notify = notify();
        let ((first, _), (second, _)) = (queued(&notify), queued(&notify));
        let notifiers =
            [on_thread(&notify, Notify::notify_one), on_thread(&notify, Notify::notify_waiters)];
        drop(first);
        block_on(second);
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
        assert_no_waiters(&notify);
    });
}

#[test]
fn an_enabled_waiter_is_notified() {
    model(|| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let notifier = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                shared.0.notify_one();
            }
        });
        let mut notified = std::pin::pin!(shared.0.notified());
        let at_once = notified.as_mut().enable();
        if shared.1.load(Relaxed) == 0 {
            assert!(!at_once, "notified of nothing");
            block_on(notified);
            assert_eq!(shared.1.load(Relaxed), 1);
        }
        notifier.join().unwrap();
    });
}

/// In models a wake list holds two wakers.
#[test]
fn a_wake_list_does_not_take_what_is_for_a_later_waiter() {
    model(|| {
        let notify = notify();
        let [mut first, mut second, mut third] = [(); 3].map(|()| queued(&notify));
        let notifier = on_thread(&notify, Notify::notify_waiters);
        // All were notified by now, whether they were woken yet or not.
        first.1.wait();
        notify.notify_one();
        notifier.join().unwrap();
        for waiting in [&mut first, &mut second, &mut third] {
            assert_eq!(waiting.1.wake_count(), 1);
            assert!(poll(&mut waiting.0).is_ready());
        }
        assert!(has_permit(&notify), "a notified waiter already took it");
        assert_no_waiters(&notify);
    });
}

#[test]
fn a_later_waiter_is_not_woken_by_a_wake_list() {
    model(|| {
        let notify = notify();
        let waiting = [(); 3].map(|()| queued(&notify));
        let notifier = on_thread(&notify, Notify::notify_waiters);
        waiting[0].1.wait();
        let mut late = queued(&notify);
        notifier.join().unwrap();
        assert!(poll(&mut late.0).is_pending());
        assert_eq!(late.1.wake_count(), 0);
        assert!(waiting.iter().all(|waiting| waiting.1.wake_count() == 1));
    });
}

#[test]
fn a_new_waker_against_a_notification_is_woken() {
    model(|| {
        let notify = notify();
        let mut waiting = created(&notify);
        assert!(poll(&mut waiting).is_pending());
        let notifier = on_thread(&notify, Notify::notify_one);
        block_on(waiting);
        notifier.join().unwrap();
    });
}
