//! The life of a worker thread: find a task, run it, and sleep when there is none.

use std::sync::Arc;

use super::{
    Pool,
    core::Core,
    held_core::{self, CoreGuard},
    park, poll_times,
    poller::{self, Maintenance},
    stop,
};
use crate::engine::preempt::WatchRecord;
use crate::engine::work::{
    task::{
        arena::{self, Origin},
        cell::Task,
        poll,
    },
    thread_context::{self, LeaseGuard, SeededRngGuard, blocking::BlockingPolicy},
};

/// The reason why a thread is no longer a worker.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The pool is stopping, and the core has ended.
    Stopped,
    /// The core was handed off during a poll, and another thread has it; or the pool was stopped in
    /// a hook that blocked, and the core has ended.
    CoreLost,
}

/// The next step of a worker.
enum NextStep {
    Run(Task),
    /// The I/O driver may have events.
    Maintain,
    Sleep,
}

#[inline]
fn find(core: &mut Core) -> NextStep {
    let mut task = core.next();
    if task.is_none() {
        if core.expects_events {
            task = core.steal_if_behind();
            if task.is_none() {
                return NextStep::Maintain;
            }
        } else {
            task = core.search().or_else(|| core.spin_before_sleep());
        }
    }
    if task.is_some() && core.searching {
        core.stop_searching();
    }
    task.map_or(NextStep::Sleep, NextStep::Run)
}

/// Polls the task and returns true if the task has ended by that.
#[inline(always)]
fn poll(pool: &Arc<Pool>, task: Task, now: u32) -> bool {
    if task.is_known_hog() {
        return offload(pool, task, now);
    }
    poll_times::run(pool, task, now)
}

/// Gives a task with a history of overlong polls to a spare thread without a core; if there is
/// none, polls it here.
#[cold]
fn offload(pool: &Arc<Pool>, task: Task, now: u32) -> bool {
    match pool.offload(task) {
        Ok(()) => false,
        Err(task) => pool.poll_known_hog(task, now),
    }
}

/// Tries to get the core back after a poll that lost it. Returns true if no other thread has come
/// for the core and this thread holds it again.
#[cold]
fn take_core_back(pool: &Pool, watch_record: Option<&WatchRecord>, is_idle: &mut bool) -> bool {
    let core = watch_record.and_then(|watch_record| watch_record.take_core_back(pool));
    // The monitor may have gone to sleep meanwhile, so it must be notified again.
    *is_idle = set_idle(watch_record);
    // As in `handoff.rs`: `CoreGuard::new` installs the core in this thread, and the worker's own
    // `CoreGuard`, which is empty, stands for the core again.
    core.map(CoreGuard::new).is_some()
}

/// Notes that this worker has nothing to run. Returns true if the monitor must be notified when it
/// has.
fn set_idle(watch_record: Option<&WatchRecord>) -> bool {
    watch_record.into_iter().for_each(WatchRecord::set_idle);
    watch_record.is_some()
}

/// Notifies the monitor that this worker has something to run.
#[cold]
fn set_busy(pool: &Arc<Pool>, watch_record: Option<&WatchRecord>) {
    watch_record.into_iter().for_each(|watch_record| watch_record.set_busy(pool));
}

/// Ends the thread's time as a worker, because another thread has its core.
#[cold]
fn lost(pool: &Pool, completed: bool) -> End {
    // Another thread writes the core's counters now, so this goes to the shared ones.
    pool.outside_counters.stopped(u64::from(completed));
    thread_context::blocking::set_policy(BlockingPolicy::Allowed);
    End::CoreLost
}

/// Runs tasks on this thread, with `core`, until the pool stops or the core is lost.
pub(crate) fn run(mut core: Box<Core>) -> End {
    core.count_as_awake();
    let pool = core.pool.clone();
    let index = core.index;
    thread_context::blocking::set_policy(BlockingPolicy::InPlaceOnly);
    let _seeded = pool.seeds.as_ref().map(|seeds| SeededRngGuard::new(&seeds.worker(index)));
    let watch_record = WatchRecord::begin(&pool, index);
    // SAFETY: obligation 1 of `LeaseGuard::new`: the lease outlives this value, because the watch
    // record was declared earlier and so is dropped later.
    let _lease_guard =
        unsafe { LeaseGuard::new(watch_record.as_ref().map(|watch_record| watch_record.lease())) };
    let first = core.maintenance_is_due;
    let guard = CoreGuard::new(core);
    if first {
        // Events that waited while no thread held the core are handled before anything else.
        poller::maintain(&pool, index, Maintenance::NewThread);
        // User wakers ran, and may have handed the core off.
        if !held_core::holds_core_of(&pool) {
            return lost(&pool, false);
        }
    }
    // True if the monitor must be notified when there is something to run.
    let mut is_idle = watch_record.is_some();
    let mut completed = false;
    while !pool.is_stopping() {
        let (next, tick, maintain, now) = held_core::with_core(|core| {
            core.counters().completed.add(u64::from(completed));
            (find(core), core.take_tick(), core.take_maintenance_due(), core.clock.now_ms())
        });
        if tick {
            arena::sweep_held_arena();
            if !held_core::holds_core_of(&pool) {
                // The sweep ran the destructor of a user's value, which has stopped the pool. The
                // drop of `next` cancels the task in it, if there is one.
                return lost(&pool, false);
            }
        }
        if maintain {
            poller::maintain(&pool, index, Maintenance::BetweenTasks);
            // User wakers ran, and may have handed the core off.
            if !held_core::holds_core_of(&pool) {
                if let NextStep::Run(task) = next {
                    poll::schedule(task, Origin::Yielded);
                }
                return lost(&pool, false);
            }
        }
        if (tick || maintain) && matches!(next, NextStep::Run(_)) {
            held_core::with_core(Core::relieve_stuck_core);
        }
        completed = match next {
            NextStep::Run(task) => {
                if std::mem::take(&mut is_idle) {
                    set_busy(&pool, watch_record.as_deref());
                }
                poll(&pool, task, now)
            }
            NextStep::Maintain => {
                poller::maintain(&pool, index, Maintenance::BetweenTasks);
                false
            }
            NextStep::Sleep => {
                is_idle = set_idle(watch_record.as_deref());
                park::park(&pool, index, || false);
                false
            }
        };
        if !held_core::holds_core_of(&pool)
            && !take_core_back(&pool, watch_record.as_deref(), &mut is_idle)
        {
            return lost(&pool, completed);
        }
    }
    held_core::with_core(|core| core.counters().completed.add(u64::from(completed)));
    stop::end_core(guard.release());
    thread_context::blocking::set_policy(BlockingPolicy::Allowed);
    End::Stopped
}
