//! One waker, which many may wake.
//!
//! One task registers its waker and then looks whether there is something to do;
//! any number of others make something to do and then wake. Nobody waits for
//! anybody, and no wake-up is lost.
//!
//! # Protocol
//! ```text
//!              register                            take, wake
//! EMPTY    --> WRITING, then FULL              --> EMPTY, exchanged for itself
//! FULL     --> WRITING, then FULL              --> TAKING, then EMPTY: wakes what it took
//! WRITING      (another task? wakes itself)    --> WRITING, exchanged for itself
//! TAKING   --> TAKING: wakes itself            --> TAKING: who takes will wake
//! ```
//! The two sides cannot miss each other:
//!
//! ```text
//! the task                                  another
//! T1 registers: its last exchange           O1 makes something to do
//!    makes the word FULL                    O2 exchanges the word
//! T2 looks whether there is something
//! ```
//! One of T1 and O2 comes first in the order of the word. If O2, T1 acquires what O2
//! released, and T2 sees O1: a wake-up that finds EMPTY or WRITING has nothing more
//! to do. If T1, O2 finds FULL and wakes, or finds TAKING: then a third wakes the
//! task, after an exchange that acquires what O2 released. Therefore every
//! transition is an exchange, also those that change nothing.
//!
//! # Invariants
//! - The slot belongs to whoever made the word WRITING or TAKING; it holds a waker
//!   exactly if the word is FULL, or was before that.
//! - No user code while the slot is held: a waker is cloned before, and called or
//!   dropped after. So a waker that panics leaves the cell usable.
//! - One task registers at a time. Should two, the second is woken at once: it may
//!   spin, and nothing breaks.
//!
//! # Rejected
//! - A lock round an `Option`: whoever wakes would wait for whoever registers, and
//!   a wake-up of an empty cell would take it too.
//! - A mark 'called while WRITING', for the writer to wake itself: only a task that
//!   does not look after it has registered needs that.
//!
//! # Checked by
//! `registered_then_woken_is_seen`, `register_against_two_wakes_misses_none`,
//! `two_wakes_wake_once`, `a_second_waker_against_a_wake_is_not_lost`,
//! `a_second_waker_against_two_wakes_is_not_lost`,
//! `a_cell_dropped_after_a_wake_drops_its_waker_once`,
//! `two_who_register_at_once_break_nothing`; weakened as `cell_nothing_publishes`,
//! `cell_busy_wakes`, `cell_register_sees_taking`, `cell_taken_once`,
//! `cell_orders`. Wakers that panic: `a_waker_that_panics_leaves_the_cell_usable`.

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

/// See the module.
pub(crate) struct WakerCell {
    word: AtomicU32,
    slot: UnsafeCell<Option<Waker>>,
}

// SAFETY: the slot has one holder at a time (first invariant), and wakers may move
// between threads.
unsafe impl Send for WakerCell {}
// SAFETY: as above.
unsafe impl Sync for WakerCell {}

impl WakerCell {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(EMPTY), slot: UnsafeCell::new(None) }
    }

    /// Sees that the next wake-up wakes `waker`, and no longer the one before. The
    /// caller looks for something to do after this, not only before.
    pub(crate) fn register(&self, waker: &Waker) {
        // Relaxed: a guess at whether a clone can be spared.
        if self.word.load(Relaxed) == FULL && self.keep(waker) {
            return;
        }
        // A user's code, and so before the slot is held.
        let waker = waker.clone();
        if !self.claim() {
            if !weakened!("cell_busy_wakes") {
                waker.wake();
            }
            return;
        }
        // SAFETY: 1. we claimed the slot.
        let stale = unsafe { self.swap(Some(waker)) };
        self.let_go(FULL);
        // Last: dropping it may panic.
        drop(stale);
    }

    /// Registers anew what is registered already; `false` if that is not `waker`.
    fn keep(&self, waker: &Waker) -> bool {
        if !self.claim() {
            return false;
        }
        // SAFETY: 1. we claimed the slot.
        let kept = unsafe { self.would_wake(waker) };
        self.let_go(if kept.is_some() { FULL } else { EMPTY });
        kept == Some(true)
    }

    /// Takes the waker out, for the caller to wake; `None` if there is none, or if
    /// somebody else wakes it.
    #[must_use]
    pub(crate) fn take(&self) -> Option<Waker> {
        let found = self.exchange(|now| if now == FULL { TAKING } else { now });
        let again = found == TAKING && weakened!("cell_taken_once");
        if found != FULL && !again {
            return None;
        }
        // SAFETY: 1. TAKING made the slot ours.
        let waker = unsafe { self.swap(None) };
        // Also sees what those released who found TAKING: we wake for them too.
        self.let_go(EMPTY);
        waker
    }

    /// Wakes the waker that was registered last, unless it was woken since.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Makes the slot the caller's, who lets it go; `false` if somebody is at it.
    fn claim(&self) -> bool {
        let taking = if weakened!("cell_register_sees_taking") { TAKING } else { FULL };
        let free = |now| now == EMPTY || now == FULL || now == taking;
        free(self.exchange(|now| if free(now) { WRITING } else { now }))
    }

    /// Gives the slot up, which holds a waker or not.
    fn let_go(&self, to: u32) {
        self.exchange(|_| to);
    }

    /// Replaces the word, perhaps by itself; answers with what it was.
    fn exchange(&self, step: impl Fn(u32) -> u32) -> u32 {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let next = step(now);
            if next == now && weakened!("cell_nothing_publishes") {
                return now;
            }
            let order = if weakened!("cell_orders") { Relaxed } else { AcqRel };
            // AcqRel: every exchange sees what those before it released, and releases
            // what its caller did. Each pairs with every other. Relaxed on failure:
            // a better guess.
            match self.word.compare_exchange_weak(now, next, order, Relaxed) {
                Ok(_) => return now,
                Err(seen) => now = seen,
            }
        }
    }

    /// # Safety
    /// 1. The caller holds the slot.
    unsafe fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: 1.: nobody else has a reference.
        self.slot.with_mut(|slot| std::mem::replace(unsafe { &mut *slot }, waker))
    }

    /// Whether what the slot holds wakes the same task; `None` if it is empty.
    ///
    /// # Safety
    /// 1. The caller holds the slot.
    unsafe fn would_wake(&self, waker: &Waker) -> Option<bool> {
        // SAFETY: 1.: nobody else has a reference.
        self.slot.with_mut(|slot| unsafe { (*slot).as_ref() }.map(|old| old.will_wake(waker)))
    }
}

impl std::fmt::Debug for WakerCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Relaxed: a look.
        let registered = self.word.load(Relaxed) == FULL;
        f.debug_struct("WakerCell").field("registered", &registered).finish()
    }
}

#[cfg(test)]
mod models {
    use super::WakerCell;
    use crate::engine::{
        prim::{Arc, AtomicUsize, Ordering::Relaxed, model, thread},
        wait::bell::Bell,
    };

    /// A cell, and how many have made something to do.
    type Shared = Arc<(WakerCell, AtomicUsize)>;

    fn shared() -> Shared {
        Arc::new((WakerCell::new(), AtomicUsize::new(0)))
    }

    /// Makes something to do and wakes. Relaxed: the cell is what orders it.
    fn caller(shared: &Shared) -> thread::JoinHandle<()> {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.1.fetch_add(1, Relaxed);
            shared.0.wake();
        })
    }

    /// Registers, looks, sleeps, until so many have called.
    fn wait_for(shared: &Shared, bell: &std::sync::Arc<Bell>, callers: usize) {
        loop {
            shared.0.register(&bell.waker());
            if shared.1.load(Relaxed) == callers {
                return;
            }
            bell.listen();
            // Who finds TAKING rings its own bell, until the other has gone on.
            thread::yield_now();
        }
    }

    #[test]
    fn registered_then_woken_is_seen() {
        model(|| {
            let (shared, bell) = (shared(), Bell::new());
            shared.0.register(&bell.waker());
            let caller = caller(&shared);
            bell.listen();
            assert_eq!(shared.1.load(Relaxed), 1, "woken before there was something to do");
            caller.join().unwrap();
        });
    }

    #[test]
    fn register_against_two_wakes_misses_none() {
        model(|| {
            let (shared, bell) = (shared(), Bell::new());
            let callers = [caller(&shared), caller(&shared)];
            wait_for(&shared, &bell, 2);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    #[test]
    fn register_against_one_wake_misses_none() {
        model(|| {
            let (shared, bell) = (shared(), Bell::new());
            let caller = caller(&shared);
            wait_for(&shared, &bell, 1);
            caller.join().unwrap();
        });
    }

    #[test]
    fn two_wakes_wake_once() {
        model(|| {
            let (shared, bell) = (shared(), Bell::new());
            shared.0.register(&bell.waker());
            let callers = [caller(&shared), caller(&shared)];
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            assert_eq!(bell.rung(), 1);
            assert_eq!(std::sync::Arc::strong_count(&bell), 1, "the cell let it go");
        });
    }

    #[test]
    fn a_second_waker_against_a_wake_is_not_lost() {
        model(|| {
            let (shared, old, new) = (shared(), Bell::new(), Bell::new());
            shared.0.register(&old.waker());
            let caller = caller(&shared);
            wait_for(&shared, &new, 1);
            caller.join().unwrap();
        });
    }

    /// While the first takes the old waker there is no place for the new one, and the
    /// second must not be missed for it.
    #[test]
    fn a_second_waker_against_two_wakes_is_not_lost() {
        model(|| {
            let (shared, old, new) = (shared(), Bell::new(), Bell::new());
            shared.0.register(&old.waker());
            let callers = [caller(&shared), caller(&shared)];
            wait_for(&shared, &new, 2);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    }

    #[test]
    fn a_cell_dropped_after_a_wake_drops_its_waker_once() {
        model(|| {
            let (shared, bell) = (shared(), Bell::new());
            shared.0.register(&bell.waker());
            let caller = caller(&shared);
            // Whoever is last drops the cell.
            drop(shared);
            caller.join().unwrap();
            assert_eq!((bell.rung(), std::sync::Arc::strong_count(&bell)), (1, 1));
        });
    }

    #[test]
    fn two_who_register_at_once_break_nothing() {
        model(|| {
            let (shared, bells) = (shared(), [Bell::new(), Bell::new()]);
            let other = thread::spawn({
                let (shared, bell) = (shared.clone(), bells[1].clone());
                move || shared.0.register(&bell.waker())
            });
            shared.0.register(&bells[0].waker());
            shared.0.wake();
            other.join().unwrap();
            drop(shared);
            assert!(bells.iter().all(|bell| std::sync::Arc::strong_count(bell) == 1));
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
    use crate::engine::wait::bell::Bell;

    const TABLE: RawWakerVTable = RawWakerVTable::new(clone, panic_of, panic_of, panic_of);

    /// # Safety
    /// 1. None: it has no data.
    unsafe fn clone(data: *const ()) -> RawWaker {
        if data.is_null() {
            panic!("this waker was told to panic when cloned");
        }
        RawWaker::new(data, &TABLE)
    }

    /// # Safety
    /// 1. None: it has no data.
    unsafe fn panic_of(_: *const ()) {
        panic!("this waker was told to panic");
    }

    /// A waker that panics when it is called or dropped, and perhaps when cloned.
    fn bad(clones: bool) -> std::mem::ManuallyDrop<Waker> {
        let data = if clones { std::ptr::dangling() } else { std::ptr::null() };
        // SAFETY: the table asks for nothing of its data.
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
        let (cell, bell) = (WakerCell::new(), Bell::new());
        cell.register(&bell.waker());
        assert!(panics(|| cell.register(&bad(false))), "its clone");
        cell.wake();
        assert_eq!(bell.rung(), 1, "what was registered before is still there");
        cell.register(&bad(true));
        assert!(panics(|| cell.register(&bell.waker())), "the drop of the one before");
        cell.wake();
        assert_eq!(bell.rung(), 2);
        cell.register(&bad(true));
        assert!(panics(|| cell.wake()), "its call");
        cell.register(&bell.waker());
        cell.wake();
        assert_eq!((bell.rung(), Arc::strong_count(&bell)), (3, 1));
    }

    #[test]
    fn the_same_waker_is_cloned_once() {
        let (cell, bell) = (WakerCell::new(), Bell::new());
        let waker = bell.waker();
        for _ in 0..3 {
            cell.register(&waker);
            assert_eq!(Arc::strong_count(&bell), 3);
        }
        assert!(cell.take().is_some_and(|taken| taken.will_wake(&waker)));
        assert!(cell.take().is_none());
        assert_eq!(bell.rung(), 0, "taking does not wake");
    }
}
