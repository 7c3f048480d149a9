//! A lock around a pinned value, held while a user's code is called with that value.
//!
//! # Invariants
//! Once the lock is pinned, its value is moved out only if it is `Unpin`. The lock is `Unpin`
//! only if its value is, because it holds nothing else.
//!
//! A [`PinLockHalf`] exposes nothing of the value through `&`, so it is `Sync` whatever the value
//! is.
//!
//! # Checked by
//! `one_thread_at_a_time_uses_a_pinned_value`,
//! `a_panic_with_a_pinned_value_is_reported_to_the_next_call`,
//! `a_half_may_be_shared_between_threads`.

use std::{pin::Pin, sync::Arc};

use super::Mutex;

/// A mutex that gives pinned access to its value.
pub(crate) struct PinLock<T>(Mutex<T>);

impl<T> PinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Calls `f` with exclusive access to the value.
    ///
    /// # Panics
    /// If an earlier call has panicked, because it may have left the value, which is the user's,
    /// half changed.
    pub(crate) fn with<R>(self: Pin<&Self>, f: impl FnOnce(Pin<&mut T>) -> R) -> R {
        let Ok(mut value) = self.get_ref().0.lock() else {
            panic!("an earlier call of the shared value panicked: create a new one")
        };
        // SAFETY: `self` is pinned, so the value stays where it is until it is dropped:
        // `into_inner` needs a lock that is not pinned, or an `Unpin` value, and nothing
        // else here moves it.
        f(unsafe { Pin::new_unchecked(&mut *value) })
    }

    /// Returns the value.
    ///
    /// # Panics
    /// If an earlier call of [`with`](Self::with) has panicked.
    pub(crate) fn into_inner(self) -> T
    where
        T: Unpin,
    {
        match self.0.into_inner() {
            Ok(value) => value,
            Err(_) => panic!("an earlier call of the shared value panicked: create a new one"),
        }
    }
}

/// One of two owners of a [`PinLock`].
pub(crate) struct PinLockHalf<T>(Pin<Arc<PinLock<T>>>);

// SAFETY: a `&PinLockHalf` exposes no more than an address, because `is_pair_of` is the only method
// that takes it. The others take `&mut` or the half itself. A thread that has those was sent the
// half, which needs `T: Send`, as the lock does.
unsafe impl<T> Sync for PinLockHalf<T> {}

impl<T> PinLockHalf<T> {
    /// Creates the two halves of a value.
    pub(crate) fn pair(value: T) -> (Self, Self) {
        let lock = Arc::pin(PinLock::new(value));
        (Self(lock.clone()), Self(lock))
    }

    /// Returns true if both halves belong to one pair.
    pub(crate) fn is_pair_of(&self, other: &Self) -> bool {
        std::ptr::eq(&*self.0, &*other.0)
    }

    /// Calls `f` with exclusive access to the value.
    ///
    /// # Panics
    /// If an earlier call has panicked, as [`PinLock::with`] does.
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(Pin<&mut T>) -> R) -> R {
        self.0.as_ref().with(f)
    }

    /// Returns the value, or `None` if the halves do not belong to one pair.
    ///
    /// # Panics
    /// If an earlier call has panicked, as [`PinLock::with`] does.
    pub(crate) fn reunite(self, other: Self) -> Option<T>
    where
        T: Unpin,
    {
        if !self.is_pair_of(&other) {
            return None;
        }
        drop(other);
        Arc::into_inner(Pin::into_inner(self.0)).map(PinLock::into_inner)
    }
}

#[cfg(test)]
mod models {
    use std::{pin::Pin, sync::Arc};

    use super::PinLock;
    use crate::engine::prim::{UnsafeCell, model, thread};

    /// Adds one and returns the sum.
    fn add(shared: Pin<&PinLock<UnsafeCell<u32>>>) -> u32 {
        shared.with(|cell| {
            // SAFETY: `with` holds the lock, so no other thread accesses the cell; loom checks
            // this.
            cell.with_mut(|count| unsafe {
                *count += 1;
                *count
            })
        })
    }

    #[test]
    fn one_thread_at_a_time_uses_a_pinned_value() {
        model(|| {
            let shared = Arc::pin(PinLock::new(UnsafeCell::new(0)));
            let other = thread::spawn({
                let shared = shared.clone();
                move || add(shared.as_ref())
            });
            let sums = add(shared.as_ref()) + other.join().unwrap();
            assert_eq!(sums, 1 + 2);
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
        pin::pin,
    };

    use super::{PinLock, PinLockHalf};

    /// Sending a half requires a value that is `Send`; sharing `&PinLockHalf` does not.
    #[test]
    fn a_half_may_be_shared_between_threads() {
        struct Stays(#[expect(dead_code, reason = "for its traits")] *const u8);
        fn is_sync<T: Sync>(_: &T) {}
        fn is_send<T: Send>(_: &T) {}
        let (one, other) = PinLockHalf::pair(Stays(std::ptr::null()));
        is_sync(&one);
        assert!(one.is_pair_of(&other));
        let (mut sent, kept) = PinLockHalf::pair(1);
        is_send(&sent);
        sent.with(|mut value| *value += 1);
        assert_eq!(sent.reunite(kept), Some(2));
        assert_eq!(PinLockHalf::pair(1).0.reunite(PinLockHalf::pair(1).1), None);
    }

    #[test]
    fn a_panic_with_a_pinned_value_is_reported_to_the_next_call() {
        let lock = pin!(PinLock::new(1));
        let lock = lock.as_ref();
        let with = |f: fn()| catch_unwind(AssertUnwindSafe(|| lock.with(|_| f())));
        assert!(with(|| {}).is_ok());
        assert!(with(|| resume_unwind(Box::new(()))).is_err());
        assert!(with(|| {}).is_err());
    }
}
