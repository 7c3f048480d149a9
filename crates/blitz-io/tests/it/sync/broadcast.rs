//! Tests the broadcast channel: every receiver gets every message, or the number of those it
//! missed.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::sync::broadcast::{
    self,
    error::{RecvError, SendError, TryRecvError},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    manual_poll::{by_hand, now, waiting},
};

/// A value that counts its clones; each clone has a token of its own.
struct Cloned {
    tally: Tally,
    clones: Arc<AtomicUsize>,
    token: Token,
}

impl Cloned {
    fn new(tally: &Tally, clones: &Arc<AtomicUsize>) -> Self {
        Self { tally: tally.clone(), clones: clones.clone(), token: tally.token() }
    }
}

impl Clone for Cloned {
    fn clone(&self) -> Self {
        self.token.keep();
        self.clones.fetch_add(1, Relaxed);
        Self::new(&self.tally, &self.clones)
    }
}

#[test]
fn every_receiver_sees_every_message_in_order() {
    let (tx, mut one) = broadcast::channel(16);
    let mut two = tx.subscribe();
    for n in 0..10 {
        assert_eq!(tx.send(n).unwrap(), 2);
    }
    for n in 0..10 {
        assert_eq!(now(one.recv()), Ok(n));
        assert_eq!(two.try_recv(), Ok(n));
    }
    assert_eq!(one.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_subscriber_sees_only_what_is_sent_after_it_came() {
    let (tx, mut early) = broadcast::channel(4);
    tx.send(1).unwrap();
    let mut late = tx.subscribe();
    tx.send(2).unwrap();
    assert_eq!(now(late.recv()), Ok(2));
    assert_eq!(now(early.recv()), Ok(1));
    let mut again = early.resubscribe();
    tx.send(3).unwrap();
    assert_eq!(again.try_recv(), Ok(3));
    assert_eq!(early.try_recv(), Ok(2));
}

#[test]
fn all_receivers_that_wait_are_woken_by_one_message() {
    let (tx, rx) = broadcast::channel(4);
    let mut receivers: Vec<_> = (0..70).map(|_| tx.subscribe()).collect();
    let mut waits: Vec<_> = receivers.iter_mut().map(|rx| waiting(rx.recv())).collect();
    tx.send(5).unwrap();
    for recv in &mut waits {
        assert_eq!(recv.woken_and_ready(), Ok(5));
    }
    drop(rx);
}

#[test]
fn a_slow_receiver_gets_the_exact_number_it_missed_and_continues_with_the_oldest() {
    for capacity in [1u64, 2, 4, 8] {
        for sent in 0..30u64 {
            let (tx, mut rx) = broadcast::channel(capacity as usize);
            for n in 0..sent {
                tx.send(n).unwrap();
            }
            let missed = sent.saturating_sub(capacity);
            if missed > 0 {
                assert_eq!(now(rx.recv()), Err(RecvError::Lagged(missed)));
            }
            for n in missed..sent {
                assert_eq!(rx.try_recv(), Ok(n), "capacity {capacity}, sent {sent}");
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        }
    }
}

#[test]
fn a_receiver_can_lag_again_and_again() {
    let (tx, mut rx) = broadcast::channel(2);
    for round in 0..10 {
        (0..5).for_each(|n| assert!(tx.send(round * 5 + n).is_ok()));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Lagged(3)));
        assert_eq!(rx.try_recv(), Ok(round * 5 + 3));
        assert_eq!(rx.try_recv(), Ok(round * 5 + 4));
    }
}

#[test]
fn a_lagging_receiver_of_a_closed_channel_gets_what_is_left() {
    let (tx, mut rx) = broadcast::channel(2);
    (0..3).for_each(|n| assert!(tx.send(n).is_ok()));
    drop(tx);
    assert_eq!(now(rx.recv()), Err(RecvError::Lagged(1)));
    assert_eq!(now(rx.recv()), Ok(1));
    assert_eq!(now(rx.recv()), Ok(2));
    assert_eq!(now(rx.recv()), Err(RecvError::Closed));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn the_capacity_is_at_least_the_requested_one() {
    for capacity in 1..20 {
        let (tx, mut rx) = broadcast::channel(capacity);
        (0..capacity).for_each(|n| assert!(tx.send(n).is_ok()));
        (0..capacity).for_each(|n| assert_eq!(rx.try_recv(), Ok(n), "capacity {capacity}"));
    }
}

#[test]
fn waiting_receivers_get_closed_when_the_last_sender_is_gone() {
    let (tx, mut one) = broadcast::channel::<u8>(2);
    let (other, mut two) = (tx.clone(), tx.subscribe());
    let (mut a, mut b) = (waiting(one.recv()), waiting(two.recv()));
    drop(tx);
    a.still_waits();
    drop(other);
    assert_eq!(a.woken_and_ready(), Err(RecvError::Closed));
    assert_eq!(b.woken_and_ready(), Err(RecvError::Closed));
    drop((a, b));
    assert!(one.is_closed());
}

#[test]
fn without_receivers_a_message_comes_back_and_later_subscribers_are_served() {
    let (tx, rx) = broadcast::channel(2);
    drop(rx);
    let error = tx.send(1).unwrap_err();
    assert_eq!((error.0, error.to_string().as_str()), (1, "channel closed"));
    let mut rx = tx.subscribe();
    assert_eq!(tx.send(2).unwrap(), 1);
    assert_eq!(rx.try_recv(), Ok(2));
}

#[test]
fn a_sender_can_be_made_alone() {
    let tx = broadcast::Sender::new(2);
    assert_eq!(tx.receiver_count(), 0);
    assert!(tx.send(1).is_err());
    let mut rx = tx.subscribe();
    assert_eq!(tx.send(2).unwrap(), 1);
    assert_eq!(now(rx.recv()), Ok(2));
}

#[test]
fn closed_waits_until_the_last_receiver_is_gone() {
    let (tx, one) = broadcast::channel::<u8>(2);
    let two = tx.subscribe();
    let mut closed = waiting(tx.closed());
    let mut also = waiting(tx.closed());
    drop(one);
    closed.still_waits();
    drop(two);
    closed.woken_and_ready();
    also.woken_and_ready();
    drop((closed, also));
    let rx = tx.subscribe();
    waiting(tx.closed());
    drop(rx);
    now(tx.closed());
}

#[test]
fn a_channel_without_receivers_is_closed() {
    let tx = broadcast::Sender::<u8>::new(1);
    now(tx.closed());
}

#[test]
fn messages_are_counted_for_senders_and_receivers() {
    let (tx, mut one) = broadcast::channel(4);
    assert!(tx.is_empty() && one.is_empty());
    (0..3).for_each(|n| assert!(tx.send(n).is_ok()));
    let mut two = tx.subscribe();
    assert_eq!((tx.len(), one.len(), two.len()), (3, 3, 0));
    one.try_recv().unwrap();
    assert_eq!((tx.len(), one.len()), (2, 2));
    (0..4).for_each(|n| assert!(tx.send(n).is_ok()));
    assert_eq!((tx.len(), two.len(), two.is_empty()), (4, 4, false));
    assert_eq!(one.len(), 6, "the ones it missed are counted");
    for rx in [&mut one, &mut two] {
        while !matches!(rx.try_recv(), Err(TryRecvError::Empty)) {}
    }
    assert_eq!((tx.len(), tx.is_empty()), (0, true));
}

#[test]
fn a_message_that_every_receiver_has_seen_is_gone() {
    let (tally, clones) = (Tally::new(), Arc::default());
    let (tx, mut one) = broadcast::channel(4);
    let mut two = tx.subscribe();
    assert!(tx.send(Cloned::new(&tally, &clones)).is_ok());
    drop(one.try_recv().map_err(drop));
    assert_eq!(tally.dropped() + 1, tally.made(), "the second receiver may still read");
    drop(two.try_recv().map_err(drop));
    assert_eq!(tally.dropped(), tally.made());
}

#[test]
fn a_receiver_that_goes_releases_what_it_had_not_seen() {
    let (tally, clones) = (Tally::new(), Arc::default());
    let (tx, one) = broadcast::channel(4);
    let two = tx.subscribe();
    (0..3).for_each(|_| assert!(tx.send(Cloned::new(&tally, &clones)).is_ok()));
    drop(one);
    assert_eq!(tally.dropped(), 0);
    drop(two);
    tally.assert_all_dropped(3);
    assert_eq!(clones.load(Relaxed), 0);
}

#[test]
fn overwritten_and_left_over_values_are_dropped_once() {
    let (tally, clones) = (Tally::new(), Arc::default());
    let (tx, rx) = broadcast::channel(2);
    (0..5).for_each(|_| assert!(tx.send(Cloned::new(&tally, &clones)).is_ok()));
    assert_eq!(tally.dropped(), 3, "two are kept");
    drop(tx);
    drop(rx);
    tally.assert_all_dropped(5);
}

#[test]
fn a_refused_value_comes_back_and_is_dropped_once() {
    let (tally, clones) = (Tally::new(), Arc::default());
    let (tx, rx) = broadcast::channel(2);
    drop(rx);
    let back = tx.send(Cloned::new(&tally, &clones)).unwrap_err();
    assert_eq!(tally.dropped(), 0);
    drop(back);
    tally.assert_all_dropped(1);
}

#[test]
fn a_clone_that_panics_harms_no_other_receiver() {
    thread_local! {
        static PANICS: Cell<bool> = const { Cell::new(false) };
    }
    struct Fragile(Token, Tally);
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            assert!(!PANICS.get(), "it cannot be cloned");
            Self(self.1.token(), self.1.clone())
        }
    }
    let tally = Tally::new();
    let (tx, mut one) = broadcast::channel(4);
    let (mut two, mut three) = (tx.subscribe(), tx.subscribe());
    assert!(tx.send(Fragile(tally.token(), tally.clone())).is_ok());
    assert!(tx.send(Fragile(tally.token(), tally.clone())).is_ok());
    PANICS.set(true);
    panic_of(|| drop(one.try_recv())).says(&["it cannot be cloned"]);
    PANICS.set(false);
    for rx in [&mut two, &mut three] {
        rx.try_recv().map_err(drop).unwrap().0.keep();
        assert!(rx.try_recv().is_ok());
    }
    // The message whose clone failed counts as seen; the receiver can still be used.
    assert!(one.try_recv().is_ok());
    assert!(matches!(one.try_recv(), Err(TryRecvError::Empty)));
    assert!(tx.send(Fragile(tally.token(), tally.clone())).is_ok());
    drop((tx, one, two, three));
    let made = tally.made();
    tally.assert_all_dropped(made);
}

#[test]
fn weak_senders_keep_nothing_open_and_all_are_counted() {
    let (tx, mut rx) = broadcast::channel::<u8>(1);
    let weak = tx.downgrade();
    let other = weak.clone();
    assert_eq!((tx.strong_count(), tx.weak_count()), (1, 2));
    let strong = weak.upgrade().unwrap();
    assert!(strong.same_channel(&tx));
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (2, 2));
    drop((tx, other));
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    strong.send(1).unwrap();
    drop(strong);
    assert!(weak.upgrade().is_none());
    assert!(rx.is_closed());
    assert_eq!(now(rx.recv()), Ok(1));
    assert_eq!(now(rx.recv()), Err(RecvError::Closed));
}

#[test]
fn handles_of_one_channel_know_each_other() {
    let ((one, a), (two, b)) = (broadcast::channel::<u8>(1), broadcast::channel::<u8>(1));
    assert!(one.same_channel(&one.clone()) && !one.same_channel(&two));
    assert!(a.same_channel(&one.subscribe()) && !a.same_channel(&b));
    assert_eq!(one.receiver_count(), 1);
    let more = a.resubscribe();
    assert_eq!(one.receiver_count(), 2);
    drop((a, more));
    assert_eq!(one.receiver_count(), 0);
}

#[test]
fn resubscribing_to_a_closed_channel_finds_it_closed() {
    let (tx, rx) = broadcast::channel(4);
    tx.send(1).unwrap();
    drop(tx);
    let mut again = rx.resubscribe();
    assert_eq!(now(again.recv()), Err(RecvError::Closed));
}

#[test]
fn no_capacity_and_too_large_a_capacity_panic_where_the_caller_is() {
    let line = line!() + 1;
    let caught = panic_of(|| broadcast::channel::<u8>(0));
    caught.says(&["broadcast channel capacity cannot be zero"]).at(file!(), line);
    let line = line!() + 1;
    let caught = panic_of(|| broadcast::channel::<u8>(usize::MAX));
    caught.says(&["broadcast channel capacity exceeded `usize::MAX / 2`"]).at(file!(), line);
    let line = line!() + 1;
    let caught = panic_of(|| broadcast::Sender::<u8>::new(0));
    caught.says(&["broadcast channel capacity cannot be zero"]).at(file!(), line);
}

#[test]
fn a_receive_that_is_dropped_takes_no_message() {
    let (tx, mut rx) = broadcast::channel(2);
    let recv = waiting(rx.recv());
    tx.send(1).unwrap();
    assert!(recv.woken());
    drop(recv);
    drop(by_hand(rx.recv()));
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(RecvError::Closed.to_string(), "channel closed");
    assert_eq!(RecvError::Lagged(3).to_string(), "channel lagged by 3");
    assert_eq!(TryRecvError::Empty.to_string(), "channel empty");
    assert_eq!(TryRecvError::Closed.to_string(), "channel closed");
    assert_eq!(TryRecvError::Lagged(3).to_string(), "channel lagged by 3");
    assert_eq!(SendError(1).to_string(), "channel closed");
    let _: &dyn std::error::Error = &RecvError::Closed.clone();
}
