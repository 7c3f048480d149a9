//! How many workers are awake, of all pools in the process, and who may look for work.
//!
//! A runtime's workers and those of fork-join pools share the processors. Each kind limits
//! its own searchers, but neither knows what the other has to do: a searcher of one kind
//! would spin on a processor that the other one needs. So all of them are counted here.
//! *Awake* is who runs something or searches; who sleeps is not, and neither is a thread that has given its
//! core away. While more are awake than there are processors nobody spins for work, and who does
//! stops: so those who spin, of all kinds, are never more than the processors that run none of
//! our tasks or jobs.
//!
//! Not counted is who never spins for work: the thread of a current-thread runtime, which waits in
//! its driver, and a caller from outside, which looks at its own latch for some microseconds and
//! then lets others run (`fork/latch.rs`).
//!
//! Nothing else depends on it. A worker that may not spin looks once more and falls asleep, by
//! the same steps as one that has spun in vain. (A runtime's worker that runs out of tasks looks
//! at all others once in any case: what is in their LIFO slots is seen in no other way.)
//!
//! # Protocol
//! A [`Member`] counts while it lives: a core of a pool with threads, a thread of a fork-join
//! pool, a guest of one while it is there. `idle` uncounts a member when it is counted as
//! asleep, and whoever takes it off the sleepers counts it again: so one that is on its way up is
//! awake already. Members come and go awake.
//!
//! # Rejected
//! - Asking the other pools for their counts: a list of pools to walk, and a lock or a
//!   scheme for its memory, at each search.
//! - A count of those who run, without searchers: they change places much more often than
//!   workers sleep, and each change would touch this word.
//!
//! # Checked by
//! `members_are_counted_while_they_are_awake`.

#[cfg(not(blitz_loom))]
mod counted {
    use std::sync::OnceLock;

    use crate::engine::prim::{AtomicUsize, Ordering::Relaxed, pad::CachePadded, thread};

    /// A signed number: a thread may be seen to sleep before it is seen to have come.
    static AWAKE: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

    static PROCESSORS: OnceLock<isize> = OnceLock::new();

    pub(super) fn add(count: isize) {
        // Relaxed: advice, and nothing is read for its sake.
        AWAKE.fetch_add(count.cast_unsigned(), Relaxed);
    }

    pub(super) fn awake() -> isize {
        // Relaxed: advice.
        AWAKE.load(Relaxed).cast_signed()
    }

    pub(super) fn processors() -> isize {
        *PROCESSORS.get_or_init(|| {
            let count = thread::available_parallelism().map_or(1, usize::from);
            isize::try_from(count).unwrap_or(isize::MAX)
        })
    }
}

/// Models have a few workers each and no processors: there is always room.
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

/// Whether there are no more workers awake than processors, so that those of them who
/// search have one each.
#[inline]
pub(crate) fn has_room() -> bool {
    counted::awake() <= counted::processors()
}

/// A member has fallen asleep.
pub(super) fn fell_asleep() {
    counted::add(-1);
}

/// A member wakes up, or is about to be woken.
pub(super) fn woke() {
    counted::add(1);
}

/// Somebody who may be awake; see the module.
#[must_use]
#[derive(Debug)]
pub(crate) struct Member(());

impl Member {
    pub(crate) fn new() -> Self {
        counted::add(1);
        Self(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        counted::add(-1);
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use super::{Member, counted, has_room};
    use crate::engine::pool::idle::{Idle, SelfWoken};

    /// Others of the process come and go meanwhile, so this looks at far more than those could be.
    #[test]
    fn members_are_counted_while_they_are_awake() {
        const MANY: isize = 1 << 20;
        let members: Vec<_> = (0..MANY).map(|_| Member::new()).collect();
        assert!(counted::awake() > MANY / 2);
        assert!(!has_room());
        let idle = Idle::in_crowd(2);
        assert!(!idle.has_room(), "all processors are busy");
        assert!(Idle::new(2).has_room(), "it is not in the crowd");
        drop(members);
        assert!(counted::awake() < MANY / 2);

        (0..MANY).for_each(|_| {
            idle.fall_asleep(0, false);
            // As somebody else would, who is about to unpark it.
            assert_eq!(idle.wake_self_alone(0), SelfWoken::Awake);
        });
        assert!(counted::awake().abs() < MANY / 2, "who sleeps and wakes changes nothing");
    }
}
