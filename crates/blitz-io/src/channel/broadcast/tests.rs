//! Tests of the broadcast channel, step by step against a simple reference, then under load.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use proptest::prelude::*;

use super::{
    Receiver, Sender, channel,
    error::{RecvError, TryRecvError},
    slot::Slot,
};
use crate::engine::{
    prim::thread,
    wait::test_waker::{CountingWaker, block_on},
    work::task::budget::{self, Budget},
};

/// Creates a channel with `start` as the position of the first value.
fn starting_at<T>(capacity: usize, start: u64) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::with_receivers(capacity, 1, start);
    let receiver = Receiver::counted(sender.shared().clone(), start);
    (sender, receiver)
}

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// A value that counts its living instances, and panics in a clone or drop on request.
struct Fragile {
    number: u32,
    account: Arc<Account>,
}

#[derive(Default)]
struct Account {
    made: AtomicUsize,
    dropped: AtomicUsize,
    clones_panic: AtomicBool,
    drops_panic: AtomicBool,
}

impl Account {
    fn value(self: &Arc<Self>, number: u32) -> Fragile {
        self.made.fetch_add(1, Relaxed);
        Fragile { number, account: self.clone() }
    }

    fn alive(&self) -> usize {
        self.made.load(Relaxed) - self.dropped.load(Relaxed)
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!self.account.clones_panic.load(Relaxed), "this clone panics on purpose");
        self.account.value(self.number)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.account.dropped.fetch_add(1, Relaxed);
        let panics = self.account.drops_panic.load(Relaxed);
        assert!(!panics || thread::panicking(), "this drop panics on purpose");
    }
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_slot_of_a_word_is_four_words() {
    assert_eq!(size_of::<Slot<u64>>(), 32);
    assert_eq!(size_of::<Receiver<u64>>(), 16);
    assert_eq!(size_of::<Sender<u64>>(), 8);
}

#[test]
fn a_value_is_dropped_when_the_last_one_has_a_clone() {
    let account = Arc::new(Account::default());
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    assert_eq!(sender.send(account.value(7)).ok(), Some(2));
    let clone = first.try_recv().ok();
    assert_eq!(account.dropped.load(Relaxed), 0);
    let another = second.try_recv().ok();
    assert_eq!((account.made.load(Relaxed), account.dropped.load(Relaxed)), (3, 1));
    assert!(sender.is_empty());
    drop((clone, another));
    assert_eq!(account.alive(), 0);
}

#[test]
fn a_clone_that_panics_for_the_last_one_leaves_nothing_behind() {
    let account = Arc::new(Account::default());
    let (sender, mut receiver) = channel(1);
    account.clones_panic.store(true, Relaxed);
    for number in 0..3 {
        assert!(sender.send(account.value(number)).is_ok());
        assert!(panics(|| drop(receiver.try_recv())));
        assert_eq!((account.alive(), sender.len()), (0, 0));
    }
}

#[test]
fn an_overwritten_value_is_dropped_by_the_send_that_overwrites_it() {
    let account = Arc::new(Account::default());
    let (sender, _receiver) = channel(2);
    for number in 0..10 {
        assert!(sender.send(account.value(number)).is_ok());
        assert_eq!(account.alive(), 2.min(number as usize + 1));
    }
    drop((sender, _receiver));
    assert_eq!(account.alive(), 0);
}

#[test]
fn a_receiver_that_goes_passes_what_it_has_not_seen() {
    let account = Arc::new(Account::default());
    let (sender, slow) = channel(4);
    let mut fast = sender.subscribe();
    for number in 0..4 {
        assert!(sender.send(account.value(number)).is_ok());
    }
    (0..3).for_each(|_| drop(fast.try_recv()));
    assert_eq!((account.alive(), sender.len()), (4, 4));
    drop(slow);
    assert_eq!((account.alive(), sender.len()), (1, 1), "a message without a receiver stays");
    drop(fast);
    assert_eq!((account.alive(), sender.len()), (0, 0));
}

#[test]
fn a_receiver_that_lags_far_behind_goes_as_quickly_as_any() {
    let (sender, receiver) = channel(2);
    let mut other = sender.subscribe();
    for number in 0..1_000 {
        sender.send(number).unwrap();
    }
    assert_eq!(receiver.len(), 1_000);
    drop(receiver);
    assert_eq!(other.try_recv(), Err(TryRecvError::Lagged(998)));
    assert_eq!((other.try_recv(), other.try_recv()), (Ok(998), Ok(999)));
    assert!(sender.is_empty());
}

#[test]
fn a_clone_that_panics_counts_as_seen() {
    let account = Arc::new(Account::default());
    let (sender, mut first) = channel(2);
    let mut second = sender.subscribe();
    assert!(sender.send(account.value(1)).is_ok());
    assert!(sender.send(account.value(2)).is_ok());
    account.clones_panic.store(true, Relaxed);
    assert!(panics(|| drop(first.try_recv())));
    account.clones_panic.store(false, Relaxed);
    assert_eq!(first.try_recv().map(|value| value.number), Ok(2), "the slot is locked");
    assert_eq!(second.try_recv().map(|value| value.number), Ok(1), "counted off once");
    assert_eq!(second.try_recv().map(|value| value.number), Ok(2));
    assert_eq!((sender.len(), account.alive()), (0, 0));
    assert!(sender.send(account.value(3)).is_ok());
    assert_eq!(block_on(first.recv()).map(|value| value.number), Ok(3));
}

#[test]
fn a_clone_that_panics_leaves_the_value_to_an_overwrite() {
    let account = Arc::new(Account::default());
    let (sender, mut first) = channel(1);
    let mut second = sender.subscribe();
    assert!(sender.send(account.value(1)).is_ok());
    account.clones_panic.store(true, Relaxed);
    assert!(panics(|| drop(block_on(first.recv()))));
    assert!(sender.send(account.value(2)).is_ok());
    assert_eq!(account.alive(), 1);
    account.clones_panic.store(false, Relaxed);
    assert!(matches!(second.try_recv(), Err(TryRecvError::Lagged(1))));
    assert!(second.try_recv().is_ok() && first.try_recv().is_ok());
    assert_eq!(account.alive(), 0);
}

#[test]
fn a_drop_that_panics_leaves_the_rest_passed_and_the_closers_woken() {
    let account = Arc::new(Account::default());
    let (sender, receiver) = channel(4);
    for number in 0..3 {
        assert!(sender.send(account.value(number)).is_ok());
    }
    let (counter, mut closed) = (CountingWaker::new(), pin!(sender.closed()));
    let waker = counter.waker();
    assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    account.drops_panic.store(true, Relaxed);
    assert!(panics(|| drop(receiver)), "the first panic is passed on");
    account.drops_panic.store(false, Relaxed);
    assert_eq!((account.alive(), sender.len(), counter.wake_count()), (0, 0, 1));
    assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn a_drop_that_panics_in_a_send_leaves_the_new_value_sent() {
    let account = Arc::new(Account::default());
    let (sender, mut receiver) = channel(1);
    assert!(sender.send(account.value(1)).is_ok());
    account.drops_panic.store(true, Relaxed);
    assert!(panics(|| drop(sender.send(account.value(2)))));
    account.drops_panic.store(false, Relaxed);
    assert!(matches!(receiver.try_recv(), Err(TryRecvError::Lagged(1))));
    assert_eq!(receiver.try_recv().map(|value| value.number), Ok(2));
    assert_eq!(account.alive(), 0);
}

/// A value that uses its own channel wherever user code runs.
struct Reentrant {
    sender: Sender<Reentrant>,
    on_clone: bool,
}

impl Reentrant {
    fn use_it(&self) {
        let _ = (self.sender.len(), self.sender.receiver_count());
        drop(self.sender.subscribe());
    }
}

impl Clone for Reentrant {
    fn clone(&self) -> Self {
        self.use_it();
        if self.on_clone {
            let another = Self { sender: self.sender.clone(), on_clone: false };
            assert!(self.sender.send(another).is_ok(), "there are receivers");
        }
        Self { sender: self.sender.clone(), on_clone: false }
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        self.use_it();
    }
}

#[test]
fn a_value_may_use_its_channel_when_it_is_cloned_and_dropped() {
    let (sender, mut first) = channel(2);
    let mut second = sender.subscribe();
    let value = |on_clone| Reentrant { sender: sender.clone(), on_clone };
    assert!(sender.send(value(true)).is_ok());
    drop(first.try_recv());
    assert_eq!((first.len(), second.len()), (1, 2), "the clone has sent");
    // These values are overwritten without being seen.
    for _ in 0..3 {
        assert!(sender.send(value(false)).is_ok());
    }
    assert!(matches!(second.try_recv(), Err(TryRecvError::Lagged(3))));
    drop(second.try_recv());
    drop((first, second));
    assert!(sender.is_empty());
}

#[test]
fn a_recv_takes_a_unit_of_budget_and_the_129th_waits_its_turn() {
    let (sender, mut receiver) = channel(256);
    (0..200).for_each(|number| assert_eq!(sender.send(number).unwrap(), 1));
    budget::with_budget(Budget::per_poll(), || {
        let mut cx = Context::from_waker(Waker::noop());
        let mut done = 0;
        while pin!(receiver.recv()).poll(&mut cx).is_ready() {
            done += 1;
        }
        assert_eq!(done, 128);
        assert_eq!(budget::remaining(), Budget::Refused);
    });
    assert_eq!(receiver.len(), 72, "what was refused took nothing");
}

/// Guards against starvation: a future that is polled beside it may use up the budget of every
/// poll.
#[test]
fn a_closed_without_budget_queues_and_is_deferred_once() {
    let (sender, receiver) = channel::<u32>(1);
    let counter = CountingWaker::new();
    let waker = counter.waker();
    let mut cx = Context::from_waker(&waker);
    budget::with_budget(Budget::Remaining(0), || {
        let mut waits = pin!(sender.closed());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        assert_eq!(counter.wake_count(), 0, "it is queued");
        drop(receiver);
        assert_eq!(counter.wake_count(), 1);
        assert!(waits.as_mut().poll(&mut cx).is_ready());
        let mut late = pin!(sender.closed());
        assert!(late.as_mut().poll(&mut cx).is_pending());
        assert_eq!(counter.wake_count(), 2, "it comes again at once");
        assert!(late.as_mut().poll(&mut cx).is_ready());
    });
    budget::with_budget(Budget::Remaining(2), || {
        assert!(pin!(sender.closed()).poll(&mut cx).is_ready());
        assert_eq!(budget::remaining(), Budget::Remaining(1));
    });
}

#[test]
fn a_recv_that_is_polled_with_another_waker_wakes_that_one() {
    let (sender, mut receiver) = channel(2);
    let (old, new) = (CountingWaker::new(), CountingWaker::new());
    {
        let mut waiting = pin!(receiver.recv());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&old.waker())).is_pending());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&new.waker())).is_pending());
        sender.send(1).unwrap();
        assert_eq!((old.wake_count(), new.wake_count()), (0, 1));
        assert_eq!(
            waiting.as_mut().poll(&mut Context::from_waker(&new.waker())),
            Poll::Ready(Ok(1))
        );
    }
    assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
}

/// Uses more receivers than two wake lists hold.
#[test]
fn a_send_wakes_each_of_a_hundred_receivers_once() {
    let sender = Sender::new(4);
    let counters: Vec<_> = (0..100).map(|_| CountingWaker::new()).collect();
    let mut receivers: Vec<_> = counters.iter().map(|_| sender.subscribe()).collect();
    let mut waiting: Vec<_> =
        receivers.iter_mut().map(|receiver| Box::pin(receiver.recv())).collect();
    for (future, counter) in waiting.iter_mut().zip(&counters) {
        assert!(future.as_mut().poll(&mut Context::from_waker(&counter.waker())).is_pending());
    }
    assert_eq!(sender.send(5).unwrap(), 100);
    assert!(counters.iter().all(|counter| counter.wake_count() == 1));
    for (future, counter) in waiting.iter_mut().zip(&counters) {
        let polled = future.as_mut().poll(&mut Context::from_waker(&counter.waker()));
        assert_eq!(polled, Poll::Ready(Ok(5)));
    }
    drop(waiting);
    assert!(counters.iter().all(|counter| Arc::strong_count(counter) == 1));
}

/// Uses a waker that receives, and waits again, while it is being woken.
#[test]
fn a_waiter_that_waits_again_during_a_long_wake_is_not_woken_again() {
    struct Again {
        counter: Arc<CountingWaker>,
        again: std::sync::Mutex<Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>>,
    }
    impl std::task::Wake for Again {
        fn wake(self: Arc<Self>) {
            self.counter.waker().wake();
            let waker = Waker::from(self.clone());
            let mut again = self.again.lock().unwrap();
            if let Some(future) = &mut *again {
                assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
        }
    }
    let sender = Sender::new(4);
    let wakers: Vec<_> = (0..80)
        .map(|_| {
            let mut receiver = sender.subscribe();
            let again: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> =
                Box::pin(async move { while receiver.recv().await.is_ok() {} });
            Arc::new(Again { counter: CountingWaker::new(), again: Some(again).into() })
        })
        .collect();
    wakers.iter().for_each(|waker| std::task::Wake::wake(waker.clone()));
    sender.send(1).unwrap();
    assert!(wakers.iter().all(|waker| waker.counter.wake_count() == 2), "one was served twice");
    wakers.iter().for_each(|waker| drop(waker.again.lock().unwrap().take()));
}

/// A waker that runs a closure when it is woken for the first time.
struct Act(std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Act {
    fn waker(act: impl FnOnce() + Send + 'static) -> Waker {
        Arc::new(Self(std::sync::Mutex::new(Some(Box::new(act))))).into()
    }
}

impl std::task::Wake for Act {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
    }
}

/// Creates a new receiver that waits in the wait queue.
fn queued(sender: &Sender<u32>, waker: &Waker) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut receiver = sender.subscribe();
    let mut waiting = Box::pin(async move { drop(receiver.recv().await) });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    waiting
}

/// Stops the first send between two wake lists. Meanwhile other receivers join, and a second send
/// stops at the first waker of its own wake list: the second send must wake the rest.
#[test]
fn a_send_wakes_no_receiver_for_values_that_others_send_meanwhile() {
    // The size of a wake list. If that grows, the timeout below ends the test.
    const BATCH: usize = 32;
    let patience = std::time::Duration::from_secs(20);
    let (sender, late) = (Sender::new(4), CountingWaker::new());
    let (stopped, stops) = std::sync::mpsc::channel();
    let (go, goes) = std::sync::mpsc::channel();
    let (came, comes) = std::sync::mpsc::channel();
    let first = Act::waker({
        let (sender, late) = (sender.clone(), late.clone());
        move || {
            let waiting: Vec<_> = (0..2 * BATCH).map(|_| queued(&sender, &late.waker())).collect();
            let second = thread::spawn(move || sender.send(2).unwrap());
            stops.recv_timeout(patience).unwrap();
            came.send((waiting, second)).unwrap();
        }
    });
    let last = Act::waker(move || {
        stopped.send(()).unwrap();
        let _ = goes.recv_timeout(patience);
    });
    let mut waiting = vec![queued(&sender, &first)];
    waiting.extend((1..BATCH).map(|_| queued(&sender, Waker::noop())));
    waiting.push(queued(&sender, &last));
    assert_eq!(sender.send(1).unwrap(), BATCH + 1);
    assert_eq!(late.wake_count(), 0, "the first send has served the second one's");
    go.send(()).unwrap();
    let (_waiting, second) = comes.recv().unwrap();
    assert_eq!(second.join().unwrap(), 3 * BATCH + 1);
    assert_eq!(late.wake_count(), 2 * BATCH);
}

#[test]
fn positions_wrap() {
    for before in 0..6 {
        let (sender, mut receiver) = starting_at(2, 0u64.wrapping_sub(before));
        let mut other = sender.subscribe();
        for number in 0..8 {
            sender.send(number).unwrap();
            assert_eq!(receiver.try_recv(), Ok(number));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
        assert_eq!((other.len(), sender.len()), (8, 2));
        assert_eq!(other.try_recv(), Err(TryRecvError::Lagged(6)));
        assert_eq!((other.try_recv(), other.try_recv()), (Ok(6), Ok(7)));
        assert!(sender.is_empty());
        sender.send(8).unwrap();
        drop(other);
        drop(receiver);
        assert!(sender.is_empty());
    }
}

/// The reference: all values that were sent, and the position of each receiver.
struct Reference {
    sent: Vec<u32>,
    capacity: usize,
    /// The position of each receiver, by its number.
    next: HashMap<usize, usize>,
}

impl Reference {
    fn recv(&mut self, which: usize, closed: bool) -> Result<u32, TryRecvError> {
        let (oldest, next) = (
            self.sent.len().saturating_sub(self.capacity),
            self.next.get_mut(&which).expect("it lives"),
        );
        if *next < oldest {
            let lost = (oldest - *next) as u64;
            *next = oldest;
            return Err(TryRecvError::Lagged(lost));
        }
        let none = if closed { TryRecvError::Closed } else { TryRecvError::Empty };
        let value = *self.sent.get(*next).ok_or(none)?;
        *next += 1;
        Ok(value)
    }

    fn wanted(&self) -> usize {
        let oldest = self.sent.len().saturating_sub(self.capacity);
        let first = self.next.values().map(|next| (*next).max(oldest)).min();
        self.sent.len() - first.unwrap_or(self.sent.len())
    }
}

proptest! {
    /// Each of `steps` says what is done, and by which handle.
    #[test]
    fn a_broadcast_behaves_as_a_simple_model(
        capacity in 1usize..6,
        late in 0u64..4,
        steps in prop::collection::vec((0u8..10, 0usize..8), 0..200),
    ) {
        let account = Arc::new(Account::default());
        let (sender, receiver) = starting_at(capacity, 0u64.wrapping_sub(late));
        let weak = sender.downgrade();
        let mut senders = VecDeque::from([sender]);
        let mut receivers = VecDeque::from([(0, receiver)]);
        let capacity = capacity.next_power_of_two();
        let mut model = Reference { sent: Vec::new(), capacity, next: HashMap::from([(0, 0)]) };
        for (number, (step, which)) in (1u32..).zip(steps) {
            let place = which % receivers.len().max(1);
            match step {
                0..=2 => {
                    let Some(sender) = senders.front() else { continue };
                    let sent = sender.send(account.value(number));
                    prop_assert_eq!(sent.is_ok(), !receivers.is_empty());
                    if let Ok(count) = sent {
                        prop_assert_eq!(count, receivers.len());
                        model.sent.push(number);
                    }
                }
                3..=5 => {
                    let Some((which, receiver)) = receivers.get_mut(place) else { continue };
                    let expected = model.recv(*which, senders.is_empty());
                    let found = if step == 3 {
                        receiver.try_recv()
                    } else {
                        let mut cx = Context::from_waker(Waker::noop());
                        match pin!(receiver.recv()).poll(&mut cx) {
                            Poll::Pending => Err(TryRecvError::Empty),
                            Poll::Ready(Ok(value)) => Ok(value),
                            Poll::Ready(Err(RecvError::Closed)) => Err(TryRecvError::Closed),
                            Poll::Ready(Err(RecvError::Lagged(lost))) => {
                                Err(TryRecvError::Lagged(lost))
                            }
                        }
                    };
                    prop_assert_eq!(found.map(|value| value.number), expected);
                }
                6 => {
                    let new = match (senders.front(), receivers.front()) {
                        (Some(sender), _) => sender.subscribe(),
                        (None, Some((_, receiver))) => receiver.resubscribe(),
                        (None, None) => continue,
                    };
                    receivers.push_back((number as usize, new));
                    model.next.insert(number as usize, model.sent.len());
                }
                7 => {
                    if let Some((which, receiver)) = receivers.remove(place) {
                        model.next.remove(&which);
                        drop(receiver);
                    }
                }
                8 => {
                    let new = weak.upgrade();
                    prop_assert_eq!(new.is_some(), !senders.is_empty());
                    senders.extend(new);
                }
                _ => drop(senders.pop_front()),
            }
            prop_assert_eq!(weak.strong_count(), senders.len());
            prop_assert_eq!(account.alive(), model.wanted(), "values that live");
            if let Some(sender) = senders.front() {
                prop_assert_eq!(sender.len(), model.wanted());
                prop_assert_eq!(sender.is_empty(), model.wanted() == 0);
                prop_assert_eq!(sender.receiver_count(), receivers.len());
            }
            for (which, receiver) in &receivers {
                prop_assert_eq!(receiver.len(), model.sent.len() - model.next[which]);
                prop_assert_eq!(receiver.is_closed(), senders.is_empty());
            }
        }
        drop((senders, receivers, weak));
        prop_assert_eq!(account.alive(), 0);
    }
}

#[test]
fn under_load_every_receiver_sees_or_counts_every_value() {
    const SENDERS: u64 = 2;
    const EACH: u64 = 3_000;
    let (sender, receiver) = channel::<(u64, Box<u64>)>(8);
    let receivers: Vec<_> =
        (0..3).map(|_| sender.subscribe()).chain(std::iter::once(receiver)).collect();
    let readers: Vec<_> = receivers
        .into_iter()
        .map(|mut receiver| {
            thread::spawn(move || {
                let (mut count, mut last) = (0, [None; SENDERS as usize]);
                loop {
                    match block_on(receiver.recv()) {
                        Ok((which, number)) => {
                            assert!(last[which as usize] < Some(*number), "out of order");
                            last[which as usize] = Some(*number);
                            count += 1;
                        }
                        Err(RecvError::Lagged(lost)) => count += lost,
                        Err(RecvError::Closed) => return count,
                    }
                }
            })
        })
        .collect();
    let senders: Vec<_> = (0..SENDERS)
        .map(|which| {
            let sender = sender.clone();
            thread::spawn(move || {
                for number in 0..EACH {
                    assert!(sender.send((which, Box::new(number))).is_ok());
                }
            })
        })
        .collect();
    drop(sender);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    for reader in readers {
        assert_eq!(reader.join().unwrap(), SENDERS * EACH);
    }
}

/// Receivers and senders come and go, and each value is dropped once.
#[test]
fn under_load_receivers_that_come_and_go_leave_nothing() {
    let account = Arc::new(Account::default());
    let (sender, keeper) = channel::<Fragile>(2);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let sender = sender.clone();
            thread::spawn(move || {
                for round in 0..2_000 {
                    let mut receiver = sender.subscribe();
                    for _ in 0..round % 4 {
                        let _ = receiver.try_recv();
                    }
                }
            })
        })
        .collect();
    for number in 0..4_000 {
        assert!(sender.send(account.value(number)).is_ok());
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(account.alive(), 2, "what the keeper has not seen");
    drop(keeper);
    assert_eq!(account.alive(), 0);
}
