//! Offloads tasks that were caught: threads without a core poll them, until their polls are short.
//!
//! It takes a slice to find a hog, and each time one is found a core changes hands. A task that was
//! caught will likely hog again. So a worker that finds such a task in its queue does not poll it
//! but *offloads* it to a thread of the blocking pool, which has no core: the poll holds up no
//! worker, and tasks that it wakes or spawns are queued as from an outside thread. If the poll was
//! pending, the task comes back through the pool's injector. After a few short polls in a row the
//! task is trusted again.
//!
//! A task that was declared to be long-running (`task::Builder::long_running`) is offloaded from
//! its first poll, and is never trusted.
//!
//! The monitor watches these polls as it does those of a `block_on`
//! ([`block_on`](super::block_on)): they are marked, reported and counted, and nothing is taken
//! from them. It does not watch the polls of declared long-running tasks, nor any of them once the
//! runtime ends. So such polls also read a clock when they check whether their slice is over.
//!
//! An idle thread takes the task, or a thread is started for it. If there is neither, a worker
//! polls the task with its core after all, and no thread is requested for a while. The task is
//! never queued behind jobs of the blocking pool, because one of those may wait for it.
//!
//! # Checked by
//! `models.rs`: `an_offloaded_task_against_a_stop_is_dropped_once`,
//! `a_task_that_no_thread_polls_against_a_stop_is_dropped_once`, `a_requeued_task_has_one_owner`;
//! weakened as `offload_lets_go`, `offload_requeues`.

use std::{
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CorelessThread, Pool, WatchRecord, WatchedPool, count, running_polls::RunningPoll,
    scan::WatchedOffload, stall::StallKind,
};
use crate::engine::{
    pool::poll_times,
    preempt::handoff::SpareWork,
    prim::{
        Mutex,
        Ordering::Relaxed,
        cpu::{CpuClock, CpuUsage},
        ids, lock, weakened,
    },
    work::{
        task::{
            arena::{self, Origin},
            cell::{Header, Task},
            poll,
        },
        thread_context::{
            self, CountingYields, LeaseGuard, PollDeadline, blocking::BlockingPolicy,
        },
    },
};

/// A poll is short if it takes less than a slice divided by this factor.
const SHORT: u32 = 2;

/// Least time between two requests for a thread on a system that refuses them. Picked: a refusal
/// takes some tens of microseconds.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

impl Pool {
    /// Offloads a task that was caught to a thread without a core. Returns the task as an error if
    /// there is no such thread.
    #[cold]
    pub(crate) fn offload(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        let Some(watched) = self.watched.as_ref().filter(|watched| watched.settings.hands_off)
        else {
            return Err(task);
        };
        if watched.has_refused() {
            return Err(task);
        }
        // Relaxed: exceeding the bound by a few does no harm.
        watched.offloaded.fetch_add(1, Relaxed);
        let has_room = watched.has_room_to_offload(Instant::now());
        let spare_threads = self.spare_threads().filter(|_| has_room);
        let Some(spare_threads) = spare_threads.filter(|_| !self.is_stopping()) else {
            self.count_end();
            return Err(task);
        };
        let offloaded = Offloaded::new(self, task);
        watched.register(&offloaded);
        match spare_threads.request_thread(SpareWork::Poll(offloaded)) {
            Ok(()) => {
                count(&watched.counters.offloaded);
                Ok(())
            }
            Err(spare_work) => {
                *lock(&watched.refused_at) = Some(Instant::now());
                match spare_work {
                    // No other thread has taken the task.
                    SpareWork::Poll(offloaded) => offloaded.take().map_or(Ok(()), Err),
                    SpareWork::Core(_) => unreachable!("the request was for a task"),
                }
            }
        }
    }

    /// Polls a task that was caught with this worker's core, because there is no thread for it. The
    /// poll counts for the task's history, so that it can be trusted again.
    #[cold]
    pub(crate) fn poll_known_hog(&self, task: Task, now: u32) -> bool {
        let Some(watched) = &self.watched else { return poll_times::run(self, task, now) };
        let (header, began) = (task.into_header(), PollStart::now());
        // SAFETY: the queue entry in our hands keeps the task alive here; the reference added here
        // keeps it until `record_poll`.
        unsafe { header.as_ref() }.state.add_ref();
        // SAFETY: `into_header` passed the entry to us, and only one `Task` is made of it.
        let completed = poll_times::run(self, unsafe { Task::new(header) }, now);
        // SAFETY: obligation 1: we own the reference that was added above and give it up here.
        unsafe { began.record_poll(header, watched.settings.slice) };
        completed
    }

    fn count_end(&self) {
        if let Some(watched) = &self.watched {
            // Relaxed: a counter, which orders nothing.
            watched.offloaded.fetch_sub(1, Relaxed);
        }
    }
}

impl WatchedPool {
    /// Returns true if the system refused a thread within [`RETRY_INTERVAL`].
    fn has_refused(&self) -> bool {
        lock(&self.refused_at).is_some_and(|at| at.elapsed() < RETRY_INTERVAL)
    }

    /// Registers an offloaded task, so that the monitor sees whether a thread takes it.
    fn register(&self, offloaded: &Arc<Offloaded>) {
        let mut offloaded_tasks = lock(&self.offloaded_tasks);
        if offloaded_tasks.len() >= self.settings.max_computing.saturating_mul(2) {
            // About as many can be alive at most, so the rest are stale.
            offloaded_tasks.retain(|offloaded| offloaded.strong_count() > 0);
        }
        offloaded_tasks.push(Arc::downgrade(offloaded));
    }
}

/// A task that is to be polled by a thread without a core.
pub(crate) struct Offloaded {
    pool: Arc<Pool>,
    /// The task, taken out by the thread that polls it.
    task: Mutex<Option<Task>>,
    /// When the task was offloaded.
    since: Instant,
    /// The poll, while it is in progress.
    running: Mutex<Option<RunningPoll>>,
}

impl Offloaded {
    fn new(pool: &Arc<Pool>, task: Task) -> Arc<Self> {
        Arc::new(Self {
            pool: pool.clone(),
            task: Mutex::new(Some(task)),
            since: Instant::now(),
            running: Mutex::new(None),
        })
    }

    #[cfg(test)]
    pub(super) fn of_a_model(pool: &Arc<Pool>, task: Task) -> Arc<Self> {
        let watched = pool.watched.as_ref().expect("only watched pools offload");
        // Relaxed: exceeding the bound by a few does no harm.
        watched.offloaded.fetch_add(1, Relaxed);
        Self::new(pool, task)
    }

    fn take(&self) -> Option<Task> {
        lock(&self.task).take()
    }

    /// Returns how long the task has waited for a thread, or `None` if one has taken it.
    pub(super) fn waiting_time(&self, now: Instant) -> Option<Duration> {
        lock(&self.task).is_some().then(|| now.saturating_duration_since(self.since))
    }

    /// Puts the task back into its queue, if no thread has taken it. Returns `true` if so.
    pub(super) fn requeue(&self) -> bool {
        let Some(task) = self.take() else { return false };
        if weakened!("offload_requeues") {
            std::mem::forget(task);
        } else {
            poll::schedule(task, Origin::Yielded);
        }
        true
    }

    /// Returns the poll, if it is in progress.
    pub(super) fn running(&self) -> Option<RunningPoll> {
        lock(&self.running).clone()
    }

    /// Polls the task once.
    pub(crate) fn run(&self) {
        let Some(task) = self.take() else { return };
        let Some(watched) = &self.pool.watched else {
            return poll::schedule(task, Origin::Yielded);
        };
        let slice = watched.settings.slice;
        let header = task.into_header();
        // SAFETY: the queue entry in our hands keeps the task alive here; the reference added here
        // keeps it until `record_poll`.
        unsafe { header.as_ref() }.state.add_ref();
        // SAFETY: the reference that was just added keeps the task alive.
        let is_long_running = unsafe { header.as_ref() }.hog_history.is_long_running();
        let began = PollStart::now();
        let guard = OffloadGuard::new(&self.pool, watched, &began, is_long_running);
        // SAFETY: obligation 1: `self` holds an `Arc` of the pool, so the counter outlives
        // `counting`.
        let counting =
            unsafe { CountingYields::new(self.pool.outside_counters.forced_yields().word()) };
        // SAFETY: obligation 1: the reference added above keeps the task alive during the call.
        *lock(&self.running) =
            Some(unsafe { RunningPoll::of(header, began.at, guard.cpu.thread()) });
        // SAFETY: `into_header` passed the entry to us, and only one `Task` is made of it.
        let completed = poll_times::run_without_core(&self.pool, unsafe { Task::new(header) });
        drop(counting);
        drop(guard);
        let over = lock(&self.running).take();
        // Not under the lock, because this may drop the last reference to the task's name.
        drop(over);
        // SAFETY: obligation 1: we own the reference that was added above and give it up here.
        unsafe { began.record_poll(header, slice) };
        self.pool.outside_counters.stopped(u64::from(completed));
    }
}

/// When a poll began, and the resource usage of its thread at that time.
struct PollStart {
    at: Instant,
    usage: Option<CpuUsage>,
}

impl PollStart {
    fn now() -> Self {
        Self { at: Instant::now(), usage: CpuUsage::of_this_thread() }
    }

    /// Ends the poll: records in the task's history whether it was short, and drops the reference.
    ///
    /// # Safety
    /// 1. The caller owns a reference to the task, and gives it up.
    unsafe fn record_poll(&self, header: NonNull<Header>, slice: Duration) {
        // SAFETY: the caller's reference (obligation 1) keeps the task alive.
        unsafe { header.as_ref() }.hog_history.record_poll(self.was_short(slice / SHORT));
        // SAFETY: the reference is still ours (obligation 1), and is given up only by this `unref`.
        if !weakened!("offload_lets_go") && unsafe { header.as_ref() }.state.unref() {
            // SAFETY: `unref` returned true, so this was the last reference and the task must be
            // freed here.
            unsafe { arena::free(header) };
        }
    }

    /// Returns true if the poll has taken less than `limit`. Time in which this thread was runnable
    /// but not scheduled does not count; time in which it was blocked does.
    fn was_short(&self, limit: Duration) -> bool {
        if self.at.elapsed() < limit {
            return true;
        }
        let (Some(before), Some(after)) = (self.usage, CpuUsage::of_this_thread()) else {
            return false;
        };
        after.waits == before.waits && after.time.saturating_sub(before.time) < limit
    }
}

/// Guard for the time in which this thread polls an offloaded task.
struct OffloadGuard<'a> {
    watched: &'a WatchedPool,
    cpu: CpuClock,
    number: u64,
    blocking: BlockingPolicy,
    _deadline: PollDeadline,
    _watch: Option<OffloadWatch>,
}

/// Registration of the thread with the monitor. The fields must be dropped in this order.
struct OffloadWatch {
    _lease_guard: LeaseGuard,
    watch_record: Arc<WatchRecord>,
}

impl OffloadWatch {
    fn new(watched: &WatchedPool) -> Self {
        let watch_record = WatchRecord::new(watched, false, true);
        // SAFETY: obligation 1: lease and guard are fields of one struct, and are dropped in order
        // on this thread.
        let lease_guard = unsafe { LeaseGuard::new(Some(watch_record.lease())) };
        // The pointer is never used, because a core that is not movable is not taken.
        thread_context::began_with_core(NonNull::dangling());
        Self { _lease_guard: lease_guard, watch_record }
    }
}

impl<'a> OffloadGuard<'a> {
    /// Registers this thread as one that polls an offloaded task. `is_long_running`: the task was
    /// declared to be long-running, so the monitor does not watch it.
    fn new(
        pool: &Pool,
        watched: &'a WatchedPool,
        began: &PollStart,
        is_long_running: bool,
    ) -> Self {
        let cpu = CpuClock::of_this_thread();
        let number = ids::take(1);
        // Models do without, because they have enough to explore.
        let watch = (!is_long_running && !cfg!(blitz_loom)).then(|| OffloadWatch::new(watched));
        let watched_offload =
            watch.as_ref().map(|watch| WatchedOffload::new(watch.watch_record.clone()));
        let deadline = PollDeadline::until(began.at.checked_add(watched.settings.slice));
        lock(&watched.coreless).push(CorelessThread {
            number,
            kind: StallKind::Computing,
            cpu,
            checked: (began.at, cpu.read()),
            early: None,
            is_offloaded: true,
            watched_offload,
            running: None,
        });
        if watch.is_some() {
            // The monitor may sleep by now: the last busy thread was the worker that offloaded the
            // task.
            pool.notify_monitor();
        }
        let blocking = thread_context::blocking::replace_policy(BlockingPolicy::InPlaceOnly);
        Self { watched, cpu, number, blocking, _deadline: deadline, _watch: watch }
    }
}

impl Drop for OffloadGuard<'_> {
    fn drop(&mut self) {
        thread_context::blocking::set_policy(self.blocking);
        let mut coreless = lock(&self.watched.coreless);
        let index = coreless.iter().position(|thread| thread.number == self.number);
        let gone = index.map(|index| coreless.swap_remove(index));
        drop(coreless);
        drop(gone);
    }
}

impl Drop for Offloaded {
    /// Gives the task back, if no thread has polled it: to its queue, or to be dropped if the pool
    /// ends.
    fn drop(&mut self) {
        self.pool.count_end();
        self.requeue();
    }
}
