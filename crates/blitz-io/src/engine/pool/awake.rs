//! Counts the awake workers of all pools in the process, to limit those that spin for work.
//!
//! A runtime's workers and those of fork-join pools share the processors. Each kind limits its own
//! searchers, but neither knows the load of the other, so a searcher of one kind would spin on a
//! processor that the other kind needs. So all of them are counted here. A worker is *awake* if it
//! runs something or searches; a worker that sleeps is not, and neither is a thread that has handed
//! its core off. While more workers are awake than there are processors, no worker begins to spin
//! for work, and a fork-join worker that spins stops. (A runtime's worker checks once and then
//! spins for two or three microseconds.) So, but for that time, the spinning workers of all kinds
//! are never more than the processors that run none of our tasks or jobs.
//!
//! Threads that never spin for work are not counted: the thread of a current-thread runtime, which
//! waits in its driver, and a caller from outside, which checks its own latch for some microseconds
//! and then lets others run (`fork/latch.rs`).
//!
//! Nothing else depends on this count. A worker that may not spin checks for work once more and
//! falls asleep, by the same steps as a worker that has spun in vain. (A runtime's worker that runs
//! out of tasks searches all other cores once in any case, because tasks in their LIFO slots are
//! seen in no other way.)
//!
//! # Protocol
//! An [`AwakeWorker`] stands for one worker while it lives: a core of a pool with threads, a thread
//! of a fork-join pool, or a temporary worker of one. `idle` subtracts a worker when it counts it
//! as asleep, and the thread that takes the worker off the sleepers adds it again, so a worker that
//! is about to be unparked is awake already. Workers are awake when they are created and dropped.
//!
//! # Rejected
//! - Reading the counts of the other pools: that needs a list of pools to walk, and a lock or a
//!   scheme for its memory, at each search.
//! - A count of the workers that run, without searchers: workers change between running and
//!   searching much more often than they sleep, and each change would touch this word.
//!
//! # Checked by
//! `members_are_counted_while_they_are_awake`.

#[cfg(not(blitz_loom))]
mod counted {
    use std::sync::OnceLock;

    use crate::engine::prim::{AtomicUsize, Ordering::Relaxed, pad::CachePadded, thread};

    /// The number of awake workers. Signed, because another thread may see a worker fall asleep
    /// before it sees that the worker was added.
    static AWAKE: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

    static PROCESSORS: OnceLock<isize> = OnceLock::new();

    pub(super) fn add(count: isize) {
        // Relaxed: only a hint, and no other memory is read because of it.
        AWAKE.fetch_add(count.cast_unsigned(), Relaxed);
    }

    pub(super) fn awake() -> isize {
        // Relaxed: only a hint.
        AWAKE.load(Relaxed).cast_signed()
    }

    pub(super) fn processors() -> isize {
        *PROCESSORS.get_or_init(|| {
            let count = thread::available_parallelism().map_or(1, usize::from);
            isize::try_from(count).unwrap_or(isize::MAX)
        })
    }
}

/// Stand-in for models, which have a few workers each and no processors: there is always room.
#[cfg(blitz_loom)]
mod counted {
    pub(super) fn add(_count: isize) {}

    pub(super) fn awake() -> isize {
        0
    }

    pub(super) fn processors() -> isize {
        1
    }
}

/// Counts the processors. Must be called before a pool's threads are started, because it reads
/// files: a worker that did it later would open a descriptor when the program does not expect it.
pub(super) fn count_processors() {
    counted::processors();
}

/// Returns true if no more workers are awake than there are processors, so that each of those that
/// search has one.
#[inline]
pub(crate) fn has_room() -> bool {
    counted::awake() <= counted::processors()
}

/// Subtracts a worker that has fallen asleep.
pub(super) fn fell_asleep() {
    counted::add(-1);
}

/// Adds a worker that wakes up, or is about to be woken.
pub(super) fn woke() {
    counted::add(1);
}

/// A worker that is counted as awake until `idle` counts it as asleep.
#[must_use]
#[derive(Debug)]
pub(crate) struct AwakeWorker(());

impl AwakeWorker {
    pub(crate) fn new() -> Self {
        counted::add(1);
        Self(())
    }
}

impl Drop for AwakeWorker {
    fn drop(&mut self) {
        counted::add(-1);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{AwakeWorker, counted, has_room};
    use crate::engine::pool::idle::{Idle, SelfWoken};

    /// Other threads of the process come and go meanwhile, so this test adds far more workers than
    /// those could be.
    #[test]
    fn members_are_counted_while_they_are_awake() {
        const MANY: isize = 1 << 20;
        let members: Vec<_> = (0..MANY).map(|_| AwakeWorker::new()).collect();
        assert!(counted::awake() > MANY / 2);
        assert!(!has_room());
        let idle = Idle::counted(2);
        assert!(!idle.has_room(), "all processors are busy");
        assert!(Idle::new(2).has_room(), "its workers are not counted");
        drop(members);
        assert!(counted::awake() < MANY / 2);

        (0..MANY).for_each(|_| {
            idle.fall_asleep(0, false);
            // Another thread that is about to unpark it would do the same.
            assert_eq!(idle.wake_self_not_searching(0), SelfWoken::Awake);
        });
        assert!(counted::awake().abs() < MANY / 2, "sleeping and waking changes nothing");
    }
}
