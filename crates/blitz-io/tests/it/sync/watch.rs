//! Tests the watch channel: the latest value, and whether a receiver has seen it.

use blitz_io::sync::watch::{
    self,
    error::{RecvError, SendError},
};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{by_hand, now, waiting},
};

#[test]
fn the_first_value_counts_as_seen_and_the_next_does_not() {
    let (tx, mut rx) = watch::channel(1);
    assert_eq!(*rx.borrow(), 1);
    assert!(!rx.has_changed().unwrap());
    let mut changed = waiting(rx.changed());
    tx.send(2).unwrap();
    changed.woken_and_ready().unwrap();
    drop(changed);
    assert_eq!(*rx.borrow(), 2);
    waiting(rx.changed());
}

#[test]
fn only_the_latest_value_is_kept() {
    let (tx, mut rx) = watch::channel(0);
    (1..=5).for_each(|n| tx.send(n).unwrap());
    now(rx.changed()).unwrap();
    assert_eq!(*rx.borrow(), 5);
    waiting(rx.changed());
}

#[test]
fn borrow_does_not_mark_as_seen_and_borrow_and_update_does() {
    let (tx, mut rx) = watch::channel(0);
    tx.send(1).unwrap();
    assert!(rx.borrow().has_changed());
    assert!(rx.has_changed().unwrap());
    let seen = rx.borrow_and_update();
    assert!(seen.has_changed());
    assert_eq!(*seen, 1);
    drop(seen);
    assert!(!rx.has_changed().unwrap() && !rx.borrow_and_update().has_changed());
    waiting(rx.changed());
}

#[test]
fn all_receivers_that_wait_are_woken() {
    let (tx, rx) = watch::channel(0);
    let mut receivers: Vec<_> = (0..70).map(|_| rx.clone()).collect();
    let mut waits: Vec<_> = receivers.iter_mut().map(|rx| waiting(rx.changed())).collect();
    tx.send(1).unwrap();
    waits.iter_mut().for_each(|changed| changed.woken_and_ready().unwrap());
}

#[test]
fn receivers_see_independently_and_clones_have_seen_what_their_origin_saw() {
    let (tx, mut one) = watch::channel(0);
    tx.send(1).unwrap();
    let mut two = one.clone();
    now(one.changed()).unwrap();
    let mut three = one.clone();
    now(two.changed()).unwrap();
    waiting(three.changed());
    let mut four = tx.subscribe();
    waiting(four.changed());
    assert_eq!(*four.borrow(), 1);
}

#[test]
fn marks_change_what_counts_as_seen() {
    let (tx, mut rx) = watch::channel(0);
    rx.mark_changed();
    assert!(rx.has_changed().unwrap());
    now(rx.changed()).unwrap();
    tx.send(1).unwrap();
    rx.mark_unchanged();
    assert!(!rx.has_changed().unwrap());
    waiting(rx.changed());
    tx.send(2).unwrap();
    rx.mark_changed();
    now(rx.changed()).unwrap();
    waiting(rx.changed());
}

#[test]
fn receivers_get_an_error_when_the_last_sender_is_gone() {
    let (tx, mut rx) = watch::channel(0);
    let other = tx.clone();
    let mut changed = waiting(rx.changed());
    drop(tx);
    changed.still_waits();
    drop(other);
    let error: RecvError = changed.woken_and_ready().unwrap_err();
    assert_eq!(error.to_string(), "channel closed");
    drop(changed);
    assert!(rx.has_changed().is_err());
    assert_eq!(*rx.borrow(), 0, "the value outlives its senders");
}

#[test]
fn the_last_value_is_seen_before_the_end() {
    let (tx, mut rx) = watch::channel(0);
    tx.send(1).unwrap();
    drop(tx);
    now(rx.changed()).unwrap();
    assert_eq!(*rx.borrow(), 1);
    now(rx.changed()).unwrap_err();
}

#[test]
fn without_receivers_send_refuses_and_changes_nothing() {
    let (tx, rx) = watch::channel(0);
    drop(rx);
    assert!(tx.is_closed());
    let error = tx.send(1).unwrap_err();
    assert_eq!((error.0, error.to_string().as_str()), (1, "channel closed"));
    assert_eq!(*tx.borrow(), 0);
    // The other methods do not require receivers.
    assert_eq!(tx.send_replace(2), 0);
    tx.send_modify(|value| *value += 1);
    let rx = tx.subscribe();
    assert_eq!((*rx.borrow(), tx.is_closed()), (3, false));
    assert_eq!(SendError(1), SendError(1));
}

#[test]
fn closed_waits_until_the_last_receiver_is_gone() {
    let (tx, one) = watch::channel(0);
    let two = one.clone();
    let mut closed = waiting(tx.closed());
    let mut also = waiting(tx.closed());
    drop(one);
    closed.pending();
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
fn a_receiver_that_comes_back_in_time_keeps_closed_waiting() {
    let (tx, rx) = watch::channel(0);
    let mut closed = waiting(tx.closed());
    drop(rx);
    let rx = tx.subscribe();
    closed.pending();
    drop(rx);
    closed.woken_and_ready();
}

#[test]
fn send_replace_gives_the_old_value() {
    let (tx, mut rx) = watch::channel(1);
    assert_eq!(tx.send_replace(2), 1);
    now(rx.changed()).unwrap();
    assert_eq!(*rx.borrow(), 2);
}

#[test]
fn send_if_modified_notifies_receivers_only_if_it_returns_true() {
    let (tx, mut rx) = watch::channel(1);
    let mut changed = waiting(rx.changed());
    assert!(!tx.send_if_modified(|value| {
        *value = 2;
        false
    }));
    changed.still_waits();
    assert!(tx.send_if_modified(|value| {
        *value += 1;
        true
    }));
    changed.woken_and_ready().unwrap();
    drop(changed);
    assert_eq!(*rx.borrow(), 3);
}

#[test]
fn a_closure_that_panics_notifies_no_receiver_and_poisons_nothing() {
    let (tx, mut rx) = watch::channel(1);
    let mut changed = waiting(rx.changed());
    panic_of(|| {
        tx.send_modify(|value| {
            *value = 2;
            panic!("half-way");
        });
    })
    .says(&["half-way"]);
    panic_of(|| tx.send_if_modified(|_| panic!("half-way")));
    changed.still_waits();
    drop(changed);
    assert_eq!((*rx.borrow(), *tx.borrow()), (2, 2), "the value is as it was left");
    tx.send(3).unwrap();
    now(rx.changed()).unwrap();
}

#[test]
fn wait_for_gives_the_first_value_that_fits() {
    let (tx, mut rx) = watch::channel(1);
    assert_eq!(*now(rx.wait_for(|value| *value == 1)).unwrap(), 1, "the current one counts");
    let mut fits = waiting(rx.wait_for(|value| *value > 5));
    tx.send(3).unwrap();
    assert!(fits.woken());
    fits.pending();
    tx.send(7).unwrap();
    let value = fits.woken_and_ready().unwrap();
    assert_eq!(*value, 7);
    drop(value);
    drop(fits);
    assert!(!rx.has_changed().unwrap(), "what it gave is seen");
}

#[test]
fn wait_for_checks_the_last_value_before_it_ends() {
    let (tx, mut rx) = watch::channel(1);
    let mut fits = waiting(rx.wait_for(|value| *value == 2));
    tx.send(2).unwrap();
    drop(tx);
    assert_eq!(*fits.woken_and_ready().unwrap(), 2);
    drop(fits);
    assert_eq!(*now(rx.wait_for(|value| *value == 2)).unwrap(), 2, "even a closed one");
    assert!(now(rx.wait_for(|value| *value == 3)).is_err());
}

#[test]
fn a_question_that_panics_poisons_nothing() {
    let (tx, mut rx) = watch::channel(1);
    panic_of(|| drop(now(rx.wait_for(|_| panic!("on purpose"))))).says(&["on purpose"]);
    tx.send(2).unwrap();
    assert_eq!(*rx.borrow_and_update(), 2);
    drop(waiting(rx.changed()));
}

#[test]
fn a_change_that_is_waited_for_and_dropped_is_still_unseen() {
    let (tx, mut rx) = watch::channel(1);
    let changed = waiting(rx.changed());
    tx.send(2).unwrap();
    drop(changed);
    drop(by_hand(rx.changed()));
    assert!(rx.has_changed().unwrap());
    now(rx.changed()).unwrap();
}

#[test]
fn handles_are_counted_and_know_each_other() {
    let (tx, rx) = watch::channel(0);
    let (other, more) = (tx.clone(), rx.clone());
    assert_eq!((tx.sender_count(), tx.receiver_count()), (2, 2));
    let alone = watch::Sender::new(1);
    assert_eq!((alone.sender_count(), alone.receiver_count()), (1, 0));
    assert!(tx.same_channel(&other) && !tx.same_channel(&alone));
    assert!(rx.same_channel(&more) && !rx.same_channel(&alone.subscribe()));
    drop((other, more));
    assert_eq!((tx.sender_count(), tx.receiver_count()), (1, 1));
    assert_eq!(*watch::Sender::<u8>::default().borrow(), 0);
    assert!(!tx.borrow().has_changed());
}

#[test]
fn a_receiver_is_closed_once_its_senders_are_gone() {
    let (tx, rx) = watch::channel(0);
    let other = tx.clone();
    drop(tx);
    assert!(rx.has_changed().is_ok());
    drop(other);
    assert!(rx.has_changed().is_err());
}

#[test]
fn every_value_is_dropped_once() {
    let tally = Tally::new();
    let (tx, rx) = watch::channel(tally.token());
    assert!(tx.send(tally.token()).is_ok());
    assert_eq!(tally.dropped(), 1, "the old one");
    let old = tx.send_replace(tally.token());
    assert_eq!(tally.dropped(), 1);
    drop(old);
    drop(rx);
    drop(tx.send(tally.token()));
    assert_eq!(tally.dropped(), 3, "the refused one");
    drop(tx);
    tally.assert_all_dropped(4);
}
