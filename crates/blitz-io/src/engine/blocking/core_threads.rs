//! Bounds the threads that run cores which their workers have left.
//!
//! A thread is counted from the moment it is started for a core, because it may hang in the user's
//! `on_thread_start`, until it has no core any more. At the bound no thread is requested for a core
//! that is left: the core waits in its `Handoff` for a thread that becomes free.
//!
//! # Protocol
//! ```text
//! a worker that leaves its core            a thread that has no core any more
//! C1 leaves the core in its `Handoff`,     R1 subtracts itself from the count
//!    under the lock of `Remote::handoff`   R2 looks for a core in a `Handoff`, under the
//! C2 reads the count; at the bound it         same lock; if there is one, counts itself
//!    requests no thread                       and runs it
//! ```
//! The lock orders C1 and R2. If C1 comes first, R2 finds the core. If R2 does, C2 sees the count
//! after R1, and requests a thread if that is below the bound. So a core waits only as long as all
//! threads of the bound have cores, or are about to arrive.
//!
//! # Rejected
//! Subtracting a thread after it has looked for cores: a core that was left in between would wait
//! although the thread is free. `take_waiting_core` in `preempt/handoff.rs`, which a thread calls
//! before it gets here, is such a look, and spares the change of the count.
//!
//! # Checked by
//! `a_core_that_is_left_at_the_bound_is_taken_by_a_thread_that_becomes_free`; weakened as
//! `core_thread_leaves_first`.

use crate::engine::prim::{AtomicUsize, Ordering::Relaxed};

/// The number of threads that were started for cores, or run them, and its bound.
#[derive(Debug)]
pub(super) struct CoreThreads {
    count: AtomicUsize,
    bound: usize,
}

impl CoreThreads {
    pub(super) fn new(bound: usize) -> Self {
        Self { count: AtomicUsize::new(0), bound }
    }

    /// Returns true if no further thread may be requested for a core (C2).
    pub(super) fn is_full(&self) -> bool {
        // Relaxed: the lock of C1 and R2 orders it. Threads that read it at the same time may
        // exceed the bound by a few, one for each core, which does no harm.
        self.count.load(Relaxed) >= self.bound
    }

    /// Counts a thread until the guard is dropped (R1).
    pub(super) fn enter(&self) -> CountedThread<'_> {
        self.add();
        CountedThread(self)
    }

    /// Counts a thread, which must call [`subtract`](Self::subtract) later.
    pub(super) fn add(&self) {
        // Relaxed: as in `is_full`.
        self.count.fetch_add(1, Relaxed);
    }

    /// Subtracts a thread that was counted by [`add`](Self::add).
    pub(super) fn subtract(&self) {
        // Relaxed: as in `is_full`.
        self.count.fetch_sub(1, Relaxed);
    }
}

/// Guard that counts a thread that runs a core.
pub(super) struct CountedThread<'a>(&'a CoreThreads);

impl Drop for CountedThread<'_> {
    fn drop(&mut self) {
        self.0.subtract();
    }
}

#[cfg(test)]
mod tests {
    use super::CoreThreads;
    use crate::engine::prim::{Arc, Mutex, lock, model, thread, weakened};

    #[test]
    fn a_core_that_is_left_at_the_bound_is_taken_by_a_thread_that_becomes_free() {
        model(|| {
            let shared = Arc::new((CoreThreads::new(1), Mutex::new(false)));
            shared.0.add();
            let leaves = thread::spawn({
                let shared = shared.clone();
                move || {
                    let (threads, waiting) = &*shared;
                    if weakened!("core_thread_leaves_first") {
                        *lock(waiting) = false;
                        threads.subtract();
                    } else {
                        threads.subtract();
                        *lock(waiting) = false;
                    }
                }
            });
            let (threads, waiting) = &*shared;
            *lock(waiting) = true;
            let is_refused = threads.is_full();
            leaves.join().unwrap();
            assert!(!(is_refused && *lock(waiting)), "the core waits, and a thread is free");
        });
    }
}
