//! Counts the threads of the blocking pool and decides which thread is woken, started or ended.
//!
//! One word holds three counts: the *threads* of the pool (the crew), those of them that are
//! *starting* (requested from the system, which has not returned yet), and those that are *idle*
//! (asleep, and not claimed by any spawner). A mark at each bed (`beds`, the place where a thread
//! sleeps) says on which threads a claim may be spent. Whether a thread is woken, started, or ends
//! is decided by the word alone, in one exchange.
//!
//! # Protocol
//! ```text
//! A spawner                               A thread that found no job
//! P1 pushes its job                       W1 marks its bed, then idle + 1
//! P2 fence(SeqCst)                        W2 fence(SeqCst)
//! P3 reads the word:                      W3 checks for jobs once more; if there is
//!    idle > 0: idle - 1 (a claim), takes     one it leaves idle by itself (below)
//!      a mark, wakes its owner            W4 sleeps; when its time is over it leaves
//!    enough threads coming: nothing          idle and the crew by itself (below)
//!    threads < cap: threads + 1,
//!      starting + 1; starts one, then
//!      starting - 1
//!    else nothing
//! ```
//! *Leaving idle by itself*: L1 the thread takes its own mark; if the mark is gone, a claim was
//! spent on this thread, so it waits to be woken. L2 if idle > 0: idle - 1, and to leave the crew
//! also threads - 1, in the same step. L3 if idle = 0, all idle threads are claimed, and one of the
//! claims may have no other mark left to find: the thread puts its mark back and sleeps on.
//!
//! *No job is slept on.* One of P2 and W2 comes first. If P2, W3 sees the job. If W2, P3 sees the
//! sleeper, or that a claim was spent on it. Suppose that P3 reads idle = 0 with the crew at its
//! cap. Then not all of its threads sleep unclaimed: at least one is awake or about to be. Threads
//! leave the crew only by L2, so that one comes to W1 first, after P3 read the word and thus with
//! W2 after P2: its W3 sees the job.
//!
//! *Every claim finds a mark.* Let `hands` be the number of threads between L1 and L2 or L3, and
//! `early` the number of threads between the two halves of W1. Then marks + hands = idle + claims +
//! early holds throughout, because each step moves one from one side to the other, or changes both
//! sides by one. A thread that sees idle = 0 at L2 holds a mark that a claim is short of, or an
//! early thread had its mark taken; either way some other thread is awake, and looks for jobs.
//!
//! *Coming.* A thread that was woken or started for a job, and has not looked at the queue since,
//! is *coming*. No thread is started while at least as many are coming as jobs are queued. The
//! reason: under a steady load most jobs are taken by a thread that has just ended another one, so
//! the thread that was woken for a job arrives to an empty queue, and without this rule each such
//! job starts one more thread. A coming thread C1 subtracts itself from `coming`, C2 takes a job. A
//! spawner that finds no idle thread N1 counts the queued jobs, N2 reads `coming`. If N1 misses the
//! job that a thread took at C2, it sees that thread's C1 at N2, because C2 releases and N1
//! acquires the queue's length. So at N2 each of the jobs that N1 counted has a thread of its own
//! that will take one, and of two spawners the later to pass P2 counts both jobs. A job may thus
//! wait for a thread that wakes or starts, but never for the end of another job. A thread that
//! cannot be started is no longer coming; a job that counted on it is in the case F2, because only
//! a living thread can have taken the job that the failed thread was meant for.
//!
//! *Spare work.* A thread that is claimed for spare work (`recruit`: it runs a core, or polls an
//! offloaded task) leaves the crew in the same step, and may have been the one that P3 relied on:
//! if it is recruited between W1 and W3 it sees the job, but cannot leave idle by itself any more.
//! So it checks for jobs once more before it goes, and if there is one it joins the crew again
//! first and passes the spare work to another thread. It stays away only if the crew stops, or if
//! the crew is full of other threads of which at least one is more than starting: a thread that
//! joined after the claim checks for jobs after P2.
//!
//! *A thread that cannot be started.* F1 threads - 1, starting - 1, in one step. F2 if the crew has
//! a thread that is not starting, the job waits for it: that thread was awake when P3 claimed no
//! thread, or came later, and so comes to W1 after P3. F3 if it has none, the spawner takes its own
//! job out again and reports the error to its caller, unless another thread has taken the job
//! meanwhile. Each spawner takes care of its own job, so two that fail at once strand nothing. And
//! no spawner relies on a thread that may never come: if the crew is at its cap with all threads
//! starting, it waits until the system has returned for one of them.
//!
//! *Stopping*: the word is marked, then the parker of every bed gets a token. A thread that comes
//! to W1 later sees the word and leaves; one that came before finds the token.
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
//! threads <= cap. starting <= threads. A thread is in the crew from P3 (or `join`)
//! until the one step in which it leaves.
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
//! `crew/models.rs`: `a_job_and_a_thread_that_falls_asleep_never_miss_each_other`,
//! `a_job_and_a_thread_that_leaves_never_miss_each_other`,
//! `two_jobs_at_the_cap_are_both_run`, `a_claim_against_one_who_leaves_finds_the_other`,
//! `two_spawners_that_fail_at_once_take_back_their_own`,
//! `a_failed_start_beside_a_living_thread_waits_for_it`,
//! `nobody_relies_on_a_thread_that_may_never_come`,
//! `a_stop_against_a_thread_that_falls_asleep_ends_it`,
//! `a_stop_against_a_spawn_runs_or_drops_the_job_once`,
//! `a_job_queued_before_a_stop_is_run`,
//! `a_recruit_against_a_stop_is_answered_once`,
//! `a_recruit_against_a_job_at_the_cap_strands_nothing`,
//! `a_job_that_waits_for_the_next_one_never_takes_its_thread`,
//! `a_job_spawned_against_a_stop_needs_no_thread_that_lives`; weakened as
//! `crew_spawner_fence`, `crew_sleeper_fence`, `crew_leaves_in_one_step`,
//! `crew_puts_mark_back`, `crew_calls_before_it_wakes`, `crew_living_are_not_starting`,
//! `crew_waits_for_answer`, `crew_stop_unparks`, `crew_sees_stop`, `crew_looks_again`,
//! `crew_recruit_looks`, `crew_leaving_looks`, `crew_comes_before_it_looks`,
//! `crew_counts_jobs_first`, `crew_stop_takes_back`.

use super::beds::Beds;
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
const STOP: u64 = 1 << 63;
const FIELD: u64 = (1 << 16) - 1;

/// The largest cap: half of what a field of the word holds.
pub(crate) const LARGEST: usize = (1 << 15) - 1;

/// The threads of a blocking pool: their counts in one word, and the [`Beds`] that they sleep in.
pub(crate) struct Crew<E, R> {
    word: AtomicU64,
    /// Number of threads that were woken or started for a job and have not looked at the queue
    /// since.
    coming: CachePadded<AtomicUsize>,
    cap: u64,
    pub(crate) beds: Beds<E, R>,
}

/// How often a spawner checks before it starts a thread: about three microseconds, a tenth of the
/// start.
const LOOKS: u32 = 64;

/// Duty of a spawner after its job was pushed.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Nothing: a thread will look at the queue.
    Nothing,
    /// Take the job out again, if it is still there, and end it as cancelled, because the crew
    /// stops and every living thread may be in a job that waits for this one.
    TakeBack,
    /// Start a thread, which is counted already, and report the outcome with `started` or `failed`.
    Start,
}

/// Duty of a spawner after no thread could be started for its job.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing: a thread is alive and will look at the queue.
    Waits,
    /// Take the job out again, if it is still there, because no thread may ever look at the queue.
    Alone,
}

/// How a rest ended.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rested {
    /// There may be a job.
    Look,
    /// The thread was woken by a claim: there may be spare work, or a job. A claim for spare work
    /// has taken the thread out of the crew.
    Called,
    /// The thread has left the crew: its time was over, or it slept when the crew stopped.
    Gone,
    /// The crew stops, and the thread has left it: run what is queued, then end.
    Leaving,
}

/// How one sleep of a thread ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Nap {
    /// By a token, or spuriously.
    Disturbed,
    /// By its time-out.
    Over,
}

/// Snapshot of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) threads: usize,
    pub(crate) starting: usize,
    pub(crate) idle: usize,
}

impl<E, R> Crew<E, R> {
    /// Creates a crew without threads, for at most `cap` threads, with at least `beds` beds.
    pub(crate) fn new(cap: usize, beds: usize) -> Self {
        let cap = cap.min(LARGEST) as u64;
        Self {
            word: AtomicU64::new(0),
            coming: CachePadded::new(AtomicUsize::new(0)),
            cap,
            beds: Beds::new(beds),
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
    /// Starting a thread costs a hundred times as much as the rest of a call. So, before a thread
    /// is started, busy threads get a moment to end their jobs: one that becomes idle is woken, and
    /// if one finds the job by itself there is nothing left to do.
    pub(crate) fn call(&self, is_waiting: impl Fn() -> bool, queued: impl Fn() -> usize) -> Call {
        let mut looks = if cfg!(blitz_loom) { 0 } else { LOOKS };
        if !weakened!("crew_spawner_fence") {
            // SeqCst: P2. Pairs with W2 in `fall_asleep`.
            fence(SeqCst);
        }
        // Relaxed: ordered by the fence; the exchange confirms the value.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STOP != 0 {
                let forgets = weakened!("crew_stop_takes_back");
                return if forgets { Call::Nothing } else { Call::TakeBack };
            }
            let (next, duty) = if field(now, IDLE) > 0 {
                (now - IDLE, None)
            } else if looks > 0 && field(now, THREAD) > field(now, STARTING) {
                looks -= 1;
                spin_loop();
                if !is_waiting() {
                    return Call::Nothing;
                }
                // Relaxed: the exchange confirms the value, and the fence still precedes the load.
                now = self.word.load(Relaxed);
                continue;
            } else if self.enough_are_coming(&queued) {
                return Call::Nothing;
            } else if field(now, THREAD) < self.cap {
                (now + THREAD + STARTING, Some(Call::Start))
            } else if is_nobody_alive(now) && !weakened!("crew_waits_for_answer") {
                // The system is about to return from the start of a thread.
                thread::yield_now();
                // Relaxed: the exchange confirms the value, and the fence still precedes the load.
                now = self.word.load(Relaxed);
                continue;
            } else {
                return Call::Nothing;
            };
            // AcqRel: all changes of the word are in one order, with what was done before them, so
            // a claim sees the mark of the thread that it counts. Pairs with itself and with every
            // other change. Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => {
                    return duty.unwrap_or_else(|| {
                        self.expect();
                        self.beds.call(self.beds.take_any_mark());
                        Call::Nothing
                    });
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// Returns true if each queued job has a thread that is coming: steps N1 and N2.
    #[cold]
    fn enough_are_coming(&self, queued: impl Fn() -> usize) -> bool {
        if weakened!("crew_counts_jobs_first") {
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

    /// Counts a thread that will look at the queue. Must be called before the thread is woken or
    /// started.
    pub(crate) fn expect(&self) {
        // Relaxed: a count that is seen late starts a thread too many, which is harmless.
        self.coming.fetch_add(1, Relaxed);
    }

    /// Subtracts a thread from `coming` (step C1), because the calling thread is about to look at
    /// the queue, or an expected thread will not come.
    pub(crate) fn came(&self) {
        // Relaxed: published by the Release with which a job is taken off the queue.
        self.coming.fetch_sub(1, Relaxed);
    }

    /// Notes that the system has started the thread that `call` counted.
    pub(crate) fn started(&self) {
        self.change(|now| ((), now - STARTING));
    }

    /// Notes that the thread could not be started (step F1). Returns which of F2 and F3 follows.
    pub(crate) fn failed(&self) -> Failed {
        self.change(|now| {
            let next = now - STARTING - THREAD;
            (if is_nobody_alive(next) { Failed::Alone } else { Failed::Waits }, next)
        })
    }

    /// Adds a thread from elsewhere to the crew; returns `false` if the crew is full or stops.
    #[must_use]
    pub(crate) fn join(&self) -> bool {
        self.change(|now| {
            if now & STOP != 0 || field(now, THREAD) >= self.cap {
                return (false, now);
            }
            (true, now + THREAD)
        })
    }

    /// Takes an idle thread out of the crew for spare work, and returns its bed. The caller must
    /// leave the spare work at the bed, and then `call` the bed.
    #[must_use = "the thread must be called"]
    pub(crate) fn recruit(&self) -> Option<usize> {
        let claimed = self.change(|now| {
            if now & STOP != 0 || field(now, IDLE) == 0 {
                return (false, now);
            }
            (true, now - IDLE - THREAD)
        });
        claimed.then(|| self.beds.take_any_mark())
    }

    /// Returns true if the calling thread, which was recruited, may go. If not, it is in the crew
    /// again because of a job, and must pass the spare work to another thread.
    #[must_use]
    pub(crate) fn is_free_to_go(&self, has_job: impl Fn() -> bool) -> bool {
        if !has_job() || weakened!("crew_recruit_looks") {
            return true;
        }
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STOP != 0 {
                return true;
            }
            if field(now, THREAD) >= self.cap {
                if !is_nobody_alive(now) {
                    return true;
                }
                // The system is about to return from the start of a thread.
                thread::yield_now();
                // Relaxed: a guess; the exchange confirms it.
                now = self.word.load(Relaxed);
                continue;
            }
            // AcqRel: all changes of the word are in one order. Pairs with the exchange in `call`.
            match self.word.compare_exchange_weak(now, now + THREAD, AcqRel, Relaxed) {
                Ok(_) => return false,
                Err(seen) => now = seen,
            }
        }
    }

    /// Returns true if the crew stops.
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the AcqRel in `stop`.
        self.word.load(Acquire) & STOP != 0
    }

    /// Stops the crew: from now on threads leave when they find no job.
    pub(crate) fn stop(&self) {
        self.change(|now| ((), now | STOP));
        if weakened!("crew_stop_unparks") {
            return;
        }
        for bed in self.beds.made() {
            bed.parker.unpark();
        }
    }

    /// Puts the thread of `bed` to rest: steps W1 to W4, where `has_job` is W3 and `nap` sleeps on
    /// the parker.
    pub(crate) fn rest(
        &self,
        bed: usize,
        has_job: impl Fn() -> bool,
        mut nap: impl FnMut(&Parker) -> Nap,
    ) -> Rested {
        if !self.fall_asleep(bed) {
            return Rested::Leaving;
        }
        if has_job() && !weakened!("crew_looks_again") && self.leave_idle(bed, 0) {
            return Rested::Look;
        }
        let parker = &self.beds.bed(bed).parker;
        loop {
            if !self.beds.is_marked(bed) {
                self.beds.answer(bed);
                return Rested::Called;
            }
            if self.is_stopping() && !weakened!("crew_sees_stop") {
                // While no thread is idle, a claim may be looking for our mark: leave it there.
                if self.counts().idle > 0 && self.leave_for_good(bed) {
                    return Rested::Gone;
                }
                // Either a claim takes our mark now, or an early thread (between the halves of W1)
                // adds itself to idle, and then idle > 0 holds for us.
                thread::yield_now();
                continue;
            }
            if nap(parker) == Nap::Over && self.leave_for_good(bed) {
                return Rested::Gone;
            }
        }
    }

    /// Marks the thread as idle: steps W1 and W2. Returns `false` if the crew stops and the thread
    /// has left it.
    fn fall_asleep(&self, bed: usize) -> bool {
        self.beds.mark(bed);
        let mut in_hand = false;
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let stopping = now & STOP != 0 && !weakened!("crew_sees_stop");
            // If the mark is gone, a claim that counted another thread was spent on us: we add the
            // idle count for that thread, and then wait to be woken.
            in_hand = in_hand || (stopping && self.beds.take_mark(bed));
            let next = if in_hand { now - THREAD } else { now + IDLE };
            // AcqRel: publishes the mark to the claim that counts it. Pairs with the exchange in
            // `call`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        if !weakened!("crew_sleeper_fence") {
            // SeqCst: W2. Pairs with P2 in `call`.
            fence(SeqCst);
        }
        !in_hand
    }

    /// Leaves idle and the crew: steps L1 to L3. Returns `false` if the thread stays.
    fn leave_for_good(&self, bed: usize) -> bool {
        if weakened!("crew_leaves_in_one_step") {
            let left = self.leave_idle(bed, 0);
            if left {
                self.change(|now| ((), now - THREAD));
            }
            return left;
        }
        self.leave_idle(bed, THREAD)
    }

    /// Leaves idle: steps L1 to L3. Returns `false` if the thread is asleep as before, or was
    /// claimed.
    fn leave_idle(&self, bed: usize, with: u64) -> bool {
        if !self.beds.take_mark(bed) {
            return false;
        }
        let left = self.change(|now| {
            if field(now, IDLE) == 0 {
                return (false, now);
            }
            (true, now - IDLE - with)
        });
        if !left && !weakened!("crew_puts_mark_back") {
            self.beds.mark(bed);
        }
        left
    }

    /// Replaces the word by the one that `step` returns.
    fn change<T>(&self, step: impl Fn(u64) -> (T, u64)) -> T {
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let (answer, next) = step(now);
            // AcqRel: all changes of the word are in one order. Pairs with the exchange in `call`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return answer,
                Err(seen) => now = seen,
            }
        }
    }
}

/// Returns true if every thread of the crew is still being started.
fn is_nobody_alive(word: u64) -> bool {
    let coming = if weakened!("crew_living_are_not_starting") { 0 } else { field(word, STARTING) };
    field(word, THREAD) == coming
}

fn field(word: u64, one: u64) -> u64 {
    (word / one) & FIELD
}

#[cfg(test)]
mod models;
