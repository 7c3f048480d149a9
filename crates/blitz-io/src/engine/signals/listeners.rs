//! Who listens to one kind of signal: a seat for each, and its waker.
//!
//! Seats are behind a lock, which is held for a few instructions: to add one, to take one
//! out, and to take wakers, which are called after it was let go. A waker itself is in a
//! [`WakerCell`], so who polls takes no lock.

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
            // The last one: what a crowd needed is not kept for nobody.
            (self.seats, self.free) = (Vec::new(), Vec::new());
        }
        cell
    }

    /// The next waker from that seat on, which is moved on. Who comes later than the walk
    /// has begun needs no call: it begins with what is told.
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

/// One who listens to one kind.
pub(crate) struct Listening<'a, P> {
    hall: &'a Hall<P>,
    kind: usize,
    seat: usize,
    cell: Arc<WakerCell>,
    /// The last delivery that it was told of.
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

    /// Ready if there was a delivery since the last time; many are one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::proceed(cx));
        if !self.look() {
            // L2 and L3.
            self.cell.register(cx.waker());
            if weakened!("signal_listener_looks_again") || !self.look() {
                return Poll::Pending;
            }
        }
        unit.spend();
        if !weakened!("signal_listener_tells") {
            // It may have come before any bell was heard.
            self.hall.tell(self.kind);
        }
        Poll::Ready(())
    }

    /// L1.
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
        // It may have a user's waker: the lock was let go at the end of the statement above.
        drop(cell);
    }
}

impl<P> std::fmt::Debug for Listening<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("kind", &self.kind).finish_non_exhaustive()
    }
}
