//! Decides which workers sleep, which search, and which must be woken.
//!
//! # Protocol
//! `counts` holds two numbers: the *searching* workers, which look for work in the queues of
//! others, and the *sleeping* workers that no thread has reserved yet. `asleep` has a bit per
//! worker.
//!
//! ```text
//! A producer                            A worker that found nothing
//! P1 puts work into the injector        W1 sets its bit in `asleep`, then
//! P2 fence(SeqCst)                         moves itself in `counts`: one searcher
//! P3 if no worker searches and one         fewer (if it was one), one sleeper more
//!    sleeps: reserves one (sleeping     W2 fence(SeqCst)
//!    - 1, searching + 1, in one step),  W3 checks the injector and all rings once
//!    takes a bit, unparks its owner        more; if there is work it wakes itself
//!                                       W4 parks
//! A searcher that found work
//! S1 searching - 1
//! S2 if it was the last: fence(SeqCst), checks whether there is more work, then as P3
//! ```
//! *No work is slept on.* One of P2 and W2 comes first. If P2, then W3 sees the work. If W2, then
//! P3 sees the sleeper, unless a worker searches. That searcher leaves by W1 or by S1, after P3
//! read it, and so after P2: its W3 or S2 sees the work.
//!
//! *Every reservation finds a bit.* A bit is set before its sleeper is counted, and a sleeper is
//! subtracted before its bit is taken, so there are never fewer bits than sleepers plus
//! reservations. Each reservation takes exactly one bit.
//!
//! *Waking oneself* is a reservation, too, and for work it makes the worker a searcher: a producer
//! that saw it searching before W1 may have left more than one item to it, so S2 must follow. If
//! all sleepers are reserved, another thread is about to unpark this worker, which waits for that.
//! If it got a reservation but its bit is gone, the reservation was meant for another sleeper, and
//! it gives the reservation back.
//!
//! Work that a worker puts into its own ring is not covered, because that worker will come to it.
//! It wakes others for such work only as a hint, without P2.
//!
//! # Invariants
//! Each decision has one source: `counts` alone decides whether a worker is woken, `asleep` alone
//! decides which. A worker starts to search only while fewer than half of the workers search.
//!
//! # Rejected
//! One word with a bit per worker, because it limits a pool to 64 workers. A park time-out that
//! hides a lost wake-up, because it costs wake-ups for ever.
//!
//! # Checked by
//! `work_and_sleeper_never_miss_each_other`, `the_last_searcher_hands_on`,
//! `two_producers_wake_for_both_items`, `a_worker_that_wakes_itself_is_counted_once`,
//! `a_worker_that_wakes_itself_hands_on`, `every_reservation_finds_a_bit`,
//! `the_last_worker_that_falls_asleep_sees_that_all_sleep`; weakened as `idle_counts_in_one_step`,
//! `idle_producer_fence`, `idle_sleeper_fence`, `idle_last_searcher`, `idle_give_back`,
//! `idle_self_searches`.

use super::awake;
use crate::engine::prim::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    backoff::Backoff,
    fence,
    pad::CachePadded,
    thread, weakened,
};

const SEARCHING_ONE: u64 = 1;
const SLEEPING_ONE: u64 = 1 << 32;

const BITS: usize = u64::BITS as usize;

/// The sleeping and searching workers of a pool.
pub(crate) struct Idle {
    /// The number of searching workers in the lower half, of sleeping workers in the upper.
    counts: CachePadded<AtomicU64>,
    /// One bit per worker, set while it sleeps; one word per 64 workers.
    asleep: Box<[AtomicU64]>,
    workers: usize,
    /// True if the workers are counted in [`awake`].
    counted: bool,
}

/// The outcome for a worker that was about to sleep and wakes itself.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SelfWoken {
    /// The worker is awake, and searches if it may.
    Awake,
    /// Another thread is about to unpark the worker, which must park and take that token.
    BeingWoken,
}

impl Idle {
    /// Creates the state for workers that share their processors with no other pool.
    pub(crate) fn new(workers: usize) -> Self {
        Self { counted: false, ..Self::with_temporary(workers, 0) }
    }

    /// Creates the state for workers that are counted in [`awake`].
    pub(crate) fn counted(workers: usize) -> Self {
        Self::with_temporary(workers, 0)
    }

    /// Creates the state for workers that are counted in [`awake`], with slots for temporary
    /// workers: threads that come and go. Half of the workers may search, however many temporary
    /// workers there could be.
    pub(crate) fn with_temporary(workers: usize, temporary: usize) -> Self {
        awake::count_processors();
        let words = (workers + temporary).div_ceil(BITS);
        Self {
            counts: CachePadded::new(AtomicU64::new(0)),
            asleep: (0..words).map(|_| AtomicU64::new(0)).collect(),
            workers,
            counted: true,
        }
    }

    /// Returns true if a searcher that spins takes no processor from a worker that runs something.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.counted || awake::has_room()
    }

    /// Makes the caller a searcher and returns true, unless half of the workers search already.
    pub(crate) fn start_searching(&self) -> bool {
        // Relaxed: only a limit, and too many searchers for a moment would do no harm.
        let mut now = self.counts.load(Relaxed);
        loop {
            if 2 * searching(now) >= self.workers as u64 {
                return false;
            }
            // AcqRel: every change of `counts` is in one order with what its thread did before it.
            // Relaxed on failure: the value is only a better guess.
            match self.counts.compare_exchange_weak(now, now + SEARCHING_ONE, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// Leaves the searching state because the searcher found work (S1). Returns true if it was the
    /// last searcher, which must then do S2.
    #[must_use]
    pub(crate) fn stop_searching(&self) -> bool {
        // AcqRel: orders this change with what the searcher did before, as in `start_searching`.
        let last = searching(self.counts.fetch_sub(SEARCHING_ONE, AcqRel)) == 1;
        if last {
            // SeqCst: S2. Pairs with P2.
            fence(SeqCst);
        }
        last && !weakened!("idle_last_searcher")
    }

    /// Counts and marks the worker as asleep (W1 and W2).
    pub(crate) fn fall_asleep(&self, worker: usize, was_searching: bool) {
        let (word, bit) = self.bit(worker);
        // AcqRel: ordered with what was done before. The step below orders it for threads that
        // reserve. Pairs with the AcqRel in `take_bit`.
        word.fetch_or(bit, AcqRel);
        let step = SLEEPING_ONE - if was_searching { SEARCHING_ONE } else { 0 };
        if weakened!("idle_counts_in_one_step") {
            // Relaxed: a mistake, on purpose.
            self.counts.store(self.counts.load(Relaxed).wrapping_add(step), Relaxed);
        } else {
            // AcqRel: publishes the bit to the thread that counts this sleeper. Pairs with
            // `reserve`.
            self.counts.fetch_add(step, AcqRel);
        }
        if self.counted {
            awake::fell_asleep();
        }
        if !weakened!("idle_sleeper_fence") {
            // SeqCst: W2. Pairs with P2 in `reserve_for_work`.
            fence(SeqCst);
        }
    }

    /// Wakes the worker after W3 saw work. If it is awake, it is a searcher.
    pub(crate) fn wake_self_for_work(&self, worker: usize) -> SelfWoken {
        let gained = if weakened!("idle_self_searches") { 0 } else { SEARCHING_ONE };
        self.wake_self(worker, gained)
    }

    /// Wakes the worker for another reason than work, so not as a searcher.
    pub(crate) fn wake_self_not_searching(&self, worker: usize) -> SelfWoken {
        self.wake_self(worker, 0)
    }

    fn wake_self(&self, worker: usize, gained: u64) -> SelfWoken {
        if !self.reserve(|_| true, gained) {
            return SelfWoken::BeingWoken;
        }
        if self.take_bit(worker) {
            return SelfWoken::Awake;
        }
        if !weakened!("idle_give_back") {
            // AcqRel: orders this change as in `start_searching`. A producer that relied on the
            // searcher that this worker was for a moment is served by the searcher that it is about
            // to be, because the thread that took its bit has counted it as one.
            self.counts.fetch_add(SLEEPING_ONE - gained, AcqRel);
            if self.counted {
                awake::fell_asleep();
            }
        }
        SelfWoken::BeingWoken
    }

    /// Returns true if `worker` is still marked as asleep, so that no thread has reserved it.
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        let (word, bit) = self.bit(worker);
        // Acquire: the thread that took the bit did so before it unparked this worker.
        word.load(Acquire) & bit != 0
    }

    /// Returns true if any worker searches.
    pub(crate) fn has_searchers(&self) -> bool {
        self.has_more_searchers_than(0)
    }

    /// Returns true if a worker besides the caller, which searches, does so as well.
    pub(crate) fn has_other_searchers(&self) -> bool {
        self.has_more_searchers_than(1)
    }

    /// Returns true if all workers search or sleep.
    #[cfg(feature = "net")]
    pub(crate) fn no_worker_runs(&self) -> bool {
        // Relaxed: only a hint.
        let now = self.counts.load(Relaxed);
        searching(now) + sleeping(now) >= self.workers as u64
    }

    /// Returns true if all workers sleep. Of several workers that have fallen asleep, the last one
    /// in the order of `counts` sees true.
    pub(crate) fn all_sleep(&self) -> bool {
        // Relaxed: it is one word, so a thread that has changed it sees all changes before its own.
        sleeping(self.counts.load(Relaxed)) >= self.workers as u64
    }

    fn has_more_searchers_than(&self, count: u64) -> bool {
        // Relaxed: ordered by the fence before, where that matters.
        searching(self.counts.load(Relaxed)) > count
    }

    /// Returns true if waking a worker might help: a hint, for work that is not lost anyway.
    #[inline]
    pub(crate) fn is_worth_waking(&self) -> bool {
        // Relaxed: only a hint.
        let now = self.counts.load(Relaxed);
        searching(now) == 0 && sleeping(now) > 0
    }

    /// Reserves a sleeper for new work (P2 and P3). Returns the worker to unpark, which counts as a
    /// searcher now, or `None` if none has to be woken. It does not choose `spared`, which sleeps
    /// in the driver for others, too, if another worker sleeps.
    #[must_use = "the worker must be unparked"]
    pub(crate) fn reserve_for_work(&self, spared: Option<usize>) -> Option<usize> {
        if !weakened!("idle_producer_fence") {
            // SeqCst: P2. Pairs with W2 in `fall_asleep` and S2 in `stop_searching`.
            fence(SeqCst);
        }
        if !self.reserve(|now| searching(now) == 0, SEARCHING_ONE) {
            return None;
        }
        Some(self.take_any_bit(spared))
    }

    /// Returns the number of sleeping workers.
    #[cfg(test)]
    pub(crate) fn sleeping(&self) -> usize {
        // Relaxed: only a statistic.
        sleeping(self.counts.load(Relaxed)) as usize
    }

    /// Asserts that no worker is marked or counted as asleep, and that `searchers` workers search.
    #[cfg(test)]
    pub(crate) fn assert_all_awake(&self, searchers: u64) {
        // Relaxed: the threads have been joined.
        let counts = self.counts.load(Relaxed);
        assert_eq!((searching(counts), sleeping(counts)), (searchers, 0));
        assert!(self.asleep.iter().all(|word| word.load(Relaxed) == 0), "a bit is left");
    }

    /// Subtracts one sleeper and adds `gained`, if a worker sleeps and `allowed` returns true.
    #[inline]
    fn reserve(&self, allowed: impl Fn(u64) -> bool, gained: u64) -> bool {
        // Relaxed: ordered by the fence before, where that matters.
        let mut now = self.counts.load(Relaxed);
        loop {
            if sleeping(now) == 0 || !allowed(now) {
                return false;
            }
            let next = now - SLEEPING_ONE + gained;
            // AcqRel: sees the bit of the sleeper that it counts. Pairs with `fall_asleep`.
            match self.counts.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => {
                    if self.counted {
                        awake::woke();
                    }
                    return true;
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes the bit for a reservation: the lowest one, so that few workers stay warm.
    fn take_any_bit(&self, spared: Option<usize>) -> usize {
        if let Some(worker) = self.find_bit(spared) {
            return worker;
        }
        let mut backoff = Backoff::default();
        loop {
            if let Some(worker) = self.find_bit(None) {
                return worker;
            }
            // Other threads took the bits that we saw. There is one for us (see the proof in the
            // module's header) as soon as they have taken theirs.
            if !backoff.spin() {
                thread::yield_now();
            }
        }
    }

    /// Takes the first bit that is set, except that of `spared`, in one round over the words.
    fn find_bit(&self, spared: Option<usize>) -> Option<usize> {
        for (index, word) in self.asleep.iter().enumerate() {
            // Relaxed: a guess; `take_bit` decides.
            let mut bits = word.load(Relaxed);
            while bits != 0 {
                let worker = index * BITS + bits.trailing_zeros() as usize;
                if spared != Some(worker) && self.take_bit(worker) {
                    return Some(worker);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    /// Clears the worker's bit and returns true if it was set.
    fn take_bit(&self, worker: usize) -> bool {
        let (word, bit) = self.bit(worker);
        // AcqRel: each time that the bit is set, one thread takes it. Pairs with itself and with
        // `fall_asleep`.
        word.fetch_and(!bit, AcqRel) & bit != 0
    }

    fn bit(&self, worker: usize) -> (&AtomicU64, u64) {
        (&self.asleep[worker / BITS], 1 << (worker % BITS))
    }
}

fn searching(counts: u64) -> u64 {
    counts & (SLEEPING_ONE - 1)
}

fn sleeping(counts: u64) -> u64 {
    counts >> 32
}

#[cfg(test)]
mod tests;
