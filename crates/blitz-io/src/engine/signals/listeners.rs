//! The listeners of one kind of signal: a slot for each, with its waker.
//!
//! Slots are behind a lock, which is held for a few instructions: to add one, to remove one, and to
//! take wakers, which are called after it was released. A waker itself is in a [`WakerCell`], so a
//! poll takes no lock.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use super::SignalRegistry;
use crate::engine::{
    prim::{lock, weakened},
    wait::waker_cell::WakerCell,
    work::task::budget,
};

/// The slots of one kind.
#[derive(Debug)]
pub(super) struct Listeners {
    slots: Vec<Option<Arc<WakerCell>>>,
    free: Vec<usize>,
}

impl Listeners {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn add(&mut self) -> (usize, Arc<WakerCell>) {
        let cell = Arc::new(WakerCell::new());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(cell.clone());
        (slot, cell)
    }

    fn remove(&mut self, slot: usize) -> Option<Arc<WakerCell>> {
        self.free.push(slot);
        let cell = self.slots[slot].take();
        if self.free.len() == self.slots.len() {
            // This was the last listener, so the memory that many listeners needed is freed.
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
        cell
    }

    /// Takes the next waker from `slot` on, and moves `slot` past it. A listener that is added
    /// after the walk has begun need not be woken, because it begins with the count that is being
    /// dispatched.
    pub(super) fn take_from(&mut self, slot: &mut usize) -> Option<Waker> {
        while let Some(cell) = self.slots.get(*slot) {
            *slot += 1;
            if let Some(waker) = cell.as_ref().and_then(|cell| cell.take()) {
                return Some(waker);
            }
        }
        None
    }

    #[cfg(any(windows, test))]
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// A listener of one kind of signal.
pub(crate) struct SignalListener<'a, P> {
    registry: &'a SignalRegistry<P>,
    kind: usize,
    slot: usize,
    cell: Arc<WakerCell>,
    /// The last delivery that this listener has seen.
    seen: u64,
}

impl<'a, P> SignalListener<'a, P> {
    pub(super) fn new(
        registry: &'a SignalRegistry<P>,
        kind: usize,
        slot: usize,
        cell: Arc<WakerCell>,
        seen: u64,
    ) -> Self {
        Self { registry, kind, slot, cell, seen }
    }

    /// Returns `Ready` if there was a delivery since the last time; many deliveries are merged into
    /// one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::poll_proceed(cx));
        if !self.see_delivery() {
            // L2, and then L3: registers the waker, and checks again.
            self.cell.register(cx.waker());
            if weakened!("signal_listener_checks_again") || !self.see_delivery() {
                return Poll::Pending;
            }
        }
        unit.spend();
        if !weakened!("signal_listener_dispatches") {
            // The signal may have come before any notification was handled.
            self.registry.dispatch(self.kind);
        }
        Poll::Ready(())
    }

    /// Performs L1: returns whether there is a new delivery, and marks it as seen.
    fn see_delivery(&mut self) -> bool {
        let delivered = self.registry.delivered(self.kind);
        let is_new = delivered > self.seen;
        self.seen = self.seen.max(delivered);
        is_new
    }

    #[cfg_attr(windows, allow(dead_code, reason = "Unix names it"))]
    pub(crate) fn kind(&self) -> usize {
        self.kind
    }
}

impl<P> Drop for SignalListener<'_, P> {
    fn drop(&mut self) {
        let cell = lock(&self.registry.listeners[self.kind]).remove(self.slot);
        // The cell may hold a user's waker, so it is dropped here: the lock was released at the end
        // of the statement above.
        drop(cell);
    }
}

impl<P> std::fmt::Debug for SignalListener<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalListener").field("kind", &self.kind).finish_non_exhaustive()
    }
}
