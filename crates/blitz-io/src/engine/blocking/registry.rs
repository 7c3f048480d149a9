//! Thread registry of the blocking pool: assigned slots, and handles of threads to be joined.
//!
//! It has one lock, which is taken when a thread starts or ends and at shutdown, and never to spawn
//! or run a job. The handle of a thread that has ended waits here for the next thread that ends,
//! which joins it: so few are unjoined while the runtime lives, and shutdown joins those too. No
//! other thread joins them, because the destructors of a thread's thread-locals are user code,
//! which a spawner must not wait for.
//!
//! A thread may end before the thread that started it has put its handle here. Then the handle
//! waits to be joined with the others.

use std::collections::BTreeMap;

use crate::engine::{
    prim::{Mutex, lock},
    threads::ThreadHandle,
};

/// Registry of the threads of a blocking pool, and of the slots that they have.
pub(crate) struct ThreadRegistry {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One flag per slot, set if the slot is taken.
    taken: Vec<bool>,
    entries: BTreeMap<u64, ThreadEntry>,
    next: u64,
    /// Threads that have ended and are not joined.
    ended: Vec<ThreadHandle>,
}

enum ThreadEntry {
    /// The thread was requested from the system.
    Requested,
    Running(ThreadHandle),
    /// The thread ended before its handle was registered.
    EndedEarly,
}

/// Key of a thread in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl ThreadRegistry {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()) }
    }

    /// Registers a thread that is about to be requested from the system.
    pub(crate) fn register(&self) -> Key {
        let mut state = lock(&self.state);
        let key = state.next;
        state.next += 1;
        state.entries.insert(key, ThreadEntry::Requested);
        Key(key)
    }

    /// Removes a thread that the system refused.
    pub(crate) fn unregister(&self, key: Key) {
        lock(&self.state).entries.remove(&key.0);
    }

    /// Stores the handle of a thread that was started.
    pub(crate) fn store_handle(&self, key: Key, thread: ThreadHandle) {
        let mut state = lock(&self.state);
        if let Some(ThreadEntry::EndedEarly) = state.entries.get(&key.0) {
            state.entries.remove(&key.0);
            state.ended.push(thread);
            return;
        }
        state.entries.insert(key.0, ThreadEntry::Running(thread));
    }

    /// Marks the calling thread as ended; returns the threads that it must join.
    #[must_use]
    pub(crate) fn mark_ended(&self, key: Key) -> Vec<ThreadHandle> {
        let mut state = lock(&self.state);
        match state.entries.remove(&key.0) {
            Some(ThreadEntry::Running(thread)) => std::mem::replace(&mut state.ended, vec![thread]),
            Some(ThreadEntry::Requested) => {
                state.entries.insert(key.0, ThreadEntry::EndedEarly);
                Vec::new()
            }
            // Shutdown has taken the handle.
            Some(ThreadEntry::EndedEarly) | None => Vec::new(),
        }
    }

    /// Returns the handles of all threads, running or ended, at the end of the pool.
    pub(crate) fn take_all(&self) -> Vec<ThreadHandle> {
        let mut state = lock(&self.state);
        let entries = std::mem::take(&mut state.entries).into_values();
        let running = entries.filter_map(|entry| match entry {
            ThreadEntry::Running(thread) => Some(thread),
            ThreadEntry::Requested | ThreadEntry::EndedEarly => None,
        });
        let mut threads: Vec<_> = running.collect();
        threads.append(&mut state.ended);
        threads
    }

    /// Takes the lowest free slot of `count`; returns `None` if all are taken.
    pub(crate) fn take_slot(&self, count: usize) -> Option<usize> {
        let taken = &mut lock(&self.state).taken;
        let slot = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        if slot >= count {
            return None;
        }
        if slot == taken.len() {
            taken.push(false);
        }
        taken[slot] = true;
        Some(slot)
    }

    pub(crate) fn return_slot(&self, slot: usize) {
        lock(&self.state).taken[slot] = false;
    }
}
