//! Counts what is made and what is dropped: nothing twice, nothing never.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::ThreadId,
};

/// The account of a kind of token. The counters are relaxed: whoever compares
/// them has joined, by a handle or a thread, those who count.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Account>);

#[derive(Default)]
struct Account {
    made: AtomicUsize,
    dropped: AtomicUsize,
    dropped_on: Mutex<Vec<ThreadId>>,
}

/// Something that is dropped exactly once, or its tally tells.
pub(crate) struct Token {
    tally: Tally,
    /// Told apart from memory that was dropped before.
    alive: u64,
}

/// Any number that memory does not hold by chance.
const ALIVE: u64 = 0xA11E_0F17_5EEC_0DED;

impl Tally {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn token(&self) -> Token {
        self.0.made.fetch_add(1, Relaxed);
        Token { tally: self.clone(), alive: ALIVE }
    }

    pub(crate) fn made(&self) -> usize {
        self.0.made.load(Relaxed)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.0.dropped.load(Relaxed)
    }

    /// The threads on which tokens were dropped, in that order.
    pub(crate) fn dropped_on(&self) -> Vec<ThreadId> {
        self.0.dropped_on.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All that were made, `expected` of them, were dropped once.
    #[track_caller]
    pub(crate) fn assert_all_dropped(&self, expected: usize) {
        assert_eq!((self.made(), self.dropped()), (expected, expected), "(made, dropped)");
    }
}

impl Token {
    /// A token that lives here: closures capture it whole.
    pub(crate) fn keep(&self) {
        assert_eq!(self.alive, ALIVE, "a token is used after its drop");
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.alive, 0) != ALIVE {
            eprintln!("a token is dropped twice");
            std::process::abort();
        }
        let account = &self.tally.0;
        let mut threads = account.dropped_on.lock().unwrap_or_else(PoisonError::into_inner);
        // The first few are enough to look at; a storm makes a million.
        if threads.len() < 1024 {
            threads.push(std::thread::current().id());
        }
        drop(threads);
        account.dropped.fetch_add(1, Relaxed);
    }
}
