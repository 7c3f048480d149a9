//! A core, and the part of it that other threads can reach.

use std::{
    ptr::NonNull,
    sync::{Arc, Weak},
};

use super::{
    Config, Pool,
    awake::AwakeWorker,
    counters::CoreCounters,
    find::{Pace, SpinPolicy},
    histogram::Histogram,
    keep_up::Suspect,
    lifo::TaskLifoSlot,
    park::PollerUsefulness,
};
use crate::engine::{
    preempt::handoff::Handoff,
    prim::{
        AtomicPtr, Mutex,
        Ordering::Relaxed,
        ThreadId,
        clock::{CoarseClock, TimestampUnit},
        pad::CachePadded,
        parker::Parker,
        rng::Rng,
    },
    queue::{
        Chain,
        ring::{self, RingOwner, Thief},
    },
    work::task::{arena::Arena, cell::Task},
};

/// The right to run tasks, with everything that belongs to it alone.
///
/// The thread that holds a core reaches it through [`super::held_core::with_core`], for a few steps
/// at a time; no reference to a core may live across a poll.
pub(crate) struct Core {
    /// Keeps the core on cache lines of its own, because its neighbour in memory is likely the next
    /// core, and both write here for each poll. (Two cores that shared a cache line took twice the
    /// time to pass a task from one to the other.)
    _apart: CachePadded<()>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) index: usize,
    /// The core's element of `Pool::remotes`, which the pool keeps alive; a pointer because it is
    /// read several times in each poll.
    remote: NonNull<Remote>,
    /// The run queue, from which thieves can steal.
    pub(crate) ring: RingOwner<Task>,
    /// The run queue in a pool without thieves: strictly first in, first out.
    pub(crate) fifo: Chain<Task>,
    /// Tasks of a pool without thieves that have yielded: they run after all of `fifo`, and after
    /// the future of a `block_on` that is woken.
    pub(crate) deferred: Chain<Task>,
    pub(crate) arena: NonNull<Arena>,
    pub(crate) rng: Rng,
    pub(crate) clock: CoarseClock,
    pub(crate) pace: Pace,
    /// True if this core counts as searching in `idle`.
    pub(crate) searching: bool,
    /// Cores that kept up with their queues in the last search, by the lower six bits of their
    /// indices; see `find::is_skipped`.
    pub(crate) keep_up: u64,
    /// The other core that is checked for tasks that it does not run.
    pub(crate) suspect: Suspect,
    /// Number of tasks in a row that came from the LIFO slot.
    pub(crate) lifo_streak: u8,
    pub(crate) spin_policy: SpinPolicy,
    /// True if tasks are stamped with the exact time.
    pub(crate) exact: bool,
    /// True if there are no thieves and no exact time, so that every entry goes to the end of
    /// `fifo`.
    pub(crate) fifo_only: bool,
    /// Time since this core's last maintenance (of the I/O driver and the timers), up to the last
    /// reading of the clock.
    pub(crate) since_maintenance_ns: u64,
    /// True if it is time to poll the I/O driver and fire timers.
    pub(crate) maintenance_is_due: bool,
    /// True if the last poll of the driver found events, so the next one likely does. With nothing
    /// to run, the core then polls the driver before it searches, because that costs less, and the
    /// tasks that are woken by it are this core's. Only a core that is behind is stolen from first.
    pub(crate) expects_events: bool,
    /// True while entries belong to a batch: they are queued in order, and with at most one wake-up
    /// of a helper.
    pub(crate) batch: bool,
    /// The part of a batch that goes to the injector, behind the tasks that are there.
    pub(crate) batch_overflow: Chain<Task>,
    /// True if the rest of the batch goes to `batch_overflow`.
    pub(crate) batch_overflows: bool,
    /// Counts the core's thread as awake in the process, once a thread of the pool runs the core.
    awake: Option<AwakeWorker>,
}

// SAFETY: everything in it may move to another thread; the holder of the core is the holder of
// `arena`, and `remote` may be shared by all threads.
unsafe impl Send for Core {}

/// The part of a core that other threads may touch.
pub(crate) struct Remote {
    pub(crate) thief: Thief<Task>,
    pub(crate) lifo: CachePadded<TaskLifoSlot>,
    pub(crate) parker: CachePadded<Parker>,
    /// Written only by the core's holder, read by any thread.
    pub(crate) counters: CachePadded<CoreCounters>,
    /// The address of the core's `Arena`, by which the core of an arena is found.
    pub(crate) arena: AtomicPtr<Arena>,
    /// True while the arena's list may be read by other threads: from the core's creation to its
    /// end.
    pub(crate) open: Mutex<bool>,
    /// Written and read only by the core's holder.
    pub(crate) poller_usefulness: CachePadded<PollerUsefulness>,
    /// Histogram of poll durations; written only by the core's holder, read by any thread.
    pub(crate) poll_times: Option<Histogram>,
    pub(crate) latencies: Option<Histogram>,
    /// The thread that holds the core, or held it last.
    pub(crate) thread: Mutex<Option<ThreadId>>,
    /// The hand-off in which the core lay last between two threads, and may lie now.
    pub(crate) handoff: Mutex<Weak<Handoff>>,
}

impl Remote {
    pub(crate) fn new(config: &Config) -> (RingOwner<Task>, Self) {
        let (owner, thief) = ring::ring();
        let remote = Self {
            thief,
            lifo: CachePadded::new(TaskLifoSlot::new()),
            parker: CachePadded::new(Parker::new()),
            counters: CachePadded::new(CoreCounters::default()),
            arena: AtomicPtr::new(std::ptr::null_mut()),
            open: Mutex::new(true),
            poller_usefulness: CachePadded::new(PollerUsefulness::default()),
            poll_times: config.poll_times.map(Histogram::new),
            latencies: config.latencies.map(Histogram::new),
            thread: Mutex::new(None),
            handoff: Mutex::new(Weak::new()),
        };
        (owner, remote)
    }
}

impl Core {
    pub(crate) fn new(pool: Arc<Pool>, index: usize, ring: RingOwner<Task>) -> Box<Self> {
        let arena = Arena::new(pool.clone());
        // Relaxed: the pool is not shared yet.
        pool.remotes[index].arena.store(arena.as_ptr(), Relaxed);
        Box::new(Self {
            _apart: CachePadded::new(()),
            arena,
            index,
            remote: NonNull::from_ref(&pool.remotes[index]),
            ring,
            fifo: Chain::new(),
            deferred: Chain::new(),
            rng: match &pool.seeds {
                Some(seeds) => seeds.core(index),
                None => Rng::new(Rng::process_seed() ^ index as u64),
            },
            clock: CoarseClock::new(),
            pace: Pace::new(&pool.config),
            searching: false,
            keep_up: 0,
            suspect: Suspect::default(),
            since_maintenance_ns: 0,
            maintenance_is_due: false,
            expects_events: false,
            batch: false,
            batch_overflow: Chain::new(),
            batch_overflows: false,
            lifo_streak: 0,
            spin_policy: SpinPolicy::new(),
            exact: pool.config.unit() == TimestampUnit::Micros,
            fifo_only: !pool.config.threaded && pool.config.unit() != TimestampUnit::Micros,
            awake: None,
            pool,
        })
    }

    /// Counts the core as awake in the process while a thread runs it; called by that thread.
    pub(crate) fn count_as_awake(&mut self) {
        if self.pool.config.threaded {
            self.awake.get_or_insert_with(AwakeWorker::new);
        }
    }

    #[inline(always)]
    pub(crate) fn remote(&self) -> &Remote {
        // SAFETY: the pool owns the element in a box that does not move, and `self.pool` keeps the
        // pool alive.
        unsafe { self.remote.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &CoreCounters {
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
