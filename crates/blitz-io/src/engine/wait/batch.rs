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
//! `a_batch_that_is_dropped_wakes`, `more_than_a_batch_are_all_woken_under_no_lock`; weakened
//! as `batch_goes_on`, `batch_lets_go`.

use std::{
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use crate::engine::prim::{discard, weakened};

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

/// Wakes whom `next` dismisses under a lock, until it dismisses nobody: batch by batch, each
/// after the lock was let go. `again` takes the lock for the next one.
pub(crate) fn wake_each<L>(
    mut held: L,
    again: impl Fn() -> L,
    mut next: impl FnMut(&mut L) -> Option<Waker>,
) {
    let mut batch = Batch::new();
    loop {
        while !batch.is_full()
            && let Some(waker) = next(&mut held)
        {
            batch.push(waker);
        }
        let is_full = batch.is_full();
        if weakened!("batch_lets_go") {
            batch.wake_all();
        }
        drop(held);
        batch.wake_all();
        if !is_full || weakened!("batch_goes_on") {
            return;
        }
        held = again();
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.wake_all();
    }
}

#[cfg(test)]
mod models {
    use std::task::{Wake, Waker};

    use super::wake_each;
    use crate::engine::prim::{Arc, Mutex, lock, model, thread};

    /// Those who wait, by their number; and those who were woken.
    #[derive(Default)]
    struct Waiting {
        line: Mutex<Vec<usize>>,
        woken: Mutex<Vec<usize>>,
    }

    /// Comes back for the lock when it is woken, as a user's code may.
    struct Comes(Arc<Waiting>, usize);

    impl Wake for Comes {
        fn wake(self: std::sync::Arc<Self>) {
            drop(lock(&self.0.line));
            lock(&self.0.woken).push(self.1);
        }
    }

    /// Batches of a model hold two. A third thread takes one out meanwhile.
    #[test]
    fn more_than_a_batch_are_all_woken_under_no_lock() {
        model(|| {
            let waiting = Arc::new(Waiting::default());
            lock(&waiting.line).extend(0..4);
            let leaves = thread::spawn({
                let waiting = waiting.clone();
                move || lock(&waiting.line).pop()
            });
            wake_each(
                lock(&waiting.line),
                || lock(&waiting.line),
                |line| {
                    let first = (!line.is_empty()).then(|| line.remove(0))?;
                    Some(Waker::from(std::sync::Arc::new(Comes(waiting.clone(), first))))
                },
            );
            let left = leaves.join().unwrap();
            let mut all = std::mem::take(&mut *lock(&waiting.woken));
            all.extend(left);
            assert_eq!(all, [0, 1, 2, 3], "each was woken, or has left");
        });
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
