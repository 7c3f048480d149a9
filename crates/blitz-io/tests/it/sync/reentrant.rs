//! Tests wakers and values that use the primitive from which they are called.
//!
//! A waker may do anything when it is woken or dropped, and so may a value when it is dropped or
//! cloned, so the primitive must hold no lock meanwhile that they need. A deadlock ends the test
//! through `watch`.

use std::{
    future::Future,
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Waker,
};

use blitz_io::sync::{
    CancellationToken, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc,
    oneshot, watch as watching,
};

use crate::support::{
    manual_poll::{Polled, by_hand, now},
    wakers::{on_drop, on_wake},
    watchdog,
};

/// A count of how often an action ran.
#[derive(Clone, Default)]
struct Times(Arc<AtomicUsize>);

impl Times {
    /// Wraps `act` so that its calls are counted.
    fn of(&self, mut act: impl FnMut() + Send + 'static) -> impl FnMut() + Send + 'static {
        let count = self.0.clone();
        move || {
            act();
            count.fetch_add(1, Relaxed);
        }
    }

    #[track_caller]
    fn assert(&self, times: usize) {
        assert_eq!(self.0.load(Relaxed), times, "times it came back");
    }
}

/// A value that runs an action when it is dropped.
struct Acts(StdMutex<Option<Box<dyn FnMut() + Send>>>);

impl Acts {
    fn on_drop(act: impl FnMut() + Send + 'static) -> Self {
        Self(StdMutex::new(Some(Box::new(act))))
    }

    fn quiet() -> Self {
        Self(StdMutex::new(None))
    }
}

impl Drop for Acts {
    fn drop(&mut self) {
        if let Ok(Some(act)) = self.0.get_mut() {
            act();
        }
    }
}

/// Polls a future with this waker; it must be pending.
#[track_caller]
fn waits<F: Future>(future: F, waker: &Waker) -> Polled<F> {
    let mut polled = by_hand(future);
    assert!(polled.poll_with(waker).is_pending(), "it is ready");
    polled
}

#[test]
fn a_waker_of_a_semaphore_may_use_the_semaphore() {
    let _watch = watchdog::start();
    let (semaphore, times) = (Arc::new(Semaphore::new(0)), Times::default());
    let same = semaphore.clone();
    let waker = on_wake(times.of(move || {
        drop(same.try_acquire());
        same.add_permits(1);
        drop(same.clone().try_acquire_owned());
        same.forget_permits(1);
        let _ = (same.available_permits(), format!("{same:?}"));
        same.close();
    }));
    let waiter = waits(semaphore.acquire(), &waker);
    semaphore.add_permits(1);
    times.assert(1);
    drop(waiter);
}

#[test]
fn a_waker_that_is_replaced_or_dropped_may_use_the_semaphore() {
    let _watch = watchdog::start();
    let (semaphore, times) = (Arc::new(Semaphore::new(0)), Times::default());
    let acting = || {
        let same = semaphore.clone();
        on_drop(times.of(move || {
            drop(same.try_acquire());
            same.add_permits(1);
            same.forget_permits(1);
        }))
    };
    // The waker is replaced by another.
    let mut waiter = waits(semaphore.acquire(), &acting());
    drop(waiter.poll());
    times.assert(1);
    // The permit that the waker added went to the waiter, and returns with its drop.
    drop(waiter);
    assert_eq!(semaphore.forget_permits(9), 1);
    // The waker is dropped with its future.
    drop(waits(semaphore.acquire(), &acting()));
    times.assert(2);
    // The waker is dropped after it was woken.
    let waiter = waits(semaphore.acquire(), &acting());
    semaphore.add_permits(1);
    drop(waiter);
    times.assert(3);
}

#[test]
fn a_waker_of_a_mutex_may_use_the_mutex() {
    let _watch = watchdog::start();
    let (mutex, times) = (Arc::new(Mutex::new(0)), Times::default());
    let guard = mutex.clone().try_lock_owned().unwrap();
    let same = mutex.clone();
    let waker = on_wake(times.of(move || {
        assert!(same.try_lock().is_err(), "it is handed over");
        let _ = format!("{same:?}");
    }));
    let waiter = waits(mutex.lock(), &waker);
    drop(guard);
    times.assert(1);
    drop(waiter);
    let guard = mutex.clone().try_lock_owned().unwrap();
    let same = mutex.clone();
    let waker = on_drop(times.of(move || drop(same.try_lock())));
    let waiter = waits(mutex.lock(), &waker);
    drop((waker, waiter));
    times.assert(2);
    drop(guard);
}

#[test]
fn a_waker_of_an_rwlock_may_use_the_lock() {
    let _watch = watchdog::start();
    let (lock, times) = (Arc::new(RwLock::new(0)), Times::default());
    let guard = lock.clone().try_write_owned().unwrap();
    let acting = || {
        let same = lock.clone();
        on_wake(times.of(move || {
            drop((same.try_read(), same.try_write()));
            let _ = format!("{same:?}");
        }))
    };
    let readers = [waits(lock.read(), &acting()), waits(lock.read(), &acting())];
    drop(guard.downgrade());
    times.assert(2);
    drop(readers);
    let same = lock.clone();
    let guard = lock.clone().try_read_owned().unwrap();
    let waker = on_drop(times.of(move || drop(same.try_read())));
    let writer = waits(lock.write(), &waker);
    drop((waker, writer));
    times.assert(3);
    drop(guard);
}

#[test]
fn a_waker_may_drop_other_waiters_of_the_same_wait_queue() {
    let _watch = watchdog::start();
    let (semaphore, times) = (Arc::new(Semaphore::new(0)), Times::default());
    let others = Arc::new(StdMutex::new(Vec::new()));
    let theirs = others.clone();
    let waker = on_wake(times.of(move || drop(std::mem::take(&mut *theirs.lock().unwrap()))));
    let first = waits(semaphore.clone().acquire_owned(), &waker);
    for _ in 0..5 {
        others
            .lock()
            .unwrap()
            .push(crate::support::manual_poll::waiting(semaphore.clone().acquire_owned()));
    }
    semaphore.add_permits(3);
    times.assert(1);
    drop(first);
    assert_eq!(semaphore.available_permits(), 3, "no permit went with them");
}

#[test]
fn a_waker_of_a_notify_may_use_the_notify() {
    let _watch = watchdog::start();
    let (notify, times) = (Arc::new(Notify::new()), Times::default());
    let acting = || {
        let same = notify.clone();
        on_wake(times.of(move || {
            same.notify_waiters();
            same.notify_one();
            let _ = by_hand(same.notified()).poll();
            drop(crate::support::manual_poll::waiting(same.notified()));
        }))
    };
    let waiters: Vec<_> = (0..40).map(|_| waits(notify.notified(), &acting())).collect();
    notify.notify_waiters();
    times.assert(40);
    drop(waiters);
    let waiter = waits(notify.notified(), &acting());
    notify.notify_one();
    times.assert(41);
    drop(waiter);
    let same = notify.clone();
    let waker = on_drop(times.of(move || same.notify_one()));
    let _ = by_hand(notify.notified()).poll();
    let mut waiter = waits(notify.notified(), &waker);
    drop(waker);
    // The drop of the replaced waker notifies the future that replaces it: in this poll or the
    // next.
    if waiter.poll().is_pending() {
        waiter.woken_and_ready();
    }
    times.assert(42);
}

#[test]
fn a_waker_woken_by_notify_waiters_may_drop_the_others() {
    let _watch = watchdog::start();
    let (notify, times) = (Arc::new(Notify::new()), Times::default());
    let others = Arc::new(StdMutex::new(Vec::new()));
    let theirs = others.clone();
    let waker = on_wake(times.of(move || drop(std::mem::take(&mut *theirs.lock().unwrap()))));
    let first = waits(notify.clone().notified_owned(), &waker);
    for _ in 0..100 {
        others
            .lock()
            .unwrap()
            .push(crate::support::manual_poll::waiting(notify.clone().notified_owned()));
    }
    notify.notify_waiters();
    times.assert(1);
    drop(first);
}

#[test]
fn a_waker_of_a_cell_may_use_the_cell() {
    let _watch = watchdog::start();
    let (cell, times) = (Arc::new(OnceCell::new()), Times::default());
    let busy = crate::support::manual_poll::waiting(cell.get_or_init(std::future::pending::<u8>));
    let same = cell.clone();
    let waker = on_wake(times.of(move || {
        let _ = (same.set(5), same.get().copied(), format!("{same:?}"));
    }));
    let mut waiter = waits(cell.get_or_init(|| async { 2 }), &waker);
    drop(busy);
    times.assert(1);
    assert!(matches!(*waiter.ready(), 2 | 5));
}

#[test]
fn a_waker_of_a_set_once_may_use_it() {
    let _watch = watchdog::start();
    let (once, times) = (Arc::new(SetOnce::new()), Times::default());
    let same = once.clone();
    let waker = on_wake(times.of(move || {
        assert_eq!(same.get(), Some(&1));
        assert!(same.set(2).is_err());
        assert_eq!(*now(same.wait()), 1);
    }));
    let waiter = waits(once.wait(), &waker);
    once.set(1).unwrap();
    times.assert(1);
    drop(waiter);
}

#[test]
fn a_waker_of_a_token_may_use_the_token() {
    let _watch = watchdog::start();
    let (token, times) = (CancellationToken::new(), Times::default());
    let child = token.child_token();
    let (same, kin) = (token.clone(), child.clone());
    let waker = on_wake(times.of(move || {
        same.cancel();
        kin.cancel();
        assert!(same.child_token().is_cancelled());
        now(same.cancelled());
    }));
    let waiters = (waits(child.cancelled(), &waker), waits(token.cancelled(), &waker));
    token.cancel();
    times.assert(1);
    assert!(child.is_cancelled());
    drop(waiters);
    // A waker that holds the last handle of the token it waits for.
    let token = CancellationToken::new();
    let held = StdMutex::new(Some(token.child_token()));
    let waker = on_wake(times.of(move || drop(held.lock().unwrap().take())));
    let waiter = waits(token.cancelled(), &waker);
    token.cancel();
    times.assert(2);
    drop(waiter);
}

#[test]
fn a_waker_of_a_receiver_may_use_the_channel() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, mut rx) = mpsc::channel(4);
    let same = tx.clone();
    let waker = on_wake(times.of(move || {
        same.try_send(2).unwrap();
        drop(same.try_reserve());
        drop(same.clone());
        let _ = (same.capacity(), same.is_closed(), format!("{same:?}"));
    }));
    let recv = waits(rx.recv(), &waker);
    tx.try_send(1).unwrap();
    times.assert(1);
    drop(recv);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    let (tx, mut rx) = mpsc::unbounded_channel();
    let same = tx.clone();
    let waker = on_wake(times.of(move || same.send(2).unwrap()));
    let recv = waits(rx.recv(), &waker);
    tx.send(1).unwrap();
    times.assert(2);
    drop(recv);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
}

#[test]
fn a_waker_of_a_receiver_may_drop_the_receiver_or_the_last_sender() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, rx) = mpsc::channel(4);
    let receiver = Arc::new(StdMutex::new(Some(rx)));
    let same = receiver.clone();
    let waker = on_wake(times.of(move || drop(same.lock().unwrap().take())));
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(receiver.lock().unwrap().as_mut().unwrap().poll_recv(&mut cx).is_pending());
    // The message was delivered into a channel that was then dropped, or it was refused.
    let _ = tx.try_send(1);
    times.assert(1);
    assert!(tx.is_closed());
    let (tx, mut rx) = mpsc::channel::<u8>(4);
    let other = StdMutex::new(Some(tx.clone()));
    let waker = on_wake(times.of(move || drop(other.lock().unwrap().take())));
    let mut recv = waits(rx.recv(), &waker);
    tx.try_send(1).unwrap();
    drop(tx);
    times.assert(2);
    assert_eq!(recv.ready(), Some(1));
    drop(recv);
    assert_eq!(now(rx.recv()), None);
}

#[test]
fn a_waker_of_a_sender_may_use_the_channel() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let same = tx.clone();
    let waker = on_wake(times.of(move || {
        assert!(same.try_send(9).is_err(), "the room is promised");
        drop((same.try_reserve(), same.downgrade()));
    }));
    let mut send = waits(tx.send(1), &waker);
    assert_eq!(rx.try_recv(), Ok(0));
    times.assert(1);
    assert!(send.ready().is_ok());
    let same = tx.clone();
    let waker = on_wake(times.of(move || assert!(same.try_send(9).is_err())));
    let send = waits(tx.send(2), &waker);
    let closed = waits(tx.closed(), &on_wake(times.of(|| {})));
    drop(rx);
    times.assert(3);
    drop((send, closed));
}

#[test]
fn a_waker_that_goes_with_its_wait_may_use_the_channel() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, mut rx) = mpsc::channel(1);
    let same = tx.clone();
    let waker = on_drop(times.of(move || {
        let _ = same.try_send(1);
    }));
    let mut recv = waits(rx.recv(), &waker);
    drop(waker);
    let _ = recv.poll();
    drop(recv);
    times.assert(1);
    let _ = rx.try_recv();
    tx.try_send(0).unwrap();
    let same = tx.clone();
    let waker = on_drop(times.of(move || {
        let _ = same.try_send(1);
    }));
    let send = waits(tx.send(1), &waker);
    drop((waker, send));
    times.assert(2);
}

#[test]
fn a_message_may_use_its_channel_in_its_drop() {
    let _watch = watchdog::start();
    let times = Times::default();
    // Messages that are dropped with the receiver.
    let (tx, rx) = mpsc::channel(4);
    for _ in 0..3 {
        let same = tx.clone();
        let act = times.of(move || {
            assert!(same.is_closed());
            assert!(same.try_send(Acts::quiet()).is_err());
            let _ = same.capacity();
        });
        assert!(tx.try_send(Acts::on_drop(act)).is_ok());
    }
    drop(rx);
    times.assert(3);
    // The messages hold senders themselves, so the channel ends with them.
    let (tx, rx) = mpsc::unbounded_channel();
    for _ in 0..50 {
        let same = tx.clone();
        let act = times.of(move || assert!(same.send(Acts::quiet()).is_err()));
        assert!(tx.send(Acts::on_drop(act)).is_ok());
    }
    drop(tx);
    drop(rx);
    times.assert(53);
}

#[test]
fn a_message_that_holds_its_own_receiver_may_be_dropped() {
    let _watch = watchdog::start();
    let times = Times::default();
    // A oneshot value that owns the sender of another channel, whose receiver waits.
    let (tx, rx) = oneshot::channel();
    let (inner_tx, inner_rx) = oneshot::channel::<()>();
    let act = times.of(|| {});
    assert!(tx.send((inner_tx, Acts::on_drop(act))).is_ok());
    let same = StdMutex::new(Some(rx));
    let waker = on_wake(move || drop(same.lock().unwrap().take()));
    let mut inner = waits(inner_rx, &waker);
    // The waker drops the outer receiver, and with it the value that holds this sender.
    drop(inner.poll());
    waker.wake();
    times.assert(1);
    assert!(inner.ready().is_err());
}

#[test]
fn a_waker_of_a_oneshot_may_drop_either_half() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, rx) = oneshot::channel();
    let receiver = Arc::new(StdMutex::new(Some(Box::pin(rx))));
    let same = receiver.clone();
    let waker = on_wake(times.of(move || drop(same.lock().unwrap().take())));
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(receiver.lock().unwrap().as_mut().unwrap().as_mut().poll(&mut cx).is_pending());
    let _ = tx.send(Acts::on_drop(times.of(|| {})));
    times.assert(2);
    // The sender's waker, while the receiver closes.
    let (tx, mut rx) = oneshot::channel::<u8>();
    let sender = Arc::new(StdMutex::new(Some(tx)));
    let same = sender.clone();
    let waker = on_wake(times.of(move || drop(same.lock().unwrap().take())));
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(sender.lock().unwrap().as_mut().unwrap().poll_closed(&mut cx).is_pending());
    rx.close();
    times.assert(3);
    assert!(rx.try_recv().is_err());
}

#[test]
fn a_oneshot_value_may_use_another_channel_in_its_drop() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, rx) = oneshot::channel();
    let (other, mut end) = mpsc::channel(1);
    assert!(tx.send(Acts::on_drop(times.of(move || other.try_send(1).unwrap()))).is_ok());
    drop(rx);
    times.assert(1);
    assert_eq!(now(end.recv()), Some(1));
}

#[test]
fn a_waker_of_a_broadcast_may_use_the_channel() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, mut rx) = broadcast::channel(8);
    let same = tx.clone();
    let waker = on_wake(times.of(move || {
        assert!(same.send(2).is_ok());
        let mut new = same.subscribe();
        assert!(new.try_recv().is_err());
        drop(crate::support::manual_poll::waiting(new.recv()));
        let _ = (same.len(), same.receiver_count(), format!("{same:?}"));
    }));
    let recv = waits(rx.recv(), &waker);
    tx.send(1).unwrap();
    times.assert(1);
    drop(recv);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    let same = tx.clone();
    let waker = on_drop(times.of(move || assert!(same.send(3).is_ok())));
    let mut recv = waits(rx.recv(), &waker);
    drop(waker);
    let _ = recv.poll();
    drop(recv);
    times.assert(2);
}

/// A message that uses its channel when it is dropped.
#[derive(Clone)]
struct Returns(Option<broadcast::Sender<Returns>>, Arc<AtomicUsize>);

impl Drop for Returns {
    fn drop(&mut self) {
        if let Some(tx) = self.0.take() {
            let _ = (tx.len(), tx.receiver_count());
            drop(tx.subscribe());
            drop(tx.send(Returns(None, self.1.clone())));
            self.1.fetch_add(1, Relaxed);
        }
    }
}

#[test]
fn a_broadcast_value_that_is_overwritten_may_use_its_channel() {
    let _watch = watchdog::start();
    let times = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = broadcast::channel(1);
    assert!(tx.send(Returns(Some(tx.clone()), times.clone())).is_ok());
    assert!(tx.send(Returns(None, times.clone())).is_ok());
    assert_eq!(times.load(Relaxed), 1);
    drop(rx);
}

#[test]
fn a_broadcast_value_that_goes_with_its_last_receiver_may_use_its_channel() {
    let _watch = watchdog::start();
    let times = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = broadcast::channel(4);
    for _ in 0..3 {
        assert!(tx.send(Returns(Some(tx.clone()), times.clone())).is_ok());
    }
    drop(rx);
    assert_eq!(times.load(Relaxed), 3);
}

/// A message that uses its channel when it is cloned.
struct Looks(broadcast::Sender<Looks>, Arc<AtomicUsize>);

impl Clone for Looks {
    fn clone(&self) -> Self {
        // Everything but the slot that holds this message.
        let _ = self.0.receiver_count();
        drop(self.0.subscribe());
        self.1.fetch_add(1, Relaxed);
        Self(self.0.clone(), self.1.clone())
    }
}

#[test]
fn a_broadcast_value_that_is_cloned_may_use_its_channel() {
    let _watch = watchdog::start();
    let times = Arc::new(AtomicUsize::new(0));
    let (tx, mut one) = broadcast::channel(4);
    let two = tx.subscribe();
    assert!(tx.send(Looks(tx.clone(), times.clone())).is_ok());
    assert!(one.try_recv().is_ok());
    assert_eq!(times.load(Relaxed), 1);
    drop((one, two));
}

#[test]
fn a_waker_of_a_watch_may_use_the_channel() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, mut rx) = watching::channel(0);
    let same = tx.clone();
    let waker = on_wake(times.of(move || {
        same.send_modify(|value| *value += 1);
        let new = same.subscribe();
        let _ = (*same.borrow(), *new.borrow(), format!("{same:?}"));
    }));
    let changed = waits(rx.changed(), &waker);
    tx.send(1).unwrap();
    times.assert(1);
    drop(changed);
    assert_eq!(*rx.borrow_and_update(), 2);
    let same = tx.clone();
    let waker = on_drop(times.of(move || same.send(3).unwrap()));
    let mut changed = waits(rx.changed(), &waker);
    drop(waker);
    let _ = changed.poll();
    drop(changed);
    times.assert(2);
    let waker = on_wake(times.of({
        let same = tx.clone();
        move || drop(same.subscribe())
    }));
    let closed = waits(tx.closed(), &waker);
    drop(rx);
    times.assert(3);
    drop(closed);
}

#[test]
fn a_watched_value_that_is_replaced_may_use_the_channel_when_dropped() {
    let _watch = watchdog::start();
    let times = Times::default();
    let (tx, rx) = watching::channel(Acts::quiet());
    let (same, reader) = (tx.clone(), rx.clone());
    let act = times.of(move || {
        drop(reader.borrow());
        let _ = same.receiver_count();
    });
    assert!(tx.send(Acts::on_drop(act)).is_ok());
    assert!(tx.send(Acts::quiet()).is_ok());
    times.assert(1);
}
