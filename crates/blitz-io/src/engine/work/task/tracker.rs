//! A count of tracked things, and the tasks that wait until it is zero and closed.
//!
//! ```text
//! | count (all other bits) | closed (1) |
//! ```
//!
//! # Protocol
//! The tracker is *over* while it is closed and the count is zero. Tracking and
//! leaving are one operation on the word each, without a lock.
//! ```text
//! The thread that makes it over (the last   A task that waits
//! to leave, or one that closes an empty one)
//! L1 changes the word                       W1 locks
//! L2 locks, adds one to `times_over`,       W2 reads `times_over` and the word
//!    takes the wakers, unlocks              W3 registers a waker, unlocks
//! L3 wakes them
//! ```
//! If L2's lock comes before W1's, W2 sees that `times_over` has changed, or, for a
//! wait that began later, the word of L1; if W1's comes first, L2 finds the waker.
//! `times_over` also serves waits that come too late to find the tracker over: it was over
//! at some time since they began.
//!
//! # Checked by
//! `the_last_to_leave_against_a_wait_wakes_or_is_seen`,
//! `closing_against_the_last_to_leave_wakes_the_waiter`; weakened as
//! `tracker_wait_checks`, `tracker_leave_publishes`.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll, Waker},
};

use crate::engine::prim::{
    AtomicUsize, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed},
    discard, lock, weakened,
};

const CLOSED: usize = 1;
const ONE: usize = 2;

/// A count of tracked things that can be closed and awaited.
pub(crate) struct Tracker {
    word: AtomicUsize,
    waiters: Mutex<Waiters>,
}

struct Waiters {
    /// The number of times that the tracker was over.
    times_over: u64,
    next_key: u64,
    wakers: Vec<(u64, Waker)>,
}

/// A wait for the tracker to be over.
#[derive(Debug)]
pub(crate) struct TrackerWait {
    times_over: u64,
    /// The key of its waker in the list.
    key: Option<u64>,
}

impl Tracker {
    pub(crate) fn new() -> Self {
        let waiters = Waiters { times_over: 0, next_key: 0, wakers: Vec::new() };
        Self { word: AtomicUsize::new(0), waiters: Mutex::new(waiters) }
    }

    /// Counts one more tracked thing.
    #[inline]
    pub(crate) fn enter(&self) {
        // Relaxed: a count; what a tracked thing does is published when it leaves.
        self.word.fetch_add(ONE, Relaxed);
    }

    /// Counts one tracked thing less, and wakes the waiters if it was the last and the tracker is
    /// closed.
    #[inline]
    pub(crate) fn leave(&self) {
        let order = if weakened!("tracker_leave_publishes") { Relaxed } else { AcqRel };
        // AcqRel: what the tracked thing did happens before the end of a wait. Pairs with itself,
        // through which the last to leave passes it on, and with the Acquire in `is_over`.
        if self.word.fetch_sub(ONE, order) == ONE | CLOSED {
            self.wake_waiters();
        }
    }

    /// Closes the tracker; returns true if it was open.
    pub(crate) fn close(&self) -> bool {
        // AcqRel: a thread that closes an empty tracker passes on what others published by
        // leaving. Pairs with the AcqRel in `leave` and the Acquire in `is_over`.
        let before = self.word.fetch_or(CLOSED, AcqRel);
        if before == 0 {
            self.wake_waiters();
        }
        before & CLOSED == 0
    }

    /// Reopens the tracker; returns true if it was closed.
    pub(crate) fn reopen(&self) -> bool {
        // AcqRel: keeps what was published in the word's chain. Pairs with `leave`.
        self.word.fetch_and(!CLOSED, AcqRel) & CLOSED != 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: what was done before closing is seen. Pairs with the AcqRel in
        // `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    pub(crate) fn len(&self) -> usize {
        // Acquire: sees what tracked things did before they left. Pairs with the AcqRel in
        // `leave`.
        self.word.load(Acquire) / ONE
    }

    fn is_over(&self) -> bool {
        // Acquire: sees what tracked things did before they left. Pairs with the AcqRel in
        // `leave` and `close`.
        self.word.load(Acquire) == CLOSED
    }

    /// Wakes all waiters: L2 and L3.
    #[cold]
    fn wake_waiters(&self) {
        let wakers = {
            let mut waiters = lock(&self.waiters);
            waiters.times_over += 1;
            std::mem::take(&mut waiters.wakers)
        };
        for (_, waker) in wakers {
            // A foreign waker that panics must not prevent the other wake-ups.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                discard(payload);
            }
        }
    }

    /// Begins a wait, which ends if the tracker is over at any time from now on.
    pub(crate) fn wait(&self) -> TrackerWait {
        TrackerWait { times_over: lock(&self.waiters).times_over, key: None }
    }

    pub(crate) fn poll_wait(&self, wait: &mut TrackerWait, cx: &mut Context<'_>) -> Poll<()> {
        // Cloned before the lock is taken, because a waker's clone is user code.
        let new = cx.waker().clone();
        let mut waiters = lock(&self.waiters);
        let checks = !weakened!("tracker_wait_checks");
        let over = checks && (waiters.times_over != wait.times_over || self.is_over());
        let old = waiters.take(&mut wait.key);
        let unused = if over {
            Some(new)
        } else {
            let key = waiters.next_key;
            waiters.next_key += 1;
            waiters.wakers.push((key, new));
            wait.key = Some(key);
            None
        };
        drop(waiters);
        drop((old, unused));
        if over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ends a wait, whether the tracker was over or not.
    pub(crate) fn end_wait(&self, wait: &mut TrackerWait) {
        if wait.key.is_some() {
            let old = lock(&self.waiters).take(&mut wait.key);
            drop(old);
        }
    }
}

impl Waiters {
    /// Takes the waker of a wait out of the list; the caller must drop it without the lock.
    fn take(&mut self, key: &mut Option<u64>) -> Option<Waker> {
        let key = key.take()?;
        let index = self.wakers.iter().position(|(of, _)| *of == key)?;
        Some(self.wakers.swap_remove(index).1)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        task::{Context, Wake, Waker},
    };

    use super::Tracker;
    use crate::engine::prim::{UnsafeCell, ids::Tally, model, thread};

    #[derive(Default)]
    struct TrackerTestWaker(Tally);

    impl Wake for TrackerTestWaker {
        fn wake(self: Arc<Self>) {
            self.0.add();
        }
    }

    /// A tracker, and a value that a tracked thread writes.
    struct Shared {
        tracker: Tracker,
        work: UnsafeCell<u32>,
    }

    // SAFETY: the tracked thread writes, and the thread that has waited for it reads: that is
    // what the models check.
    unsafe impl Sync for Shared {}
    // SAFETY: the value may move between threads.
    unsafe impl Send for Shared {}

    fn shared() -> Arc<Shared> {
        let shared = Shared { tracker: Tracker::new(), work: UnsafeCell::new(0) };
        shared.tracker.enter();
        Arc::new(shared)
    }

    fn work_and_leave(shared: &Shared) {
        // SAFETY: no thread has finished waiting for us yet.
        shared.work.with_mut(|work| unsafe { *work = 1 });
        shared.tracker.leave();
    }

    /// Waits, with the end of `other` as the last chance, and checks the work.
    fn wait_for(shared: &Shared, other: thread::JoinHandle<()>) {
        let test_waker = Arc::new(TrackerTestWaker::default());
        let waker = Waker::from(test_waker.clone());
        let mut cx = Context::from_waker(&waker);
        let mut wait = shared.tracker.wait();
        let early = shared.tracker.poll_wait(&mut wait, &mut cx).is_ready();
        // SAFETY: read only after the wait is over.
        let read = || shared.work.with(|work| unsafe { *work });
        if early {
            assert_eq!(read(), 1);
        }
        other.join().unwrap();
        if !early {
            assert_eq!(test_waker.0.get(), 1, "the end of the last woke no task");
            assert!(shared.tracker.poll_wait(&mut wait, &mut cx).is_ready());
        }
        assert_eq!(read(), 1);
        shared.tracker.end_wait(&mut wait);
        drop(waker);
        assert_eq!(Arc::strong_count(&test_waker), 1, "a waker is left");
    }

    #[test]
    fn the_last_to_leave_against_a_wait_wakes_or_is_seen() {
        model(|| {
            let shared = shared();
            assert!(shared.tracker.close());
            let other = thread::spawn({
                let shared = shared.clone();
                move || work_and_leave(&shared)
            });
            wait_for(&shared, other);
        });
    }

    #[test]
    fn closing_against_the_last_to_leave_wakes_the_waiter() {
        model(|| {
            let shared = shared();
            let other = thread::spawn({
                let shared = shared.clone();
                move || work_and_leave(&shared)
            });
            assert!(shared.tracker.close());
            wait_for(&shared, other);
        });
    }
}
