//! Lists the polls that do not end, for a caller that waits for the end of a runtime.

use std::{
    panic::Location,
    ptr::NonNull,
    sync::{Arc, Weak},
    time::Instant,
};

use super::{Pool, scan, system_call::SystemCall};
use crate::engine::{
    prim::lock,
    work::task::{
        cell::{Header, Id},
        state::Phase,
    },
};

/// The task that a thread polls.
#[derive(Debug, Clone)]
pub(crate) struct RunningPoll {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) since: Instant,
    /// The system's ID of the thread, where it is known.
    pub(crate) thread: Option<i64>,
}

impl RunningPoll {
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
    /// lasted for longer than a slice, with or without a core, and those of running tasks in the
    /// arenas of cores that have not ended.
    pub(crate) fn running_polls(&self) -> Vec<RunningPoll> {
        let mut polls = self.blocked.all();
        polls.extend(self.stalled_polls());
        let now = Instant::now();
        let running = self.dump().tasks.into_iter().filter(|task| task.phase == Phase::Running);
        polls.extend(running.map(|task| RunningPoll {
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
    fn stalled_polls(&self) -> Vec<RunningPoll> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let mut polls: Vec<_> = lock(&watched.coreless)
            .iter()
            .filter_map(|coreless| coreless.running.clone())
            .collect();
        let offloaded_tasks: Vec<_> =
            lock(&watched.offloaded_tasks).iter().filter_map(Weak::upgrade).collect();
        polls.extend(offloaded_tasks.iter().filter_map(|offloaded| offloaded.running()));
        // Threads in a `block_on` are left out, because a shutdown does not wait for them.
        for holder in &watched.holders[..self.remotes.len() + watched.carriers()] {
            let Some(watch_record) = lock(holder).clone() else { continue };
            let Some((poll, since)) = *lock(&watch_record.reported_poll) else { continue };
            let Some(inspection) = watch_record.lease.inspect(poll) else { continue };
            // SAFETY: obligation 1: while the inspection lives, the task is not freed.
            polls.push(unsafe {
                RunningPoll::of(scan::header_of(&inspection), since, watch_record.cpu.thread())
            });
        }
        polls
    }
}
