//! Lists the polls that do not end, for a caller that waits for the end of a runtime.

use std::{
    panic::Location,
    ptr::NonNull,
    sync::{Arc, Weak},
    time::Instant,
};

use super::{Pool, waits::SystemCall};
use crate::engine::{
    prim::lock,
    work::task::{
        cell::{Header, Id},
        state::Phase,
    },
};

/// The task that a thread polls.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) since: Instant,
    /// The system's ID of the thread, where it is known.
    pub(crate) thread: Option<i64>,
}

impl Running {
    /// Reads the task's header.
    ///
    /// # Safety
    /// 1. The task is not freed during the call.
    pub(crate) unsafe fn of(task: NonNull<Header>, since: Instant, thread: Option<i64>) -> Self {
        // SAFETY: the task is not freed during the call (obligation 1); the clone is a reference
        // count of its own.
        let (header, name) = unsafe { (task.as_ref(), Header::name(task).cloned()) };
        Self { id: header.id, name, spawned_at: header.spawned_at, since, thread }
    }

    /// Returns the system call that the thread waits in, where the system reports it.
    pub(crate) fn waits_in(&self) -> Option<SystemCall> {
        SystemCall::of_thread(self.thread?)
    }
}

impl Pool {
    /// Returns the polls that a shutdown may wait for: those that block in place, those that have
    /// lasted for longer than a slice, with or without a core, and those of tasks whose core has
    /// not ended.
    pub(crate) fn in_polls(&self) -> Vec<Running> {
        let mut polls = self.blocked.all();
        polls.extend(self.stalled_polls());
        let now = Instant::now();
        let census = self.dump().tasks.into_iter().filter(|task| task.phase == Phase::Running);
        polls.extend(census.map(|task| Running {
            id: task.id,
            name: task.name,
            spawned_at: task.spawned_at,
            since: now.checked_sub(task.in_phase).unwrap_or(now),
            thread: None,
        }));
        let mut seen = Vec::new();
        polls.retain(|poll| {
            !seen.contains(&poll.id) && {
                seen.push(poll.id);
                true
            }
        });
        polls
    }

    /// Returns the overdue polls that the monitor has found, and the polls of offloaded tasks.
    fn stalled_polls(&self) -> Vec<Running> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let mut polls: Vec<_> =
            lock(&watched.detached).iter().filter_map(|detached| detached.runs.clone()).collect();
        let lents: Vec<_> = lock(&watched.lents).iter().filter_map(Weak::upgrade).collect();
        polls.extend(lents.iter().filter_map(|lent| lent.runs()));
        // Guests are left out, because a shutdown does not wait for them.
        for holder in &watched.holders[..self.remotes.len() + watched.carriers()] {
            let Some(stint) = lock(holder).clone() else { continue };
            let Some((poll, since)) = *lock(&stint.told) else { continue };
            let Some(visit) = stint.tenure.visit(poll) else { continue };
            // SAFETY: obligation 1: while the visit lives, the task is not freed.
            polls.push(unsafe { Running::of(visit.task(), since, stint.cpu.thread()) });
        }
        polls
    }
}
