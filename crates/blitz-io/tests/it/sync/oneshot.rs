//! Tests the oneshot channel.

use std::{
    future::Future,
    task::{Context, Poll, Waker},
};

use blitz_io::sync::oneshot::{
    self,
    error::{RecvError, TryRecvError},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn a_value_sent_is_received() {
    let (tx, rx) = oneshot::channel();
    tx.send(1).unwrap();
    assert_eq!(now(rx), Ok(1));
}

#[test]
fn a_receiver_that_waits_is_woken_by_the_value() {
    let (tx, rx) = oneshot::channel();
    let mut recv = waiting(rx);
    recv.still_waits();
    tx.send(1).unwrap();
    assert_eq!(recv.woken_and_ready(), Ok(1));
}

#[test]
fn a_receiver_gets_an_error_when_the_sender_is_gone() {
    let (tx, rx) = oneshot::channel::<u8>();
    let mut recv = waiting(rx);
    drop(tx);
    let error = recv.woken_and_ready().unwrap_err();
    assert_eq!(error.to_string(), "channel closed");
    let _: RecvError = error.clone();
}

#[test]
fn a_sender_gets_its_value_back_when_the_receiver_is_gone() {
    let (tx, rx) = oneshot::channel();
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(tx.send(1), Err(1));
}

#[test]
fn closed_wakes_the_sender_when_the_receiver_goes_or_closes() {
    let (mut tx, rx) = oneshot::channel::<u8>();
    let mut closed = waiting(tx.closed());
    drop(rx);
    closed.woken_and_ready();
    drop(closed);
    now(tx.closed());
    let (mut tx, mut rx) = oneshot::channel::<u8>();
    assert!(!tx.is_closed());
    let mut closed = waiting(tx.closed());
    rx.close();
    closed.woken_and_ready();
    drop(closed);
    assert!(tx.is_closed());
    assert_eq!(tx.send(1), Err(1));
}

#[test]
fn poll_closed_wakes_the_waker_it_saw_last() {
    let (mut tx, rx) = oneshot::channel::<u8>();
    assert_eq!(tx.poll_closed(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    let mut closed = by_hand(std::future::poll_fn(|cx| tx.poll_closed(cx)));
    closed.pending();
    drop(rx);
    closed.woken_and_ready();
}

#[test]
fn a_sender_that_waited_for_the_close_may_still_send() {
    let (mut tx, rx) = oneshot::channel();
    drop(waiting(tx.closed()));
    let mut recv = waiting(rx);
    tx.send(1).unwrap();
    assert_eq!(recv.woken_and_ready(), Ok(1));
}

#[test]
fn a_value_sent_before_the_close_is_still_there() {
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    rx.close();
    assert_eq!(rx.try_recv(), Ok(1));
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    rx.close();
    assert_eq!(now(rx), Ok(1));
}

#[test]
fn a_closed_receiver_gets_nothing() {
    let (tx, mut rx) = oneshot::channel();
    rx.close();
    rx.close();
    assert_eq!(tx.send(1), Err(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    let (tx, mut rx) = oneshot::channel::<u8>();
    let mut recv = waiting(&mut rx);
    recv.pending();
    drop(recv);
    rx.close();
    assert!(now(rx).is_err());
    drop(tx);
}

#[test]
fn try_recv_distinguishes_empty_from_closed() {
    let (tx, mut rx) = oneshot::channel();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    tx.send(1).unwrap();
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    let (tx, mut rx) = oneshot::channel::<u8>();
    drop(tx);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(TryRecvError::Empty.to_string(), "channel empty");
    assert_eq!(TryRecvError::Closed.to_string(), "channel closed");
}

#[test]
fn try_recv_after_a_poll_finds_the_value() {
    let (tx, rx) = oneshot::channel();
    let mut rx = Box::pin(rx);
    let mut noop = Context::from_waker(Waker::noop());
    assert!(rx.as_mut().poll(&mut noop).is_pending());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    tx.send(1).unwrap();
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn a_receiver_is_empty_without_a_value() {
    let (tx, mut rx) = oneshot::channel();
    assert!(rx.is_empty());
    tx.send(1).unwrap();
    assert!(!rx.is_empty());
    rx.try_recv().unwrap();
    assert!(rx.is_empty());
    let (tx, rx) = oneshot::channel::<u8>();
    drop(tx);
    assert!(rx.is_empty());
}

#[test]
fn a_receiver_is_terminated_once_it_has_completed() {
    let (tx, mut rx) = oneshot::channel();
    assert!(!rx.is_terminated());
    waiting(&mut rx);
    assert!(!rx.is_terminated());
    tx.send(1).unwrap();
    assert!(!rx.is_terminated());
    assert_eq!(now(&mut rx), Ok(1));
    assert!(rx.is_terminated());
    let (tx, mut rx) = oneshot::channel::<u8>();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert!(!rx.is_terminated());
    drop(tx);
    assert!(!rx.is_terminated());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert!(rx.is_terminated());
}

#[test]
fn polling_after_completion_panics() {
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    assert_eq!(now(&mut rx), Ok(1));
    panic_of(|| now(&mut rx)).says(&["called after complete"]);
}

#[test]
fn a_receiver_polled_with_another_waker_wakes_the_last_one() {
    let (tx, rx) = oneshot::channel();
    let mut recv = by_hand(rx);
    assert!(recv.poll_with(Waker::noop()).is_pending());
    recv.pending();
    recv.pending();
    tx.send(1).unwrap();
    assert_eq!(recv.woken_and_ready(), Ok(1));
}

#[test]
fn every_value_is_dropped_once_wherever_it_is() {
    let tally = Tally::new();
    let (tx, rx) = oneshot::channel();
    assert!(tx.send(tally.token()).is_ok());
    assert_eq!(tally.dropped(), 0);
    drop(rx);
    tally.assert_all_dropped(1);
    let (tx, rx) = oneshot::channel();
    drop(rx);
    let back = tx.send(tally.token());
    assert_eq!(tally.dropped(), 1);
    drop(back);
    tally.assert_all_dropped(2);
    let (tx, mut rx) = oneshot::channel();
    assert!(tx.send(tally.token()).is_ok());
    rx.close();
    drop(rx);
    tally.assert_all_dropped(3);
    let (tx, mut rx) = oneshot::channel();
    assert!(tx.send(tally.token()).is_ok());
    drop(rx.try_recv());
    tally.assert_all_dropped(4);
    drop(rx);
    tally.assert_all_dropped(4);
}

#[test]
fn values_without_size_and_large_values_pass() {
    let (tx, rx) = oneshot::channel();
    tx.send(()).unwrap();
    assert_eq!(now(rx), Ok(()));
    let (tx, rx) = oneshot::channel();
    tx.send([7u64; 512]).unwrap();
    assert_eq!(now(rx), Ok([7; 512]));
}

#[test]
fn a_value_crosses_threads_with_everything_that_was_written_before() {
    for _ in 0..200 {
        let (tx, rx) = oneshot::channel();
        let sender = std::thread::spawn(move || tx.send(vec![1, 2, 3]).unwrap());
        assert_eq!(rx.blocking_recv(), Ok(vec![1, 2, 3]));
        sender.join().unwrap();
    }
}
