//! Who is waited for, and who can be ended: the members of a shutdown.
//!
//! A member has a *place* from before it is spawned until its future was dropped. Places are
//! under one lock, with the word that says whether there are more to come; the end of the
//! last is told by a tracker, which is closed from the beginning.
//!
//! # Protocol
//! ```text
//! who spawns                               who drains
//! S1 locks: is refused if it is closed,    D1 waits until the tracker is over
//!    else takes a place and enters the     D2 locks: closes it if no place is taken,
//!    tracker                                  else goes back to D1
//! S2 spawns the task                       or, when the time is over,
//! S3 locks: leaves the handle in the       D3 locks: closes it, takes all handles
//!    place, if that is still taken; if     D4 aborts them
//!    it is closed by now: aborts the
//!    task itself
//!                         a member that ends
//!                         E1 locks: gives up its place
//!                         E2 leaves the tracker
//! ```
//! Nobody is lost. S1 comes before the lock that closes, or after. If after, it is refused. If
//! before D2, its place is taken, and D2 goes back to wait for it. If before D3, its handle is
//! there and D4 aborts it, or it is not there yet: then S3 comes after D3 and aborts.
//!
//! D1 does not spin: a place that is taken has entered the tracker under the same lock, and
//! leaves it only after it was given up.
//!
//! Who spawns is in the tracker too until S3 is done, so that when it is over every handle has
//! been where it should.
//!
//! # Invariants
//! - Handles, and what is known of members, are dropped outside of the lock: with a handle may
//!   go the last reference to a task.
//!
//! # Rejected
//! - The tracker alone: it says that all have ended, and neither who has not nor how to end it.
//! - A place made when the task is there already: a task that ends at once would give up a
//!   place that is not taken yet, and leave a mark for whoever comes to take it.
//! - Several locks, for many who spawn at once: a lock for a moment is little beside a
//!   connection, and one that is closed must be closed for all.
//!
//! # Checked by
//! `a_spawn_against_a_shutdown_is_refused_or_told_and_waited_for`,
//! `a_spawn_against_the_deadline_is_refused_or_aborted_once`,
//! `a_member_that_ends_at_once_leaves_nothing`; weakened as `shutdown_close_looks`,
//! `shutdown_enter_looks`, `shutdown_arm_looks`.

use std::{
    collections::BTreeMap,
    mem,
    task::{Context, Poll},
};

use crate::engine::{
    prim::{Mutex, lock, weakened},
    work::task::tracker::{Tracker, Wait},
};

/// See the module. A handle ends a task; `A` is what is known of it.
pub(super) struct Members<H, A> {
    tracker: Tracker,
    state: Mutex<State<H, A>>,
}

struct State<H, A> {
    closed: bool,
    next: u64,
    places: BTreeMap<u64, Place<H, A>>,
    /// How many have ended by themselves since that is counted.
    finished: usize,
    /// Those who were ended.
    ended: Vec<Place<H, A>>,
}

/// A member.
#[derive(Debug, Clone)]
pub(super) struct Place<H, A> {
    /// From S3 on.
    pub(super) handle: Option<H>,
    pub(super) about: A,
}

/// Whose place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// How a member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was done.
    Done,
    /// It was dropped before: aborted, or it panicked.
    Dropped,
}

/// What S3 found.
#[must_use = "a task that nobody aborts goes on for ever"]
#[derive(Debug)]
pub(super) enum Armed<H> {
    /// It is a member like all others.
    Member,
    /// It has ended. The handle is of no use.
    Gone(H),
    /// It is too late: abort it.
    Late(H),
}

/// All that is known at the end.
pub(super) struct Outcome<H, A> {
    pub(super) finished: usize,
    /// Those who were ended.
    pub(super) ended: Vec<Place<H, A>>,
    /// Those who have not ended, though they were told to.
    pub(super) stuck: Vec<Place<H, A>>,
}

impl<H: Clone, A: Clone> Members<H, A> {
    pub(super) fn new() -> Self {
        let tracker = Tracker::new();
        tracker.close();
        let state = State {
            closed: false,
            next: 0,
            places: BTreeMap::new(),
            finished: 0,
            ended: Vec::new(),
        };
        Self { tracker, state: Mutex::new(state) }
    }

    /// S1: a place for one that is about to be spawned, or `about` back.
    pub(super) fn enter(&self, about: A) -> Result<Key, A> {
        let mut state = lock(&self.state);
        if state.closed && !weakened!("shutdown_enter_looks") {
            return Err(about);
        }
        let key = state.next;
        state.next += 1;
        state.places.insert(key, Place { handle: None, about });
        // For the member, and for who spawns it.
        self.tracker.enter();
        self.tracker.enter();
        Ok(Key(key))
    }

    /// S3. Call [`Self::spawned`] when what it says is done.
    pub(super) fn arm(&self, key: Key, handle: H) -> Armed<H> {
        let mut state = lock(&self.state);
        let closed = state.closed && !weakened!("shutdown_arm_looks");
        let Some(place) = state.places.get_mut(&key.0) else { return Armed::Gone(handle) };
        place.handle = Some(handle.clone());
        if closed { Armed::Late(handle) } else { Armed::Member }
    }

    /// Who spawned has done its part, or failed to.
    pub(super) fn spawned(&self) {
        self.tracker.leave();
    }

    /// E1: the member has ended. Call [`Self::left`] when that has been told to others.
    pub(super) fn leave(&self, key: Key, end: End, counted: bool) {
        let mut state = lock(&self.state);
        let place = state.places.remove(&key.0);
        let place = match (place, end) {
            (Some(place), End::Dropped) if state.closed => {
                state.ended.push(place);
                None
            }
            (place, _) => {
                state.finished += usize::from(counted);
                place
            }
        };
        drop(state);
        drop(place);
    }

    /// E2.
    pub(super) fn left(&self) {
        self.tracker.leave();
    }

    /// How many have a place.
    pub(super) fn len(&self) -> usize {
        lock(&self.state).places.len()
    }

    /// Whether nobody is let in any more.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Begins D1.
    pub(super) fn wait(&self) -> Wait {
        self.tracker.wait()
    }

    /// D1.
    pub(super) fn poll_wait(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<()> {
        self.tracker.poll_wait(wait, cx)
    }

    /// The end of D1, whether it is over or not.
    pub(super) fn end_wait(&self, wait: &mut Wait) {
        self.tracker.end_wait(wait);
    }

    /// D2: `false` if somebody came meanwhile.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut state = lock(&self.state);
        if state.places.is_empty() || weakened!("shutdown_close_looks") {
            state.closed = true;
        }
        state.closed
    }

    /// D3: everybody who is to be aborted, with what is known of them.
    #[must_use = "D4: abort them"]
    pub(super) fn close(&self) -> Vec<(Key, Place<H, A>)> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.places.iter().map(|(key, place)| (Key(*key), place.clone())).collect()
    }

    /// Keeps what was found out about members that are about to be aborted. Those that have
    /// ended meanwhile need it no more.
    pub(super) fn note(&self, about: Vec<(Key, A)>) {
        let mut state = lock(&self.state);
        let mut old = Vec::with_capacity(about.len());
        for (key, about) in about {
            match state.places.get_mut(&key.0) {
                Some(place) => old.push(mem::replace(&mut place.about, about)),
                None => old.push(about),
            }
        }
        drop(state);
        drop(old);
    }

    pub(super) fn outcome(&self) -> Outcome<H, A> {
        let state = lock(&self.state);
        Outcome {
            finished: state.finished,
            ended: state.ended.clone(),
            stuck: state.places.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod models;
