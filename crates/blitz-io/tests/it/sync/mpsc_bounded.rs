//! Tests the bounded mpsc channel: order, capacity, permits, closing, weak senders, counts.

use std::task::{Context, Poll, Waker};

use blitz_io::sync::mpsc::{
    self,
    error::{SendError, SendTimeoutError, TryRecvError, TrySendError},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn messages_arrive_in_the_order_they_were_sent() {
    for capacity in [1, 2, 3, 31, 32, 33, 100, 1000] {
        let (tx, mut rx) = mpsc::channel(capacity);
        for round in 0..3 {
            for n in 0..capacity {
                now(tx.send((round, n))).unwrap();
            }
            for n in 0..capacity {
                assert_eq!(now(rx.recv()), Some((round, n)), "capacity {capacity}");
            }
        }
    }
}

#[test]
fn capacity_is_exact_for_every_size() {
    for capacity in [1, 2, 3, 4, 5, 31, 32, 33, 64, 100, 1023, 1025] {
        let (tx, mut rx) = mpsc::channel(capacity);
        for n in 0..capacity {
            assert_eq!(tx.capacity(), capacity - n);
            tx.try_send(n).unwrap();
        }
        assert_eq!(tx.try_send(7), Err(TrySendError::Full(7)), "capacity {capacity}");
        assert_eq!(rx.try_recv(), Ok(0));
        tx.try_send(7).unwrap();
        assert_eq!(tx.try_send(8), Err(TrySendError::Full(8)));
        assert_eq!((tx.max_capacity(), rx.max_capacity()), (capacity, capacity));
    }
}

#[test]
fn a_huge_capacity_can_be_made() {
    let (tx, mut rx) = mpsc::channel(blitz_io::sync::Semaphore::MAX_PERMITS);
    tx.try_send(1).unwrap();
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.capacity(), blitz_io::sync::Semaphore::MAX_PERMITS);
}

#[test]
fn no_capacity_panics_where_the_caller_is() {
    let line = line!() + 1;
    let caught = panic_of(|| mpsc::channel::<u8>(0));
    caught.says(&["mpsc bounded channel requires buffer > 0"]).at(file!(), line);
}

#[test]
fn too_large_a_capacity_panics() {
    panic_of(|| mpsc::channel::<u8>(blitz_io::sync::Semaphore::MAX_PERMITS + 1));
}

#[test]
fn senders_wait_for_room_in_the_order_they_came() {
    let (tx, mut rx) = mpsc::channel(1);
    now(tx.send(0)).unwrap();
    let mut first = waiting(tx.send(1));
    let mut second = waiting(tx.send(2));
    assert_eq!(now(rx.recv()), Some(0));
    second.still_waits();
    assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)), "the room is promised");
    first.woken_and_ready().unwrap();
    second.still_waits();
    assert_eq!(now(rx.recv()), Some(1));
    second.woken_and_ready().unwrap();
    assert_eq!(now(rx.recv()), Some(2));
}

#[test]
fn a_receiver_that_waits_is_woken_by_a_message() {
    let (tx, mut rx) = mpsc::channel(4);
    for n in 0..10 {
        let mut recv = waiting(rx.recv());
        recv.still_waits();
        tx.try_send(n).unwrap();
        assert_eq!(recv.woken_and_ready(), Some(n));
    }
}

#[test]
fn a_receiver_gets_none_when_the_last_sender_is_gone() {
    let (tx, mut rx) = mpsc::channel(4);
    let other = tx.clone();
    tx.try_send(1).unwrap();
    drop(tx);
    assert_eq!(now(rx.recv()), Some(1));
    let mut recv = waiting(rx.recv());
    drop(other);
    assert_eq!(recv.woken_and_ready(), None);
    drop(recv);
    assert_eq!(now(rx.recv()), None, "and so every time");
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn messages_sent_before_the_last_sender_was_dropped_are_received() {
    let (tx, mut rx) = mpsc::channel(4);
    for n in 0..4 {
        tx.try_send(n).unwrap();
    }
    drop(tx);
    let got: Vec<_> = std::iter::from_fn(|| now(rx.recv())).collect();
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn try_recv_distinguishes_empty_from_disconnected() {
    let (tx, mut rx) = mpsc::channel(1);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    tx.try_send(1).unwrap();
    drop(tx);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_closed_channel_refuses_messages_and_delivers_what_it_holds() {
    let (tx, mut rx) = mpsc::channel(2);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    let mut waits = waiting(tx.send(3));
    assert!(!tx.is_closed() && !rx.is_closed());
    rx.close();
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(waits.woken_and_ready(), Err(SendError(3)));
    assert_eq!(now(tx.send(4)), Err(SendError(4)));
    assert_eq!(tx.try_send(5), Err(TrySendError::Closed(5)));
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Closed(()))));
    assert_eq!(now(rx.recv()), Some(1));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(now(rx.recv()), None);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    rx.close();
}

#[test]
fn a_permit_can_still_be_used_after_the_close_and_is_waited_for() {
    let (tx, mut rx) = mpsc::channel(2);
    let (one, two) = (now(tx.reserve()).unwrap(), now(tx.reserve()).unwrap());
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty), "a message may still come");
    let mut recv = waiting(rx.recv());
    one.send(1);
    assert_eq!(recv.woken_and_ready(), Some(1));
    drop(recv);
    let mut recv = waiting(rx.recv());
    drop(two);
    assert_eq!(recv.woken_and_ready(), None);
}

#[test]
fn a_dropped_receiver_closes_the_channel() {
    let (tx, rx) = mpsc::channel(1);
    tx.try_send(1).unwrap();
    let mut waits = waiting(tx.send(2));
    let mut reserves = waiting(tx.reserve());
    let mut closed = waiting(tx.closed());
    drop(rx);
    assert_eq!(waits.woken_and_ready(), Err(SendError(2)));
    assert_eq!(reserves.woken_and_ready().err(), Some(SendError(())));
    closed.woken_and_ready();
    assert!(tx.is_closed());
    assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
}

#[test]
fn closed_wakes_all_its_waiters() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let other = tx.clone();
    let mut all = [waiting(tx.closed()), waiting(tx.closed()), waiting(other.closed())];
    rx.close();
    for closed in &mut all {
        closed.woken_and_ready();
    }
    now(other.closed());
}

#[test]
fn a_permit_holds_room_until_it_is_used_or_dropped() {
    let (tx, mut rx) = mpsc::channel(1);
    let permit = tx.try_reserve().unwrap();
    assert_eq!(tx.capacity(), 0);
    assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
    let mut waits = waiting(tx.send(2));
    drop(permit);
    waits.woken_and_ready().unwrap();
    assert_eq!(rx.try_recv(), Ok(2));
    now(tx.reserve()).unwrap().send(3);
    assert_eq!(rx.try_recv(), Ok(3));
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn permits_deliver_in_the_order_they_are_used() {
    let (tx, mut rx) = mpsc::channel(2);
    let (first, second) = (tx.try_reserve().unwrap(), tx.try_reserve().unwrap());
    second.send(2);
    assert_eq!(rx.try_recv(), Ok(2));
    first.send(1);
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn many_permits_come_at_once_or_not_at_all() {
    let (tx, mut rx) = mpsc::channel(4);
    let mut permits = now(tx.reserve_many(3)).unwrap();
    assert_eq!((permits.len(), permits.size_hint()), (3, (3, Some(3))));
    assert_eq!(tx.capacity(), 1);
    assert!(matches!(tx.try_reserve_many(2), Err(TrySendError::Full(()))));
    let mut waits = waiting(tx.reserve_many(2));
    permits.next().unwrap().send(1);
    assert_eq!(permits.len(), 2);
    drop(permits);
    assert_eq!(waits.woken_and_ready().unwrap().count(), 2);
    drop(waits);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(tx.capacity(), 4);
    assert_eq!(tx.try_reserve_many(0).unwrap().count(), 0);
    assert_eq!(tx.try_reserve_many(4).unwrap().map(|permit| permit.send(7)).count(), 4);
    assert_eq!(tx.capacity(), 0);
    assert_eq!(rx.len(), 4);
}

#[test]
fn more_permits_than_the_channel_can_ever_have_are_refused() {
    let (tx, _rx) = mpsc::channel::<u8>(2);
    assert_eq!(now(tx.reserve_many(3)).err(), Some(SendError(())));
    assert!(tx.try_reserve_many(3).is_err());
    assert_eq!(tx.capacity(), 2);
}

#[test]
fn an_owned_permit_gives_the_sender_back() {
    let (tx, mut rx) = mpsc::channel(1);
    let other = tx.clone();
    let permit = now(tx.reserve_owned()).unwrap();
    assert!(permit.same_channel_as_sender(&other));
    assert_eq!(other.capacity(), 0);
    let full = other.try_reserve_owned().unwrap_err();
    assert!(matches!(full, TrySendError::Full(_)));
    let other = full.into_inner();
    let tx = permit.send(1);
    assert_eq!(rx.try_recv(), Ok(1));
    let (one, two) = mpsc::channel(1);
    let foreign = one.try_reserve_owned().unwrap();
    let permit = tx.try_reserve_owned().unwrap();
    assert!(permit.same_channel(&permit) && !permit.same_channel(&foreign));
    drop((foreign, two));
    let tx = permit.release();
    assert_eq!(other.capacity(), 1);
    drop((tx, other));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn an_owned_permit_that_is_dropped_counts_as_a_sender_gone() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    let permit = tx.try_reserve_owned().unwrap();
    let mut recv = waiting(rx.recv());
    drop(permit);
    assert_eq!(recv.woken_and_ready(), None);
}

#[test]
fn an_owned_permit_of_a_closed_channel_is_refused() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    rx.close();
    assert!(matches!(tx.clone().try_reserve_owned(), Err(TrySendError::Closed(_))));
    assert_eq!(now(tx.reserve_owned()).err(), Some(SendError(())));
}

#[test]
fn recv_many_takes_what_is_there_up_to_the_limit() {
    let (tx, mut rx) = mpsc::channel(100);
    (0..70).for_each(|n| tx.try_send(n).unwrap());
    let mut got = vec![-1];
    assert_eq!(now(rx.recv_many(&mut got, 0)), 0);
    assert_eq!(now(rx.recv_many(&mut got, 5)), 5);
    assert_eq!(got, [-1, 0, 1, 2, 3, 4]);
    assert_eq!(now(rx.recv_many(&mut got, 1000)), 65);
    assert_eq!(got.len(), 71);
    assert_eq!((tx.capacity(), got[70]), (100, 69));
    let mut more = Vec::new();
    let mut waits = waiting(rx.recv_many(&mut more, 10));
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(waits.woken_and_ready(), 2);
    drop(waits);
    drop(tx);
    assert_eq!(now(rx.recv_many(&mut more, 10)), 0);
    assert_eq!(more, [1, 2]);
}

#[test]
fn recv_many_makes_room_for_as_many_senders() {
    let (tx, mut rx) = mpsc::channel(3);
    (0..3).for_each(|n| tx.try_send(n).unwrap());
    let mut senders: Vec<_> = (3..6).map(|n| waiting(tx.send(n))).collect();
    let mut got = Vec::new();
    assert_eq!(now(rx.recv_many(&mut got, 3)), 3);
    for sender in &mut senders {
        sender.woken_and_ready().unwrap();
    }
    assert_eq!(now(rx.recv_many(&mut got, 3)), 3);
    assert_eq!(got, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn recv_many_of_none_from_an_empty_closed_channel_is_none() {
    let (tx, mut rx) = mpsc::channel::<u8>(1);
    assert_eq!(now(rx.recv_many(&mut Vec::new(), 0)), 0);
    drop(tx);
    assert_eq!(now(rx.recv_many(&mut Vec::new(), 1)), 0);
}

#[test]
fn poll_recv_wakes_the_waker_it_saw_last() {
    let (tx, mut rx) = mpsc::channel(2);
    let mut noop = Context::from_waker(Waker::noop());
    assert_eq!(rx.poll_recv(&mut noop), Poll::Pending);
    let mut recv = by_hand(std::future::poll_fn(|cx| rx.poll_recv(cx)));
    recv.pending();
    tx.try_send(1).unwrap();
    assert_eq!(recv.woken_and_ready(), Some(1));
    drop(recv);
    let mut got = Vec::new();
    assert_eq!(rx.poll_recv_many(&mut noop, &mut got, 2), Poll::Pending);
    tx.try_send(2).unwrap();
    assert_eq!(rx.poll_recv_many(&mut noop, &mut got, 0), Poll::Ready(0));
    assert_eq!(rx.poll_recv_many(&mut noop, &mut got, 2), Poll::Ready(1));
    drop(tx);
    assert_eq!(rx.poll_recv(&mut noop), Poll::Ready(None));
    assert_eq!(rx.poll_recv_many(&mut noop, &mut got, 2), Poll::Ready(0));
}

#[test]
fn a_weak_sender_keeps_nothing_open() {
    let (tx, mut rx) = mpsc::channel(1);
    let weak = tx.downgrade();
    let other = weak.clone();
    let strong = weak.upgrade().unwrap();
    assert!(strong.same_channel(&tx));
    drop(tx);
    strong.try_send(1).unwrap();
    drop(strong);
    assert!(weak.upgrade().is_none() && other.upgrade().is_none());
    assert_eq!(now(rx.recv()), Some(1));
    assert_eq!(now(rx.recv()), None);
}

#[test]
fn handles_are_counted() {
    let (tx, rx) = mpsc::channel::<u8>(1);
    let counts = || (rx.sender_strong_count(), rx.sender_weak_count());
    assert_eq!(counts(), (1, 0));
    let (second, weak) = (tx.clone(), tx.downgrade());
    let other = weak.clone();
    assert_eq!(counts(), (2, 2));
    assert_eq!((tx.strong_count(), tx.weak_count()), (2, 2));
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 2));
    let third = weak.upgrade();
    assert_eq!(counts(), (3, 2));
    drop((second, third, other));
    assert_eq!(counts(), (1, 1));
    drop(tx);
    assert_eq!(counts(), (0, 1));
    assert_eq!((weak.strong_count(), weak.weak_count()), (0, 1));
}

#[test]
fn senders_of_one_channel_know_each_other() {
    let ((one, _a), (two, _b)) = (mpsc::channel::<u8>(1), mpsc::channel::<u8>(1));
    assert!(one.same_channel(&one.clone()) && !one.same_channel(&two));
}

#[test]
fn the_receiver_counts_messages_and_room() {
    let (tx, mut rx) = mpsc::channel(3);
    assert_eq!((rx.len(), rx.is_empty(), rx.capacity()), (0, true, 3));
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!((rx.len(), rx.is_empty(), rx.capacity()), (2, false, 1));
    rx.close();
    assert_eq!((rx.len(), rx.is_empty()), (2, false));
    rx.try_recv().unwrap();
    rx.try_recv().unwrap();
    assert_eq!((rx.len(), rx.is_empty()), (0, true));
}

#[test]
fn a_receiver_is_closed_when_no_sender_is_left() {
    let (tx, rx) = mpsc::channel::<u8>(1);
    assert!(!rx.is_closed());
    drop(tx);
    assert!(rx.is_closed());
}

#[test]
fn every_value_is_dropped_once_wherever_it_is() {
    let tally = Tally::new();
    let (tx, mut rx) = mpsc::channel(4);
    (0..4).for_each(|_| assert!(tx.try_send(tally.token()).is_ok()));
    assert!(tx.try_send(tally.token()).is_err());
    assert_eq!(tally.dropped(), 1, "refused");
    drop(rx.try_recv());
    assert_eq!(tally.dropped(), 2, "received");
    assert!(tx.try_send(tally.token()).is_ok());
    drop(waiting(tx.send(tally.token())));
    assert_eq!(tally.dropped(), 3, "given up");
    drop(by_hand(tx.send(tally.token())));
    assert_eq!(tally.dropped(), 4, "never tried");
    drop(rx);
    assert_eq!(tally.dropped(), 8, "queued");
    drop(tx.try_send(tally.token()));
    drop(now(tx.send(tally.token())));
    tally.assert_all_dropped(10);
}

#[test]
fn queued_values_are_dropped_with_the_receiver_not_with_the_last_sender() {
    let tally = Tally::new();
    let (tx, rx) = mpsc::channel(40);
    (0..40).for_each(|_| assert!(tx.try_send(tally.token()).is_ok()));
    drop(rx);
    tally.assert_all_dropped(40);
    drop(tx);
    let (tx, rx) = mpsc::channel(40);
    (0..40).for_each(|_| assert!(tx.try_send(tally.token()).is_ok()));
    drop(tx);
    assert_eq!(tally.dropped(), 40);
    drop(rx);
    tally.assert_all_dropped(80);
}

#[test]
fn a_value_sent_through_a_permit_after_the_receiver_went_is_dropped_once() {
    let tally = Tally::new();
    let (tx, rx) = mpsc::channel(1);
    let permit = tx.try_reserve().unwrap();
    drop(rx);
    permit.send(tally.token());
    drop(tx);
    tally.assert_all_dropped(1);
}

#[test]
fn values_without_size_and_large_values_pass() {
    let (tx, mut rx) = mpsc::channel(2);
    tx.try_send(()).unwrap();
    assert_eq!(rx.try_recv(), Ok(()));
    let (tx, mut rx) = mpsc::channel(2);
    tx.try_send([7u64; 512]).unwrap();
    assert_eq!(rx.try_recv(), Ok([7; 512]));
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(SendError(1).to_string(), "channel closed");
    assert_eq!(TrySendError::Full(1).to_string(), "no available capacity");
    assert_eq!(TrySendError::Closed(1).to_string(), "channel closed");
    assert_eq!(TryRecvError::Empty.to_string(), "receiving on an empty channel");
    assert_eq!(TryRecvError::Disconnected.to_string(), "receiving on a closed channel");
    assert_eq!(SendTimeoutError::Timeout(1).to_string(), "timed out waiting on send operation");
    assert_eq!(SendTimeoutError::Closed(1).into_inner(), 1);
    assert_eq!(TrySendError::from(SendError(1)), TrySendError::Closed(1));
    assert_eq!(TrySendError::Full(3).into_inner(), 3);
    // An error can be printed even if its value does not implement `Debug`.
    struct Plain;
    assert!(!format!("{:?}", SendError(Plain)).is_empty());
    let _: &dyn std::error::Error = &TryRecvError::Empty;
}
