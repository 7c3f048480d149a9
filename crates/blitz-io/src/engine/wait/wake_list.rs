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
//! `a_wake_list_that_is_dropped_wakes`, `more_than_a_wake_list_are_all_woken_under_no_lock`;
//! weakened as `wake_list_goes_on`, `wake_list_unlocks`.

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
pub(crate) struct WakeList {
    wakers: [MaybeUninit<Waker>; SIZE],
    /// The number of wakers that are initialized, from the front.
    len: usize,
}

impl WakeList {
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
/// each after the lock was released. `lock_again` takes the lock for the next list.
pub(crate) fn wake_each<L>(
    mut guard: L,
    lock_again: impl Fn() -> L,
    mut next: impl FnMut(&mut L) -> Option<Waker>,
) {
    let mut wake_list = WakeList::new();
    loop {
        while !wake_list.is_full()
            && let Some(waker) = next(&mut guard)
        {
            wake_list.push(waker);
        }
        let is_full = wake_list.is_full();
        if weakened!("wake_list_unlocks") {
            wake_list.wake_all();
        }
        drop(guard);
        wake_list.wake_all();
        if !is_full || weakened!("wake_list_goes_on") {
            return;
        }
        guard = lock_again();
    }
}

impl Drop for WakeList {
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
    struct WakeListModel {
        waiting: Mutex<Vec<usize>>,
        woken: Mutex<Vec<usize>>,
    }

    /// A waker that takes the lock when it is woken, as user code may.
    struct LockingWaker(Arc<WakeListModel>, usize);

    impl Wake for LockingWaker {
        fn wake(self: std::sync::Arc<Self>) {
            drop(lock(&self.0.waiting));
            lock(&self.0.woken).push(self.1);
        }
    }

    /// Wake lists of a model hold two. Another thread removes a waiter meanwhile.
    #[test]
    fn more_than_a_wake_list_are_all_woken_under_no_lock() {
        model(|| {
            let waiting = Arc::new(WakeListModel::default());
            lock(&waiting.waiting).extend(0..4);
            let remover = thread::spawn({
                let waiting = waiting.clone();
                move || lock(&waiting.waiting).pop()
            });
            wake_each(
                lock(&waiting.waiting),
                || lock(&waiting.waiting),
                |waiting_now| {
                    let first = (!waiting_now.is_empty()).then(|| waiting_now.remove(0))?;
                    Some(Waker::from(std::sync::Arc::new(LockingWaker(waiting.clone(), first))))
                },
            );
            let removed = remover.join().unwrap();
            let mut all = std::mem::take(&mut *lock(&waiting.woken));
            all.extend(removed);
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

    use super::{SIZE, WakeList};
    use crate::engine::wait::test_waker::CountingWaker;

    struct PanickingWaker;

    impl Wake for PanickingWaker {
        fn wake(self: Arc<Self>) {
            panic!("this waker panics, as the test wants");
        }
    }

    #[test]
    fn a_waker_that_panics_does_not_keep_the_others_from_being_woken() {
        let (counter, mut wake_list) = (CountingWaker::new(), WakeList::new());
        wake_list.push(counter.waker());
        wake_list.push(Waker::from(Arc::new(PanickingWaker)));
        while !wake_list.is_full() {
            wake_list.push(counter.waker());
        }
        wake_list.wake_all();
        assert_eq!(counter.wake_count(), SIZE - 1);
        wake_list.wake_all();
        assert_eq!(
            (counter.wake_count(), Arc::strong_count(&counter)),
            (SIZE - 1, 1),
            "each is woken once"
        );
    }

    #[test]
    fn a_wake_list_that_is_dropped_wakes() {
        let (counter, mut wake_list) = (CountingWaker::new(), WakeList::new());
        wake_list.push(counter.waker());
        drop(wake_list);
        assert_eq!((counter.wake_count(), Arc::strong_count(&counter)), (1, 1));
    }
}
