//! What the monitor sleeps on while nobody works.
//!
//! # Protocol
//! ```text
//! a worker that begins to work            the monitor that sees nobody at work
//! B1 says that it is busy; or it is,      M1 the word = ASLEEP
//!    and has its core again
//! B2 light barrier                        M2 heavy barrier
//! B3 reads the word; if ASLEEP, wakes     M3 looks once more who is busy; if somebody is,
//!    the monitor                             it stays awake
//!                                         M4 sleeps while the word is ASLEEP
//! ```
//! One of B2 and M2 comes first. If B2, M3 sees who is busy; if M2, B3 sees ASLEEP. So there
//! is no poll that nobody watches, and a monitor that has nobody to watch makes no system
//! calls.
//!
//! # Checked by
//! `who_begins_to_work_is_watched`; weakened as `bell_light`, `bell_heavy`, `bell_looks_again`.

use std::time::Duration;

use crate::engine::prim::{
    Ordering::{AcqRel, Acquire, Relaxed},
    barrier::{light, try_heavy},
    futex::Futex,
    made_in_constants, weakened,
};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// Awake, and called: a nap ends at once.
const CALLED: u32 = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Bell(Futex);

impl Bell {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self(Futex::new(AWAKE))
        }
    }

    /// B2 and B3, for who has said that it is busy.
    #[inline]
    pub(crate) fn pass(&self) {
        if !weakened!("bell_light") {
            light();
        }
        // Relaxed: ordered by the barrier.
        if self.0.word().load(Relaxed) == ASLEEP {
            self.ring();
        }
    }

    /// Wakes the monitor, also from a nap.
    #[cold]
    pub(crate) fn ring(&self) {
        // AcqRel: what was done before is seen by the monitor. Pairs with the Acquire in
        // `sleep` and `nap`.
        if self.0.word().swap(CALLED, AcqRel) != CALLED {
            self.0.wake_all();
        }
    }

    /// M1 to M4. `is_needed` is M3. Returns at once if the system refuses the barrier.
    pub(crate) fn sleep(&self, is_needed: impl FnOnce() -> bool) {
        // Relaxed: ordered by the barrier.
        self.0.word().store(ASLEEP, Relaxed);
        let passed = weakened!("bell_heavy") || try_heavy();
        if !passed || (is_needed() && !weakened!("bell_looks_again")) {
            // Relaxed: only the monitor makes it ASLEEP; a call that is lost was one to do what
            // it does now.
            self.0.word().store(AWAKE, Relaxed);
            return;
        }
        // Acquire: pairs with the AcqRel in `ring`.
        while self.0.word().load(Acquire) == ASLEEP {
            self.0.wait(ASLEEP, None);
        }
    }

    /// Sleeps for a while, while others are at work; not if it is called.
    pub(crate) fn nap(&self, time: Duration) {
        // Acquire: pairs with the AcqRel in `ring`.
        if self.0.word().compare_exchange(CALLED, AWAKE, Acquire, Relaxed).is_err() {
            self.0.wait(AWAKE, Some(time));
            // Acquire: as above. Relaxed on failure: nobody has called.
            let _ = self.0.word().compare_exchange(CALLED, AWAKE, Acquire, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bell;
    use crate::engine::prim::{Arc, AtomicBool, Ordering::Relaxed, model, thread};

    /// If the monitor slept on, this were a deadlock.
    #[test]
    fn who_begins_to_work_is_watched() {
        model(|| {
            let shared = Arc::new((Bell::new(), AtomicBool::new(false)));
            let worker = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the barriers order it.
                    shared.1.store(true, Relaxed);
                    shared.0.pass();
                }
            });
            // Relaxed: as above.
            shared.0.sleep(|| shared.1.load(Relaxed));
            assert!(shared.1.load(Relaxed), "it is awake, and nobody is at work");
            worker.join().unwrap();
        });
    }
}
