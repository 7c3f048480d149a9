//! Models of mpsc channels under every interleaving, with one or two messages and few threads.
//!
//! Each model ends by counting: every message was received, refused or dropped, once, and every
//! permit is back. A lost wake-up is a deadlock, which the checker finds.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize as PlainUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
};

use super::{
    Receiver, Sender, UnboundedReceiver,
    blocks::BLOCK,
    channel,
    error::{SendError, TryRecvError},
    unbounded::unbounded_from,
    unbounded_channel,
};
use crate::engine::{
    prim::{model, model_deeper, thread},
    wait::test_waker::{CountingWaker, block_on},
    work::task::budget::{self, Budget},
};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A message that counts its drops, in a plain atomic that the model does not explore.
struct Counted(std::sync::Arc<PlainUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn drops() -> std::sync::Arc<PlainUsize> {
    std::sync::Arc::new(PlainUsize::new(0))
}

/// Receives all messages until the end of the channel.
fn drain<T>(receiver: &mut Receiver<T>) -> Vec<T> {
    std::iter::from_fn(|| block_on(receiver.recv())).collect()
}

fn drain_unbounded<T>(receiver: &mut UnboundedReceiver<T>) -> Vec<T> {
    std::iter::from_fn(|| block_on(receiver.recv())).collect()
}

/// Creates a send that waits for capacity in the wait queue.
fn queued(sender: Sender<usize>, message: usize) -> Pin<Box<dyn Future<Output = bool> + Send>> {
    let mut waiting: Pin<Box<dyn Future<Output = bool> + Send>> =
        Box::pin(async move { sender.send(message).await.is_ok() });
    assert!(poll(waiting.as_mut()).is_pending(), "there was room");
    waiting
}

#[test]
fn a_message_against_a_receiver_that_goes_to_sleep_is_seen() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let other = thread::spawn({
            let sender = sender.clone();
            move || sender.try_send(Box::new(7)).unwrap()
        });
        assert_eq!(block_on(receiver.recv()), Some(Box::new(7)));
        other.join().unwrap();
        assert_eq!(sender.capacity(), 1);
    });
}

#[test]
fn an_unbounded_message_against_a_receiver_that_goes_to_sleep_is_seen() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let other = thread::spawn({
            let sender = sender.clone();
            move || sender.send(Box::new(7)).unwrap()
        });
        assert_eq!(block_on(receiver.recv()), Some(Box::new(7)));
        other.join().unwrap();
        drop(sender);
    });
}

/// Polls twice with two wakers: the second must be woken, whichever one the sender saw.
#[test]
fn a_new_waker_against_a_send_is_woken() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        assert!(receiver.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
        let other = thread::spawn({
            let sender = sender.clone();
            move || sender.try_send(7).unwrap()
        });
        let counter = CountingWaker::new();
        let waker = counter.waker();
        let mut cx = Context::from_waker(&waker);
        while receiver.poll_recv(&mut cx).is_pending() {
            counter.wait();
            // The sender that holds the old waker must be able to make progress.
            thread::yield_now();
        }
        other.join().unwrap();
        drop(sender);
    });
}

/// Replaces a waker that the drop of the last sender, not a message, may have taken.
#[test]
fn a_new_waker_against_the_drop_of_the_last_sender_is_woken() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>(1);
        assert!(receiver.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
        let other = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.recv()), None);
        other.join().unwrap();
    });
}

/// The sender that must wake may be slow to take the waker: the receiver is two messages further
/// by then, and hands it over again.
#[test]
fn a_waker_that_is_still_out_is_waited_for() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        assert!(receiver.poll_recv(&mut Context::from_waker(Waker::noop())).is_pending());
        let others = [1, 2].map(|n| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(n).unwrap())
        });
        drop(sender);
        let mut got = drain_unbounded(&mut receiver);
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// Uses an array of one slot, which is reused immediately.
#[test]
fn a_channel_for_one_delivers_in_order() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let other = thread::spawn(move || {
            for n in 0..3 {
                block_on(sender.send(Box::new(n))).unwrap();
            }
        });
        let got = drain(&mut receiver);
        assert_eq!(got, [Box::new(0), Box::new(1), Box::new(2)]);
        other.join().unwrap();
        assert_eq!(receiver.capacity(), 1);
    });
}

#[test]
fn two_senders_and_room_for_one_hand_over() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let others = [1, 2].map(|n| {
            let sender = sender.clone();
            thread::spawn(move || block_on(sender.send(n)).unwrap())
        });
        drop(sender);
        let mut got = drain(&mut receiver);
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(receiver.capacity(), 1);
    });
}

#[test]
fn a_waiting_sender_dropped_against_a_recv() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let (first, second) = (queued(sender.clone(), 2), queued(sender.clone(), 3));
        let dropper = thread::spawn(move || drop(first));
        assert_eq!(block_on(receiver.recv()), Some(1));
        assert!(block_on(second), "the permit was not passed on");
        dropper.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!(sender.capacity(), 1, "a permit was lost, or made");
    });
}

/// A permit that is handed over in the wait queue does not pass through the word. Here the other
/// permit claims the slot that was emptied for it.
#[test]
fn a_slot_emptied_for_a_waiter_is_seen_by_the_sender_that_claims_it() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        let permit = sender.clone().try_reserve_owned().unwrap();
        sender.try_send(1).unwrap();
        let (mut first, second) = (queued(sender.clone(), 2), queued(sender.clone(), 3));
        let others = [
            thread::spawn(move || _ = poll(first.as_mut())),
            thread::spawn(move || drop(permit.send(4))),
        ];
        assert_eq!(receiver.try_recv(), Ok(1));
        others.into_iter().for_each(|other| other.join().unwrap());
        drop(second);
        let got: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
        assert!([&[4][..], &[2, 4], &[4, 2]].contains(&&got[..]), "{got:?}");
        assert_eq!(sender.capacity(), 2, "a permit was lost, or made");
    });
}

fn poll_without_budget<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    budget::with_budget(Budget::Remaining(0), || poll(future))
}

#[test]
fn a_sender_without_budget_joins_the_wait_queue() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let mut first = Box::pin(sender.send(2));
        assert!(poll_without_budget(first.as_mut()).is_pending());
        let mut second = queued(sender.clone(), 3);
        let other = thread::spawn(move || {
            assert_eq!(receiver.try_recv(), Ok(1));
            receiver
        });
        assert!(poll(second.as_mut()).is_pending(), "the second was served first");
        let mut receiver = other.join().unwrap();
        assert!(poll_without_budget(first.as_mut()).is_pending(), "it may not complete");
        assert_eq!(poll(first.as_mut()), Poll::Ready(Ok(())));
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(poll(second.as_mut()), Poll::Ready(true));
    });
}

#[test]
fn a_sender_without_budget_against_a_recv_is_served() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(receiver.try_recv(), Ok(1));
            receiver
        });
        let (mut sending, mut left) = (pin!(sender.send(2)), Budget::Remaining(0));
        let sent = block_on(poll_fn(|cx| {
            let budget = std::mem::replace(&mut left, Budget::unlimited());
            budget::with_budget(budget, || sending.as_mut().poll(cx))
        }));
        assert_eq!(sent, Ok(()));
        let mut receiver = other.join().unwrap();
        assert_eq!((receiver.try_recv(), sender.capacity()), (Ok(2), 1));
    });
}

/// A sender that waits for many permits holds a part of them when it is dropped.
#[test]
fn a_part_of_many_is_passed_on() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        sender.try_send(1).unwrap();
        let dropper = thread::spawn({
            let sender = sender.clone();
            move || {
                let mut many = pin!(sender.reserve_many(2));
                drop(poll(many.as_mut()));
            }
        });
        assert_eq!(block_on(receiver.recv()), Some(1));
        block_on(sender.reserve()).unwrap().send(2);
        dropper.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(sender.capacity(), 2, "a permit was lost, or made");
    });
}

#[test]
fn a_permit_dropped_after_close_ends_the_receiver() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>(1);
        let permit = sender.clone().try_reserve_owned().unwrap();
        receiver.close();
        let other = thread::spawn(move || drop(permit.release()));
        assert_eq!(block_on(receiver.recv()), None);
        other.join().unwrap();
        assert_eq!(sender.capacity(), 1);
    });
}

#[test]
fn a_permit_used_after_close_is_received() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let permit = sender.clone().try_reserve_owned().unwrap();
        receiver.close();
        let other = thread::spawn(move || drop(permit.send(7)));
        assert_eq!(drain(&mut receiver), [7]);
        other.join().unwrap();
        assert_eq!(sender.capacity(), 1);
    });
}

/// A permit was granted to a waiting sender that was never polled again.
#[test]
fn a_grant_dropped_after_close_ends_the_receiver() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let waiting = queued(sender.clone(), 2);
        assert_eq!(receiver.try_recv(), Ok(1));
        receiver.close();
        let dropper = thread::spawn(move || drop(waiting));
        assert_eq!(block_on(receiver.recv()), None);
        dropper.join().unwrap();
        assert_eq!(sender.capacity(), 1);
    });
}

#[test]
fn close_against_a_waiting_sender() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let other = thread::spawn({
            let sender = sender.clone();
            move || block_on(sender.send(2))
        });
        receiver.close();
        assert_eq!(drain(&mut receiver), [1]);
        assert_eq!(other.join().unwrap(), Err(SendError(2)));
        assert_eq!(sender.capacity(), 1);
    });
}

/// More senders wait than a wake list has space for: the closing thread releases the lock in the
/// middle, and a permit comes back then. It goes to a sender that is still in the wait queue, or to
/// none.
#[test]
fn close_of_a_long_wait_queue_against_a_permit_that_comes_back() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let permit = sender.clone().try_reserve_owned().unwrap();
        let waiting = [1, 2, 3].map(|n| queued(sender.clone(), n));
        let other = thread::spawn(move || drop(permit.release()));
        receiver.close();
        let sent = waiting.map(|waiting| usize::from(block_on(waiting)));
        assert!(sent.iter().sum::<usize>() <= 1, "{sent:?}");
        assert_eq!(drain(&mut receiver).len(), sent.iter().sum::<usize>());
        other.join().unwrap();
        assert_eq!(sender.capacity(), 1, "a permit was lost, or made");
    });
}

#[test]
fn a_part_of_many_against_close_ends_the_receiver() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        sender.try_send(1).unwrap();
        let other = thread::spawn({
            let sender = sender.clone();
            move || block_on(sender.reserve_many(2)).is_ok()
        });
        receiver.close();
        assert_eq!(drain(&mut receiver), [1]);
        assert!(!other.join().unwrap());
        assert_eq!(sender.capacity(), 2, "a permit was lost, or made");
    });
}

#[test]
fn close_against_send_against_recv() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        let others = [1, 2].map(|n| {
            let sender = sender.clone();
            thread::spawn(move || usize::from(sender.try_send(n).is_ok()))
        });
        receiver.close();
        let got = drain(&mut receiver).len();
        let sent: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(got, sent, "what was sent is received, and what was refused is not");
        assert_eq!(sender.capacity(), 2);
    });
}

#[test]
fn seal_against_two_sends_loses_nothing() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        let others = [1, 2].map(|n| {
            let sender = sender.clone();
            thread::spawn(move || usize::from(sender.send(n).is_ok()))
        });
        receiver.close();
        let got = drain_unbounded(&mut receiver).len();
        let sent: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(got, sent, "what was sent is received, and what was refused is not");
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn the_last_sender_dropped_against_a_recv_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>(1);
        let other = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.recv()), None);
        other.join().unwrap();
    });
}

#[test]
fn the_last_sender_dropped_after_a_message_loses_none() {
    model_deeper(|| {
        let (sender, mut receiver) = unbounded_channel();
        let other = thread::spawn(move || {
            sender.send(Box::new(7)).unwrap();
        });
        assert_eq!(drain_unbounded(&mut receiver), [Box::new(7)]);
        other.join().unwrap();
    });
}

/// With no sender left, `try_recv` must still return the last message before `Disconnected`.
#[test]
fn disconnected_is_not_returned_before_the_last_message() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let other = thread::spawn(move || {
            sender.try_send(7).unwrap();
        });
        let mut got = Vec::new();
        loop {
            match receiver.try_recv() {
                Ok(message) => got.push(message),
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Disconnected) => break,
            }
        }
        assert_eq!(got, [7]);
        other.join().unwrap();
    });
}

#[test]
fn the_receiver_dropped_against_a_send_drops_the_value_once() {
    model(|| {
        let (drops, (sender, receiver)) = (drops(), channel(2));
        let other = thread::spawn({
            let (sender, drops) = (sender.clone(), drops.clone());
            move || drop(sender.try_send(Counted(drops)))
        });
        drop(receiver);
        other.join().unwrap();
        // The sender still exists, and no value stays in the channel until it is dropped.
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(sender.capacity(), 2);
    });
}

#[test]
fn the_receiver_dropped_against_an_unbounded_send_drops_the_value_once() {
    model(|| {
        let (drops, (sender, receiver)) = (drops(), unbounded_channel());
        let other = thread::spawn({
            let (sender, drops) = (sender.clone(), drops.clone());
            move || drop(sender.send(Counted(drops)))
        });
        drop(receiver);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        drop(sender);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn a_permit_sent_against_the_drop_of_the_receiver_is_dropped_once() {
    model(|| {
        let (drops, (sender, receiver)) = (drops(), channel(1));
        let permit = sender.clone().try_reserve_owned().unwrap();
        let other = thread::spawn({
            let drops = drops.clone();
            move || drop(permit.send(Counted(drops)))
        });
        drop(receiver);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(sender.capacity(), 1);
    });
}

/// Uses a bounded channel with blocks: its capacity is three, and a model uses arrays only up to
/// two.
#[test]
fn a_long_channel_against_the_drop_of_its_receiver() {
    model(|| {
        let (drops, (sender, receiver)) = (drops(), channel(3));
        let permit = sender.clone().try_reserve_owned().unwrap();
        let other = thread::spawn({
            let drops = drops.clone();
            move || drop(permit.send(Counted(drops)))
        });
        drop(receiver);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(sender.capacity(), 3);
    });
}

/// Uses a bounded channel with blocks, in which the receiver waits for the first slot of a
/// block.
#[test]
fn the_last_permit_of_a_long_channel_against_a_recv_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(BLOCK + 1);
        let permit = sender.clone().try_reserve_owned().unwrap();
        (0..BLOCK).for_each(|n| sender.try_send(n).unwrap());
        receiver.close();
        let other = thread::spawn(move || drop(permit.release()));
        assert_eq!(drain(&mut receiver).len(), BLOCK);
        other.join().unwrap();
        assert_eq!(sender.capacity(), BLOCK + 1);
    });
}

#[test]
fn the_last_sender_of_a_long_channel_against_a_recv_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(BLOCK + 1);
        let other = thread::spawn(move || {
            (0..BLOCK).for_each(|n| sender.try_send(Box::new(n)).unwrap());
        });
        assert_eq!(drain(&mut receiver).len(), BLOCK);
        other.join().unwrap();
        assert_eq!(receiver.capacity(), BLOCK + 1);
    });
}

#[test]
fn two_senders_at_the_end_of_a_block_lose_nothing() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        // One slot is left in the block.
        for _ in 0..BLOCK - 1 {
            sender.send(Box::new(0)).unwrap();
        }
        let other = thread::spawn({
            let sender = sender.clone();
            move || sender.send(Box::new(1)).unwrap()
        });
        sender.send(Box::new(2)).unwrap();
        drop(sender);
        let mut got = drain_unbounded(&mut receiver);
        got.sort_unstable();
        let mut expected = vec![Box::new(0); BLOCK - 1];
        expected.extend([Box::new(1), Box::new(2)]);
        assert_eq!(got, expected);
        other.join().unwrap();
    });
}

/// The receiver empties a block and keeps it; the sender uses it again.
#[test]
fn a_spare_block_is_used_again_empty() {
    model(|| {
        let (sender, mut receiver) = unbounded_channel();
        for n in 0..BLOCK {
            sender.send(Box::new(n)).unwrap();
        }
        let other = thread::spawn(move || {
            for n in BLOCK..2 * BLOCK + 1 {
                sender.send(Box::new(n)).unwrap();
            }
        });
        for n in 0..2 * BLOCK + 1 {
            assert_eq!(block_on(receiver.recv()), Some(Box::new(n)));
        }
        other.join().unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn two_senders_where_positions_wrap_round_lose_nothing() {
    model(|| {
        let (sender, mut receiver) = unbounded_from((1 << 62) - 1);
        let other = thread::spawn({
            let sender = sender.clone();
            move || sender.send(1).unwrap()
        });
        sender.send(2).unwrap();
        drop(sender);
        let mut got = drain_unbounded(&mut receiver);
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        other.join().unwrap();
    });
}

#[test]
fn upgrade_against_the_drop_of_the_last_sender() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        let weak = sender.downgrade();
        let other = thread::spawn(move || drop(sender));
        let sent = match weak.upgrade() {
            Some(sender) => {
                sender.try_send(7).unwrap();
                1
            }
            None => 0,
        };
        assert_eq!(drain(&mut receiver).len(), sent);
        assert_eq!((weak.strong_count(), weak.weak_count()), (0, 1));
        assert!(weak.upgrade().is_none());
        other.join().unwrap();
    });
}

#[test]
fn closed_against_close_is_never_left_waiting() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>(1);
        let other = thread::spawn({
            let sender = sender.clone();
            move || block_on(sender.closed())
        });
        receiver.close();
        other.join().unwrap();
        block_on(sender.closed());
    });
}

#[test]
fn closed_dropped_against_the_drop_of_the_receiver() {
    model(|| {
        let (sender, receiver) = unbounded_channel::<u8>();
        let other = thread::spawn({
            let sender = sender.clone();
            move || {
                let mut waiting = pin!(sender.closed());
                poll(waiting.as_mut()).is_ready()
            }
        });
        drop(receiver);
        other.join().unwrap();
        assert!(sender.is_closed());
    });
}

#[test]
fn the_receiver_dropped_against_a_wake_drops_its_waker_once() {
    model(|| {
        let (counter, (sender, mut receiver)) = (CountingWaker::new(), channel(1));
        assert!(receiver.poll_recv(&mut Context::from_waker(&counter.waker())).is_pending());
        let other = thread::spawn(move || sender.try_send(7).is_ok());
        drop(receiver);
        other.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&counter), 1);
    });
}

/// Uses a full array, in which the slot at the tail is that of the oldest message.
#[test]
fn the_last_sender_of_a_full_channel_dropped_against_a_recv_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(7).unwrap();
        let other = thread::spawn(move || drop(sender));
        assert_eq!(drain(&mut receiver), [7]);
        other.join().unwrap();
    });
}

/// Forgotten futures stay in the wait queue, but their sender may be dropped nevertheless.
/// Capacity that is given to them does not pass through the word.
#[test]
fn the_last_sender_against_a_recv_that_serves_the_forgotten_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(1);
        sender.try_send(7).unwrap();
        for n in 0..2 {
            let mut forgotten = Box::pin(sender.send(n));
            assert!(poll(forgotten.as_mut()).is_pending());
            std::mem::forget(forgotten);
        }
        let other = thread::spawn(move || drop(sender));
        assert_eq!(drain(&mut receiver), [7]);
        other.join().unwrap();
    });
}

#[test]
fn handles_dropped_at_once_free_the_channel_once() {
    model(|| {
        let (drops, (sender, receiver)) = (drops(), channel(1));
        let weak = sender.downgrade();
        assert!(sender.try_send(Counted(drops.clone())).is_ok());
        let others = [thread::spawn(move || drop(sender)), thread::spawn(move || drop(weak))];
        drop(receiver);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// With a capacity of two the receiver counts what it takes, and a sender that finds it full
/// collects.
#[test]
fn a_sender_that_waits_against_a_late_give_back_is_served() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        sender.try_send(0).unwrap();
        sender.try_send(1).unwrap();
        let other = thread::spawn({
            let sender = sender.clone();
            move || block_on(sender.send(2)).unwrap()
        });
        assert_eq!(receiver.try_recv(), Ok(0));
        // Nothing more is taken until the sender has been served.
        other.join().unwrap();
        assert_eq!(sender.capacity(), 0);
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(1), Ok(2)));
        assert_eq!(sender.capacity(), 2, "a permit was lost, or made");
    });
}

/// A full array of two is emptied and waited at while the last sender is dropped: the slot at the
/// tail is one that the receiver has just emptied.
#[test]
fn the_last_sender_dropped_against_a_late_give_back_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(2);
        sender.try_send(0).unwrap();
        sender.try_send(1).unwrap();
        let other = thread::spawn(move || drop(sender));
        assert_eq!(drain(&mut receiver), [0, 1]);
        other.join().unwrap();
    });
}
