//! A record under every interleaving: an event or two, and one or two who wait.
//!
//! The kernel is a word that holds data or not. Whoever waits goes on until it has the
//! data: a wake-up that is lost is a deadlock.

use std::{
    future::{Future, poll_fn},
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

/// A future that waits, in line.
fn in_line(socket: &Arc<Socket>, interest: Interest) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let socket = socket.clone();
    let mut waiting: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        let _event = socket.record.wait(interest).await;
    });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
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
