//! Detects whether a core keeps up with its queue, and lets a searcher that found only such cores
//! take a short sleep.
//!
//! A task that changes cores takes its memory with it, cache line by cache line, and so does all
//! that it shares with the tasks it left behind. For tasks of some hundred nanoseconds that is
//! several times their work: four senders and a receiver on two cores take three times as long as
//! on one, and six times the processor time. So a searcher watches a queue before it steals. A
//! queue that is very long, or that does not move, or that stays long is worth stealing from, and so
//! is one whose tasks take microseconds, as requests and queries do. Any other queue that its owner
//! empties within the time in which a sleeping worker could have been woken is left alone.
//!
//! The searcher then does not fall asleep, because there is work, but takes a *short sleep*: it
//! parks for a short time, counts as searching meanwhile, and then searches again. So no producer
//! pays for waking it, and if a core gets stuck in a poll with other tasks in its queue, a worker
//! comes. There is never more than one worker in a short sleep where one would do: a searcher that
//! sees another searcher sleeps as if there were no work (see `idle`: the other searcher stops
//! later, and checks the queues then).
//!
//! A core that gets events all the time never searches, because its next tasks are in the driver.
//! But the operating system may have taken the thread of another core off its processor, for a whole
//! time slice of some milliseconds, and the tasks in the queue of that core are older than the events
//! that wait in the driver. So a core that expects events checks one other core ([`Suspect`]) when it
//! has run out of tasks, and a busy one does so at its maintenance and at the end of a tick, but not
//! more often than once in 50 µs. The tasks of a core that is stuck are stolen, half of them at each
//! check. These thieves do not count as searching, because they have tasks or are about to get some;
//! a thief that puts stolen tasks into its ring then wakes a worker, as a producer does (P2 and P3 of
//! `idle`), because the worker that was woken for these tasks may have found no trace of them.
//!
//! # Protocol
//! ```text
//! the searcher                            a thread that puts work into the injector
//! N1 writes its index into `ShortSleeper` I1 puts the work in
//! N2 fence(SeqCst)                        I2 fence(SeqCst) (P2 of `idle`)
//! N3 checks the injector; if something    I3 if a worker searches: reads the index,
//!    is there, it does not sleep             and unparks the worker that it finds
//! N4 parks, with a time-out
//! ```
//! One fence comes first, so N3 sees the work or I3 sees the index: work from outside does not wait
//! for the end of a short sleep. Tasks in a core's ring may wait, because that core comes to them
//! by itself. It ends the short sleep as soon as its ring is long, as a hint.
//!
//! # Rejected
//! Stealing by the amount of work alone, without a minimum for a poll: a hundred tasks of 70 ns that
//! share permits would be spread over the cores.
//!
//! Waking no worker for short tasks, by the average duration of a poll: a long poll among them
//! would delay every task behind it. What matters is how the other core progresses, and the
//! searcher sees that for the price of a few cache misses.
//!
//! # Checked by
//! `work_from_outside_does_not_wait_for_a_short_sleep`; weakened as `short_sleep_checks_again`,
//! `short_sleep_fence`. `a_core_is_stuck_if_it_has_tasks_and_polls_none_for_a_while`, and
//! tests/it/runtime/idle.rs: `a_busy_worker_takes_tasks_queued_behind_a_blocked_one`.

use std::time::Duration;

use super::{Pool, core::Remote};
use crate::engine::prim::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence, spin_loop, weakened,
};

/// A queue of this many entries is worth stealing from if it is still as long when the entries that
/// were there first have gone: even at 50 ns each, which is the least that a poll takes, they are
/// more than a microsecond's work, and the queue does not get shorter.
const MANY: u32 = 32;

/// A queue of this many entries, half of a ring, is worth stealing from at once, and ends a short
/// sleep. Ending a short sleep costs as much as waking a sleeping worker. (If the number were
/// smaller, the start of a batch would look like a steady load: tasks that share ten permits would
/// be spread over the cores before the first of them waits, and stay there.)
pub(crate) const LONG: u32 = 128;

/// A task whose poll takes this long may change cores: the cache misses cost less than its work.
const MOVABLE_NS: u64 = 800;

/// A queue of such tasks with this much work is worth stealing from at once.
const STEALABLE_NS: u64 = 3_000;

/// A core with this much work in its queue is behind: a core that runs out of tasks takes some of
/// them before it polls the driver for newer ones. It is the time of ten requests or so; less would
/// move tasks back and forth between two cores that both get events.
const BEHIND_NS: u64 = 20_000;

/// A core that has tasks and polls none for this long is stuck in a poll, or its thread has lost its
/// processor. It is also the least time between two checks by a busy core: a check takes about 0.2 µs
/// from each of the two.
const STUCK_NS: u64 = 50_000;

/// Number of pauses between two checks. Each check takes a cache line away from its owner, which
/// needs it back for its next step.
const PAUSES: u32 = 4;

/// Number of checks without a step after which the owner is taken to be in a long poll. Where this
/// was measured a check with its pauses takes 0.2 µs, so these are 6 µs: an interrupt of the
/// owner's processor must not count as a long poll.
const UNMOVED: u32 = 30;

/// Number of checks until the entries that were seen at the first one must be gone: 20 µs, half of
/// the time to wake a sleeping worker on another processor where this was measured.
const CHECKS: u32 = 100;

/// The duration of a short sleep; the system adds its slack of 50 µs. While a worker is in a short
/// sleep, a task in the ring behind a long poll waits at most this long plus the slack; if all
/// workers are busy, [`Suspect`] applies. A worker that sleeps like this again and again costs
/// its processor some percent.
const SHORT_SLEEP: Duration = Duration::from_micros(100);

/// Returns true if the owner of this queue is about to empty it by itself.
///
/// Returns false for an empty queue as well, because there is nothing to keep up with.
pub(crate) fn keeps_up(remote: &Remote) -> bool {
    let mut first = remote.thief.span();
    if first.is_empty() || first.len() >= LONG {
        return false;
    }
    if has_movable_work(remote, first.len(), STEALABLE_NS) {
        return false;
    }
    let mut last = first;
    let mut unmoved = 0;
    // A model has no time in which an owner could keep up.
    let mut checks = if cfg!(blitz_loom) { 0 } else { CHECKS };
    while checks > 0 {
        checks -= 1;
        for _ in 0..PAUSES {
            spin_loop();
        }
        let now = remote.thief.span();
        if now.has_passed(&first) {
            if now.len() < MANY || first.len() >= MANY {
                return now.len() < MANY;
            }
            // The queue has grown meanwhile, as at the start of a batch: these entries, too, may be
            // gone before long.
            (first, checks) = (now, CHECKS);
        }
        unmoved = if now.has_moved_since(&last) { 0 } else { unmoved + 1 };
        if unmoved == UNMOVED {
            return false;
        }
        last = now;
    }
    false
}

/// Returns true if `count` tasks of this core are this much work, and worth their cache misses.
fn has_movable_work(remote: &Remote, count: u32, work_ns: u64) -> bool {
    let mean_poll_ns = remote.counters.mean_poll_ns.get();
    mean_poll_ns >= MOVABLE_NS && u64::from(count) * mean_poll_ns >= work_ns
}

/// A core's view of one other core, by which it detects that the other one has tasks and does not
/// run them.
#[derive(Debug, Default)]
pub(crate) struct Suspect {
    /// The core that had tasks at the last check, unless it was seen to run since.
    seen: Option<Seen>,
    /// The time of the last check by a busy core, by its own clock.
    checked_ns: u64,
}

#[derive(Debug)]
struct Seen {
    core: usize,
    /// The number of polls that the core had made.
    polled: u64,
    /// The time at which this number was first seen, by the clock of the core that checks.
    since_ns: u64,
}

impl Suspect {
    /// Returns true if it is time for a busy core to check another one. A check fetches cache lines
    /// that the other core needs, so there must be some time between two of them.
    pub(crate) fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns.saturating_sub(self.checked_ns) >= STUCK_NS;
        if is_due {
            self.checked_ns = now_ns;
        }
        is_due
    }

    /// Returns the core to check: the one that had tasks last time, or else `other`.
    pub(crate) fn or(&self, other: usize) -> usize {
        self.seen.as_ref().map_or(other, |seen| seen.core)
    }

    /// Returns the time for which the core has had tasks and polled none, if that is at least
    /// [`STUCK_NS`]. `now_ns` is the time that the caller's own core has been busy.
    pub(crate) fn stuck_ns(&mut self, core: usize, remote: &Remote, now_ns: u64) -> Option<u64> {
        let has_tasks = !remote.thief.is_empty() || !remote.lifo.is_empty();
        self.learn(core, has_tasks.then(|| remote.counters.polled.get()), now_ns)
    }

    /// Takes in the result of a check: the number of polls of the core, if it has tasks.
    fn learn(&mut self, core: usize, polled: Option<u64>, now_ns: u64) -> Option<u64> {
        let Some(polled) = polled else {
            self.seen = None;
            return None;
        };
        match &self.seen {
            Some(seen) if seen.core == core && seen.polled == polled => {
                Some(now_ns.saturating_sub(seen.since_ns)).filter(|stuck_ns| *stuck_ns >= STUCK_NS)
            }
            // The core runs, so another one is checked next time.
            Some(_) => {
                self.seen = None;
                None
            }
            None => {
                self.seen = Some(Seen { core, polled, since_ns: now_ns });
                None
            }
        }
    }
}

/// Returns true if this core has so much work in its queue that another one, which has run out of
/// tasks and expects events, steals some of it before it polls the driver.
pub(crate) fn is_behind(remote: &Remote) -> bool {
    let count = remote.thief.span().len();
    count >= LONG || has_movable_work(remote, count, BEHIND_NS)
}

/// The index of the worker in a short sleep, plus one; zero if there is none.
#[derive(Debug)]
pub(crate) struct ShortSleeper(AtomicUsize);

impl ShortSleeper {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Announces the short sleep (N1 to N3). Returns false if there is something to do.
    fn announce(&self, worker: usize, has_work: impl FnOnce() -> bool) -> bool {
        // Relaxed: the fence orders it. A worker with an index that is overwritten sleeps until its
        // time-out.
        self.0.store(worker + 1, Relaxed);
        if !weakened!("short_sleep_fence") {
            // SeqCst: N2. Pairs with P2 in `idle`.
            fence(SeqCst);
        }
        weakened!("short_sleep_checks_again") || !has_work()
    }

    fn withdraw(&self, worker: usize) {
        // Relaxed: a hint for other threads; one that unparks this worker for nothing does no harm.
        let _ = self.0.compare_exchange(worker + 1, 0, Relaxed, Relaxed);
    }

    /// Takes the worker that must be unparked, if one is in a short sleep (I3).
    #[inline]
    pub(crate) fn take(&self) -> Option<usize> {
        // Relaxed: ordered by the fence before, where that matters.
        if self.0.load(Relaxed) == 0 {
            return None;
        }
        // Relaxed: the parker's token orders what was done before.
        self.0.swap(0, Relaxed).checked_sub(1)
    }
}

/// Takes a short sleep (N1 to N4). This thread holds core `index` and counts as searching.
pub(crate) fn sleep_shortly(pool: &Pool, index: usize) {
    let is_wanted = || !pool.injector.is_empty() || pool.is_stopping();
    if pool.short_sleeper.announce(index, is_wanted) {
        pool.remotes[index].parker.park_timeout(SHORT_SLEEP);
    }
    pool.short_sleeper.withdraw(index);
}

#[cfg(test)]
mod tests {
    use super::{STUCK_NS, ShortSleeper, Suspect};
    use crate::engine::prim::{
        Arc, AtomicBool,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread,
    };

    #[test]
    fn work_from_outside_does_not_wait_for_a_short_sleep() {
        model(|| {
            let shared = Arc::new((ShortSleeper::new(), Parker::new(), AtomicBool::new(false)));
            let producer = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the fences order it, as they do the injector's length.
                    shared.2.store(true, Relaxed);
                    // SeqCst: P2.
                    fence(SeqCst);
                    if shared.0.take().is_some() {
                        shared.1.unpark();
                    }
                }
            });
            // Without a time-out: a sleep that no thread ends is a deadlock in this model.
            if shared.0.announce(0, || shared.2.load(Relaxed)) {
                shared.1.park();
            }
            shared.0.withdraw(0);
            producer.join().unwrap();
        });
    }

    #[test]
    fn a_core_is_stuck_if_it_has_tasks_and_polls_none_for_a_while() {
        let mut suspect = Suspect::default();
        assert_eq!(suspect.or(3), 3);
        assert_eq!(suspect.learn(3, Some(10), 1_000), None, "it is seen for the first time");
        assert_eq!(suspect.or(4), 3);
        assert_eq!(suspect.learn(3, Some(10), 1_000 + STUCK_NS - 1), None);
        assert_eq!(suspect.learn(3, Some(10), 1_000 + STUCK_NS), Some(STUCK_NS));
        assert_eq!(suspect.learn(3, Some(10), 1_000 + 2 * STUCK_NS), Some(2 * STUCK_NS));
        assert_eq!(suspect.learn(3, Some(11), 1_000 + 3 * STUCK_NS), None, "it has polled a task");
        assert_eq!(suspect.or(4), 4, "another core is checked next");
        assert_eq!(suspect.learn(4, Some(11), 1_000 + 4 * STUCK_NS), None, "it is another core");
        assert_eq!(suspect.learn(4, None, 1_000 + 5 * STUCK_NS), None, "it has no tasks");
        assert_eq!(suspect.or(5), 5);
    }

    #[test]
    fn a_busy_core_checks_others_only_now_and_then() {
        let mut suspect = Suspect::default();
        assert!(!suspect.is_due(STUCK_NS - 1) && suspect.is_due(STUCK_NS));
        assert!(!suspect.is_due(2 * STUCK_NS - 1) && suspect.is_due(2 * STUCK_NS));
    }
}
