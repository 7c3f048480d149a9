//! Who is in a poll that does not end, for those who wait for the end of a runtime.

use std::{
    panic::Location,
    ptr::NonNull,
    sync::{Arc, Weak},
    time::Instant,
};

use super::Pool;
use crate::engine::{
    prim::lock,
    work::task::cell::{Header, Id},
};

/// What a thread runs.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) since: Instant,
}

impl Running {
    /// # Safety
    /// 1. The task is not freed during the call.
    pub(crate) unsafe fn of(task: NonNull<Header>, since: Instant) -> Self {
        // SAFETY: 1.; the clone counts for itself.
        let (header, name) = unsafe { (task.as_ref(), Header::name(task).cloned()) };
        Self { id: header.id, name, spawned_at: header.spawned_at, since }
    }
}

impl Pool {
    /// Polls that have lasted for longer than a slice, with a core or without, and those of tasks
    /// that are lent; none if the pool is not watched.
    pub(crate) fn in_polls(&self) -> Vec<Running> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let mut polls: Vec<_> =
            lock(&watched.detached).iter().filter_map(|detached| detached.runs.clone()).collect();
        let lents: Vec<_> = lock(&watched.lents).iter().filter_map(Weak::upgrade).collect();
        polls.extend(lents.iter().filter_map(|lent| lent.runs()));
        // Guests are not waited for.
        for holder in &watched.holders[..self.remotes.len() + watched.carriers()] {
            let Some(stint) = lock(holder).clone() else { continue };
            let Some((poll, since)) = *lock(&stint.told) else { continue };
            let Some(visit) = stint.tenure.visit(poll) else { continue };
            // SAFETY: 1. the visit keeps it.
            polls.push(unsafe { Running::of(visit.task(), since) });
        }
        polls
    }
}
