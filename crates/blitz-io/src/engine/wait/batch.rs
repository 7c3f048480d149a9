//! A wake list: wakers that are collected under a lock, to be woken after it was released.
//!
//! A waker is user code. If it were called under a lock, it might try to take that lock, or keep
//! every other thread from it. So code that serves a wait queue collects the wakers here, releases
//! the lock, and wakes. When the list is full, it releases the lock, wakes and comes back for the
//! rest.
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

/// The capacity of a wake list: half a kilobyte of stack. It is Tokio's number, not measured here.
/// Two in a model, so that the model sees a full list.
const SIZE: usize = if cfg!(blitz_loom) { 2 } else { 32 };

/// A list of wakers, which are woken by [`wake_all`](Self::wake_all) or when the list is dropped.
pub(crate) struct Batch {
    wakers: [MaybeUninit<Waker>; SIZE],
    /// The number of wakers that are initialized, from the front.
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

    /// Adds a waker.
    ///
    /// # Panics
    /// If the list is full: callers must check [`is_full`](Self::is_full).
    #[inline]
    pub(crate) fn push(&mut self, waker: Waker) {
        self.wakers[self.len].write(waker);
        self.len += 1;
    }

    /// Wakes all wakers in the order in which they were added, and empties the list.
    ///
    /// A panic of a waker is dropped, because there is no caller to pass it to: the panic hook has
    /// reported it, and the other wakers must be woken all the same.
    pub(crate) fn wake_all(&mut self) {
        let len = std::mem::take(&mut self.len);
        for waker in &self.wakers[..len] {
            // SAFETY: the first `len` wakers are initialized, and each is read once, because
            // `self.len` is zero by now.
            let waker = unsafe { waker.assume_init_read() };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }
}

/// Wakes the wakers that `next` removes under a lock, until it returns `None`: one list at a time,
/// each after the lock was released. `again` takes the lock for the next list.
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

    /// Waiters by their number, and those that were woken.
    #[derive(Default)]
    struct Waiting {
        line: Mutex<Vec<usize>>,
        woken: Mutex<Vec<usize>>,
    }

    /// A waker that takes the lock when it is woken, as user code may.
    struct Comes(Arc<Waiting>, usize);

    impl Wake for Comes {
        fn wake(self: std::sync::Arc<Self>) {
            drop(lock(&self.0.line));
            lock(&self.0.woken).push(self.1);
        }
    }

    /// Wake lists of a model hold two. Another thread removes a waiter meanwhile.
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
