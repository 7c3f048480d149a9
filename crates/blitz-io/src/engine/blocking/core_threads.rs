//! Bounds the threads that run cores which their workers have left in order to block.
//!
//! A thread is counted from the moment it is requested for a core, because it may take its time to
//! arrive, or hang in the user's `on_thread_start`, until it has no core any more. At the bound no
//! thread is requested for a core that is left: the core waits in its `Handoff` for a thread that
//! becomes free. A thread that the monitor requests for the core of a stuck thread is not refused,
//! and is counted when it arrives. So the count exceeds the bound at most by the number of polls that
//! are stuck, and by one for each core: the thread that took it over from a poll that has ended since.
//!
//! # Protocol
//! ```text
//! a worker that leaves its core            a thread that has no core any more
//! C1 leaves the core in its `Handoff`,     R1 subtracts itself from the count
//!    under the lock of `Remote::handoff`   R2 looks for a core in a `Handoff`, under the
//! C2 counts a thread for it; at the bound     same lock; if there is none, it is done
//!    it requests none                      R3 counts itself; at the bound it is done
//!                                          R4 takes a core that waits, if one still does,
//!                                             runs it, and begins again at R1
//! ```
//! The lock orders C1 and R2. Suppose that C2 finds the count at the bound, and look at one of the
//! threads that are counted then. It has not yet come to the R1 that follows, and so not to the R2
//! after that. This R2 comes after C1, because otherwise its R1 would have come before C2. So it sees
//! the core. If R3 then finds the count at the bound, the same holds for the threads that are counted
//! now. So a core waits only as long as each of the counted threads runs a core, blocks, is stuck in
//! a poll, or is about to arrive.
//!
//! A count that is given up without a thread (the system refused to start one) is not followed by R2.
//! An idle thread is sent for the core instead, if there is one by then.
//!
//! # Rejected
//! - Looking for a core before R1, and not after it: a core that was left in between would wait
//!   although the thread is free.
//! - Letting a thread that has lost its core take a core that waits without R1 and R3, because it is
//!   there anyway: if its core was taken in a long poll, and the thread that took over the core has
//!   blocked since, then each such poll would let one more thread block.
//! - Counting a thread when it arrives: a worker that comes back before the thread it has requested
//!   takes its core, blocks again, and requests another one. On a busy machine many threads were
//!   under way like this, and each took some other core that waited, past the bound.
//!
//! # Checked by
//! `a_core_that_is_left_at_the_bound_is_taken_by_a_thread_that_becomes_free`,
//! `a_core_is_not_missed_by_a_thread_that_comes_too_late_for_another`; weakened as
//! `core_thread_looks_again`, `core_thread_begins_again`. tests/it/task/block_in_place.rs:
//! `of_thousands_at_once_as_many_block_as_there_may_be_threads`.

use std::sync::Arc;

use crate::engine::prim::{AtomicUsize, Ordering::Relaxed, weakened};

/// The number of threads that were requested for cores, or run them, and its bound.
#[derive(Debug)]
pub(super) struct CoreThreads {
    count: AtomicUsize,
    bound: usize,
}

impl CoreThreads {
    pub(super) fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), bound })
    }

    /// Counts a thread until the guard is dropped, also past the bound.
    pub(super) fn count(self: &Arc<Self>) -> CountedThread {
        // Relaxed: the lock of C1 and R2 orders it.
        self.count.fetch_add(1, Relaxed);
        CountedThread(self.clone())
    }

    /// Counts a thread until the guard is dropped, unless the count is at its bound (C2 and R3).
    pub(super) fn try_count(self: &Arc<Self>) -> Option<CountedThread> {
        let next = |count| (count < self.bound).then_some(count + 1);
        // Relaxed: the lock of C1 and R2 orders it.
        self.count.fetch_update(Relaxed, Relaxed, next).ok()?;
        Some(CountedThread(self.clone()))
    }

    /// Runs cores that wait, for a thread that has none any more, as long as there are some and the
    /// bound permits it (R1 to R4). `counted` is the thread's own count, if it was counted.
    pub(super) fn run_waiting<C>(
        self: &Arc<Self>,
        mut counted: Option<CountedThread>,
        core_waits: impl Fn() -> bool,
        take: impl Fn() -> Option<C>,
        run: impl Fn(C),
    ) {
        loop {
            let waits_before = weakened!("core_thread_looks_again").then(&core_waits);
            drop(counted.take());
            if !waits_before.unwrap_or_else(&core_waits) {
                return;
            }
            counted = self.try_count();
            if counted.is_none() {
                return;
            }
            if let Some(core) = take() {
                run(core);
            } else if weakened!("core_thread_begins_again") {
                return;
            }
        }
    }
}

/// Guard that counts a thread that runs a core, or was requested for one.
#[derive(Debug)]
pub(super) struct CountedThread(Arc<CoreThreads>);

impl Drop for CountedThread {
    fn drop(&mut self) {
        // Relaxed: the lock of C1 and R2 orders it.
        self.0.count.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CoreThreads, CountedThread};
    use crate::engine::prim::{AtomicUsize, Mutex, Ordering::Relaxed, lock, model, thread};

    /// Two cores, with a bound of one thread.
    struct World {
        threads: Arc<CoreThreads>,
        /// Which of the cores wait for a thread.
        waiting: Mutex<[bool; 2]>,
        /// A core that its worker takes back just before another thread does.
        taken_back: Mutex<Option<usize>>,
        running: AtomicUsize,
    }

    impl World {
        fn new(taken_back: Option<usize>) -> Arc<Self> {
            let waiting = Mutex::new([0, 1].map(|core| taken_back == Some(core)));
            let (taken_back, running) = (Mutex::new(taken_back), AtomicUsize::new(0));
            Arc::new(Self { threads: CoreThreads::new(1), waiting, taken_back, running })
        }

        fn run_waiting(&self, counted: Option<CountedThread>) {
            let take = || {
                let mut waiting = lock(&self.waiting);
                if let Some(core) = lock(&self.taken_back).take() {
                    waiting[core] = false;
                }
                let core = waiting.iter().position(|waits| *waits)?;
                waiting[core] = false;
                Some(())
            };
            self.threads.run_waiting(
                counted,
                || lock(&self.waiting).contains(&true),
                take,
                |()| {
                    // Relaxed: the count alone must keep the other thread out.
                    assert_eq!(self.running.fetch_add(1, Relaxed), 0, "two threads run cores");
                    self.running.fetch_sub(1, Relaxed);
                },
            );
        }

        /// Leaves a core (C1 and C2). If a thread may be requested for it, the caller is that thread
        /// afterwards.
        fn leave(&self, core: usize) {
            lock(&self.waiting)[core] = true;
            if let Some(counted) = self.threads.try_count() {
                self.run_waiting(Some(counted));
            }
        }
    }

    /// A thread of the bound becomes free while a worker leaves its core.
    #[test]
    fn a_core_that_is_left_at_the_bound_is_taken_by_a_thread_that_becomes_free() {
        model(|| {
            let world = World::new(None);
            let counted = world.threads.try_count();
            assert!(counted.is_some() && world.threads.try_count().is_none(), "the bound is one");
            let becomes_free = thread::spawn({
                let world = world.clone();
                move || world.run_waiting(counted)
            });
            world.leave(0);
            becomes_free.join().unwrap();
            assert_eq!(*lock(&world.waiting), [false; 2], "a core waits, and a thread is free");
        });
    }

    /// The thread that becomes free sees a core, which its worker takes back before the thread does;
    /// and then another worker leaves its core.
    #[test]
    fn a_core_is_not_missed_by_a_thread_that_comes_too_late_for_another() {
        model(|| {
            let world = World::new(Some(0));
            let counted = world.threads.try_count();
            let becomes_free = thread::spawn({
                let world = world.clone();
                move || world.run_waiting(counted)
            });
            world.leave(1);
            becomes_free.join().unwrap();
            assert_eq!(*lock(&world.waiting), [false; 2], "a core waits, and a thread is free");
        });
    }
}
