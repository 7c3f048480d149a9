//! The registry of lock holders, as debug builds keep it: two maps for the whole process.
//!
//! Locks that are held are in shards, because every lock and unlock accesses them. Waits are not
//! sharded: a task that waits has lost more time than this lock costs.

use std::{collections::BTreeMap, panic::Location};

use super::{AwaitedLock, Holder};
use crate::engine::{
    prim::{AtomicU64, Mutex, Ordering::Relaxed, ids, lock},
    work::{task::cell::Id, thread_context},
};

/// The number of shards, so that different locks seldom meet in one; picked, not measured.
const SHARDS: usize = 16;

/// The holders, by the lock's number and then by the entry's own number.
static HELD: [Mutex<BTreeMap<(u64, u64), Holder>>; SHARDS] =
    [const { Mutex::new(BTreeMap::new()) }; SHARDS];

/// The waits, by the task and then by the entry's own number: the last one is the newest. One task
/// may wait for several locks at once.
static AWAITED: Mutex<BTreeMap<(Id, u64), LockWait>> = Mutex::new(BTreeMap::new());

struct LockWait {
    lock: u64,
    location: &'static Location<'static>,
}

fn shard(lock: u64) -> &'static Mutex<BTreeMap<(u64, u64), Holder>> {
    &HELD[lock as usize % SHARDS]
}

/// Returns the range of all entries of a lock.
fn entries(lock: u64) -> std::ops::RangeInclusive<(u64, u64)> {
    (lock, 0)..=(lock, u64::MAX)
}

fn holders(name: u64) -> Vec<Holder> {
    lock(shard(name)).range(entries(name)).map(|(_, holder)| *holder).collect()
}

/// The source location at which a lock was requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSite(&'static Location<'static>);

impl CallSite {
    #[track_caller]
    pub(crate) fn caller() -> Self {
        Self(Location::caller())
    }
}

/// The number by which the registry knows a lock; a part of the lock. Zero until its first use, so
/// that a lock can be created in constants.
#[derive(Debug)]
pub(crate) struct LockId(AtomicU64);

impl LockId {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn number(&self) -> u64 {
        // Relaxed, here and below: the number orders nothing, it only has to be unique.
        match self.0.load(Relaxed) {
            0 => {
                let new = ids::take(1);
                self.0.compare_exchange(0, new, Relaxed, Relaxed).err().unwrap_or(new)
            }
            number => number,
        }
    }

    /// Records that the current task holds the lock from now on.
    pub(crate) fn enter(&self, at: CallSite) -> HolderEntry {
        let entry = HolderEntry { lock: self.number(), own: ids::take(1) };
        let holder = Holder { task: thread_context::task_id(), location: at.0 };
        lock(shard(entry.lock)).insert((entry.lock, entry.own), holder);
        entry
    }

    /// Returns the current holders, in the order in which they took the lock.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        // Relaxed: the number orders nothing; a lock without one was never held.
        match self.0.load(Relaxed) {
            0 => Vec::new(),
            number => holders(number),
        }
    }
}

impl Drop for LockId {
    /// Removes the entries of guards that were leaked.
    fn drop(&mut self) {
        // Relaxed: the number orders nothing, and no other thread has the lock.
        let number = self.0.load(Relaxed);
        if number != 0 {
            let mut held = lock(shard(number));
            while let Some((&key, _)) = held.range(entries(number)).next() {
                held.remove(&key);
            }
        }
    }
}

/// The record that a lock is held. The holder must end it before it releases the lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderEntry {
    lock: u64,
    own: u64,
}

impl HolderEntry {
    pub(crate) fn end(self) {
        lock(shard(self.lock)).remove(&(self.lock, self.own));
    }
}

/// The record that a task waits for a lock, if it does.
#[derive(Debug)]
pub(crate) struct WaitEntry(Option<(Id, u64)>);

impl WaitEntry {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Records that the current task waits for this lock.
    pub(crate) fn note(&mut self, name: &LockId, at: CallSite) {
        self.note_for(thread_context::task_id(), name, at);
    }

    fn note_for(&mut self, task: Option<Id>, name: &LockId, at: CallSite) {
        if self.0.map(|(task, _)| task) == task {
            return;
        }
        // This is the first time, or the future has moved to another task.
        self.end();
        if let Some(task) = task {
            let key = (task, ids::take(1));
            lock(&AWAITED).insert(key, LockWait { lock: name.number(), location: at.0 });
            self.0 = Some(key);
        }
    }

    /// Records that the task no longer waits.
    pub(crate) fn end(&mut self) {
        if let Some(key) = self.0.take() {
            lock(&AWAITED).remove(&key);
        }
    }
}

impl Drop for WaitEntry {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the lock that a task waits for; of several, the one that it requested last.
#[cfg_attr(not(feature = "rt"), allow(dead_code, reason = "dumps read it"))]
pub(crate) fn awaited_by(task: Id) -> Option<AwaitedLock> {
    let (name, location) = {
        let awaited = lock(&AWAITED);
        let (_, wait) = awaited.range((task, 0)..=(task, u64::MAX)).next_back()?;
        (wait.lock, wait.location)
    };
    Some(AwaitedLock { location, holders: holders(name) })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    fn task() -> Id {
        Id::new(NonZeroU64::new(ids::take(1)).expect("numbers are never zero"))
    }

    #[test]
    fn holders_and_waiters_are_listed() {
        let (name, task) = (LockId::new(), task());
        assert!(name.holders().is_empty());
        let (first, second) = (name.enter(CallSite::caller()), name.enter(CallSite::caller()));
        let line = line!() - 1;
        let mut awaiting = WaitEntry::new();
        awaiting.note_for(Some(task), &name, CallSite::caller());
        let awaited = awaited_by(task).expect("it waits");
        assert_eq!((awaited.location.line(), awaited.holders.len()), (line + 3, 2));
        assert_eq!(awaited.holders, name.holders());
        first.end();
        let [holder] = name.holders()[..] else { panic!("one has ended") };
        assert_eq!((holder.task, holder.location.line()), (None, line));
        awaiting.end();
        assert!(awaited_by(task).is_none());
        second.end();
        assert!(name.holders().is_empty());
    }

    #[test]
    fn a_lock_that_ends_leaves_no_entries() {
        let name = LockId::new();
        // The guards of these entries are leaked, so no code ends them.
        let (entry, _) = (name.enter(CallSite::caller()), name.enter(CallSite::caller()));
        assert_eq!(holders(entry.lock).len(), 2);
        drop(name);
        assert!(holders(entry.lock).is_empty());
    }

    #[test]
    fn a_future_that_waits_in_two_tasks_is_listed_under_the_last() {
        let (name, one, two) = (LockId::new(), task(), task());
        let mut awaiting = WaitEntry::new();
        awaiting.note_for(Some(one), &name, CallSite::caller());
        awaiting.note_for(Some(two), &name, CallSite::caller());
        assert!(awaited_by(one).is_none() && awaited_by(two).is_some());
        awaiting.note_for(None, &name, CallSite::caller());
        assert!(awaited_by(two).is_none(), "outside of tasks no wait is listed");
        awaiting.note_for(Some(one), &name, CallSite::caller());
        drop(awaiting);
        assert!(awaited_by(one).is_none(), "it was dropped");
    }
}
