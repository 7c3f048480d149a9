//! Sockets whose next call was postponed, because it would likely find nothing (`habit`):
//! they are made ready again in time, if no event does it.
//!
//! # Protocol
//! The task that wants to read clears what is known of the socket, marks it POSTPONED in
//! the same exchange (`readiness`), registers, and puts the token into the list of its
//! worker. An event takes the mark away with its bits. Otherwise the worker *takes it back*:
//! it sets the bit again, as an event would, and wakes the task, which makes the call.
//!
//! A worker does that before it sleeps, after it has asked the kernel for events once more;
//! and while it is busy once in each round, that is, when all that was in its queue has had
//! its turn, with those that were there a round ago already. So a call is never postponed
//! for longer than two rounds, which is what two yields may take, and nothing is postponed
//! while everybody sleeps.
//!
//! # Invariants
//! - Only a worker of this driver's pool postpones: it looks and sleeps as told above.
//! - What is marked POSTPONED is in a list. (What is in a list need not be marked.)
//!
//! # Checked by
//! `an_event_against_a_postponement_is_not_lost`,
//! `a_postponement_taken_back_against_an_event_wakes`; the habit's own tests; from outside
//! `tcp_requests_that_come_together_are_all_answered` and its neighbours, which hang if
//! nothing is taken back.

use super::sources::Token;
use crate::engine::prim::{bolt::Bolted, pad::CachePadded};

/// Lists; workers with the same number in this share one.
const LISTS: usize = 16;

/// See the module.
pub(super) struct Postponed {
    lists: [CachePadded<Bolted<List>>; LISTS],
}

#[derive(Default)]
struct List {
    /// Since the last round.
    fresh: Vec<Token>,
    old: Vec<Token>,
}

/// Which ones are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that were there a round ago.
    Old,
    All,
}

impl Postponed {
    pub(super) fn new() -> Self {
        Self { lists: std::array::from_fn(|_| CachePadded::new(Bolted::new(List::default()))) }
    }

    pub(super) fn put(&self, worker: usize, token: Token) {
        self.lists[worker % LISTS].lock().fresh.push(token);
    }

    pub(super) fn is_empty(&self, worker: usize) -> bool {
        let list = self.lists[worker % LISTS].lock();
        list.fresh.is_empty() && list.old.is_empty()
    }

    /// Takes a worker's list. It is to be given back to [`recycle`](Self::recycle).
    pub(super) fn take(&self, worker: usize, which: Which) -> Vec<Token> {
        let mut list = self.lists[worker % LISTS].lock();
        let List { fresh, old } = &mut *list;
        let mut taken = std::mem::take(old);
        match which {
            Which::Old => std::mem::swap(fresh, old),
            Which::All => taken.append(fresh),
        }
        taken
    }

    /// Memory to be used again.
    pub(super) fn recycle(&self, worker: usize, mut taken: Vec<Token>) {
        taken.clear();
        let mut list = self.lists[worker % LISTS].lock();
        if list.fresh.capacity() == 0 {
            list.fresh = taken;
            return;
        }
        let unused =
            if list.old.capacity() == 0 { std::mem::replace(&mut list.old, taken) } else { taken };
        drop(list);
        drop(unused);
    }
}

impl std::fmt::Debug for Postponed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postponed").finish_non_exhaustive()
    }
}
