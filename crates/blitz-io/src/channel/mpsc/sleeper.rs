//! The waker of the receiver, lent to whoever takes the mark AWAITED off its slot.
//!
//! # Protocol
//! ```text
//! the receiver                             who ends its wait
//! R1 has the waker: changes it             S1 an exchange on the slot found AWAITED
//! R2 says that it is lent                  S2 takes the waker out
//! R3 exchanges EMPTY for AWAITED           S3 says that it is given back
//! R4 next time: takes AWAITED off itself,  S4 wakes
//!    or waits for S3
//! ```
//! AWAITED is set by one and taken off by one, by exchanges on one word. So the waker has
//! one holder: the receiver until R3, then whoever takes AWAITED off, and the
//! receiver again after R4. The wait in R4 has no bound of its own, but ends: S1 to S3 are a
//! few instructions in which no code of the user runs, nothing is locked and nothing can
//! panic. Who does them can only lose its processor, and R4 lets others run after a
//! microsecond.
//!
//! # Rejected
//! `WakerCell`, which any number may wake at any time: four exchanges for each wait, a
//! quarter of the time of a message that goes from task to task. Here the slot has
//! decided already who wakes.
//!
//! # Checked by
//! `a_new_waker_against_a_send_is_woken`, `a_channel_for_one_delivers_in_order`,
//! `a_new_waker_against_the_drop_of_the_last_sender_is_woken`,
//! `a_waker_that_is_still_out_is_waited_for`,
//! `the_receiver_dropped_against_a_wake_drops_its_waker_once`; weakened as
//! `sleeper_given_back_release`, `sleeper_waits_for_the_taker`.

use std::task::Waker;

use crate::engine::prim::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell,
    backoff::Backoff,
    weakened,
};

const HERE: u32 = 0;
const LENT: u32 = 1;

/// See the module.
pub(super) struct Sleeper {
    place: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker has one holder at a time, and wakers may move between threads.
unsafe impl Send for Sleeper {}
// SAFETY: as above.
unsafe impl Sync for Sleeper {}

impl Sleeper {
    pub(super) fn new() -> Self {
        Self { place: AtomicU32::new(HERE), waker: UnsafeCell::new(None) }
    }

    /// S2 and S3.
    ///
    /// # Safety
    /// 1. An exchange of the caller's took AWAITED off the receiver's slot, with Acquire.
    #[must_use]
    #[inline]
    pub(super) unsafe fn take(&self) -> Option<Waker> {
        // SAFETY: 1.: it is lent to us.
        let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
        let order = if weakened!("sleeper_given_back_release") { Relaxed } else { Release };
        // Release: the receiver may write it. Pairs with the Acquire in `wait_for_taker`.
        self.place.store(HERE, order);
        waker
    }

    /// R4: somebody else took AWAITED off.
    #[inline]
    pub(super) fn wait_for_taker(&self) {
        let mut backoff = Backoff::default();
        // Acquire: the other is done with the waker. Pairs with the Release in `take`.
        while self.place.load(Acquire) == LENT && !weakened!("sleeper_waits_for_the_taker") {
            backoff.pause();
        }
    }

    /// R1 and R2, for another wait.
    ///
    /// # Safety
    /// 1. The caller is the receiver, and has the waker.
    #[inline]
    pub(super) unsafe fn lend(&self, waker: &Waker) {
        // SAFETY: 1.: nobody else has a reference, here and below.
        let same =
            self.waker.with_mut(|old| unsafe { (*old).as_ref() }.map(|old| old.will_wake(waker)));
        if same != Some(true) {
            // A user's code, which may come back to the channel: nothing is borrowed.
            let new = waker.clone();
            // SAFETY: as above.
            let stale = self.waker.with_mut(|old| unsafe { (*old).replace(new) });
            drop(stale);
        }
        // Relaxed: the exchange on the slot publishes it.
        self.place.store(LENT, Relaxed);
    }

    /// Takes the waker away for good.
    ///
    /// # Safety
    /// 1. As `lend`.
    pub(super) unsafe fn remove(&self) -> Option<Waker> {
        // SAFETY: 1.: nobody else has a reference.
        self.waker.with_mut(|waker| unsafe { (*waker).take() })
    }
}
