//! Compares random operations on a watch channel with a model.
//!
//! The model numbers the changes; a receiver knows the number of the last it has seen.

use std::task::Poll;

use blitz_io::sync::watch::{self, Receiver, Sender};
use proptest::prelude::*;

use crate::support::manual_poll::{by_hand, once};

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    Replace,
    /// Changes the value, and reports whether it did.
    Modify(bool),
    /// Polls a `changed` once, and drops it if it is pending.
    Changed(usize),
    /// Polls a wait for a value divisible by three once.
    WaitFor(usize),
    Borrow(usize),
    BorrowAndUpdate(usize),
    MarkChanged(usize),
    MarkUnchanged(usize),
    CloneReceiver(usize),
    DropReceiver(usize),
    Subscribe,
    CloneSender,
    DropSender,
}

fn op() -> impl Strategy<Value = Op> {
    let at = any::<usize>;
    prop_oneof![
        6 => Just(Op::Send),
        2 => Just(Op::Replace),
        3 => any::<bool>().prop_map(Op::Modify),
        8 => at().prop_map(Op::Changed),
        5 => at().prop_map(Op::WaitFor),
        2 => at().prop_map(Op::Borrow),
        3 => at().prop_map(Op::BorrowAndUpdate),
        1 => at().prop_map(Op::MarkChanged),
        1 => at().prop_map(Op::MarkUnchanged),
        1 => at().prop_map(Op::CloneReceiver),
        2 => at().prop_map(Op::DropReceiver),
        1 => Just(Op::Subscribe),
        1 => Just(Op::CloneSender),
        1 => Just(Op::DropSender),
    ]
}

struct Run {
    value: u32,
    senders: Vec<Sender<u32>>,
    /// The receivers, each with whether it has seen the current value.
    receivers: Vec<(Receiver<u32>, bool)>,
}

impl Run {
    fn changed(&mut self) {
        self.receivers.iter_mut().for_each(|receiver| receiver.1 = false);
    }

    fn sender(&mut self, op: Op) {
        let Some(tx) = self.senders.last() else { return };
        match op {
            Op::Send => {
                let sent = tx.send(self.value + 1).is_ok();
                assert_eq!(sent, !self.receivers.is_empty());
                if sent {
                    self.value += 1;
                    self.changed();
                }
            }
            Op::Replace => {
                assert_eq!(tx.send_replace(self.value + 1), self.value);
                self.value += 1;
                self.changed();
            }
            Op::Modify(notifies) => {
                let notified = tx.send_if_modified(|value| {
                    *value += 1;
                    notifies
                });
                assert_eq!(notified, notifies);
                self.value += 1;
                if notifies {
                    self.changed();
                }
            }
            Op::Subscribe => self.receivers.push((tx.subscribe(), true)),
            Op::CloneSender => self.senders.push(tx.clone()),
            _ => unreachable!("an operation of receivers"),
        }
    }

    fn receiver(&mut self, op: Op, at: usize) {
        if self.receivers.is_empty() {
            return;
        }
        let (value, closed) = (self.value, self.senders.is_empty());
        let at = at % self.receivers.len();
        let (rx, seen) = &mut self.receivers[at];
        match op {
            Op::Changed(_) => {
                let poll = once(rx.changed());
                match poll {
                    Poll::Ready(Ok(())) => assert!(!*seen),
                    Poll::Ready(Err(_)) => assert!(*seen && closed),
                    Poll::Pending => assert!(*seen && !closed),
                }
                *seen |= poll.is_ready();
            }
            Op::WaitFor(_) => {
                let mut wait = by_hand(rx.wait_for(|value| value % 3 == 0));
                match wait.poll() {
                    Poll::Ready(Ok(found)) => assert_eq!((*found, value % 3), (value, 0)),
                    Poll::Ready(Err(_)) => assert!(closed && value % 3 != 0),
                    Poll::Pending => assert!(!closed && value % 3 != 0),
                }
                // The value that the closure checked counts as seen, accepted or not.
                *seen = true;
            }
            Op::Borrow(_) => {
                let borrowed = rx.borrow();
                assert_eq!((*borrowed, borrowed.has_changed()), (value, !*seen));
            }
            Op::BorrowAndUpdate(_) => {
                let borrowed = rx.borrow_and_update();
                assert_eq!((*borrowed, borrowed.has_changed()), (value, !*seen));
                *seen = true;
            }
            Op::MarkChanged(_) => {
                rx.mark_changed();
                *seen = false;
            }
            Op::MarkUnchanged(_) => {
                rx.mark_unchanged();
                *seen = true;
            }
            Op::CloneReceiver(_) => {
                let copy = (rx.clone(), *seen);
                self.receivers.push(copy);
            }
            Op::DropReceiver(_) => drop(self.receivers.swap_remove(at)),
            _ => unreachable!("an operation of senders"),
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send | Op::Replace | Op::Modify(_) | Op::Subscribe | Op::CloneSender => {
                self.sender(op);
            }
            Op::DropSender => drop(self.senders.pop()),
            Op::Changed(at) | Op::WaitFor(at) | Op::Borrow(at) | Op::BorrowAndUpdate(at) => {
                self.receiver(op, at);
            }
            Op::MarkChanged(at) | Op::MarkUnchanged(at) => self.receiver(op, at),
            Op::CloneReceiver(at) | Op::DropReceiver(at) => self.receiver(op, at),
        }
        for (rx, seen) in &self.receivers {
            match rx.has_changed() {
                Ok(changed) => assert_eq!(changed, !seen, "after {op:?}"),
                Err(_) => assert!(self.senders.is_empty(), "after {op:?}"),
            }
        }
        if let Some(tx) = self.senders.last() {
            assert_eq!(*tx.borrow(), self.value, "after {op:?}");
            let counts = (tx.receiver_count(), tx.sender_count());
            assert_eq!(counts, (self.receivers.len(), self.senders.len()), "after {op:?}");
            let gone = once(tx.closed()).is_ready();
            assert_eq!((tx.is_closed(), gone), (self.receivers.is_empty(), tx.is_closed()));
        }
    }
}

proptest! {
    #[test]
    fn a_watch_does_what_its_model_does(ops in prop::collection::vec(op(), 1..100)) {
        let (tx, rx) = watch::channel(1);
        let mut run = Run { value: 1, senders: vec![tx], receivers: vec![(rx, true)] };
        ops.into_iter().for_each(|op| run.apply(op));
    }
}
