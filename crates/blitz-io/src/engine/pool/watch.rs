//! Whether a core keeps up with its queue; and the nap of a searcher that found
//! nothing but such cores.
//!
//! A task that changes cores takes its memory with it, line by line, and so does all
//! that it shares with those it left behind. For tasks of some hundred nanoseconds that
//! is several times their work: four senders and a receiver on two cores take three
//! times as long as on one, and six times the processor time. So a searcher looks
//! before it steals. A queue that is very long, or that does not move, or that stays long
//! is worth it. A queue that its owner empties within the time in which a sleeping worker
//! could have been woken is left alone.
//!
//! The searcher then does not sleep, for there is work, but takes a *nap*: it sleeps for
//! a short time, counts as searching meanwhile, and looks again. So nobody pays for
//! waking it, and should a core get stuck in a poll with others in its queue, somebody
//! comes. There is never more than one such sleeper where one would do: a searcher that
//! sees another one sleeps as if there were no work (see `idle`: the other one leaves
//! later, and looks).
//!
//! # Protocol
//! ```text
//! the searcher                            who puts work into the intake
//! N1 writes its name into `napper`        I1 puts the work in
//! N2 fence(SeqCst)                        I2 fence(SeqCst) (P2 of `idle`)
//! N3 looks into the intake; if something  I3 somebody searches: looks into `napper`,
//!    is there, it does not nap               and unparks whom it finds
//! N4 parks, with a time-out
//! ```
//! One fence comes first, so N3 sees the work or I3 the name: what comes from outside
//! does not wait for the end of a nap. What a core has in its ring may: that core comes
//! to it by itself. It ends the nap as soon as its ring is long, as advice.
//!
//! # Rejected
//! Waking nobody for short tasks, by the average duration of a poll: a long one among
//! them would have shut in all that stands behind it. The other one's steps are what
//! counts, and the searcher sees them for the price of a few cache misses.
//!
//! # Checked by
//! `work_from_outside_does_not_wait_for_a_nap`; weakened as `nap_looks_again`,
//! `nap_fence`.

use std::time::Duration;

use super::{Pool, core::Remote};
use crate::engine::prim::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence, spin_loop, weakened,
};

/// So many entries are worth stealing if they are still as many when those that were
/// there first have gone: even at 50 ns each, which is the least that a poll takes, they
/// are more than a microsecond's work, and it does not end.
const MANY: u32 = 32;

/// So many entries are worth stealing at once, and end a nap: half of a ring. A napper is
/// as dear to wake as a sleeper. (Were it less, the start of a batch would look like a
/// steady load: tasks that share ten permits would be spread over the cores before the
/// first of them waits, and stay there.)
pub(crate) const LONG: u32 = 128;

/// Pauses between two looks. Each look takes a line away from its owner, who needs it
/// back for its next step.
const PAUSES: u32 = 4;

/// Looks without a step after which the owner is held to be in a long poll. Here a look
/// with its pauses takes 0.2 µs, so these are 6 µs: an interrupt of the owner's processor
/// is no long poll.
const UNMOVED: u32 = 30;

/// Looks until what was seen at the first one must be gone: 20 µs, half of what it takes
/// here to call a sleeping worker to another core.
const LOOKS: u32 = 100;

/// How long a nap is; the system adds its slack of 50 µs. A task that is shut in behind a
/// long poll waits so long at the most, and a napper costs its processor some percent.
const NAP: Duration = Duration::from_micros(100);

/// Whether the owner of this queue is about to empty it by itself.
///
/// `false` also for an empty queue: there is nothing to keep up with.
pub(crate) fn keeps_up(remote: &Remote) -> bool {
    let mut first = remote.thief.span();
    if first.is_empty() || first.len() >= LONG {
        return false;
    }
    let mut last = first;
    let mut unmoved = 0;
    // In a model there is no time to keep up in.
    let mut looks = if cfg!(blitz_loom) { 0 } else { LOOKS };
    while looks > 0 {
        looks -= 1;
        for _ in 0..PAUSES {
            spin_loop();
        }
        let now = remote.thief.span();
        if now.has_passed(&first) {
            if now.len() < MANY || first.len() >= MANY {
                return now.len() < MANY;
            }
            // It has grown meanwhile, as at the start of a batch: these, too, may be gone
            // before long.
            (first, looks) = (now, LOOKS);
        }
        unmoved = if now.has_moved_since(&last) { 0 } else { unmoved + 1 };
        if unmoved == UNMOVED {
            return false;
        }
        last = now;
    }
    false
}

/// Who naps. See the module.
#[derive(Debug)]
pub(crate) struct Napper(AtomicUsize);

impl Napper {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// N1 to N3; `false` if there is something to do.
    fn announce(&self, worker: usize, has_work: impl FnOnce() -> bool) -> bool {
        // Relaxed: the fence orders it. A name that is overwritten ends its nap when
        // its time is over.
        self.0.store(worker + 1, Relaxed);
        if !weakened!("nap_fence") {
            // SeqCst: N2. Pairs with P2 in `idle`.
            fence(SeqCst);
        }
        weakened!("nap_looks_again") || !has_work()
    }

    fn withdraw(&self, worker: usize) {
        // Relaxed: a hint for others; one who unparks us for nothing does no harm.
        let _ = self.0.compare_exchange(worker + 1, 0, Relaxed, Relaxed);
    }

    /// I3: who is to be unparked.
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

/// N1 to N4. This thread holds core `index`, and counts as searching.
pub(crate) fn nap(pool: &Pool, index: usize) {
    let is_wanted = || !pool.intake.is_empty() || pool.is_stopping();
    if pool.napper.announce(index, is_wanted) {
        pool.remotes[index].parker.park_timeout(NAP);
    }
    pool.napper.withdraw(index);
}

#[cfg(test)]
mod tests {
    use super::Napper;
    use crate::engine::prim::{
        Arc, AtomicBool,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread,
    };

    #[test]
    fn work_from_outside_does_not_wait_for_a_nap() {
        model(|| {
            let shared = Arc::new((Napper::new(), Parker::new(), AtomicBool::new(false)));
            let producer = thread::spawn({
                let shared = shared.clone();
                move || {
                    // Relaxed: the fences order it, as they do the intake's length.
                    shared.2.store(true, Relaxed);
                    // SeqCst: P2.
                    fence(SeqCst);
                    if shared.0.take().is_some() {
                        shared.1.unpark();
                    }
                }
            });
            // Without a time-out: a nap that nobody ends is a deadlock here.
            if shared.0.announce(0, || shared.2.load(Relaxed)) {
                shared.1.park();
            }
            shared.0.withdraw(0);
            producer.join().unwrap();
        });
    }
}
