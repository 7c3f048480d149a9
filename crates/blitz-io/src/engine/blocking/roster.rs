//! Who is of the crew: beds given out, threads to be joined.
//!
//! One lock, which is taken when a thread comes or goes and at shutdown, and never
//! to spawn or run a job. A thread that has ended waits here for the next one that
//! ends, which joins it: at most one is not joined while the runtime lives, and
//! shutdown joins that one too.
//!
//! A thread may be over before the one that started it has put its handle here: then
//! the handle is what waits to be joined, at once.

use std::collections::BTreeMap;

use crate::engine::{
    prim::{
        Mutex, lock,
        thread::{self, ThreadId},
    },
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
    over: Option<Started>,
    /// The threads that serve, by what they said of themselves: a job may run before
    /// the handle of its thread is here.
    present: Vec<ThreadId>,
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

    /// It was started; answers with a thread that the caller must join.
    #[must_use]
    pub(crate) fn enrol(&self, key: Key, thread: Started) -> Option<Started> {
        let mut state = lock(&self.state);
        if let Some(Member::OverEarly) = state.members.get(&key.0) {
            state.members.remove(&key.0);
            return state.over.replace(thread);
        }
        state.members.insert(key.0, Member::Here(thread));
        None
    }

    /// The calling thread is over; answers with one that it must join.
    #[must_use]
    pub(crate) fn retire(&self, key: Key) -> Option<Started> {
        let mut state = lock(&self.state);
        match state.members.remove(&key.0) {
            Some(Member::Here(thread)) => state.over.replace(thread),
            Some(Member::Coming) => {
                state.members.insert(key.0, Member::OverEarly);
                None
            }
            // Shutdown has its handle.
            Some(Member::OverEarly) | None => None,
        }
    }

    /// All that are there, and the one that is over: at the end of a crew.
    pub(crate) fn take_all(&self) -> Vec<Started> {
        let mut state = lock(&self.state);
        let members = std::mem::take(&mut state.members).into_values();
        let here = members.filter_map(|member| match member {
            Member::Here(thread) => Some(thread),
            Member::Coming | Member::OverEarly => None,
        });
        let mut threads: Vec<_> = here.collect();
        threads.extend(state.over.take());
        threads
    }

    /// The calling thread serves from now on.
    pub(crate) fn arrive(&self) {
        lock(&self.state).present.push(thread::current().id());
    }

    /// It does no longer.
    pub(crate) fn depart(&self) {
        let this = thread::current().id();
        lock(&self.state).present.retain(|present| *present != this);
    }

    /// Whether the calling thread serves.
    pub(crate) fn is_present(&self) -> bool {
        lock(&self.state).present.contains(&thread::current().id())
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
