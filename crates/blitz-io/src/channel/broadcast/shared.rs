//! The state that the handles of a broadcast channel share: the buffer, its end, and the wait
//! queues.
//!
//! # Protocol
//! Values are put at the end of the buffer under the tail's lock, one position each. A receiver
//! knows its own position and looks at the slot there without that lock (`slot.rs`). Only if the
//! slot holds another position does the receiver lock the tail, which shows why, and join the
//! wait queue if there is no value yet. A sender puts its value and dismisses the wait queue
//! under the same lock, so neither misses the other.
//!
//! When the wake list is full, the lock is released to wake it, and other receivers may join
//! meanwhile. Each waiter stores the position that it waits for. A waiter for the position that was
//! the end of the buffer when the round began, or for a later one, has come since: it is left to
//! the sender of that position. Positions in the wait queue never decrease, so the first such
//! waiter ends the round. So a round is as long as the wait queue was, however quickly other
//! threads send.
//!
//! # Invariants
//! - Under the tail's lock, a position is in its slot exactly if it is one of the last
//!   `capacity` before the end.
//! - A receiver is counted in every value that was put since it came, until it has seen
//!   or passed it, or it was overwritten.
//! - No waiter in the wait queue of receivers waits for a position before the end, or after the
//!   last sender was dropped, once the lock was free and the round is over.
//!
//! # Checked by
//! `send_against_recv_is_never_left_waiting`, `the_last_sender_against_recv_ends_it`,
//! `a_wake_list_of_receivers_against_a_drop_wakes_the_rest`,
//! `a_lagging_receiver_learns_exactly_how_many_it_missed`,
//! `closed_against_the_last_receiver_ends`; weakened as `broadcast_empty_looks_again`,
//! `broadcast_send_wakes`, `broadcast_close_wakes`, `broadcast_lag_counts`,
//! `broadcast_last_receiver_wakes`.

use super::slot::Slot;
use crate::engine::{
    prim::{
        AtomicUsize,
        store_lock::{ParkBucket, StoreLock, StoreLockGuard},
        weakened,
    },
    wait::{wait_queue::WaitQueue, wake_list::wake_each},
};

/// The shared state of a broadcast channel.
///
/// `repr(C)` keeps the order of the fields, because the compiler would move the bucket behind the
/// tail.
#[repr(C)]
pub(super) struct Shared<T> {
    /// The slots of the buffer, used in turn; their number is a power of two.
    pub(super) slots: Box<[Slot<T>]>,
    pub(super) bucket: ParkBucket,
    pub(super) senders: AtomicUsize,
    pub(super) weak_senders: AtomicUsize,
    /// Padding that keeps what every receive reads off the cache line that every send writes.
    ///
    /// 64 bytes: the cache line of most machines.
    _apart: [u64; 8],
    tail: StoreLock<Tail>,
}

/// The end of the buffer: the next position, the count of receivers, and the wait queues.
pub(super) struct Tail {
    /// The position of the next value.
    pub(super) position: u64,
    pub(super) receivers: u32,
    /// `true` once the last sender was dropped.
    pub(super) closed: bool,
    /// Waiting receivers, each with the position that it waits for.
    pub(super) waiters: WaitQueue<u64>,
    /// Senders that wait until the last receiver is dropped.
    pub(super) closers: WaitQueue<()>,
}

/// Result of looking for a value at a receiver's position.
#[must_use]
pub(super) enum Ahead {
    Value,
    Nothing,
    /// There is no value, and none can come.
    Closed,
    /// This number of values was overwritten.
    Lagged(u64),
}

impl<T> Shared<T> {
    /// Creates a channel with one sender, and `start` as the position of the first value.
    pub(super) fn new(capacity: usize, receivers: u32, start: u64) -> Self {
        let mask = capacity as u64 - 1;
        // The position that the slot would have held one round before the first.
        let stamp = |at: u64| {
            let first = start.wrapping_add(at.wrapping_sub(start) & mask);
            first.wrapping_sub(capacity as u64)
        };
        Self {
            slots: (0..capacity as u64).map(|at| Slot::new(stamp(at))).collect(),
            bucket: ParkBucket::new(),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
            _apart: [0; 8],
            tail: StoreLock::new(Tail {
                position: start,
                receivers,
                closed: false,
                waiters: WaitQueue::new(),
                closers: WaitQueue::new(),
            }),
        }
    }

    /// Locks the tail.
    #[inline]
    pub(super) fn tail(&self) -> StoreLockGuard<'_, Tail> {
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

    /// Returns what a receiver finds at `position`.
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

    /// Wakes the receivers for which there is a value by now.
    ///
    /// A receiver that joins later is woken by the sender of the value that it waits for.
    #[cold]
    pub(super) fn wake_receivers(&self, tail: StoreLockGuard<'_, Tail>) {
        let end = tail.position;
        self.wake(tail, |tail| {
            let awaited = *tail.waiters.first()?;
            let due = tail.closed || end.wrapping_sub(awaited).cast_signed() > 0;
            due.then(|| tail.waiters.dismiss_first())
        });
    }

    /// Wakes the senders that wait until the last receiver is dropped.
    pub(super) fn wake_closers(&self, tail: StoreLockGuard<'_, Tail>) {
        self.wake(tail, |tail| {
            // If a new receiver has subscribed meanwhile, the rest continues to wait.
            (tail.receivers == 0).then_some(())?;
            tail.closers.first()?;
            Some(tail.closers.dismiss_first())
        });
    }

    /// Wakes the waiters that `next` dismisses, one wake list at a time, outside of the lock.
    fn wake<'a>(
        &'a self,
        tail: StoreLockGuard<'a, Tail>,
        next: impl Fn(&mut Tail) -> Option<std::task::Waker>,
    ) {
        wake_each(tail, || self.tail(), |tail| next(tail));
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::mem::offset_of;

    use super::{ParkBucket, Shared};

    #[test]
    fn fields_that_receives_read_share_no_cache_line_with_fields_that_sends_write() {
        const LINE: usize = 64;
        let end_of_bucket = offset_of!(Shared<u64>, bucket) + size_of::<ParkBucket>();
        let end_of_slots = offset_of!(Shared<u64>, slots) + size_of::<Box<[u64]>>();
        let tail = offset_of!(Shared<u64>, tail);
        assert!(
            end_of_bucket.max(end_of_slots) + LINE <= tail,
            "{end_of_bucket} {end_of_slots} {tail}"
        );
    }
}
