//! The receiver's waker, handed over to the thread that removes the AWAITED mark from its slot.
//!
//! # Protocol
//! ```text
//! the receiver                             the thread that ends its wait
//! R1 has the waker: changes it             S1 an exchange on the slot found AWAITED
//! R2 marks it as handed over               S2 takes the waker out
//! R3 exchanges EMPTY for AWAITED           S3 marks it as given back
//! R4 next time: takes AWAITED off itself,  S4 wakes
//!    or waits for S3
//! ```
//! AWAITED is set by one thread and removed by one thread, by exchanges of one word. So the
//! waker has one owner: the receiver until R3, then the thread that removes AWAITED, and the
//! receiver again after R4. The wait in R4 has no bound of its own, but it ends: S1 to S3 are a
//! few instructions in which no user code runs, nothing is locked and nothing can panic. The
//! thread that executes them can only be preempted, and R4 yields its CPU after a microsecond.
//!
//! # Rejected
//! `WakerCell`, which any number of threads may wake at any time: four exchanges for each wait,
//! a quarter of the time that a message takes from task to task. Here the slot has already
//! decided which thread wakes.
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

const KEPT: u32 = 0;
const HANDED_OVER: u32 = 1;

/// The receiver's waker, and whether it is handed over.
pub(super) struct ReceiverWaker {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker has one owner at a time (see the protocol), and wakers may move between
// threads.
unsafe impl Send for ReceiverWaker {}
// SAFETY: a shared reference gives access to the waker only to its one owner at a time (see the
// protocol), and wakers may move between threads.
unsafe impl Sync for ReceiverWaker {}

impl ReceiverWaker {
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::new(KEPT), waker: UnsafeCell::new(None) }
    }

    /// Takes the waker out and reports that it is given back (S2 and S3).
    ///
    /// # Safety
    /// 1. An exchange by the caller removed AWAITED from the receiver's slot, with Acquire.
    #[must_use]
    #[inline]
    pub(super) unsafe fn take(&self) -> Option<Waker> {
        // SAFETY: by our obligation 1 the waker is handed over to the caller, so there is no other
        // reference.
        let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
        let order = if weakened!("sleeper_given_back_release") { Relaxed } else { Release };
        // Release: from here on the receiver may write the waker. Pairs with the Acquire in
        // `wait_for_taker`.
        self.state.store(KEPT, order);
        waker
    }

    /// Waits until the thread that removed AWAITED has given the waker back (R4).
    #[inline]
    pub(super) fn wait_for_taker(&self) {
        let mut backoff = Backoff::default();
        // Acquire: the other thread is done with the waker. Pairs with the Release in `take`.
        while self.state.load(Acquire) == HANDED_OVER && !weakened!("sleeper_waits_for_the_taker") {
            backoff.pause();
        }
    }

    /// Stores the waker and marks it as handed over, for another wait (R1 and R2).
    ///
    /// # Safety
    /// 1. The caller is the receiver, and owns the waker.
    #[inline]
    pub(super) unsafe fn hand_over(&self, waker: &Waker) {
        // SAFETY: by our obligation 1 the receiver owns the waker, so there is no other
        // reference.
        let same =
            self.waker.with_mut(|old| unsafe { (*old).as_ref() }.map(|old| old.will_wake(waker)));
        if same != Some(true) {
            // A waker's clone runs user code, which may use the channel again, so nothing is
            // borrowed here.
            let new = waker.clone();
            // SAFETY: by our obligation 1 the receiver owns the waker, so there is no other
            // reference.
            let stale = self.waker.with_mut(|old| unsafe { (*old).replace(new) });
            drop(stale);
        }
        // Relaxed: the exchange of the slot publishes it.
        self.state.store(HANDED_OVER, Relaxed);
    }

    /// Takes the waker out for good.
    ///
    /// # Safety
    /// 1. The caller is the receiver, and owns the waker.
    pub(super) unsafe fn remove(&self) -> Option<Waker> {
        // SAFETY: by our obligation 1 the receiver owns the waker, so there is no other
        // reference.
        self.waker.with_mut(|waker| unsafe { (*waker).take() })
    }
}
