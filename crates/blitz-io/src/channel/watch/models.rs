//! Models of the watch channel.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc as PlainArc,
    task::{Context, Poll, Waker},
};

use super::{
    Receiver, channel,
    wait_queues::{Change, WaitQueues},
};
use crate::engine::{
    prim::{Arc, model, thread},
    wait::test_waker::{CountingWaker, block_on},
};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// A receiver that waits in a given wait queue, with a waker that it keeps.
struct Waiting {
    future: Pin<Box<dyn Future<Output = bool> + Send>>,
    counter: PlainArc<CountingWaker>,
}

impl Waiting {
    #[track_caller]
    fn new(wait_queues: &Arc<WaitQueues>, at: usize) -> Self {
        let (wait_queues, counter) = (wait_queues.clone(), CountingWaker::new());
        let mut future: Pin<Box<dyn Future<Output = bool> + Send>> = Box::pin(async move {
            let mut seen = wait_queues.state().version();
            let mut change = pin!(Change::new(&*wait_queues, &mut seen));
            std::future::poll_fn(|cx| change.as_mut().poll_at(cx, || at)).await.is_ok()
        });
        assert!(poll(future.as_mut(), &counter.waker()).is_pending(), "nothing was published");
        Self { future, counter }
    }

    /// Sleeps until the future is woken and completes, and returns its result.
    fn end(mut self) -> bool {
        loop {
            self.counter.wait();
            if let Poll::Ready(changed) = poll(self.future.as_mut(), &self.counter.waker()) {
                return changed;
            }
        }
    }
}

fn publish(wait_queues: &WaitQueues) {
    wait_queues.wake(wait_queues.publish());
}

#[test]
fn publish_against_change_is_never_missed() {
    model(|| {
        let (sender, mut receiver) = channel(0);
        let other = thread::spawn(move || {
            sender.send(1).unwrap();
            sender
        });
        assert!(block_on(receiver.changed()).is_ok());
        assert_eq!(*receiver.borrow(), 1);
        drop(other.join().unwrap());
    });
}

#[test]
fn a_second_waiter_against_a_publish_is_never_missed() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let first = Waiting::new(&wait_queues, 0);
        let other = thread::spawn({
            let wait_queues = wait_queues.clone();
            move || publish(&wait_queues)
        });
        let mut seen = super::wait_queues::WaitQueues::new().state().version();
        assert!(block_on(Change::new(&*wait_queues, &mut seen)).is_ok());
        assert!(first.end());
        other.join().unwrap();
        assert!(!wait_queues.is_waited_for());
    });
}

#[test]
fn close_against_change_ends() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let other = thread::spawn({
            let wait_queues = wait_queues.clone();
            move || wait_queues.close()
        });
        let mut seen = super::wait_queues::WaitQueues::new().state().version();
        assert!(block_on(Change::new(&*wait_queues, &mut seen)).is_err());
        other.join().unwrap();
        assert!(!wait_queues.is_waited_for());
    });
}

#[test]
fn a_change_dropped_against_a_publish_leaves_no_mark() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let waiting = Waiting::new(&wait_queues, 0);
        let other = thread::spawn({
            let wait_queues = wait_queues.clone();
            move || publish(&wait_queues)
        });
        drop(waiting);
        other.join().unwrap();
        assert!(!wait_queues.is_waited_for());
        drop(Waiting::new(&wait_queues, 0));
        assert!(!wait_queues.is_waited_for(), "the last one to leave takes the mark along");
    });
}

#[test]
fn two_publishes_against_change_show_the_last() {
    model(|| {
        let (sender, mut receiver) = channel(0);
        let other = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
            sender
        });
        let mut seen = 0;
        while seen < 2 {
            assert!(block_on(receiver.changed()).is_ok());
            let now = *receiver.borrow_and_update();
            assert!(now > seen, "{now} again after {seen}");
            seen = now;
        }
        drop(other.join().unwrap());
    });
}

#[test]
fn waiters_in_two_wait_queues_are_all_woken() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let waiting = [Waiting::new(&wait_queues, 0), Waiting::new(&wait_queues, 1)];
        let other = thread::spawn({
            let wait_queues = wait_queues.clone();
            move || publish(&wait_queues)
        });
        assert!(waiting.into_iter().all(Waiting::end));
        other.join().unwrap();
        assert!(!wait_queues.is_waited_for());
    });
}

/// Uses more waiters than fit into a model's wake list.
#[test]
fn a_full_wake_list_against_a_drop_wakes_the_rest() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let [first, second, third] = [(); 3].map(|()| Waiting::new(&wait_queues, 0));
        let dropper = thread::spawn(move || drop(second));
        publish(&wait_queues);
        assert_eq!(
            (first.counter.wake_count(), third.counter.wake_count()),
            (1, 1),
            "one was passed over"
        );
        dropper.join().unwrap();
        assert!(!wait_queues.is_waited_for());
        assert!(first.end() && third.end());
    });
}

/// A waiter for the next version is left to the thread that publishes that version, so a round
/// ends, however quickly other threads publish.
#[test]
fn a_publish_wakes_the_waiters_that_came_before_it() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let before = Waiting::new(&wait_queues, 0);
        let first = wait_queues.publish();
        let after = Waiting::new(&wait_queues, 0);
        let second = wait_queues.publish();
        wait_queues.wake(first);
        assert_eq!((before.counter.wake_count(), after.counter.wake_count()), (1, 0));
        wait_queues.wake(second);
        assert_eq!((before.counter.wake_count(), after.counter.wake_count()), (1, 1));
        assert!(before.end() && after.end() && !wait_queues.is_waited_for());
    });
}

#[test]
fn two_publishers_wake_one_waiter_once() {
    model(|| {
        let wait_queues = Arc::new(WaitQueues::new());
        let waiting = Waiting::new(&wait_queues, 0);
        let counter = waiting.counter.clone();
        let other = thread::spawn({
            let wait_queues = wait_queues.clone();
            move || publish(&wait_queues)
        });
        publish(&wait_queues);
        other.join().unwrap();
        assert_eq!(counter.wake_count(), 1);
        assert!(waiting.end());
    });
}

#[test]
fn a_send_against_changed_shows_its_value() {
    model(|| {
        let (sender, mut receiver) = channel(0);
        let other = thread::spawn(move || sender.send_replace(1));
        let changed = receiver.has_changed();
        if matches!(changed, Ok(true)) {
            assert_eq!(*receiver.borrow_and_update(), 1);
            assert!(!receiver.borrow().has_changed());
        }
        assert_eq!(other.join().unwrap(), 0);
        assert_eq!(*receiver.borrow(), 1);
    });
}

/// The sender that is dropped last has sent before, so the receiver sees the value first.
#[test]
fn the_last_sender_against_changed_ends_it() {
    model(|| {
        let (sender, mut receiver) = channel(0);
        let other = thread::spawn(move || {
            sender.send(1).unwrap();
            drop(sender);
        });
        assert!(block_on(receiver.changed()).is_ok());
        assert!(block_on(receiver.changed()).is_err());
        assert_eq!(*receiver.borrow(), 1);
        other.join().unwrap();
    });
}

#[test]
fn closed_against_the_last_receiver_is_never_left_waiting() {
    model(|| {
        let (sender, receiver) = channel(0);
        let other = thread::spawn({
            let receiver: Receiver<i32> = receiver.clone();
            move || drop(receiver)
        });
        drop(receiver);
        block_on(sender.closed());
        assert!(sender.is_closed());
        other.join().unwrap();
    });
}

#[test]
fn closed_against_subscribe_and_drop_ends() {
    model(|| {
        let (sender, receiver) = channel(0);
        let other = thread::spawn({
            let sender = sender.clone();
            move || {
                drop(receiver);
                drop(sender.subscribe());
            }
        });
        block_on(sender.closed());
        other.join().unwrap();
        block_on(sender.closed());
    });
}

#[test]
fn a_closed_dropped_against_the_last_receiver_leaves_the_other_waiting_well() {
    model(|| {
        let (sender, receiver) = channel(0);
        let (counter, kept) = (CountingWaker::new(), sender.clone());
        let mut closed = pin!(kept.closed());
        assert!(poll(closed.as_mut(), &counter.waker()).is_pending());
        let dropper = thread::spawn(move || {
            let mut closed = Box::pin(sender.closed());
            let _ = poll(closed.as_mut(), Waker::noop());
            drop(closed);
        });
        drop(receiver);
        assert_eq!(counter.wake_count(), 1, "it was not woken");
        assert!(poll(closed.as_mut(), &counter.waker()).is_ready());
        dropper.join().unwrap();
    });
}
