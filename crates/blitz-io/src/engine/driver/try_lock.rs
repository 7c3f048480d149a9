//! A value that one thread at a time may hold, and that no thread blocks for.
//!
//! The right to wait for the kernel's events moves from worker to worker. A worker that wants it
//! while another has it does something else.
//!
//! # Protocol
//! ```text
//! a thread that wants the value          the thread that has locked it
//! L1 exchanges `locked`: false for true  U1 stores false in `locked`
//!    (if it was true: gives up)
//! ```
//! U1 releases what was done to the value, and L1 acquires it.
//!
//! # Rejected
//! A standard lock with `try_lock`: it needs two exchanges, because its unlock must check for
//! sleeping threads, and here no thread ever sleeps for the value.
//!
//! # Checked by
//! `a_lock_passes_on_what_was_done_under_it`; weakened as `try_lock_acquire`,
//! `try_lock_release`, `try_lock_excludes`.

use std::ops::{Deref, DerefMut};

use crate::engine::prim::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell, weakened,
};

/// A value that is held by at most one thread, without waiting.
pub(crate) struct TryLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: at most one thread at a time can reach the value, and `T: Send` lets it move between
// threads.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Locks the value; returns `None` if another thread holds it (L1).
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<TryLockGuard<'_, T>> {
        let order = if weakened!("try_lock_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the previous holder did. Pairs with the Release in `drop`.
        let free = self.locked.compare_exchange(false, true, order, Relaxed).is_ok();
        (free || weakened!("try_lock_excludes")).then(|| TryLockGuard { lock: self })
    }
}

impl<T> std::fmt::Debug for TryLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a snapshot for debugging.
        f.debug_struct("TryLock")
            .field("locked", &self.locked.load(Relaxed))
            .finish_non_exhaustive()
    }
}

/// Exclusive access to the value of a [`TryLock`] until this guard is dropped.
pub(crate) struct TryLockGuard<'a, T> {
    lock: &'a TryLock<T>,
}

impl<T> Deref for TryLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so no other thread has a reference, and it borrows the
        // lock, so the value outlives the reference.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

impl<T> DerefMut for TryLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock and is borrowed mutably, so there is no other
        // reference; it borrows the lock, so the value outlives the reference.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

impl<T> Drop for TryLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let order = if weakened!("try_lock_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_lock`.
        self.lock.locked.store(false, order);
    }
}

#[cfg(test)]
mod models {
    use super::TryLock;
    use crate::engine::prim::{Arc, model, thread};

    /// Takes the lock if it is free and adds one to the value; returns how much was added.
    fn add(lock: &TryLock<u32>) -> u32 {
        match lock.try_lock() {
            Some(mut locked) => {
                *locked += 1;
                1
            }
            None => 0,
        }
    }

    #[test]
    fn a_lock_passes_on_what_was_done_under_it() {
        model(|| {
            let lock = Arc::new(TryLock::new(0));
            let other = thread::spawn({
                let lock = lock.clone();
                move || add(&lock) + add(&lock)
            });
            let mine = add(&lock);
            let others = other.join().unwrap();
            assert_eq!(*lock.try_lock().expect("all have unlocked it"), mine + others);
        });
    }
}
