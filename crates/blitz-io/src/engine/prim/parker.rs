//! One thread's bed: `park` sleeps until `unpark`, which may come first.
//!
//! # Protocol
//! ```text
//!            park                     unpark
//! EMPTY  --> PARKED, sleep        --> NOTIFIED
//! PARKED     (only the sleeper)   --> NOTIFIED, wake
//! NOTIFIED --> EMPTY, no sleep        (stays)
//! ```
//! The thread may also sleep *elsewhere*, where something else than a token can wake it,
//! the system's events, say. It then says so: `leave` writes AWAY instead of PARKED, and
//! whoever finds that with its token wakes it there, by what it passes to `unpark_or`.
//! `come_back` is the second half of `park`.
//!
//! A token is never lost: `unpark` leaves NOTIFIED behind whatever it found, and
//! only `park` takes it away. Two tokens are one.
//!
//! # Invariants
//! Only one thread at a time calls `park` on a parker.
//!
//! # Checked by
//! `a_token_is_never_lost`, `what_was_done_before_unpark_is_seen_after_park`,
//! `a_token_reaches_who_sleeps_elsewhere`;
//! weakened as `unpark_release`, `park_acquire`, `unpark_blind` and `unpark_elsewhere`.

use std::time::{Duration, Instant};

use super::{
    Ordering::{Acquire, Relaxed, Release},
    futex::Futex,
    weakened,
};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;
const AWAY: u32 = 3;

/// A place for one thread to sleep.
#[derive(Debug)]
pub(crate) struct Parker {
    state: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { state: Futex::new(EMPTY) }
    }

    /// Sleeps until a token is there, and takes it.
    pub(crate) fn park(&self) {
        while !self.sleep(None) {}
    }

    /// Sleeps until a token is there, and takes it; `false` if there was none when
    /// `timeout` was over.
    ///
    /// In a model no time passes: what happens at the end of one is modelled by
    /// not parking at all.
    pub(crate) fn park_timeout(&self, timeout: Duration) -> bool {
        // A time-out beyond what the clock can say is none.
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            self.park();
            return true;
        };
        let mut left = timeout;
        loop {
            if self.sleep(Some(left)) {
                return true;
            }
            left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
        }
    }

    /// Takes a token if there is one; does not sleep.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        let word = self.state.word();
        // Acquire: pairs with the Release in `unpark`.
        word.compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }

    /// Says that the thread is about to sleep elsewhere; `false` if a token was there,
    /// which is taken. Then [`come_back`](Self::come_back) is not called.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "the driver is elsewhere"))]
    pub(crate) fn leave(&self) -> bool {
        let word = self.state.word();
        // Relaxed: says only where we sleep. Whoever leaves a token after this finds it.
        if word.compare_exchange(EMPTY, AWAY, Relaxed, Relaxed).is_ok() {
            return true;
        }
        // Acquire: as in `sleep`. Only a token can be there, and nobody else takes it.
        word.swap(EMPTY, Acquire);
        false
    }

    /// The thread sleeps elsewhere no more; `true` if a token came, which is taken.
    #[cfg_attr(not(feature = "net"), allow(dead_code, reason = "the driver is elsewhere"))]
    pub(crate) fn come_back(&self) -> bool {
        // Acquire: as in `sleep`.
        self.state.word().swap(EMPTY, Acquire) == NOTIFIED
    }

    /// Leaves a token; wakes the sleeper if there is one, who does not sleep elsewhere.
    #[inline]
    pub(crate) fn unpark(&self) {
        self.unpark_or(|| debug_assert!(false, "this thread never sleeps elsewhere"));
    }

    /// Leaves a token; wakes the sleeper if there is one, by `elsewhere` if it is away.
    #[inline]
    pub(crate) fn unpark_or(&self, elsewhere: impl FnOnce()) {
        let order = if weakened!("unpark_release") { Relaxed } else { Release };
        // Release: what the caller did before is seen by the thread that parks.
        // Pairs with the Acquire in `sleep`.
        let was = self.state.word().swap(NOTIFIED, order);
        if was == PARKED && !weakened!("unpark_blind") {
            self.state.wake_one();
        }
        if was == AWAY && !weakened!("unpark_elsewhere") {
            elsewhere();
        }
    }

    /// Takes a token, now or after one sleep; `false` if there was none.
    fn sleep(&self, timeout: Option<Duration>) -> bool {
        let word = self.state.word();
        let order = if weakened!("park_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: pairs with the Release in `unpark`.
        if word.compare_exchange(NOTIFIED, EMPTY, order, Relaxed).is_ok() {
            return true;
        }
        // Relaxed: says only that we are about to sleep; publishes nothing.
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
    fn a_token_reaches_who_sleeps_elsewhere() {
        model(|| {
            // The second parker is what it sleeps on elsewhere.
            let shared = Arc::new((Parker::new(), Parker::new()));
            let waker = thread::spawn({
                let shared = shared.clone();
                move || shared.0.unpark_or(|| shared.1.unpark())
            });
            if shared.0.leave() {
                shared.1.park();
                assert!(shared.0.come_back());
            }
            waker.join().unwrap();
        });
    }

    #[test]
    fn what_was_done_before_unpark_is_seen_after_park() {
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
