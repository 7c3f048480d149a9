//! Models of trees of tokens, checked under every interleaving.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc as Plain,
    task::{Context, Poll, Waker},
};

use crate::{
    engine::{
        prim::{model, thread},
        wait::test_waker::{CountingWaker, block_on},
    },
    sync::{CancellationToken, WaitForCancellationFutureOwned},
};

type Waiting = Pin<Box<WaitForCancellationFutureOwned>>;

fn cancel(token: &CancellationToken) -> thread::JoinHandle<()> {
    let token = token.clone();
    thread::spawn(move || token.cancel())
}

/// Creates a wait in the wait queue, and returns it with the [`CountingWaker`] that counts its
/// wake-ups.
#[track_caller]
fn queued(token: &CancellationToken) -> (Waiting, Plain<CountingWaker>) {
    let (mut waiting, counter) = (Box::pin(token.clone().cancelled_owned()), CountingWaker::new());
    let first = waiting.as_mut().poll(&mut Context::from_waker(&counter.waker()));
    assert!(first.is_pending());
    (waiting, counter)
}

#[test]
fn a_child_born_against_a_cancellation_is_cancelled() {
    model(|| {
        let parent = CancellationToken::new();
        let canceller = cancel(&parent);
        let child = parent.child_token();
        let grandchild = child.child_token();
        canceller.join().unwrap();
        assert!(child.is_cancelled() && grandchild.is_cancelled());
    });
}

#[test]
fn a_cancellation_against_a_wait_against_a_drop() {
    model(|| {
        let parent = CancellationToken::new();
        let child = parent.child_token();
        let (dropped, _waker) = queued(&child);
        let canceller = cancel(&parent);
        drop(dropped);
        block_on(child.cancelled());
        canceller.join().unwrap();
    });
}

#[test]
fn the_drop_of_a_child_against_a_cancellation() {
    model(|| {
        let parent = CancellationToken::new();
        let (first, second, third) =
            (parent.child_token(), parent.child_token(), parent.child_token());
        let canceller = cancel(&parent);
        drop(second);
        canceller.join().unwrap();
        assert!(first.is_cancelled() && third.is_cancelled());
    });
}

#[test]
fn the_drop_of_a_middle_node_against_a_cancellation() {
    model(|| {
        let root = CancellationToken::new();
        let middle = root.child_token();
        let leaves = [middle.child_token(), middle.child_token()];
        let canceller = cancel(&root);
        drop(middle);
        canceller.join().unwrap();
        assert!(leaves.iter().all(CancellationToken::is_cancelled));
    });
}

#[test]
fn a_parent_that_is_cancelled_has_cancelled_children() {
    model(|| {
        let parent = CancellationToken::new();
        let child = parent.child_token();
        let canceller = cancel(&parent);
        // Reads until the parent is cancelled, because the model checker disregards a single read
        // that another one follows.
        while !parent.is_cancelled() {
            thread::yield_now();
        }
        assert!(child.is_cancelled());
        canceller.join().unwrap();
    });
}

#[test]
fn two_cancellations_of_parent_and_child_wake_once() {
    model(|| {
        let parent = CancellationToken::new();
        let child = parent.child_token();
        let (waiting, counter) = queued(&child);
        let canceller = cancel(&parent);
        child.cancel();
        canceller.join().unwrap();
        assert_eq!(counter.wake_count(), 1);
        drop(waiting);
        assert!(parent.is_cancelled() && child.is_cancelled());
    });
}

/// In models a wake list holds two wakers.
#[test]
fn a_wake_list_of_a_cancellation_against_drops() {
    model(|| {
        let parent = CancellationToken::new();
        let [first, second, third] = [(); 3].map(|()| parent.child_token());
        let waiting = [queued(&parent), queued(&parent)];
        let (mut last, counter) = queued(&first);
        let canceller = cancel(&parent);
        waiting[0].1.wait();
        // These nodes are in the canceller's list now, or have left it.
        drop((second, first, third));
        canceller.join().unwrap();
        assert_eq!(counter.wake_count(), 1);
        assert_eq!(last.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
    });
}
