//! A descriptor that a driver watches, as its owner sees it.
//!
//! Each operation spends a unit of the task's budget when it completes, whatever it took
//! to get there.
//!
//! # Invariants
//! 1. The record is the registration's own from `register` until its drop, also after
//!    `deregister`. So nobody who still asks can touch the record of another.
//! 2. Futures that wait borrow the registration: it does not end before them, unless they
//!    were forgotten.
//!
//! # Checked by
//! `an_event_against_a_read_that_would_block_is_not_lost`, `a_refuted_end_is_armed_again`;
//! weakened as `refute_rearms`, `refute_rearms_the_direction`.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use super::{
    Driver, Fd,
    habit::Habit,
    interest::Interest,
    readiness::{Direction, ReadyEvent, Record, Waited},
    ready::Ready,
    shut_down_error,
    sources::Source,
};
use crate::engine::{
    prim::{AtomicBool, Ordering::Relaxed, weakened},
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

/// See the module.
pub(crate) struct Registration {
    driver: Arc<Driver>,
    source: Source,
    /// The kernel has it.
    watched: AtomicBool,
    /// What its reads tell of the next one.
    habit: Habit,
}

// SAFETY: the record is only shared, and may be from any thread; the driver that keeps it
// is the registration's own.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

impl Registration {
    pub(super) fn new(driver: Arc<Driver>, source: Source) -> Self {
        Self { driver, source, watched: AtomicBool::new(true), habit: Habit::default() }
    }

    #[inline]
    fn record(&self) -> &Record {
        // SAFETY: records live as long as their table, which is the driver's, which is ours.
        unsafe { self.source.record.as_ref() }
    }

    /// Which driver watches it; the ring's users ask.
    #[cfg(target_os = "linux")]
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// As [`poll_ready`](Self::poll_ready), for who is no task: it costs no budget.
    #[inline]
    pub(crate) fn poll_record(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<ReadyEvent> {
        said(self.record().poll(cx, direction))
    }

    /// Waits until something can be done in that direction. The task that asked last is
    /// the one that is woken: one task each way.
    #[inline]
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<ReadyEvent>> {
        let unit = ready!(budget::proceed(cx));
        let event = ready!(self.poll_record(cx, direction));
        unit.spend();
        Poll::Ready(alive(event))
    }

    /// Waits until something of the interest can be done; any number of tasks at a time.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) fn readiness(&self, interest: Interest) -> Readiness<'_> {
        Readiness { waited: self.record().wait(interest) }
    }

    /// What is known now.
    #[cfg(test)]
    pub(crate) fn ready_event(&self, interest: Interest) -> ReadyEvent {
        self.record().look(interest.mask())
    }

    /// Forgets what the event said, except closed ends, unless there was another since. To
    /// be called after an operation on a stream moved less than it could have: what was
    /// there is gone, and the next event tells of more. (After the end, which reads nothing,
    /// there is no next event: then it is not called.)
    #[inline]
    pub(crate) fn clear_readiness(&self, event: ReadyEvent) {
        let gone = self.record().clear(event);
        if !gone.is_empty() {
            self.driver.selector.rearm(self.source.token, gone);
        }
    }

    /// An operation of ours would block, of which the event said all that there is to say:
    /// forgets that, closed ends and all. It would be tried for ever otherwise.
    #[cold]
    fn refute(&self, event: ReadyEvent, mask: Ready) {
        let gone = self.record().refute(event);
        if gone.is_empty() || weakened!("refute_rearms") {
            return;
        }
        // Not only what is gone: who tells an end tells nothing else any more (see `poll`).
        let armed = if weakened!("refute_rearms_the_direction") { gone } else { mask };
        self.driver.selector.rearm(self.source.token, armed);
    }

    /// Takes it to be ready until an operation says otherwise; right after `register`.
    pub(crate) fn assume_ready(&self, ready: Ready) {
        self.record().assume(ready);
    }

    /// Calls `f` when something can be done in that direction, and again as long as it
    /// would block. One task each way.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_io_with(cx, direction, |_| f())
    }

    /// As [`poll_io`](Self::poll_io), for a stream: `f` moves up to `wanted` bytes, and
    /// having moved fewer is as good as an answer that the next one would block.
    #[inline]
    pub(crate) fn poll_move(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        wanted: usize,
        mut f: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io_with(cx, direction, |event| {
            let moved = f()?;
            self.note_moved(event, moved, wanted);
            Ok(moved)
        })
    }

    /// Clears readiness if fewer bytes were moved than wanted, and not none at all. Not if
    /// there was an urgent byte, in front of which a read ends.
    #[inline]
    fn note_moved(&self, event: ReadyEvent, moved: usize, wanted: usize) {
        if 0 < moved && moved < wanted && !self.was_urgent() {
            self.clear_readiness(event);
        }
    }

    /// Whether there was ever a byte out of band, as far as the registration asks for it.
    #[inline]
    fn was_urgent(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return !self.record().look(Ready::PRIORITY).ready().is_empty();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    /// Whether a read by that event is put off until the next one, or until this worker has
    /// nothing else to do (`postponed`).
    #[inline]
    fn postpones(&self, event: ReadyEvent, direction: Direction) -> bool {
        direction == Direction::Read && self.habit.postpones(event.tick()) && self.postpone(event)
    }

    fn postpone(&self, event: ReadyEvent) -> bool {
        // Until it is in the list: who has the core then looks there.
        let _inside = current::inside();
        let Some(worker) = current::worker_of_driver(Arc::as_ptr(&self.driver).cast()) else {
            return false;
        };
        if !self.record().postpone(event) {
            return false;
        }
        self.habit.postponed();
        self.driver.selector.rearm(self.source.token, Ready::READABLE);
        self.driver.postponed.put(worker, self.source.token);
        true
    }

    #[inline]
    fn poll_io_with<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut f: impl FnMut(ReadyEvent) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let unit = ready!(budget::proceed(cx));
        loop {
            let event = ready!(self.poll_record(cx, direction));
            if self.postpones(event, direction) {
                continue;
            }
            let result = alive(event).and_then(&mut f);
            if !would_block(&result) {
                self.note_done(event, direction, &result);
                unit.spend();
                return Poll::Ready(result);
            }
            self.note_nothing(event, direction);
        }
    }

    /// A call succeeded: there may be more.
    #[inline]
    fn note_done<R>(&self, event: ReadyEvent, direction: Direction, result: &io::Result<R>) {
        if direction == Direction::Read && result.is_ok() {
            self.habit.read(event.tick());
        }
    }

    /// A call would block.
    #[inline]
    fn note_nothing(&self, event: ReadyEvent, direction: Direction) {
        if direction == Direction::Read {
            self.habit.found_nothing(event.tick());
        }
        self.refute(event, direction.mask());
    }

    /// Calls `f` if it is known that something of the interest can be done.
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be done, as far as is known; what `f` says; that the
    /// driver has ended and nothing will be known any more.
    #[inline]
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let (event, result) = self.attempt(interest, f);
        if would_block(&result) {
            self.clear_readiness(event);
        }
        result
    }

    /// As [`try_io`](Self::try_io), for an operation of ours that goes one way, which the
    /// interest is.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn try_op<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let (event, result) = self.attempt(interest, f);
        if would_block(&result) {
            self.refute(event, interest.mask());
        }
        result
    }

    #[inline]
    fn attempt<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> (ReadyEvent, io::Result<R>) {
        let event = self.record().look_closely(interest.mask());
        if event.ready().is_empty() {
            return (event, alive(event).and_then(|_| Err(io::ErrorKind::WouldBlock.into())));
        }
        (event, f())
    }

    /// Calls `f` when something of the interest can be done, and again as long as it would
    /// block; any number of tasks at a time.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: `f` is called only in polls that complete, or finds that it
    /// would block.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.readiness(interest).await?;
            let unit = poll_fn(budget::proceed).await;
            let result = f();
            if !would_block(&result) {
                unit.spend();
                return result;
            }
            self.clear_readiness(event);
            if event.ready().meets(Ready::READ_CLOSED | Ready::WRITE_CLOSED) {
                // What is closed stays so, and `f` is tried again at once, perhaps for ever:
                // others have their turn.
                unit.spend();
            }
        }
    }

    /// As [`async_io`](Self::async_io), for an operation of ours that goes one way, which
    /// the interest is.
    pub(crate) async fn async_op<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let direction = if interest.is_writable() { Direction::Write } else { Direction::Read };
        loop {
            let event = self.readiness(interest).await?;
            if self.postpones(event, direction) {
                continue;
            }
            let unit = poll_fn(budget::proceed).await;
            let result = f();
            if !would_block(&result) {
                self.note_done(event, direction, &result);
                unit.spend();
                return result;
            }
            self.note_nothing(event, direction);
        }
    }

    /// The driver watches it no more; before the descriptor is closed. Wakes nobody.
    ///
    /// # Errors
    /// What the system says; nothing the second time.
    pub(crate) fn deregister(&self, fd: Fd<'_>) -> io::Result<()> {
        // Relaxed: only says who of two does it.
        if !self.watched.swap(false, Relaxed) {
            return Ok(());
        }
        self.driver.counters.deregistered();
        self.driver.selector.remove(fd, self.source.token)
    }
}

/// Says of a task that waits what it waits for.
#[inline]
fn said<T>(polled: Poll<T>) -> Poll<T> {
    if polled.is_pending() {
        current::waits_for(Wait::Event);
    }
    polled
}

/// An event, unless it is that the driver has ended.
#[inline]
fn alive(event: ReadyEvent) -> io::Result<ReadyEvent> {
    if event.is_shutdown() { Err(shut_down_error()) } else { Ok(event) }
}

#[inline]
fn would_block<R>(result: &io::Result<R>) -> bool {
    result.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::WouldBlock)
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Relaxed: we are alone.
        if self.watched.swap(false, Relaxed) {
            self.driver.counters.deregistered();
            self.driver.selector.forget(self.source.token);
        }
        self.driver.sources.close(self.source);
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("record", self.record()).finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`Registration::readiness`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) struct Readiness<'a> {
        #[pin]
        waited: Waited<'a>,
    }
}

impl Future for Readiness<'_> {
    type Output = io::Result<ReadyEvent>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        said(self.project().waited.poll(cx)).map(alive)
    }
}
