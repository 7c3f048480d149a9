//! The listeners of one kind of signal: a seat for each, with its waker.
//!
//! Seats are behind a lock, which is held for a few instructions: to add one, to remove one, and to
//! take wakers, which are called after it was released. A waker itself is in a [`WakerCell`], so a
//! poll takes no lock.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use super::Hall;
use crate::engine::{
    prim::{lock, weakened},
    wait::waker_cell::WakerCell,
    work::task::budget,
};

/// The seats of one kind.
#[derive(Debug)]
pub(super) struct Listeners {
    seats: Vec<Option<Arc<WakerCell>>>,
    free: Vec<usize>,
}

impl Listeners {
    pub(super) fn new() -> Self {
        Self { seats: Vec::new(), free: Vec::new() }
    }

    pub(super) fn add(&mut self) -> (usize, Arc<WakerCell>) {
        let cell = Arc::new(WakerCell::new());
        let seat = self.free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        self.seats[seat] = Some(cell.clone());
        (seat, cell)
    }

    fn leave(&mut self, seat: usize) -> Option<Arc<WakerCell>> {
        self.free.push(seat);
        let cell = self.seats[seat].take();
        if self.free.len() == self.seats.len() {
            // This was the last listener, so the memory that many listeners needed is freed.
            (self.seats, self.free) = (Vec::new(), Vec::new());
        }
        cell
    }

    /// Takes the next waker from `seat` on, and moves `seat` past it. A listener that is added
    /// after the walk has begun need not be woken, because it begins with the count that is being
    /// dispatched.
    pub(super) fn take_from(&mut self, seat: &mut usize) -> Option<Waker> {
        while let Some(cell) = self.seats.get(*seat) {
            *seat += 1;
            if let Some(waker) = cell.as_ref().and_then(|cell| cell.take()) {
                return Some(waker);
            }
        }
        None
    }

    #[cfg(any(windows, test))]
    pub(super) fn count(&self) -> usize {
        self.seats.len() - self.free.len()
    }
}

/// A listener of one kind of signal.
pub(crate) struct Listening<'a, P> {
    hall: &'a Hall<P>,
    kind: usize,
    seat: usize,
    cell: Arc<WakerCell>,
    /// The last delivery that this listener has seen.
    seen: u64,
}

impl<'a, P> Listening<'a, P> {
    pub(super) fn new(
        hall: &'a Hall<P>,
        kind: usize,
        seat: usize,
        cell: Arc<WakerCell>,
        seen: u64,
    ) -> Self {
        Self { hall, kind, seat, cell, seen }
    }

    /// Returns `Ready` if there was a delivery since the last time; many deliveries are merged into
    /// one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::poll_proceed(cx));
        if !self.look() {
            // L2, and then L3: registers the waker, and checks again.
            self.cell.register(cx.waker());
            if weakened!("signal_listener_looks_again") || !self.look() {
                return Poll::Pending;
            }
        }
        unit.spend();
        if !weakened!("signal_listener_tells") {
            // The signal may have come before any bell was heard.
            self.hall.tell(self.kind);
        }
        Poll::Ready(())
    }

    /// Performs L1: returns whether there is a new delivery, and marks it as seen.
    fn look(&mut self) -> bool {
        let delivered = self.hall.delivered(self.kind);
        let is_new = delivered > self.seen;
        self.seen = self.seen.max(delivered);
        is_new
    }

    #[cfg_attr(windows, allow(dead_code, reason = "Unix names it"))]
    pub(crate) fn kind(&self) -> usize {
        self.kind
    }
}

impl<P> Drop for Listening<'_, P> {
    fn drop(&mut self) {
        let cell = lock(&self.hall.listeners[self.kind]).leave(self.seat);
        // The cell may hold a user's waker, so it is dropped here: the lock was released at the end
        // of the statement above.
        drop(cell);
    }
}

impl<P> std::fmt::Debug for Listening<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("kind", &self.kind).finish_non_exhaustive()
    }
}
