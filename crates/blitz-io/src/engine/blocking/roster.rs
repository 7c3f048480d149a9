//! Thread registry of the blocking pool: assigned beds, and handles of threads to be joined.
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

/// Registry of the threads of a blocking pool, and of the beds that they have.
pub(crate) struct Roster {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One flag per bed, set if the bed is taken.
    taken: Vec<bool>,
    members: BTreeMap<u64, Member>,
    next: u64,
    /// Threads that have ended and are not joined.
    over: Vec<ThreadHandle>,
}

enum Member {
    /// The thread was requested from the system.
    Coming,
    Here(ThreadHandle),
    /// The thread ended before its handle was registered.
    OverEarly,
}

/// Key of a thread in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Roster {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()) }
    }

    /// Registers a thread that is about to be requested from the system.
    pub(crate) fn expect(&self) -> Key {
        let mut state = lock(&self.state);
        let key = state.next;
        state.next += 1;
        state.members.insert(key, Member::Coming);
        Key(key)
    }

    /// Removes a thread that the system refused.
    pub(crate) fn forget(&self, key: Key) {
        lock(&self.state).members.remove(&key.0);
    }

    /// Stores the handle of a thread that was started.
    pub(crate) fn enrol(&self, key: Key, thread: ThreadHandle) {
        let mut state = lock(&self.state);
        if let Some(Member::OverEarly) = state.members.get(&key.0) {
            state.members.remove(&key.0);
            state.over.push(thread);
            return;
        }
        state.members.insert(key.0, Member::Here(thread));
    }

    /// Marks the calling thread as ended; returns the threads that it must join.
    #[must_use]
    pub(crate) fn retire(&self, key: Key) -> Vec<ThreadHandle> {
        let mut state = lock(&self.state);
        match state.members.remove(&key.0) {
            Some(Member::Here(thread)) => std::mem::replace(&mut state.over, vec![thread]),
            Some(Member::Coming) => {
                state.members.insert(key.0, Member::OverEarly);
                Vec::new()
            }
            // Shutdown has taken the handle.
            Some(Member::OverEarly) | None => Vec::new(),
        }
    }

    /// Returns the handles of all threads, running or ended, at the end of the pool.
    pub(crate) fn take_all(&self) -> Vec<ThreadHandle> {
        let mut state = lock(&self.state);
        let members = std::mem::take(&mut state.members).into_values();
        let here = members.filter_map(|member| match member {
            Member::Here(thread) => Some(thread),
            Member::Coming | Member::OverEarly => None,
        });
        let mut threads: Vec<_> = here.collect();
        threads.append(&mut state.over);
        threads
    }

    /// Takes the lowest free bed of `count`; returns `None` if all are taken.
    pub(crate) fn take_bed(&self, count: usize) -> Option<usize> {
        let taken = &mut lock(&self.state).taken;
        let bed = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        if bed >= count {
            return None;
        }
        if bed == taken.len() {
            taken.push(false);
        }
        taken[bed] = true;
        Some(bed)
    }

    pub(crate) fn give_bed_back(&self, bed: usize) {
        lock(&self.state).taken[bed] = false;
    }
}
