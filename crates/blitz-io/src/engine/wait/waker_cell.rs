//! A cell for the waker of one task, which many threads may wake.
//!
//! The task registers its waker and then checks whether there is something to do; any number of
//! other threads make something to do and then wake. No thread waits for another, and no wake-up is
//! lost.
//!
//! # Protocol
//! ```text
//!              register                            take, wake
//! EMPTY    --> WRITING, then FULL              --> EMPTY, exchanged for itself
//! FULL     --> WRITING, then FULL              --> TAKING, then EMPTY: wakes what it took
//! WRITING      (another task? wakes itself)    --> WRITING, exchanged for itself
//! TAKING   --> TAKING: wakes itself            --> TAKING: the thread that takes will wake
//! ```
//! The two sides cannot miss each other:
//!
//! ```text
//! the task                                  another thread
//! T1 registers: its last exchange           O1 makes something to do
//!    makes the word FULL                    O2 exchanges the word
//! T2 checks whether there is something
//! ```
//! One of T1 and O2 comes first in the modification order of the word. If O2, T1 acquires what O2
//! released, and T2 sees O1: a wake-up that finds EMPTY or WRITING has nothing more to do. If T1,
//! O2 finds FULL and wakes, or finds TAKING: then a third thread wakes the task, after an exchange
//! that acquires what O2 released. Therefore every transition is an exchange, also those that
//! change nothing.
//!
//! # Invariants
//! - The slot belongs to the thread that made the word WRITING or TAKING; it holds a waker exactly
//!   if the word is FULL, or was FULL before that thread's exchange.
//! - No user code runs while the slot is held: a waker is cloned before, and called or dropped
//!   after. So a waker that panics leaves the cell usable.
//! - One task registers at a time. If two do, the second is woken at once: it may spin, and nothing
//!   breaks.
//!
//! # Rejected
//! - A lock around an `Option`: a thread that wakes would wait for one that registers, and a
//!   wake-up of an empty cell would take the lock too.
//! - A mark 'called while WRITING', so that the writer wakes itself: only a task that does not
//!   check after it has registered needs that.
//!
//! # Checked by
//! `registered_then_woken_is_seen`, `register_against_two_wakes_misses_none`,
//! `two_wakes_wake_once`, `a_second_waker_against_a_wake_is_not_lost`,
//! `a_second_waker_against_two_wakes_is_not_lost`,
//! `a_cell_dropped_after_a_wake_drops_its_waker_once`,
//! `two_tasks_that_register_at_once_break_nothing`; weakened as `cell_nothing_publishes`,
//! `cell_busy_wakes`, `cell_register_sees_taking`, `cell_taken_once`, `cell_orders`. Wakers that
//! panic: `a_waker_that_panics_leaves_the_cell_usable`.

use std::task::Waker;

use crate::engine::prim::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
    UnsafeCell, weakened,
};

const EMPTY: u32 = 0;
const FULL: u32 = 1;
const WRITING: u32 = 2;
const TAKING: u32 = 3;

/// A cell for one waker. One task registers, and any thread may wake.
pub(crate) struct WakerCell {
    word: AtomicU32,
    slot: UnsafeCell<Option<Waker>>,
}

// SAFETY: the slot has one holder at a time (first invariant), and wakers may move between threads.
unsafe impl Send for WakerCell {}
// SAFETY: the slot has one holder at a time (first invariant), and wakers are `Send`.
unsafe impl Sync for WakerCell {}

impl WakerCell {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(EMPTY), slot: UnsafeCell::new(None) }
    }

    /// Registers `waker` for the next wake-up, in place of the one before. The caller must check
    /// for something to do after this call, not only before.
    pub(crate) fn register(&self, waker: &Waker) {
        // Relaxed: a guess at whether a clone can be spared.
        if self.word.load(Relaxed) == FULL && self.register_again(waker) {
            return;
        }
        // Cloning is user code, and so comes before the slot is held.
        let waker = waker.clone();
        if !self.claim() {
            if !weakened!("cell_busy_wakes") {
                waker.wake();
            }
            return;
        }
        // SAFETY: 1. we claimed the slot.
        let stale = unsafe { self.swap(Some(waker)) };
        self.release(FULL);
        // This comes last, because dropping a waker may panic.
        drop(stale);
    }

    /// Registers the waker again that the cell holds already. Returns `false` if that is not
    /// `waker`.
    fn register_again(&self, waker: &Waker) -> bool {
        if !self.claim() {
            return false;
        }
        // SAFETY: 1. we claimed the slot.
        let kept = unsafe { self.would_wake(waker) };
        self.release(if kept.is_some() { FULL } else { EMPTY });
        kept == Some(true)
    }

    /// Takes the waker out, for the caller to wake. Returns `None` if there is none, or if another
    /// thread wakes it.
    #[must_use]
    pub(crate) fn take(&self) -> Option<Waker> {
        let found = self.exchange(|now| if now == FULL { TAKING } else { now });
        let again = found == TAKING && weakened!("cell_taken_once");
        if found != FULL && !again {
            return None;
        }
        // SAFETY: 1. our exchange to TAKING gave us the slot.
        let waker = unsafe { self.swap(None) };
        // This also acquires what the threads released that found TAKING, because we wake for them
        // too.
        self.release(EMPTY);
        waker
    }

    /// Wakes the waker that was registered last, unless it was woken since.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Claims the slot for the caller, which must call `release`. Returns `false` if another thread
    /// holds it.
    fn claim(&self) -> bool {
        let taking = if weakened!("cell_register_sees_taking") { TAKING } else { FULL };
        let free = |now| now == EMPTY || now == FULL || now == taking;
        free(self.exchange(|now| if free(now) { WRITING } else { now }))
    }

    /// Releases the slot; `to` says whether it holds a waker.
    fn release(&self, to: u32) {
        self.exchange(|_| to);
    }

    /// Replaces the word, perhaps by itself, and returns the old value.
    fn exchange(&self, step: impl Fn(u32) -> u32) -> u32 {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let next = step(now);
            if next == now && weakened!("cell_nothing_publishes") {
                return now;
            }
            let order = if weakened!("cell_orders") { Relaxed } else { AcqRel };
            // AcqRel: every exchange sees what those before it released, and releases what its
            // caller did. Each pairs with every other. Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, next, order, Relaxed) {
                Ok(_) => return now,
                Err(seen) => now = seen,
            }
        }
    }

    /// Replaces the contents of the slot, and returns the old contents.
    ///
    /// # Safety
    /// 1. The caller holds the slot.
    unsafe fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: 1. the caller holds the slot, so there is no other reference.
        self.slot.with_mut(|slot| std::mem::replace(unsafe { &mut *slot }, waker))
    }

    /// Returns whether the waker in the slot wakes the same task, or `None` if the slot is empty.
    ///
    /// # Safety
    /// 1. The caller holds the slot.
    unsafe fn would_wake(&self, waker: &Waker) -> Option<bool> {
        // SAFETY: 1. the caller holds the slot, so there is no other reference.
        self.slot.with_mut(|slot| unsafe { (*slot).as_ref() }.map(|old| old.will_wake(waker)))
    }
}

impl std::fmt::Debug for WakerCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: for debug output.
        let registered = self.word.load(Relaxed) == FULL;
        f.debug_struct("WakerCell").field("registered", &registered).finish()
    }
}

#[cfg(test)]
mod models {
    use super::WakerCell;
    use crate::engine::{
        prim::{Arc, AtomicUsize, Ordering::Relaxed, model, thread},
        wait::test_waker::CountingWaker,
    };

    /// A cell, and the number of threads that have made something to do.
    type Shared = Arc<(WakerCell, AtomicUsize)>;

    fn shared() -> Shared {
        Arc::new((WakerCell::new(), AtomicUsize::new(0)))
    }

    /// Makes something to do and wakes, on a thread of its own. Relaxed: the cell orders it.
    fn caller(shared: &Shared) -> thread::JoinHandle<()> {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.1.fetch_add(1, Relaxed);
            shared.0.wake();
        })
    }

    /// Registers, checks and sleeps, until `callers` threads have called.
    fn wait_for(shared: &Shared, counter: &std::sync::Arc<CountingWaker>, callers: usize) {
        loop {
            shared.0.register(&counter.waker());
            if shared.1.load(Relaxed) == callers {
                return;
            }
            counter.wait();
            // A task that finds TAKING wakes itself, again and again until the other thread has
            // gone on.
            thread::yield_now();
        }
    }

    #[test]
    fn registered_then_woken_is_seen() {
        model(|| {
            let (shared, counter) = (shared(), CountingWaker::new());
            shared.0.register(&counter.waker());
            let caller = caller(&shared);
            counter.wait();
            assert_eq!(shared.1.load(Relaxed), 1, "woken before there was something to do");
            caller.join().unwrap();
        });
    }

    #[test]
    fn register_against_two_wakes_misses_none() {
        model(|| {
            let (shared, counter) = (shared(), CountingWaker::new());
            let callers = [caller(&shared), caller(&shared)];
            wait_for(&shared, &counter, 2);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    #[test]
    fn register_against_one_wake_misses_none() {
        model(|| {
            let (shared, counter) = (shared(), CountingWaker::new());
            let caller = caller(&shared);
            wait_for(&shared, &counter, 1);
            caller.join().unwrap();
        });
    }

    #[test]
    fn two_wakes_wake_once() {
        model(|| {
            let (shared, counter) = (shared(), CountingWaker::new());
            shared.0.register(&counter.waker());
            let callers = [caller(&shared), caller(&shared)];
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            assert_eq!(counter.wake_count(), 1);
            assert_eq!(std::sync::Arc::strong_count(&counter), 1, "the cell let it go");
        });
    }

    #[test]
    fn a_second_waker_against_a_wake_is_not_lost() {
        model(|| {
            let (shared, old, new) = (shared(), CountingWaker::new(), CountingWaker::new());
            shared.0.register(&old.waker());
            let caller = caller(&shared);
            wait_for(&shared, &new, 1);
            caller.join().unwrap();
        });
    }

    /// While the first thread takes the old waker, the new one cannot be stored, and the second
    /// wake-up must not be lost because of that.
    #[test]
    fn a_second_waker_against_two_wakes_is_not_lost() {
        model(|| {
            let (shared, old, new) = (shared(), CountingWaker::new(), CountingWaker::new());
            shared.0.register(&old.waker());
            let callers = [caller(&shared), caller(&shared)];
            wait_for(&shared, &new, 2);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    #[test]
    fn a_cell_dropped_after_a_wake_drops_its_waker_once() {
        model(|| {
            let (shared, counter) = (shared(), CountingWaker::new());
            shared.0.register(&counter.waker());
            let caller = caller(&shared);
            // The last of the two threads drops the cell.
            drop(shared);
            caller.join().unwrap();
            assert_eq!((counter.wake_count(), std::sync::Arc::strong_count(&counter)), (1, 1));
        });
    }

    #[test]
    fn two_tasks_that_register_at_once_break_nothing() {
        model(|| {
            let (shared, counters) = (shared(), [CountingWaker::new(), CountingWaker::new()]);
            let other = thread::spawn({
                let (shared, counter) = (shared.clone(), counters[1].clone());
                move || shared.0.register(&counter.waker())
            });
            shared.0.register(&counters[0].waker());
            shared.0.wake();
            other.join().unwrap();
            drop(shared);
            assert!(counters.iter().all(|counter| std::sync::Arc::strong_count(counter) == 1));
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::Arc,
        task::{RawWaker, RawWakerVTable, Waker},
    };

    use super::WakerCell;
    use crate::engine::wait::test_waker::CountingWaker;

    const TABLE: RawWakerVTable = RawWakerVTable::new(clone, panic_of, panic_of, panic_of);

    /// Clones the waker, or panics.
    ///
    /// # Safety
    /// 1. There is no obligation: the data is never dereferenced.
    unsafe fn clone(data: *const ()) -> RawWaker {
        if data.is_null() {
            panic!("this waker panics, as the test wants when cloned");
        }
        RawWaker::new(data, &TABLE)
    }

    /// Panics.
    ///
    /// # Safety
    /// 1. There is no obligation: the data is never dereferenced.
    unsafe fn panic_of(_: *const ()) {
        panic!("this waker panics, as the test wants");
    }

    /// Creates a waker that panics when it is called or dropped, and perhaps when cloned.
    fn bad(clones: bool) -> std::mem::ManuallyDrop<Waker> {
        let data = if clones { std::ptr::dangling() } else { std::ptr::null() };
        // SAFETY: the functions of the table require nothing of the data.
        std::mem::ManuallyDrop::new(unsafe { Waker::new(data, &TABLE) })
    }

    fn panics(f: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(f)).is_err()
    }

    #[test]
    #[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
    fn a_waker_cell_is_small() {
        assert_eq!(size_of::<WakerCell>(), 24);
    }

    #[test]
    fn a_waker_that_panics_leaves_the_cell_usable() {
        let (cell, counter) = (WakerCell::new(), CountingWaker::new());
        cell.register(&counter.waker());
        assert!(panics(|| cell.register(&bad(false))), "its clone");
        cell.wake();
        assert_eq!(counter.wake_count(), 1, "what was registered before is still there");
        cell.register(&bad(true));
        assert!(panics(|| cell.register(&counter.waker())), "the drop of the one before");
        cell.wake();
        assert_eq!(counter.wake_count(), 2);
        cell.register(&bad(true));
        assert!(panics(|| cell.wake()), "its call");
        cell.register(&counter.waker());
        cell.wake();
        assert_eq!((counter.wake_count(), Arc::strong_count(&counter)), (3, 1));
    }

    #[test]
    fn the_same_waker_is_cloned_once() {
        let (cell, counter) = (WakerCell::new(), CountingWaker::new());
        let waker = counter.waker();
        for _ in 0..3 {
            cell.register(&waker);
            assert_eq!(Arc::strong_count(&counter), 3);
        }
        assert!(cell.take().is_some_and(|taken| taken.will_wake(&waker)));
        assert!(cell.take().is_none());
        assert_eq!(counter.wake_count(), 0, "taking does not wake");
    }
}
