//! Repeats requests for threads that do not arrive to take over a core or a task.
//!
//! A new thread first runs the user's hook (`on_thread_start`), which may take long or never end;
//! and an overloaded system schedules the thread late. A core that waits for such a thread is
//! offered to another thread after a while, and then to one more, each time after twice the time.
//! After a few of them, only threads that are idle already are requested, because they have
//! finished the hook. The first thread to arrive gets the core; the others find nothing and become
//! threads of the blocking pool. A task goes back to its queue, where a worker finds it.
//!
//! # Invariants
//! - *One owner*: the lock of the `Handoff`, or of the `Offloaded`, decides which thread gets its
//!   content.
//! - *Bounds*: at most [`MAX_THREADS_PER_CORE`] threads are started for a core each time it is
//!   taken. For tasks, no more threads are started than tasks may be offloaded, because a thread
//!   that hangs with a task still counts as having it.
//!
//! # Checked by
//! tests/preempt: `a_thread_that_hangs_in_its_hook_keeps_no_core`,
//! `a_thread_that_hangs_in_its_hook_keeps_no_task`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Pool, WatchedPool, count,
    stall::{HandoffBound, report_slow_start},
};
use crate::engine::{
    preempt::handoff::{Handoff, SpareThreads, SpareWork},
    prim::{Ordering::Relaxed, lock},
};

/// Maximum number of threads that are started for a core. Picked: with the fourth, tens of slices
/// have gone by.
const MAX_THREADS_PER_CORE: u32 = 4;

/// Least time to wait for a requested thread, because a busy system takes milliseconds to start
/// one.
const MIN_PATIENCE: Duration = Duration::from_millis(10);

/// A core that no thread has claimed, as far as is known.
pub(super) struct UnclaimedCore {
    handoff: Arc<Handoff>,
    /// When a thread was last requested.
    since: Instant,
    /// Number of threads that were requested.
    threads: u32,
}

impl UnclaimedCore {
    pub(super) fn new(handoff: Arc<Handoff>, now: Instant) -> Self {
        Self { handoff, since: now, threads: 0 }
    }

    /// Requests one more thread; returns `false` if there is none.
    fn request_thread(&mut self, spare_threads: Arc<dyn SpareThreads>, now: Instant) -> bool {
        let spare_work = SpareWork::Core(self.handoff.clone());
        let requested = if self.threads < MAX_THREADS_PER_CORE {
            spare_threads.request_thread(spare_work)
        } else {
            spare_threads.request_idle_thread(spare_work)
        };
        if requested.is_ok() {
            (self.since, self.threads) = (now, self.threads.saturating_add(1));
        }
        requested.is_ok()
    }

    /// Returns true if it is time to request another thread.
    fn is_due(&self, now: Instant, slice: Duration) -> bool {
        let Some(doublings) = self.threads.checked_sub(1) else { return true };
        let patience = slice.max(MIN_PATIENCE) * 2_u32.pow(doublings.min(MAX_THREADS_PER_CORE));
        now.saturating_duration_since(self.since) >= patience
    }
}

impl Pool {
    /// Offers a core that was taken to a thread; returns `false` if there is none for now.
    pub(super) fn offer_core(
        &self,
        watched: &WatchedPool,
        handoff: Arc<Handoff>,
        now: Instant,
    ) -> bool {
        let Some(spare_threads) = self.spare_threads() else { return false };
        let mut unclaimed = UnclaimedCore::new(handoff, now);
        let is_requested = unclaimed.request_thread(spare_threads.clone(), now);
        if is_requested {
            count(&watched.counters.handoffs);
        } else if self.is_stopping() || spare_threads.is_ending() {
            return false;
        } else {
            watched.refuse(HandoffBound::System);
        }
        lock(&watched.unclaimed_cores).push(unclaimed);
        is_requested
    }

    /// Requests threads for unclaimed cores, and requeues offloaded tasks that no thread has taken.
    pub(super) fn retry(&self, watched: &WatchedPool, now: Instant) {
        let mut unclaimed_cores = lock(&watched.unclaimed_cores);
        unclaimed_cores.retain(|core| core.handoff.is_full());
        let slice = watched.settings.slice;
        if !self.is_stopping()
            && let Some(spare_threads) = self.spare_threads()
        {
            for core in unclaimed_cores.iter_mut().filter(|core| core.is_due(now, slice)) {
                let late = core.threads > 0;
                if !core.request_thread(spare_threads.clone(), now) {
                    break;
                }
                if late {
                    watched.report_slow_start();
                } else {
                    count(&watched.counters.handoffs);
                }
            }
        }
        drop(unclaimed_cores);
        if !self.is_stopping() {
            self.requeue_late(watched, now, slice.max(MIN_PATIENCE));
        }
    }

    /// Puts offloaded tasks back into their queues if their threads have not arrived in time.
    fn requeue_late(&self, watched: &WatchedPool, now: Instant, patience: Duration) {
        let late: Vec<_> = {
            let mut offloaded_tasks = lock(&watched.offloaded_tasks);
            offloaded_tasks.retain(|offloaded| offloaded.strong_count() > 0);
            let offloaded_tasks = offloaded_tasks.iter().filter_map(std::sync::Weak::upgrade);
            offloaded_tasks
                .filter(|offloaded| offloaded.waiting_time(now) >= Some(patience))
                .collect()
        };
        for offloaded in late {
            if offloaded.requeue() {
                watched.report_slow_start();
            }
        }
    }
}

impl WatchedPool {
    /// Returns true if a core or a task waits for a thread.
    pub(super) fn has_unclaimed(&self) -> bool {
        let now = Instant::now();
        !lock(&self.unclaimed_cores).is_empty()
            || lock(&self.offloaded_tasks)
                .iter()
                .filter_map(std::sync::Weak::upgrade)
                .any(|offloaded| offloaded.waiting_time(now).is_some())
    }

    fn report_slow_start(&self) {
        // Relaxed: a flag that orders nothing.
        if !self.reported_slow_start.swap(true, Relaxed) {
            report_slow_start();
        }
    }
}
