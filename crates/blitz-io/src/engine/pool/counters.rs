//! The counters of each core, with one writer, any number of readers, and no shared cache line.

use crate::engine::prim::{AtomicU64, Ordering::Relaxed};

/// A number that is written by one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline(always)]
    pub(crate) fn add(&self, count: u64) {
        // Relaxed, and no read-modify-write: the core's holder is the only writer, and readers need
        // a number, not an order.
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        // Relaxed: only a statistic, like in `add`.
        self.0.store(value, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: only a statistic, like in `add`.
        self.0.load(Relaxed)
    }

    /// Returns the atomic itself, for a writer below this layer.
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.0
    }
}

/// The counters of one core since it was created.
#[derive(Debug, Default)]
pub(crate) struct CoreCounters {
    /// Tasks polled.
    pub(crate) polled: Counter,
    /// Entries pushed onto the core's own ring.
    pub(crate) pushed: Counter,
    /// Entries popped from the core's own ring.
    pub(crate) popped: Counter,
    /// Entries stolen from other cores.
    pub(crate) stolen: Counter,
    /// Successful steals.
    pub(crate) steals: Counter,
    /// Times the thread slept.
    pub(crate) parked: Counter,
    /// Entries taken from the core's own LIFO slot.
    pub(crate) lifo_hits: Counter,
    /// Batches taken from the injector.
    pub(crate) batch_fetches: Counter,
    /// Times half of the ring went to the injector.
    pub(crate) overflows: Counter,
    /// Sleeping workers woken.
    pub(crate) wakeups_sent: Counter,
    /// Entries scheduled by this core.
    pub(crate) placed: Counter,
    /// Wake-ups that found nothing to do.
    pub(crate) idle_wakeups: Counter,
    /// Times the thread woke up again.
    pub(crate) unparked: Counter,
    /// Tasks spawned on this core.
    pub(crate) spawned: Counter,
    /// Tasks completed on this core.
    pub(crate) completed: Counter,
    /// Time not asleep, up to the last reading of the clock.
    pub(crate) busy_ns: Counter,
    /// The average duration of a poll, with more weight on the latest.
    pub(crate) mean_poll_ns: Counter,
    /// Entries that came from the injector into the queue of a pool without thieves.
    pub(crate) fetched: Counter,
    /// Polls that ended because the task's budget was used up.
    pub(crate) forced_yields: Counter,
}

/// The counters of events outside of the cores, written by any thread.
#[derive(Debug, Default)]
pub(crate) struct OutsideCounters {
    spawned: AtomicU64,
    stopped: AtomicU64,
    /// Forced yields like [`CoreCounters::forced_yields`], of the futures of `block_on`.
    forced_yields: Counter,
}

// Relaxed throughout: statistics, which order nothing.
impl OutsideCounters {
    pub(crate) fn spawn(&self) {
        self.spawned.fetch_add(1, Relaxed);
    }

    pub(crate) fn stopped(&self, count: u64) {
        self.stopped.fetch_add(count, Relaxed);
    }

    /// Returns the number of tasks spawned from outside of the cores.
    pub(crate) fn spawned(&self) -> u64 {
        self.spawned.load(Relaxed)
    }

    /// Returns the counter of yields that the budget forced upon futures of `block_on`.
    pub(crate) fn forced_yields(&self) -> &Counter {
        &self.forced_yields
    }

    /// Returns the number of tasks that ended without a core: dropped by shutdown, or on a thread
    /// that had handed its core off.
    pub(crate) fn completed(&self) -> u64 {
        self.stopped.load(Relaxed)
    }
}
