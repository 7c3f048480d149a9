//! The life of a worker thread: find, run, find, run, sleep.

use std::sync::Arc;

use super::{
    Pool,
    core::Core,
    current::{self, Held},
    duty::{self, Look},
    park, stop, timing,
    vigil::Stint,
};
use crate::engine::work::{
    current as words,
    current::{Blocking, Seeded, Tenured},
    task::{
        cell::Task,
        home::{self, Origin},
        poll::place,
    },
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

/// Polls the task; `true` if it has ended by that.
#[inline(always)]
fn poll(pool: &Arc<Pool>, task: Task, now: u32) -> bool {
    if task.is_doubtful() {
        return lend(pool, task, now);
    }
    timing::run(pool, task, now)
}

/// Lends a task that was caught to a thread without a core, if there is one; else it is this
/// one's to poll.
#[cold]
fn lend(pool: &Arc<Pool>, task: Task, now: u32) -> bool {
    match pool.lend(task) {
        Ok(()) => false,
        Err(task) => pool.poll_doubtful(task, now),
    }
}

/// After a poll that cost this thread its core: whether nobody has come for it, and it has it
/// again.
#[cold]
fn take_back(pool: &Pool, stint: Option<&Stint>, rests: &mut bool) -> bool {
    let core = stint.and_then(|stint| stint.come_back(pool));
    // The monitor may have gone to sleep meanwhile: it is told again.
    *rests = rest(stint);
    // As in `handoff`: the worker's own `Held`, which is empty, stands for it again.
    core.map(Held::new).is_some()
}

/// There is nothing to run; `true` if somebody wants to know when there is.
fn rest(stint: Option<&Stint>) -> bool {
    stint.into_iter().for_each(Stint::rest);
    stint.is_some()
}

/// There is something to run.
#[cold]
fn rise(pool: &Arc<Pool>, stint: Option<&Stint>) {
    stint.into_iter().for_each(|stint| stint.rise(pool));
}

/// The thread is no worker any more.
#[cold]
fn lost(pool: &Pool, completed: bool) -> End {
    // The core's counters have another writer now.
    pool.outside_counters.stopped(u64::from(completed));
    words::with(|current| current.blocking.set(Blocking::Allowed));
    End::CoreLost
}

/// Runs tasks on this thread, with `core`, until the pool stops or the core is lost.
pub(crate) fn run(mut core: Box<Core>) -> End {
    core.join_crowd();
    let pool = core.pool.clone();
    let index = core.index;
    words::with(|current| current.blocking.set(Blocking::InPlace));
    let _seeded = pool.seeds.as_ref().map(|seeds| Seeded::new(&seeds.worker(index)));
    let stint = Stint::begin(&pool, index);
    // SAFETY: 1. the stint is dropped after it.
    let _tenured = unsafe { Tenured::new(stint.as_ref().map(|stint| stint.tenure())) };
    let first = core.look_is_due;
    let held = Held::new(core);
    if first {
        // What waited for a core that was nobody's goes before all else.
        duty::attend(&pool, index, Look::First);
        // Users' wakers ran, and may have given the core away.
        if !current::holds_core_of(&pool) {
            return lost(&pool, false);
        }
    }
    // Somebody is to be told when there is something to run.
    let mut rests = stint.is_some();
    let mut completed = false;
    while !pool.is_stopping() {
        let (next, tick, look, now) = current::with_core(|core| {
            core.counters().completed.add(u64::from(completed));
            (find(core), core.take_tick(), core.take_look(), core.clock.now_ms())
        });
        if tick {
            home::sweep_held();
            if !current::holds_core_of(&pool) {
                // What it let go of was a user's, which has ended the pool, and this task.
                return lost(&pool, false);
            }
        }
        if look {
            duty::attend(&pool, index, Look::Between);
            // As above.
            if !current::holds_core_of(&pool) {
                if let Next::Run(task) = next {
                    place(task, Origin::Yielded);
                }
                return lost(&pool, false);
            }
        }
        completed = match next {
            Next::Run(task) => {
                if std::mem::take(&mut rests) {
                    rise(&pool, stint.as_deref());
                }
                poll(&pool, task, now)
            }
            Next::Look => {
                duty::attend(&pool, index, Look::WhenIdle);
                false
            }
            Next::Sleep => {
                rests = rest(stint.as_deref());
                park::park(&pool, index, || false);
                false
            }
        };
        if !current::holds_core_of(&pool) && !take_back(&pool, stint.as_deref(), &mut rests) {
            return lost(&pool, completed);
        }
    }
    current::with_core(|core| core.counters().completed.add(u64::from(completed)));
    stop::end_core(held.release());
    words::with(|current| current.blocking.set(Blocking::Allowed));
    End::Stopped
}
