//! The members of a shutdown: the tasks that it waits for, and can abort.
//!
//! A member has an *entry* from before it is spawned until its future has been dropped. The entries
//! are protected by one lock, together with the flag `closed`, which says whether new members are
//! refused. A tracker, which is closed from the beginning, reports when the last member has ended.
//!
//! # Protocol
//! ```text
//! spawning thread                          draining task
//! S1 locks: is refused if it is closed,    D1 waits until the tracker is over
//!    else adds an entry and enters the     D2 locks: closes it if there is no entry,
//!    tracker                                  else goes back to D1
//! S2 spawns the task                       or, when the time is over,
//! S3 locks: stores the handle in the       D3 locks: closes it, takes all handles
//!    entry, if that still exists; if       D4 aborts them
//!    it is closed by now: aborts the
//!    task itself
//!                         a member that ends
//!                         E1 locks: removes its entry
//!                         E2 leaves the tracker
//! ```
//! No member is lost. S1 comes before the lock that closes, or after it. If after, the spawn is
//! refused. If before D2, the entry exists, and D2 goes back and waits for the member. If before
//! D3, either the handle is in the entry and D4 aborts the task, or it is not there yet: then S3
//! comes after D3 and aborts the task.
//!
//! D1 does not spin, because each entry was counted in the tracker under the same lock, and leaves
//! the tracker only after it was removed.
//!
//! The spawning thread is counted by the tracker, too, until S3 is done. So when the tracker
//! reports the end, every handle has been stored or used.
//!
//! # Invariants
//! - Handles, and what is known about members, are dropped outside of the lock, because a handle
//!   may be the last reference to a task.
//!
//! # Rejected
//! - The tracker alone: it reports that all members have ended, but neither which ones have not nor
//!   how to end them.
//! - Adding the entry after the task was spawned: a task that ends at once would remove an entry
//!   that does not exist yet, and would have to leave a mark for the thread that comes to add it.
//! - Several locks, for many concurrent spawns: a brief lock costs little compared to a
//!   connection, and closing must refuse all spawns at once.
//!
//! # Checked by
//! `a_spawn_against_a_shutdown_is_refused_or_cancelled_and_waited_for`,
//! `a_spawn_against_the_deadline_is_refused_or_aborted_once`,
//! `a_member_that_ends_at_once_leaves_nothing`; weakened as `shutdown_close_checks`,
//! `shutdown_enter_checks`, `shutdown_store_checks`.

use std::{
    collections::BTreeMap,
    mem,
    task::{Context, Poll},
};

use crate::engine::{
    prim::{Mutex, lock, weakened},
    work::task::tracker::{Tracker, TrackerWait},
};

/// The members of a shutdown. `H` is a handle that can abort a task, and `A` is what is known about
/// the task.
pub(super) struct Members<H, A> {
    tracker: Tracker,
    state: Mutex<State<H, A>>,
}

struct State<H, A> {
    closed: bool,
    next: u64,
    entries: BTreeMap<u64, MemberEntry<H, A>>,
    /// The number of members that have ended by themselves since the shutdown began.
    finished: usize,
    /// The members that were dropped before they were done, after the abort.
    ended: Vec<MemberEntry<H, A>>,
}

/// A member's entry.
#[derive(Debug, Clone)]
pub(super) struct MemberEntry<H, A> {
    /// The handle of the task, from S3 on.
    pub(super) handle: Option<H>,
    pub(super) info: A,
}

/// The key of a member's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

/// The way in which a member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The member was done.
    Done,
    /// The member was dropped before it was done: it was aborted, or it panicked.
    Dropped,
}

/// The result of S3, storing the handle.
#[must_use = "a task that is not aborted runs on"]
#[derive(Debug)]
pub(super) enum HandleStored<H> {
    /// The handle was stored, and nothing is left to do.
    Member,
    /// The member has already ended, so the handle is of no use.
    Ended(H),
    /// The members were closed meanwhile, so the caller must abort the task.
    Closed(H),
}

/// The result of a shutdown.
pub(super) struct Outcome<H, A> {
    pub(super) finished: usize,
    /// The members that ended because of the abort.
    pub(super) ended: Vec<MemberEntry<H, A>>,
    /// The members that have not ended although they were aborted.
    pub(super) stuck: Vec<MemberEntry<H, A>>,
}

impl<H: Clone, A: Clone> Members<H, A> {
    pub(super) fn new() -> Self {
        let tracker = Tracker::new();
        tracker.close();
        let state = State {
            closed: false,
            next: 0,
            entries: BTreeMap::new(),
            finished: 0,
            ended: Vec::new(),
        };
        Self { tracker, state: Mutex::new(state) }
    }

    /// Adds an entry for a task that is about to be spawned (S1). Returns `info` if it is refused
    /// because the members are closed.
    pub(super) fn enter(&self, info: A) -> Result<Key, A> {
        let mut state = lock(&self.state);
        if state.closed && !weakened!("shutdown_enter_checks") {
            return Err(info);
        }
        let key = state.next;
        state.next += 1;
        state.entries.insert(key, MemberEntry { handle: None, info });
        // Once for the member, and once for the thread that spawns it.
        self.tracker.enter();
        self.tracker.enter();
        Ok(Key(key))
    }

    /// Stores the handle of a spawned task (S3). The caller must do what the result says, and then
    /// call [`Self::spawned`].
    pub(super) fn store_handle(&self, key: Key, handle: H) -> HandleStored<H> {
        let mut state = lock(&self.state);
        let closed = state.closed && !weakened!("shutdown_store_checks");
        let Some(entry) = state.entries.get_mut(&key.0) else { return HandleStored::Ended(handle) };
        entry.handle = Some(handle.clone());
        if closed { HandleStored::Closed(handle) } else { HandleStored::Member }
    }

    /// Marks the end of a spawn, whether it succeeded or not.
    pub(super) fn spawned(&self) {
        self.tracker.leave();
    }

    /// Removes the entry of a member that has ended (E1). The caller must call
    /// [`Self::leave_tracker`] after it has published the progress.
    pub(super) fn leave(&self, key: Key, end: End, counted: bool) {
        let mut state = lock(&self.state);
        let entry = state.entries.remove(&key.0);
        let entry = match (entry, end) {
            (Some(entry), End::Dropped) if state.closed => {
                state.ended.push(entry);
                None
            }
            (entry, _) => {
                state.finished += usize::from(counted);
                entry
            }
        };
        drop(state);
        drop(entry);
    }

    /// Leaves the tracker after the entry was removed (E2).
    pub(super) fn leave_tracker(&self) {
        self.tracker.leave();
    }

    /// Returns the number of members.
    pub(super) fn len(&self) -> usize {
        lock(&self.state).entries.len()
    }

    /// Returns true if no further member can enter.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Begins to wait until all members have ended (D1).
    pub(super) fn wait(&self) -> TrackerWait {
        self.tracker.wait()
    }

    /// Polls the wait until all members have ended (D1).
    pub(super) fn poll_wait(&self, wait: &mut TrackerWait, cx: &mut Context<'_>) -> Poll<()> {
        self.tracker.poll_wait(wait, cx)
    }

    /// Ends the wait (D1), whether or not it has completed.
    pub(super) fn end_wait(&self, wait: &mut TrackerWait) {
        self.tracker.end_wait(wait);
    }

    /// Closes the members if there are none (D2). Returns false if one has entered meanwhile.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut state = lock(&self.state);
        if state.entries.is_empty() || weakened!("shutdown_close_checks") {
            state.closed = true;
        }
        state.closed
    }

    /// Closes the members, and returns those that must be aborted, with what is known about them
    /// (D3).
    #[must_use = "D4: abort them"]
    pub(super) fn close(&self) -> Vec<(Key, MemberEntry<H, A>)> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.entries.iter().map(|(key, entry)| (Key(*key), entry.clone())).collect()
    }

    /// Stores what was found out about members that are about to be aborted. For members that have
    /// ended meanwhile it is dropped.
    pub(super) fn update_info(&self, info: Vec<(Key, A)>) {
        let mut state = lock(&self.state);
        let mut old = Vec::with_capacity(info.len());
        for (key, info) in info {
            match state.entries.get_mut(&key.0) {
                Some(entry) => old.push(mem::replace(&mut entry.info, info)),
                None => old.push(info),
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
            stuck: state.entries.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod models;
