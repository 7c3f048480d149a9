//! Tests of the watch channel, step by step against a simple reference, then under load.

use std::{
    cell::Cell,
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use proptest::prelude::*;

use super::{Receiver, Sender, channel, wait_queues::WaitQueues};
use crate::engine::{
    prim::thread,
    wait::test_waker::{CountingWaker, block_on},
    work::task::budget::{self, Budget},
};

/// Creates a channel as if `versions` versions had been published before.
fn starting_at<T>(value: T, versions: u64) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::with_receivers(value, 1, versions);
    let receiver = Receiver::counted(sender.shared().clone());
    (sender, receiver)
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, counter: &Arc<CountingWaker>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&counter.waker()))
}

fn wait_queues<T>(sender: &Sender<T>) -> &WaitQueues {
    &sender.shared().wait_queues
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn the_sizes_of_a_watch_channel_do_not_grow() {
    assert_eq!(size_of::<Receiver<u64>>(), 16);
    assert_eq!(size_of::<Sender<u64>>(), 8);
    assert!(size_of::<WaitQueues>() <= 216, "{}", size_of::<WaitQueues>());
}

#[test]
fn a_closure_that_panics_leaves_its_change_and_wakes_no_receiver() {
    let (sender, mut receiver) = channel(1);
    let counter = CountingWaker::new();
    {
        let mut changed = pin!(receiver.changed());
        assert!(poll(changed.as_mut(), &counter).is_pending());
        assert!(panics(|| sender.send_modify(|value| {
            *value = 2;
            panic!("this closure panics on purpose");
        })));
        assert!(poll(changed.as_mut(), &counter).is_pending());
        assert_eq!(counter.wake_count(), 0);
    }
    assert!(!receiver.has_changed().unwrap());
    assert_eq!((*receiver.borrow(), *sender.borrow()), (2, 2));
    sender.send(3).unwrap();
    assert!(receiver.has_changed().unwrap());
    assert_eq!(*receiver.borrow_and_update(), 3);
    assert!(format!("{sender:?} {receiver:?}").contains("value: 3"));
}

#[test]
fn a_wait_for_whose_closure_panics_leaves_the_channel_usable() {
    let (sender, mut receiver) = channel(1);
    assert!(panics(|| drop(block_on(receiver.wait_for(|_| panic!("on purpose"))))));
    sender.send(2).unwrap();
    assert_eq!(block_on(receiver.wait_for(|value| *value == 2)).map(|value| *value).ok(), Some(2));
}

#[test]
fn a_wait_for_that_is_dropped_has_seen_what_it_refused() {
    let (sender, mut receiver) = channel(1);
    sender.send(2).unwrap();
    let shown = Cell::new(0);
    {
        let mut waiting = pin!(receiver.wait_for(|value| {
            shown.set(*value);
            false
        }));
        assert!(poll(waiting.as_mut(), &CountingWaker::new()).is_pending());
    }
    assert_eq!(shown.get(), 2);
    assert!(!receiver.has_changed().unwrap());
    assert!(!wait_queues(&sender).is_waited_for());
}

#[test]
fn a_wait_for_checks_the_last_value_after_the_senders_have_gone() {
    let (sender, mut receiver) = channel(1);
    let counter = CountingWaker::new();
    let checks = Cell::new(0);
    let wanted = |value: &i32| {
        checks.set(checks.get() + 1);
        *value == 9
    };
    {
        let mut waiting = pin!(receiver.wait_for(wanted));
        assert!(poll(waiting.as_mut(), &counter).is_pending());
        sender.send(9).unwrap();
        drop(sender);
        let Poll::Ready(Ok(value)) = poll(waiting.as_mut(), &counter) else {
            panic!("it is there")
        };
        // The wait has marked the value as seen, as Tokio's does.
        assert!(!value.has_changed());
        assert_eq!(*value, 9);
    }
    assert_eq!(checks.get(), 2);
    assert!(block_on(receiver.wait_for(|_| false)).is_err());
    assert!(block_on(receiver.wait_for(|_| true)).is_ok(), "what was seen may still be wanted");
}

/// A value that sends into its own channel when it is dropped, which needs the lock.
struct Last(Option<Arc<Sender<Last>>>, Arc<AtomicUsize>);

impl Drop for Last {
    fn drop(&mut self) {
        self.1.fetch_add(1, Relaxed);
        if let Some(sender) = self.0.take() {
            drop(sender.send_replace(Last(None, self.1.clone())));
        }
    }
}

#[test]
fn the_value_before_is_dropped_outside_of_the_lock_and_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let sender = Arc::new(Sender::new(Last(None, drops.clone())));
    let receiver = sender.subscribe();
    assert!(sender.send(Last(Some(sender.clone()), drops.clone())).is_ok());
    assert_eq!(drops.load(Relaxed), 1);
    assert!(sender.send(Last(None, drops.clone())).is_ok());
    assert_eq!(drops.load(Relaxed), 3, "the second, and what it replaced");
    drop(receiver);
    let returned = sender.send(Last(None, drops.clone()));
    assert_eq!(drops.load(Relaxed), 3, "it comes back");
    drop(returned);
    drop(sender);
    assert_eq!(drops.load(Relaxed), 5);
}

#[test]
fn versions_wrap() {
    // The version has the upper 55 bits of the word, so it wraps after this number.
    let versions = 1u64 << (64 - 9);
    for before in 0..4 {
        let (sender, mut receiver) = starting_at(0, versions - before);
        for value in 1..8 {
            assert!(!receiver.has_changed().unwrap());
            sender.send(value).unwrap();
            assert!(receiver.has_changed().unwrap());
            assert!(block_on(receiver.changed()).is_ok());
            assert_eq!(*receiver.borrow(), value);
            receiver.mark_changed();
            assert!(block_on(receiver.changed()).is_ok());
            assert!(!receiver.is_closed());
        }
        drop(sender);
        assert!(block_on(receiver.changed()).is_err());
    }
}

#[test]
fn a_changed_that_is_polled_with_another_waker_wakes_that_one() {
    let (sender, mut receiver) = channel(1);
    let (old, new) = (CountingWaker::new(), CountingWaker::new());
    {
        let mut changed = pin!(receiver.changed());
        assert!(poll(changed.as_mut(), &old).is_pending());
        assert!(poll(changed.as_mut(), &new).is_pending());
        sender.send(2).unwrap();
        assert_eq!((old.wake_count(), new.wake_count()), (0, 1));
        assert!(poll(changed.as_mut(), &new).is_ready());
    }
    assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 1));
    assert!(!wait_queues(&sender).is_waited_for());
}

#[test]
fn a_closed_that_is_polled_with_another_waker_wakes_that_one() {
    let (sender, receiver) = channel(1);
    let (old, new) = (CountingWaker::new(), CountingWaker::new());
    let mut closed = pin!(sender.closed());
    assert!(poll(closed.as_mut(), &old).is_pending());
    assert!(poll(closed.as_mut(), &new).is_pending());
    drop(receiver.clone());
    drop(receiver);
    assert_eq!((old.wake_count(), new.wake_count()), (0, 1));
    let another = sender.subscribe();
    assert!(poll(closed.as_mut(), &new).is_pending(), "a receiver has come again");
    drop(another);
    assert_eq!(new.wake_count(), 2);
    assert!(poll(closed.as_mut(), &new).is_ready());
}

/// Uses more receivers than two wake lists hold.
#[test]
fn a_send_wakes_each_of_a_hundred_receivers_once() {
    let (sender, receiver) = channel(1);
    let counters: Vec<_> = (0..100).map(|_| CountingWaker::new()).collect();
    let mut receivers: Vec<_> = counters.iter().map(|_| receiver.clone()).collect();
    let mut waiting: Vec<_> =
        receivers.iter_mut().map(|receiver| Box::pin(receiver.changed())).collect();
    for (future, counter) in waiting.iter_mut().zip(&counters) {
        assert!(poll(future.as_mut(), counter).is_pending());
    }
    assert!(wait_queues(&sender).is_waited_for());
    sender.send(2).unwrap();
    assert!(!wait_queues(&sender).is_waited_for());
    assert!(counters.iter().all(|counter| counter.wake_count() == 1));
    for (future, counter) in waiting.iter_mut().zip(&counters) {
        assert!(poll(future.as_mut(), counter).is_ready());
    }
    drop(waiting);
    assert!(counters.iter().all(|counter| Arc::strong_count(counter) == 1));
}

/// Uses a waker that looks, and waits again, while it is being woken.
#[test]
fn a_waiter_that_waits_again_during_a_long_wake_is_not_woken_again() {
    struct Again {
        counter: Arc<CountingWaker>,
        again: std::sync::Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    }
    impl std::task::Wake for Again {
        fn wake(self: Arc<Self>) {
            self.counter.waker().wake();
            let waker = Waker::from(self.clone());
            if let Some(future) = &mut *self.again.lock().unwrap() {
                assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
        }
    }
    let sender = Sender::new(1);
    let wakers: Vec<_> = (0..80)
        .map(|_| {
            let mut receiver = sender.subscribe();
            let again: Pin<Box<dyn Future<Output = ()> + Send>> =
                Box::pin(async move { while receiver.changed().await.is_ok() {} });
            Arc::new(Again { counter: CountingWaker::new(), again: Some(again).into() })
        })
        .collect();
    wakers.iter().for_each(|waker| std::task::Wake::wake(waker.clone()));
    sender.send(2).unwrap();
    assert!(wakers.iter().all(|waker| waker.counter.wake_count() == 2), "one was served twice");
    wakers.iter().for_each(|waker| drop(waker.again.lock().unwrap().take()));
}

#[test]
fn waiting_takes_a_unit_of_budget_and_the_129th_waits_its_turn() {
    let (_sender, mut receiver) = channel(1);
    let counter = CountingWaker::new();
    budget::with_budget(Budget::per_poll(), || {
        let mut done = 0;
        loop {
            receiver.mark_changed();
            if poll(pin!(receiver.changed()), &counter).is_pending() {
                break;
            }
            done += 1;
        }
        assert_eq!(done, 128);
        assert!(receiver.has_changed().unwrap(), "what was refused saw nothing");
    });
    budget::with_budget(Budget::per_poll(), || {
        let ready = || poll(pin!(receiver.wait_for(|_| true)), &counter).is_ready();
        assert_eq!(std::iter::repeat_with(ready).take_while(|ready| *ready).count(), 128);
    });
}

#[test]
fn a_wait_for_that_waits_takes_no_budget_and_one_that_returns_takes_one() {
    let (sender, mut receiver) = channel(1);
    let counter = CountingWaker::new();
    budget::with_budget(Budget::Remaining(5), || {
        let left = || budget::remaining();
        let mut waits = pin!(receiver.wait_for(|value| *value == 2));
        assert!(poll(waits.as_mut(), &counter).is_pending());
        assert_eq!(left(), Budget::Remaining(5), "it has only looked");
        sender.send(2).unwrap();
        assert!(poll(waits.as_mut(), &counter).is_ready());
        assert_eq!(left(), Budget::Remaining(4));
    });
}

/// The reference: the value, and what each receiver has seen as a number of sends.
struct Reference {
    value: u32,
    sends: usize,
    /// For each receiver the number of sends it has seen; `None` if marked as not seen.
    seen: VecDeque<Option<usize>>,
}

impl Reference {
    fn is_news(&self, which: usize) -> bool {
        self.seen[which] != Some(self.sends)
    }
}

proptest! {
    /// Each of `steps` says what is done, and by which handle.
    #[test]
    fn a_watch_behaves_as_a_simple_model(
        late in 0u64..4,
        steps in prop::collection::vec((0u8..14, 0usize..8), 0..200),
    ) {
        let (sender, receiver) = starting_at(0u32, 0u64.wrapping_sub(late));
        let mut senders = VecDeque::from([sender]);
        let mut receivers = VecDeque::from([receiver]);
        let mut model = Reference { value: 0, sends: 0, seen: VecDeque::from([Some(0)]) };
        for (number, (step, which)) in (1u32..).zip(steps) {
            let closed = senders.is_empty();
            let place = which % receivers.len().max(1);
            match (step, senders.front(), receivers.get_mut(place)) {
                (0..=1, Some(sender), _) => {
                    let sent = sender.send(number);
                    prop_assert_eq!(sent.is_ok(), !model.seen.is_empty());
                    if sent.is_ok() {
                        (model.value, model.sends) = (number, model.sends + 1);
                    }
                }
                (2, Some(sender), _) => {
                    let notify = which % 2 == 0;
                    let notified = sender.send_if_modified(|value| {
                        *value = number;
                        notify
                    });
                    prop_assert_eq!(notified, notify);
                    (model.value, model.sends) = (number, model.sends + usize::from(notify));
                }
                (3, Some(sender), _) => {
                    prop_assert_eq!(sender.send_replace(number), model.value);
                    (model.value, model.sends) = (number, model.sends + 1);
                }
                (4, Some(sender), _) => {
                    receivers.push_back(sender.subscribe());
                    model.seen.push_back(Some(model.sends));
                }
                (5, Some(sender), _) => {
                    let sender = sender.clone();
                    senders.push_back(sender);
                }
                (6, Some(_), _) => drop(senders.pop_front()),
                (7, _, Some(receiver)) => {
                    let clone = receiver.clone();
                    receivers.push_back(clone);
                    model.seen.push_back(model.seen[place]);
                }
                (8, _, Some(_)) => {
                    drop(receivers.remove(place));
                    model.seen.remove(place);
                }
                (9, _, Some(receiver)) => {
                    let borrowed = receiver.borrow_and_update();
                    prop_assert_eq!((*borrowed, borrowed.has_changed()), (model.value, model.is_news(place)));
                    model.seen[place] = Some(model.sends);
                }
                (10, _, Some(receiver)) => {
                    let polled = poll(pin!(receiver.changed()), &CountingWaker::new());
                    let expected = match (model.is_news(place), closed) {
                        (true, _) => Poll::Ready(true),
                        (false, true) => Poll::Ready(false),
                        (false, false) => Poll::Pending,
                    };
                    prop_assert_eq!(polled.map(|outcome| outcome.is_ok()), expected);
                    model.seen[place] = Some(model.sends);
                }
                (11, _, Some(receiver)) => {
                    let wanted = |value: &u32| value.is_multiple_of(2);
                    let polled = poll(pin!(receiver.wait_for(wanted)), &CountingWaker::new());
                    let expected = match (wanted(&model.value), closed) {
                        (true, _) => Poll::Ready(Some(model.value)),
                        (false, true) => Poll::Ready(None),
                        (false, false) => Poll::Pending,
                    };
                    prop_assert_eq!(polled.map(|outcome| outcome.ok().map(|borrowed| *borrowed)), expected);
                    model.seen[place] = Some(model.sends);
                }
                (12, _, Some(receiver)) => {
                    receiver.mark_changed();
                    model.seen[place] = None;
                }
                (13, _, Some(receiver)) => {
                    receiver.mark_unchanged();
                    model.seen[place] = Some(model.sends);
                }
                _ => {}
            }
            let closed = senders.is_empty();
            if let Some(sender) = senders.front() {
                prop_assert_eq!(sender.receiver_count(), receivers.len());
                prop_assert_eq!(sender.sender_count(), senders.len());
                prop_assert_eq!(sender.is_closed(), receivers.is_empty());
                prop_assert_eq!(*sender.borrow(), model.value);
                let gone = poll(pin!(sender.closed()), &CountingWaker::new()).is_ready();
                prop_assert_eq!(gone, receivers.is_empty());
                prop_assert!(!wait_queues(sender).is_waited_for());
            }
            for (place, receiver) in receivers.iter().enumerate() {
                let news = model.is_news(place);
                prop_assert_eq!(receiver.has_changed().ok(), (!closed).then_some(news));
                prop_assert_eq!((*receiver.borrow(), receiver.is_closed()), (model.value, closed));
            }
        }
    }
}

#[test]
fn under_load_every_receiver_sees_the_last_value() {
    const LAST: u64 = 5_000;
    let (sender, receiver) = channel(Box::new(0u64));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let mut receiver = receiver.clone();
            thread::spawn(move || {
                let mut last = 0;
                while block_on(receiver.changed()).is_ok() {
                    let now = **receiver.borrow_and_update();
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                }
                last
            })
        })
        .collect();
    drop(receiver);
    for value in 1..=LAST {
        sender.send(Box::new(value)).unwrap();
    }
    drop(sender);
    for reader in readers {
        assert_eq!(reader.join().unwrap(), LAST);
    }
}
