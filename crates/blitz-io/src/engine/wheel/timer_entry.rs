//! A timer entry: a node in the lists of a timer wheel, inside the future that waits.
//!
//! # Protocol
//! ```text
//! the entry's owner                       the holder of its wheel's lock
//! OUT   --insert, under the lock-->  IN
//! IN    --remove, under the lock-->  OUT
//!                                    IN  --dismiss--> FIRED or ENDED: takes the waker,
//!                                        unlinks it, then stores that, and never touches
//!                                        it again
//! FIRED, ENDED --settle-->           OUT
//! ```
//! FIRED means that the deadline has passed, ENDED that the wheel was shut down. Either is stored
//! with Release as the last access and read with Acquire, so the owner may free the entry then
//! without the lock. An entry is dismissed once for each time it was inserted: only under the lock,
//! and only while it is IN.
//!
//! # Invariants
//! - The shared part of an entry (neighbours, deadline, list, waker) belongs to the holder of its
//!   wheel's lock while it is IN, and to its owner otherwise.
//! - An entry that is IN is alive: its owner must remove it before it ends.
//! - Only the owner inserts, removes and settles, one at a time.
//!
//! # Rejected
//! `wait/wait_queue.rs`: a wait queue has two ends to keep, and a wheel has nearly eight hundred
//! lists.
//!
//! # Checked by
//! The models of `engine/wheel/models.rs`; weakened as `timer_entry_dismissed_release`,
//! `timer_entry_dismissed_acquire`.

use std::{marker::PhantomPinned, ptr::NonNull, task::Waker};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, weakened,
};

const OUT: u32 = 0;
const IN: u32 = 1;
const FIRED: u32 = 2;
const ENDED: u32 = 3;

/// The state of a timer entry, as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimerEntryState {
    /// In no wheel.
    Out,
    /// In a wheel, or dismissed since: certain only under the lock.
    In,
    /// Its deadline has passed.
    Fired,
    /// Its wheel was shut down before its deadline.
    Ended,
}

/// A timer's node in a wheel.
pub(super) struct TimerEntry {
    state: AtomicU32,
    shared: UnsafeCell<Shared>,
    _pinned: PhantomPinned,
}

/// The part of an entry that belongs to the holder of the lock while the entry is IN.
pub(super) struct Shared {
    /// The neighbours; the first and the last of a list are neighbours too.
    pub(super) before: Option<NonNull<TimerEntry>>,
    pub(super) behind: Option<NonNull<TimerEntry>>,
    /// The deadline, in nanoseconds of the runtime's clock.
    pub(super) deadline_ns: u64,
    /// The list that the entry was put into. It may have been moved with that list since.
    pub(super) list: usize,
    /// The waker to call; present while the entry is IN.
    pub(super) waker: Option<Waker>,
}

// SAFETY: `shared` has one holder at a time (first invariant), and its contents may move between
// threads.
unsafe impl Send for TimerEntry {}
// SAFETY: `shared` has one holder at a time (first invariant); a shared reference alone gives
// access to `state` only.
unsafe impl Sync for TimerEntry {}

impl TimerEntry {
    pub(super) fn new() -> Self {
        let shared = Shared { before: None, behind: None, deadline_ns: 0, list: 0, waker: None };
        Self { state: AtomicU32::new(OUT), shared: UnsafeCell::new(shared), _pinned: PhantomPinned }
    }

    #[inline]
    pub(super) fn state(&self) -> TimerEntryState {
        let order = if weakened!("timer_entry_dismissed_acquire") { Relaxed } else { Acquire };
        // Acquire: after FIRED or ENDED the owner may write, or free, what the holder of the lock
        // wrote before. Pairs with the Release in `mark_dismissed`.
        match self.state.load(order) {
            OUT => TimerEntryState::Out,
            IN => TimerEntryState::In,
            FIRED => TimerEntryState::Fired,
            _ => TimerEntryState::Ended,
        }
    }

    /// Marks the entry as FIRED or ENDED. Only for the holder of the lock, as its last access.
    #[inline]
    pub(super) fn mark_dismissed(&self, ended: bool) {
        let order = if weakened!("timer_entry_dismissed_release") { Relaxed } else { Release };
        // Release: the owner, which may free the entry now, sees it unlinked. Pairs with
        // the Acquire in `state`.
        self.state.store(if ended { ENDED } else { FIRED }, order);
    }

    /// Marks the entry as IN. Only for the owner, under the lock with which it inserts the entry.
    #[inline]
    pub(super) fn mark_in(&self) {
        // Relaxed: other threads read it under the lock.
        self.state.store(IN, Relaxed);
    }

    /// Marks the entry as OUT. Only for the owner, if the entry is in no wheel or has left it.
    #[inline]
    pub(super) fn settle(&self) {
        // Relaxed: only the owner reads it until it is inserted again, under the lock.
        self.state.store(OUT, Relaxed);
    }

    /// Marks the entry as FIRED or ENDED. Only for the owner, if the entry is in no wheel: its
    /// deadline passed before it could be inserted, or the wheel was shut down.
    #[inline]
    pub(super) fn settle_as(&self, ended: bool) {
        // Relaxed: only the owner reads it until it is inserted again, under the lock.
        self.state.store(if ended { ENDED } else { FIRED }, Relaxed);
    }

    /// Calls `f` with the shared part.
    ///
    /// # Safety
    /// 1. The entry is alive, and its shared part belongs to the caller (first invariant).
    /// 2. `f` does not call this function for the same entry.
    #[inline]
    pub(super) unsafe fn shared<R>(node: NonNull<Self>, f: impl FnOnce(&mut Shared) -> R) -> R {
        // SAFETY: our obligation 1 makes the entry alive and its shared part the caller's; by our
        // obligation 2, `f` does not come back here for it. So there is no other reference.
        unsafe { node.as_ref().shared.with_mut(|shared| f(&mut *shared)) }
    }
}

impl Drop for TimerEntry {
    fn drop(&mut self) {
        debug_assert_ne!(self.state(), TimerEntryState::In, "an entry ended in its wheel");
    }
}
