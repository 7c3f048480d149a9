//! What the handles of a channel share: the ring, its end, and who waits there.
//!
//! # Protocol
//! Values are put at the end of the ring under the tail's lock, one position each. A
//! receiver knows its own position and looks at the slot there without that lock
//! (`slot.rs`). Only if the slot holds another position does it lock the tail, which
//! tells why, and joins the line if nothing is there yet. A sender puts its value and
//! dismisses the line under the same lock, so neither misses the other.
//!
//! A full batch of wakers means letting the lock go, and others may join meanwhile.
//! Each in line says which position it waits for, and whoever waits for the end that
//! the ring had when the round began, or for more, has come since: these are left to
//! whoever sends that. Positions in line never fall, so the first of these ends the
//! round, which is as long as the line was, however quickly others send.
//!
//! # Invariants
//! - Under the tail's lock, a position is in its slot exactly if it is one of the last
//!   `capacity` before the end.
//! - A receiver is counted in every value that was put since it came, until it has seen
//!   or passed it, or it was overwritten.
//! - Nobody is in the line of receivers who waits for a position before the end, or
//!   after the last sender has gone, once the lock was free and the round is over.
//!
//! # Checked by
//! `send_against_recv_is_never_left_waiting`, `the_last_sender_against_recv_ends_it`,
//! `a_batch_of_receivers_against_a_drop_wakes_the_rest`,
//! `a_lagging_receiver_is_told_exactly_how_many`,
//! `closed_against_the_last_receiver_ends`; weakened as `broadcast_empty_looks_again`,
//! `broadcast_send_wakes`, `broadcast_close_wakes`, `broadcast_lag_counts`,
//! `broadcast_last_receiver_wakes`.

use super::slot::Slot;
use crate::engine::{
    prim::{
        AtomicUsize,
        bolt::{Bolted, Gate, Opened},
        weakened,
    },
    wait::{batch::wake_each, line::Line},
};

/// See the module. In the order that is written: the compiler would move the gate behind
/// the tail.
#[repr(C)]
pub(super) struct Shared<T> {
    /// As many as a power of two.
    pub(super) slots: Box<[Slot<T>]>,
    pub(super) gate: Gate,
    pub(super) senders: AtomicUsize,
    pub(super) weak_senders: AtomicUsize,
    /// Keeps what every receive reads off the line that every send writes. 64 bytes: a
    /// line of most machines.
    _apart: [u64; 8],
    tail: Bolted<Tail>,
}

/// The end of the ring.
pub(super) struct Tail {
    /// The position of the next value.
    pub(super) position: u64,
    pub(super) receivers: u32,
    /// The last sender has gone.
    pub(super) closed: bool,
    /// Receivers, with the position that each waits for.
    pub(super) line: Line<u64>,
    /// Senders that wait for the last receiver to go.
    pub(super) closers: Line<()>,
}

/// What there is for a receiver at its position.
#[must_use]
pub(super) enum Ahead {
    Value,
    Nothing,
    /// Nothing, and nothing will come.
    Closed,
    /// So many are gone.
    Lagged(u64),
}

impl<T> Shared<T> {
    /// A ring whose first value has the position `start`, with one sender.
    pub(super) fn new(capacity: usize, receivers: u32, start: u64) -> Self {
        let mask = capacity as u64 - 1;
        // The position that the slot would have held a round before the first.
        let stamp = |at: u64| {
            let first = start.wrapping_add(at.wrapping_sub(start) & mask);
            first.wrapping_sub(capacity as u64)
        };
        Self {
            slots: (0..capacity as u64).map(|at| Slot::new(stamp(at))).collect(),
            gate: Gate::new(),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
            _apart: [0; 8],
            tail: Bolted::new(Tail {
                position: start,
                receivers,
                closed: false,
                line: Line::new(),
                closers: Line::new(),
            }),
        }
    }

    /// Locks the tail.
    #[inline]
    pub(super) fn tail(&self) -> Opened<'_, Tail> {
        self.tail.lock()
    }

    #[inline]
    pub(super) fn slot(&self, position: u64) -> &Slot<T> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    /// What there is at `position`.
    pub(super) fn ahead(&self, tail: &Tail, position: u64) -> Ahead {
        let behind = tail.position.wrapping_sub(position);
        if behind > self.capacity() {
            let gone = behind - self.capacity();
            return Ahead::Lagged(if weakened!("broadcast_lag_counts") { behind } else { gone });
        }
        match behind {
            0 if tail.closed => Ahead::Closed,
            0 => Ahead::Nothing,
            _ => Ahead::Value,
        }
    }

    /// Wakes the receivers for whom there is something by now. Who comes later is the
    /// duty of whoever sends what it waits for.
    #[cold]
    pub(super) fn wake_receivers(&self, tail: Opened<'_, Tail>) {
        let end = tail.position;
        self.wake(tail, |tail| {
            let awaited = *tail.line.first()?;
            let due = tail.closed || end.wrapping_sub(awaited).cast_signed() > 0;
            due.then(|| tail.line.dismiss_first())
        });
    }

    /// Wakes the senders that wait for the last receiver to go.
    pub(super) fn wake_closers(&self, tail: Opened<'_, Tail>) {
        self.wake(tail, |tail| {
            // Another receiver has come meanwhile: the rest goes on waiting.
            (tail.receivers == 0).then_some(())?;
            tail.closers.first()?;
            Some(tail.closers.dismiss_first())
        });
    }

    /// Wakes whom `next` dismisses, batch by batch, outside of the lock.
    fn wake<'a>(
        &'a self,
        tail: Opened<'a, Tail>,
        next: impl Fn(&mut Tail) -> Option<std::task::Waker>,
    ) {
        wake_each(tail, || self.tail(), |tail| next(tail));
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::mem::offset_of;

    use super::{Gate, Shared};

    #[test]
    fn what_a_receive_reads_shares_no_line_with_what_a_send_writes() {
        const LINE: usize = 64;
        let end_of_gate = offset_of!(Shared<u64>, gate) + size_of::<Gate>();
        let end_of_slots = offset_of!(Shared<u64>, slots) + size_of::<Box<[u64]>>();
        let tail = offset_of!(Shared<u64>, tail);
        assert!(
            end_of_gate.max(end_of_slots) + LINE <= tail,
            "{end_of_gate} {end_of_slots} {tail}"
        );
    }
}
