//! Counts the threads of the blocking pool and decides which thread is woken, started or ended.
//!
//! One word holds three counts: the *threads* of the pool (the set), those of them that are
//! *starting* (requested from the system, which has not returned yet), and those that are *idle*
//! (asleep, and not claimed by any spawner). A mark at each slot (`idle_slots`, the slot in which a
//! thread sleeps) says on which threads a claim may be spent. Whether a thread is woken, started,
//! or ends is decided by the word alone, in one exchange.
//!
//! # Protocol
//! ```text
//! A spawner                               A thread that found no job
//! P1 pushes its job                       W1 marks its slot, then idle + 1
//! P2 fence(SeqCst)                        W2 fence(SeqCst)
//! P3 reads the word:                      W3 checks for jobs once more; if there is
//!    idle > 0: idle - 1 (a claim), takes     one it leaves idle by itself (below)
//!      a mark, wakes its owner            W4 sleeps; when its time is over it leaves
//!    enough threads coming: nothing          idle and the set by itself (below)
//!    threads < cap: threads + 1,
//!      starting + 1; starts one, then
//!      starting - 1
//!    else nothing
//! ```
//! *Leaving idle by itself*: L1 the thread takes its own mark; if the mark is gone, a claim was
//! spent on this thread, so it waits to be woken. L2 if idle > 0: idle - 1, and to leave the set
//! also threads - 1, in the same step. L3 if idle = 0, all idle threads are claimed, and one of the
//! claims may have no other mark left to find: the thread puts its mark back and sleeps on.
//!
//! *No job is slept on.* One of P2 and W2 comes first. If P2, W3 sees the job. If W2, P3 sees the
//! sleeper, or that a claim was spent on it. Suppose that P3 reads idle = 0 with the set at its
//! cap. Then not all of its threads sleep unclaimed: at least one is awake or about to be. Threads
//! leave the set only by L2, so that one comes to W1 first, after P3 read the word and thus with W2
//! after P2: its W3 sees the job.
//!
//! *Every claim finds a mark.* Let `hands` be the number of threads between L1 and L2 or L3, and
//! `early` the number of threads between the two halves of W1. Then marks + hands = idle + claims +
//! early holds throughout, because each step moves one from one side to the other, or changes both
//! sides by one. A thread that sees idle = 0 at L2 holds a mark that a claim is short of, or an
//! early thread had its mark taken; either way some other thread is awake, and checks for jobs.
//!
//! *Coming.* A thread that was woken or started for a job, and has not checked the queue since, is
//! *coming*. No thread is started while at least as many are coming as jobs are queued. The reason:
//! under a steady load most jobs are taken by a thread that has just ended another one, so the
//! thread that was woken for a job arrives to an empty queue, and without this rule each such job
//! starts one more thread. A coming thread subtracts itself from `coming` (C1) and takes a job
//! (C2). A spawner that finds no idle thread counts the queued jobs (N1) and reads `coming` (N2).
//! If N1 misses the job that a thread took at C2, it sees that thread's C1 at N2, because C2
//! releases and N1 acquires the queue's length. So at N2 each of the jobs that N1 counted has a
//! thread of its own that will take one, and of two spawners the later to pass P2 counts both jobs.
//! A job may thus wait for a thread that wakes or starts, but never for the end of another job. A
//! thread that cannot be started is no longer coming; a job that counted on it is in the case F2,
//! because only a living thread can have taken the job that the failed thread was meant for.
//!
//! *Spare work.* A thread that is claimed for spare work (`claim_idle`: it runs a core, or polls an
//! offloaded task) leaves the set in the same step, and may have been the one that P3 relied on: if
//! it is claimed between W1 and W3 it sees the job, but cannot leave idle by itself any more. So it
//! checks for jobs once more before it goes, and if there is one it joins the set again first and
//! passes the spare work to another thread. It stays away only if the set stops, or if the set is
//! full of other threads of which at least one is more than starting: a thread that joined after
//! the claim checks for jobs after P2.
//!
//! *A thread that cannot be started.* F1 threads - 1, starting - 1, in one step. F2 if the set has
//! a thread that is not starting, the job waits for it: that thread was awake when P3 claimed no
//! thread, or came later, and so comes to W1 after P3. F3 if it has none, the spawner takes its own
//! job out again and reports the error to its caller, unless another thread has taken the job
//! meanwhile. Each spawner takes care of its own job, so two that fail at once leave no job behind.
//! And no spawner relies on a thread that may never come: if the set is at its cap with all threads
//! starting, it waits until the system has returned for one of them.
//!
//! *Stopping*: the word is marked, then the parker of every slot gets a token. A thread that comes
//! to W1 later sees the word and leaves; one that came before finds the token.
//!
//! *Releasing workers.* A thread that was a worker, and lost its core, sleeps in the set, without a
//! time-out if it was started as a worker. The worker pool may stop long before the runtime is
//! dropped, because a task panicked. Then such a thread must end, as other workers do: its
//! thread-locals may own the runtime. R1 the word is marked, then R2 the parker of every slot gets
//! a token. Before each sleep the thread reads the word (R3), and leaves the set by itself if it is
//! marked. The argument is that of a stop: R1 and W1 change the same word. If R1 is first, R3 sees
//! it; if W1, R2 finds the slot.
//!
//! *Jobs that were queued before the stop are run.* A thread that leaves at W1 because of the stop
//! passes W2, and then runs what is queued. Suppose that P3 has read a word without the mark and
//! relied on that thread. Then P2 comes before W2 (else P3 would have seen the thread's step, and
//! with it the mark), so the thread finds the job.
//!
//! *A spawn against a stop.* A spawner that finds the mark at P3 starts no thread, and all living
//! threads may be in jobs that wait for its job. So it takes the job out of the queue again and
//! ends it as cancelled, unless a thread was faster: the caller's `spawn_blocking` and the stop
//! overlap, so the caller must expect either end. So each job is taken out of the queue by a thread
//! or by its spawner, and none is left when all threads have gone.
//!
//! # Invariants
//! threads <= cap. starting <= threads. A thread is in the set from P3 (or `join`) until the one
//! step in which it leaves.
//!
//! # Rejected
//! - A lock around queue and counts: all spawners contend for it, and so does the thread that was
//!   woken with the one that woke it.
//! - A count of idle threads that the woken thread corrects when it runs: until then a second
//!   spawner counts on a thread that is taken. So the caller makes the claim.
//! - One futex for all threads, with claims for whichever comes first: the thread that has slept
//!   longest is woken, so that under a steady trickle no thread is ever idle for long enough to
//!   leave.
//! - Subtracting from idle and from threads one after the other when leaving: a spawner that reads
//!   the word in between relies on a thread that will not check for jobs.
//!
//! # Checked by
//! `thread_set/models.rs`: `a_job_and_a_thread_that_falls_asleep_never_miss_each_other`,
//! `a_job_and_a_thread_that_leaves_never_miss_each_other`, `two_jobs_at_the_cap_are_both_run`,
//! `a_claim_against_a_thread_that_leaves_finds_the_other`,
//! `two_spawners_that_fail_at_once_take_back_their_own`,
//! `a_failed_start_beside_a_living_thread_waits_for_it`,
//! `no_spawner_relies_on_a_thread_that_may_never_come`,
//! `a_stop_against_a_thread_that_falls_asleep_ends_it`,
//! `a_stop_against_a_spawn_runs_or_drops_the_job_once`, `a_job_queued_before_a_stop_is_run`,
//! `a_claim_against_a_stop_is_served_once`, `a_claim_against_a_job_at_the_cap_strands_nothing`,
//! `a_job_that_waits_for_the_next_one_never_takes_its_thread`,
//! `a_job_spawned_against_a_stop_needs_no_thread_that_lives`,
//! `a_release_against_a_worker_that_falls_asleep_ends_it`,
//! `a_release_against_a_job_runs_it_and_ends_the_worker`,
//! `a_release_against_a_claim_serves_it_once`; weakened as `blocking_spawner_fence`,
//! `blocking_sleeper_fence`, `blocking_leaves_in_one_step`, `blocking_puts_mark_back`,
//! `blocking_marks_before_it_unparks`, `blocking_living_are_not_starting`,
//! `blocking_waits_for_start`, `blocking_stop_unparks`, `blocking_sees_stop`,
//! `blocking_checks_again`, `blocking_claimed_checks`, `blocking_leaving_checks`,
//! `blocking_comes_before_it_checks`, `blocking_counts_jobs_first`, `blocking_stop_takes_back`,
//! `blocking_release_unparks`, `blocking_release_marks_first`.

use super::idle_threads::IdleThreads;
use crate::engine::prim::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
    pad::CachePadded,
    parker::Parker,
    spin_loop, thread, weakened,
};

const THREAD: u64 = 1;
const STARTING: u64 = 1 << 16;
const IDLE: u64 = 1 << 32;
/// Set when the worker pool has stopped, so that threads which were workers leave (R1).
const RELEASED: u64 = 1 << 62;
const STOP: u64 = 1 << 63;
const FIELD: u64 = (1 << 16) - 1;

/// The largest cap: half of what a field of the word holds.
pub(crate) const MAX_THREADS: usize = (1 << 15) - 1;

/// The threads of a blocking pool: their counts in one word, and the [`IdleThreads`] that they
/// sleep in.
pub(crate) struct ThreadSet<E, R> {
    word: AtomicU64,
    /// Number of threads that were woken or started for a job and have not checked the queue since.
    coming: CachePadded<AtomicUsize>,
    cap: u64,
    pub(crate) idle_slots: IdleThreads<E, R>,
}

/// How often a spawner checks before it starts a thread: about three microseconds, a tenth of the
/// start.
const CHECKS: u32 = 64;

/// The duty of a spawner after its job was pushed.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterPush {
    /// Nothing: a thread will check the queue.
    Nothing,
    /// Take the job out again, if it is still there, and end it as cancelled, because the set stops
    /// and every living thread may be in a job that waits for this one.
    TakeBack,
    /// Start a thread, which is counted already, and report the outcome with `start_succeeded` or
    /// `start_failed`.
    Start,
}

/// The duty of a spawner after no thread could be started for its job.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterFailedStart {
    /// Nothing: a thread is alive and will check the queue.
    JobWaits,
    /// Take the job out again, if it is still there, because no thread may ever check the queue.
    TakeBack,
}

/// How a call of [`ThreadSet::sleep`] ended.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SleepResult {
    /// There may be a job.
    CheckQueue,
    /// The thread was woken by a claim: there may be spare work, or a job. A claim for spare work
    /// has taken the thread out of the set.
    Woken,
    /// The thread has left the set: its time was over, it was released, or it slept when the set
    /// stopped.
    OutOfSet,
    /// The set stops, and the thread has left it: run what is queued, then end.
    Leaving,
}

/// How one park of a thread ended; a sleep may consist of several.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParkResult {
    /// The thread got a token, or woke spuriously.
    Unparked,
    /// The time-out has passed, or the thread was released.
    TimedOut,
}

/// Snapshot of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) threads: usize,
    pub(crate) starting: usize,
    pub(crate) idle: usize,
}

impl<E, R> ThreadSet<E, R> {
    /// Creates a thread set without threads, for at most `cap` threads, with at least `idle_slots`
    /// slots.
    pub(crate) fn new(cap: usize, idle_slots: usize) -> Self {
        let cap = cap.min(MAX_THREADS) as u64;
        Self {
            word: AtomicU64::new(0),
            coming: CachePadded::new(AtomicUsize::new(0)),
            cap,
            idle_slots: IdleThreads::new(idle_slots),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        // Relaxed: a snapshot for metrics, which orders nothing.
        let now = self.word.load(Relaxed);
        let field = |one| usize::try_from(field(now, one)).unwrap_or(usize::MAX);
        Counts { threads: field(THREAD), starting: field(STARTING), idle: field(IDLE) }
    }

    /// Finds a thread for a job that was pushed: steps P2 and P3. `is_waiting` returns false once
    /// the job has certainly been taken, and `queued` the number of all queued jobs.
    ///
    /// Starting a thread costs a hundred times as much as the rest of this function. So, before a
    /// thread is started, busy threads get a moment to end their jobs: one that becomes idle is
    /// woken, and if one finds the job by itself there is nothing left to do.
    pub(crate) fn find_thread(
        &self,
        is_waiting: impl Fn() -> bool,
        queued: impl Fn() -> usize,
    ) -> AfterPush {
        let mut checks = if cfg!(blitz_loom) { 0 } else { CHECKS };
        if !weakened!("blocking_spawner_fence") {
            // SeqCst: P2. Pairs with W2 in `fall_asleep`.
            fence(SeqCst);
        }
        // Relaxed: ordered by the fence; the exchange confirms the value.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STOP != 0 {
                let keeps_job = weakened!("blocking_stop_takes_back");
                return if keeps_job { AfterPush::Nothing } else { AfterPush::TakeBack };
            }
            let (next, step) = if field(now, IDLE) > 0 {
                (now - IDLE, None)
            } else if checks > 0 && field(now, THREAD) > field(now, STARTING) {
                checks -= 1;
                spin_loop();
                if !is_waiting() {
                    return AfterPush::Nothing;
                }
                // Relaxed: the exchange confirms the value, and the fence still precedes the load.
                now = self.word.load(Relaxed);
                continue;
            } else if self.enough_are_coming(&queued) {
                return AfterPush::Nothing;
            } else if field(now, THREAD) < self.cap {
                (now + THREAD + STARTING, Some(AfterPush::Start))
            } else if all_are_starting(now) && !weakened!("blocking_waits_for_start") {
                // The system is about to return from the start of a thread.
                thread::yield_now();
                // Relaxed: the exchange confirms the value, and the fence still precedes the load.
                now = self.word.load(Relaxed);
                continue;
            } else {
                return AfterPush::Nothing;
            };
            // AcqRel: all changes of the word are in one order, with what was done before them, so
            // a claim sees the mark of the thread that it counts. Pairs with itself and with every
            // other change. Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => {
                    return step.unwrap_or_else(|| {
                        self.add_coming();
                        self.idle_slots.wake(self.idle_slots.take_any_mark());
                        AfterPush::Nothing
                    });
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// Returns true if each queued job has a thread that is coming: steps N1 and N2.
    #[cold]
    fn enough_are_coming(&self, queued: impl Fn() -> usize) -> bool {
        if weakened!("blocking_counts_jobs_first") {
            // Relaxed: the weakened order is wrong in any case.
            let coming = self.coming.load(Relaxed);
            return coming > 0 && coming >= queued();
        }
        // N1. The queue's length is read with Acquire.
        let queued = queued();
        // Relaxed: N2, ordered by that Acquire. A count that is too low starts a thread too many.
        let coming = self.coming.load(Relaxed);
        coming > 0 && coming >= queued
    }

    /// Counts a thread that will check the queue. Must be called before the thread is woken or
    /// started.
    pub(crate) fn add_coming(&self) {
        // Relaxed: a count that is seen late starts a thread too many, which is harmless.
        self.coming.fetch_add(1, Relaxed);
    }

    /// Subtracts a thread from `coming` (step C1), because the calling thread is about to check the
    /// queue, or an expected thread will not come.
    pub(crate) fn subtract_coming(&self) {
        // Relaxed: published by the Release with which a job is taken off the queue.
        self.coming.fetch_sub(1, Relaxed);
    }

    /// Notes that the system has started the thread that `find_thread` counted.
    pub(crate) fn start_succeeded(&self) {
        self.change(|now| ((), now - STARTING));
    }

    /// Notes that the thread could not be started (step F1). Returns which of F2 and F3 follows.
    pub(crate) fn start_failed(&self) -> AfterFailedStart {
        self.change(|now| {
            let next = now - STARTING - THREAD;
            (
                if all_are_starting(next) {
                    AfterFailedStart::TakeBack
                } else {
                    AfterFailedStart::JobWaits
                },
                next,
            )
        })
    }

    /// Adds a thread from elsewhere to the set; returns `false` if the set is full or stops.
    #[must_use]
    pub(crate) fn join(&self) -> bool {
        self.change(|now| {
            if now & STOP != 0 || field(now, THREAD) >= self.cap {
                return (false, now);
            }
            (true, now + THREAD)
        })
    }

    /// Takes an idle thread out of the set for spare work, and returns its slot. The caller must
    /// leave the spare work at the slot, and then wake the thread with [`IdleThreads::wake`].
    #[must_use = "the thread must be called"]
    pub(crate) fn claim_idle(&self) -> Option<usize> {
        let claimed = self.change(|now| {
            if now & STOP != 0 || field(now, IDLE) == 0 {
                return (false, now);
            }
            (true, now - IDLE - THREAD)
        });
        claimed.then(|| self.idle_slots.take_any_mark())
    }

    /// Returns true if the calling thread, which was claimed, may go. If not, it is in the set
    /// again because of a job, and must pass the spare work to another thread.
    #[must_use]
    pub(crate) fn may_leave(&self, has_job: impl Fn() -> bool) -> bool {
        if !has_job() || weakened!("blocking_claimed_checks") {
            return true;
        }
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STOP != 0 {
                return true;
            }
            if field(now, THREAD) >= self.cap {
                if !all_are_starting(now) {
                    return true;
                }
                // The system is about to return from the start of a thread.
                thread::yield_now();
                // Relaxed: a guess; the exchange confirms it.
                now = self.word.load(Relaxed);
                continue;
            }
            // AcqRel: all changes of the word are in one order. Pairs with the exchange in
            // `find_thread`.
            match self.word.compare_exchange_weak(now, now + THREAD, AcqRel, Relaxed) {
                Ok(_) => return false,
                Err(seen) => now = seen,
            }
        }
    }

    /// Returns true if the set stops.
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the AcqRel in `stop`.
        self.word.load(Acquire) & STOP != 0
    }

    /// Stops the set: from now on threads leave when they find no job.
    pub(crate) fn stop(&self) {
        self.change(|now| ((), now | STOP));
        if weakened!("blocking_stop_unparks") {
            return;
        }
        self.unpark_all();
    }

    /// Returns how the sleep of a thread that was a worker ends at once because workers were
    /// released, or `None` if they were not (R3).
    pub(crate) fn check_release(&self) -> Option<ParkResult> {
        // Acquire: pairs with the AcqRel in `change`, by which `release_workers` marks the word.
        let now = self.word.load(Acquire);
        if now & RELEASED == 0 {
            return None;
        }
        if field(now, IDLE) > 0 {
            return Some(ParkResult::TimedOut);
        }
        // All idle threads are claimed, and a claim may be looking for our mark: leave it there.
        thread::yield_now();
        Some(ParkResult::Unparked)
    }

    /// Lets threads that were workers leave: steps R1 and R2.
    pub(crate) fn release_workers(&self) {
        if weakened!("blocking_release_marks_first") {
            self.unpark_all();
        }
        let is_first = self.change(|now| (now & RELEASED == 0, now | RELEASED));
        if is_first
            && !weakened!("blocking_release_unparks")
            && !weakened!("blocking_release_marks_first")
        {
            self.unpark_all();
        }
    }

    fn unpark_all(&self) {
        for slot in self.idle_slots.allocated() {
            slot.parker.unpark();
        }
    }

    /// Puts the thread of `slot` to sleep: steps W1 to W4, where `has_job` is W3 and `park_once`
    /// sleeps on the parker.
    pub(crate) fn sleep(
        &self,
        slot: usize,
        has_job: impl Fn() -> bool,
        mut park_once: impl FnMut(&Parker) -> ParkResult,
    ) -> SleepResult {
        if !self.fall_asleep(slot) {
            return SleepResult::Leaving;
        }
        if has_job() && !weakened!("blocking_checks_again") && self.leave_idle(slot, 0) {
            return SleepResult::CheckQueue;
        }
        let parker = &self.idle_slots.slot(slot).parker;
        loop {
            if !self.idle_slots.is_marked(slot) {
                self.idle_slots.wait_for_wake(slot);
                return SleepResult::Woken;
            }
            if self.is_stopping() && !weakened!("blocking_sees_stop") {
                // While no thread is idle, a claim may be looking for our mark: leave it there.
                if self.counts().idle > 0 && self.leave_set(slot) {
                    return SleepResult::OutOfSet;
                }
                // Either a claim takes our mark now, or an early thread (between the halves of W1)
                // adds itself to idle, and then idle > 0 holds for us.
                thread::yield_now();
                continue;
            }
            if park_once(parker) == ParkResult::TimedOut && self.leave_set(slot) {
                return SleepResult::OutOfSet;
            }
        }
    }

    /// Marks the thread as idle: steps W1 and W2. Returns `false` if the set stops and the thread
    /// has left it.
    fn fall_asleep(&self, slot: usize) -> bool {
        self.idle_slots.mark(slot);
        let mut has_taken_mark = false;
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let stopping = now & STOP != 0 && !weakened!("blocking_sees_stop");
            // If the mark is gone, a claim that counted another thread was spent on us: we add the
            // idle count for that thread, and then wait to be woken.
            has_taken_mark = has_taken_mark || (stopping && self.idle_slots.take_mark(slot));
            let next = if has_taken_mark { now - THREAD } else { now + IDLE };
            // AcqRel: publishes the mark to the claim that counts it. Pairs with the exchange in
            // `find_thread`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if !weakened!("blocking_sleeper_fence") {
            // SeqCst: W2. Pairs with P2 in `find_thread`.
            fence(SeqCst);
        }
        !has_taken_mark
    }

    /// Leaves idle and the set: steps L1 to L3. Returns `false` if the thread stays.
    fn leave_set(&self, slot: usize) -> bool {
        if weakened!("blocking_leaves_in_one_step") {
            let left = self.leave_idle(slot, 0);
            if left {
                self.change(|now| ((), now - THREAD));
            }
            return left;
        }
        self.leave_idle(slot, THREAD)
    }

    /// Leaves idle: steps L1 to L3. Returns `false` if the thread is asleep as before, or was
    /// claimed.
    fn leave_idle(&self, slot: usize, with: u64) -> bool {
        if !self.idle_slots.take_mark(slot) {
            return false;
        }
        let left = self.change(|now| {
            if field(now, IDLE) == 0 {
                return (false, now);
            }
            (true, now - IDLE - with)
        });
        if !left && !weakened!("blocking_puts_mark_back") {
            self.idle_slots.mark(slot);
        }
        left
    }

    /// Replaces the word by the one that `step` returns.
    fn change<T>(&self, step: impl Fn(u64) -> (T, u64)) -> T {
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let (result, next) = step(now);
            // AcqRel: all changes of the word are in one order. Pairs with the exchange in
            // `find_thread`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return result,
                Err(seen) => now = seen,
            }
        }
    }
}

/// Returns true if every thread of the set is still being started.
fn all_are_starting(word: u64) -> bool {
    let coming =
        if weakened!("blocking_living_are_not_starting") { 0 } else { field(word, STARTING) };
    field(word, THREAD) == coming
}

fn field(word: u64, one: u64) -> u64 {
    (word / one) & FIELD
}

#[cfg(test)]
mod models;
