//! Puts one thread to sleep: `park` sleeps until `unpark`, which may come first.
//!
//! # Protocol
//! ```text
//!            park                     unpark
//! EMPTY  --> PARKED, sleep        --> NOTIFIED
//! PARKED     (only the sleeper)   --> NOTIFIED, wake
//! NOTIFIED --> EMPTY, no sleep        (stays)
//! ```
//! The thread may also sleep *elsewhere*, where something other than a token can wake it, such as
//! events of the operating system. It announces this with `begin_sleep_elsewhere`, which writes
//! ELSEWHERE instead of PARKED. The thread that finds ELSEWHERE when it leaves its token wakes the
//! sleeper there, with the closure that it passes to `unpark_or`. `end_sleep_elsewhere` is the
//! second half of `park`.
//!
//! A token is never lost: `unpark` leaves NOTIFIED behind whatever it found, and only the thread
//! that parks takes it away. Two tokens count as one.
//!
//! # Invariants
//! Only one thread at a time calls `park` on a parker.
//!
//! # Checked by
//! `a_token_is_never_lost`, `writes_before_unpark_are_seen_after_park`,
//! `a_token_reaches_a_thread_that_sleeps_elsewhere`; weakened as `unpark_release`, `park_acquire`,
//! `unpark_blind` and `unpark_elsewhere`.

use std::time::{Duration, Instant};

use super::{
    Ordering::{Acquire, Relaxed, Release},
    futex::Futex,
    weakened,
};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;
const ELSEWHERE: u32 = 3;

/// Lets one thread at a time sleep, with a token that wakes it.
#[derive(Debug)]
pub(crate) struct Parker {
    state: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { state: Futex::new(EMPTY) }
    }

    /// Sleeps until a token arrives, and takes it.
    pub(crate) fn park(&self) {
        while !self.sleep(None) {}
    }

    /// Sleeps until a token arrives, and takes it. Returns `false` if none came before `timeout`
    /// passed.
    ///
    /// In a model no time passes: a model covers the end of a timeout by not parking at all.
    pub(crate) fn park_timeout(&self, timeout: Duration) -> bool {
        // A timeout beyond the range of the clock means no timeout.
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            self.park();
            return true;
        };
        let mut remaining = timeout;
        loop {
            if self.sleep(Some(remaining)) {
                return true;
            }
            remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
        }
    }

    /// Takes the token if there is one, without sleeping. Returns true if it did.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        let word = self.state.word();
        // Acquire: sees what the thread that left the token did before. Pairs with the Release in
        // `unpark_or`.
        word.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }

    /// Announces that the thread is about to sleep elsewhere. Returns `false` if a token was there,
    /// which is taken; then [`end_sleep_elsewhere`](Self::end_sleep_elsewhere) must not be called.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "the driver is elsewhere"))]
    pub(crate) fn begin_sleep_elsewhere(&self) -> bool {
        let word = self.state.word();
        // Relaxed: records only where we sleep. A thread that leaves a token after this finds
        // ELSEWHERE.
        if word.compare_exchange(EMPTY, ELSEWHERE, Relaxed, Relaxed).is_ok() {
            return true;
        }
        // Acquire: pairs with the Release in `unpark_or`, as in `sleep`. The word can only be
        // NOTIFIED here, and no other thread takes a token.
        word.swap(EMPTY, Acquire);
        false
    }

    /// Announces that the thread no longer sleeps elsewhere. Returns `true` if a token came,
    /// which is taken.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "the driver is elsewhere"))]
    pub(crate) fn end_sleep_elsewhere(&self) -> bool {
        // Acquire: pairs with the Release in `unpark_or`, as in `sleep`.
        self.state.word().swap(EMPTY, Acquire) == NOTIFIED
    }

    /// Leaves a token, and wakes the sleeper if there is one. The thread must never sleep
    /// elsewhere.
    #[inline]
    pub(crate) fn unpark(&self) {
        self.unpark_or(|| debug_assert!(false, "this thread never sleeps elsewhere"));
    }

    /// Leaves a token, and wakes the sleeper if there is one. A thread that sleeps elsewhere is
    /// woken by calling `elsewhere`.
    #[inline]
    pub(crate) fn unpark_or(&self, elsewhere: impl FnOnce()) {
        let order = if weakened!("unpark_release") { Relaxed } else { Release };
        // Release: what the caller did before is seen by the thread that parks. Pairs with the
        // Acquire in `sleep`, `try_take`, `begin_sleep_elsewhere` and `end_sleep_elsewhere`.
        let was = self.state.word().swap(NOTIFIED, order);
        if was == PARKED && !weakened!("unpark_blind") {
            self.state.wake_one();
        }
        if was == ELSEWHERE && !weakened!("unpark_elsewhere") {
            elsewhere();
        }
    }

    /// Takes a token, at once or after one sleep. Returns `false` if there was none.
    fn sleep(&self, timeout: Option<Duration>) -> bool {
        let word = self.state.word();
        let order = if weakened!("park_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: pairs with the Release in `unpark_or`.
        if word.compare_exchange(NOTIFIED, EMPTY, order, Relaxed).is_ok() {
            return true;
        }
        // Relaxed: records only that we are about to sleep; publishes nothing.
        if word.compare_exchange(EMPTY, PARKED, Relaxed, Relaxed).is_ok() {
            self.state.wait(PARKED, timeout);
        }
        word.swap(EMPTY, order) == NOTIFIED
    }
}

#[cfg(test)]
mod tests {
    use super::Parker;
    use crate::engine::prim::{Arc, AtomicUsize, Ordering::Relaxed, model, thread};

    #[test]
    fn a_token_is_never_lost() {
        model(|| {
            let parker = Arc::new(Parker::new());
            let waker = thread::spawn({
                let parker = parker.clone();
                move || parker.unpark()
            });
            parker.park();
            waker.join().unwrap();
        });
    }

    #[test]
    fn a_token_reaches_a_thread_that_sleeps_elsewhere() {
        model(|| {
            // The second parker stands for the other primitive on which the thread sleeps.
            let shared = Arc::new((Parker::new(), Parker::new()));
            let waker = thread::spawn({
                let shared = shared.clone();
                move || shared.0.unpark_or(|| shared.1.unpark())
            });
            if shared.0.begin_sleep_elsewhere() {
                shared.1.park();
                assert!(shared.0.end_sleep_elsewhere());
            }
            waker.join().unwrap();
        });
    }

    #[test]
    fn writes_before_unpark_are_seen_after_park() {
        model(|| {
            let shared = Arc::new((Parker::new(), AtomicUsize::new(0)));
            let waker = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the parker is what orders it.
                    shared.1.store(7, Relaxed);
                    shared.0.unpark();
                }
            });
            shared.0.park();
            assert_eq!(shared.1.load(Relaxed), 7);
            waker.join().unwrap();
        });
    }

    #[cfg(not(blitz_loom))]
    #[test]
    fn a_timed_park_ends_by_itself_and_takes_a_token_that_is_there() {
        use std::time::{Duration, Instant};

        let parker = Parker::new();
        let (start, limit) = (Instant::now(), Duration::from_millis(5));
        assert!(!parker.park_timeout(limit));
        assert!(start.elapsed() >= limit);
        parker.unpark();
        assert!(parker.park_timeout(Duration::ZERO), "a token is taken without a sleep");
        assert!(!parker.park_timeout(Duration::ZERO), "and only once");
        parker.unpark();
        assert!(parker.park_timeout(Duration::MAX));
    }
}
