//! A list of all tasks of a pool, taken while it runs.
//!
//! Each home is visited through the lock of its list ([`Biased`]): its holder may be
//! anywhere meanwhile, also stuck in a poll, which is when people ask. No code of a
//! user runs during a visit, an allocator's neither: room is made before, and if
//! more tasks turn up than there is room for, the visit is made again.
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

/// Tasks for which room is made at first: picked.
const FIRST_ROOM: usize = 256;

/// What is known of a task.
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

/// All that is known of a pool's tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    pub(crate) tasks: Vec<Known>,
    /// Homes that could not be visited, because the system does not run the thread
    /// that was changing their list.
    pub(crate) missed: usize,
}

impl Pool {
    /// Lists the tasks that live. It takes a moment per home, not the same one.
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
                // SAFETY: `open` is locked and says that the core has not ended: the
                // home is there, and we are its one visitor.
                unsafe { (*home).visit(look) }
            });
        }
        for outside in &self.outside {
            census.visit(unit, |look| {
                let outside = lock(outside);
                let Some(home) = outside.open_home() else { return true };
                // SAFETY: the lock keeps the home open, and us its one visitor.
                unsafe { home.as_ref().visit(look) }
            });
        }
        census.tasks.sort_by_key(|task| task.id);
        census
    }
}

impl Census {
    /// Adds what `visit` shows; it is called again if it shows more than there is
    /// room for.
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
                    // SAFETY: it is on the list that is visited.
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
            // Some more than there were: others go on spawning.
            room = seen + seen / 4;
        }
    }
}

impl Known {
    /// # Safety
    /// 1. The task is on the list of its home, and stays there during the call.
    unsafe fn look_at(task: NonNull<Header>, unit: Unit, now: u32) -> Self {
        // SAFETY: 1.
        let header = unsafe { task.as_ref() };
        let phase = header.state.snapshot().phase();
        Self {
            id: header.id,
            // SAFETY: 1.; the clone counts for itself.
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
    /// The home, if there is one and it takes tasks.
    fn open_home(&self) -> Option<NonNull<Home>> {
        if self.closed { None } else { self.home }
    }
}
