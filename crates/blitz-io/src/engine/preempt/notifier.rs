//! The word that the monitor sleeps on while no watched thread is busy.
//!
//! # Protocol
//! ```text
//! a worker that becomes busy              the monitor that sees no busy thread
//! B1 sets `busy`; or `busy` is set,       M1 the word = ASLEEP
//!    and it has its core again
//! B2 light barrier                        M2 heavy barrier
//! B3 reads the word; if ASLEEP, wakes     M3 checks once more for busy threads; if there
//!    the monitor                             is one, it stays awake
//!                                         M4 sleeps while the word is ASLEEP
//! ```
//! One of B2 and M2 comes first. If B2, M3 sees the busy thread; if M2, B3 sees ASLEEP. So no busy
//! worker is unwatched, and a monitor that has no thread to watch makes no system calls.
//!
//! # Checked by
//! `a_worker_that_becomes_busy_is_watched`; weakened as `monitor_light`, `monitor_heavy`,
//! `monitor_rechecks`.

use std::time::Duration;

use crate::engine::prim::{
    Ordering::{AcqRel, Acquire, Relaxed},
    barrier::{light, try_heavy},
    const_unless_loom,
    futex::Futex,
    weakened,
};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// Awake, with a pending notification: a sleep with a time-out ends at once.
const NOTIFIED: u32 = 2;

/// Notifier of the monitor: a futex word that says whether the monitor sleeps.
#[derive(Debug)]
pub(crate) struct MonitorNotifier(Futex);

impl MonitorNotifier {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self(Futex::new(AWAKE))
        }
    }

    /// Wakes the monitor if it sleeps: steps B2 and B3, for a thread that has done B1.
    #[inline]
    pub(crate) fn notify_if_asleep(&self) {
        if !weakened!("monitor_light") {
            light();
        }
        // Relaxed: ordered by the barrier.
        if self.0.word().load(Relaxed) == ASLEEP {
            self.notify();
        }
    }

    /// Wakes the monitor, with or without a time-out.
    #[cold]
    pub(crate) fn notify(&self) {
        // AcqRel: the monitor sees what was done before. Pairs with the Acquire in `sleep` and
        // `sleep_for`.
        if self.0.word().swap(NOTIFIED, AcqRel) != NOTIFIED {
            self.0.wake_all();
        }
    }

    /// Sleeps until the monitor is notified: steps M1 to M4, where `is_needed` is M3. Returns at
    /// once if the system refuses the barrier.
    pub(crate) fn sleep(&self, is_needed: impl FnOnce() -> bool) {
        // Relaxed: ordered by the barrier.
        self.0.word().store(ASLEEP, Relaxed);
        let passed = weakened!("monitor_heavy") || try_heavy();
        if !passed || (is_needed() && !weakened!("monitor_rechecks")) {
            // Relaxed: only the monitor stores ASLEEP, and a notification that is overwritten was a
            // request to do what the monitor does now.
            self.0.word().store(AWAKE, Relaxed);
            return;
        }
        // Acquire: pairs with the AcqRel in `notify`.
        while self.0.word().load(Acquire) == ASLEEP {
            self.0.wait(ASLEEP, None);
        }
    }

    /// Sleeps for `time`, or until notified, while some threads are busy. Returns at once if a
    /// notification is pending.
    pub(crate) fn sleep_for(&self, time: Duration) {
        // Acquire: pairs with the AcqRel in `notify`.
        if self.0.word().compare_exchange(NOTIFIED, AWAKE, Acquire, Relaxed).is_err() {
            self.0.wait(AWAKE, Some(time));
            // Acquire: pairs with the AcqRel in `notify`. Relaxed on failure: no notification was
            // sent.
            let _ = self.0.word().compare_exchange(NOTIFIED, AWAKE, Acquire, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MonitorNotifier;
    use crate::engine::prim::{Arc, AtomicBool, Ordering::Relaxed, model, thread};

    /// If the monitor slept on, this model would deadlock.
    #[test]
    fn a_worker_that_becomes_busy_is_watched() {
        model(|| {
            let shared = Arc::new((MonitorNotifier::new(), AtomicBool::new(false)));
            let worker = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: ordered by the barriers in `notify_if_asleep` and `sleep`.
                    shared.1.store(true, Relaxed);
                    shared.0.notify_if_asleep();
                }
            });
            // Relaxed: ordered by the barriers in `notify_if_asleep` and `sleep`.
            shared.0.sleep(|| shared.1.load(Relaxed));
            assert!(shared.1.load(Relaxed), "it is awake, and no worker is busy");
            worker.join().unwrap();
        });
    }
}
