//! A lock that is released by a plain store: for critical sections of a few instructions that are
//! entered very often and seldom contended.
//!
//! A `Mutex` pays for two read-modify-writes, and the second only finds out whether a thread
//! sleeps. Here the thread that sleeps pays for that, with the heavy barrier.
//!
//! # Protocol
//! ```text
//! the thread that releases the bolt         a thread that waits for it, after some spinning
//! U1 stores FREE                            W1 adds itself to `waiting`
//! U2 light()                                W2 heavy()
//! U3 reads `waiting`: 0, done               W3 reads the bell
//! U4 advances the bell, wakes the sleepers  W4 tries the bolt: has it, done
//!                                           W5 sleeps if the bell is unchanged, goes to W3
//! ```
//! If U2 comes before W2, W4 sees U1. If after, U3 sees W1, and U4 changes the bell. If it does
//! so before W3, W4 sees U1; if after, W5 does not sleep, or is woken.
//!
//! Waiters of a [`Bolted`] sleep at one of the [`Gate`]s of the process, chosen by its address.
//! So a `Bolted` adds no more than a bolt to its value, and may be freed as soon as it is
//! released. Waiters of a bare [`Bolt`] sleep at the gate that its users pass.
//!
//! # Invariants
//! The thread that releases a bolt must keep the gate alive, because it reads the gate
//! afterwards.
//!
//! # Rejected
//! A gate for each bolt: a gate is three words where a bolt is half a word, and a thread that is
//! woken for another bolt of the gate only tries its own once more.
//!
//! # Checked by
//! `a_bolt_guards_as_a_lock_does`, `who_sleeps_for_a_bolt_is_woken`,
//! `a_gate_of_two_bolts_wakes_both`; weakened as `bolt_acquire`, `bolt_release`,
//! `bolt_heavy`, `bolt_rings`. A holder that panics: `a_panic_lets_a_bolt_go`.

#[cfg(not(blitz_loom))]
use std::{
    ops::{Deref, DerefMut},
    panic::{RefUnwindSafe, UnwindSafe},
};

use super::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    barrier,
    futex::Futex,
    made_in_constants, spin_loop, weakened,
};
#[cfg(not(blitz_loom))]
use super::{UnsafeCell, pad::CachePadded};

/// Pauses between two checks of a held bolt, and the number of checks before a thread sleeps. A
/// holder is done in a tenth of a microsecond, unless its thread has lost its processor. From 16
/// to 128 checks made no difference on two processors. With 63 pauses in growing steps many
/// threads slept, and a semaphore under contention of two workers was a fifth slower.
const PAUSES: u32 = 4;
const LOOKS: u32 = 32;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The word of the lock, for users that keep the guarded value elsewhere.
pub(crate) struct Bolt(AtomicU32);

impl Bolt {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(FREE))
        }
    }

    /// Locks the bolt; the caller must release it with [`unlock`](Self::unlock).
    #[inline]
    pub(crate) fn lock(&self, gate: &Gate) {
        if !self.try_lock() {
            self.wait(gate);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let order = if weakened!("bolt_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the previous holder did. Pairs with the Release in `unlock`.
        self.0.compare_exchange(FREE, HELD, order, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self, gate: &Gate) {
        // In a model spinning only adds steps to explore, so there is none.
        let looks = if cfg!(blitz_loom) { 0 } else { LOOKS };
        for _ in 0..looks {
            for _ in 0..PAUSES {
                spin_loop();
            }
            // Relaxed: a guess whether a try is worth it; `try_lock` orders.
            if self.0.load(Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        gate.pass(|| self.try_lock());
    }

    /// Releases the bolt: steps U1 to U4. The caller must hold the bolt, and pass the gate at
    /// which other threads wait for it.
    #[inline]
    pub(crate) fn unlock(&self, gate: &Gate) {
        let order = if weakened!("bolt_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_lock`.
        self.0.store(FREE, order);
        gate.unlocked();
    }
}

/// A place where threads sleep while they wait for any of the bolts that are released at this
/// gate.
pub(crate) struct Gate {
    /// Number of threads that sleep or are about to.
    waiting: AtomicU32,
    /// Changed whenever a bolt is released while threads wait.
    bell: Futex,
}

impl Gate {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self { waiting: AtomicU32::new(0), bell: Futex::new(0) }
        }
    }

    /// Wakes the waiters after a release, if there are any: steps U2 to U4.
    #[inline]
    fn unlocked(&self) {
        barrier::light();
        // Relaxed: the light barrier above (U2) orders it after the store of U1.
        if self.waiting.load(Relaxed) != 0 {
            self.ring();
        }
    }

    /// Wakes all waiters of the gate: step U4.
    #[cold]
    fn ring(&self) {
        if weakened!("bolt_rings") {
            return;
        }
        // Release: a thread that reads the new number finds the bolt released. Pairs with the
        // Acquire in `pass`.
        self.bell.word().fetch_add(1, Release);
        self.bell.wake_all();
    }

    /// Sleeps until `try_lock` succeeds: steps W1 to W5.
    fn pass(&self, try_lock: impl Fn() -> bool) {
        // Relaxed: the heavy barrier below orders it before the tries.
        self.waiting.fetch_add(1, Relaxed);
        if !weakened!("bolt_heavy") {
            barrier::heavy();
        }
        loop {
            // Acquire: sees the release that changed the bell. Pairs with the Release in `ring`.
            let before = self.bell.word().load(Acquire);
            if try_lock() {
                break;
            }
            self.bell.wait(before, None);
        }
        // Relaxed: a late decrement at most causes a needless wake-up.
        self.waiting.fetch_sub(1, Relaxed);
    }
}

/// Number of gates. Enough that unrelated bolts seldom share one: picked, not measured.
#[cfg(not(blitz_loom))]
const GATES: usize = 16;

/// The gates of all [`Bolted`] values of the process.
#[cfg(not(blitz_loom))]
static AT: [CachePadded<Gate>; GATES] = [const { CachePadded::new(Gate::new()) }; GATES];

/// A value guarded by a bolt, as in a mutex.
#[cfg(not(blitz_loom))]
pub(crate) struct Bolted<T> {
    bolt: Bolt,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the bolt accesses the value, and `T: Send` allows that to be any
// thread in turn.
#[cfg(not(blitz_loom))]
unsafe impl<T: Send> Sync for Bolted<T> {}

// No user code runs under a bolt, so no panic can leave the guarded value half changed.
#[cfg(not(blitz_loom))]
impl<T> UnwindSafe for Bolted<T> {}
#[cfg(not(blitz_loom))]
impl<T> RefUnwindSafe for Bolted<T> {}

#[cfg(not(blitz_loom))]
impl<T> Bolted<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { bolt: Bolt::new(), value: UnsafeCell::new(value) }
    }

    /// Returns the gate at which threads wait for this bolt.
    #[inline]
    fn gate(&self) -> &'static Gate {
        // Skips the bits in which addresses on one cache line differ.
        let at = (&raw const self.bolt).addr() >> 6;
        &AT[at % GATES]
    }

    /// Locks the bolt and returns a guard for the value.
    #[inline]
    pub(crate) fn lock(&self) -> Opened<'_, T> {
        self.bolt.lock(self.gate());
        Opened { lock: self }
    }

    /// Returns true if some thread holds the bolt now.
    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        // Relaxed: a snapshot that orders nothing.
        self.bolt.0.load(Relaxed) == HELD
    }
}

/// Guard for the value of a [`Bolted`]; dropping it releases the bolt.
#[cfg(not(blitz_loom))]
pub(crate) struct Opened<'a, T> {
    lock: &'a Bolted<T>,
}

#[cfg(not(blitz_loom))]
impl<T> Deref for Opened<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the bolt, so no other thread has a reference, and `&self`
        // keeps the guard and thereby the value borrowed.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> DerefMut for Opened<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the bolt, so no other thread has a reference, and `&mut self`
        // makes this the only reference from the guard.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> Drop for Opened<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Fetched before the release, because the lock may be freed right after it; the gate is
        // static.
        let gate = self.lock.gate();
        self.lock.bolt.unlock(gate);
    }
}

/// A value behind an ordinary mutex in models, because no gate outlives a model's run. Bolts and
/// gates have models of their own.
#[cfg(blitz_loom)]
pub(crate) struct Bolted<T>(super::Mutex<T>);

#[cfg(blitz_loom)]
pub(crate) type Opened<'a, T> = super::MutexGuard<'a, T>;

#[cfg(blitz_loom)]
impl<T> Bolted<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(super::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Opened<'_, T> {
        super::lock(&self.0)
    }
}

#[cfg(test)]
mod models {
    use super::{Bolt, Gate};
    use crate::engine::prim::{Arc, UnsafeCell, model, model_deeper, thread};

    /// Values behind bolts that share one gate, as the bolts of a process do.
    struct Behind<const N: usize> {
        gate: Gate,
        values: [(Bolt, UnsafeCell<u32>); N],
    }

    // SAFETY: each value is accessed only by the thread that holds its bolt.
    unsafe impl<const N: usize> Sync for Behind<N> {}

    type Shared<const N: usize> = Arc<Behind<N>>;

    fn shared<const N: usize>() -> Shared<N> {
        let values = std::array::from_fn(|_| (Bolt::new(), UnsafeCell::new(0)));
        Arc::new(Behind { gate: Gate::new(), values })
    }

    fn add<const N: usize>(shared: &Shared<N>, at: usize) -> u32 {
        let (bolt, value) = &shared.values[at];
        bolt.lock(&shared.gate);
        let now = value.with_mut(|value| {
            // SAFETY: this thread holds the bolt of the value.
            let value = unsafe { &mut *value };
            *value += 1;
            *value
        });
        bolt.unlock(&shared.gate);
        now
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
    fn a_bolt_guards_as_a_lock_does() {
        model(two_add_to_one);
    }

    /// Models do not spin, so a thread that finds the bolt held sleeps. If it were not woken, the
    /// model would end in a deadlock.
    #[test]
    fn who_sleeps_for_a_bolt_is_woken() {
        model_deeper(two_add_to_one);
    }

    #[test]
    fn a_gate_of_two_bolts_wakes_both() {
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

    use super::Bolted;
    use crate::engine::prim::thread;

    #[test]
    fn a_panic_lets_a_bolt_go() {
        let lock = Bolted::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("told to panic");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 1);
    }

    /// The holder yields its processor, so that some threads wait long enough to sleep.
    #[test]
    fn under_load_nothing_is_counted_twice_and_nobody_sleeps_for_ever() {
        const EACH: u32 = 2_000;
        let shared = Arc::new(Bolted::new(0u32));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..EACH {
                        let mut count = shared.lock();
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
        assert_eq!(*shared.lock(), 4 * EACH);
    }
}
