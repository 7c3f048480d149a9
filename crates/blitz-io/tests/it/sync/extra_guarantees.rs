//! Tests guarantees of `sync` that blitz-io makes and Tokio does not.
//!
//! Every operation that completes takes a unit of budget; a value is dropped or cloned only where
//! it can use its own channel; a waker that panics does not prevent others from being woken; trees
//! of tokens may be as deep as memory allows.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::sync::{
    Barrier, CancellationToken, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast,
    broadcast::Sender, mpsc, watch as watching,
};

use crate::support::{
    budget::{forever, yields},
    manual_poll::{by_hand, now, waiting},
    wakers::panics,
    watchdog,
};

#[test]
fn receiving_kept_notifications_yields() {
    let notify = Arc::new(Notify::new());
    yields(|done| {
        forever!(done, {
            notify.notify_one();
            notify.notified().await;
        })
    });
}

#[test]
fn passing_a_barrier_of_one_yields() {
    let barrier = Arc::new(Barrier::new(1));
    yields(|done| forever!(done, barrier.wait().await));
}

#[test]
fn awaiting_full_cells_yields() {
    let (cell, once) = (OnceCell::from(1), SetOnce::from(1));
    yields(|done| {
        forever!(done, {
            cell.get_or_init(|| async { 2 }).await;
        })
    });
    yields(|done| {
        forever!(done, {
            once.wait().await;
        })
    });
}

#[test]
fn awaiting_a_cancelled_token_yields() {
    let token = CancellationToken::new();
    token.cancel();
    yields(|done| forever!(done, token.cancelled().await));
}

/// A message that uses its channel when it is dropped.
#[derive(Clone)]
struct Returns(Option<Sender<Returns>>, Arc<AtomicUsize>);

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
struct Looks(Sender<Looks>, Arc<AtomicUsize>);

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

/// Waits with a waker that panics, between two waits with good wakers; `end` must wake them all.
fn all_are_woken<F: Future>(wait: impl Fn() -> F, end: impl FnOnce()) {
    let mut first = waiting(wait());
    let mut bad = by_hand(wait());
    assert!(bad.poll_with(&panics()).is_pending());
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
    let mut bad: Vec<_> = children.iter().map(|child| by_hand(child.cancelled())).collect();
    bad.iter_mut().for_each(|wait| assert!(wait.poll_with(&panics()).is_pending()));
    let _ = catch_unwind(AssertUnwindSafe(|| root.cancel()));
    assert!(children.iter().all(CancellationToken::is_cancelled));
}

#[test]
fn a_tree_of_tokens_may_be_deep() {
    let _watch = watchdog::start();
    const DEPTH: usize = 100_000;
    let chain = || {
        let mut chain = vec![CancellationToken::new()];
        for at in 0..DEPTH {
            chain.push(chain[at].child_token());
        }
        chain
    };
    let cancelled = chain();
    let leaf = cancelled[DEPTH].clone();
    let mut waiter = waiting(leaf.cancelled());
    cancelled[0].cancel();
    waiter.woken_and_ready();
    drop(waiter);
    drop(cancelled);
    // Dropped from the root down, from the leaf up, and only the leaf kept.
    drop(chain());
    chain().into_iter().rev().for_each(drop);
    let leaf = chain().pop();
    drop(leaf);
}
