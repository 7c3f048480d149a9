//! A value that one thread at a time may hold, and that no thread blocks for.
//!
//! The right to wait for the kernel's events moves from worker to worker. A worker that wants it
//! while another has it does something else.
//!
//! # Protocol
//! ```text
//! a thread that wants the value       the thread that holds it
//! H1 exchanges FREE for HELD          L1 stores FREE
//!    (if it was HELD: gives up)
//! ```
//! L1 releases what was done to the value, and H1 acquires it.
//!
//! # Rejected
//! A standard lock with `try_lock`: it needs two exchanges, because its unlock must look for
//! sleeping threads, and here no thread ever sleeps for the value.
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

/// A value that is held by at most one thread, without waiting.
pub(crate) struct Seat<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: at most one thread at a time can reach the value, and `T: Send` lets it move between
// threads.
unsafe impl<T: Send> Sync for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// H1: takes the value; returns `None` if another thread holds it.
    #[inline]
    pub(crate) fn try_hold(&self) -> Option<Held<'_, T>> {
        let order = if weakened!("seat_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the previous holder did. Pairs with the Release in `drop`.
        let free = self.held.compare_exchange(false, true, order, Relaxed).is_ok();
        (free || weakened!("seat_excludes")).then(|| Held { seat: self })
    }
}

impl<T> std::fmt::Debug for Seat<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a snapshot for debugging.
        f.debug_struct("Seat").field("held", &self.held.load(Relaxed)).finish_non_exhaustive()
    }
}

/// Exclusive access to the value of a [`Seat`] until this guard is dropped.
pub(crate) struct Held<'a, T> {
    seat: &'a Seat<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the seat, so no other thread has a reference, and it borrows the
        // seat, so the value outlives the reference.
        unsafe { &*self.seat.value.with(|value| value) }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the seat and is borrowed mutably, so there is no other
        // reference; it borrows the seat, so the value outlives the reference.
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

    /// Takes the seat if it is free and adds one to the value; returns how much was added.
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
