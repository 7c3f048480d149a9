//! The word that the monitor sleeps on while no watched thread is busy.
//!
//! # Protocol
//! ```text
//! a worker that becomes busy              the monitor that sees no busy thread
//! B1 says that it is busy; or it is,      M1 the word = ASLEEP
//!    and has its core again
//! B2 light barrier                        M2 heavy barrier
//! B3 reads the word; if ASLEEP, wakes     M3 checks once more for busy threads; if there
//!    the monitor                             is one, it stays awake
//!                                         M4 sleeps while the word is ASLEEP
//! ```
//! One of B2 and M2 comes first. If B2, M3 sees the busy thread; if M2, B3 sees ASLEEP. So no poll
//! is unwatched, and a monitor that has no thread to watch makes no system calls.
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
/// Awake, with a pending notification: a nap ends at once.
const CALLED: u32 = 2;

/// Notifier of the monitor: a futex word that says whether the monitor sleeps.
#[derive(Debug)]
pub(crate) struct Bell(Futex);

impl Bell {
    made_in_constants! {
        pub(crate) fn new() -> Self {
            Self(Futex::new(AWAKE))
        }
    }

    /// Wakes the monitor if it sleeps: steps B2 and B3, for a thread that has said that it is busy.
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

    /// Wakes the monitor, from a sleep or a nap.
    #[cold]
    pub(crate) fn ring(&self) {
        // AcqRel: the monitor sees what was done before. Pairs with the Acquire in `sleep` and
        // `nap`.
        if self.0.word().swap(CALLED, AcqRel) != CALLED {
            self.0.wake_all();
        }
    }

    /// Sleeps until the monitor is notified: steps M1 to M4, where `is_needed` is M3. Returns at
    /// once if the system refuses the barrier.
    pub(crate) fn sleep(&self, is_needed: impl FnOnce() -> bool) {
        // Relaxed: ordered by the barrier.
        self.0.word().store(ASLEEP, Relaxed);
        let passed = weakened!("bell_heavy") || try_heavy();
        if !passed || (is_needed() && !weakened!("bell_looks_again")) {
            // Relaxed: only the monitor stores ASLEEP, and a notification that is overwritten was a
            // request to do what the monitor does now.
            self.0.word().store(AWAKE, Relaxed);
            return;
        }
        // Acquire: pairs with the AcqRel in `ring`.
        while self.0.word().load(Acquire) == ASLEEP {
            self.0.wait(ASLEEP, None);
        }
    }

    /// Sleeps for `time`, or until notified, while some threads are busy. Returns at once if a
    /// notification is pending.
    pub(crate) fn nap(&self, time: Duration) {
        // Acquire: pairs with the AcqRel in `ring`.
        if self.0.word().compare_exchange(CALLED, AWAKE, Acquire, Relaxed).is_err() {
            self.0.wait(AWAKE, Some(time));
            // Acquire: pairs with the AcqRel in `ring`. Relaxed on failure: no notification was
            // sent.
            let _ = self.0.word().compare_exchange(CALLED, AWAKE, Acquire, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bell;
    use crate::engine::prim::{Arc, AtomicBool, Ordering::Relaxed, model, thread};

    /// If the monitor slept on, this model would deadlock.
    #[test]
    fn who_begins_to_work_is_watched() {
        model(|| {
            let shared = Arc::new((Bell::new(), AtomicBool::new(false)));
            let worker = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: ordered by the barriers in `pass` and `sleep`.
                    shared.1.store(true, Relaxed);
                    shared.0.pass();
                }
            });
            // Relaxed: ordered by the barriers in `pass` and `sleep`.
            shared.0.sleep(|| shared.1.load(Relaxed));
            assert!(shared.1.load(Relaxed), "it is awake, and nobody is at work");
            worker.join().unwrap();
        });
    }
}
