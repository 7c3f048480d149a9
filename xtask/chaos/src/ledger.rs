//! Counts what exists: each future, closure, value and message has a [`Token`], and each token must
//! be dropped exactly once.
//!
//! A slot of the ledger counts the drops and the runs of one token. It is never reused within a
//! round, so a value that is dropped twice, or a job that runs twice, is noticed even if another
//! one is lost at the same time. The slots are atomics without a lock, so that counting does not
//! order the threads that are counted.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed},
    },
};

/// More tokens than a round makes: the largest plans make some ten thousand.
const SLOTS: usize = 1 << 18;

macro_rules! kinds {
    ($($variant:ident $name:literal,)*) => {
        /// The kind of thing that a token stands for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind { $($variant,)* }
        const NAMES: &[&str] = &[$($name,)*];
    };
}

kinds! {
    Task "future of a task",
    Steps "future of some steps",
    Output "output of a task",
    Job "blocking job",
    Leaf "leaf of fork-join",
    Message "message",
    Burden "value with a destructor",
    Waker "waker",
}

#[derive(Default)]
struct Slot {
    kind: AtomicU8,
    drops: AtomicU8,
    runs: AtomicU8,
}

/// The tokens of one round.
pub(crate) struct Ledger {
    slots: Box<[Slot]>,
    used: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Arc::new(Self { slots, used: AtomicUsize::new(0) })
    }

    /// Creates a token.
    pub(crate) fn token(self: &Arc<Self>, kind: Kind) -> Token {
        // Relaxed throughout: counts, which are read after all threads have ended, or repeatedly
        // until they have the expected values.
        let at = self.used.fetch_add(1, Relaxed);
        assert!(at < SLOTS, "the plan makes more tokens than the ledger has slots");
        self.slots[at].kind.store(kind as u8, Relaxed);
        Token { ledger: self.clone(), at }
    }

    /// Returns how many tokens there were.
    pub(crate) fn count(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Returns how many tokens of each kind were not dropped yet.
    pub(crate) fn left(&self) -> BTreeMap<&'static str, usize> {
        self.kinds_with(|slot| slot.drops.load(Relaxed) == 0)
    }

    /// Returns how many tokens of each kind were dropped or run more than once.
    pub(crate) fn doubled(&self) -> BTreeMap<&'static str, usize> {
        self.kinds_with(|slot| slot.drops.load(Relaxed) > 1 || slot.runs.load(Relaxed) > 1)
    }

    fn kinds_with(&self, chosen: impl Fn(&Slot) -> bool) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for slot in self.slots[..self.count()].iter().filter(|slot| chosen(slot)) {
            *kinds.entry(NAMES[usize::from(slot.kind.load(Relaxed))]).or_default() += 1;
        }
        kinds
    }

    fn dropped(&self, at: usize) {
        self.slots[at].drops.fetch_add(1, Relaxed);
    }
}

/// A value that must be dropped exactly once and run at most once.
pub(crate) struct Token {
    ledger: Arc<Ledger>,
    at: usize,
}

impl Token {
    /// Counts a run of what the token stands for.
    pub(crate) fn ran(&self) {
        self.ledger.slots[self.at].runs.fetch_add(1, Relaxed);
    }

    /// Counts a drop that does not happen, as a defect would.
    pub(crate) fn plant_drop(&self) {
        self.ledger.dropped(self.at);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.dropped(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Ledger};

    #[test]
    fn tokens_that_are_left_and_doubled_are_counted() {
        let ledger = Ledger::new();
        let (good, lost, twice) =
            (ledger.token(Kind::Task), ledger.token(Kind::Job), ledger.token(Kind::Message));
        good.ran();
        drop(good);
        assert_eq!(ledger.left().len(), 2);
        std::mem::forget(lost);
        twice.plant_drop();
        drop(twice);
        assert_eq!(ledger.left().into_iter().collect::<Vec<_>>(), [("blocking job", 1)]);
        assert_eq!(ledger.doubled().into_iter().collect::<Vec<_>>(), [("message", 1)]);
        let again = ledger.token(Kind::Job);
        again.ran();
        again.ran();
        drop(again);
        assert_eq!(ledger.doubled().len(), 2);
    }
}
