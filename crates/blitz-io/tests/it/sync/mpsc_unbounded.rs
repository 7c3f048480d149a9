//! Tests the unbounded mpsc channel.

use std::task::{Context, Poll, Waker};

use blitz_io::sync::mpsc::{
    self,
    error::{SendError, TryRecvError},
};

use crate::support::{
    drop_tally::Tally,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn any_number_of_messages_arrives_in_order() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    for round in 0..3 {
        (0..1000).for_each(|n| tx.send((round, n)).unwrap());
        assert_eq!(rx.len(), 1000);
        (0..1000).for_each(|n| assert_eq!(now(rx.recv()), Some((round, n))));
        assert!(rx.is_empty());
    }
}

#[test]
fn one_in_one_out_crosses_every_boundary() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    for n in 0..500 {
        tx.send(n).unwrap();
        assert_eq!(rx.len(), 1);
        assert_eq!(rx.try_recv(), Ok(n));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    }
}

#[test]
fn a_receiver_that_waits_is_woken_by_a_message() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    for n in 0..100 {
        let mut recv = waiting(rx.recv());
        recv.still_waits();
        tx.send(n).unwrap();
        assert_eq!(recv.woken_and_ready(), Some(n));
    }
}

#[test]
fn a_receiver_gets_none_when_the_last_sender_is_gone() {
    let (tx, mut rx) = mpsc::unbounded_channel::<u8>();
    let other = tx.clone();
    drop(tx);
    let mut recv = waiting(rx.recv());
    drop(other);
    assert_eq!(recv.woken_and_ready(), None);
    drop(recv);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert!(rx.is_closed());
}

#[test]
fn a_closed_channel_refuses_messages_and_delivers_what_it_holds() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..50).for_each(|n| tx.send(n).unwrap());
    let mut closed = waiting(tx.closed());
    rx.close();
    closed.woken_and_ready();
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(tx.send(50), Err(SendError(50)));
    let got: Vec<_> = std::iter::from_fn(|| now(rx.recv())).collect();
    assert_eq!(got, (0..50).collect::<Vec<_>>());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn closing_an_empty_channel_ends_it_at_once() {
    let (tx, mut rx) = mpsc::unbounded_channel::<u8>();
    rx.close();
    assert_eq!(now(rx.recv()), None);
    assert_eq!(tx.send(1), Err(SendError(1)));
    now(tx.closed());
}

#[test]
fn a_dropped_receiver_closes_the_channel_for_all_senders() {
    let (tx, rx) = mpsc::unbounded_channel();
    let other = tx.clone();
    let mut all = [waiting(tx.closed()), waiting(other.closed())];
    drop(rx);
    all.iter_mut().for_each(|closed| closed.woken_and_ready());
    assert_eq!(other.send(1), Err(SendError(1)));
}

#[test]
fn recv_many_takes_what_is_there_up_to_the_limit() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..200).for_each(|n| tx.send(n).unwrap());
    let mut got = Vec::new();
    assert_eq!(now(rx.recv_many(&mut got, 0)), 0);
    assert_eq!(now(rx.recv_many(&mut got, 150)), 150);
    assert_eq!(now(rx.recv_many(&mut got, 150)), 50);
    assert_eq!(got, (0..200).collect::<Vec<_>>());
    drop(tx);
    assert_eq!(now(rx.recv_many(&mut got, 1)), 0);
}

#[test]
fn poll_recv_wakes_the_waker_it_saw_last() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let mut noop = Context::from_waker(Waker::noop());
    assert_eq!(rx.poll_recv(&mut noop), Poll::Pending);
    let mut got = Vec::new();
    assert_eq!(rx.poll_recv_many(&mut noop, &mut got, 2), Poll::Pending);
    let mut recv = by_hand(std::future::poll_fn(|cx| rx.poll_recv(cx)));
    recv.pending();
    tx.send(1).unwrap();
    assert_eq!(recv.woken_and_ready(), Some(1));
}

#[test]
fn weak_senders_keep_nothing_open_and_all_are_counted() {
    let (tx, mut rx) = mpsc::unbounded_channel::<u8>();
    let weak = tx.downgrade();
    let other = weak.clone();
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (1, 2));
    let strong = weak.upgrade().unwrap();
    assert!(strong.same_channel(&tx));
    assert_eq!((tx.strong_count(), tx.weak_count()), (2, 2));
    drop((tx, other));
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    drop(strong);
    assert!(weak.upgrade().is_none());
    assert_eq!(now(rx.recv()), None);
}

#[test]
fn every_value_is_dropped_once_wherever_it_is() {
    let tally = Tally::new();
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..100).for_each(|_| assert!(tx.send(tally.token()).is_ok()));
    (0..40).for_each(|_| drop(rx.try_recv()));
    assert_eq!(tally.dropped(), 40);
    drop(rx);
    assert_eq!(tally.dropped(), 100);
    drop(tx.send(tally.token()));
    drop(tx);
    tally.assert_all_dropped(101);
    let (tx, rx) = mpsc::unbounded_channel();
    (0..100).for_each(|_| assert!(tx.send(tally.token()).is_ok()));
    drop((tx, rx));
    tally.assert_all_dropped(201);
}

#[test]
fn values_without_size_pass() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..100).for_each(|_| tx.send(()).unwrap());
    drop(tx);
    assert_eq!(std::iter::from_fn(|| now(rx.recv())).count(), 100);
}
