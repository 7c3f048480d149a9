//! One place of the ring: a value, and how many receivers have still to see it.
//!
//! Values need not be `Sync`, so two receivers never clone one at the same time: a
//! receiver locks the slot while it clones.
//!
//! # Protocol
//! ```text
//! a receiver, at position p                 a sender, which holds the tail's lock
//! R1 reads the stamp: p, or goes away       S1 reads `remaining`: 0, nobody is counted
//! R2 locks the slot                            or goes to S2
//! R3 reads the stamp again: p, or lets go   S2 locks the slot
//! R4 clones the value                       S3 writes the value, `remaining`, the stamp
//! R5 counts itself off; the last one        S4 lets go, if it locked
//!    takes the value out. Lets go
//! ```
//! Without S2 the sender is alone all the same: who passes R3 is counted in the value
//! that is there, so `remaining` is not 0 until R5. One who is between R1 and R3 and
//! not counted (a receiver that is being dropped, overtaken by a whole round) finds
//! another stamp, and touches nothing but the lock.
//!
//! # Invariants
//! - There is a value exactly if `remaining` is not 0, whenever the lock is free.
//! - A value is dropped outside of the lock. It is cloned inside, which is a user's
//!   code: a clone that asks for the same slot waits for itself.
//!
//! # Rejected
//! - The value itself, without a clone, for the last one who wants it: Tokio clones
//!   for everybody, and programs can tell (a clone that panics, or counts).
//! - A count and a lock in one word: a receiver that is being dropped would write to
//!   a word that the sender believes to be its own at S1.
//! - Moving the value out for the time of the clone, so that no sender waits for a
//!   user's code: putting it back is an exchange, which costs every receiver what
//!   a slow clone costs a sender that has come round the whole ring.
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
        bolt::{Bolt, Gate},
        weakened,
    },
    work::current::Holding,
};

/// See the module.
pub(super) struct Slot<T> {
    /// The position of the value that was put here last.
    stamp: AtomicU64,
    bolt: Bolt,
    /// How many receivers have still to see the value; written by who is alone.
    remaining: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: who has a reference to the value is alone with it (the protocol), and the
// value may move between threads.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Empty; `stamp` is a position that nobody asks for.
    pub(super) fn new(stamp: u64) -> Self {
        Self {
            stamp: AtomicU64::new(stamp),
            bolt: Bolt::new(),
            remaining: AtomicU32::new(0),
            value: UnsafeCell::new(None),
        }
    }

    /// Whether receivers have still to see the value.
    pub(super) fn is_wanted(&self) -> bool {
        // Relaxed: a count; the value is not looked at.
        self.remaining.load(Relaxed) != 0
    }

    /// S1 to S4. Answers with the value that some had not seen, to be dropped after
    /// the tail's lock was let go.
    ///
    /// # Safety
    /// 1. The caller holds the tail's lock.
    /// 2. Whoever is counted in `count` asks for `position`, or releases it.
    #[inline]
    pub(super) unsafe fn put(&self, position: u64, count: u32, value: T, gate: &Gate) -> Option<T> {
        let order = if weakened!("broadcast_remaining_acquire") { Relaxed } else { Acquire };
        // Acquire: the value was moved out before. Pairs with the Release in `end`.
        if self.remaining.load(order) == 0 || weakened!("broadcast_overwrite_locks") {
            // SAFETY: 1. and 2. of `write`: nobody is counted, so nobody passes R3.
            return unsafe { self.write(position, count, value) };
        }
        let _held = self.lock(gate);
        // SAFETY: 1. and 2. of `write`: we hold the lock.
        unsafe { self.write(position, count, value) }
    }

    /// S3.
    ///
    /// # Safety
    /// 1. The caller holds the tail's lock.
    /// 2. It holds the slot's too, or nobody is counted in what is here.
    #[inline]
    unsafe fn write(&self, position: u64, count: u32, value: T) -> Option<T> {
        // SAFETY: 1. and 2.: nobody else has a reference.
        let old = self.value.with_mut(|slot| unsafe { (*slot).replace(value) });
        // Relaxed: the stamp publishes it.
        self.remaining.store(count, Relaxed);
        let order = if weakened!("broadcast_stamp_release") { Relaxed } else { Release };
        // Release: publishes the value and the count. Pairs with the Acquire in `at`.
        self.stamp.store(position, order);
        old
    }

    /// R1 to R3: the slot, locked, if its value is that of `position`.
    ///
    /// The caller is counted in that value, and has not seen it.
    #[inline]
    pub(super) fn at<'a>(&'a self, position: u64, gate: &'a Gate) -> Option<Held<'a, T>> {
        let order = if weakened!("broadcast_stamp_acquire") { Relaxed } else { Acquire };
        // Acquire: sees the value of a sender that took no lock. Pairs with the Release
        // in `write`.
        if self.stamp.load(order) != position {
            return None;
        }
        let held = self.lock(gate);
        // Relaxed: whoever overwrites a value that we are counted in had the lock.
        let same = self.stamp.load(Relaxed) == position;
        (same || weakened!("broadcast_stamp_again")).then_some(held)
    }

    #[inline]
    fn lock<'a>(&'a self, gate: &'a Gate) -> Held<'a, T> {
        self.bolt.lock(gate);
        Held { slot: self, gate, left: None }
    }
}

/// A slot that is locked, and holds the value its holder asked for.
pub(super) struct Held<'a, T> {
    slot: &'a Slot<T>,
    gate: &'a Gate,
    /// What will remain, if the holder has counted itself off.
    left: Option<u32>,
}

impl<T> Held<'_, T> {
    /// R4 and R5.
    #[inline]
    pub(super) fn see(mut self) -> T
    where
        T: Clone,
    {
        // First: a clone that panics counts as seen.
        self.count_off();
        // It is a user's code, under the lock.
        let _holding = Holding::lock();
        // SAFETY: we hold the lock, so nobody else has a reference.
        self.slot.value.with(|value| unsafe { (*value).clone() }).expect("counted, so it is there")
    }

    /// R5 alone: the holder does not want it.
    #[inline]
    pub(super) fn pass(mut self) {
        self.count_off();
    }

    #[inline]
    fn count_off(&mut self) {
        // Relaxed: we hold the lock.
        self.left = Some(self.slot.remaining.load(Relaxed) - 1);
    }

    /// The end of R5. Answers with the value if nobody wants it any more.
    #[inline]
    fn end(&mut self) -> Option<T> {
        let left = self.left?;
        let value = match left {
            // SAFETY: we hold the lock, so nobody else has a reference.
            0 => self.slot.value.with_mut(|value| unsafe { (*value).take() }),
            _ => None,
        };
        let order = if weakened!("broadcast_remaining_release") { Relaxed } else { Release };
        // Release: a sender that finds 0 may write the value. Pairs with the Acquire in
        // `put`.
        self.slot.remaining.store(left, order);
        value
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let unwanted = self.end();
        self.slot.bolt.unlock(self.gate);
        // Last: dropping it is a user's code.
        drop(unwanted);
    }
}
