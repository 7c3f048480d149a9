//! A lock that costs its owner next to nothing, and its rare visitors a lot.
//!
//! One thread at a time, the *owner*, enters and leaves very often, because what the lock guards
//! is its own. Now and then a *visitor* on another thread reads the guarded value. The owner may
//! be anywhere meanwhile, even stuck in a user's poll for ever, so the visitor must not depend on
//! the owner's cooperation.
//!
//! # Protocol
//! ```text
//! the owner                          a visitor (one at a time)
//! O1 sets `busy`                     V1 sets `wanted`
//! O2 light barrier                   V2 heavy barrier
//! O3 reads `wanted`; if set, clears  V3 waits until `busy` is clear, for a while
//!    `busy`, sleeps until `wanted`   V4 looks
//!    is clear, and goes to O1        V5 clears `wanted`, wakes the owner
//! O4 works
//! O5 clears `busy`
//! ```
//! One of O2 and V2 comes first. If O2, V3 sees `busy` and waits for O5; if V2, O3
//! sees `wanted`.
//!
//! # Invariants
//! - The owner works, or a visitor looks: never both.
//! - The owner must not enter while it is inside already, and must not run other code inside.
//!
//! # Checked by
//! `a_visitor_never_looks_while_the_owner_works`,
//! `an_owner_that_was_kept_waiting_goes_on`; weakened as `biased_owner_looks`,
//! `biased_visitor_waits`, `biased_visitor_wakes`.

use std::time::{Duration, Instant};

use super::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
    backoff::Backoff,
    barrier::{Mechanism, heavy, light_as, mechanism},
    futex::Futex,
    thread, weakened,
};

/// Longest time that a visitor waits for an owner that is at work. The owner's work is a few
/// instructions, so it lasts only if its thread is not running. Picked, not measured.
const PATIENCE: Duration = Duration::from_millis(50);

/// A lock that one owner enters cheaply and that a rare visitor enters with a process-wide
/// barrier.
#[derive(Debug)]
pub(crate) struct Biased {
    /// Set while the owner works.
    busy: AtomicBool,
    /// True if the light barrier is a fence in this process. Stored, because the barrier is
    /// passed often.
    fences: bool,
    /// Nonzero while a visitor looks or waits to look; the owner sleeps on it.
    wanted: Futex,
}

impl Biased {
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            fences: mechanism() == Mechanism::Fences,
            wanted: Futex::new(0),
        }
    }

    /// Runs `work` as the owner: steps O1 to O5. Waits first if a visitor is looking.
    #[inline]
    pub(crate) fn own<R>(&self, work: impl FnOnce() -> R) -> R {
        // Relaxed: the light barrier (O2) orders this store before the load of `wanted`.
        self.busy.store(true, Relaxed);
        light_as(self.fences);
        // Acquire: the visitor's reads are over before we change what it looked at. Pairs with
        // the Release in V5.
        if self.wanted.word().load(Acquire) != 0 && !weakened!("biased_owner_looks") {
            self.wait_for_visitor();
        }
        let result = work();
        // Release: the next visitor sees what was done. Pairs with the Acquire in V3.
        self.busy.store(false, Release);
        result
    }

    #[cold]
    fn wait_for_visitor(&self) {
        loop {
            // Release: the visitor sees what the owner did before. Pairs with the Acquire in V3.
            self.busy.store(false, Release);
            self.wanted.wait(1, None);
            // Steps O1 to O3 again. Relaxed: the light barrier orders the store before the load.
            self.busy.store(true, Relaxed);
            light_as(self.fences);
            // Acquire: the visitor's reads are over before we go on. Pairs with the Release in
            // V5.
            if self.wanted.word().load(Acquire) == 0 {
                return;
            }
        }
    }

    /// Runs `look` as a visitor: steps V1 to V5. Returns `None` if the owner's thread was at work
    /// and made no progress for too long.
    ///
    /// The caller must ensure that there is one visitor at a time. The owner may be waiting while
    /// `look` runs, so `look` must not run other code.
    pub(crate) fn visit<R>(&self, look: impl FnOnce() -> R) -> Option<R> {
        // Relaxed: the heavy barrier (V2) orders this store before the load of `busy`.
        self.wanted.word().store(1, Relaxed);
        heavy();
        let result = self.is_left().then(look);
        // Release: our reads are over before the owner goes on. Pairs with the Acquire in O3.
        self.wanted.word().store(0, Release);
        if !weakened!("biased_visitor_wakes") {
            self.wanted.wake_all();
        }
        result
    }

    /// Waits until the owner has left (step V3). Returns `false` if it takes too long.
    fn is_left(&self) -> bool {
        if weakened!("biased_visitor_waits") {
            return true;
        }
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        // Acquire: sees what the owner did. Pairs with the Release in O5.
        while self.busy.load(Acquire) {
            if !backoff.spin() {
                // Models have no clock; there the owner always leaves in the end.
                if begin.elapsed() > PATIENCE && !cfg!(blitz_loom) {
                    return false;
                }
                thread::yield_now();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Biased;
    use crate::engine::prim::{Arc, UnsafeCell, model, thread};

    struct Guarded {
        lock: Biased,
        value: UnsafeCell<(u32, u32)>,
    }

    // SAFETY: the value is accessed only inside `own` and `visit`, which exclude each other.
    unsafe impl Sync for Guarded {}

    impl Guarded {
        fn new() -> Arc<Self> {
            Arc::new(Self { lock: Biased::new(), value: UnsafeCell::new((0, 0)) })
        }

        fn change(&self) {
            self.lock.own(|| {
                self.value.with_mut(|value| {
                    // SAFETY: inside `own`, no visitor looks, and there is only one owner at a
                    // time.
                    let value = unsafe { &mut *value };
                    value.0 += 1;
                    value.1 += 1;
                });
            });
        }

        fn look(&self) -> Option<(u32, u32)> {
            // SAFETY: inside `visit`, the owner does not work, so nothing writes the value.
            self.lock.visit(|| self.value.with(|value| unsafe { *value }))
        }
    }

    #[test]
    fn a_visitor_never_looks_while_the_owner_works() {
        model(|| {
            let guarded = Guarded::new();
            let owner = thread::spawn({
                let guarded = guarded.clone();
                move || guarded.change()
            });
            let seen = guarded.look();
            assert!(matches!(seen, Some((0, 0) | (1, 1))), "a half-done change: {seen:?}");
            owner.join().unwrap();
            assert_eq!(guarded.look(), Some((1, 1)));
        });
    }

    #[test]
    fn an_owner_that_was_kept_waiting_goes_on() {
        model(|| {
            let guarded = Guarded::new();
            let visitor = thread::spawn({
                let guarded = guarded.clone();
                move || guarded.look()
            });
            guarded.change();
            guarded.change();
            visitor.join().unwrap();
            assert_eq!(guarded.look(), Some((2, 2)));
        });
    }
}
