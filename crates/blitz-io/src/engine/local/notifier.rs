//! Wakes the drivers of a local task set when it has something to run.
//!
//! As a rule one future drives a set. There may be more: two `run_until`s side by side, or one
//! inside a task of the set. Each is a *driver*. All drivers that have not been woken since their
//! last poll are woken, because it is unknown which of them will be polled, and none may be left to
//! wait for a task that another one would have run.
//!
//! # Protocol
//! ```text
//! A thread that wakes a task           The set's thread, in a driver's poll
//! P1 pushes the entry                  W1 registers its waker, under the lock
//! P2 takes the wakers, under the lock  W2 checks for entries
//! P3 wakes them
//! ```
//! P2 or W1 has the lock first. If P2, W2 sees the entry; if W1, P2 finds the waker and the driver
//! is polled again.
//!
//! # Rejected
//! One waker, that of the last poll: a driver that is done would then consume the wake-up that was
//! meant for the others.
//!
//! # Checked by
//! `a_wake_against_a_poll_is_seen_or_calls_again`; weakened as `local_registers_first`.
//! `two_drivers_of_a_set_are_both_called` in tests/it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use crate::engine::prim::{Mutex, discard, lock};

/// Identifies one driver among those of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetDriverId(pub(super) u64);

impl SetDriverId {
    /// Returns the driver that is the set itself, when it is awaited.
    pub(crate) const fn first() -> Self {
        Self(0)
    }
}

/// The wakers of the drivers that wait. Users' code must never be called or dropped under the lock.
pub(super) struct LocalNotifier {
    waiting: Mutex<RegisteredWakers>,
}

/// The registered wakers. The first has a field of its own, so that one driver allocates nothing.
#[derive(Default)]
struct RegisteredWakers {
    first: Option<(SetDriverId, Waker)>,
    more: Vec<(SetDriverId, Waker)>,
}

impl LocalNotifier {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::new(RegisteredWakers { first: None, more: Vec::new() }) }
    }

    /// Registers the waker of a driver (step W1). Only the set's thread may call this.
    pub(super) fn register(&self, driver: SetDriverId, waker: &Waker) {
        if lock(&self.waiting).find(driver).is_some_and(|old| old.1.will_wake(waker)) {
            return;
        }
        let new = waker.clone();
        let old = lock(&self.waiting).put(driver, new);
        drop(old);
    }

    /// Wakes all registered drivers (steps P2 and P3).
    pub(super) fn notify(&self) {
        let RegisteredWakers { first, more } = std::mem::take(&mut *lock(&self.waiting));
        for (_, waker) in first.into_iter().chain(more) {
            // A waker that panics must not keep the others from being woken, nor stop the caller.
            // The panic hook has reported the panic.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }

    /// Removes the waker of a driver that is gone. Only the set's thread may call this.
    pub(super) fn unregister(&self, driver: SetDriverId) {
        let waker = lock(&self.waiting).take(driver);
        discard(waker);
    }

    /// Removes all wakers, so that no driver is woken any more.
    pub(super) fn clear(&self) {
        let RegisteredWakers { first, more } = std::mem::take(&mut *lock(&self.waiting));
        first.into_iter().chain(more).for_each(discard);
    }
}

impl RegisteredWakers {
    /// Returns the entry of a driver.
    fn find(&mut self, driver: SetDriverId) -> Option<&mut (SetDriverId, Waker)> {
        self.first.iter_mut().chain(&mut self.more).find(|(id, _)| *id == driver)
    }

    /// Stores the waker of a driver, and returns the one that it replaced.
    fn put(&mut self, driver: SetDriverId, waker: Waker) -> Option<Waker> {
        if let Some((_, old)) = self.find(driver) {
            return Some(std::mem::replace(old, waker));
        }
        match &self.first {
            None => self.first = Some((driver, waker)),
            Some(_) => self.more.push((driver, waker)),
        }
        None
    }

    /// Removes and returns the waker of a driver.
    fn take(&mut self, driver: SetDriverId) -> Option<Waker> {
        let entry = match self.first.take_if(|(id, _)| *id == driver) {
            None => {
                let index = self.more.iter().position(|(id, _)| *id == driver)?;
                self.more.swap_remove(index)
            }
            Some(first) => first,
        };
        Some(entry.1)
    }
}
