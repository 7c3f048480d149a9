//! Models of the oneshot channel: which half has the value, and which half is woken.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Receiver, Sender, Slot, channel, error::TryRecvError};
use crate::engine::{
    prim::{model, model_deeper, thread},
    wait::test_waker::{CountingWaker, block_on},
};

/// The value that is sent; its reference count says how many exist, and is not explored.
type Value = Arc<()>;

/// Runs `tx` on another thread and `rx` on this one, and asserts that every value was dropped
/// once.
fn between<A: Send + 'static, B>(
    tx: impl FnOnce(Sender<Value>, Value) -> A + Send + 'static,
    rx: impl FnOnce(Receiver<Value>) -> B,
) -> (A, B) {
    let value = Arc::new(());
    let (sender, receiver) = channel();
    let other = thread::spawn({
        let value = value.clone();
        move || tx(sender, value)
    });
    let received = rx(receiver);
    let sent = other.join().unwrap();
    (sent, received)
}

/// Polls once, with the waker of `counter`.
fn poll_with<F: Future + Unpin>(future: &mut F, counter: &Arc<CountingWaker>) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&counter.waker()))
}

/// Polls with the waker of `counter`, and sleeps in between, until the future is ready.
fn wait_with<F: Future + Unpin>(future: &mut F, counter: &Arc<CountingWaker>) -> F::Output {
    loop {
        match poll_with(future, counter) {
            Poll::Ready(output) => return output,
            Poll::Pending => counter.wait(),
        }
    }
}

#[test]
fn a_value_sent_is_received_or_dropped_once() {
    model(|| {
        let (sent, received) = between(|tx, value| tx.send(value).is_ok(), block_on);
        assert!(sent);
        let value = received.expect("it was sent");
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn a_sender_that_goes_ends_the_wait() {
    model(|| {
        let ((), received) = between(|tx, _| drop(tx), block_on);
        assert!(received.is_err());
    });
}

/// Regression test for RUSTSEC-2021-0124: after `close` the sender takes its value back while
/// the receiver looks for one.
#[test]
fn send_against_close_and_try_recv_agree() {
    model(|| {
        let (sent, received) = between(
            |tx, value| tx.send(value),
            |mut rx| {
                rx.close();
                rx.try_recv()
            },
        );
        match received {
            Ok(value) => {
                assert!(sent.is_ok());
                assert_eq!(Arc::strong_count(&value), 1);
            }
            Err(error) => {
                assert_eq!(error, TryRecvError::Closed);
                assert_eq!(Arc::strong_count(&sent.expect_err("the receiver did not get it")), 1);
            }
        }
    });
}

#[test]
fn send_against_the_drop_of_the_receiver_drops_the_value_once() {
    model(|| {
        let value = Arc::new(());
        let (tx, rx) = channel();
        let other = thread::spawn({
            let value = value.clone();
            move || tx.send(value).is_ok()
        });
        drop(rx);
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn send_against_the_drop_of_a_receiver_that_waits_drops_everything_once() {
    model(|| {
        let (value, counter) = (Arc::new(()), CountingWaker::new());
        let (tx, mut rx) = channel();
        assert!(poll_with(&mut rx, &counter).is_pending());
        let other = thread::spawn({
            let value = value.clone();
            move || tx.send(value).is_ok()
        });
        drop(rx);
        other.join().unwrap();
        assert_eq!((Arc::strong_count(&value), Arc::strong_count(&counter)), (1, 1));
    });
}

#[test]
fn closed_against_the_drop_of_the_receiver_ends() {
    model(|| {
        between(
            |mut tx, value| {
                block_on(tx.closed());
                assert!(tx.is_closed());
                assert!(tx.send(value).is_err());
            },
            drop,
        );
    });
}

#[test]
fn closed_against_close_ends() {
    model(|| {
        between(
            |mut tx, _| block_on(tx.closed()),
            |mut rx| {
                rx.close();
                assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
            },
        );
    });
}

#[test]
fn a_new_waker_against_send_is_woken() {
    model(|| {
        let (old, new) = (CountingWaker::new(), CountingWaker::new());
        let (tx, mut rx) = channel();
        assert!(poll_with(&mut rx, &old).is_pending());
        let other = thread::spawn(move || tx.send(7).is_ok());
        assert_eq!(wait_with(&mut rx, &new), Ok(7));
        assert!(other.join().unwrap());
        drop(rx);
        assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
    });
}

#[test]
fn a_new_waker_against_the_drop_of_the_sender_is_woken() {
    model(|| {
        let (old, new) = (CountingWaker::new(), CountingWaker::new());
        let (tx, mut rx) = channel::<Value>();
        assert!(poll_with(&mut rx, &old).is_pending());
        let other = thread::spawn(move || drop(tx));
        assert!(wait_with(&mut rx, &new).is_err());
        other.join().unwrap();
        assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
    });
}

#[test]
fn a_new_waker_of_the_sender_against_close_is_woken() {
    model(|| {
        let (old, new) = (CountingWaker::new(), CountingWaker::new());
        let (mut tx, mut rx) = channel::<Value>();
        assert!(tx.poll_closed(&mut Context::from_waker(&old.waker())).is_pending());
        let other = thread::spawn(move || rx.close());
        let waker = new.waker();
        while tx.poll_closed(&mut Context::from_waker(&waker)).is_pending() {
            new.wait();
        }
        other.join().unwrap();
        drop((tx, waker));
        assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
    });
}

#[test]
fn both_halves_wait_and_both_go() {
    model_deeper(|| {
        let (counters, value) = ([CountingWaker::new(), CountingWaker::new()], Arc::new(()));
        let (mut tx, mut rx) = channel();
        assert!(poll_with(&mut rx, &counters[0]).is_pending());
        assert!(tx.poll_closed(&mut Context::from_waker(&counters[1].waker())).is_pending());
        let other = thread::spawn({
            let value = value.clone();
            move || tx.send(value).is_ok()
        });
        drop(rx);
        let sent = other.join().unwrap();
        assert_eq!(
            (counters[0].wake_count(), counters[1].wake_count()),
            if sent { (1, 0) } else { (0, 1) }
        );
        assert!(counters.iter().all(|counter| Arc::strong_count(counter) == 1));
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn a_thread_waits_for_a_value() {
    model(|| {
        let ((), received) = between(
            |tx, value| {
                tx.send(value).expect("the receiver waits");
            },
            |rx| block_on(rx.into_future()),
        );
        assert_eq!(Arc::strong_count(&received.expect("it was sent")), 1);
    });
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum TxDoes {
    Send,
    Goes,
    Looks,
    Polls,
    PollsThenSend,
}

impl TxDoes {
    const ALL: [Self; 5] = [Self::Send, Self::Goes, Self::Looks, Self::Polls, Self::PollsThenSend];
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Receives {
    Tries,
    Closes,
    Looks,
    Polls,
    PollsThenCloses,
    PollsTwice,
    Goes,
}

impl Receives {
    const ALL: [Self; 7] = [
        Self::Tries,
        Self::Closes,
        Self::Looks,
        Self::Polls,
        Self::PollsThenCloses,
        Self::PollsTwice,
        Self::Goes,
    ];
}

fn sends(how: TxDoes, mut tx: Sender<Value>, value: Value) {
    let counter = CountingWaker::new();
    match how {
        TxDoes::Send => drop(tx.send(value)),
        TxDoes::Goes => drop(tx),
        TxDoes::Looks => _ = tx.is_closed(),
        TxDoes::Polls => _ = tx.poll_closed(&mut Context::from_waker(&counter.waker())),
        TxDoes::PollsThenSend => {
            let polled = tx.poll_closed(&mut Context::from_waker(&counter.waker()));
            let sent = tx.send(value);
            assert!(polled.is_pending() || sent.is_err(), "sent to a closed channel");
        }
    }
}

fn receives(how: Receives, mut rx: Receiver<Value>) {
    let counters = [CountingWaker::new(), CountingWaker::new()];
    match how {
        Receives::Tries => _ = rx.try_recv(),
        Receives::Closes => {
            rx.close();
            // The outcome is decided: either the value was sent before, or it never will be.
            let empty = rx.is_empty();
            assert_eq!(rx.try_recv().is_err(), empty);
        }
        Receives::Looks => {
            let empty = rx.is_empty();
            assert!(empty || rx.try_recv().is_ok());
        }
        Receives::Polls => _ = poll_with(&mut rx, &counters[0]),
        Receives::PollsThenCloses => {
            if poll_with(&mut rx, &counters[0]).is_pending() {
                rx.close();
                assert!(poll_with(&mut rx, &counters[1]).is_ready());
            }
        }
        Receives::PollsTwice => {
            if poll_with(&mut rx, &counters[0]).is_pending() {
                _ = poll_with(&mut rx, &counters[1]);
            }
        }
        Receives::Goes => {}
    }
    drop(rx);
    assert!(counters.iter().all(|counter| counter.wake_count() <= 1));
}

#[test]
fn every_pair_of_methods_agrees_on_which_half_has_the_value() {
    for tx_does in TxDoes::ALL {
        for rx_does in Receives::ALL {
            model(move || {
                let value = Arc::new(());
                let (tx, rx) = channel();
                let other = thread::spawn({
                    let value = value.clone();
                    move || sends(tx_does, tx, value)
                });
                receives(rx_does, rx);
                other.join().unwrap();
                assert_eq!(Arc::strong_count(&value), 1, "{tx_does:?}, {rx_does:?}");
            });
        }
    }
}

/// A slot that a model's threads may share.
///
/// By their types the halves borrow it for `'static`; it is freed when both threads are done.
struct Kept(std::ptr::NonNull<Slot<Value>>);

impl Kept {
    fn new() -> Self {
        Self(std::ptr::NonNull::from(Box::leak(Box::new(Slot::new()))))
    }

    /// Returns the slot, to be split.
    ///
    /// # Safety
    /// 1. The halves of the last call were dropped or forgotten.
    unsafe fn slot(&mut self) -> &'static mut Slot<Value> {
        // SAFETY: by our obligation 1 there is no other reference, and the slot is freed only in
        // `drop`.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: the slot came from a box, and models end after both halves were dropped.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[test]
fn a_slot_is_used_twice() {
    model(|| {
        let (mut kept, value) = (Kept::new(), Arc::new(()));
        for again in [false, true] {
            // SAFETY: 1. of `slot`: the slot is new, or the other thread was joined and the
            // receiver dropped.
            let (tx, mut rx) = unsafe { kept.slot() }.split();
            let other = thread::spawn({
                let value = value.clone();
                move || tx.send(value).is_ok()
            });
            if again {
                drop(rx);
                other.join().unwrap();
            } else {
                assert!(wait_with(&mut rx, &CountingWaker::new()).is_ok());
                assert!(other.join().unwrap());
            }
        }
        drop(kept);
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn a_slot_whose_halves_were_forgotten_drops_what_they_left() {
    model(|| {
        let (mut kept, value, counter) = (Kept::new(), Arc::new(()), CountingWaker::new());
        // SAFETY: 1. of `slot`: the slot is new, so it has no halves.
        let (tx, mut rx) = unsafe { kept.slot() }.split();
        assert!(poll_with(&mut rx, &counter).is_pending());
        std::mem::forget(rx);
        let other = thread::spawn({
            let value = value.clone();
            move || tx.send(value).is_ok()
        });
        assert!(other.join().unwrap());
        assert_eq!(Arc::strong_count(&value), 2, "the slot has it");
        // SAFETY: 1. of `slot`: one half was used up, the other forgotten.
        let halves = unsafe { kept.slot() }.split();
        assert_eq!((Arc::strong_count(&value), Arc::strong_count(&counter)), (1, 1));
        drop(halves);
    });
}
