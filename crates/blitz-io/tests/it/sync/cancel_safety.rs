//! Tests that dropping a pending future at any poll loses no permit, message or wake-up.
//!
//! Each test drops a future after every number of polls while the other side makes progress
//! (`cut`), and then counts.

use std::{
    cell::{Cell, RefCell},
    future::pending,
    sync::Arc,
};

use blitz_io::sync::{
    CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast,
    futures::OwnedNotified, mpsc, oneshot, watch as watching,
};

use crate::support::{
    drop_at_every_poll::at_every_poll,
    manual_poll::{Polled, by_hand, now, waiting},
};

#[test]
fn acquire_loses_no_permit() {
    at_every_poll::<Semaphore, _>(
        || Semaphore::new(0),
        |semaphore| {
            Box::pin(async {
                let permit = semaphore.acquire().await.unwrap();
                permit.forget();
            })
        },
        &[|_| {}, |semaphore| semaphore.add_permits(1), |_| {}],
        |semaphore, taken| {
            assert_eq!(semaphore.available_permits(), 1 - usize::from(taken.is_some()));
        },
    );
}

#[test]
fn acquire_many_loses_no_part_of_its_permits() {
    at_every_poll::<Arc<Semaphore>, _>(
        || Arc::new(Semaphore::new(1)),
        |semaphore| {
            Box::pin(async {
                semaphore.clone().acquire_many_owned(3).await.unwrap().forget();
            })
        },
        &[
            |semaphore| semaphore.add_permits(1),
            |semaphore| semaphore.add_permits(1),
            |semaphore| semaphore.add_permits(1),
        ],
        |semaphore, taken| {
            assert_eq!(semaphore.available_permits(), if taken.is_some() { 1 } else { 4 });
        },
    );
}

#[test]
fn an_acquire_that_goes_serves_those_behind_it() {
    // One waits in front and one behind; whatever happens to the first, the second is served.
    for polls in 0..3 {
        for late in [false, true] {
            let semaphore = Semaphore::new(1);
            let mut front = by_hand(semaphore.acquire_many(2));
            for _ in 0..polls {
                front.pending();
            }
            let mut behind = by_hand(semaphore.acquire());
            let served = behind.poll().is_ready();
            assert_eq!(served, polls == 0, "no waiter overtakes");
            if late {
                semaphore.add_permits(1);
            }
            drop(front);
            if !served {
                assert!(behind.woken());
                drop(behind.ready().unwrap());
            }
            drop(behind);
            assert_eq!(semaphore.available_permits(), 1 + usize::from(late));
        }
    }
}

#[test]
fn lock_leaves_the_mutex_free() {
    struct Held {
        mutex: Arc<Mutex<u32>>,
        guard: RefCell<Option<blitz_io::sync::OwnedMutexGuard<u32>>>,
    }
    at_every_poll::<Held, _>(
        || {
            let mutex = Arc::new(Mutex::new(0));
            let guard = RefCell::new(Some(mutex.clone().try_lock_owned().unwrap()));
            Held { mutex, guard }
        },
        |held| Box::pin(async { *held.mutex.lock().await += 1 }),
        &[|_| {}, |held| drop(held.guard.take()), |_| {}],
        |held, locked| {
            let value = *held.mutex.try_lock().expect("no task holds it");
            assert_eq!(value, u32::from(locked.is_some()));
        },
    );
}

#[test]
fn read_and_write_leave_the_lock_free() {
    struct Held {
        lock: Arc<RwLock<u32>>,
        guard: RefCell<Option<blitz_io::sync::OwnedRwLockReadGuard<u32>>>,
    }
    let make = || {
        let lock = Arc::new(RwLock::new(0));
        let guard = RefCell::new(Some(lock.clone().try_read_owned().unwrap()));
        Held { lock, guard }
    };
    at_every_poll::<Held, _>(
        make,
        |held| Box::pin(async { *held.lock.write().await += 1 }),
        &[|_| {}, |held| drop(held.guard.take()), |_| {}],
        |held, locked| {
            let value = *held.lock.try_write().expect("no task holds it");
            assert_eq!(value, u32::from(locked.is_some()));
        },
    );
    struct Writing {
        lock: Arc<RwLock<u32>>,
        guard: RefCell<Option<blitz_io::sync::OwnedRwLockWriteGuard<u32>>>,
    }
    at_every_poll::<Writing, _>(
        || {
            let lock = Arc::new(RwLock::new(7));
            let guard = RefCell::new(Some(lock.clone().try_write_owned().unwrap()));
            Writing { lock, guard }
        },
        |held| Box::pin(async { *held.lock.clone().read_owned().await }),
        &[|_| {}, |held| drop(held.guard.take()), |_| {}],
        |held, read| {
            assert!(read.is_none_or(|value| value == 7));
            drop(held.lock.try_write().expect("no task holds it"));
        },
    );
}

#[test]
fn notified_loses_no_notification_of_one() {
    at_every_poll::<Notify, _>(
        Notify::new,
        |notify| Box::pin(notify.notified()),
        &[|_| {}, Notify::notify_one, |_| {}],
        |notify, notified| {
            // Either the notification was taken, or it is there for the next waiter.
            let mut next = by_hand(notify.notified());
            assert_eq!(next.poll().is_ready(), notified.is_none());
        },
    );
}

#[test]
fn a_waiter_that_inherits_a_notification_is_woken_through_its_waker() {
    type Pair = (Arc<Notify>, RefCell<Option<Polled<OwnedNotified>>>);
    at_every_poll::<Pair, _>(
        || (Arc::new(Notify::new()), RefCell::new(None)),
        |(notify, other)| {
            Box::pin(async {
                let mut own = std::pin::pin!(notify.notified());
                own.as_mut().enable();
                *other.borrow_mut() = Some(waiting(notify.clone().notified_owned()));
                own.await;
            })
        },
        &[|_| {}, |(notify, _)| notify.notify_one(), |_| {}],
        |(notify, other), notified| match (other.borrow_mut().as_mut(), notified) {
            (None, None) => now(notify.notified()),
            (None, Some(())) => unreachable!("both begin together"),
            (Some(other), None) => other.woken_and_ready(),
            (Some(other), Some(())) => other.still_waits(),
        },
    );
}

#[test]
fn get_or_init_leaves_the_cell_to_the_next() {
    struct Filled {
        cell: OnceCell<u8>,
        ready: Notify,
    }
    at_every_poll::<Filled, _>(
        || Filled { cell: OnceCell::new(), ready: Notify::new() },
        |filled| {
            Box::pin(async {
                let make = || async {
                    filled.ready.notified().await;
                    1
                };
                *filled.cell.get_or_init(make).await
            })
        },
        &[|_| {}, |filled| filled.ready.notify_one(), |_| {}],
        |filled, value| match value {
            Some(value) => assert_eq!((value, filled.cell.get()), (1, Some(&1))),
            None => {
                assert!(!filled.cell.initialized());
                assert_eq!(*now(filled.cell.get_or_init(|| async { 2 })), 2);
            }
        },
    );
}

#[test]
fn a_dropped_get_or_init_does_not_block_the_other_waiters() {
    let cell = OnceCell::new();
    let first = waiting(cell.get_or_init(pending::<u8>));
    let second = waiting(cell.get_or_init(|| async { 2 }));
    drop(second);
    let mut third = waiting(cell.get_or_init(|| async { 3 }));
    drop(first);
    assert_eq!(*third.woken_and_ready(), 3);
}

#[test]
fn waiting_for_a_value_that_is_set_once_takes_nothing() {
    at_every_poll::<SetOnce<u8>, _>(
        SetOnce::new,
        |once| Box::pin(async { *once.wait().await }),
        &[|_| {}, |once| once.set(1).unwrap(), |_| {}],
        |once, value| {
            assert!(value.is_none_or(|value| value == 1));
            assert_eq!(*now(once.wait()), 1);
        },
    );
}

#[test]
fn waiting_for_a_cancellation_takes_nothing() {
    at_every_poll::<CancellationToken, _>(
        CancellationToken::new,
        |token| Box::pin(async { token.child_token().cancelled_owned().await }),
        &[|_| {}, CancellationToken::cancel, |_| {}],
        |token, _| now(token.cancelled()),
    );
}

#[test]
fn a_bounded_recv_loses_no_message() {
    struct Ends {
        tx: mpsc::Sender<u8>,
        rx: RefCell<mpsc::Receiver<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = mpsc::channel(2);
            Ends { tx, rx: RefCell::new(rx) }
        },
        |ends| Box::pin(async { ends.rx.borrow_mut().recv().await }),
        &[|_| {}, |ends| ends.tx.try_send(1).unwrap(), |ends| ends.tx.try_send(2).unwrap()],
        |ends, got| {
            let mut left: Vec<_> = got.flatten().into_iter().collect();
            let mut rx = ends.rx.borrow_mut();
            left.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            assert_eq!((left, ends.tx.capacity()), (vec![1, 2], 2));
        },
    );
}

#[test]
fn an_unbounded_recv_loses_no_message() {
    struct Ends {
        tx: mpsc::UnboundedSender<u8>,
        rx: RefCell<mpsc::UnboundedReceiver<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = mpsc::unbounded_channel();
            Ends { tx, rx: RefCell::new(rx) }
        },
        |ends| Box::pin(async { ends.rx.borrow_mut().recv().await }),
        &[|_| {}, |ends| ends.tx.send(1).unwrap(), |ends| ends.tx.send(2).unwrap()],
        |ends, got| {
            let mut left: Vec<_> = got.flatten().into_iter().collect();
            let mut rx = ends.rx.borrow_mut();
            left.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            assert_eq!(left, [1, 2]);
        },
    );
}

#[test]
fn recv_many_loses_no_message() {
    struct Ends {
        tx: mpsc::Sender<u8>,
        rx: RefCell<mpsc::Receiver<u8>>,
        got: RefCell<Vec<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = mpsc::channel(4);
            Ends { tx, rx: RefCell::new(rx), got: RefCell::default() }
        },
        |ends| {
            Box::pin(async {
                let (mut rx, mut got) = (ends.rx.borrow_mut(), ends.got.borrow_mut());
                rx.recv_many(&mut got, 2).await
            })
        },
        &[
            |_| {},
            |ends| (1..4).for_each(|n| ends.tx.try_send(n).unwrap()),
            |ends| ends.tx.try_send(4).unwrap(),
        ],
        |ends, count| {
            let mut got = ends.got.borrow_mut();
            assert_eq!(got.len(), count.unwrap_or(0), "a dropped call has taken nothing");
            let mut rx = ends.rx.borrow_mut();
            got.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            assert_eq!(*got, [1, 2, 3, 4]);
            assert_eq!(ends.tx.capacity(), 4);
        },
    );
}

#[test]
fn send_either_delivers_or_leaves_the_room() {
    struct Ends {
        tx: mpsc::Sender<u8>,
        rx: RefCell<mpsc::Receiver<u8>>,
        got: RefCell<Vec<u8>>,
    }
    fn receive(ends: &Ends) {
        ends.got.borrow_mut().extend(ends.rx.borrow_mut().try_recv());
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = mpsc::channel(1);
            tx.try_send(0).unwrap();
            Ends { tx, rx: RefCell::new(rx), got: RefCell::default() }
        },
        |ends| Box::pin(async { ends.tx.send(1).await.unwrap() }),
        &[|_| {}, receive, |_| {}],
        |ends, sent| {
            receive(ends);
            let expected = if sent.is_some() { vec![0, 1] } else { vec![0] };
            assert_eq!((&*ends.got.borrow(), ends.tx.capacity()), (&expected, 1));
        },
    );
}

#[test]
fn reserve_leaves_the_room() {
    struct Ends {
        tx: mpsc::Sender<u8>,
        rx: RefCell<mpsc::Receiver<u8>>,
    }
    let make = || {
        let (tx, rx) = mpsc::channel(2);
        tx.try_send(0).unwrap();
        tx.try_send(0).unwrap();
        Ends { tx, rx: RefCell::new(rx) }
    };
    let receive: fn(&Ends) = |ends| assert!(ends.rx.borrow_mut().try_recv().is_ok());
    at_every_poll::<Ends, _>(
        make,
        |ends| Box::pin(async { drop(ends.tx.reserve().await.unwrap()) }),
        &[|_| {}, receive, receive],
        |ends, _| assert_eq!(ends.tx.capacity(), 2),
    );
    at_every_poll(
        make,
        |ends| Box::pin(async { drop(ends.tx.reserve_many(2).await.unwrap()) }),
        &[receive, receive, |_| {}],
        |ends, _| assert_eq!(ends.tx.capacity(), 2),
    );
    at_every_poll::<Ends, _>(
        make,
        |ends| Box::pin(async { drop(ends.tx.clone().reserve_owned().await.unwrap()) }),
        &[receive, receive, |_| {}],
        |ends, _| assert_eq!((ends.tx.capacity(), ends.tx.strong_count()), (2, 1)),
    );
}

#[test]
fn a_send_that_goes_lets_the_next_sender_in() {
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let first = waiting(tx.send(1));
    let mut second = waiting(tx.send(2));
    assert_eq!(rx.try_recv(), Ok(0));
    assert!(first.woken());
    drop(first);
    second.woken_and_ready().unwrap();
    assert_eq!(rx.try_recv(), Ok(2));
}

#[test]
fn a_receiver_that_stopped_waiting_misses_neither_message_nor_end() {
    let (tx, mut rx) = mpsc::channel(1);
    drop(waiting(rx.recv()));
    tx.try_send(1).unwrap();
    assert_eq!(now(rx.recv()), Some(1));
    drop(waiting(rx.recv()));
    drop(tx);
    assert_eq!(now(rx.recv()), None);
}

#[test]
fn waiting_for_a_close_takes_nothing() {
    struct Ends {
        tx: mpsc::Sender<u8>,
        rx: RefCell<mpsc::Receiver<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = mpsc::channel(1);
            Ends { tx, rx: RefCell::new(rx) }
        },
        |ends| Box::pin(ends.tx.closed()),
        &[|_| {}, |ends| ends.rx.borrow_mut().close(), |_| {}],
        |ends, _| now(ends.tx.closed()),
    );
}

#[test]
fn a_oneshot_receiver_that_is_borrowed_loses_no_value() {
    struct Ends {
        tx: Cell<Option<oneshot::Sender<u8>>>,
        rx: RefCell<oneshot::Receiver<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = oneshot::channel();
            Ends { tx: Cell::new(Some(tx)), rx: RefCell::new(rx) }
        },
        |ends| Box::pin(async { (&mut *ends.rx.borrow_mut()).await.unwrap() }),
        &[|_| {}, |ends| ends.tx.take().unwrap().send(1).unwrap(), |_| {}],
        |ends, got| {
            let got = got.or_else(|| ends.rx.borrow_mut().try_recv().ok());
            assert_eq!(got, Some(1));
        },
    );
}

#[test]
fn a_oneshot_sender_that_stopped_waiting_for_the_close_still_sends() {
    struct Ends {
        tx: RefCell<oneshot::Sender<u8>>,
        rx: RefCell<Option<oneshot::Receiver<u8>>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = oneshot::channel();
            Ends { tx: RefCell::new(tx), rx: RefCell::new(Some(rx)) }
        },
        |ends| Box::pin(async { ends.tx.borrow_mut().closed().await }),
        &[|_| {}, |ends| drop(ends.rx.take()), |_| {}],
        |ends, _| now(ends.tx.borrow_mut().closed()),
    );
}

#[test]
fn a_broadcast_recv_loses_no_message() {
    struct Ends {
        tx: broadcast::Sender<u8>,
        rx: RefCell<broadcast::Receiver<u8>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = broadcast::channel(4);
            Ends { tx, rx: RefCell::new(rx) }
        },
        |ends| Box::pin(async { ends.rx.borrow_mut().recv().await.unwrap() }),
        &[|_| {}, |ends| assert!(ends.tx.send(1).is_ok()), |ends| assert!(ends.tx.send(2).is_ok())],
        |ends, got| {
            let mut left: Vec<_> = got.into_iter().collect();
            let mut rx = ends.rx.borrow_mut();
            left.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            assert_eq!(left, [1, 2]);
        },
    );
}

#[test]
fn changed_marks_nothing_as_seen_unless_it_completes() {
    struct Ends {
        tx: watching::Sender<u8>,
        rx: RefCell<watching::Receiver<u8>>,
    }
    let make = || {
        let (tx, rx) = watching::channel(0);
        Ends { tx, rx: RefCell::new(rx) }
    };
    at_every_poll::<Ends, _>(
        make,
        |ends| Box::pin(async { ends.rx.borrow_mut().changed().await.unwrap() }),
        &[|_| {}, |ends| ends.tx.send(1).unwrap(), |_| {}],
        |ends, changed| {
            assert_eq!(ends.rx.borrow().has_changed().unwrap(), changed.is_none());
        },
    );
    at_every_poll::<Ends, _>(
        make,
        |ends| {
            Box::pin(async { *ends.rx.borrow_mut().wait_for(|value| *value == 2).await.unwrap() })
        },
        &[|_| {}, |ends| ends.tx.send(1).unwrap(), |ends| ends.tx.send(2).unwrap()],
        |ends, _| {
            let mut rx = ends.rx.borrow_mut();
            assert_eq!(*now(rx.wait_for(|value| *value == 2)).unwrap(), 2);
        },
    );
}

#[test]
fn waiting_for_watchers_to_go_takes_nothing() {
    struct Ends {
        tx: watching::Sender<u8>,
        rx: RefCell<Option<watching::Receiver<u8>>>,
    }
    at_every_poll::<Ends, _>(
        || {
            let (tx, rx) = watching::channel(0);
            Ends { tx, rx: RefCell::new(Some(rx)) }
        },
        |ends| Box::pin(ends.tx.closed()),
        &[|_| {}, |ends| drop(ends.rx.take()), |_| {}],
        |ends, _| now(ends.tx.closed()),
    );
}
