//! A lock that costs its owner next to nothing, and its rare visitors a lot.
//!
//! One thread at a time, the *owner*, enters and leaves all day: what it guards is
//! its own. Now and then a *visitor* on another thread wants to look, and the owner
//! may be anywhere meanwhile: in a user's poll, stuck for ever. So the visitor must
//! not need the owner's answer.
//!
//! # Protocol
//! ```text
//! the owner                          a visitor (one at a time)
//! O1 sets `busy`                     V1 sets `wanted`
//! O2 light barrier                   V2 heavy barrier
//! O3 reads `wanted`; if set, clears  V3 waits until `busy` is clear, for a while
//!    `busy`, sleeps until it is       V4 looks
//!    clear, and begins again         V5 clears `wanted`, wakes the owner
//! O4 works
//! O5 clears `busy`
//! ```
//! One of O2 and V2 comes first. If O2, V3 sees `busy` and waits for O5; if V2, O3
//! sees `wanted`.
//!
//! # Invariants
//! - The owner works, or a visitor looks: never both.
//! - The owner enters without being inside already, and runs nobody else's code inside.
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

/// What a visitor waits for an owner that is at work, at the most. The owner's work
/// is a few instructions: it can last only if its thread is not running. Picked.
const PATIENCE: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Debug)]
pub(crate) struct Biased {
    busy: AtomicBool,
    /// Whether the light barrier is a fence here: asked once, for it is passed often.
    fences: bool,
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

    /// O1 to O5.
    #[inline]
    pub(crate) fn own<R>(&self, work: impl FnOnce() -> R) -> R {
        // Relaxed: O2 orders it.
        self.busy.store(true, Relaxed);
        light_as(self.fences);
        // Acquire: the visitor's looks are over before we change what it looked at.
        // Pairs with the Release in V5.
        if self.wanted.word().load(Acquire) != 0 && !weakened!("biased_owner_looks") {
            self.wait_for_visitor();
        }
        let result = work();
        // Release: what was done is seen by the next visitor. Pairs with V3.
        self.busy.store(false, Release);
        result
    }

    #[cold]
    fn wait_for_visitor(&self) {
        loop {
            // Release: as in O5.
            self.busy.store(false, Release);
            self.wanted.wait(1, None);
            // As O1 to O3.
            self.busy.store(true, Relaxed);
            light_as(self.fences);
            // Acquire: as in O3.
            if self.wanted.word().load(Acquire) == 0 {
                return;
            }
        }
    }

    /// V1 to V5; `None` if the owner's thread was at work and did not run on.
    ///
    /// The caller sees to it that there is one visitor at a time. `look` runs while
    /// the owner may be waiting: nobody else's code may run inside.
    pub(crate) fn visit<R>(&self, look: impl FnOnce() -> R) -> Option<R> {
        // Relaxed: V2 orders it.
        self.wanted.word().store(1, Relaxed);
        heavy();
        let result = self.is_left().then(look);
        // Release: our looks are over before the owner goes on. Pairs with O3.
        self.wanted.word().store(0, Release);
        if !weakened!("biased_visitor_wakes") {
            self.wanted.wake_all();
        }
        result
    }

    /// V3.
    fn is_left(&self) -> bool {
        if weakened!("biased_visitor_waits") {
            return true;
        }
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        // Acquire: sees what the owner did. Pairs with the Release in O5.
        while self.busy.load(Acquire) {
            if !backoff.spin() {
                // Models have no clock; there the owner is sure to come.
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

    // SAFETY: the lock guards the value.
    unsafe impl Sync for Guarded {}

    impl Guarded {
        fn new() -> Arc<Self> {
            Arc::new(Self { lock: Biased::new(), value: UnsafeCell::new((0, 0)) })
        }

        fn change(&self) {
            self.lock.own(|| {
                self.value.with_mut(|value| {
                    // SAFETY: we own the lock.
                    let value = unsafe { &mut *value };
                    value.0 += 1;
                    value.1 += 1;
                });
            });
        }

        fn look(&self) -> Option<(u32, u32)> {
            // SAFETY: we visit.
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
