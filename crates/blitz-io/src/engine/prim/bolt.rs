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
//! A [`Bolted`] waits at one of the gates of the process, which its address chooses: it is
//! no larger than its bolt, and may end as soon as it was let go. A [`Bolt`] alone waits at
//! the gate that its users name.
//!
//! # Invariants
//! Whoever lets a bolt go keeps the gate alive: it looks at it afterwards.
//!
//! # Rejected
//! A gate for each bolt: a gate is three words where a bolt is half a one, and who is
//! woken for another's bolt only looks once more.
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

/// Pauses between two looks at a bolt that is held, and looks before one sleeps for it. A
/// holder is done in a tenth of a microsecond, unless it has lost its core. From 16 to 128
/// looks made no difference on two cores. With 63 pauses in longer and longer steps many
/// slept, and a semaphore that two workers contend for was a fifth slower.
const PAUSES: u32 = 4;
const LOOKS: u32 = 32;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The word of the lock, for those who keep elsewhere what it guards.
pub(crate) struct Bolt(AtomicU32);

impl Bolt {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(FREE))
        }
    }

    /// Takes the bolt; the caller gives it back with [`unlock`](Self::unlock).
    #[inline]
    pub(crate) fn lock(&self, gate: &Gate) {
        if !self.try_lock() {
            self.wait(gate);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let order = if weakened!("bolt_acquire") { Relaxed } else { Acquire };
        // Acquire: sees what the holder before did. Pairs with the Release in `unlock`.
        self.0.compare_exchange(FREE, HELD, order, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self, gate: &Gate) {
        // A model's spin would be one step of many for nothing.
        let looks = if cfg!(blitz_loom) { 0 } else { LOOKS };
        for _ in 0..looks {
            for _ in 0..PAUSES {
                spin_loop();
            }
            // Relaxed: a guess at whether it is worth trying.
            if self.0.load(Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        gate.pass(|| self.try_lock());
    }

    /// U1 to U4, by who has it, with the gate at which others wait for it.
    #[inline]
    pub(crate) fn unlock(&self, gate: &Gate) {
        let order = if weakened!("bolt_release") { Relaxed } else { Release };
        // Release: the next holder sees what we did. Pairs with the Acquire in `try_lock`.
        self.0.store(FREE, order);
        gate.unlocked();
    }
}

/// Where those sleep who wait for a bolt, of all bolts that are let go at this gate.
pub(crate) struct Gate {
    waiting: AtomicU32,
    /// Changed whenever a bolt was let go while somebody waited.
    bell: Futex,
}

impl Gate {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self { waiting: AtomicU32::new(0), bell: Futex::new(0) }
        }
    }

    /// U2 and U3.
    #[inline]
    fn unlocked(&self) {
        barrier::light();
        // Relaxed: the barrier above orders it after the store of U1.
        if self.waiting.load(Relaxed) != 0 {
            self.ring();
        }
    }

    /// U4.
    #[cold]
    fn ring(&self) {
        if weakened!("bolt_rings") {
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
        if !weakened!("bolt_heavy") {
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

/// Enough that strangers seldom meet at one: picked, not measured.
#[cfg(not(blitz_loom))]
const GATES: usize = 16;

#[cfg(not(blitz_loom))]
static AT: [CachePadded<Gate>; GATES] = [const { CachePadded::new(Gate::new()) }; GATES];

/// A value behind a bolt.
#[cfg(not(blitz_loom))]
pub(crate) struct Bolted<T> {
    bolt: Bolt,
    value: UnsafeCell<T>,
}

// SAFETY: the holder of the bolt is alone with the value, which may move between
// threads.
#[cfg(not(blitz_loom))]
unsafe impl<T: Send> Sync for Bolted<T> {}

// No user's code runs under a bolt, so no panic can leave what it guards half done.
#[cfg(not(blitz_loom))]
impl<T> UnwindSafe for Bolted<T> {}
#[cfg(not(blitz_loom))]
impl<T> RefUnwindSafe for Bolted<T> {}

#[cfg(not(blitz_loom))]
impl<T> Bolted<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { bolt: Bolt::new(), value: UnsafeCell::new(value) }
    }

    #[inline]
    fn gate(&self) -> &'static Gate {
        // Past the bits that are the same for all that lie on a cache line.
        let at = (&raw const self.bolt).addr() >> 6;
        &AT[at % GATES]
    }

    #[inline]
    pub(crate) fn lock(&self) -> Opened<'_, T> {
        self.bolt.lock(self.gate());
        Opened { lock: self }
    }

    /// Whether somebody holds it now.
    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        // Relaxed: a look.
        self.bolt.0.load(Relaxed) == HELD
    }
}

/// The value of a bolt, until this is dropped.
#[cfg(not(blitz_loom))]
pub(crate) struct Opened<'a, T> {
    lock: &'a Bolted<T>,
}

#[cfg(not(blitz_loom))]
impl<T> Deref for Opened<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: we hold the bolt, so nobody else has a reference; it lives as long as
        // the lock.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> DerefMut for Opened<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

#[cfg(not(blitz_loom))]
impl<T> Drop for Opened<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Before it is let go: the lock may end then, its gate does not.
        let gate = self.lock.gate();
        self.lock.bolt.unlock(gate);
    }
}

/// A lock as any other in models, which have no gates that outlive them: bolts and gates
/// have models of their own.
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

    /// Values behind bolts of one gate, as the bolts of a process have it.
    struct Behind<const N: usize> {
        gate: Gate,
        values: [(Bolt, UnsafeCell<u32>); N],
    }

    // SAFETY: each bolt guards its value.
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
            // SAFETY: we hold the bolt.
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

    /// Without spinning, as models are, who finds it locked sleeps: if it were not
    /// woken, the model would end in a deadlock.
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

    /// Long enough that some sleep: a holder yields its core.
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
