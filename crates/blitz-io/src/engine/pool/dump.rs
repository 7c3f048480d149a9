//! Lists all tasks of a pool while it runs.
//!
//! Each `Home` is visited through the lock of its list ([`Biased`]). Its holder may be anywhere
//! meanwhile, also stuck in a poll, which is when a user needs the list. No user code runs during
//! a visit, not even an allocator: room is made before, and if more tasks turn up than there is
//! room for, the visit is repeated.
//!
//! [`Biased`]: crate::engine::prim::biased::Biased

use std::{panic::Location, ptr::NonNull, sync::Arc, time::Duration};

use super::Pool;
use crate::engine::{
    prim::{Ordering::Relaxed, clock::Unit, lock},
    work::task::{
        cell::{Header, Id},
        home::Home,
        moment::Wait,
        state::Phase,
    },
};

/// Number of tasks for which room is made at first: picked, not measured.
const FIRST_ROOM: usize = 256;

/// The description of a task in a dump.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) spawned_at: &'static Location<'static>,
    pub(crate) future: &'static str,
    pub(crate) phase: Phase,
    pub(crate) in_phase: Duration,
    pub(crate) wait: Wait,
}

/// The descriptions of all tasks of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    pub(crate) tasks: Vec<Known>,
    /// Number of homes that could not be visited, because the system does not run the thread that
    /// was changing their list.
    pub(crate) missed: usize,
}

impl Pool {
    /// Lists the living tasks. Each home is read at one point in time, but not all at the same.
    pub(crate) fn dump(&self) -> Census {
        let (mut census, unit) = (Census::default(), self.config.unit());
        for remote in &self.remotes {
            census.visit(unit, |look| {
                let open = lock(&remote.open);
                if !*open {
                    return true;
                }
                // Relaxed: written before the pool was shared.
                let home = remote.home.load(Relaxed);
                // SAFETY: obligations 1 and 2 of `Home::visit`: `open` is locked and true, so the
                // core has not ended, its home is not closed, and this thread is the only
                // visitor.
                unsafe { (*home).visit(look) }
            });
        }
        for outside in &self.outside {
            census.visit(unit, |look| {
                let outside = lock(outside);
                let Some(home) = outside.open_home() else { return true };
                // SAFETY: obligations 1 and 2 of `Home::visit`: the lock keeps the home open, and
                // makes this thread its only visitor.
                unsafe { home.as_ref().visit(look) }
            });
        }
        census.tasks.sort_by_key(|task| task.id);
        census
    }
}

impl Census {
    /// Adds the tasks that `visit` shows. Calls it again if it shows more than there is room for.
    fn visit(&mut self, unit: Unit, visit: impl Fn(&mut dyn FnMut(NonNull<Header>)) -> bool) {
        let before = self.tasks.len();
        let mut room = FIRST_ROOM;
        loop {
            self.tasks.truncate(before);
            self.tasks.reserve(room);
            let now = unit.now();
            let mut seen = 0;
            let visited = visit(&mut |task| {
                seen += 1;
                if self.tasks.len() < self.tasks.capacity() {
                    // SAFETY: obligation 1: the task is on the list that is being visited.
                    let known = unsafe { Known::look_at(task, unit, now) };
                    if known.phase != Phase::Complete {
                        self.tasks.push(known);
                    }
                }
            });
            if !visited {
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

impl Known {
    /// Reads the description of a task.
    ///
    /// # Safety
    /// 1. The task is on the list of its home, and stays there during the call.
    unsafe fn look_at(task: NonNull<Header>, unit: Unit, now: u32) -> Self {
        // SAFETY: obligation 1: a task on the list of its home is alive.
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
            wait: if phase == Phase::Idle { header.waiting.get() } else { Wait::Unknown },
        }
    }
}

impl super::Outside {
    /// Returns the home, if there is one and it is open.
    fn open_home(&self) -> Option<NonNull<Home>> {
        if self.closed { None } else { self.home }
    }
}
