//! A record under every interleaving: an event or two, and one or two who wait.
//!
//! The kernel is a word that holds data or not. Whoever waits goes on until it has the
//! data: a wake-up that is lost is a deadlock.

use std::{
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{Direction, LINE, Record};
use crate::engine::{
    driver::{interest::Interest, ready::Ready},
    prim::{Arc, AtomicBool, Ordering::Relaxed, UnsafeCell, model, thread},
    wait::{
        batch::Batch,
        bell::{Bell, block_on},
    },
};

/// A record, and what the kernel has for whom.
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
    /// The kernel has an event, and the driver tells it.
    fn happens(&self, ready: Ready) {
        // Relaxed: the record has to order it. An exchange, as `take` is one: for the model
        // checker a store might come before an exchange that did not see it.
        if ready.is_readable() {
            self.input.swap(true, Relaxed);
        }
        if ready.is_writable() {
            self.room.swap(true, Relaxed);
        }
        assert!(self.record.set(0, ready, &mut Batch::new()));
    }

    /// An operation that would block if there is nothing.
    fn take(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.input.swap(false, Relaxed),
            Direction::Write => self.room.swap(false, Relaxed),
        }
    }

    /// As `poll_io` does it.
    fn poll_take(&self, cx: &Context<'_>, direction: Direction) -> Poll<()> {
        loop {
            match self.record.poll(cx, direction) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(_) if self.take(direction) => return Poll::Ready(()),
                Poll::Ready(event) => drop(self.record.clear(event)),
            }
        }
    }

    /// As `async_io` does it.
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
    thread::spawn(move || socket.record.shut_down(&mut Batch::new()))
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that waits, in line.
fn in_line(socket: &Arc<Socket>, interest: Interest) -> Waiting {
    in_line_as(socket, interest, Waker::noop())
}

fn in_line_as(socket: &Arc<Socket>, interest: Interest, waker: &Waker) -> Waiting {
    let socket = socket.clone();
    let mut waiting: Waiting = Box::pin(async move {
        let _event = socket.record.wait(interest).await;
    });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    waiting
}

fn has_line(socket: &Socket) -> bool {
    socket.record.word.load(Relaxed) & LINE != 0
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
        assert!(!has_line(&socket));
    });
}

/// What was done before an event is seen by who sees the event, without the wakers' help.
#[test]
fn what_was_done_before_an_event_is_seen_after_it() {
    struct Seen(Record, UnsafeCell<u32>);
    // SAFETY: the event says when the cell is written.
    unsafe impl Sync for Seen {}
    model(|| {
        let seen = Arc::new(Seen(Record::new(), UnsafeCell::new(0)));
        // The one who looks is the other thread: the first run of a model has it look last.
        let looking = thread::spawn({
            let seen = seen.clone();
            move || {
                if seen.0.look(Ready::ALL).ready().is_readable() {
                    // SAFETY: it was written before the event.
                    assert_eq!(seen.1.with(|value| unsafe { *value }), 7);
                }
            }
        });
        // SAFETY: nobody reads it before the event.
        seen.1.with_mut(|value| unsafe { *value = 7 });
        assert!(seen.0.set(0, Ready::READABLE, &mut Batch::new()));
        looking.join().unwrap();
    });
}

/// Two events, of which the second finds the first's bit or not; one task each way.
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

/// The line is left by its owner or by the event, and the one behind is told in any case.
#[test]
fn a_wait_dropped_against_an_event_leaves_the_line_in_order() {
    model(|| {
        let socket = socket();
        let first = in_line(&socket, Interest::READABLE);
        let driver = event(&socket, Ready::READABLE);
        drop(first);
        block_on(socket.wait_and_take(Direction::Read));
        driver.join().unwrap();
        assert!(!has_line(&socket), "the line is empty, and the word says so");
    });
}

/// What was assumed is wrong; the event comes before, between or after.
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

/// As `poll_io` does it, for operations that a closed end would have answered.
fn poll_take_refuting(socket: &Socket, cx: &Context<'_>) -> Poll<()> {
    loop {
        match socket.record.poll(cx, Direction::Read) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(_) if socket.take(Direction::Read) => return Poll::Ready(()),
            Poll::Ready(event) => drop(socket.record.refute(event)),
        }
    }
}

/// A FIFO had lost its last writer and has one again, who writes: before the read that finds
/// nothing, between that and its refutation, or after.
#[test]
fn an_event_against_a_refutation_is_not_lost() {
    model(|| {
        let socket = socket();
        let ended = Ready::READABLE | Ready::READ_CLOSED;
        assert!(socket.record.set(0, ended, &mut Batch::new()));
        let driver = event(&socket, Ready::READABLE);
        block_on(poll_fn(|cx| poll_take_refuting(&socket, cx)));
        driver.join().unwrap();
    });
}

/// An operation that is refuted would be tried for ever otherwise. What others rely on stays.
#[test]
fn what_was_refuted_is_open_again() {
    model(|| {
        let record = Record::new();
        assert!(record.set(0, Ready::ALL, &mut Batch::new()));
        let event = record.look(Direction::Read.mask());
        assert!(event.ready().is_read_closed());
        assert_eq!(record.refute(event), event.ready());
        assert!(record.look(Direction::Read.mask()).ready().is_empty());
        assert!(record.look(Direction::Write.mask()).ready().is_write_closed());
    });
}

/// Futures that nobody polls or drops any more, with the bell of each.
struct Forgotten {
    waits: Vec<ManuallyDrop<Waiting>>,
    bells: Vec<std::sync::Arc<Bell>>,
}

impl Forgotten {
    fn new(socket: &Arc<Socket>, count: usize) -> Self {
        let bells: Vec<_> = (0..count).map(|_| Bell::new()).collect();
        let wait = |bell: &std::sync::Arc<Bell>| {
            ManuallyDrop::new(in_line_as(socket, Interest::READABLE, &bell.waker()))
        };
        Self { waits: bells.iter().map(wait).collect(), bells }
    }

    fn assert_all_have_left(&self) {
        for bell in &self.bells {
            let left = (bell.rung(), std::sync::Arc::strong_count(bell));
            assert_eq!(left, (1, 1), "who was forgotten leaves once, and its waker is gone");
        }
    }
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        // Their memory is not leaked: the checker would take it for a fault.
        self.waits.drain(..).for_each(|wait| drop(ManuallyDrop::into_inner(wait)));
    }
}

/// `count` waits are forgotten and their registration ends, while the driver tells an event of
/// it. The next registration has a wait of its own.
fn ends_with_forgotten(count: usize) {
    let socket = socket();
    let forgotten = Forgotten::new(&socket, count);
    let driver = thread::spawn({
        let socket = socket.clone();
        move || socket.record.set(0, Ready::READABLE, &mut Batch::new())
    });
    drop(socket.record.end());
    let mut next = in_line(&socket, Interest::READABLE);
    driver.join().unwrap();
    forgotten.assert_all_have_left();
    // It was woken for nothing at worst.
    let mut cx = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut cx).is_pending(), "an event of the last reached the next");
    assert!(has_line(&socket));
    assert!(socket.record.set(1, Ready::READABLE, &mut Batch::new()));
    assert!(next.as_mut().poll(&mut cx).is_ready());
    assert!(!has_line(&socket));
}

#[test]
fn waits_that_were_forgotten_leave_with_their_registration() {
    model(|| ends_with_forgotten(1));
}

/// The event has filled a batch and let the lock go when the record ends.
#[test]
fn more_forgotten_waits_than_a_batch_leave_against_an_event() {
    model(|| ends_with_forgotten(3));
}

#[test]
fn an_event_of_the_last_registration_does_not_reach_the_next() {
    model(|| {
        let record = Arc::new(Record::new());
        let driver = thread::spawn({
            let record = record.clone();
            move || record.set(0, Ready::READABLE, &mut Batch::new())
        });
        assert!(record.end().iter().all(Option::is_none));
        // The next one waits, and is woken for nothing at worst.
        let bell = Bell::new();
        let waker = bell.waker();
        let polled = record.poll(&Context::from_waker(&waker), Direction::Read);
        assert!(polled.is_pending(), "the next was told what was meant for the last");
        driver.join().unwrap();
        let polled = record.poll(&Context::from_waker(&waker), Direction::Read);
        assert!(polled.is_pending(), "the next was told what was meant for the last");
        // And its own event reaches it.
        let before = bell.rung();
        assert!(record.set(1, Ready::READABLE, &mut Batch::new()));
        assert_eq!(bell.rung(), before + 1);
    });
}

#[test]
fn a_record_that_ends_against_an_event_keeps_no_waker() {
    model(|| {
        let (record, bell) = (Arc::new(Record::new()), Bell::new());
        let waker = bell.waker();
        for direction in [Direction::Read, Direction::Write] {
            assert!(record.poll(&Context::from_waker(&waker), direction).is_pending());
        }
        drop(waker);
        let driver = thread::spawn({
            let record = record.clone();
            move || record.set(0, Ready::READABLE, &mut Batch::new())
        });
        drop(record.end());
        driver.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&bell), 1, "the record lives, the wakers do not");
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
        assert!(!has_line(&socket));
    });
}

#[test]
fn a_clear_against_a_shutdown_keeps_it() {
    model(|| {
        let socket = socket();
        socket.record.assume(Ready::READABLE);
        let driver = shutdown(&socket);
        let event = socket.record.look(Ready::ALL);
        socket.record.clear(event);
        let event = block_on(poll_fn(|cx| socket.record.poll(cx, Direction::Read)));
        assert!(event.is_shutdown(), "it ended without data, so by the end");
        driver.join().unwrap();
    });
}

/// Batches of a model hold two: the third is dismissed after the lock was let go once, and
/// who joins again meanwhile is left for the next event.
#[test]
fn a_full_batch_against_a_wait_that_joins_again() {
    model(|| {
        let socket = socket();
        // Woken by any event, and waiting on: for nothing that comes.
        let others = [(); 3].map(|()| in_line(&socket, Interest::ERROR));
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
        assert!(!has_line(&socket), "all have gone");
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

#[test]
fn an_event_against_a_postponement_is_not_lost() {
    model(|| {
        let socket = socket();
        socket.record.assume(Ready::READABLE);
        let known = socket.record.look(Direction::Read.mask());
        let driver = event(&socket, Ready::READABLE);
        // Nobody takes it back: the event alone ends the wait.
        socket.record.postpone(known);
        block_on(poll_fn(|cx| socket.poll_take(cx, Direction::Read)));
        driver.join().unwrap();
    });
}

#[test]
fn a_postponement_taken_back_against_an_event_wakes() {
    model(|| {
        let socket = socket();
        socket.record.assume(Ready::READABLE);
        assert!(socket.record.postpone(socket.record.look(Direction::Read.mask())));
        let worker = thread::spawn({
            let socket = socket.clone();
            // What was there from the start, and is not told of by any event.
            move || {
                socket.input.swap(true, Relaxed);
                socket.record.take_back(0, &mut Batch::new());
            }
        });
        // Of a room to write, which is no reason to read.
        let driver = event(&socket, Ready::WRITABLE);
        let tried = block_on(poll_fn(|cx| socket.record.poll(cx, Direction::Read)));
        worker.join().unwrap();
        driver.join().unwrap();
        assert_eq!(tried.ready(), Ready::READABLE);
    });
}
