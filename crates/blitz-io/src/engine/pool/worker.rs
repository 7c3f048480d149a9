//! The life of a worker thread: find, run, find, run, sleep.

use super::{core::Core, current, current::Held, duty, duty::Look, park, stop, timing};
use crate::engine::work::{
    current as words,
    current::{Blocking, Seeded},
    task::{cell::Task, home},
};

/// How the time of a thread as a worker ended.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The pool stops, and the core has ended.
    Stopped,
    /// The core was handed off in a poll, and another thread has it; or the pool was
    /// stopped in a hook that blocked, and the core has ended.
    CoreLost,
}

/// What a worker does next.
enum Next {
    Run(Task),
    /// There may be events.
    Look,
    Sleep,
}

#[inline]
fn find(core: &mut Core) -> Next {
    let mut task = core.next();
    if task.is_none() {
        if duty::looks_first(core) {
            return Next::Look;
        }
        task = core.search().or_else(|| core.linger());
    }
    if task.is_some() && core.searching {
        core.stop_searching();
    }
    task.map_or(Next::Sleep, Next::Run)
}

/// Runs tasks on this thread, with `core`, until the pool stops or the core is lost.
pub(crate) fn run(mut core: Box<Core>) -> End {
    core.join_crowd();
    let pool = core.pool.clone();
    let index = core.index;
    words::with(|current| current.blocking.set(Blocking::InPlace));
    let _seeded = pool.seeds.as_ref().map(|seeds| Seeded::new(&seeds.worker(index)));
    let held = Held::new(core);
    let mut completed = false;
    while !pool.is_stopping() {
        let (next, tick, look, now) = current::with_core(|core| {
            core.counters().completed.add(u64::from(completed));
            (find(core), core.take_tick(), core.take_look(), core.clock.now_ms())
        });
        if tick {
            home::sweep_held();
        }
        if look {
            duty::attend(&pool, index, Look::Between);
        }
        completed = match next {
            Next::Run(task) => timing::run(&pool, task, now),
            Next::Look => {
                duty::attend(&pool, index, Look::WhenIdle);
                false
            }
            Next::Sleep => {
                park::park(&pool, index, || false);
                false
            }
        };
        if !current::holds_core_of(&pool) {
            // Its counters have another writer now.
            pool.outside_counters.stopped(u64::from(completed));
            words::with(|current| current.blocking.set(Blocking::Allowed));
            return End::CoreLost;
        }
    }
    current::with_core(|core| core.counters().completed.add(u64::from(completed)));
    stop::end_core(held.release());
    words::with(|current| current.blocking.set(Blocking::Allowed));
    End::Stopped
}
