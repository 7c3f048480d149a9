//! Models of the broadcast channel.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};

use super::{Receiver, Sender, channel, error::TryRecvError};
use crate::engine::{
    prim::{UnsafeCell, model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

type Waiting = Pin<Box<dyn Future<Output = Result<u32, super::error::RecvError>> + Send>>;

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

/// Creates a receive that waits in the wait queue.
#[track_caller]
fn queued(mut receiver: Receiver<u32>, waker: &Waker) -> Waiting {
    let mut waiting: Waiting = Box::pin(async move { receiver.recv().await });
    assert!(poll(&mut waiting, waker).is_pending(), "there was something");
    waiting
}

/// The values that a receiver found, in order, and the number it lost.
#[derive(Default, Debug, PartialEq, Eq)]
struct Found {
    values: Vec<u32>,
    /// The number of values that were reported as lagged.
    lost: u64,
}

impl Found {
    /// Receives once; returns `false` if there was nothing.
    fn receive(&mut self, receiver: &mut Receiver<u32>) -> bool {
        match receiver.try_recv() {
            Ok(value) => {
                // Values are their own positions, counted from 1.
                assert_eq!(u64::from(value), self.values.len() as u64 + self.lost + 1);
                self.values.push(value);
            }
            Err(TryRecvError::Lagged(count)) => self.lost += count,
            Err(_) => return false,
        }
        true
    }
}

/// Sends 1, 2 and so on, from another thread.
fn send(sender: Sender<u32>, count: u32) -> thread::JoinHandle<Sender<u32>> {
    thread::spawn(move || {
        for value in 1..=count {
            sender.send(value).unwrap();
        }
        sender
    })
}

#[test]
fn overwrite_against_read_is_seen_whole_or_missed() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.send(1).unwrap();
        let other = thread::spawn(move || {
            sender.send(2).unwrap();
            sender
        });
        let mut found = Found::default();
        found.receive(&mut receiver);
        drop(other.join().unwrap());
        while found.receive(&mut receiver) {}
        assert_eq!(found.values.len() as u64 + found.lost, 2);
        assert_eq!(found.values.last(), Some(&2));
    });
}

#[test]
fn a_first_value_is_seen_whole() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        let other = send(sender, 1);
        let mut found = Found::default();
        found.receive(&mut receiver);
        drop(other.join().unwrap());
        while found.receive(&mut receiver) {}
        assert_eq!(found.values, [1]);
    });
}

/// A value that is `Send` and not `Sync`, because a clone writes into the original.
struct Touchy(UnsafeCell<u32>);

// SAFETY: the channel clones a value on one thread at a time, so the cell moves between threads
// but is never shared; the model checks that.
unsafe impl Send for Touchy {}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        // SAFETY: the channel clones a value on one thread at a time, which the model checks.
        let count = self.0.with_mut(|count| unsafe {
            *count += 1;
            *count
        });
        Self(UnsafeCell::new(count))
    }
}

#[test]
fn two_receivers_never_clone_at_once() {
    model(|| {
        let (sender, mut one) = channel(1);
        // The third receiver keeps the value in its slot.
        let (mut two, _three) = (sender.subscribe(), sender.subscribe());
        assert!(sender.send(Touchy(UnsafeCell::new(0))).is_ok());
        let other = thread::spawn(move || one.try_recv().is_ok());
        assert!(two.try_recv().is_ok());
        assert!(other.join().unwrap());
    });
}

#[test]
fn a_value_seen_by_all_leaves_its_slot_to_the_sender() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.send(1).unwrap();
        let other = thread::spawn(move || {
            let mut found = Found::default();
            found.receive(&mut receiver);
            (found, receiver)
        });
        sender.send(2).unwrap();
        let (mut found, mut receiver) = other.join().unwrap();
        while found.receive(&mut receiver) {}
        assert_eq!(found.values.len() as u64 + found.lost, 2);
        assert!(sender.is_empty());
    });
}

/// A value that counts its drops, in a std atomic that the model does not explore.
#[derive(Clone)]
struct Counted(std::sync::Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_receiver_dropped_against_an_overwrite_drops_each_value_once() {
    model(|| {
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(1);
        let mut other = sender.subscribe();
        assert!(sender.send(Counted(drops.clone())).is_ok());
        let dropper = thread::spawn(move || drop(receiver));
        let sent = sender.send(Counted(drops.clone())).is_ok();
        assert!(sent, "there is another receiver");
        dropper.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1, "the first was overwritten");
        assert!(matches!(other.try_recv(), Err(TryRecvError::Lagged(1))));
        let last = other.try_recv();
        assert!(last.is_ok() && sender.is_empty());
        assert_eq!(drops.load(Relaxed), 2, "the last one to see it has a clone");
        drop(last);
        assert_eq!(drops.load(Relaxed), 3);
    });
}

/// The receiver's slot is overwritten, seen by all others, and written again without the lock.
#[test]
fn a_receiver_overtaken_while_it_is_dropped_touches_nothing() {
    model(|| {
        let (sender, receiver) = channel(1);
        let mut other = sender.subscribe();
        sender.send(1).unwrap();
        let dropper = thread::spawn(move || drop(receiver));
        let mut found = Found::default();
        for value in 2..=3 {
            sender.send(value).unwrap();
            while found.receive(&mut other) {}
        }
        dropper.join().unwrap();
        assert!(sender.is_empty(), "a receiver that is gone is counted");
        assert_eq!((found.values, found.lost), (vec![2, 3], 1));
    });
}

#[test]
fn a_receiver_dropped_against_another_reader_releases_the_value() {
    model(|| {
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(1);
        let mut other = sender.subscribe();
        assert!(sender.send(Counted(drops.clone())).is_ok());
        let dropper = thread::spawn(move || drop(receiver));
        let value = other.try_recv();
        assert!(value.is_ok());
        dropper.join().unwrap();
        assert!(sender.is_empty());
        drop(value);
        assert_eq!(drops.load(Relaxed), 2, "the value, and the clone of it");
        assert_eq!(std::sync::Arc::strong_count(&drops), 1, "the channel keeps nothing");
    });
}

#[test]
fn send_against_recv_is_never_left_waiting() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        let other = send(sender, 1);
        assert_eq!(block_on(receiver.recv()), Ok(1));
        drop(other.join().unwrap());
    });
}

#[test]
fn two_sends_against_recv_come_in_order() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        let other = send(sender, 2);
        assert_eq!(block_on(receiver.recv()), Ok(1));
        assert_eq!(block_on(receiver.recv()), Ok(2));
        drop(other.join().unwrap());
    });
}

#[test]
fn the_last_sender_against_recv_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel::<u32>(1);
        let other = thread::spawn({
            let sender = sender.clone();
            move || drop(sender)
        });
        drop(sender);
        assert_eq!(block_on(receiver.recv()), Err(super::error::RecvError::Closed));
        other.join().unwrap();
    });
}

#[test]
fn a_recv_dropped_against_a_send_loses_no_value() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let mut waiting = Box::pin(receiver.recv());
        assert!(poll(&mut waiting, Waker::noop()).is_pending());
        let other = send(sender, 1);
        drop(waiting);
        assert_eq!(block_on(receiver.recv()), Ok(1));
        drop(other.join().unwrap());
    });
}

/// Uses more receivers than fit into a model's wake list.
#[test]
fn a_wake_list_of_receivers_against_a_drop_wakes_the_rest() {
    model(|| {
        let (sender, receiver) = channel(1);
        let (counters, counter) =
            ([CountingWaker::new(), CountingWaker::new()], CountingWaker::new());
        let first = queued(receiver, &counters[0].waker());
        let second = queued(sender.subscribe(), &counter.waker());
        let third = queued(sender.subscribe(), &counters[1].waker());
        let dropper = thread::spawn(move || drop(second));
        sender.send(1).unwrap();
        assert!(counters.iter().all(|counter| counter.wake_count() == 1), "one was passed over");
        dropper.join().unwrap();
        drop((first, third));
        assert!(counter.wake_count() <= 1);
    });
}

#[test]
fn a_lagging_receiver_learns_exactly_how_many_it_missed() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let other = send(sender, 3);
        let mut found = Found::default();
        found.receive(&mut receiver);
        found.receive(&mut receiver);
        drop(other.join().unwrap());
        while found.receive(&mut receiver) {}
        assert_eq!(found.values.len() as u64 + found.lost, 3);
        assert_eq!(found.values.last(), Some(&3));
    });
}

#[test]
fn closed_against_the_last_receiver_ends() {
    model(|| {
        let (sender, receiver) = channel::<u32>(1);
        let dropper = thread::spawn(move || drop(receiver));
        block_on(sender.closed());
        assert_eq!(sender.receiver_count(), 0);
        dropper.join().unwrap();
    });
}

#[test]
fn upgrade_against_the_last_sender_is_seen() {
    model(|| {
        let (sender, mut receiver) = channel::<u32>(1);
        let weak = sender.downgrade();
        let dropper = thread::spawn(move || drop(sender));
        let upgraded = weak.upgrade().is_some_and(|strong| strong.send(1).is_ok());
        dropper.join().unwrap();
        let expected = if upgraded { Ok(1) } else { Err(TryRecvError::Closed) };
        assert_eq!(receiver.try_recv(), expected);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        assert!(weak.upgrade().is_none(), "a channel was opened again");
    });
}
