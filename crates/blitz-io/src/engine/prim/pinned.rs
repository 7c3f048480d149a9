//! A lock around a value that must not move, for calls into a user's code.
//!
//! # Invariants
//! Once the lock was pinned, its value is moved out only if it is `Unpin`. The lock is
//! `Unpin` only if its value is, because that is all it holds.
//!
//! # Checked by
//! `one_at_a_time_is_with_a_pinned_value`, `a_panic_with_a_pinned_value_is_told_to_the_next`.

use std::pin::Pin;

use super::Mutex;

/// See the module.
pub(crate) struct PinLock<T>(Mutex<T>);

impl<T> PinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Calls `f` with the value, alone.
    ///
    /// # Panics
    /// If an earlier call has panicked: what it left behind may be half done, and the
    /// value is a user's.
    pub(crate) fn with<R>(self: Pin<&Self>, f: impl FnOnce(Pin<&mut T>) -> R) -> R {
        let Ok(mut value) = self.get_ref().0.lock() else {
            panic!("a call of the shared value has panicked before: make a new one")
        };
        // SAFETY: `self` is pinned, so the value stays where it is until it is dropped:
        // `into_inner` needs a lock that is not pinned, or an `Unpin` value, and nothing
        // else here moves it.
        f(unsafe { Pin::new_unchecked(&mut *value) })
    }

    /// The value itself.
    ///
    /// # Panics
    /// As `with`.
    pub(crate) fn into_inner(self) -> T
    where
        T: Unpin,
    {
        match self.0.into_inner() {
            Ok(value) => value,
            Err(_) => panic!("a call of the shared value has panicked before: make a new one"),
        }
    }
}

#[cfg(test)]
mod models {
    use std::{pin::Pin, sync::Arc};

    use super::PinLock;
    use crate::engine::prim::{UnsafeCell, model, thread};

    /// Adds one and answers with the sum.
    fn add(shared: Pin<&PinLock<UnsafeCell<u32>>>) -> u32 {
        shared.with(|cell| {
            // SAFETY: whoever gets here is alone with the cell; the model looks.
            cell.with_mut(|count| unsafe {
                *count += 1;
                *count
            })
        })
    }

    #[test]
    fn one_at_a_time_is_with_a_pinned_value() {
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

    use super::PinLock;

    #[test]
    fn a_panic_with_a_pinned_value_is_told_to_the_next() {
        let lock = pin!(PinLock::new(1));
        let lock = lock.as_ref();
        let with = |f: fn()| catch_unwind(AssertUnwindSafe(|| lock.with(|_| f())));
        assert!(with(|| {}).is_ok());
        assert!(with(|| resume_unwind(Box::new(()))).is_err());
        assert!(with(|| {}).is_err());
    }
}
