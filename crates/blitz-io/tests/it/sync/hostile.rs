//! Tests values whose `Drop` panics, and wakers that panic: nothing is lost or dropped twice.
//!
//! A waker that panics does not prevent others from being woken, which Tokio does not guarantee.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use blitz_io::sync::{
    Barrier, CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast,
    mpsc, oneshot, watch as watching,
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    manual_poll::{Polled, by_hand, now, waiting},
    wakers::{WAKER_PANIC, panics},
    watchdog,
};

/// A value that panics when it is dropped, once it is armed; its token counts the drop even so.
struct Bomb {
    armed: bool,
    _token: Token,
}

impl Bomb {
    fn new(tally: &Tally, armed: bool) -> Self {
        Self { armed, _token: tally.token() }
    }
}

impl Clone for Bomb {
    fn clone(&self) -> Self {
        unreachable!("the last receiver takes the value itself")
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.armed || std::thread::panicking(), "a bomb goes off");
    }
}

/// Polls a future with a waker that panics; it must be pending.
fn waits_badly<F: Future>(future: F) -> Polled<F> {
    let mut polled = by_hand(future);
    assert!(polled.poll_with(&panics()).is_pending(), "it is ready");
    polled
}

/// Calls `f`; if it panics, the panic must be that of the waker. Whether that panic reaches the
/// caller is not promised.
fn survives<R>(f: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(f));
    if let Err(payload) = &result {
        assert_eq!(crate::support::caught_panic::message(&**payload), WAKER_PANIC);
    }
    result.ok()
}

#[test]
fn a_queued_value_whose_drop_panics_does_not_leak_the_others() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let (tx, rx) = mpsc::channel(8);
    for n in 0..8 {
        assert!(tx.try_send(Bomb::new(&tally, n == 3)).is_ok());
    }
    panic_of(|| drop(rx)).says(&["a bomb goes off"]);
    drop(tx);
    tally.assert_all_dropped(8);
    let tally = Tally::new();
    let (tx, rx) = mpsc::unbounded_channel();
    for n in 0..100 {
        assert!(tx.send(Bomb::new(&tally, n == 40)).is_ok());
    }
    panic_of(|| drop(rx)).says(&["a bomb goes off"]);
    drop(tx);
    tally.assert_all_dropped(100);
}

#[test]
fn a_oneshot_value_whose_drop_panics_is_dropped_once() {
    let tally = Tally::new();
    let (tx, rx) = oneshot::channel();
    assert!(tx.send(Bomb::new(&tally, true)).is_ok());
    panic_of(|| drop(rx)).says(&["a bomb goes off"]);
    tally.assert_all_dropped(1);
}

#[test]
fn a_broadcast_value_whose_drop_panics_leaves_the_channel_working() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let (tx, mut rx) = broadcast::channel(1);
    assert!(tx.send(Bomb::new(&tally, true)).is_ok());
    // Overwritten: the panic may come out of `send`; the new value was sent or dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| tx.send(Bomb::new(&tally, false)).is_ok()));
    assert_eq!(tx.receiver_count(), 1);
    while rx.try_recv().is_ok_and(|_| true) {}
    assert!(tx.send(Bomb::new(&tally, false)).is_ok());
    drop((tx, rx));
    let made = tally.made();
    tally.assert_all_dropped(made);
}

#[test]
fn a_watched_value_whose_drop_panics_leaves_the_channel_working() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let (tx, mut rx) = watching::channel(Bomb::new(&tally, true));
    panic_of(|| tx.send(Bomb::new(&tally, false)).is_ok()).says(&["a bomb goes off"]);
    assert!(!rx.borrow_and_update().armed, "the new value is there");
    assert!(tx.send(Bomb::new(&tally, false)).is_ok());
    now(rx.changed()).unwrap();
    drop((tx, rx));
    tally.assert_all_dropped(3);
}

#[test]
fn values_in_cells_and_locks_whose_drop_panics_are_dropped_once() {
    let tally = Tally::new();
    panic_of(|| drop(Mutex::new(Bomb::new(&tally, true))));
    panic_of(|| drop(OnceCell::from(Bomb::new(&tally, true))));
    panic_of(|| drop(SetOnce::from(Bomb::new(&tally, true))));
    tally.assert_all_dropped(3);
}

#[test]
fn a_waker_that_panics_does_not_keep_a_permit() {
    let _watch = watchdog::start();
    let semaphore = Semaphore::new(0);
    let mut bad = waits_badly(semaphore.acquire());
    survives(|| semaphore.add_permits(1));
    drop(bad.ready().expect("it was served before it was woken"));
    drop(bad);
    assert_eq!(semaphore.available_permits(), 1);
    // The semaphore's wait queue still works.
    let held = semaphore.try_acquire().unwrap();
    let bad = waits_badly(semaphore.acquire());
    survives(|| drop(held));
    drop(bad);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn a_waker_that_panics_does_not_keep_a_lock() {
    let _watch = watchdog::start();
    let mutex = Mutex::new(0);
    let guard = mutex.try_lock().unwrap();
    let mut bad = waits_badly(mutex.lock());
    survives(|| drop(guard));
    *bad.ready() += 1;
    drop(bad);
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_waker_that_panics_loses_no_message() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let (tx, mut rx) = mpsc::channel(2);
    let mut bad = waits_badly(rx.recv());
    survives(|| tx.try_send(tally.token()).map_err(drop).unwrap());
    assert!(bad.ready().is_some());
    drop(bad);
    let mut bad = waits_badly(rx.recv());
    survives(|| drop(tx));
    assert!(bad.ready().is_none());
    drop(bad);
    tally.assert_all_dropped(1);
    let (tx, mut rx) = mpsc::unbounded_channel();
    let mut bad = waits_badly(rx.recv());
    survives(|| tx.send(tally.token()).map_err(drop).unwrap());
    assert!(bad.ready().is_some());
    tally.assert_all_dropped(2);
}

#[test]
fn a_senders_waker_that_panics_takes_no_room_away() {
    let _watch = watchdog::start();
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let mut bad = waits_badly(tx.send(1));
    // The message that made room is received, or is lost with the panic.
    survives(|| assert_eq!(rx.try_recv(), Ok(0)));
    bad.ready().unwrap();
    drop(bad);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn a_waker_of_a_oneshot_that_panics_loses_no_value() {
    let _watch = watchdog::start();
    let tally = Tally::new();
    let (tx, rx) = oneshot::channel();
    let mut bad = waits_badly(rx);
    survives(|| drop(tx.send(tally.token())));
    assert!(bad.ready().is_ok());
    drop(bad);
    tally.assert_all_dropped(1);
}

#[test]
fn one_panicking_waker_does_not_keep_broadcast_receivers_from_the_message() {
    let _watch = watchdog::start();
    let (tx, mut one) = broadcast::channel(4);
    let mut two = tx.subscribe();
    let mut bad = waits_badly(one.recv());
    let mut good = waiting(two.recv());
    survives(|| tx.send(1).is_ok());
    assert_eq!(bad.ready(), Ok(1));
    assert_eq!(good.ready(), Ok(1));
    drop((bad, good));
    assert!(tx.send(2).is_ok(), "the channel still works");
    assert_eq!(one.try_recv(), Ok(2));
}

#[test]
fn one_panicking_waker_does_not_keep_a_change_from_being_seen() {
    let _watch = watchdog::start();
    let (tx, mut one) = watching::channel(0);
    let mut two = one.clone();
    let bad = waits_badly(one.changed());
    let good = waiting(two.changed());
    survives(|| tx.send(1).is_ok());
    // Whether the panic prevented the other wake-up is not tested here.
    drop((bad, good));
    now(one.changed()).unwrap();
    now(two.changed()).unwrap();
    assert!(tx.send(2).is_ok());
    now(one.changed()).unwrap();
}

#[test]
fn one_panicking_waker_does_not_break_a_notify_or_a_token() {
    let _watch = watchdog::start();
    let notify = Arc::new(Notify::new());
    let mut bad = waits_badly(notify.notified());
    let mut good = waiting(notify.notified());
    survives(|| notify.notify_waiters());
    bad.ready();
    good.ready();
    drop((bad, good));
    notify.notify_one();
    now(notify.notified());
    let token = CancellationToken::new();
    let child = token.child_token();
    let bad = waits_badly(token.cancelled());
    survives(|| token.cancel());
    assert!(token.is_cancelled());
    drop(bad);
    // Cancelling again reaches what a panic may have left out.
    survives(|| token.cancel());
    let _ = child.is_cancelled();
}

#[test]
fn a_waker_that_panics_does_not_keep_a_value_from_being_set() {
    let _watch = watchdog::start();
    let once = SetOnce::new();
    let mut bad = waits_badly(once.wait());
    survives(|| once.set(1).unwrap());
    assert_eq!(*bad.ready(), 1);
    drop(bad);
    assert_eq!(once.set(2).unwrap_err().0, 2);
}

/// Waits with a waker that panics, between two waits with good wakers; `end` must wake them all.
fn all_are_woken<F: Future>(wait: impl Fn() -> F, end: impl FnOnce()) {
    let mut first = waiting(wait());
    let mut bad = waits_badly(wait());
    let mut last = waiting(wait());
    // Whether the panic reaches the caller is not tested.
    let _ = catch_unwind(AssertUnwindSafe(end));
    first.woken_and_ready();
    bad.ready();
    last.woken_and_ready();
}

#[test]
fn a_waker_that_panics_keeps_no_other_waiter_of_a_primitive_from_being_woken() {
    let _watch = watchdog::start();
    let semaphore = Arc::new(Semaphore::new(0));
    all_are_woken(|| semaphore.acquire(), || semaphore.add_permits(3));
    semaphore.forget_permits(3);
    all_are_woken(|| semaphore.acquire(), || semaphore.close());
    let lock = Arc::new(RwLock::new(()));
    let writer = lock.clone().try_write_owned().unwrap();
    all_are_woken(|| lock.clone().read_owned(), || drop(writer));
    let notify = Notify::new();
    all_are_woken(|| notify.notified(), || notify.notify_waiters());
    let barrier = Barrier::new(4);
    all_are_woken(|| barrier.wait(), || assert!(now(barrier.wait()).is_leader()));
    let once = SetOnce::new();
    all_are_woken(|| once.wait(), || once.set(1).unwrap());
    let token = CancellationToken::new();
    let child = token.child_token();
    all_are_woken(|| child.cancelled(), || token.cancel());
}

#[test]
fn a_waker_that_panics_keeps_no_other_waiter_of_a_channel_from_being_woken() {
    let _watch = watchdog::start();
    let (tx, rx) = mpsc::channel::<u8>(1);
    all_are_woken(|| tx.closed(), || drop(rx));
    let (tx, rx) = broadcast::channel(1);
    let recv = || {
        let mut rx = rx.resubscribe();
        async move { rx.recv().await }
    };
    all_are_woken(recv, || assert!(tx.send(1).is_ok()));
    let (tx, rx) = watching::channel(0);
    let changed = || {
        let mut rx = rx.clone();
        rx.mark_unchanged();
        async move { rx.changed().await }
    };
    // Repeated, because receivers wait in one of several queues, and the order depends on which.
    for n in 0..100 {
        all_are_woken(changed, || tx.send(n).unwrap());
    }
}

#[test]
fn a_token_is_cancelled_with_its_whole_tree_although_a_waker_panics() {
    let _watch = watchdog::start();
    let root = CancellationToken::new();
    let children: Vec<_> = (0..10).map(|_| root.child_token()).collect();
    let _bad: Vec<_> = children.iter().map(|child| waits_badly(child.cancelled())).collect();
    let _ = catch_unwind(AssertUnwindSafe(|| root.cancel()));
    assert!(children.iter().all(CancellationToken::is_cancelled));
}
