//! Who is of the crew: beds given out, threads to be joined.
//!
//! One lock, which is taken when a thread comes or goes and at shutdown, and never
//! to spawn or run a job. A thread that has ended waits here for the next one that
//! ends, which joins it: few are not joined while the runtime lives, and shutdown
//! joins those too. Nobody else does: the destructors of a thread's thread-locals are
//! users' code, which a spawner must not wait for.
//!
//! A thread may be over before the one that started it has put its handle here: then
//! the handle waits to be joined with the others.

use std::collections::BTreeMap;

use crate::engine::{
    prim::{Mutex, lock},
    threads::Started,
};

/// See the module.
pub(crate) struct Roster {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One bit per bed that is taken.
    taken: Vec<bool>,
    members: BTreeMap<u64, Member>,
    next: u64,
    /// Over, and not joined.
    over: Vec<Started>,
}

enum Member {
    /// The system has been asked for it.
    Coming,
    Here(Started),
    /// It was over before its handle came.
    OverEarly,
}

/// A thread's name in the roster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Roster {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()) }
    }

    /// A thread is about to be asked for.
    pub(crate) fn expect(&self) -> Key {
        let mut state = lock(&self.state);
        let key = state.next;
        state.next += 1;
        state.members.insert(key, Member::Coming);
        Key(key)
    }

    /// It was refused.
    pub(crate) fn forget(&self, key: Key) {
        lock(&self.state).members.remove(&key.0);
    }

    /// It was started.
    pub(crate) fn enrol(&self, key: Key, thread: Started) {
        let mut state = lock(&self.state);
        if let Some(Member::OverEarly) = state.members.get(&key.0) {
            state.members.remove(&key.0);
            state.over.push(thread);
            return;
        }
        state.members.insert(key.0, Member::Here(thread));
    }

    /// The calling thread is over; answers with those that it must join.
    #[must_use]
    pub(crate) fn retire(&self, key: Key) -> Vec<Started> {
        let mut state = lock(&self.state);
        match state.members.remove(&key.0) {
            Some(Member::Here(thread)) => std::mem::replace(&mut state.over, vec![thread]),
            Some(Member::Coming) => {
                state.members.insert(key.0, Member::OverEarly);
                Vec::new()
            }
            // Shutdown has its handle.
            Some(Member::OverEarly) | None => Vec::new(),
        }
    }

    /// All that are there, and those that are over: at the end of a crew.
    pub(crate) fn take_all(&self) -> Vec<Started> {
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

    /// The lowest bed that is free, of `count`; `None` if none is.
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
