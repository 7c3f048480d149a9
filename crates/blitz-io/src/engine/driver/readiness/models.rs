//! Models of a record: one or two events against one or two waiters.
//!
//! The kernel is a word that has data or not. A waiter goes on until it has the data, so a lost
//! wake-up shows up as a deadlock.

use std::{
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{Direction, Record, WAITERS};
use crate::engine::{
    driver::{interest::Interest, ready::Ready},
    prim::{Arc, AtomicBool, Ordering::Relaxed, UnsafeCell, model, thread},
    wait::{
        test_waker::{CountingWaker, block_on},
        wake_list::WakeList,
    },
};

/// A record, and the state of a model's kernel for both directions.
struct Socket {
    record: Record,
    input: AtomicBool,
    room: AtomicBool,
}

fn socket() -> Arc<Socket> {
    let (input, room) = (AtomicBool::new(false), AtomicBool::new(false));
    Arc::new(Socket { record: Record::new(), input, room })
}

impl Socket {
    /// The kernel has an event, and the driver applies it to the record.
    fn happens(&self, ready: Ready) {
        // Relaxed: the record must provide the ordering. A swap, because `take` is one: in the
        // model checker a plain store might come before a swap that did not see it.
        if ready.is_readable() {
            self.input.swap(true, Relaxed);
        }
        if ready.is_writable() {
            self.room.swap(true, Relaxed);
        }
        assert!(self.record.set(0, ready, &mut WakeList::new()));
    }

    /// Performs an operation; returns false if it would block.
    fn take(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.input.swap(false, Relaxed),
            Direction::Write => self.room.swap(false, Relaxed),
        }
    }

    /// Polls and retries as `poll_io` does.
    fn poll_take(&self, cx: &Context<'_>, direction: Direction) -> Poll<()> {
        loop {
            match self.record.poll(cx, direction) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(_) if self.take(direction) => return Poll::Ready(()),
                Poll::Ready(event) => drop(self.record.clear(event)),
            }
        }
    }

    /// Waits and retries as `async_io` does.
    async fn wait_and_take(&self, direction: Direction) {
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        loop {
            let event = self.record.wait(interest).await;
            if self.take(direction) {
                return;
            }
            self.record.clear(event);
        }
    }
}

fn event(socket: &Arc<Socket>, ready: Ready) -> thread::JoinHandle<()> {
    let socket = socket.clone();
    thread::spawn(move || socket.happens(ready))
}

fn shutdown(socket: &Arc<Socket>) -> thread::JoinHandle<()> {
    let socket = socket.clone();
    thread::spawn(move || socket.record.shut_down(&mut WakeList::new()))
}

type BoxedWait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns a future that waits in the wait queue.
fn queued(socket: &Arc<Socket>, interest: Interest) -> BoxedWait {
    queued_as(socket, interest, Waker::noop())
}

fn queued_as(socket: &Arc<Socket>, interest: Interest, waker: &Waker) -> BoxedWait {
    let socket = socket.clone();
    let mut waiting: BoxedWait = Box::pin(async move {
        let _event = socket.record.wait(interest).await;
    });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    waiting
}

fn has_waiters(socket: &Socket) -> bool {
    socket.record.word.load(Relaxed) & WAITERS != 0
}

#[test]
fn an_event_against_a_poll_is_not_lost() {
    model(|| {
        let socket = socket();
        let driver = event(&socket, Ready::READABLE);
        block_on(poll_fn(|cx| socket.poll_take(cx, Direction::Read)));
        driver.join().unwrap();
    });
}

#[test]
fn an_event_against_a_wait_is_not_lost() {
    model(|| {
        let socket = socket();
        let driver = event(&socket, Ready::READABLE);
        block_on(socket.wait_and_take(Direction::Read));
        driver.join().unwrap();
        assert!(!has_waiters(&socket));
    });
}

/// A thread that sees an event sees what was done before it, without the help of the wakers.
#[test]
fn writes_before_an_event_are_seen_after_it() {
    struct EventAndData(Record, UnsafeCell<u32>);
    // SAFETY: the cell is written before the event and read only by a thread that has seen the
    // event.
    unsafe impl Sync for EventAndData {}
    model(|| {
        let seen = Arc::new(EventAndData(Record::new(), UnsafeCell::new(0)));
        // The spawned thread is the one that checks, because in the first run of a model it runs
        // last.
        let reader = thread::spawn({
            let seen = seen.clone();
            move || {
                if seen.0.snapshot(Ready::ALL).ready().is_readable() {
                    // SAFETY: the event was seen, and the cell is written only before the event.
                    assert_eq!(seen.1.with(|value| unsafe { *value }), 7);
                }
            }
        });
        // SAFETY: the cell is read only after the event, which comes below.
        seen.1.with_mut(|value| unsafe { *value = 7 });
        assert!(seen.0.set(0, Ready::READABLE, &mut WakeList::new()));
        reader.join().unwrap();
    });
}

/// Two events, where the second finds the bit of the first set or not; one task in each direction.
#[test]
fn two_events_against_two_directions_wake_both() {
    model(|| {
        let socket = socket();
        let driver = thread::spawn({
            let socket = socket.clone();
            move || {
                socket.happens(Ready::READABLE);
                socket.happens(Ready::READABLE | Ready::WRITABLE);
            }
        });
        let writer = thread::spawn({
            let socket = socket.clone();
            move || block_on(poll_fn(|cx| socket.poll_take(cx, Direction::Write)))
        });
        block_on(poll_fn(|cx| socket.poll_take(cx, Direction::Read)));
        writer.join().unwrap();
        driver.join().unwrap();
    });
}

/// A waiter leaves the wait queue by its drop or by the event, and the one behind it is woken
/// either way.
#[test]
fn a_wait_dropped_against_an_event_leaves_the_queue_in_order() {
    model(|| {
        let socket = socket();
        let first = queued(&socket, Interest::READABLE);
        let driver = event(&socket, Ready::READABLE);
        drop(first);
        block_on(socket.wait_and_take(Direction::Read));
        driver.join().unwrap();
        assert!(!has_waiters(&socket), "the queue is empty, and the word says so");
    });
}

/// The assumed readiness is wrong; the event comes before, between or after the attempts.
#[test]
fn an_event_against_a_clear_is_not_lost() {
    model(|| {
        let socket = socket();
        socket.record.assume(Ready::READABLE);
        let driver = event(&socket, Ready::READABLE);
        block_on(poll_fn(|cx| socket.poll_take(cx, Direction::Read)));
        driver.join().unwrap();
    });
}

/// Polls and retries as `poll_io` does, for operations that would complete if the end were closed.
fn poll_take_refuting(socket: &Socket, cx: &Context<'_>) -> Poll<()> {
    loop {
        match socket.record.poll(cx, Direction::Read) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(_) if socket.take(Direction::Read) => return Poll::Ready(()),
            Poll::Ready(event) => drop(socket.record.refute(event)),
        }
    }
}

/// A FIFO had lost its last writer and has a new one, which writes: before the read that finds
/// nothing, between that read and its refutation, or after.
#[test]
fn an_event_against_a_refutation_is_not_lost() {
    model(|| {
        let socket = socket();
        let ended = Ready::READABLE | Ready::READ_CLOSED;
        assert!(socket.record.set(0, ended, &mut WakeList::new()));
        let driver = event(&socket, Ready::READABLE);
        block_on(poll_fn(|cx| poll_take_refuting(&socket, cx)));
        driver.join().unwrap();
    });
}

/// A refuted operation would otherwise be retried for ever. The other direction's readiness stays.
#[test]
fn refuted_readiness_is_open_again() {
    model(|| {
        let record = Record::new();
        assert!(record.set(0, Ready::ALL, &mut WakeList::new()));
        let event = record.snapshot(Direction::Read.mask());
        assert!(event.ready().is_read_closed());
        assert_eq!(record.refute(event), event.ready());
        assert!(record.snapshot(Direction::Read.mask()).ready().is_empty());
        assert!(record.snapshot(Direction::Write.mask()).ready().is_write_closed());
    });
}

/// Futures that are leaked, so they are neither polled nor dropped, each with the counter of its
/// waker.
struct LeakedWaits {
    waits: Vec<ManuallyDrop<BoxedWait>>,
    counters: Vec<std::sync::Arc<CountingWaker>>,
}

impl LeakedWaits {
    fn new(socket: &Arc<Socket>, count: usize) -> Self {
        let counters: Vec<_> = (0..count).map(|_| CountingWaker::new()).collect();
        let wait = |counter: &std::sync::Arc<CountingWaker>| {
            ManuallyDrop::new(queued_as(socket, Interest::READABLE, &counter.waker()))
        };
        Self { waits: counters.iter().map(wait).collect(), counters }
    }

    fn assert_all_are_dismissed(&self) {
        for counter in &self.counters {
            let dismissed = (counter.wake_count(), std::sync::Arc::strong_count(counter));
            assert_eq!(dismissed, (1, 1), "a leaked wait is dismissed once, and its waker is gone");
        }
    }
}

impl Drop for LeakedWaits {
    fn drop(&mut self) {
        // Frees their memory, because the model checker reports leaks as errors.
        self.waits.drain(..).for_each(|wait| drop(ManuallyDrop::into_inner(wait)));
    }
}

/// `count` waits are leaked and their registration ends, while the driver applies an event of it.
/// The next registration has a wait of its own.
fn ends_with_forgotten(count: usize) {
    let socket = socket();
    let forgotten = LeakedWaits::new(&socket, count);
    let driver = thread::spawn({
        let socket = socket.clone();
        move || socket.record.set(0, Ready::READABLE, &mut WakeList::new())
    });
    drop(socket.record.end());
    let mut next = queued(&socket, Interest::READABLE);
    driver.join().unwrap();
    forgotten.assert_all_are_dismissed();
    // At worst it was woken for nothing.
    let mut cx = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut cx).is_pending(), "an event of the last reached the next");
    assert!(has_waiters(&socket));
    assert!(socket.record.set(1, Ready::READABLE, &mut WakeList::new()));
    assert!(next.as_mut().poll(&mut cx).is_ready());
    assert!(!has_waiters(&socket));
}

#[test]
fn leaked_waits_leave_with_their_registration() {
    model(|| ends_with_forgotten(1));
}

/// The event has filled a wake list and released the lock when the record ends.
#[test]
fn more_leaked_waits_than_a_wake_list_leave_against_an_event() {
    model(|| ends_with_forgotten(3));
}

#[test]
fn an_event_of_the_last_registration_does_not_reach_the_next() {
    model(|| {
        let record = Arc::new(Record::new());
        let driver = thread::spawn({
            let record = record.clone();
            move || record.set(0, Ready::READABLE, &mut WakeList::new())
        });
        assert!(record.end().iter().all(Option::is_none));
        // The next registration waits, and at worst is woken for nothing.
        let counter = CountingWaker::new();
        let waker = counter.waker();
        let polled = record.poll(&Context::from_waker(&waker), Direction::Read);
        assert!(polled.is_pending(), "the next got the event of the last");
        driver.join().unwrap();
        let polled = record.poll(&Context::from_waker(&waker), Direction::Read);
        assert!(polled.is_pending(), "the next got the event of the last");
        // The next registration's own event reaches it.
        let before = counter.wake_count();
        assert!(record.set(1, Ready::READABLE, &mut WakeList::new()));
        assert_eq!(counter.wake_count(), before + 1);
    });
}

#[test]
fn a_record_that_ends_against_an_event_keeps_no_waker() {
    model(|| {
        let (record, counter) = (Arc::new(Record::new()), CountingWaker::new());
        let waker = counter.waker();
        for direction in [Direction::Read, Direction::Write] {
            assert!(record.poll(&Context::from_waker(&waker), direction).is_pending());
        }
        drop(waker);
        let driver = thread::spawn({
            let record = record.clone();
            move || record.set(0, Ready::READABLE, &mut WakeList::new())
        });
        drop(record.end());
        driver.join().unwrap();
        assert_eq!(
            std::sync::Arc::strong_count(&counter),
            1,
            "the record lives, the wakers do not"
        );
    });
}

#[test]
fn a_shutdown_against_a_poll_ends_it() {
    model(|| {
        let socket = socket();
        let driver = shutdown(&socket);
        let event = block_on(poll_fn(|cx| socket.record.poll(cx, Direction::Write)));
        assert!(event.is_shutdown());
        driver.join().unwrap();
    });
}

#[test]
fn a_shutdown_against_a_wait_ends_it() {
    model(|| {
        let socket = socket();
        let driver = shutdown(&socket);
        let event = block_on(socket.record.wait(Interest::READABLE | Interest::WRITABLE));
        assert!(event.is_shutdown());
        driver.join().unwrap();
        assert!(!has_waiters(&socket));
    });
}

#[test]
fn a_clear_against_a_shutdown_keeps_it() {
    model(|| {
        let socket = socket();
        socket.record.assume(Ready::READABLE);
        let driver = shutdown(&socket);
        let event = socket.record.snapshot(Ready::ALL);
        socket.record.clear(event);
        let event = block_on(poll_fn(|cx| socket.record.poll(cx, Direction::Read)));
        assert!(event.is_shutdown(), "it ended without data, so by the end");
        driver.join().unwrap();
    });
}

/// Wake lists of a model hold two wakers: the third waiter is dismissed after the lock was released
/// once, and a waiter that joins again meanwhile is left for the next event.
#[test]
fn a_full_wake_list_against_a_wait_that_joins_again() {
    model(|| {
        let socket = socket();
        // These waiters are woken by any event, but wait for an error, which never comes.
        let others = [(); 3].map(|()| queued(&socket, Interest::ERROR));
        let waiting = thread::spawn({
            let socket = socket.clone();
            move || block_on(socket.wait_and_take(Direction::Read))
        });
        socket.happens(Ready::READABLE);
        waiting.join().unwrap();
        for mut other in others {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(other.as_mut().poll(&mut cx).is_pending(), "there is no error");
        }
        assert!(!has_waiters(&socket), "all have gone");
    });
}

#[test]
fn a_new_waker_against_an_event_is_woken() {
    model(|| {
        let socket = socket();
        let mut waiting = pin!(socket.wait_and_take(Direction::Read));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let driver = event(&socket, Ready::READABLE);
        block_on(waiting);
        driver.join().unwrap();
    });
}
