//! A core, and the part of it that others see.

use std::{
    ptr::NonNull,
    sync::{Arc, Weak},
};

use super::{
    Config, Pool,
    counters::Counters,
    crowd::Member,
    duty::Usefulness,
    find::{Pace, Patience},
    handoff::Handoff,
    histogram::Histogram,
    lifo::LifoSlot,
};
use crate::engine::{
    prim::{
        AtomicPtr, Mutex,
        Ordering::Relaxed,
        ThreadId,
        clock::{CoarseClock, Unit},
        pad::CachePadded,
        parker::Parker,
        rng::Rng,
    },
    queue::{
        Chain,
        ring::{self, Owner, Thief},
    },
    work::task::{cell::Task, home::Home},
};

/// The right to run tasks, with everything that belongs to it alone.
///
/// The thread that holds it reaches it through [`super::current::with_core`], for
/// a few steps at a time; nobody keeps a reference across a poll.
pub(crate) struct Core {
    /// Keeps the core on lines of its own: its neighbour in memory is likely the next
    /// core, and both write here for each poll. (Two that shared a line took twice the
    /// time for a hand-over.)
    _apart: CachePadded<()>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) index: usize,
    /// Its part in the pool, which keeps it: asked several times a poll.
    remote: NonNull<Remote>,
    /// What waits here, where thieves can see it.
    pub(crate) ring: Owner<Task>,
    /// What waits here in a pool without thieves: strictly first in, first out.
    pub(crate) fifo: Chain<Task>,
    pub(crate) home: NonNull<Home>,
    pub(crate) rng: Rng,
    pub(crate) clock: CoarseClock,
    pub(crate) pace: Pace,
    /// This core counts as searching in `idle`.
    pub(crate) searching: bool,
    /// Cores that were found to keep up with their queues in the last search, by the
    /// lower bits of their indices. Who shares a bit with one is left alone, too, for
    /// once.
    pub(crate) keep_up: u64,
    /// How many tasks in a row came from the LIFO slot.
    pub(crate) lifo_streak: u8,
    pub(crate) patience: Patience,
    /// Tasks are stamped with the exact time.
    pub(crate) exact: bool,
    /// There are no thieves, and no exact time: all that is placed goes to the end of `fifo`.
    pub(crate) is_plain: bool,
    /// Time since this core last looked after driver and timers, as far as the clock was
    /// read.
    pub(crate) since_look_ns: u64,
    /// It is time to do so.
    pub(crate) look_is_due: bool,
    /// The last look found events, so the next one likely does.
    pub(crate) events_come: bool,
    /// Polls until all that was in the ring has had its turn, as it was when reads that
    /// had been postponed were last taken back.
    pub(crate) round_left: u32,
    /// What becomes runnable now comes in a batch: in order, and with one call for help.
    pub(crate) batch: bool,
    /// The part of a batch that goes to the intake, behind what is there.
    pub(crate) held_back: Chain<Task>,
    /// The rest of the batch goes there.
    pub(crate) holds_back: bool,
    /// It counts as awake, once a thread of its pool runs it.
    member: Option<Member>,
}

// SAFETY: everything in it may move to another thread; `home` is held by whoever
// holds the core, and `remote` is for all threads.
unsafe impl Send for Core {}

/// What other threads may touch of a core.
pub(crate) struct Remote {
    pub(crate) thief: Thief<Task>,
    pub(crate) lifo: CachePadded<LifoSlot>,
    pub(crate) parker: CachePadded<Parker>,
    /// Written by the holder alone, read by anyone.
    pub(crate) counters: CachePadded<Counters>,
    /// The core's home, to recognise it.
    pub(crate) home: AtomicPtr<Home>,
    /// Whether the home may be visited: from the core's birth to its end.
    pub(crate) open: Mutex<bool>,
    /// Written and read by the holder alone.
    pub(crate) duty: CachePadded<Usefulness>,
    /// As `counters`: durations of polls, and times from queueing to polling.
    pub(crate) poll_times: Option<Histogram>,
    pub(crate) latencies: Option<Histogram>,
    /// The thread that holds the core, or held it last.
    pub(crate) thread: Mutex<Option<ThreadId>>,
    /// Where the core lay last between two threads, and may lie now.
    pub(crate) lies: Mutex<Weak<Handoff>>,
}

impl Remote {
    pub(crate) fn new(config: &Config) -> (Owner<Task>, Self) {
        let (owner, thief) = ring::ring();
        let remote = Self {
            thief,
            lifo: CachePadded::new(LifoSlot::new()),
            parker: CachePadded::new(Parker::new()),
            counters: CachePadded::new(Counters::default()),
            home: AtomicPtr::new(std::ptr::null_mut()),
            open: Mutex::new(true),
            duty: CachePadded::new(Usefulness::default()),
            poll_times: config.poll_times.map(Histogram::new),
            latencies: config.latencies.map(Histogram::new),
            thread: Mutex::new(None),
            lies: Mutex::new(Weak::new()),
        };
        (owner, remote)
    }
}

impl Core {
    pub(crate) fn new(pool: Arc<Pool>, index: usize, ring: Owner<Task>) -> Box<Self> {
        let home = Home::new(pool.clone());
        // Relaxed: the pool is not shared yet.
        pool.remotes[index].home.store(home.as_ptr(), Relaxed);
        Box::new(Self {
            _apart: CachePadded::new(()),
            home,
            index,
            remote: NonNull::from_ref(&pool.remotes[index]),
            ring,
            fifo: Chain::new(),
            rng: match &pool.seeds {
                Some(seeds) => seeds.core(index),
                None => Rng::new(Rng::process_seed() ^ index as u64),
            },
            clock: CoarseClock::new(),
            pace: Pace::new(&pool.config),
            searching: false,
            keep_up: 0,
            since_look_ns: 0,
            look_is_due: false,
            events_come: false,
            round_left: 0,
            batch: false,
            held_back: Chain::new(),
            holds_back: false,
            lifo_streak: 0,
            patience: Patience::new(),
            exact: pool.config.unit() == Unit::Micros,
            is_plain: !pool.config.threaded && pool.config.unit() != Unit::Micros,
            member: None,
            pool,
        })
    }

    /// A thread runs it from now on, as long as it is there.
    pub(crate) fn join_crowd(&mut self) {
        if self.pool.config.threaded {
            self.member.get_or_insert_with(Member::new);
        }
    }

    #[inline(always)]
    pub(crate) fn remote(&self) -> &Remote {
        // SAFETY: the pool has it in a box that stays where it is, and this keeps the pool.
        unsafe { self.remote.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        &self.remote().counters
    }
}

#[cfg(test)]
mod tests {
    use super::{CachePadded, Core};

    #[test]
    fn cores_share_no_cache_line() {
        assert_eq!(align_of::<Core>(), align_of::<CachePadded<u8>>());
    }
}
