//! A lock that is let go by a store: for a few instructions, taken all the time, and
//! hardly ever by two at once.
//!
//! A `Mutex` pays for two read-modify-writes, and the second is there only to learn
//! whether somebody sleeps. Here whoever sleeps pays for that, with the heavy barrier.
//!
//! # Protocol
//! ```text
//! who lets the bolt go                      who waits for it, after some spinning
//! U1 stores FREE                            W1 adds itself to `waiting`
//! U2 light()                                W2 heavy()
//! U3 reads `waiting`: 0, done               W3 reads the bell
//! U4 rings the bell                         W4 tries the bolt: has it, done
//!                                           W5 sleeps if the bell is as it was, goes to W3
//! ```
//! If U2 comes before W2, W4 sees U1. If after, U3 sees W1, and U4 changes the bell: if
//! before W3, W4 sees U1; if after, W5 does not sleep, or is woken.
//!
//! # Invariants
//! Whoever lets a bolt go keeps the gate alive: it looks at it afterwards.
//!
//! # Rejected
//! A gate for each bolt: a gate is three words where a bolt is half a one, and who is
//! woken for another's bolt only looks once more.
//!
//! # Checked by
//! `a_latch_guards_as_a_lock_does`, `who_sleeps_for_a_latch_is_woken`,
//! `a_gate_of_two_latches_wakes_both`; weakened as `latch_acquire`, `latch_release`,
//! `latch_heavy`, `latch_rings`. A holder that panics: `a_panic_lets_a_latch_go`.

use std::ops::{Deref, DerefMut};

use crate::engine::prim::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    UnsafeCell,
    backoff::Backoff,
    barrier::{self, Mechanism},
    futex::Futex,
    weakened,
};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The word of the lock, for those who keep elsewhere what it guards.
pub(super) struct Bolt(AtomicU32);

impl Bolt {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the bolt; the caller gives it back with [`unlock`](Self::unlock).
    #[inline]
    pub(super) fn lock(&self, gate: &Gate) {
        if !self.try_lock() {
            self.wait(gate);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let order = if weakened!("latch_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the holder before did. Pairs with the Release in `unlock`.
        self.0.compare_exchange(FREE, HELD, order, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self, gate: &Gate) {
        let mut backoff = Backoff::default();
        // A model's spin would be one step of many for nothing.
        while !cfg!(blitz_loom) && backoff.spin() {
            // Relaxed: a guess at whether it is worth trying.
            if self.0.load(Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        gate.pass(|| self.try_lock());
    }

    /// U1 to U4, by who has it, with the gate at which others wait for it.
    #[inline]
    pub(super) fn unlock(&self, gate: &Gate) {
        let order = if weakened!("latch_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_lock`.
        self.0.store(FREE, order);
        gate.unlocked();
    }
}

/// Where those sleep who wait for a bolt, of whichever bolt of the channel.
pub(super) struct Gate {
    /// Whether the process pays for its barriers on both sides.
    fences: bool,
    waiting: AtomicU32,
    /// Changed whenever a bolt was let go while somebody waited.
    bell: Futex,
}

impl Gate {
    pub(super) fn new() -> Self {
        let fences = barrier::mechanism() == Mechanism::Fences;
        Self { fences, waiting: AtomicU32::new(0), bell: Futex::new(0) }
    }

    /// U2 and U3.
    #[inline]
    fn unlocked(&self) {
        barrier::light_as(self.fences);
        // Relaxed: the barrier above orders it after the store of U1.
        if self.waiting.load(Relaxed) != 0 {
            self.ring();
        }
    }

    /// U4.
    #[cold]
    fn ring(&self) {
        if weakened!("latch_rings") {
            return;
        }
        // Release: whoever reads the new number finds the bolt as it was let go. Pairs
        // with the Acquire in `pass`.
        self.bell.word().fetch_add(1, Release);
        self.bell.wake_all();
    }

    /// W1 to W5.
    fn pass(&self, try_lock: impl Fn() -> bool) {
        // Relaxed: the barrier below orders it before the tries.
        self.waiting.fetch_add(1, Relaxed);
        if !weakened!("latch_heavy") {
            barrier::heavy();
        }
        loop {
            // Acquire: pairs with the Release in `ring`.
            let before = self.bell.word().load(Acquire);
            if try_lock() {
                break;
            }
            self.bell.wait(before, None);
        }
        // Relaxed: a bell too many is harmless.
        self.waiting.fetch_sub(1, Relaxed);
    }
}

/// A value behind a bolt.
pub(super) struct Latch<T> {
    bolt: Bolt,
    value: UnsafeCell<T>,
}

// SAFETY: the holder of the bolt is alone with the value, which may move between
// threads.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    pub(super) fn new(value: T) -> Self {
        Self { bolt: Bolt::new(), value: UnsafeCell::new(value) }
    }

    /// Locks, with the gate at which all wait for this latch: always the same one.
    #[inline]
    pub(super) fn lock<'a>(&'a self, gate: &'a Gate) -> Latched<'a, T> {
        self.bolt.lock(gate);
        // A model notes the access here, and again when it ends.
        let value = self.value.with_mut(|value| value);
        Latched { latch: self, gate, value }
    }
}

/// The value of a latch, until this is dropped.
pub(super) struct Latched<'a, T> {
    latch: &'a Latch<T>,
    gate: &'a Gate,
    value: *mut T,
}

impl<T> Deref for Latched<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we hold the bolt, so nobody else has a reference; it lives as long as
        // the latch.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for Latched<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.value }
    }
}

impl<T> Drop for Latched<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.latch.value.with_mut(|_| ());
        self.latch.bolt.unlock(self.gate);
    }
}

#[cfg(test)]
mod models {
    use super::{Gate, Latch};
    use crate::engine::prim::{Arc, model, model_deeper, thread};

    type Shared<const N: usize> = Arc<(Gate, [Latch<u32>; N])>;

    fn shared<const N: usize>() -> Shared<N> {
        Arc::new((Gate::new(), std::array::from_fn(|_| Latch::new(0))))
    }

    fn add<const N: usize>(shared: &Shared<N>, at: usize) -> u32 {
        let mut value = shared.1[at].lock(&shared.0);
        *value += 1;
        *value
    }

    fn two_add_to_one() {
        let shared = shared::<1>();
        let other = thread::spawn({
            let shared = shared.clone();
            move || add(&shared, 0)
        });
        add(&shared, 0);
        other.join().unwrap();
        assert_eq!(add(&shared, 0), 3);
    }

    #[test]
    fn a_latch_guards_as_a_lock_does() {
        model(two_add_to_one);
    }

    /// Without spinning, as models are, who finds it locked sleeps: if it were not
    /// woken, the model would end in a deadlock.
    #[test]
    fn who_sleeps_for_a_latch_is_woken() {
        model_deeper(two_add_to_one);
    }

    #[test]
    fn a_gate_of_two_latches_wakes_both() {
        model(|| {
            let shared = shared::<2>();
            let others = [0, 1].map(|at| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared, at))
            });
            add(&shared, 0);
            add(&shared, 1);
            others.into_iter().for_each(|other| assert!(other.join().unwrap() <= 2));
            assert_eq!((add(&shared, 0), add(&shared, 1)), (3, 3));
        });
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::Arc,
    };

    use super::{Gate, Latch};
    use crate::engine::prim::thread;

    #[test]
    fn a_panic_lets_a_latch_go() {
        let (gate, latch) = (Gate::new(), Latch::new(1));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = latch.lock(&gate);
            panic!("told to panic");
        }));
        assert!(panicked.is_err());
        assert_eq!(*latch.lock(&gate), 1);
    }

    /// Long enough that some sleep: a holder yields its core.
    #[test]
    fn under_load_nothing_is_counted_twice_and_nobody_sleeps_for_ever() {
        const EACH: u32 = 2_000;
        let shared = Arc::new((Gate::new(), Latch::new(0u32)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..EACH {
                        let mut count = shared.1.lock(&shared.0);
                        let before = *count;
                        if round % 16 == 0 {
                            thread::yield_now();
                        }
                        *count = before + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*shared.1.lock(&shared.0), 4 * EACH);
    }
}
