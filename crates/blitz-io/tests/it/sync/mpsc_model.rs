//! Compares random operations on both mpsc channels with a model.
//!
//! The model is a queue, the free capacity, and a wait queue of senders that wait for capacity.

use std::{collections::VecDeque, future::Future, task::Poll};

use blitz_io::sync::mpsc::{
    self, OwnedPermit, Receiver, Sender, UnboundedReceiver, UnboundedSender, WeakSender,
    error::{SendError, TryRecvError, TrySendError},
};
use proptest::prelude::*;

use crate::support::manual_poll::{Polled, by_hand, once};

#[derive(Clone, Copy, Debug)]
enum Op {
    TrySend,
    /// Starts a send, and polls it once.
    Send,
    /// Creates a send and drops it without a poll.
    SendUnpolled,
    /// Polls the pending send at this index (modulo their number).
    PollSend(usize),
    GiveUpSend(usize),
    Reserve,
    UsePermit(usize),
    DropPermit(usize),
    TryRecv,
    /// Polls a receive once, and drops it if it is pending.
    Recv,
    RecvMany(usize),
    CloneSender,
    DropSender,
    Downgrade,
    Upgrade,
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::TrySend),
        8 => Just(Op::Send),
        1 => Just(Op::SendUnpolled),
        5 => any::<usize>().prop_map(Op::PollSend),
        3 => any::<usize>().prop_map(Op::GiveUpSend),
        3 => Just(Op::Reserve),
        3 => any::<usize>().prop_map(Op::UsePermit),
        2 => any::<usize>().prop_map(Op::DropPermit),
        8 => Just(Op::TryRecv),
        6 => Just(Op::Recv),
        2 => (0..4usize).prop_map(Op::RecvMany),
        1 => Just(Op::CloneSender),
        1 => Just(Op::DropSender),
        1 => Just(Op::Downgrade),
        1 => Just(Op::Upgrade),
        1 => Just(Op::Close),
    ]
}

/// Generates the operations that an unbounded channel has; more messages come in than go out, so
/// that it grows beyond any block.
fn unbounded_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => Just(Op::TrySend),
        6 => Just(Op::TryRecv),
        6 => Just(Op::Recv),
        2 => (0..40usize).prop_map(Op::RecvMany),
        1 => Just(Op::CloneSender),
        1 => Just(Op::DropSender),
    ]
}

/// The state of a send that has begun.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stand {
    /// The send is in the wait queue.
    Waits,
    /// The send has been granted capacity; its message is not sent yet.
    Served,
    /// The channel was closed while the send was in the wait queue.
    Refused,
}

struct Model {
    queue: VecDeque<usize>,
    free: usize,
    closed: bool,
    permits: usize,
    /// The name and state of each send, in the order of arrival.
    line: Vec<(usize, Stand)>,
}

impl Model {
    /// Gives capacity that became free to the first sends that wait.
    fn room(&mut self, mut count: usize) {
        for waiter in &mut self.line {
            if count > 0 && waiter.1 == Stand::Waits {
                (waiter.1, count) = (Stand::Served, count - 1);
            }
        }
        self.free += count;
    }

    fn take(&mut self, name: usize) -> Stand {
        let at = self.line.iter().position(|waiter| waiter.0 == name).unwrap();
        self.line.remove(at).1
    }

    fn close(&mut self) {
        self.closed = true;
        for waiter in &mut self.line {
            if waiter.1 == Stand::Waits {
                waiter.1 = Stand::Refused;
            }
        }
    }

    /// Returns true if an empty receiver must report the end, because no message can come any more.
    fn ended(&self, senders: usize) -> bool {
        // A send or permit holds a sender of its own in this test.
        senders == 0 || self.closed && self.permits == 0 && !self.has_served()
    }

    fn has_served(&self) -> bool {
        self.line.iter().any(|waiter| waiter.1 == Stand::Served)
    }
}

type Sending = Polled<std::pin::Pin<Box<dyn Future<Output = Result<(), SendError<usize>>>>>>;

struct Bounded {
    model: Model,
    senders: Vec<Sender<usize>>,
    weak: Vec<WeakSender<usize>>,
    rx: Receiver<usize>,
    waits: Vec<(usize, Sending)>,
    permits: Vec<OwnedPermit<usize>>,
    next: usize,
}

impl Bounded {
    fn new(capacity: usize) -> Self {
        let (tx, rx) = mpsc::channel(capacity);
        let model = Model {
            queue: VecDeque::new(),
            free: capacity,
            closed: false,
            permits: 0,
            line: Vec::new(),
        };
        let (senders, weak, waits) = (vec![tx], Vec::new(), Vec::new());
        Self { model, senders, weak, rx, waits, permits: Vec::new(), next: 0 }
    }

    fn value(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Returns the number of handles that keep the channel open, in futures and permits as well.
    fn open_handles(&self) -> usize {
        self.senders.len() + self.waits.len() + self.permits.len()
    }

    fn received(&mut self, got: Option<usize>) {
        assert_eq!(got, self.model.queue.pop_front());
        self.model.room(1);
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::TrySend => self.try_send(),
            Op::Send => self.send(),
            Op::SendUnpolled => {
                if let Some(tx) = self.senders.last() {
                    drop(by_hand(tx.send(0)));
                }
            }
            Op::PollSend(at) => self.poll_send(at),
            Op::GiveUpSend(at) if !self.waits.is_empty() => {
                let (name, wait) = self.waits.swap_remove(at % self.waits.len());
                drop(wait);
                if self.model.take(name) == Stand::Served {
                    self.model.room(1);
                }
            }
            Op::Reserve => self.reserve(),
            Op::UsePermit(at) if !self.permits.is_empty() => {
                let permit = self.permits.swap_remove(at % self.permits.len());
                let value = self.value();
                drop(permit.send(value));
                self.model.queue.push_back(value);
                self.model.permits -= 1;
            }
            Op::DropPermit(at) if !self.permits.is_empty() => {
                drop(self.permits.swap_remove(at % self.permits.len()));
                self.model.permits -= 1;
                self.model.room(1);
            }
            Op::TryRecv => self.try_recv(),
            Op::Recv => self.recv(),
            Op::RecvMany(limit) => self.recv_many(limit),
            Op::CloneSender => self.senders.extend(self.senders.last().cloned()),
            Op::DropSender => drop(self.senders.pop()),
            Op::Downgrade => self.weak.extend(self.senders.last().map(Sender::downgrade)),
            Op::Upgrade => {
                if let Some(weak) = self.weak.last() {
                    let strong = weak.upgrade();
                    assert_eq!(strong.is_some(), self.open_handles() > 0);
                    self.senders.extend(strong);
                }
            }
            Op::Close => {
                self.rx.close();
                self.model.close();
            }
            Op::GiveUpSend(_) | Op::UsePermit(_) | Op::DropPermit(_) => {}
        }
        self.compare(op);
    }

    fn try_send(&mut self) {
        let value = self.value();
        let Some(tx) = self.senders.last() else { return };
        let expected = match (self.model.closed, self.model.free) {
            (true, _) => Err(TrySendError::Closed(value)),
            (false, 0) => Err(TrySendError::Full(value)),
            (false, _) => Ok(()),
        };
        assert_eq!(tx.try_send(value), expected);
        if expected.is_ok() {
            self.model.free -= 1;
            self.model.queue.push_back(value);
        }
    }

    fn send(&mut self) {
        let value = self.value();
        let Some(tx) = self.senders.last().cloned() else { return };
        let mut wait: Sending = by_hand(Box::pin(async move { tx.send(value).await }));
        match wait.poll() {
            Poll::Ready(Ok(())) => {
                assert!(!self.model.closed && self.model.free > 0);
                self.model.free -= 1;
                self.model.queue.push_back(value);
            }
            Poll::Ready(Err(SendError(back))) => {
                assert!(self.model.closed);
                assert_eq!(back, value);
            }
            Poll::Pending => {
                assert!(!self.model.closed && self.model.free == 0);
                self.model.line.push((value, Stand::Waits));
                self.waits.push((value, wait));
            }
        }
    }

    fn poll_send(&mut self, at: usize) {
        if self.waits.is_empty() {
            return;
        }
        let at = at % self.waits.len();
        let (name, wait) = &mut self.waits[at];
        let name = *name;
        let stand = self.model.line.iter().find(|waiter| waiter.0 == name).unwrap().1;
        match (stand, self.model.closed) {
            (Stand::Waits, _) => return wait.still_waits(),
            (Stand::Served, false) => wait.woken_and_ready().unwrap(),
            (Stand::Refused, _) => assert_eq!(wait.woken_and_ready(), Err(SendError(name))),
            // Granted, then closed: either result is right, but nothing may be lost.
            (Stand::Served, true) => match wait.woken_and_ready() {
                Ok(()) => {}
                Err(SendError(back)) => {
                    assert_eq!(back, name);
                    self.waits.swap_remove(at);
                    self.model.take(name);
                    return self.model.room(1);
                }
            },
        }
        self.waits.swap_remove(at);
        if self.model.take(name) == Stand::Served {
            self.model.queue.push_back(name);
        }
    }

    fn reserve(&mut self) {
        let Some(tx) = self.senders.last().cloned() else { return };
        match tx.try_reserve_owned() {
            Ok(permit) => {
                assert!(!self.model.closed && self.model.free > 0);
                self.model.free -= 1;
                self.model.permits += 1;
                self.permits.push(permit);
            }
            Err(TrySendError::Full(_)) => assert!(!self.model.closed && self.model.free == 0),
            Err(TrySendError::Closed(_)) => assert!(self.model.closed),
        }
    }

    fn try_recv(&mut self) {
        match self.rx.try_recv() {
            Ok(got) => self.received(Some(got)),
            Err(error) => {
                assert!(self.model.queue.is_empty(), "{error}");
                let ended = self.model.ended(self.open_handles());
                assert_eq!(error == TryRecvError::Disconnected, ended);
            }
        }
    }

    fn recv(&mut self) {
        match once(self.rx.recv()) {
            Poll::Ready(Some(got)) => self.received(Some(got)),
            Poll::Ready(None) => {
                assert!(self.model.queue.is_empty() && self.model.ended(self.open_handles()));
            }
            Poll::Pending => {
                assert!(self.model.queue.is_empty() && !self.model.ended(self.open_handles()));
            }
        }
    }

    fn recv_many(&mut self, limit: usize) {
        let mut got = Vec::new();
        let poll = once(self.rx.recv_many(&mut got, limit));
        let expected = limit.min(self.model.queue.len());
        match poll {
            Poll::Ready(count) => assert_eq!(count, expected),
            Poll::Pending => assert!(limit > 0 && expected == 0),
        }
        assert_eq!(got.len(), expected);
        got.into_iter().for_each(|value| self.received(Some(value)));
    }

    fn compare(&self, op: Op) {
        assert_eq!(self.rx.len(), self.model.queue.len(), "after {op:?}");
        assert_eq!(self.rx.is_empty(), self.model.queue.is_empty(), "after {op:?}");
        assert_eq!(self.rx.sender_strong_count(), self.open_handles(), "after {op:?}");
        assert_eq!(self.rx.sender_weak_count(), self.weak.len(), "after {op:?}");
        assert_eq!(self.rx.capacity(), self.model.free, "after {op:?}");
        for (name, wait) in &self.waits {
            let stand = self.model.line.iter().find(|waiter| waiter.0 == *name).unwrap().1;
            assert_eq!(wait.woken(), stand != Stand::Waits, "{stand:?} after {op:?}");
        }
    }
}

struct Unbounded {
    queue: VecDeque<usize>,
    closed: bool,
    senders: Vec<UnboundedSender<usize>>,
    rx: UnboundedReceiver<usize>,
    next: usize,
}

impl Unbounded {
    fn apply(&mut self, op: Op) {
        match op {
            Op::TrySend | Op::Send => {
                self.next += 1;
                let Some(tx) = self.senders.last() else { return };
                assert_eq!(tx.send(self.next).is_ok(), !self.closed);
                if !self.closed {
                    self.queue.push_back(self.next);
                }
            }
            Op::TryRecv => match self.rx.try_recv() {
                Ok(got) => assert_eq!(Some(got), self.queue.pop_front()),
                Err(error) => {
                    assert!(self.queue.is_empty());
                    assert_eq!(error == TryRecvError::Disconnected, self.ended());
                }
            },
            Op::Recv => match once(self.rx.recv()) {
                Poll::Ready(Some(got)) => assert_eq!(Some(got), self.queue.pop_front()),
                Poll::Ready(None) => assert!(self.queue.is_empty() && self.ended()),
                Poll::Pending => assert!(self.queue.is_empty() && !self.ended()),
            },
            Op::RecvMany(limit) => {
                let mut got = Vec::new();
                let _ = once(self.rx.recv_many(&mut got, limit));
                assert_eq!(got.len(), limit.min(self.queue.len()));
                got.iter().for_each(|value| assert_eq!(Some(*value), self.queue.pop_front()));
            }
            Op::CloneSender => self.senders.extend(self.senders.last().cloned()),
            Op::DropSender => drop(self.senders.pop()),
            Op::Close => {
                self.rx.close();
                self.closed = true;
            }
            _ => {}
        }
        assert_eq!((self.rx.len(), self.rx.is_closed()), (self.queue.len(), self.ended()));
    }

    fn ended(&self) -> bool {
        self.closed || self.senders.is_empty()
    }
}

proptest! {
    #[test]
    fn a_bounded_channel_does_what_its_model_does(
        capacity in 1..5usize,
        ops in prop::collection::vec(op(), 1..100),
    ) {
        let mut channel = Bounded::new(capacity);
        ops.into_iter().for_each(|op| channel.apply(op));
    }

    #[test]
    fn an_unbounded_channel_does_what_its_model_does(
        ops in prop::collection::vec(unbounded_op(), 1..150),
        after_the_close in prop::collection::vec(unbounded_op(), 0..20),
    ) {
        let (tx, rx) = mpsc::unbounded_channel();
        let (senders, queue) = (vec![tx], VecDeque::new());
        let mut channel = Unbounded { queue, closed: false, senders, rx, next: 0 };
        let ops = ops.into_iter().chain([Op::Close]).chain(after_the_close);
        ops.for_each(|op| channel.apply(op));
    }
}
