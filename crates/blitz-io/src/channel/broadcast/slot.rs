//! One slot of the buffer: a value, and the number of receivers that have not seen it yet.
//!
//! Values need not be `Sync`, so two receivers must never clone the same value at the same time:
//! a receiver locks the slot while it clones.
//!
//! # Protocol
//! ```text
//! a receiver, at position p                 a sender, which holds the tail's lock
//! R1 reads the stamp: p, else leaves        S1 reads `remaining`: 0, none is counted,
//! R2 locks the slot                            or goes to S2
//! R3 reads the stamp again: p, or unlocks   S2 locks the slot
//! R4 clones the value                       S3 writes the value, `remaining`, the stamp
//! R5 counts itself off; the last one        S4 unlocks, if it locked
//!    takes the value out. Unlocks
//! ```
//! Without S2 the sender is alone nevertheless: a receiver that passes R3 is counted in the
//! stored value, so `remaining` is not 0 until R5. A receiver that is between R1 and R3 and not
//! counted (because it is being dropped, and was overtaken by a whole round) finds another
//! stamp, and accesses nothing but the lock.
//!
//! # Invariants
//! - There is a value exactly if `remaining` is not 0, whenever the lock is free.
//! - A value is dropped outside of the lock. It is cloned inside, which runs user code: a clone
//!   that accesses the same slot deadlocks.
//!
//! # Rejected
//! - The value itself, without a clone, for the last receiver that wants it: Tokio clones for
//!   every receiver, and programs can observe the difference (by a clone that panics, or
//!   counts).
//! - A count and a lock in one word: a receiver that is being dropped would write to a word that
//!   the sender believes to be its own at S1.
//! - Moving the value out for the time of the clone, so that no sender waits for user code:
//!   putting it back is an exchange, which costs every receiver what a slow clone costs a sender
//!   that has come around the whole buffer.
//!
//! # Checked by
//! `overwrite_against_read_is_seen_whole_or_missed`,
//! `two_receivers_never_clone_at_once`,
//! `a_value_seen_by_all_leaves_its_slot_to_the_sender`,
//! `a_receiver_overtaken_while_it_is_dropped_touches_nothing`,
//! `a_receiver_dropped_against_an_overwrite_drops_each_value_once`; weakened as
//! `broadcast_stamp_release`, `broadcast_stamp_acquire`, `broadcast_stamp_again`,
//! `broadcast_remaining_acquire`, `broadcast_remaining_release`,
//! `broadcast_overwrite_locks`. Clones that panic: `a_clone_that_panics_counts_as_seen`.

use crate::engine::{
    prim::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        UnsafeCell,
        store_lock::{ParkBucket, RawStoreLock},
        weakened,
    },
    work::thread_context::LockHeldGuard,
};

/// A slot of the buffer, with its lock.
pub(super) struct Slot<T> {
    /// The position of the value that was put here last.
    stamp: AtomicU64,
    raw: RawStoreLock,
    /// The number of receivers that have not seen the value.
    ///
    /// Written only by a thread that has exclusive access to the slot.
    remaining: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: a thread with a reference to the value has exclusive access to it (see the protocol),
// and the value may move between threads.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Creates an empty slot; `stamp` must be a position that no receiver looks for.
    pub(super) fn new(stamp: u64) -> Self {
        Self {
            stamp: AtomicU64::new(stamp),
            raw: RawStoreLock::new(),
            remaining: AtomicU32::new(0),
            value: UnsafeCell::new(None),
        }
    }

    /// Returns `true` if any receiver has not seen the value.
    pub(super) fn is_wanted(&self) -> bool {
        // Relaxed: only a count; the value is not accessed.
        self.remaining.load(Relaxed) != 0
    }

    /// Puts a value into the slot (S1 to S4).
    ///
    /// Returns the previous value if not every receiver had seen it. The caller must drop it
    /// after the tail's lock is released.
    ///
    /// # Safety
    /// 1. The caller holds the tail's lock.
    /// 2. Every receiver that is counted in `count` takes the value at `position`, or passes it.
    #[inline]
    pub(super) unsafe fn put(
        &self,
        position: u64,
        count: u32,
        value: T,
        bucket: &ParkBucket,
    ) -> Option<T> {
        let order = if weakened!("broadcast_remaining_acquire") { Relaxed } else { Acquire };
        // Acquire: the previous value was moved out before. Pairs with the Release in `end`.
        if self.remaining.load(order) == 0 || weakened!("broadcast_overwrite_locks") {
            // SAFETY: 1. of `write`: by our obligation 1 the caller holds the tail's lock. 2. No
            // receiver is counted, so none passes R3.
            return unsafe { self.write(position, count, value) };
        }
        let _locked = self.lock(bucket);
        // SAFETY: 1. of `write`: by our obligation 1 the caller holds the tail's lock. 2. We
        // hold the slot's lock.
        unsafe { self.write(position, count, value) }
    }

    /// Writes the value, `remaining` and the stamp (S3).
    ///
    /// # Safety
    /// 1. The caller holds the tail's lock.
    /// 2. It holds the slot's lock, too, or no receiver is counted in the stored value.
    #[inline]
    unsafe fn write(&self, position: u64, count: u32, value: T) -> Option<T> {
        // SAFETY: by our obligation 1 no other sender accesses the value, and by 2 no receiver
        // does.
        let old = self.value.with_mut(|slot| unsafe { (*slot).replace(value) });
        // Relaxed: the stamp publishes it.
        self.remaining.store(count, Relaxed);
        let order = if weakened!("broadcast_stamp_release") { Relaxed } else { Release };
        // Release: publishes the value and the count. Pairs with the Acquire in `at`.
        self.stamp.store(position, order);
        old
    }

    /// Locks the slot if its value is that of `position` (R1 to R3).
    ///
    /// The caller must be counted in that value, and must not have seen it.
    #[inline]
    pub(super) fn at<'a>(
        &'a self,
        position: u64,
        bucket: &'a ParkBucket,
    ) -> Option<LockedSlot<'a, T>> {
        let order = if weakened!("broadcast_stamp_acquire") { Relaxed } else { Acquire };
        // Acquire: sees the value of a sender that took no lock. Pairs with the Release in
        // `write`.
        if self.stamp.load(order) != position {
            return None;
        }
        let locked = self.lock(bucket);
        // Relaxed: a sender that overwrites a value in which we are counted had the slot's lock.
        let same = self.stamp.load(Relaxed) == position;
        (same || weakened!("broadcast_stamp_again")).then_some(locked)
    }

    #[inline]
    fn lock<'a>(&'a self, bucket: &'a ParkBucket) -> LockedSlot<'a, T> {
        self.raw.lock(bucket);
        LockedSlot { slot: self, bucket, unseen: None }
    }
}

/// A locked slot that holds the value its holder looked for.
pub(super) struct LockedSlot<'a, T> {
    slot: &'a Slot<T>,
    bucket: &'a ParkBucket,
    /// The new value of `remaining`, if the holder has counted itself off.
    unseen: Option<u32>,
}

impl<T> LockedSlot<'_, T> {
    /// Clones the value and counts the holder off (R4 and R5).
    #[inline]
    pub(super) fn see(mut self) -> T
    where
        T: Clone,
    {
        // Counted off first, so that a value with a `clone` that panics counts as seen.
        self.count_off();
        // The clone runs user code under the lock.
        let _holding = LockHeldGuard::lock();
        // SAFETY: we hold the lock, so there is no other reference.
        self.slot.value.with(|value| unsafe { (*value).clone() }).expect("counted, so it is there")
    }

    /// Counts the holder off without a clone, because it does not want the value (R5 alone).
    #[inline]
    pub(super) fn pass(mut self) {
        self.count_off();
    }

    #[inline]
    fn count_off(&mut self) {
        // Relaxed: we hold the lock.
        self.unseen = Some(self.slot.remaining.load(Relaxed) - 1);
    }

    /// Stores the new count (the end of R5), and returns the value if no receiver wants it any
    /// more.
    #[inline]
    fn end(&mut self) -> Option<T> {
        let unseen = self.unseen?;
        let value = match unseen {
            // SAFETY: we hold the lock, so there is no other reference.
            0 => self.slot.value.with_mut(|value| unsafe { (*value).take() }),
            _ => None,
        };
        let order = if weakened!("broadcast_remaining_release") { Relaxed } else { Release };
        // Release: a sender that finds 0 may write the value. Pairs with the Acquire in `put`.
        self.slot.remaining.store(unseen, order);
        value
    }
}

impl<T> Drop for LockedSlot<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let unwanted = self.end();
        self.slot.raw.unlock(self.bucket);
        // Dropped last, because a value's drop runs user code.
        drop(unwanted);
    }
}
