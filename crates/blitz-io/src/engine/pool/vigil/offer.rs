//! Cores and tasks that were given to threads which do not come for them.
//!
//! A thread that is started runs the user's hook for that first (`on_thread_start`), which may
//! take long, or never end; and a system that has much to do lets it begin late. A core that
//! waits for it is offered to another thread after a while, and then to one more, each time
//! after twice the time; beyond a few, only to threads that are there and have nothing to do:
//! they have the hook behind them. Whoever comes first has the core, and the others find
//! nothing and are threads of the crew. A task goes back to its queue, where a worker finds it.
//!
//! # Invariants
//! - *One owner*: the lock of the `Handoff`, or of the `Lent`, decides who has what is in it.
//! - *Bounds*: at most [`THREADS`] threads are started for a core, each time it is taken; for
//!   tasks no more than may be lent, since who hangs with one counts as having it.
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

/// Threads that are started for a core. Picked: with the fourth, tens of slices have gone by.
const THREADS: u32 = 4;

/// How soon a thread is expected, at the least: a busy system takes milliseconds to start one.
const SOON: Duration = Duration::from_millis(10);

/// A core that no thread has come for, as far as is known.
pub(super) struct Offer {
    handoff: Arc<Handoff>,
    /// When the last thread was asked to.
    since: Instant,
    /// How many were.
    threads: u32,
}

impl Offer {
    pub(super) fn new(handoff: Arc<Handoff>, now: Instant) -> Self {
        Self { handoff, since: now, threads: 0 }
    }

    /// Asks one more thread; `false` if there is none.
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

    /// Whether it is time to ask another one.
    fn is_due(&self, now: Instant, slice: Duration) -> bool {
        let Some(doublings) = self.threads.checked_sub(1) else { return true };
        let patience = slice.max(SOON) * 2_u32.pow(doublings.min(THREADS));
        now.saturating_duration_since(self.since) >= patience
    }
}

impl Pool {
    /// Offers a core that was taken to a thread; `false` if there is none, for now.
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

    /// Looks for threads for cores that nobody has come for, and for tasks that are lent.
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

    /// Tasks that are lent to threads which do not come go back to their queues.
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
    /// Whether a core or a task waits for a thread.
    pub(super) fn has_offers(&self) -> bool {
        let now = Instant::now();
        !lock(&self.offers).is_empty()
            || lock(&self.lents)
                .iter()
                .filter_map(std::sync::Weak::upgrade)
                .any(|lent| lent.waits_since(now).is_some())
    }

    fn tell_of_hook(&self) {
        // Relaxed: a mark that orders nothing.
        if !self.told_of_hook.swap(true, Relaxed) {
            tell_of_hook();
        }
    }
}
