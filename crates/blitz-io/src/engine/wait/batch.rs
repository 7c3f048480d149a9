//! Wakers that were collected under a lock, to be woken after it was let go.
//!
//! A waker is a user's code. Called under a lock it may come back for that lock,
//! or keep everybody else from it. So whoever serves the waiting collects their
//! wakers here, lets the lock go, and wakes; a full batch means letting go, waking
//! and coming back.
//!
//! # Rejected
//! A `Vec`: it allocates in the middle of a release, and under the lock.
//!
//! # Checked by
//! `a_waker_that_panics_does_not_keep_the_others_from_being_woken`,
//! `a_batch_that_is_dropped_wakes`.

use std::{
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use crate::engine::prim::discard;

/// Half a kilobyte of stack; Tokio's figure, not measured here. Two in a model, so
/// that it gets to see a full batch.
const SIZE: usize = if cfg!(blitz_loom) { 2 } else { 32 };

/// See the module.
pub(crate) struct Batch {
    wakers: [MaybeUninit<Waker>; SIZE],
    /// The first so many are there.
    len: usize,
}

impl Batch {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { wakers: [const { MaybeUninit::uninit() }; SIZE], len: 0 }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == SIZE
    }

    /// Keeps a waker for later.
    ///
    /// # Panics
    /// If the batch is full: callers look.
    #[inline]
    pub(crate) fn push(&mut self, waker: Waker) {
        self.wakers[self.len].write(waker);
        self.len += 1;
    }

    /// Wakes all, in the order they came, and is empty again.
    ///
    /// A waker that panics has nobody to tell: the panic hook has reported it, and
    /// the others must be woken all the same.
    pub(crate) fn wake_all(&mut self) {
        let len = std::mem::take(&mut self.len);
        for waker in &self.wakers[..len] {
            // SAFETY: the first `len` are there, and each is read once: `len` is
            // zero by now.
            let waker = unsafe { waker.assume_init_read() };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.wake_all();
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        sync::Arc,
        task::{Wake, Waker},
    };

    use super::{Batch, SIZE};
    use crate::engine::wait::bell::Bell;

    struct Bad;

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("this waker was told to panic");
        }
    }

    #[test]
    fn a_waker_that_panics_does_not_keep_the_others_from_being_woken() {
        let (bell, mut batch) = (Bell::new(), Batch::new());
        batch.push(bell.waker());
        batch.push(Waker::from(Arc::new(Bad)));
        while !batch.is_full() {
            batch.push(bell.waker());
        }
        batch.wake_all();
        assert_eq!(bell.rung(), SIZE - 1);
        batch.wake_all();
        assert_eq!((bell.rung(), Arc::strong_count(&bell)), (SIZE - 1, 1), "each is woken once");
    }

    #[test]
    fn a_batch_that_is_dropped_wakes() {
        let (bell, mut batch) = (Bell::new(), Batch::new());
        batch.push(bell.waker());
        drop(batch);
        assert_eq!((bell.rung(), Arc::strong_count(&bell)), (1, 1));
    }
}
