//! A thing that one thread at a time may have, and nobody waits for.
//!
//! The right to ask the kernel for events goes from worker to worker. Whoever wants it
//! and finds it taken does something else.
//!
//! # Protocol
//! ```text
//! who wants it                        who has it
//! H1 exchanges FREE for HELD          L1 stores FREE
//!    (it was HELD: not now)
//! ```
//! L1 releases what was done with the thing, and H1 acquires it.
//!
//! # Rejected
//! A standard lock with `try_lock`: two exchanges, where nobody ever sleeps for it.
//!
//! # Checked by
//! `a_seat_goes_from_one_to_the_next_with_what_was_done`; weakened as `seat_acquire`,
//! `seat_release`, `seat_excludes`.

use std::ops::{Deref, DerefMut};

use crate::engine::prim::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, weakened,
};

/// See the module.
pub(crate) struct Seat<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, which may move between threads.
unsafe impl<T: Send> Sync for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// H1; `None` if somebody has it.
    #[inline]
    pub(crate) fn try_hold(&self) -> Option<Held<'_, T>> {
        let order = if weakened!("seat_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the holder before did. Pairs with the Release in `drop`.
        let free = self.held.compare_exchange(false, true, order, Relaxed).is_ok();
        (free || weakened!("seat_excludes")).then(|| Held { seat: self })
    }
}

impl<T> std::fmt::Debug for Seat<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a look.
        f.debug_struct("Seat").field("held", &self.held.load(Relaxed)).finish_non_exhaustive()
    }
}

/// The value, until this is dropped.
pub(crate) struct Held<'a, T> {
    seat: &'a Seat<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we hold the seat, so nobody else has a reference; it lives as long.
        unsafe { &*self.seat.value.with(|value| value) }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.seat.value.with_mut(|value| value) }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let order = if weakened!("seat_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_hold`.
        self.seat.held.store(false, order);
    }
}

#[cfg(test)]
mod models {
    use super::Seat;
    use crate::engine::prim::{Arc, model, thread};

    /// Takes the seat if it is free, and adds one.
    fn add(seat: &Seat<u32>) -> u32 {
        match seat.try_hold() {
            Some(mut held) => {
                *held += 1;
                1
            }
            None => 0,
        }
    }

    #[test]
    fn a_seat_goes_from_one_to_the_next_with_what_was_done() {
        model(|| {
            let seat = Arc::new(Seat::new(0));
            let other = thread::spawn({
                let seat = seat.clone();
                move || add(&seat) + add(&seat)
            });
            let mine = add(&seat);
            let others = other.join().unwrap();
            assert_eq!(*seat.try_hold().expect("all have let go"), mine + others);
        });
    }
}
