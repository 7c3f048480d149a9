//! A lock that costs its owner next to nothing, and its rare readers a lot.
//!
//! One thread at a time, the *owner*, enters and leaves very often, because what the lock guards
//! is its own. Now and then a *reader* on another thread reads the guarded value. The owner may
//! be anywhere meanwhile, even stuck in a user's poll for ever, so the reader must not depend on
//! the owner's cooperation.
//!
//! # Protocol
//! ```text
//! the owner                          a reader (one at a time)
//! O1 sets `busy`                     R1 sets `wanted`
//! O2 light barrier                   R2 heavy barrier
//! O3 reads `wanted`; if set, clears  R3 waits until `busy` is clear, for a while
//!    `busy`, sleeps until `wanted`   R4 reads
//!    is clear, and goes to O1        R5 clears `wanted`, wakes the owner
//! O4 works
//! O5 clears `busy`
//! ```
//! One of O2 and R2 comes first. If O2, R3 sees `busy` and waits for O5; if R2, O3 sees `wanted`.
//!
//! # Invariants
//! - The owner works, or a reader reads: never both.
//! - The owner must not enter while it is inside already, and must not run other code inside.
//!
//! # Checked by
//! `a_reader_never_reads_while_the_owner_works`, `an_owner_that_waited_continues`;
//! weakened as `biased_owner_checks`, `biased_reader_waits`, `biased_reader_wakes`.

use std::time::{Duration, Instant};

use super::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
    backoff::Backoff,
    barrier::{Mechanism, light_as, mechanism, try_heavy},
    futex::Futex,
    thread, weakened,
};

/// Longest time that a reader waits for an owner that is at work. The owner's work is a few
/// instructions, so it lasts only if its thread is not running. Picked, not measured.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A lock that one owner enters cheaply and that a rare reader enters with a process-wide barrier.
#[derive(Debug)]
pub(crate) struct BiasedLock {
    /// Set while the owner works.
    busy: AtomicBool,
    /// True if the light barrier is a fence in this process. Stored, because the barrier is
    /// passed often.
    fences: bool,
    /// Nonzero while a reader reads or waits to read; the owner sleeps on it.
    wanted: Futex,
}

impl BiasedLock {
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            fences: mechanism() == Mechanism::Fences,
            wanted: Futex::new(0),
        }
    }

    /// Runs `work` as the owner: steps O1 to O5. Waits first if a reader is reading.
    #[inline]
    pub(crate) fn run_as_owner<R>(&self, work: impl FnOnce() -> R) -> R {
        // Relaxed: the light barrier (O2) orders this store before the load of `wanted`.
        self.busy.store(true, Relaxed);
        light_as(self.fences);
        // Acquire: the reader's reads are over before we change what it read. Pairs with
        // the Release in R5.
        if self.wanted.word().load(Acquire) != 0 && !weakened!("biased_owner_checks") {
            self.wait_for_reader();
        }
        let result = work();
        // Release: the next reader sees what was done. Pairs with the Acquire in R3.
        self.busy.store(false, Release);
        result
    }

    #[cold]
    fn wait_for_reader(&self) {
        loop {
            // Release: the reader sees what the owner did before. Pairs with the Acquire in R3.
            self.busy.store(false, Release);
            self.wanted.wait(1, None);
            // Steps O1 to O3 again. Relaxed: the light barrier orders the store before the load.
            self.busy.store(true, Relaxed);
            light_as(self.fences);
            // Acquire: the reader's reads are over before we go on. Pairs with the Release in R5.
            if self.wanted.word().load(Acquire) == 0 {
                return;
            }
        }
    }

    /// Runs `read` as a reader: steps R1 to R5. Returns `None` if the owner's thread was at work
    /// and made no progress for too long, or if the system refuses the heavy barrier.
    ///
    /// The caller must ensure that there is one reader at a time. The owner may be waiting while
    /// `read` runs, so `read` must not run other code.
    pub(crate) fn run_as_reader<R>(&self, read: impl FnOnce() -> R) -> Option<R> {
        // Relaxed: the heavy barrier (R2) orders this store before the load of `busy`.
        self.wanted.word().store(1, Relaxed);
        // A sandbox that is entered later may forbid the barrier; then nothing can be read.
        let has_passed = try_heavy();
        let result = (has_passed && self.wait_for_owner()).then(read);
        // Release: our reads are over before the owner goes on. Pairs with the Acquire in O3.
        self.wanted.word().store(0, Release);
        if !weakened!("biased_reader_wakes") {
            self.wanted.wake_all();
        }
        result
    }

    /// Waits until the owner has left (step R3). Returns `false` if it takes too long.
    fn wait_for_owner(&self) -> bool {
        if weakened!("biased_reader_waits") {
            return true;
        }
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        // Acquire: sees what the owner did. Pairs with the Release in O5.
        while self.busy.load(Acquire) {
            if !backoff.spin() {
                // Models have no clock; there the owner always leaves in the end.
                if begin.elapsed() > MAX_WAIT && !cfg!(blitz_loom) {
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
    use super::BiasedLock;
    use crate::engine::prim::{Arc, UnsafeCell, model, thread};

    struct BiasedValue {
        lock: BiasedLock,
        value: UnsafeCell<(u32, u32)>,
    }

    // SAFETY: the value is accessed only inside `run_as_owner` and `run_as_reader`, which exclude
    // each other.
    unsafe impl Sync for BiasedValue {}

    impl BiasedValue {
        fn new() -> Arc<Self> {
            Arc::new(Self { lock: BiasedLock::new(), value: UnsafeCell::new((0, 0)) })
        }

        fn change(&self) {
            self.lock.run_as_owner(|| {
                self.value.with_mut(|value| {
                    // SAFETY: inside `run_as_owner`, no reader reads, and there is only one owner
                    // at a time.
                    let value = unsafe { &mut *value };
                    value.0 += 1;
                    value.1 += 1;
                });
            });
        }

        fn read(&self) -> Option<(u32, u32)> {
            // SAFETY: inside `run_as_reader`, the owner does not work, so nothing writes the value.
            self.lock.run_as_reader(|| self.value.with(|value| unsafe { *value }))
        }
    }

    #[test]
    fn a_reader_never_reads_while_the_owner_works() {
        model(|| {
            let guarded = BiasedValue::new();
            let owner = thread::spawn({
                let guarded = guarded.clone();
                move || guarded.change()
            });
            let seen = guarded.read();
            assert!(matches!(seen, Some((0, 0) | (1, 1))), "a half-done change: {seen:?}");
            owner.join().unwrap();
            assert_eq!(guarded.read(), Some((1, 1)));
        });
    }

    #[test]
    fn an_owner_that_waited_continues() {
        model(|| {
            let guarded = BiasedValue::new();
            let reader = thread::spawn({
                let guarded = guarded.clone();
                move || guarded.read()
            });
            guarded.change();
            guarded.change();
            reader.join().unwrap();
            assert_eq!(guarded.read(), Some((2, 2)));
        });
    }
}
