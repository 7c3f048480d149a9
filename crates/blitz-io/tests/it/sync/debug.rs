//! Tests that `Debug` never panics and never waits, whatever state a value is in.

use std::{fmt::Debug, sync::Arc};

use blitz_io::sync::{
    Barrier, CancellationToken, Mutex, MutexGuard, Notify, OnceCell, OwnedMutexGuard, RwLock,
    Semaphore, SetOnce, broadcast, mpsc, oneshot, watch as watching,
};

use crate::support::{
    manual_poll::{by_hand, now, waiting},
    watchdog,
};

/// Formats a value in both forms, which must not be empty, and returns the short one.
#[track_caller]
fn prints(thing: &dyn Debug) -> String {
    assert!(!format!("{thing:#?}").is_empty());
    let text = format!("{thing:?}");
    assert!(!text.is_empty());
    text
}

#[test]
fn a_mutex_prints_locked_and_free() {
    let _watch = watchdog::start();
    let mutex = Arc::new(Mutex::new(12345));
    assert!(prints(&mutex).contains("12345"), "a free mutex shows its value");
    let guard = now(mutex.lock());
    assert!(prints(&mutex).contains("locked"), "a held one says so");
    assert_eq!(prints(&guard), "12345", "a guard prints as its value");
    assert_eq!(format!("{guard}"), "12345");
    let waiter = waiting(mutex.lock());
    prints(&mutex);
    drop((guard, waiter));
    assert_eq!(prints(&now(mutex.clone().lock_owned())), "12345");
    assert_eq!(prints(&MutexGuard::map(now(mutex.lock()), |value| value)), "12345");
    assert_eq!(prints(&OwnedMutexGuard::map(now(mutex.clone().lock_owned()), |v| v)), "12345");
    let guard = now(mutex.lock());
    prints(&mutex.try_lock().unwrap_err());
    drop(guard);
}

#[test]
fn an_rwlock_prints_read_written_and_free() {
    let _watch = watchdog::start();
    let lock = Arc::new(RwLock::new(12345));
    assert!(prints(&lock).contains("12345"));
    let reader = now(lock.read());
    assert!(prints(&lock).contains("12345"), "a reader keeps no reader out");
    assert_eq!(prints(&reader), "12345");
    drop(reader);
    let writer = now(lock.write());
    assert!(prints(&lock).contains("locked"));
    assert_eq!(prints(&writer), "12345");
    drop(writer);
    assert_eq!(prints(&now(lock.clone().read_owned())), "12345");
    assert_eq!(prints(&now(lock.clone().write_owned())), "12345");
}

#[test]
fn semaphores_and_their_permits_print_in_every_state() {
    let semaphore = Arc::new(Semaphore::new(1));
    prints(&semaphore);
    let permit = now(semaphore.acquire()).unwrap();
    let waiter = waiting(semaphore.acquire());
    prints(&semaphore);
    prints(&permit);
    drop((permit, waiter));
    prints(&semaphore.clone().try_acquire_owned().unwrap());
    semaphore.close();
    prints(&semaphore);
    prints(&now(semaphore.acquire()).unwrap_err());
    prints(&semaphore.try_acquire().unwrap_err());
}

#[test]
fn debug_output_works_in_every_state() {
    let barrier = Barrier::new(2);
    let waiter = waiting(barrier.wait());
    prints(&barrier);
    prints(&now(barrier.wait()));
    drop(waiter);
    let notify = Arc::new(Notify::new());
    prints(&notify);
    let notified = notify.notified();
    prints(&notified);
    let mut notified = Box::pin(notified);
    notified.as_mut().enable();
    prints(&notified);
    prints(&notify);
    notify.notify_one();
    prints(&notified);
    prints(&notify.clone().notified_owned());
    drop(notified);
    prints(&notify);
}

#[test]
fn cells_print_empty_busy_and_full() {
    let cell = OnceCell::new();
    prints(&cell);
    let busy = waiting(cell.get_or_init(std::future::pending::<u32>));
    prints(&cell);
    prints(&cell.set(1).unwrap_err());
    drop(busy);
    cell.set(12345).unwrap();
    assert!(prints(&cell).contains("12345"));
    let once = SetOnce::new();
    prints(&once);
    let waits = waiting(once.wait());
    prints(&once);
    once.set(12345).unwrap();
    drop(waits);
    assert!(prints(&once).contains("12345"));
    prints(&once.set(1).unwrap_err());
}

#[test]
fn tokens_print_in_every_state() {
    let token = CancellationToken::new();
    prints(&token);
    prints(&token.cancelled());
    prints(&token.clone().cancelled_owned());
    prints(&token.child_token());
    prints(&token.clone().drop_guard());
    prints(&token);
    prints(&token.drop_guard_ref());
}

#[test]
fn both_ends_of_an_mpsc_channel_print_in_every_state() {
    struct Plain;
    let (tx, mut rx) = mpsc::channel::<Plain>(2);
    let weak = tx.downgrade();
    for thing in [&tx as &dyn Debug, &rx, &weak] {
        prints(thing);
    }
    prints(&tx.try_reserve().unwrap());
    prints(&tx.try_reserve_many(2).unwrap());
    prints(&tx.clone().try_reserve_owned().unwrap());
    tx.try_send(Plain).unwrap();
    drop(by_hand(tx.closed()));
    rx.close();
    for thing in [&tx as &dyn Debug, &rx, &weak] {
        prints(thing);
    }
    prints(&tx.try_send(Plain).unwrap_err());
    drop(tx);
    prints(&weak);
    let (tx, rx) = mpsc::unbounded_channel::<Plain>();
    let weak = tx.downgrade();
    prints(&rx);
    drop(rx);
    prints(&tx.send(Plain).unwrap_err());
    for thing in [&tx as &dyn Debug, &weak] {
        prints(thing);
    }
}

#[test]
fn both_ends_of_a_oneshot_print_in_every_state() {
    let (mut tx, mut rx) = oneshot::channel::<u32>();
    prints(&tx);
    prints(&rx);
    waiting(&mut rx);
    drop(waiting(tx.closed()));
    prints(&tx);
    prints(&rx);
    tx.send(12345).unwrap();
    prints(&rx);
    rx.close();
    prints(&rx);
    now(&mut rx).unwrap();
    prints(&rx);
    let (tx, rx) = oneshot::channel::<u32>();
    drop(rx);
    prints(&tx);
}

#[test]
fn both_ends_of_broadcast_and_watch_print_in_every_state() {
    let (tx, mut rx) = broadcast::channel::<u32>(1);
    for round in 0..3 {
        prints(&tx);
        prints(&rx);
        prints(&tx.downgrade());
        if round < 2 {
            tx.send(1).unwrap();
        }
    }
    drop(tx);
    prints(&rx.try_recv().unwrap_err());
    prints(&rx);
    let (tx, mut rx) = watching::channel(12345);
    drop(waiting(rx.changed()));
    assert!(prints(&rx.borrow()).contains("12345"));
    prints(&tx);
    prints(&rx);
    drop(rx);
    prints(&tx);
    prints(&tx.send(1).unwrap_err());
}

#[test]
fn printing_while_a_value_is_borrowed_does_not_wait() {
    let _watch = watchdog::start();
    let (tx, rx) = watching::channel(1);
    let borrowed = rx.borrow();
    prints(&tx);
    prints(&rx);
    drop(borrowed);
}
