//! The owner's handle to a descriptor that the driver watches.
//!
//! Each operation spends one unit of the task's budget when it completes, however many attempts it
//! took.
//!
//! # Invariants
//! 1. The record belongs to the registration from `register` until the registration is dropped,
//!    also after `deregister`. So a caller that still uses the registration cannot touch the record
//!    of another one.
//! 2. Futures that wait borrow the registration, so it does not end before them, unless they were
//!    leaked.
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
    interest::Interest,
    readiness::{Direction, ReadyEvent, Record, RecordWait},
    ready::Ready,
    record_table::OpenRecord,
    shut_down_error,
};
use crate::engine::{
    prim::{AtomicBool, Ordering::Relaxed, weakened},
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

/// A descriptor that is registered with a driver.
pub(crate) struct Registration {
    driver: Arc<Driver>,
    open_record: OpenRecord,
    /// Set while the kernel watches the descriptor.
    watched: AtomicBool,
}

// SAFETY: the record is only accessed through shared references, which any thread may use; the
// driver that owns the record is kept alive by `driver`.
unsafe impl Send for Registration {}
// SAFETY: all methods take `&self` and reach the record, which is `Sync`, and the driver, likewise.
unsafe impl Sync for Registration {}

impl Registration {
    pub(super) fn new(driver: Arc<Driver>, open_record: OpenRecord) -> Self {
        Self { driver, open_record, watched: AtomicBool::new(true) }
    }

    #[inline]
    fn record(&self) -> &Record {
        // SAFETY: records live as long as their table, which the driver owns, and `driver` keeps it
        // alive.
        unsafe { self.open_record.record.as_ref() }
    }

    /// Returns the driver that watches the descriptor, for operations that use its io_uring.
    #[cfg(target_os = "linux")]
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Polls for readiness in a direction without spending budget, for callers that are not tasks.
    #[inline]
    pub(crate) fn poll_record(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<ReadyEvent> {
        note_if_pending(self.record().poll(cx, direction))
    }

    /// Polls for readiness in a direction. Only the task of the most recent call is woken, so at
    /// most one task can wait in each direction.
    #[inline]
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<ReadyEvent>> {
        let unit = ready!(budget::poll_proceed(cx));
        let event = ready!(self.poll_record(cx, direction));
        unit.spend();
        Poll::Ready(alive(event))
    }

    /// Returns a future that waits for any readiness in `interest`; any number of tasks may wait at
    /// once.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub(crate) fn readiness(&self, interest: Interest) -> Readiness<'_> {
        Readiness { wait: self.record().wait(interest) }
    }

    /// Returns the readiness that is known now.
    #[cfg(test)]
    pub(crate) fn ready_event(&self, interest: Interest) -> ReadyEvent {
        self.record().snapshot(interest.mask())
    }

    /// Clears the readiness of a snapshot, except closed ends, unless an event has come since. To
    /// be called after an operation on a stream moved fewer bytes than requested: the stream is
    /// drained or full now, and the next event reports more. (It must not be called after a read of
    /// zero bytes, because after the end of a stream there is no next event.)
    #[inline]
    pub(crate) fn clear_readiness(&self, event: ReadyEvent) {
        let gone = self.record().clear(event);
        if !gone.is_empty() {
            self.driver.selector.rearm(self.open_record.token, gone);
        }
    }

    /// Clears the readiness of a snapshot including closed ends, after one of the runtime's own
    /// operations found that it would block although the snapshot covers everything that could
    /// complete it. Otherwise the operation would be retried for ever.
    #[cold]
    fn refute(&self, event: ReadyEvent, mask: Ready) {
        let gone = self.record().refute(event);
        if gone.is_empty() || weakened!("refute_rearms") {
            return;
        }
        // The whole direction, not only the cleared bits, because an entry of `poll.rs` that has
        // reported an end is disarmed for everything else.
        let armed = if weakened!("refute_rearms_the_direction") { gone } else { mask };
        self.driver.selector.rearm(self.open_record.token, armed);
    }

    /// Assumes readiness until an operation would block; to be called right after `register`.
    pub(crate) fn assume_ready(&self, ready: Ready) {
        self.record().assume(ready);
    }

    /// Calls `f` when there is readiness in a direction, and retries while `f` would block. At most
    /// one task can wait in each direction.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_io_with(cx, direction, |_| f())
    }

    /// Calls `f` like [`poll_io`](Self::poll_io), for a stream: `f` moves up to `wanted` bytes. If
    /// it moves fewer, the next attempt is taken to block, so the readiness is cleared at once.
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

    /// Clears the readiness after a partial transfer: more than zero bytes, but fewer than wanted.
    /// Keeps it if there was ever an urgent byte, because a read stops in front of one.
    #[inline]
    fn note_moved(&self, event: ReadyEvent, moved: usize, wanted: usize) {
        if 0 < moved && moved < wanted && !self.was_urgent() {
            self.clear_readiness(event);
        }
    }

    /// Returns true if an out-of-band byte was ever reported; only registrations with priority
    /// interest know.
    #[inline]
    fn was_urgent(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return !self.record().snapshot(Ready::PRIORITY).ready().is_empty();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    #[inline]
    fn poll_io_with<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut f: impl FnMut(ReadyEvent) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let unit = ready!(budget::poll_proceed(cx));
        loop {
            let event = ready!(self.poll_record(cx, direction));
            let result = alive(event).and_then(&mut f);
            if !would_block(&result) {
                unit.spend();
                return Poll::Ready(result);
            }
            self.refute(event, direction.mask());
        }
    }

    /// Calls `f` if there is known readiness in `interest`.
    ///
    /// # Errors
    /// Returns `WouldBlock` if nothing is known to be ready, also after the driver has ended;
    /// otherwise the error of `f`.
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

    /// Calls `f` like [`try_io`](Self::try_io), for one of the runtime's own operations in a single
    /// direction, which `interest` names: if it would block, closed ends are cleared too.
    ///
    /// # Errors
    /// Returns `WouldBlock` if nothing is known to be ready; otherwise the error of `f`.
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
        let event = self.record().snapshot(interest.mask());
        if event.ready().is_empty() {
            // Also after the end of the driver, as in Tokio: only calls that wait report the
            // shutdown.
            return (event, Err(io::ErrorKind::WouldBlock.into()));
        }
        (event, f())
    }

    /// Calls `f` when there is readiness in `interest`, and retries while `f` would block; any
    /// number of tasks may wait at once.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: `f` is called only in polls that complete, or it would
    /// block.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.readiness(interest).await?;
            let unit = poll_fn(budget::poll_proceed).await;
            let result = f();
            if !would_block(&result) {
                unit.spend();
                return result;
            }
            self.clear_readiness(event);
            if event.ready().meets(Ready::READ_CLOSED | Ready::WRITE_CLOSED) {
                // Closed ends stay set, so `f` is retried at once, perhaps for ever: spending a
                // unit lets other tasks run.
                unit.spend();
            }
        }
    }

    /// Calls `f` like [`async_io`](Self::async_io), for one of the runtime's own operations in a
    /// single direction, which `interest` names: if it would block, closed ends are cleared too.
    pub(crate) async fn async_op<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let event = self.readiness(interest).await?;
            let unit = poll_fn(budget::poll_proceed).await;
            let result = f();
            if !would_block(&result) {
                unit.spend();
                return result;
            }
            self.refute(event, interest.mask());
        }
    }

    /// Stops watching the descriptor; to be called before it is closed. Does not wake any waiter.
    ///
    /// # Errors
    /// Returns the system's error on the first call; later calls do nothing and return `Ok`.
    pub(crate) fn deregister(&self, fd: Fd<'_>) -> io::Result<()> {
        // Relaxed: only decides which of two callers deregisters.
        if !self.watched.swap(false, Relaxed) {
            return Ok(());
        }
        self.driver.counters.deregistered();
        self.driver.selector.remove(fd, self.open_record.token)
    }
}

/// Records for diagnostics that a pending task waits for an I/O event.
#[inline]
fn note_if_pending<T>(polled: Poll<T>) -> Poll<T> {
    if polled.is_pending() {
        thread_context::waits_for(WaitReason::Event);
    }
    polled
}

/// Returns the event, or the shutdown error if the driver has ended.
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
        // Relaxed: `&mut self` means that no other thread has access.
        if self.watched.swap(false, Relaxed) {
            self.driver.counters.deregistered();
            self.driver.selector.forget(self.open_record.token);
        }
        self.driver.record_table.close(self.open_record);
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
        wait: RecordWait<'a>,
    }
}

impl Future for Readiness<'_> {
    type Output = io::Result<ReadyEvent>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        note_if_pending(self.project().wait.poll(cx)).map(alive)
    }
}
