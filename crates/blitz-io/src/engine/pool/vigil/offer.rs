//! Repeats requests for threads that do not arrive to take over a core or a task.
//!
//! A new thread first runs the user's hook (`on_thread_start`), which may take long or never end;
//! and an overloaded system schedules the thread late. A core that waits for such a thread is
//! offered to another thread after a while, and then to one more, each time after twice the time.
//! After a few of them, only threads that are idle already are requested, because they have the
//! hook behind them. The first thread to arrive gets the core; the others find nothing and become
//! threads of the blocking pool. A task goes back to its queue, where a worker finds it.
//!
//! # Invariants
//! - *One owner*: the lock of the `Handoff`, or of the `Lent`, decides which thread gets its
//!   content.
//! - *Bounds*: at most [`THREADS`] threads are started for a core each time it is taken. For tasks,
//!   no more threads are started than tasks may be offloaded, because a thread that hangs with a
//!   task still counts as having it.
//!
//! # Checked by
//! tests/preempt: `a_thread_that_hangs_in_its_hook_keeps_no_core`,
//! `a_thread_that_hangs_in_its_hook_keeps_no_task`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Pool, Watched, count,
    stall::{Bound, tell_of_hook},
};
use crate::engine::{
    pool::handoff::{Errand, Handoff, Relief},
    prim::{Ordering::Relaxed, lock},
};

/// Maximum number of threads that are started for a core. Picked: with the fourth, tens of slices
/// have gone by.
const THREADS: u32 = 4;

/// Least time to wait for a requested thread, because a busy system takes milliseconds to start
/// one.
const SOON: Duration = Duration::from_millis(10);

/// A core that no thread has claimed, as far as is known.
pub(super) struct Offer {
    handoff: Arc<Handoff>,
    /// When a thread was last requested.
    since: Instant,
    /// Number of threads that were requested.
    threads: u32,
}

impl Offer {
    pub(super) fn new(handoff: Arc<Handoff>, now: Instant) -> Self {
        Self { handoff, since: now, threads: 0 }
    }

    /// Requests one more thread; returns `false` if there is none.
    fn ask(&mut self, relief: Arc<dyn Relief>, now: Instant) -> bool {
        let errand = Errand::Core(self.handoff.clone());
        let asked = if self.threads < THREADS {
            relief.stand_in(errand)
        } else {
            relief.stand_in_if_idle(errand)
        };
        if asked.is_ok() {
            (self.since, self.threads) = (now, self.threads.saturating_add(1));
        }
        asked.is_ok()
    }

    /// Returns true if it is time to request another thread.
    fn is_due(&self, now: Instant, slice: Duration) -> bool {
        let Some(doublings) = self.threads.checked_sub(1) else { return true };
        let patience = slice.max(SOON) * 2_u32.pow(doublings.min(THREADS));
        now.saturating_duration_since(self.since) >= patience
    }
}

impl Pool {
    /// Offers a core that was taken to a thread; returns `false` if there is none for now.
    pub(super) fn offer(&self, watched: &Watched, handoff: Arc<Handoff>, now: Instant) -> bool {
        let Some(relief) = self.relief() else { return false };
        let mut offer = Offer::new(handoff, now);
        let is_asked = offer.ask(relief.clone(), now);
        if is_asked {
            count(&watched.figures.handoffs);
        } else if self.is_stopping() || relief.is_ending() {
            return false;
        } else {
            watched.refuse(Bound::System);
        }
        lock(&watched.offers).push(offer);
        is_asked
    }

    /// Requests threads for unclaimed cores, and requeues offloaded tasks that no thread has taken.
    pub(super) fn retry(&self, watched: &Watched, now: Instant) {
        let mut offers = lock(&watched.offers);
        offers.retain(|offer| offer.handoff.is_full());
        let slice = watched.settings.slice;
        if !self.is_stopping()
            && let Some(relief) = self.relief()
        {
            for offer in offers.iter_mut().filter(|offer| offer.is_due(now, slice)) {
                let late = offer.threads > 0;
                if !offer.ask(relief.clone(), now) {
                    break;
                }
                if late {
                    watched.tell_of_hook();
                } else {
                    count(&watched.figures.handoffs);
                }
            }
        }
        drop(offers);
        if !self.is_stopping() {
            self.give_back_late(watched, now, slice.max(SOON));
        }
    }

    /// Puts offloaded tasks back into their queues if their threads have not arrived in time.
    fn give_back_late(&self, watched: &Watched, now: Instant, patience: Duration) {
        let late: Vec<_> = {
            let mut lents = lock(&watched.lents);
            lents.retain(|lent| lent.strong_count() > 0);
            let lents = lents.iter().filter_map(std::sync::Weak::upgrade);
            lents.filter(|lent| lent.waits_since(now) >= Some(patience)).collect()
        };
        for lent in late {
            if lent.give_back() {
                watched.tell_of_hook();
            }
        }
    }
}

impl Watched {
    /// Returns true if a core or a task waits for a thread.
    pub(super) fn has_offers(&self) -> bool {
        let now = Instant::now();
        !lock(&self.offers).is_empty()
            || lock(&self.lents)
                .iter()
                .filter_map(std::sync::Weak::upgrade)
                .any(|lent| lent.waits_since(now).is_some())
    }

    fn tell_of_hook(&self) {
        // Relaxed: a flag that orders nothing.
        if !self.told_of_hook.swap(true, Relaxed) {
            tell_of_hook();
        }
    }
}
