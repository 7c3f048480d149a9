//! How many threads the crew has, who of them sleeps, and who is called.
//!
//! One word counts: the *threads* of the crew, those of them that are *starting*
//! (asked of the system, which has not answered), and those that are *idle*
//! (asleep, and nobody has claimed them). A mark at each bed (`beds`) says whom a
//! claim may be spent on. Whether somebody is called, started, or leaves for good
//! is decided by the word alone, in one exchange.
//!
//! # Protocol
//! ```text
//! A spawner                               A thread that found no job
//! P1 pushes its job                       W1 marks its bed, then idle + 1
//! P2 fence(SeqCst)                        W2 fence(SeqCst)
//! P3 reads the word:                      W3 looks for jobs once more; if there is
//!    idle > 0: idle - 1 (a claim), takes     one it leaves idle by itself (below)
//!      a mark, calls its owner            W4 sleeps; when its time is over it leaves
//!    threads < cap: threads + 1,             idle and the crew by itself (below)
//!      starting + 1; starts one, then
//!      starting - 1
//!    else nothing
//! ```
//! *Leaving idle by oneself*: L1 take the own mark; if it is gone, somebody calls:
//! wait for that. L2 if idle > 0: idle - 1, and for good also threads - 1, in the
//! same step. L3 if idle = 0, all claims are spoken for, and one of them may have no
//! other mark left to find: put the mark back and sleep on.
//!
//! *No job is slept on.* One of P2 and W2 comes first. If P2, W3 sees the job. If W2,
//! P3 sees the sleeper, or that a claim was spent on it. Let P3 read idle = 0 with the
//! crew at its cap. Then not all of its threads sleep unclaimed: at least one is awake
//! or about to be. Threads leave the crew only by L2, so that one comes to W1 first,
//! after P3 read the word and thus with W2 after P2: its W3 sees the job.
//!
//! *Every claim finds a mark.* With `hands` for those between L1 and L2 or L3, and
//! `early` for those between the two halves of W1, marks + hands = idle + claims +
//! early holds throughout: each step moves one from one side to the other, or one on
//! both. Whoever sees idle = 0 at L2 has a mark in its hand that a claim is short of,
//! or one who is early had its mark taken; either way somebody else is awake, and
//! looks for jobs.
//!
//! *Errands.* A thread that is claimed for an errand (`recruit`) leaves the crew in the
//! same step, and may have been the one that P3 relied on: recruited between W1 and W3
//! it sees the job, and cannot leave idle by itself any more. So it looks once more
//! before it goes, and if there is a job it comes back into the crew first and lets
//! another one do the errand. It stays away only if the crew is full of others, of whom
//! one is more than starting, or stops: who came in after the claim looks after P2.
//!
//! *A thread that cannot be started.* F1 threads - 1, starting - 1, in one step. F2 if
//! the crew has a thread that is not starting, the job waits for it: that thread was
//! awake when P3 claimed nobody, or came later, and so comes to W1 after P3. F3 if it
//! has none, the spawner takes its own job out again and says so to its caller, unless
//! somebody has taken the job meanwhile. Each cares for its own, so two that fail at
//! once strand nothing. And nobody relies on a thread that may never come: who finds
//! the crew at its cap with all of them starting waits for the system's answer.
//!
//! *Stopping*: the word is marked, then every bed gets a token. A thread that comes to
//! W1 later sees the word and leaves; one that came before finds the token.
//!
//! # Invariants
//! threads <= cap. starting <= threads. A thread is in the crew from P3 (or `join`)
//! until the one step in which it leaves.
//!
//! # Rejected
//! - A lock round queue and counts: all who spawn meet at it, and the thread that was
//!   woken meets the one who woke it.
//! - A count of idle threads that the woken thread corrects when it comes round: until
//!   then a second spawner counts on a thread that is taken. The claim is the caller's.
//! - One futex for all, with claims for whoever comes first: the thread that has slept
//!   longest is woken, so that under a steady trickle no thread is ever idle for long
//!   enough to leave.
//! - Uncounting idle and threads one after the other when leaving: a spawner that
//!   reads the word in between relies on a thread that will not look.
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
//! `a_recruit_against_a_stop_is_answered_once`,
//! `a_recruit_against_a_job_at_the_cap_strands_nothing`; weakened as
//! `crew_spawner_fence`, `crew_sleeper_fence`, `crew_leaves_in_one_step`,
//! `crew_puts_mark_back`, `crew_calls_before_it_wakes`, `crew_living_are_not_starting`,
//! `crew_waits_for_answer`, `crew_stop_unparks`, `crew_sees_stop`, `crew_looks_again`,
//! `crew_recruit_looks`.

use super::beds::Beds;
use crate::engine::prim::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
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

/// See the module.
pub(crate) struct Crew<E, R> {
    word: AtomicU64,
    cap: u64,
    pub(crate) beds: Beds<E, R>,
}

/// Looks before a thread is started: about three microseconds, a tenth of the start.
const LOOKS: u32 = 64;

/// What a spawner owes its job, after it was pushed.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Nothing: a thread will look, or the crew stops, and the job with it.
    Nothing,
    /// Start a thread and say how that ended: it is counted already.
    Start,
}

/// What a spawner owes its job, after no thread could be started.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nothing: a thread is alive and will look.
    Waits,
    /// Take the job out again, if it is still there: nobody may ever look.
    Alone,
}

/// How a rest ended.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rested {
    /// There may be a job.
    Look,
    /// Somebody called: there may be an errand, or a job. Whoever called for an errand
    /// has taken the thread out of the crew.
    Called,
    /// The thread has left the crew: its time was over, or the crew stops.
    Gone,
}

/// How one sleep ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Nap {
    /// There was a token, or for no reason.
    Disturbed,
    /// The time was over.
    Over,
}

/// A look at the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) threads: usize,
    pub(crate) starting: usize,
    pub(crate) idle: usize,
}

impl<E, R> Crew<E, R> {
    /// A crew of nobody, with at most `cap` threads and a bed for `beds`.
    pub(crate) fn new(cap: usize, beds: usize) -> Self {
        let cap = cap.min(LARGEST) as u64;
        Self { word: AtomicU64::new(0), cap, beds: Beds::new(beds) }
    }

    pub(crate) fn counts(&self) -> Counts {
        // Relaxed: figures.
        let now = self.word.load(Relaxed);
        let field = |one| usize::try_from(field(now, one)).unwrap_or(usize::MAX);
        Counts { threads: field(THREAD), starting: field(STARTING), idle: field(IDLE) }
    }

    /// P2 and P3. `is_waiting` says whether the job is still where it was put.
    ///
    /// Before a thread is started, which costs a hundred times as much, those who are
    /// at work get a moment to end it: one that idles is called, and one that finds the
    /// job by itself leaves nothing to do.
    pub(crate) fn call(&self, is_waiting: impl Fn() -> bool) -> Call {
        let mut looks = if cfg!(blitz_loom) { 0 } else { LOOKS };
        if !weakened!("crew_spawner_fence") {
            // SeqCst: P2. Pairs with W2 in `fall_asleep`.
            fence(SeqCst);
        }
        // Relaxed: ordered by the fence; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            if now & STOP != 0 {
                return Call::Nothing;
            }
            let (next, duty) = if field(now, IDLE) > 0 {
                (now - IDLE, None)
            } else if looks > 0 && field(now, THREAD) > field(now, STARTING) {
                looks -= 1;
                spin_loop();
                if !is_waiting() {
                    return Call::Nothing;
                }
                // Relaxed: as above; the fence still precedes it.
                now = self.word.load(Relaxed);
                continue;
            } else if field(now, THREAD) < self.cap {
                (now + THREAD + STARTING, Some(Call::Start))
            } else if is_nobody_alive(now) && !weakened!("crew_waits_for_answer") {
                // The system is about to answer somebody.
                thread::yield_now();
                // Relaxed: as above; the fence still precedes it.
                now = self.word.load(Relaxed);
                continue;
            } else {
                return Call::Nothing;
            };
            // AcqRel: every change of the word is in one order with what was done
            // before it; a claim sees the mark of whom it counts. Pairs with itself and
            // with every other change. Relaxed on failure: a better guess.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => {
                    return duty.unwrap_or_else(|| {
                        self.beds.call(self.beds.take_any_mark());
                        Call::Nothing
                    });
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// The system has started the thread that `call` counted.
    pub(crate) fn started(&self) {
        self.change(|now| ((), now - STARTING));
    }

    /// F1, and which of F2 and F3 follows.
    pub(crate) fn failed(&self) -> Failed {
        self.change(|now| {
            let next = now - STARTING - THREAD;
            (if is_nobody_alive(next) { Failed::Alone } else { Failed::Waits }, next)
        })
    }

    /// A thread from elsewhere wants to be of the crew; `false` if that has enough.
    #[must_use]
    pub(crate) fn join(&self) -> bool {
        self.change(|now| {
            if now & STOP != 0 || field(now, THREAD) >= self.cap {
                return (false, now);
            }
            (true, now + THREAD)
        })
    }

    /// Takes an idle thread out of the crew for an errand: leave that at its bed, then
    /// `call` the bed.
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

    /// Whether the calling thread, which was recruited, may go. If not it is of the crew
    /// again, for the sake of a job, and somebody else must do the errand.
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
                // As in `call`: the system is about to answer somebody.
                thread::yield_now();
                // Relaxed: as above.
                now = self.word.load(Relaxed);
                continue;
            }
            // AcqRel: as in `call`.
            match self.word.compare_exchange_weak(now, now + THREAD, AcqRel, Relaxed) {
                Ok(_) => return false,
                Err(seen) => now = seen,
            }
        }
    }

    /// Whether the crew stops.
    pub(crate) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the AcqRel in `stop`.
        self.word.load(Acquire) & STOP != 0
    }

    /// From now on threads leave when they find no job.
    pub(crate) fn stop(&self) {
        self.change(|now| ((), now | STOP));
        if weakened!("crew_stop_unparks") {
            return;
        }
        for bed in self.beds.made() {
            bed.parker.unpark();
        }
    }

    /// W1 to W4 for the thread of `bed`. `has_job` is W3; `nap` sleeps on the parker.
    pub(crate) fn rest(
        &self,
        bed: usize,
        has_job: impl Fn() -> bool,
        mut nap: impl FnMut(&Parker) -> Nap,
    ) -> Rested {
        if !self.fall_asleep(bed) {
            return Rested::Gone;
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
                // Without anybody idle a claim looks for our mark: leave it there.
                if self.counts().idle > 0 && self.leave_for_good(bed) {
                    return Rested::Gone;
                }
                // We are called now; or one who is early counts itself, and then there
                // is one for us.
                thread::yield_now();
                continue;
            }
            if nap(parker) == Nap::Over && self.leave_for_good(bed) {
                return Rested::Gone;
            }
        }
    }

    /// W1 and W2; `false` if the crew stops and the thread has left it.
    fn fall_asleep(&self, bed: usize) -> bool {
        self.beds.mark(bed);
        let mut in_hand = false;
        // Relaxed: the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let stopping = now & STOP != 0 && !weakened!("crew_sees_stop");
            // A mark that is gone was spent on us by a claim that counted another:
            // we count for that one, and then answer the call.
            in_hand = in_hand || (stopping && self.beds.take_mark(bed));
            let next = if in_hand { now - THREAD } else { now + IDLE };
            // AcqRel: publishes the mark to whoever counts it. Pairs with `call`.
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

    /// L1 to L3 for good.
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

    /// L1 to L3; `false` if the thread is asleep as before, or called.
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

    /// Replaces the word by what `step` makes of it.
    fn change<T>(&self, step: impl Fn(u64) -> (T, u64)) -> T {
        // Relaxed: a guess; the exchange confirms it.
        let mut now = self.word.load(Relaxed);
        loop {
            let (answer, next) = step(now);
            // AcqRel: as in `call`.
            match self.word.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                Ok(_) => return answer,
                Err(seen) => now = seen,
            }
        }
    }
}

/// Whether every thread of the crew is only being started.
fn is_nobody_alive(word: u64) -> bool {
    let coming = if weakened!("crew_living_are_not_starting") { 0 } else { field(word, STARTING) };
    field(word, THREAD) == coming
}

fn field(word: u64, one: u64) -> u64 {
    (word / one) & FIELD
}

#[cfg(test)]
mod models;
