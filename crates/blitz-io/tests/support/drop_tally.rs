//! Counts what is created and what is dropped, so that nothing is dropped twice or never.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::ThreadId,
};

/// The account of a kind of token. The counters are relaxed, because the thread that compares them
/// has joined, by a handle or a thread, all threads that count.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Account>);

#[derive(Default)]
struct Account {
    made: AtomicUsize,
    dropped: AtomicUsize,
    dropped_on: Mutex<Vec<ThreadId>>,
}

/// A value that must be dropped exactly once; its tally detects anything else.
pub(crate) struct Token {
    tally: Tally,
    /// A number that distinguishes a live token from memory that was dropped before.
    alive: u64,
}

/// An arbitrary number that memory does not contain by chance.
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

    /// Returns the threads on which tokens were dropped, in that order.
    pub(crate) fn dropped_on(&self) -> Vec<ThreadId> {
        self.0.dropped_on.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asserts that `expected` tokens were created, and that all were dropped once.
    #[track_caller]
    pub(crate) fn assert_all_dropped(&self, expected: usize) {
        assert_eq!((self.made(), self.dropped()), (expected, expected), "(made, dropped)");
    }
}

impl Token {
    /// Asserts that the token is alive. The call makes a closure capture the whole token.
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
        // The first few are enough to examine; a storm creates a million.
        if threads.len() < 1024 {
            threads.push(std::thread::current().id());
        }
        drop(threads);
        account.dropped.fetch_add(1, Relaxed);
    }
}
