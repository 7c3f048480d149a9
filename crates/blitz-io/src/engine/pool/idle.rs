//! Who sleeps, who searches, and who must be woken.
//!
//! # Protocol
//! `counts` holds two numbers: *searching* workers, which look for work that is
//! not theirs, and *sleeping* ones that nobody has reserved yet. `asleep` has a
//! bit per worker.
//!
//! ```text
//! A producer                            A worker that found nothing
//! P1 puts work into the intake          W1 sets its bit in `asleep`, then
//! P2 fence(SeqCst)                         moves itself in `counts`: one searcher
//! P3 if nobody searches and somebody       fewer (if it was one), one sleeper more
//!    sleeps: reserves one (sleeping     W2 fence(SeqCst)
//!    - 1, searching + 1, in one step),  W3 looks into every queue once more; if
//!    takes a bit, unparks its owner        there is work it wakes itself (below)
//!                                       W4 parks
//! A searcher that found work
//! S1 searching - 1
//! S2 if it was the last: fence(SeqCst), looks whether more waits, then as P3
//! ```
//! *No work is slept on.* One of P2 and W2 comes first. If P2, then W3 sees the
//! work. If W2, then P3 sees the sleeper, unless somebody searches. That searcher
//! leaves by W1 or by S1, after P3 read it, and so after P2: its W3 or S2 sees
//! the work.
//!
//! *Every reservation finds a bit.* A bit is set before its sleeper is counted,
//! and a sleeper is uncounted before its bit is taken, so there are never fewer
//! bits than sleepers plus reservations. Whoever reserves takes exactly one.
//!
//! *Waking oneself* is a reservation, too, and for work it makes a searcher: a
//! producer that saw us search before W1 left more than one item to us, perhaps,
//! and S2 must follow. If all sleepers are reserved, somebody is about to unpark
//! us, and we wait for that. If we got a reservation but our bit is gone, it was
//! meant for another sleeper, and we give it back.
//!
//! Work that a worker puts into its own ring is not covered: that worker will
//! come to it. It wakes others for such work as advice, without P2.
//!
//! # Invariants
//! Decisions have one source: whether to wake is `counts` alone, whom is `asleep`
//! alone. At most half of the workers search.
//!
//! # Rejected
//! One word with a bit per worker: a cap of 64. A park time-out that hides a lost
//! wake-up: it costs wake-ups for ever.
//!
//! # Checked by
//! `work_and_sleeper_never_miss_each_other`, `the_last_searcher_hands_on`,
//! `two_producers_wake_for_both_items`, `a_worker_that_wakes_itself_is_counted_once`,
//! `a_worker_that_wakes_itself_hands_on`, `every_reservation_finds_a_bit`,
//! `the_last_who_falls_asleep_sees_that_all_do`; weakened as `idle_counts_in_one_step`,
//! `idle_producer_fence`, `idle_sleeper_fence`, `idle_last_searcher`,
//! `idle_give_back`, `idle_self_searches`.

use super::crowd;
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

/// See the module.
pub(crate) struct Idle {
    /// Searching in the lower half, sleeping in the upper.
    counts: CachePadded<AtomicU64>,
    /// One bit per worker, a word per 64.
    asleep: Box<[AtomicU64]>,
    workers: usize,
    /// The workers are members of the [`crowd`].
    in_crowd: bool,
}

/// How a worker that wanted to sleep and saw work woke up.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SelfWoken {
    /// It is awake, and searches if it may.
    Awake,
    /// Another thread is about to unpark it: it must park and take that token.
    BeingWoken,
}

impl Idle {
    /// For workers that have nobody beside them.
    pub(crate) fn new(workers: usize) -> Self {
        Self { in_crowd: false, ..Self::with_guests(workers, 0) }
    }

    /// For workers that are members of the [`crowd`].
    pub(crate) fn in_crowd(workers: usize) -> Self {
        Self::with_guests(workers, 0)
    }

    /// As [`in_crowd`](Self::in_crowd), with places for others, who come and go: half of the
    /// workers may search, however many guests there could be.
    pub(crate) fn with_guests(workers: usize, guests: usize) -> Self {
        let words = (workers + guests).div_ceil(BITS);
        Self {
            counts: CachePadded::new(AtomicU64::new(0)),
            asleep: (0..words).map(|_| AtomicU64::new(0)).collect(),
            workers,
            in_crowd: true,
        }
    }

    /// Whether a searcher that spins takes a processor from nobody.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.in_crowd || crowd::has_room()
    }

    /// Becomes a searcher, unless half of the workers are.
    pub(crate) fn start_searching(&self) -> bool {
        // Relaxed: only a limit; too many for a moment would do no harm.
        let mut now = self.counts.load(Relaxed);
        loop {
            if 2 * searching(now) >= self.workers as u64 {
                return false;
            }
            // AcqRel: every change of `counts` is in one order with what was done
            // before it. Relaxed on failure: a better guess.
            match self.counts.compare_exchange_weak(now, now + SEARCHING_ONE, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// S1: the searcher found work. `true` if it was the last, which then does S2.
    #[must_use]
    pub(crate) fn stop_searching(&self) -> bool {
        // AcqRel: as in `start_searching`.
        let last = searching(self.counts.fetch_sub(SEARCHING_ONE, AcqRel)) == 1;
        if last {
            // SeqCst: S2. Pairs with P2.
            fence(SeqCst);
        }
        last && !weakened!("idle_last_searcher")
    }

    /// W1 and W2.
    pub(crate) fn fall_asleep(&self, worker: usize, was_searching: bool) {
        let (word, bit) = self.bit(worker);
        // AcqRel: with what was done before. The step below orders it for those
        // who reserve. Pairs with the AcqRel in `take_bit`.
        word.fetch_or(bit, AcqRel);
        let step = SLEEPING_ONE - if was_searching { SEARCHING_ONE } else { 0 };
        if weakened!("idle_counts_in_one_step") {
            // Relaxed: a mistake, on purpose.
            self.counts.store(self.counts.load(Relaxed).wrapping_add(step), Relaxed);
        } else {
            // AcqRel: publishes the bit to whoever counts it. Pairs with `reserve`.
            self.counts.fetch_add(step, AcqRel);
        }
        if self.in_crowd {
            crowd::fell_asleep();
        }
        if !weakened!("idle_sleeper_fence") {
            // SeqCst: W2. Pairs with P2 in `reserve_for_work`.
            fence(SeqCst);
        }
    }

    /// After W3 saw work: the worker is a searcher, if it is awake.
    pub(crate) fn wake_self_for_work(&self, worker: usize) -> SelfWoken {
        let gained = if weakened!("idle_self_searches") { 0 } else { SEARCHING_ONE };
        self.wake_self(worker, gained)
    }

    /// For another reason than work.
    pub(crate) fn wake_self_alone(&self, worker: usize) -> SelfWoken {
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
            // AcqRel: as in `start_searching`. Whoever counted on the searcher that
            // we were for a moment is served by the one that we are about to be:
            // our bit was taken by somebody who counts us.
            self.counts.fetch_add(SLEEPING_ONE - gained, AcqRel);
            if self.in_crowd {
                crowd::fell_asleep();
            }
        }
        SelfWoken::BeingWoken
    }

    /// Whether `worker` is still marked as asleep: it was not woken on purpose.
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        let (word, bit) = self.bit(worker);
        // Acquire: whoever took the bit did so before unparking us.
        word.load(Acquire) & bit != 0
    }

    /// Whether somebody searches.
    pub(crate) fn has_searchers(&self) -> bool {
        self.has_more_searchers_than(0)
    }

    /// Whether a worker that searches is not the only one.
    pub(crate) fn has_other_searchers(&self) -> bool {
        self.has_more_searchers_than(1)
    }

    /// Whether all search or sleep.
    #[cfg(feature = "net")]
    pub(crate) fn nobody_runs(&self) -> bool {
        // Relaxed: advice.
        let now = self.counts.load(Relaxed);
        searching(now) + sleeping(now) >= self.workers as u64
    }

    /// Whether all sleep. Of several who have fallen asleep, the last in the order of `counts`
    /// sees that they do.
    pub(crate) fn all_sleep(&self) -> bool {
        // Relaxed: it is one word, so who has changed it sees all changes before its own.
        sleeping(self.counts.load(Relaxed)) >= self.workers as u64
    }

    fn has_more_searchers_than(&self, count: u64) -> bool {
        // Relaxed: ordered by the fence before, where that matters.
        searching(self.counts.load(Relaxed)) > count
    }

    /// Whether waking might be of use: advice, for work that is safe anyway.
    #[inline]
    pub(crate) fn is_worth_waking(&self) -> bool {
        // Relaxed: advice.
        let now = self.counts.load(Relaxed);
        searching(now) == 0 && sleeping(now) > 0
    }

    /// P2 and P3: the worker to unpark, now a searcher, if one must be. It is not `spared`,
    /// who sleeps for others, too, if there is another one.
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

    /// How many sleep.
    #[cfg(test)]
    pub(crate) fn sleeping(&self) -> usize {
        // Relaxed: a figure.
        sleeping(self.counts.load(Relaxed)) as usize
    }

    /// Nobody is marked or counted as asleep, and so many search.
    #[cfg(test)]
    pub(crate) fn assert_all_awake(&self, searchers: u64) {
        // Relaxed: the threads have been joined.
        let counts = self.counts.load(Relaxed);
        assert_eq!((searching(counts), sleeping(counts)), (searchers, 0));
        assert!(self.asleep.iter().all(|word| word.load(Relaxed) == 0), "a bit is left");
    }

    /// Uncounts one sleeper and counts `gained`, if there is one and `allowed`.
    #[inline]
    fn reserve(&self, allowed: impl Fn(u64) -> bool, gained: u64) -> bool {
        // Relaxed: ordered by the fence before, where that matters.
        let mut now = self.counts.load(Relaxed);
        loop {
            if sleeping(now) == 0 || !allowed(now) {
                return false;
            }
            let next = now - SLEEPING_ONE + gained;
            // AcqRel: sees the bit of whom it counts. Pairs with `fall_asleep`.
            match self.counts.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => {
                    if self.in_crowd {
                        crowd::woke();
                    }
                    return true;
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes the bit of a reservation. The lowest one: few workers stay warm.
    fn take_any_bit(&self, spared: Option<usize>) -> usize {
        if let Some(worker) = self.look_for_bit(spared) {
            return worker;
        }
        let mut backoff = Backoff::default();
        loop {
            if let Some(worker) = self.look_for_bit(None) {
                return worker;
            }
            // Others took what we saw; there is one for us (see the proof), as
            // soon as they are through with theirs.
            if !backoff.spin() {
                thread::yield_now();
            }
        }
    }

    /// One round over the bits, but for that of `spared`.
    fn look_for_bit(&self, spared: Option<usize>) -> Option<usize> {
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

    /// Clears the worker's bit; `true` if it was set.
    fn take_bit(&self, worker: usize) -> bool {
        let (word, bit) = self.bit(worker);
        // AcqRel: one taker for each time that it was set. Pairs with itself and
        // with `fall_asleep`.
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
