//! Models of the mpmc channel: no message is lost or duplicated, and no task is left asleep.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{channel, error::TrySendError};
use crate::engine::{
    prim::{model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

/// A future that is polled by hand, when it was woken.
struct Waits<'a, R> {
    future: Pin<Box<dyn Future<Output = R> + 'a>>,
    counter: Arc<CountingWaker>,
    /// The number of wake-ups when the future was polled last.
    heard: usize,
    output: Option<R>,
}

impl<'a, R> Waits<'a, R> {
    /// Wraps a future and polls it once.
    fn new(future: impl Future<Output = R> + 'a) -> Self {
        let mut waits = Self {
            future: Box::pin(future),
            counter: CountingWaker::new(),
            heard: 0,
            output: None,
        };
        waits.poll();
        waits
    }

    fn poll(&mut self) {
        self.heard = self.counter.wake_count();
        let waker = self.counter.waker();
        if let Poll::Ready(output) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.output = Some(output);
        }
    }

    /// Polls the future if it was woken, and returns `true` if so.
    fn go_on(&mut self) -> bool {
        let due = self.output.is_none() && self.counter.wake_count() > self.heard;
        if due {
            self.poll();
        }
        due
    }
}

/// Polls every future that was woken, until none is left.
fn settle<R>(all: &mut [Waits<'_, R>]) {
    while all.iter_mut().any(Waits::go_on) {}
}

#[test]
fn two_senders_share_the_only_slot() {
    model(|| {
        let (tx, rx) = channel(1);
        let others = [1, 2].map(|value| {
            let tx = tx.clone();
            thread::spawn(move || block_on(tx.send(value)).is_ok())
        });
        let (first, second) = (block_on(rx.recv()).unwrap(), block_on(rx.recv()).unwrap());
        assert_eq!(first + second, 3);
        others.into_iter().for_each(|other| assert!(other.join().unwrap()));
        assert!(rx.try_recv().is_err());
    });
}

#[test]
fn the_array_wraps_while_it_is_used() {
    model(|| {
        let (tx, rx) = channel(2);
        tx.try_send(0).unwrap();
        let other = thread::spawn(move || {
            for value in 1..4 {
                block_on(tx.send(value)).unwrap();
            }
        });
        for value in 0..4 {
            assert_eq!(block_on(rx.recv()), Some(value));
        }
        other.join().unwrap();
        assert_eq!(block_on(rx.recv()), None);
    });
}

#[test]
fn a_sender_waits_for_room() {
    model(|| {
        let (tx, rx) = channel(1);
        tx.try_send(Arc::new(1)).unwrap();
        let other = thread::spawn(move || block_on(tx.send(Arc::new(2))).is_ok());
        assert_eq!(block_on(rx.recv()).as_deref(), Some(&1));
        assert_eq!(block_on(rx.recv()).as_deref(), Some(&2));
        assert!(other.join().unwrap());
    });
}

#[test]
fn close_against_send_and_recv_agrees() {
    model(|| {
        let (tx, rx) = channel(1);
        let closer = thread::spawn({
            let tx = tx.clone();
            move || tx.close()
        });
        let sender = thread::spawn(move || tx.try_send(1));
        let received = block_on(rx.recv());
        if received.is_some() {
            assert_eq!(block_on(rx.recv()), None);
        }
        let sent = sender.join().unwrap();
        closer.join().unwrap();
        match received {
            Some(_) => assert_eq!(sent, Ok(())),
            None => assert_eq!(sent, Err(TrySendError::Closed(1))),
        }
    });
}

#[test]
fn the_last_sender_goes_while_a_receiver_waits() {
    model(|| {
        let (tx, rx) = channel(1);
        let other = thread::spawn({
            let tx = tx.clone();
            move || {
                tx.try_send(1).unwrap();
                drop(tx);
            }
        });
        drop(tx);
        assert_eq!(block_on(rx.recv()), Some(1));
        assert_eq!(block_on(rx.recv()), None);
        other.join().unwrap();
    });
}

#[test]
fn a_waiter_dropped_against_a_wake_passes_it_on() {
    model(|| {
        let (tx, rx) = channel(2);
        let first = Waits::new(rx.recv());
        let mut second = [Waits::new(rx.recv())];
        let other = thread::spawn({
            let tx = tx.clone();
            move || tx.try_send(1).unwrap()
        });
        drop(first);
        other.join().unwrap();
        settle(&mut second);
        assert_eq!(second[0].output, Some(Some(1)), "asleep beside a message");
        drop((second, tx));
    });
}

#[test]
fn a_sender_dropped_in_the_wait_queue_passes_the_room_on() {
    model(|| {
        let (tx, rx) = channel(1);
        tx.try_send(0).unwrap();
        let first = Waits::new(tx.send(1));
        let mut second = [Waits::new(tx.send(2))];
        let other = thread::spawn(move || {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        });
        drop(first);
        let rx = other.join().unwrap();
        settle(&mut second);
        assert_eq!(second[0].output, Some(Ok(())), "asleep beside room");
        assert_eq!(rx.try_recv(), Ok(2));
    });
}

#[test]
fn the_last_receiver_goes_while_two_send() {
    model(|| {
        let value = Arc::new(());
        let (tx, rx) = channel(2);
        let others = [(); 2].map(|()| {
            let (tx, value) = (tx.clone(), value.clone());
            thread::spawn(move || drop(tx.try_send(value)))
        });
        drop(rx);
        others.into_iter().for_each(|other| other.join().unwrap());
        // The channel still exists, and holds no value.
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(tx.is_closed());
    });
}

/// The thread may be in the middle of its send when the second message is already there: both
/// receivers then wait for the first message, and one wake-up has to serve both.
#[test]
fn two_receivers_wait_for_two_messages() {
    model(|| {
        let (tx, rx) = channel(2);
        let other = thread::spawn({
            let tx = tx.clone();
            move || tx.try_send(1).unwrap()
        });
        tx.try_send(2).unwrap();
        let mut both = [Waits::new(rx.recv()), Waits::new(rx.recv())];
        other.join().unwrap();
        settle(&mut both);
        let sum: i32 = both.iter().map(|one| one.output.flatten().expect("asleep")).sum();
        assert_eq!(sum, 3);
    });
}

#[test]
fn two_senders_wait_for_two_places() {
    model(|| {
        let (tx, rx) = channel(2);
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        let other = thread::spawn({
            let rx = rx.clone();
            move || rx.try_recv().unwrap()
        });
        let taken = rx.try_recv().unwrap();
        let mut both = [Waits::new(tx.send(3)), Waits::new(tx.send(4))];
        assert_eq!(other.join().unwrap() + taken, 3);
        settle(&mut both);
        assert!(both.iter().all(|one| one.output == Some(Ok(()))), "asleep beside room");
        assert_eq!(rx.len(), 2);
    });
}

#[test]
fn two_receivers_learn_of_the_close() {
    model(|| {
        let (tx, rx) = channel(1);
        let other = thread::spawn({
            let tx = tx.clone();
            move || tx.try_send(1).is_ok()
        });
        tx.close();
        let mut both = [Waits::new(rx.recv()), Waits::new(rx.recv())];
        let sent = other.join().unwrap();
        settle(&mut both);
        let outputs = both.map(|one| one.output.expect("asleep beside a closed channel"));
        assert_eq!(outputs.iter().flatten().count(), usize::from(sent));
    });
}

#[test]
fn closed_against_the_last_receiver_ends() {
    model(|| {
        let (tx, rx) = channel::<u32>(1);
        let other = thread::spawn(move || drop(rx));
        block_on(tx.closed());
        assert_eq!(tx.try_send(1), Err(TrySendError::Closed(1)));
        other.join().unwrap();
    });
}

#[test]
fn a_new_waker_of_a_receiver_is_woken() {
    model(|| {
        let (tx, rx) = channel(1);
        let mut waits = Waits::new(rx.recv());
        let old = std::mem::replace(&mut waits.counter, CountingWaker::new());
        let other = thread::spawn(move || {
            tx.try_send(1).unwrap();
            tx
        });
        waits.poll();
        while waits.output.is_none() {
            waits.counter.wait();
            waits.poll();
        }
        assert_eq!(waits.output, Some(Some(1)));
        drop((other.join().unwrap(), old));
    });
}

#[test]
fn a_weak_sender_against_the_last_strong_one() {
    model(|| {
        let (tx, rx) = channel(1);
        let weak = tx.downgrade();
        let other = thread::spawn(move || drop(tx));
        let again = weak.upgrade();
        if let Some(tx) = &again {
            assert_eq!(tx.try_send(1), Ok(()), "a sender has it open");
        }
        other.join().unwrap();
        assert_eq!(rx.is_closed(), again.is_none());
        let sent = again.is_some();
        drop(again);
        assert_eq!(block_on(rx.recv()), sent.then_some(1));
        assert!(rx.is_closed());
    });
}

/// A thread that sees that a message was received must see that it was sent. It reads the length on
/// a thread of its own, joined first, so that the model lets it read last.
#[test]
fn a_length_counts_only_what_was_sent() {
    model(|| {
        let (tx, rx) = channel(2);
        let sender = thread::spawn(move || tx.try_send(1).unwrap());
        let receiver = thread::spawn({
            let rx = rx.clone();
            move || rx.try_recv().is_ok()
        });
        let looks = thread::spawn({
            let rx = rx.clone();
            move || assert!(rx.len() <= 1, "more than was ever sent")
        });
        looks.join().unwrap();
        sender.join().unwrap();
        let received = receiver.join().unwrap();
        assert_eq!(rx.len(), usize::from(!received));
    });
}

#[test]
fn two_receivers_take_each_message_once() {
    model(|| {
        let (tx, rx) = channel(2);
        tx.try_send(1).unwrap();
        let sender = thread::spawn(move || tx.try_send(2).unwrap());
        let other = thread::spawn({
            let rx = rx.clone();
            move || rx.try_recv().ok()
        });
        let mut all = vec![rx.try_recv().ok()];
        all.push(other.join().unwrap());
        sender.join().unwrap();
        all.push(rx.try_recv().ok());
        assert_eq!(all.into_iter().flatten().sum::<i32>(), 3, "lost or doubled");
        assert!(rx.try_recv().is_err());
    });
}
