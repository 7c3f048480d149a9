//! Lists all tasks of a pool while it runs.
//!
//! Each `Arena` is read through the lock of its list ([`BiasedLock`]). Its holder may be anywhere
//! meanwhile, also stuck in a poll, which is when a user needs the list. No user code runs during a
//! read, not even an allocator: room is made before, and if more tasks turn up than there is room
//! for, the read is repeated.
//!
//! [`BiasedLock`]: crate::engine::prim::biased::BiasedLock

use std::{panic::Location, ptr::NonNull, sync::Arc, time::Duration};

use super::Pool;
use crate::engine::{
    prim::{Ordering::Relaxed, clock::TimestampUnit, lock},
    work::task::{
        arena::Arena,
        cell::{Header, Id},
        state::Phase,
        timestamp::WaitReason,
    },
};

/// Number of tasks for which room is made at first: picked, not measured.
const FIRST_ROOM: usize = 256;

/// The description of a task in a dump.
#[derive(Debug, Clone)]
pub(crate) struct TaskDescription {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) future: &'static str,
    pub(crate) phase: Phase,
    pub(crate) in_phase: Duration,
    pub(crate) wait: WaitReason,
}

/// The descriptions of all tasks of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskList {
    pub(crate) tasks: Vec<TaskDescription>,
    /// Number of arenas that could not be read, because the system does not run the thread that was
    /// changing their list.
    pub(crate) missed: usize,
}

impl Pool {
    /// Lists the living tasks. Each arena is read at one point in time, but not all at the same.
    pub(crate) fn dump(&self) -> TaskList {
        let (mut list, unit) = (TaskList::default(), self.config.unit());
        for remote in &self.remotes {
            list.add_tasks(unit, |visitor| {
                let open = lock(&remote.open);
                if !*open {
                    return true;
                }
                // Relaxed: written before the pool was shared.
                let arena = remote.arena.load(Relaxed);
                // SAFETY: obligations 1 and 2 of `Arena::read_tasks`: `open` is locked and true, so
                // the core has not ended, its arena is not closed, and this thread is the only
                // reader.
                unsafe { (*arena).read_tasks(visitor) }
            });
        }
        for outside in &self.outside {
            list.add_tasks(unit, |visitor| {
                let outside = lock(outside);
                let Some(arena) = outside.open_arena() else { return true };
                // SAFETY: obligations 1 and 2 of `Arena::read_tasks`: the lock keeps the arena
                // open, and makes this thread its only reader.
                unsafe { arena.as_ref().read_tasks(visitor) }
            });
        }
        list.tasks.sort_by_key(|task| task.id);
        list
    }
}

impl TaskList {
    /// Adds the tasks that `read_tasks` shows. Calls it again if it shows more than there is room
    /// for.
    fn add_tasks(
        &mut self,
        unit: TimestampUnit,
        read_tasks: impl Fn(&mut dyn FnMut(NonNull<Header>)) -> bool,
    ) {
        let before = self.tasks.len();
        let mut room = FIRST_ROOM;
        loop {
            self.tasks.truncate(before);
            self.tasks.reserve(room);
            let now = unit.now();
            let mut seen = 0;
            let was_read = read_tasks(&mut |task| {
                seen += 1;
                if self.tasks.len() < self.tasks.capacity() {
                    // SAFETY: obligation 1: the task is on the list that is being read.
                    let task = unsafe { TaskDescription::describe(task, unit, now) };
                    if task.phase != Phase::Complete {
                        self.tasks.push(task);
                    }
                }
            });
            if !was_read {
                self.missed += 1;
                return;
            }
            if seen <= room {
                return;
            }
            // Make room for some more than there were, because other threads go on spawning.
            room = seen + seen / 4;
        }
    }
}

impl TaskDescription {
    /// Reads the description of a task.
    ///
    /// # Safety
    /// 1. The task is on the list of its arena, and stays there during the call.
    unsafe fn describe(task: NonNull<Header>, unit: TimestampUnit, now: u32) -> Self {
        // SAFETY: obligation 1: a task on the list of its arena is alive.
        let header = unsafe { task.as_ref() };
        let phase = header.state.snapshot().phase();
        Self {
            id: header.id,
            // SAFETY: obligation 1: the task is alive; the clone has a reference of its own.
            name: unsafe { Header::name(task) }.cloned(),
            spawned_at: header.spawned_at,
            future: (header.vtable.type_name)(),
            phase,
            in_phase: unit.elapsed(now, header.since.get()),
            wait: if phase == Phase::Idle { header.waiting.get() } else { WaitReason::Unknown },
        }
    }
}

impl super::OutsideArena {
    /// Returns the arena, if there is one and it is open.
    fn open_arena(&self) -> Option<NonNull<Arena>> {
        if self.closed { None } else { self.arena }
    }
}
