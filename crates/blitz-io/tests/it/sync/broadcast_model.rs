//! Compares random operations on a broadcast channel with a model.
//!
//! The model keeps every message ever sent; a receiver is a position in that list. A receiver can
//! still see as many messages as the capacity, which is a power of two.

use std::task::Poll;

use blitz_io::sync::broadcast::{
    self, Receiver, Sender,
    error::{RecvError, TryRecvError},
};
use proptest::prelude::*;

use crate::support::manual_poll::once;

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    TryRecv(usize),
    /// Polls a receive once, and drops it if it is pending.
    Recv(usize),
    Subscribe,
    Resubscribe(usize),
    DropReceiver(usize),
    CloneSender,
    DropSender,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => Just(Op::Send),
        8 => any::<usize>().prop_map(Op::TryRecv),
        8 => any::<usize>().prop_map(Op::Recv),
        2 => Just(Op::Subscribe),
        1 => any::<usize>().prop_map(Op::Resubscribe),
        2 => any::<usize>().prop_map(Op::DropReceiver),
        1 => Just(Op::CloneSender),
        1 => Just(Op::DropSender),
    ]
}

/// The expected result of a receive.
#[derive(Debug, PartialEq)]
enum Received {
    Message(u64),
    Missed(u64),
    Nothing,
    End,
}

struct Run {
    room: u64,
    /// The number of messages that were sent; each message is its number in that order.
    sent: u64,
    senders: Vec<Sender<u64>>,
    receivers: Vec<(Receiver<u64>, u64)>,
}

impl Run {
    /// Returns the expected result of the receiver at this index, and its position after that.
    fn expected(&self, at: usize) -> (Received, u64) {
        let next = self.receivers[at].1;
        let oldest = self.sent.saturating_sub(self.room);
        if next < oldest {
            (Received::Missed(oldest - next), oldest)
        } else if next < self.sent {
            (Received::Message(next), next + 1)
        } else if self.senders.is_empty() {
            (Received::End, next)
        } else {
            (Received::Nothing, next)
        }
    }

    fn check(&mut self, at: usize, received: Received) {
        let (expected, next) = self.expected(at);
        assert_eq!(received, expected);
        self.receivers[at].1 = next;
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send => {
                let Some(tx) = self.senders.last() else { return };
                match tx.send(self.sent) {
                    Ok(count) => {
                        assert_eq!(count, self.receivers.len());
                        self.sent += 1;
                    }
                    Err(error) => {
                        assert_eq!((error.0, self.receivers.len()), (self.sent, 0));
                    }
                }
            }
            Op::TryRecv(at) if !self.receivers.is_empty() => {
                let at = at % self.receivers.len();
                let received = match self.receivers[at].0.try_recv() {
                    Ok(message) => Received::Message(message),
                    Err(TryRecvError::Lagged(count)) => Received::Missed(count),
                    Err(TryRecvError::Empty) => Received::Nothing,
                    Err(TryRecvError::Closed) => Received::End,
                };
                self.check(at, received);
            }
            Op::Recv(at) if !self.receivers.is_empty() => {
                let at = at % self.receivers.len();
                let received = match once(self.receivers[at].0.recv()) {
                    Poll::Ready(Ok(message)) => Received::Message(message),
                    Poll::Ready(Err(RecvError::Lagged(count))) => Received::Missed(count),
                    Poll::Ready(Err(RecvError::Closed)) => Received::End,
                    Poll::Pending => Received::Nothing,
                };
                self.check(at, received);
            }
            Op::Subscribe => {
                if let Some(tx) = self.senders.last() {
                    self.receivers.push((tx.subscribe(), self.sent));
                }
            }
            Op::Resubscribe(at) if !self.receivers.is_empty() => {
                let at = at % self.receivers.len();
                let new = self.receivers[at].0.resubscribe();
                self.receivers.push((new, self.sent));
            }
            Op::DropReceiver(at) if !self.receivers.is_empty() => {
                drop(self.receivers.swap_remove(at % self.receivers.len()));
            }
            Op::CloneSender => self.senders.extend(self.senders.last().cloned()),
            Op::DropSender => drop(self.senders.pop()),
            Op::TryRecv(_) | Op::Recv(_) | Op::Resubscribe(_) | Op::DropReceiver(_) => {}
        }
        self.compare(op);
    }

    fn compare(&self, op: Op) {
        for (rx, next) in &self.receivers {
            assert_eq!(rx.len() as u64, self.sent - next, "after {op:?}");
            assert_eq!(rx.is_empty(), self.sent == *next, "after {op:?}");
            assert_eq!(rx.is_closed(), self.senders.is_empty(), "after {op:?}");
        }
        if let Some(tx) = self.senders.last() {
            // The oldest message that a receiver has still to see, if it is still kept.
            let oldest = self.receivers.iter().map(|(_, next)| *next).min().unwrap_or(self.sent);
            let kept = (self.sent - oldest).min(self.room);
            assert_eq!(tx.len() as u64, kept, "after {op:?}");
            assert_eq!(tx.is_empty(), kept == 0, "after {op:?}");
            assert_eq!(tx.receiver_count(), self.receivers.len(), "after {op:?}");
            assert_eq!(tx.strong_count(), self.senders.len(), "after {op:?}");
        }
    }
}

proptest! {
    #[test]
    fn a_broadcast_does_what_its_model_does(
        capacity in 1..6usize,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let (tx, rx) = broadcast::channel(capacity);
        let room = capacity.next_power_of_two() as u64;
        let mut run = Run { room, sent: 0, senders: vec![tx], receivers: vec![(rx, 0)] };
        ops.into_iter().for_each(|op| run.apply(op));
    }
}
