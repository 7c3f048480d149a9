//! Tests that waiting allocates nothing, and that a small channel is one small allocation.

use std::{future::pending, pin::pin, task::Poll};

use blitz_io::sync::{
    Barrier, CancellationToken, Notify, OnceCell, Semaphore, SetOnce, broadcast, mpsc, oneshot,
    watch,
};
#[cfg(not(debug_assertions))]
use blitz_io::sync::{Mutex, RwLock};

use crate::{
    counting_allocator::OfThread,
    support::manual_poll::{once, poll_once},
};

/// Returns the number of allocations of `f`, their bytes, and the result of `f`.
fn allocations<R>(f: impl FnOnce() -> R) -> (usize, usize, R) {
    let before = OfThread::now();
    let result = f();
    let made = OfThread::now().since(before);
    (made.allocations, made.bytes, result)
}

/// Asserts that `f` allocates nothing.
#[track_caller]
fn nothing<R>(f: impl FnOnce() -> R) -> R {
    let (count, bytes, result) = allocations(f);
    assert_eq!((count, bytes), (0, 0), "(allocations, bytes)");
    result
}

/// Starts two waits, polls them again, runs `end`, which completes both, and asserts that none of
/// it allocates.
macro_rules! waits_for_nothing {
    ($one:expr, $two:expr, $end:expr) => {
        nothing(|| {
            let mut one = pin!($one);
            let mut two = pin!($two);
            for _ in 0..2 {
                assert!(poll_once(&mut one).is_pending() && poll_once(&mut two).is_pending());
            }
            $end;
            assert!(poll_once(&mut one).is_ready() && poll_once(&mut two).is_ready());
        })
    };
}

/// Starts a wait and drops it, and asserts that this allocates nothing.
macro_rules! gives_up {
    ($one:expr) => {
        nothing(|| assert!(once($one).is_pending()))
    };
}

/// Debug builds record the holder of each lock, which takes memory, so this test is for release
/// builds, in which CI runs it.
#[cfg(not(debug_assertions))]
#[test]
fn locks_allocate_nothing() {
    nothing(|| {
        let mutex = Mutex::new(0);
        let mut held = mutex.try_lock().ok();
        gives_up!(mutex.lock());
        let mut wait = pin!(mutex.lock());
        assert!(poll_once(&mut wait).is_pending());
        held.take();
        assert!(poll_once(&mut wait).is_ready());
    });
    let lock = RwLock::new(0);
    let mut writer = lock.try_write().ok();
    gives_up!(lock.write());
    waits_for_nothing!(lock.read(), lock.read(), writer.take());
}

#[test]
fn semaphores_allocate_nothing() {
    let semaphore = nothing(|| Semaphore::new(0));
    gives_up!(semaphore.acquire());
    waits_for_nothing!(semaphore.acquire(), semaphore.acquire_many(2), semaphore.add_permits(3));
    waits_for_nothing!(semaphore.acquire_many(9), semaphore.acquire_many(9), semaphore.close());
}

#[test]
fn notify_and_barrier_allocate_nothing() {
    let notify = nothing(Notify::new);
    gives_up!(notify.notified());
    waits_for_nothing!(notify.notified(), notify.notified(), notify.notify_waiters());
    waits_for_nothing!(notify.notified(), notify.notified(), {
        notify.notify_one();
        notify.notify_last();
    });
    let barrier = nothing(|| Barrier::new(3));
    waits_for_nothing!(barrier.wait(), barrier.wait(), {
        assert!(once(barrier.wait()).is_ready());
    });
}

#[test]
fn cells_allocate_nothing() {
    let cell = nothing(OnceCell::new);
    let mut busy = Box::pin(cell.get_or_init(pending::<u8>));
    assert!(poll_once(&mut busy).is_pending());
    let mut busy = Some(busy);
    gives_up!(cell.get_or_init(|| async { 1 }));
    waits_for_nothing!(
        cell.get_or_init(|| async { 1 }),
        cell.get_or_init(|| async { 2 }),
        drop(busy.take())
    );
    let once = nothing(SetOnce::new);
    gives_up!(once.wait());
    waits_for_nothing!(once.wait(), once.wait(), once.set(1).unwrap());
}

#[test]
fn a_token_is_one_allocation_and_waiting_for_it_none() {
    let (count, _, token) = allocations(CancellationToken::new);
    assert_eq!(count, 1);
    let (count, _, child) = allocations(|| token.child_token());
    assert_eq!(count, 1);
    gives_up!(child.cancelled());
    waits_for_nothing!(child.cancelled(), token.cancelled(), token.cancel());
}

#[test]
fn children_that_come_and_go_leave_no_growth() {
    let token = CancellationToken::new();
    let keep = [token.child_token(), token.child_token()];
    let live = || OfThread::now().kept_bytes();
    drop(token.child_token());
    let before = live();
    for n in 0..100_000 {
        let child = token.child_token();
        if n % 2 == 0 {
            child.cancel();
        }
    }
    assert_eq!(live(), before);
    token.cancel();
    assert!(keep.iter().all(CancellationToken::is_cancelled));
}

#[test]
fn waiting_on_bounded_channels_allocates_nothing() {
    let (tx, mut rx) = mpsc::channel(2);
    gives_up!(rx.recv());
    nothing(|| {
        for n in 0..1000 {
            tx.try_send(n).unwrap();
            assert_eq!(rx.try_recv(), Ok(n));
        }
    });
    nothing(|| {
        let mut recv = pin!(rx.recv());
        assert!(poll_once(&mut recv).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(poll_once(&mut recv), Poll::Ready(Some(1)));
    });
    tx.try_send(0).unwrap();
    tx.try_send(0).unwrap();
    gives_up!(tx.send(1));
    waits_for_nothing!(tx.send(1), tx.reserve(), {
        assert_eq!(rx.try_recv(), Ok(0));
        assert_eq!(rx.try_recv(), Ok(0));
    });
    waits_for_nothing!(tx.closed(), tx.closed(), rx.close());
}

#[test]
fn waiting_on_the_other_channels_allocates_nothing() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    gives_up!(rx.recv());
    tx.send(1).unwrap();
    let (mut tx, mut rx) = oneshot::channel::<u64>();
    gives_up!(&mut rx);
    gives_up!(tx.closed());
    nothing(|| {
        assert!(once(&mut rx).is_pending());
        tx.send(1).unwrap();
        assert_eq!(once(&mut rx), Poll::Ready(Ok(1)));
    });
    let (tx, mut one) = broadcast::channel(4);
    let mut two = tx.subscribe();
    gives_up!(one.recv());
    waits_for_nothing!(one.recv(), two.recv(), assert!(tx.send(1).is_ok()));
    gives_up!(tx.closed());
    let (tx, mut one) = watch::channel(0);
    let mut two = nothing(|| one.clone());
    gives_up!(one.changed());
    waits_for_nothing!(one.changed(), two.changed(), tx.send(1).unwrap());
    waits_for_nothing!(one.wait_for(|n| *n == 2), two.changed(), tx.send(2).unwrap());
    gives_up!(tx.closed());
}

#[test]
fn a_channel_for_one_small_message_is_one_small_allocation() {
    let (count, bytes, channel) = allocations(|| mpsc::channel::<u64>(1));
    assert!(count == 1 && bytes <= 256, "{count} allocations of {bytes} bytes");
    let (tx, mut rx) = channel;
    nothing(|| {
        for n in 0..100 {
            tx.try_send(n).unwrap();
            assert_eq!(rx.try_recv(), Ok(n));
        }
    });
}

/// A channel's capacity is a bound, not a reservation, because most channels hold few messages.
#[test]
fn a_channel_with_room_for_many_messages_begins_small() {
    for capacity in [100, 1_000, 1_024, 100_000] {
        let (_, bytes, (sender, mut receiver)) =
            allocations(|| mpsc::channel::<[u64; 7]>(capacity));
        assert!(bytes <= 4 * 1024, "{bytes} bytes for an empty channel({capacity})");
        // The channel does not grow with the messages that have passed through it.
        let before = OfThread::now();
        for n in 0..3_000 {
            sender.try_send([n; 7]).unwrap();
            assert_eq!(receiver.try_recv(), Ok([n; 7]));
        }
        let more = OfThread::now().since(before);
        let kept = bytes + more.bytes - more.freed_bytes;
        assert!(kept <= 8 * 1024, "{kept} bytes for a used channel({capacity})");
    }
}

#[test]
fn a_oneshot_is_one_small_allocation() {
    let (count, bytes, (tx, rx)) = allocations(oneshot::channel::<u64>);
    assert!(count == 1 && bytes <= 72, "{count} allocations of {bytes} bytes");
    nothing(|| {
        tx.send(1).unwrap();
        assert_eq!(once(rx), Poll::Ready(Ok(1)));
    });
}

#[test]
fn a_hundred_waiters_are_woken_without_an_allocation() {
    let (semaphore, notify) = (Semaphore::new(0), Notify::new());
    let mut permits: Vec<_> = (0..100).map(|_| Box::pin(semaphore.acquire())).collect();
    let mut notices: Vec<_> = (0..100).map(|_| Box::pin(notify.notified())).collect();
    nothing(|| {
        permits.iter_mut().for_each(|wait| assert!(poll_once(wait).is_pending()));
        notices.iter_mut().for_each(|wait| assert!(poll_once(wait).is_pending()));
        semaphore.add_permits(100);
        notify.notify_waiters();
        permits.iter_mut().for_each(|wait| assert!(poll_once(wait).is_ready()));
        notices.iter_mut().for_each(|wait| assert!(poll_once(wait).is_ready()));
    });
}

#[test]
fn many_futures_are_joined_with_four_allocations() {
    use blitz_io::future::{join_all, race_ok, ready};

    let (count, _, joined) = allocations(|| once(join_all((0..100).map(ready))));
    assert_eq!((count, joined), (4, Poll::Ready((0..100).collect())));
    let fail = |n| ready(Err::<(), i32>(n));
    let (count, _, failed) = allocations(|| once(race_ok((0..100).map(fail))));
    assert_eq!((count, failed), (4, Poll::Ready(Err((0..100).collect()))));
}
