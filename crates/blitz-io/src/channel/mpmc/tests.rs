//! Tests against a simple model, under load, and of internals.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use proptest::prelude::*;

use super::{
    Receiver, Sender, WeakReceiver, WeakSender,
    chan::Chan,
    channel,
    error::{SendError, TryRecvError, TrySendError},
};
use crate::engine::{
    wait::test_waker::CountingWaker,
    work::task::budget::{self, Budget},
};

type Boxed<'a, R> = Pin<Box<dyn Future<Output = R> + 'a>>;

fn poll<R>(future: &mut Boxed<'_, R>, waker: &Waker) -> Poll<R> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

#[test]
fn handles_are_send_and_sync_as_their_value_is_send() {
    fn is<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    // A `Cell` is `Send` and not `Sync`.
    type Value = std::cell::Cell<u32>;
    is::<(Sender<Value>, Receiver<Value>)>();
    is::<(WeakSender<Value>, WeakReceiver<Value>)>();
    is::<(SendError<u32>, TrySendError<u32>, TryRecvError)>();
    fn is_send(_: &impl Send) {}
    let (tx, rx) = channel(1);
    is_send(&tx.send(Value::new(1)));
    is_send(&rx.recv());
    is_send(&tx.closed());
    is_send(&rx.recv_many(&mut Vec::new(), 1));
}

#[test]
#[should_panic(expected = "requires capacity > 0")]
fn no_capacity_panics() {
    let _ = channel::<u32>(0);
}

#[test]
#[should_panic(expected = "capacity overflow")]
fn too_much_capacity_panics() {
    let _ = channel::<u64>(usize::MAX / 8);
}

#[test]
fn the_capacity_is_exact_for_every_size() {
    for capacity in 1..70 {
        let (tx, rx) = channel(capacity);
        // More than two laps, from every index.
        for start in 0..3 * capacity {
            for n in 0..capacity {
                assert_eq!((tx.len(), tx.capacity()), (n, capacity - n));
                tx.try_send(start + n).unwrap();
            }
            assert_eq!(tx.try_send(0), Err(TrySendError::Full(0)));
            assert!(tx.is_full() && rx.is_full());
            for n in 0..capacity {
                assert_eq!(rx.try_recv(), Ok(start + n));
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            // Moves on by one position, so that the next round begins at another index.
            tx.try_send(0).unwrap();
            assert_eq!(rx.try_recv(), Ok(0));
        }
    }
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn small_channels_are_small_and_large_ones_are_spread() {
    assert!(Chan::<u64>::bytes(1).is_some_and(|bytes| bytes <= 256));
    let slot = 2 * size_of::<u64>();
    let (large, larger) = (Chan::<u64>::bytes(64).unwrap(), Chan::<u64>::bytes(1064).unwrap());
    assert_eq!(larger - large, 1000 * slot, "the capacity is not rounded up");
    assert!(large - 64 * slot >= 2 * 128, "the ends have lines of their own");
}

#[test]
fn operations_take_budget_when_they_complete() {
    let (tx, rx) = channel(1);
    budget::with_budget(Budget::Remaining(3), || {
        let (mut waits, counter): (Boxed<'_, _>, _) = (Box::pin(rx.recv()), CountingWaker::new());
        assert!(poll(&mut waits, &counter.waker()).is_pending(), "waiting takes none");
        let mut sends: Boxed<'_, _> = Box::pin(tx.send(1));
        assert_eq!(poll(&mut sends, Waker::noop()), Poll::Ready(Ok(())));
        assert_eq!(poll(&mut waits, Waker::noop()), Poll::Ready(Some(1)));
        tx.close();
        assert!(poll::<()>(&mut (Box::pin(tx.closed()) as _), Waker::noop()).is_ready());
        let mut refused: Boxed<'_, _> = Box::pin(rx.recv());
        assert!(poll(&mut refused, &counter.waker()).is_pending(), "nothing is left");
        assert_eq!(counter.wake_count(), 2, "it is woken at once");
    });
}

/// No other receiver is woken for the event that this one was dismissed for, and a future that
/// is polled beside it may use up the budget of every poll.
#[test]
fn a_waiter_that_was_woken_needs_no_budget() {
    let (tx, rx) = channel(1);
    let none = Budget::Remaining(0);
    let counters = [CountingWaker::new(), CountingWaker::new()];
    let mut receives = counters.each_ref().map(|_| Box::pin(rx.recv()) as Boxed<'_, _>);
    for (receive, counter) in receives.iter_mut().zip(&counters) {
        assert!(poll(receive, &counter.waker()).is_pending());
    }
    tx.try_send(1).unwrap();
    assert_eq!((counters[0].wake_count(), counters[1].wake_count()), (1, 0));
    let first = budget::with_budget(none, || poll(&mut receives[0], &counters[0].waker()));
    assert_eq!(first, Poll::Ready(Some(1)));
    let second = budget::with_budget(none, || poll(&mut receives[1], &counters[1].waker()));
    assert_eq!((second, counters[1].wake_count()), (Poll::Pending, 0), "it stays queued");

    tx.try_send(2).unwrap();
    drop(receives);
    let mut sends: Boxed<'_, _> = Box::pin(tx.send(3));
    assert!(poll(&mut sends, Waker::noop()).is_pending());
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(budget::with_budget(none, || poll(&mut sends, Waker::noop())), Poll::Ready(Ok(())));
    let mut closed: Boxed<'_, _> = Box::pin(tx.closed());
    assert!(poll(&mut closed, Waker::noop()).is_pending());
    rx.close();
    assert_eq!(budget::with_budget(none, || poll(&mut closed, Waker::noop())), Poll::Ready(()));
}

#[cfg(feature = "rt-multi-thread")]
#[test]
fn blocking_inside_async_code_panics_and_loses_nothing() {
    let value = Arc::new(());
    let (tx, rx) = channel(1);
    let other = tx.clone();
    let (kept, sent) = (rx.clone(), value.clone());
    let panics = crate::run(async move {
        let sends = crate::spawn(async move { other.blocking_send(sent) });
        let receives = crate::spawn(async move { kept.blocking_recv() });
        [sends.await.is_err(), receives.await.is_err()]
    });
    assert_eq!(panics, [true, true]);
    assert_eq!((Arc::strong_count(&value), rx.len()), (1, 0));
    assert_eq!((tx.strong_count(), rx.strong_count()), (1, 1));
}

#[test]
fn a_send_that_is_polled_after_completion_panics_and_blocks_no_other() {
    let (tx, rx) = channel(2);
    let mut sends: Boxed<'_, _> = Box::pin(tx.send(1));
    assert_eq!(poll(&mut sends, Waker::noop()), Poll::Ready(Ok(())));
    let again = catch_unwind(AssertUnwindSafe(|| poll(&mut sends, Waker::noop())));
    assert!(again.is_err());
    assert_eq!(tx.try_send(2), Ok(()));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    assert!(rx.is_empty());
}

#[test]
fn a_drain_that_is_dropped_drops_the_rest_of_one_that_panics() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = channel(4);
    (0..4).for_each(|_| assert!(tx.try_send(Fragile(drops.clone())).is_ok()));
    let drain = rx.drain();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(drain))).is_err());
    assert_eq!((drops.load(Relaxed), rx.len()), (4, 0));
}

#[test]
fn values_without_a_size_are_counted() {
    let (tx, rx) = channel(3);
    (0..3).for_each(|_| tx.try_send(()).unwrap());
    assert_eq!(tx.try_send(()), Err(TrySendError::Full(())));
    assert_eq!(rx.drain().count(), 3);
}

#[test]
fn queued_messages_are_dropped_by_the_last_receiver() {
    let value = Arc::new(());
    let (tx, rx) = channel(4);
    let other = rx.clone();
    (0..3).for_each(|_| tx.try_send(value.clone()).unwrap());
    drop(rx);
    assert_eq!(Arc::strong_count(&value), 4, "there is still a receiver");
    drop(other);
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(matches!(tx.try_send(value.clone()), Err(TrySendError::Closed(_))));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn queued_messages_outlive_the_senders() {
    let (tx, rx) = channel(4);
    (0..3).for_each(|n| tx.try_send(n).unwrap());
    drop(tx);
    assert!(rx.is_closed() && !rx.is_empty());
    assert_eq!(rx.drain().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

/// A value that counts its drops, and panics in the second one.
struct Fragile(Arc<AtomicUsize>);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_add(1, Relaxed), 1, "this value panics on purpose");
    }
}

#[test]
fn a_value_that_panics_when_dropped_does_not_keep_the_others() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = channel(4);
    (0..4).for_each(|_| assert!(tx.try_send(Fragile(drops.clone())).is_ok()));
    drop(rx);
    assert_eq!(drops.load(Relaxed), 4);
}

#[test]
fn a_send_that_is_dropped_did_not_send() {
    let value = Arc::new(());
    let (tx, rx) = channel(1);
    tx.try_send(value.clone()).unwrap();
    let mut sending: Boxed<'_, _> = Box::pin(tx.send(value.clone()));
    assert!(poll(&mut sending, Waker::noop()).is_pending());
    assert_eq!(Arc::strong_count(&value), 3);
    drop(sending);
    assert_eq!((Arc::strong_count(&value), rx.len()), (2, 1));
}

#[test]
fn waiters_are_woken_in_the_order_they_came() {
    let (tx, rx) = channel(1);
    let counters = [CountingWaker::new(), CountingWaker::new(), CountingWaker::new()];
    let mut waiting: Vec<Boxed<'_, _>> = Vec::new();
    for counter in &counters {
        waiting.push(Box::pin(rx.recv()));
        assert!(poll(waiting.last_mut().unwrap(), &counter.waker()).is_pending());
    }
    for (at, future) in waiting.iter_mut().enumerate() {
        tx.try_send(at).unwrap();
        let wake_count = counters.each_ref().map(|counter| counter.wake_count());
        assert_eq!(wake_count, [1, usize::from(at > 0), usize::from(at > 1)]);
        assert_eq!(poll(future, Waker::noop()), Poll::Ready(Some(at)));
    }
}

#[test]
fn a_waiter_that_was_woken_too_late_waits_again() {
    let (tx, rx) = channel(1);
    let counter = CountingWaker::new();
    let mut receiving: Boxed<'_, _> = Box::pin(rx.recv());
    assert!(poll(&mut receiving, &counter.waker()).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!(rx.try_recv(), Ok(1), "another receiver was quicker");
    assert!(poll(&mut receiving, &counter.waker()).is_pending());
    tx.try_send(2).unwrap();
    assert_eq!(counter.wake_count(), 2);
    assert_eq!(poll(&mut receiving, Waker::noop()), Poll::Ready(Some(2)));
}

#[test]
fn close_wakes_all_waiters() {
    // More waiters than a wake list holds, on each side.
    let (tx, rx) = channel(1);
    tx.try_send(0).unwrap();
    let counter = CountingWaker::new();
    let mut sending: Vec<Boxed<'_, _>> = Vec::new();
    for n in 0..70 {
        sending.push(Box::pin(tx.send(n)));
        assert!(poll(sending.last_mut().unwrap(), &counter.waker()).is_pending());
    }
    let mut closed: Boxed<'_, _> = Box::pin(tx.closed());
    assert!(poll(&mut closed, &counter.waker()).is_pending());
    rx.close();
    assert_eq!(counter.wake_count(), 71);
    assert!(poll(&mut closed, Waker::noop()).is_ready());
    for (n, mut future) in sending.into_iter().enumerate() {
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(SendError(n))));
    }
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Err(TryRecvError::Disconnected)));
}

#[test]
fn handles_are_counted() {
    let (tx, rx) = channel::<u32>(1);
    let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
    let more = (tx.clone(), rx.clone(), rx.clone(), weak_rx.clone());
    assert_eq!((tx.strong_count(), tx.weak_count(), tx.receiver_count()), (2, 1, 3));
    assert_eq!((rx.strong_count(), rx.weak_count(), rx.sender_count()), (3, 2, 2));
    drop(more);
    assert_eq!((weak_tx.strong_count(), weak_rx.weak_count()), (1, 1));
    drop((tx, rx));
    assert!(weak_tx.upgrade().is_none() && weak_rx.upgrade().is_none());
    assert_eq!((weak_tx.strong_count(), weak_rx.strong_count()), (0, 0));
}

#[test]
fn recv_many_takes_what_is_there_up_to_its_limit() {
    let (tx, rx) = channel(4);
    let mut buffer = Vec::new();
    {
        let mut many: Boxed<'_, _> = Box::pin(rx.recv_many(&mut buffer, 0));
        assert_eq!(poll(&mut many, Waker::noop()), Poll::Ready(0));
    }
    let counter = CountingWaker::new();
    {
        let mut many: Boxed<'_, _> = Box::pin(rx.recv_many(&mut buffer, 2));
        assert!(poll(&mut many, &counter.waker()).is_pending());
        (0..3).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!(counter.wake_count(), 1);
        assert_eq!(poll(&mut many, Waker::noop()), Poll::Ready(2));
    }
    drop(tx);
    for left in [1, 0] {
        let mut many: Boxed<'_, _> = Box::pin(rx.recv_many(&mut buffer, 9));
        assert_eq!(poll(&mut many, Waker::noop()), Poll::Ready(left));
    }
    assert_eq!(buffer, [0, 1, 2]);
}

const LOAD: usize = if cfg!(miri) { 50 } else { 10_000 };

/// Asserts that each of `LOAD` values of each sender arrives once, and in order for each sender.
fn assert_each_once(senders: usize, received: Vec<Vec<(usize, usize)>>) {
    for values in &received {
        for sender in 0..senders {
            let of_one = values.iter().filter(|value| value.0 == sender);
            assert!(of_one.is_sorted(), "the values of one sender came in another order");
        }
    }
    let mut all = received.concat();
    all.sort_unstable();
    let expected = (0..senders).flat_map(|sender| (0..LOAD).map(move |n| (sender, n)));
    assert!(all.into_iter().eq(expected), "lost or doubled");
}

#[test]
fn every_value_arrives_once() {
    for capacity in [1, 2, 5, 128] {
        let (tx, rx) = channel(capacity);
        let receivers = [(); 4].map(|()| {
            let rx = rx.clone();
            std::thread::spawn(move || std::iter::from_fn(|| rx.blocking_recv()).collect())
        });
        drop(rx);
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let tx = tx.clone();
                std::thread::spawn(move || {
                    (0..LOAD).for_each(|n| tx.blocking_send((sender, n)).unwrap());
                })
            })
            .collect();
        drop(tx);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let received = receivers.map(|receiver| receiver.join().unwrap());
        assert_each_once(4, received.to_vec());
    }
}

#[cfg(feature = "rt-multi-thread")]
#[test]
fn every_value_arrives_once_between_tasks() {
    for capacity in [1, 3, 64] {
        let received = crate::run(async {
            let (tx, rx) = channel(capacity);
            let receivers = [(); 4].map(|()| {
                let rx = rx.clone();
                crate::spawn(async move {
                    let mut got = Vec::new();
                    while let Some(value) = rx.recv().await {
                        got.push(value);
                    }
                    got
                })
            });
            for sender in 0..4 {
                let tx = tx.clone();
                crate::spawn(async move {
                    for n in 0..LOAD {
                        tx.send((sender, n)).await.unwrap();
                    }
                });
            }
            drop((tx, rx));
            let mut received = Vec::new();
            for receiver in receivers {
                received.push(receiver.await.unwrap());
            }
            received
        });
        assert_each_once(4, received);
    }
}

/// Receivers come and go while others send, and each sent value is received or dropped.
#[test]
fn every_value_is_dropped_once_when_the_receivers_go() {
    let value = Arc::new(());
    for round in 0..if cfg!(miri) { 5 } else { 500 } {
        let (tx, rx) = channel(1 + round % 3);
        let senders = [(); 2].map(|()| {
            let (tx, value) = (tx.clone(), value.clone());
            std::thread::spawn(move || while tx.blocking_send(value.clone()).is_ok() {})
        });
        (0..round % 7).for_each(|_| assert!(rx.blocking_recv().is_some()));
        drop(rx);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    TrySend,
    TryRecv,
    Send,
    Recv,
    GiveUpSend(usize),
    GiveUpRecv(usize),
    Drain(usize),
    Close,
    CloneTx,
    DropTx,
    CloneRx,
    DropRx,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => Just(Op::TrySend),
        6 => Just(Op::TryRecv),
        6 => Just(Op::Send),
        6 => Just(Op::Recv),
        2 => (0usize..9).prop_map(Op::GiveUpSend),
        2 => (0usize..9).prop_map(Op::GiveUpRecv),
        1 => (0usize..4).prop_map(Op::Drain),
        1 => Just(Op::Close),
        1 => Just(Op::CloneTx),
        1 => Just(Op::DropTx),
        1 => Just(Op::CloneRx),
        1 => Just(Op::DropRx),
    ]
}

/// A value with its number; its drops are counted by the `Arc`.
type Token = (usize, Arc<()>);

/// The result of a send.
type Sent = Result<(), SendError<Token>>;

/// A waiting future, which is polled when it was woken.
struct Waits<R> {
    future: Boxed<'static, R>,
    counter: Arc<CountingWaker>,
    heard: Option<usize>,
}

impl<R> Waits<R> {
    fn new(future: impl Future<Output = R> + 'static) -> Self {
        Self { future: Box::pin(future), counter: CountingWaker::new(), heard: None }
    }

    /// Polls the future if it was woken, or never polled.
    fn go_on(&mut self) -> Option<Poll<R>> {
        let wake_count = self.counter.wake_count();
        (self.heard != Some(wake_count)).then(|| {
            self.heard = Some(wake_count);
            poll(&mut self.future, &self.counter.waker())
        })
    }
}

/// A channel and a simple model of it.
struct Pair {
    senders: Vec<Sender<Token>>,
    receivers: Vec<Receiver<Token>>,
    /// The messages that should be queued.
    queued: VecDeque<usize>,
    capacity: usize,
    closed: bool,
    /// The sends that wait, with their messages.
    sending: Vec<(usize, Waits<Sent>)>,
    receiving: Vec<Waits<Option<Token>>>,
    next: usize,
    life: Arc<()>,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let (tx, rx) = channel(capacity);
        Self {
            senders: vec![tx],
            receivers: vec![rx],
            queued: VecDeque::new(),
            capacity,
            closed: false,
            sending: Vec::new(),
            receiving: Vec::new(),
            next: 0,
            life: Arc::new(()),
        }
    }

    fn token(&mut self) -> Token {
        self.next += 1;
        (self.next, self.life.clone())
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::TrySend if !self.senders.is_empty() => self.try_send(),
            Op::TryRecv if !self.receivers.is_empty() => self.try_recv(),
            Op::Send if !self.senders.is_empty() => {
                let (tx, token) = (self.senders[0].clone(), self.token());
                let number = token.0;
                self.sending.push((number, Waits::new(async move { tx.send(token).await })));
            }
            Op::Recv if !self.receivers.is_empty() => {
                let rx = self.receivers[0].clone();
                self.receiving.push(Waits::new(async move { rx.recv().await }));
            }
            Op::GiveUpSend(at) if at < self.sending.len() => drop(self.sending.remove(at)),
            Op::GiveUpRecv(at) if at < self.receiving.len() => drop(self.receiving.remove(at)),
            Op::Drain(take) if !self.receivers.is_empty() => self.drain(take),
            Op::Close if !self.senders.is_empty() => {
                self.senders[0].close();
                self.closed = true;
            }
            Op::CloneTx if !self.senders.is_empty() => self.senders.push(self.senders[0].clone()),
            Op::DropTx => drop(self.senders.pop()),
            Op::CloneRx if !self.receivers.is_empty() => {
                self.receivers.push(self.receivers[0].clone());
            }
            Op::DropRx => drop(self.receivers.pop()),
            _ => {}
        }
        self.settle();
    }

    fn try_send(&mut self) {
        let token = self.token();
        let number = token.0;
        let outcome = self.senders[0].try_send(token).map_err(|error| match error {
            TrySendError::Full(token) => (false, token.0),
            TrySendError::Closed(token) => (true, token.0),
        });
        let expected = if self.closed {
            Err((true, number))
        } else if self.queued.len() == self.capacity {
            Err((false, number))
        } else {
            self.queued.push_back(number);
            Ok(())
        };
        assert_eq!(outcome, expected);
    }

    fn try_recv(&mut self) {
        let expected = self.queued.pop_front().ok_or(if self.closed {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        });
        assert_eq!(self.receivers[0].try_recv().map(|token| token.0), expected);
    }

    /// Takes `take` messages from a drain, and drops the rest with it.
    fn drain(&mut self, take: usize) {
        let mut drain = self.receivers[0].drain();
        for _ in 0..take {
            assert_eq!(drain.next().map(|token| token.0), self.queued.pop_front());
        }
        drop(drain);
        self.queued.clear();
    }

    /// Polls woken futures until none is left, then asserts that none waits without a reason.
    fn settle(&mut self) {
        loop {
            self.note_ends();
            if !self.poll_senders() && !self.poll_receivers() {
                break;
            }
        }
        let open = !self.closed;
        if !self.sending.is_empty() {
            assert!(open && self.queued.len() == self.capacity, "a sender sleeps beside room");
        }
        if !self.receiving.is_empty() {
            assert!(open && self.queued.is_empty(), "a receiver sleeps beside a message");
        }
        for tx in &self.senders {
            assert_eq!((tx.len(), tx.is_closed()), (self.queued.len(), self.closed));
        }
        for rx in &self.receivers {
            assert_eq!(rx.capacity(), self.capacity - self.queued.len());
        }
        let kept = self.queued.len() + self.sending.len();
        assert_eq!(Arc::strong_count(&self.life), 1 + kept, "a value too many, or too few");
    }

    fn note_ends(&mut self) {
        // The futures keep handles of their own.
        let no_senders = self.senders.is_empty() && self.sending.is_empty();
        let no_receivers = self.receivers.is_empty() && self.receiving.is_empty();
        self.closed |= no_senders || no_receivers;
        if no_receivers {
            self.queued.clear();
        }
    }

    fn poll_senders(&mut self) -> bool {
        for at in 0..self.sending.len() {
            let Some(polled) = self.sending[at].1.go_on() else { continue };
            if let Poll::Ready(outcome) = polled {
                let (number, _) = self.sending.remove(at);
                match outcome {
                    Ok(()) => {
                        assert!(!self.closed && self.queued.len() < self.capacity);
                        self.queued.push_back(number);
                    }
                    Err(SendError(token)) => assert!(self.closed && token.0 == number),
                }
            }
            return true;
        }
        false
    }

    fn poll_receivers(&mut self) -> bool {
        for at in 0..self.receiving.len() {
            let Some(polled) = self.receiving[at].go_on() else { continue };
            if let Poll::Ready(outcome) = polled {
                drop(self.receiving.remove(at));
                let expected = self.queued.pop_front();
                assert_eq!(outcome.map(|token| token.0), expected);
                assert!(expected.is_some() || self.closed);
            }
            return true;
        }
        false
    }
}

proptest! {
    #[test]
    fn a_channel_behaves_as_a_simple_model(
        capacity in 1usize..5,
        ops in prop::collection::vec(op(), 0..150),
    ) {
        let mut pair = Pair::new(capacity);
        for op in ops {
            pair.step(op);
        }
        let life = pair.life.clone();
        drop(pair);
        prop_assert_eq!(Arc::strong_count(&life), 1, "every value is dropped once");
    }
}
