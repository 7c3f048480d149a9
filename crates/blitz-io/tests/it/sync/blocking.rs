//! Tests the `blocking_*` methods, which block a thread, and panic inside async code.

use std::{sync::Arc, thread};

use blitz_io::{
    runtime::Runtime,
    sync::{Mutex, RwLock, Semaphore, broadcast, mpsc, oneshot},
};

use crate::support::{
    caught_panic::panic_of,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

/// Asserts that each call panics inside async code, with the usual message and the caller's file.
macro_rules! refuses {
    ($($call:expr),+ $(,)?) => {
        let rt = one_thread();
        $(
            let caught = rt.block_on(async { panic_of(|| $call) });
            caught.says(&["Cannot block the current thread from within a runtime"]);
            assert_eq!(caught.file, file!(), "the caller is named: {}", stringify!($call));
        )+
    };
}

#[test]
fn blocking_calls_inside_async_code_panic_and_name_the_caller() {
    let _watch = watchdog::start();
    let mutex = Arc::new(Mutex::new(0));
    let lock = RwLock::new(0);
    let semaphore = Arc::new(Semaphore::new(2));
    let (tx, mut rx) = mpsc::channel(4);
    tx.try_send(1).unwrap();
    let (utx, mut urx) = mpsc::unbounded_channel();
    utx.send(1).unwrap();
    let (btx, mut brx) = broadcast::channel(4);
    btx.send(1).unwrap();
    refuses! {
        mutex.blocking_lock(),
        mutex.clone().blocking_lock_owned(),
        lock.blocking_read(),
        lock.blocking_write(),
        tx.blocking_send(1),
        rx.blocking_recv(),
        rx.blocking_recv_many(&mut Vec::new(), 1),
        urx.blocking_recv(),
        urx.blocking_recv_many(&mut Vec::new(), 1),
        oneshot::channel::<u8>().1.blocking_recv(),
    }
    let rt = one_thread();
    rt.block_on(async { panic_of(|| brx.blocking_recv()) })
        .says(&["Cannot block the current thread from within a runtime"]);
    rt.block_on(async { panic_of(|| semaphore.blocking_acquire()) })
        .says(&["Cannot block the current thread from within a runtime"]);
    rt.block_on(async { panic_of(|| semaphore.clone().blocking_acquire_many_owned(2)) })
        .says(&["Cannot block the current thread from within a runtime"]);
    assert_eq!(semaphore.available_permits(), 2);
    // Nothing was taken, and nothing is left locked.
    assert!(mutex.try_lock().is_ok() && lock.try_write().is_ok());
    assert_eq!((rx.try_recv(), urx.try_recv(), brx.try_recv()), (Ok(1), Ok(1), Ok(1)));
    assert_eq!(tx.capacity(), 4);
}

#[test]
fn a_blocking_call_in_a_task_panics_in_that_task_alone() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let task = rt.spawn(async { drop(Mutex::new(0).blocking_lock()) });
        let error = rt.block_on(task).unwrap_err();
        assert!(error.is_panic());
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1);
    }
}

#[test]
fn blocking_calls_are_allowed_where_code_may_block() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let value = rt.block_on(rt.spawn_blocking(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.blocking_send(*Mutex::new(1).blocking_lock()).unwrap();
        rx.blocking_recv()
    }));
    assert_eq!(value.unwrap(), Some(1));
    let value = rt.block_on(
        rt.spawn(async { blitz_io::task::block_in_place(|| *RwLock::new(2).blocking_read()) }),
    );
    assert_eq!(value.unwrap(), 2);
}

/// Runs `wait` on a thread of its own while tasks of a runtime complete it.
fn meanwhile<T: Send>(wait: impl FnOnce() -> T + Send, end: impl FnOnce(&Runtime)) -> T {
    let _watch = watchdog::start();
    let rt = workers(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(wait);
        end(&rt);
        waiter.join().unwrap()
    })
}

#[test]
fn blocking_lock_waits_for_the_guard_to_go() {
    let mutex = Arc::new(Mutex::new(0));
    let mut guard = mutex.clone().try_lock_owned().unwrap();
    let value = meanwhile(
        || *mutex.blocking_lock(),
        |rt| {
            let task = rt.spawn(async move {
                blitz_io::task::yield_now().await;
                *guard = 7;
            });
            rt.block_on(task).unwrap();
        },
    );
    assert_eq!(value, 7);
    assert_eq!(*mutex.blocking_lock_owned(), 7);
}

#[test]
fn blocking_read_and_write_wait_for_the_writer_to_go() {
    let lock = Arc::new(RwLock::new(0));
    let guard = lock.clone().try_write_owned().unwrap();
    meanwhile(|| drop(lock.blocking_read()), |_| drop(guard));
    let guard = lock.clone().try_read_owned().unwrap();
    meanwhile(|| *lock.blocking_write() += 1, |_| drop(guard));
    assert_eq!(*lock.blocking_read(), 1);
}

#[test]
fn blocking_acquire_waits_for_permits() {
    let semaphore = Arc::new(Semaphore::new(0));
    let add = |count| {
        let semaphore = semaphore.clone();
        move |_: &Runtime| semaphore.add_permits(count)
    };
    meanwhile(|| semaphore.blocking_acquire().unwrap().forget(), add(1));
    meanwhile(|| semaphore.blocking_acquire_many(3).unwrap().forget(), add(3));
    meanwhile(|| semaphore.clone().blocking_acquire_owned().unwrap().forget(), add(1));
    meanwhile(|| semaphore.clone().blocking_acquire_many_owned(2).unwrap().forget(), add(2));
    assert_eq!(semaphore.available_permits(), 0);
    let closed = meanwhile(|| semaphore.blocking_acquire().is_err(), |_| semaphore.close());
    assert!(closed);
}

#[test]
fn blocking_recv_waits_for_a_message_and_for_the_end() {
    let (tx, mut rx) = mpsc::channel(1);
    let (got, end) = meanwhile(
        || (rx.blocking_recv(), rx.blocking_recv()),
        |rt| rt.block_on(rt.spawn(async move { tx.send(5).await.unwrap() })).unwrap(),
    );
    assert_eq!((got, end), (Some(5), None));
    let (tx, mut rx) = mpsc::unbounded_channel();
    let (got, end) = meanwhile(
        || (rx.blocking_recv(), rx.blocking_recv()),
        |_| {
            tx.send(5).unwrap();
            drop(tx);
        },
    );
    assert_eq!((got, end), (Some(5), None));
}

#[test]
fn blocking_recv_many_waits_for_the_first_message() {
    let (tx, mut rx) = mpsc::channel(4);
    let got = meanwhile(
        || {
            let mut got = Vec::new();
            while rx.blocking_recv_many(&mut got, 2) > 0 {}
            got
        },
        |_| {
            (0..3).for_each(|n| tx.blocking_send(n).unwrap());
            drop(tx);
        },
    );
    assert_eq!(got, [0, 1, 2]);
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..3).for_each(|n| tx.send(n).unwrap());
    let mut got = Vec::new();
    assert_eq!(rx.blocking_recv_many(&mut got, 2), 2);
}

#[test]
fn blocking_send_waits_for_room_and_is_refused_at_the_end() {
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let sender = tx.clone();
    let sent = meanwhile(
        move || sender.blocking_send(1),
        |rt| {
            assert_eq!(rt.block_on(rx.recv()), Some(0));
            assert_eq!(rt.block_on(rx.recv()), Some(1));
        },
    );
    assert!(sent.is_ok());
    tx.try_send(2).unwrap();
    let refused = meanwhile(|| tx.blocking_send(3), |_| drop(rx));
    assert_eq!(refused.unwrap_err().0, 3);
}

#[test]
fn a_oneshot_and_a_broadcast_are_waited_for_on_a_thread() {
    let (tx, rx) = oneshot::channel();
    assert_eq!(meanwhile(|| rx.blocking_recv(), |_| tx.send(1).unwrap()), Ok(1));
    let (tx, rx) = oneshot::channel::<u8>();
    assert!(meanwhile(|| rx.blocking_recv(), |_| drop(tx)).is_err());
    let (tx, mut rx) = broadcast::channel(2);
    assert_eq!(meanwhile(|| rx.blocking_recv(), |_| assert!(tx.send(1).is_ok())), Ok(1));
}
