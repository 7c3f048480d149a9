//! Who is called when a set of local tasks has something to run.
//!
//! One future drives a set, as a rule. There may be more: two `run_until`s side by
//! side, or one inside a task of the set. Each is a *driver*. All that have not
//! been called since their last poll are called, because nobody knows which of
//! them will be polled, and none may be left to wait for a task that another one
//! would have run.
//!
//! # Protocol
//! A thread that wakes a task           The set's thread, in a driver's poll
//! P1 pushes the entry                  W1 leaves its waker, under the lock
//! P2 takes the wakers, under the lock  W2 looks for entries
//! P3 wakes them
//! P2 or W1 has the lock first. If P2, W2 sees the entry; if W1, P2 finds the waker
//! and the driver is polled again.
//!
//! # Rejected
//! One waker, that of the last poll: a driver that is done then takes the call with
//! it that was meant for the others.
//!
//! # Checked by
//! `a_wake_against_a_poll_is_seen_or_calls_again`; weakened as
//! `local_registers_first`. `two_drivers_of_a_set_are_both_called` in tests/it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use crate::engine::prim::{Mutex, discard, lock};

/// Tells the drivers of one set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Driver(pub(super) u64);

impl Driver {
    /// The set itself, when it is awaited.
    pub(crate) const fn first() -> Self {
        Self(0)
    }
}

/// The wakers of the drivers that wait. Users' code is never called or dropped
/// under the lock.
pub(super) struct Bell {
    waiting: Mutex<Waiting>,
}

/// The first has a place of its own, so that one driver allocates nothing.
#[derive(Default)]
struct Waiting {
    first: Option<(Driver, Waker)>,
    more: Vec<(Driver, Waker)>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::new(Waiting { first: None, more: Vec::new() }) }
    }

    /// W1. Only the set's thread calls this.
    pub(super) fn leave(&self, driver: Driver, waker: &Waker) {
        if lock(&self.waiting).find(driver).is_some_and(|old| old.1.will_wake(waker)) {
            return;
        }
        let new = waker.clone();
        let old = lock(&self.waiting).put(driver, new);
        drop(old);
    }

    /// P2 and P3.
    pub(super) fn ring(&self) {
        let Waiting { first, more } = std::mem::take(&mut *lock(&self.waiting));
        for (_, waker) in first.into_iter().chain(more) {
            // A waker that panics must keep neither the others from being called nor
            // its caller from going on. The panic hook has reported it.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }

    /// The driver is gone. Only the set's thread calls this.
    pub(super) fn forget(&self, driver: Driver) {
        let waker = lock(&self.waiting).take(driver);
        discard(waker);
    }

    /// Nobody will be called any more.
    pub(super) fn forget_all(&self) {
        let Waiting { first, more } = std::mem::take(&mut *lock(&self.waiting));
        first.into_iter().chain(more).for_each(discard);
    }
}

impl Waiting {
    fn find(&mut self, driver: Driver) -> Option<&mut (Driver, Waker)> {
        self.first.iter_mut().chain(&mut self.more).find(|(of, _)| *of == driver)
    }

    /// Puts a waker in; answers with the one it replaced.
    fn put(&mut self, driver: Driver, waker: Waker) -> Option<Waker> {
        if let Some((_, old)) = self.find(driver) {
            return Some(std::mem::replace(old, waker));
        }
        match &self.first {
            None => self.first = Some((driver, waker)),
            Some(_) => self.more.push((driver, waker)),
        }
        None
    }

    fn take(&mut self, driver: Driver) -> Option<Waker> {
        let entry = match self.first.take_if(|(of, _)| *of == driver) {
            None => {
                let index = self.more.iter().position(|(of, _)| *of == driver)?;
                self.more.swap_remove(index)
            }
            Some(first) => first,
        };
        Some(entry.1)
    }
}
